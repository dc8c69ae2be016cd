"""lp_sparsemap: one factor graph, one graph for many scores, or many graphs, by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, overload

from numpy.typing import ArrayLike

from ..._arrays import namespace
from ..._linalg.threads import count_threads
from ..._typing import SolveOptions
from ..solver.graph_run import solve_runs
from ..solver.layout import check_options
from .graph import FactorGraph
from .solution import BatchSolution, Solution


@overload
def lp_sparsemap(
    graphs: FactorGraph,
    scores: None = None,
    additional_scores: None = None,
    *,
    n_jobs: int | None = None,
    **options: Unpack[SolveOptions],
) -> Solution: ...
@overload
def lp_sparsemap(
    graphs: FactorGraph,
    scores: ArrayLike,
    additional_scores: ArrayLike | None = None,
    *,
    n_jobs: int | None = None,
    **options: Unpack[SolveOptions],
) -> BatchSolution: ...
@overload
def lp_sparsemap(
    graphs: Sequence[FactorGraph], *, n_jobs: int | None = None, **options: Unpack[SolveOptions]
) -> list[Solution]: ...
def lp_sparsemap(
    graphs: FactorGraph | Sequence[FactorGraph],
    scores: ArrayLike | None = None,
    additional_scores: ArrayLike | None = None,
    *,
    n_jobs: int | None = None,
    **options: Unpack[SolveOptions],
) -> Solution | BatchSolution | list[Solution]:
    """Solve a factor graph, one graph for many scores, or many graphs.

    Parameters
    ----------
    graphs : FactorGraph, or list of FactorGraph
        A list is solved with the graphs' own scores, of one or of different shapes.
    scores : array-like of shape (n_graphs, n_variables), default=None
        Scores for the one graph; None: its own. CuPy arrays are solved on the GPU, where the
        solution is; factors with a MAP oracle are a TypeError there.
    additional_scores : array-like of shape (n_graphs, n_additional) or (n_additional,), default=None
        None: the factors' own.
    n_jobs : int, default=None
        Number of threads, as in joblib; they share out the graphs.
    **options
        Those of `FactorGraph.solve`.

    Returns
    -------
    Solution, BatchSolution, or list of Solution
        For one graph, one graph with scores, and a list of graphs.

    Raises
    ------
    TypeError, ValueError
        If graphs are none, there is no such option, or scores have another shape, are NaN or inf.

    See Also
    --------
    FactorGraph.solve : One graph.
    sparsekit.torch.FactorGraphLayer : The same as a layer.

    Examples
    --------
    >>> from sparsekit import AtMostOne, FactorGraph, lp_sparsemap
    >>> graph = FactorGraph()
    >>> graph.add(AtMostOne(graph.variable((2,))))
    >>> lp_sparsemap(graph, [[0.7, 0.5], [0.2, -1.0]]).x.round(3)
    array([[0.6, 0.4],
           [0.2, 0. ]])
    """
    if isinstance(graphs, FactorGraph):
        if scores is None:
            if additional_scores is not None:
                raise ValueError("additional_scores are for scores (n_graphs, n_variables)")
            return graphs.solve(n_jobs=n_jobs, **options)
        return graphs.solve_batch(scores, additional_scores, n_jobs=n_jobs, **options)
    if scores is not None or additional_scores is not None:
        raise ValueError("scores and additional_scores are for one graph; graphs in a list have their own")
    options = check_options(options)
    several: list[Any] = list(graphs) if isinstance(graphs, (list, tuple)) else [graphs]
    if not all(isinstance(graph, FactorGraph) for graph in several):
        raise TypeError("graphs must be a FactorGraph or a list of them")
    namespace(**{f"graphs[{i}]": graph._scores for i, graph in enumerate(several)})
    runs = [graph._run(1, graph._scores) for graph in several]
    for graph, run in zip(several, runs):
        run.prepare(*graph._own_scores())
    solve_runs(runs, options, False, count_threads(n_jobs))
    return [Solution(graph, run, 0, options) for graph, run in zip(several, runs)]
