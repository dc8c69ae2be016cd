"""Factor graphs: LP-SparseMAP and LP-MAP inference."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import namespace
from ..._linalg.threads import count_threads
from ..._typing import SolveOptions
from ..factors.factors import as_scores
from ..factors.variables import Variable
from ..solver.graph_run import GraphRun, solve_runs
from ..solver.layout import check_options
from .builder import GraphBuilder
from .solution import BatchSolution, Gradients, Solution


class FactorGraph(GraphBuilder):
    r"""Binary variables with scores, tied together by factors.

    `solve` finds the LP-SparseMAP marginals, eq. (10) of [1]_,

    .. math:: \max_{\mu, p}\; \langle \eta, \mu \rangle + \sum_f \langle \eta_f, N_f p_f \rangle
              - \tfrac{1}{2} \|\mu\|^2
              \quad\text{subject to}\quad C_f \mu = M_f p_f,\; p_f \in \triangle,

    where the columns of M_f and N_f are the structures that factor f allows. A column of M_f says which
    variables are on, one of N_f which additional scores count. The solution is sparse, unique, and
    differentiable almost everywhere. `map` finds the LP-MAP solution, without the quadratic term.

    See Also
    --------
    lp_sparsemap : Marginals of one graph, or of many.
    sparsekit.torch.FactorGraphLayer : The same as a layer.

    References
    ----------
    .. [1] V. Niculae, A. F. T. Martins, "LP-SparseMAP: Differentiable Relaxed Optimization for Sparse
       Structured Prediction", ICML 2020.

    Examples
    --------
    >>> from sparsekit import AtMostOne, FactorGraph, Xor
    >>> graph = FactorGraph()
    >>> u = graph.variable([[0.9, 0.1, 0.4], [0.8, 0.5, 0.3]])
    >>> graph.add(Xor(u))  # each row exactly once
    >>> graph.add(AtMostOne(u.T))  # each column at most once
    >>> graph.solve()[u].round(3)
    array([[0.583, 0.058, 0.358],
           [0.417, 0.392, 0.192]])
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: Solution | None = None

    def __getstate__(self):
        # a solution holds memory of the kernels
        return super().__getstate__() | {"_last": None}

    def _run(self, n, like, warm=None):
        layout = self._plan()
        if warm is not None and warm._run.suits(layout, n, like):
            return warm._run
        return GraphRun(layout, n, like)

    def _own_scores(self):
        """Scores (1, n_variables) and additional ones (1, n_additional), where the scores are."""
        xp = namespace(scores=self._scores)
        return self._scores[None].astype(np.float64), xp.asarray(self.additional_scores)[None]

    def solve(
        self, *, warm_start: bool = False, n_jobs: int | None = None, **options: Unpack[SolveOptions]
    ) -> Solution:
        """LP-SparseMAP marginals.

        Parameters
        ----------
        warm_start : bool, default=False
            Whether to start from the last solution. It can no more be differentiated then.
        n_jobs : int, default=None
            Threads over graphs; one graph is solved by one.
        **options
            Of the solver:

            max_iter : int, default=2000
                Largest number of passes over the factors.
            step_size : float, default=5.0
                gamma of Algorithm 1; at the start (times strong scores, if exact), if it is adaptive.
            adaptive : bool, default=True
                Whether the step size follows the ratio of the residuals.
            relaxation : float, default=1.6
                Over-relaxation, between 0 and 2. Algorithm 1 as printed has 1.
            tol_primal : float, default=1e-11
                Largest norm of the disagreement between the factors' answers and their mean at the end.
            tol_dual : float, default=1e-9
                Largest norm of the last change of the marginals, where ``exact=False``.
            inner_iter : int, default=10
                Most calls of a MAP oracle in one local problem of an iteration; in a solve each factor's is
                called at most ``max_iter * inner_iter`` times.
            max_time : float, default=None
                Seconds after which the call ends with what it has, ``status`` 2; not on a GPU.
            exact : bool, default=True
                Whether Newton's method on the dual takes over once the iteration is near. False is
                Algorithm 1.

        Returns
        -------
        Solution
            Marginals by view and by factor, and whether they are the solution: ``status``, ``optimality``.

        Raises
        ------
        TypeError
            If there is no such option.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable([0.5, 0.3, -1.0])
        >>> graph.add(Xor(u))
        >>> solution = graph.solve()
        >>> solution[u].round(3), solution.success, round(solution.fun, 3)
        (array([0.6, 0.4, 0. ]), True, 0.16)
        """
        return self._solve(options, True, warm_start, n_jobs)

    def map(
        self, *, warm_start: bool = False, n_jobs: int | None = None, **options: Unpack[SolveOptions]
    ) -> Solution:
        """The LP-MAP solution, eq. (8): the same without the quadratic term.

        With ``exact=True`` finitely many proximal steps solve the linear program, each an LP-SparseMAP
        problem. With ``exact=False`` it is the iteration of AD3. If the relaxation is tight, the marginals
        are 0 and 1. If several solutions are optimal, one of them or a mixture is found.

        Parameters
        ----------
        warm_start : bool, default=False
            Whether to start from the last solution.
        n_jobs : int, default=None
            Threads over graphs; one graph is solved by one.
        **options
            Those of `solve`, with ``tol_primal=1e-9`` by default.

        Returns
        -------
        Solution
            It has no derivatives.

        Raises
        ------
        TypeError
            If there is no such option.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable([0.5, 0.3, -1.0])
        >>> graph.add(Xor(u))
        >>> graph.map()[u].round(3)
        array([1., 0., 0.])
        """
        return self._solve({"tol_primal": 1e-9} | options, False, warm_start, n_jobs)

    def _solve(self, options, quadratic, warm_start, n_jobs):
        options = check_options(options, quadratic)
        last = self._last if warm_start else None
        run = self._run(1, self._scores, last)
        warm = last is not None and run is last._run
        if last is not None and warm:
            last._stale = True
        run.prepare(*self._own_scores())
        solve_runs([run], options, warm, count_threads(n_jobs))
        self._last = Solution(self, run, 0, options)
        return self._last

    def solve_batch(
        self,
        scores: ArrayLike,
        additional_scores: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        **options: Unpack[SolveOptions],
    ) -> BatchSolution:
        """Solve this graph for many scores.

        Parameters
        ----------
        scores : array-like of shape (n_graphs, n_variables)
            More dimensions are flattened, in the order in which the variables were made. CuPy arrays are
            solved on the GPU, and what is returned is there.
        additional_scores : array-like of shape (n_graphs, n_additional) or (n_additional,), default=None
            None: those of the factors.
        n_jobs : int, default=None
            Threads over graphs.
        **options
            Those of `solve`.

        Returns
        -------
        BatchSolution
            Marginals ``x`` (n_graphs, n_variables), ``status`` and ``optimality`` (n_graphs,).

        Raises
        ------
        TypeError, ValueError
            If there is no such option, or scores have another shape, are NaN or inf.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Xor
        >>> graph = FactorGraph()
        >>> graph.add(Xor(graph.variable((2,))))
        >>> graph.solve_batch([[0.5, 0.3], [2.0, 0.0]]).x.round(3)
        array([[0.6, 0.4],
               [1. , 0. ]])
        """
        options = check_options(options)
        scores = as_scores(scores, "scores")
        n = len(scores) if scores.ndim else 0
        if scores.ndim < 2 or scores.size != n * self.n_variables:
            raise ValueError(f"scores must have the shape (n_graphs, {self.n_variables}); got {scores.shape}")
        xp = namespace(scores=scores, additional_scores=additional_scores)
        if additional_scores is None:
            extra = xp.asarray(self.additional_scores)
        else:
            extra = as_scores(additional_scores, "additional_scores")
        if extra.shape not in ((self.n_additional,), (n, self.n_additional)):
            raise ValueError(
                f"additional_scores must have the shape ({n}, {self.n_additional}); got {extra.shape}"
            )
        run = self._run(n, scores)
        run.prepare(
            scores.reshape(n, self.n_variables).astype(np.float64),
            np.broadcast_to(extra, (n, self.n_additional)).astype(np.float64),
        )
        solve_runs([run], options, False, count_threads(n_jobs))
        return BatchSolution(self, run, scores.dtype, options)

    def vjp(self, direction: ArrayLike | dict[Variable, ArrayLike]) -> Gradients:
        """Gradients of ``<direction, x>`` at the last solution x with respect to all scores.

        Parameters
        ----------
        direction : array-like of shape (n_variables,), or dict from views to arrays of their shapes
            What the gradient of a loss in the marginals is.

        Returns
        -------
        Gradients
            By view and by factor.

        Raises
        ------
        ValueError
            If the graph has not been solved, was infeasible or solved by `map`, or the shape is wrong.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable([0.5, 0.3, -1.0])
        >>> graph.add(Xor(u))
        >>> solution = graph.solve()
        >>> graph.vjp({u: [1.0, 0.0, 0.0]})[u].round(3)
        array([ 0.5, -0.5,  0. ])
        """
        if self._last is None:
            raise ValueError("the graph has not been solved")
        return self._last.vjp(direction)
