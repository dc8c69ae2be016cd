"""Factor graphs: LP-SparseMAP and LP-MAP inference."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import is_device, namespace
from ..._linalg.threads import count_threads
from ..._typing import FloatArray, SolveOptions
from ..factors.factors import Factor, as_scores, check_factor, listed
from ..factors.variables import Variable
from ..solver.graph_run import GraphRun, solve_runs
from ..solver.layout import Layout, check_options
from .solution import BatchSolution, Gradients, Solution


class FactorGraph:
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
        self._scores: FloatArray = np.zeros(0)
        self._shapes: list[tuple[int, ...]] = []
        self._factors: list[Factor] = []
        self._known: set[int] = set()  # the factors' ids
        self._layout: Layout | None = None
        self._last: Solution | None = None
        self._n_variables = self._n_additional = 0

    def __getstate__(self):
        # plans and solutions hold memory of the kernels; they are made again when needed
        return self.__dict__ | {"_layout": None, "_last": None, "_known": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._known = set(map(id, self._factors))

    def __repr__(self) -> str:
        return f"FactorGraph({self.n_variables} variables: {listed(self._factors)})"

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self._n_variables

    @property
    def n_additional(self) -> int:
        """Number of additional scores, of all factors."""
        return self._n_additional

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors, in the order in which they were added."""
        return tuple(self._factors)

    @property
    def scores(self) -> FloatArray:
        """Scores of all variables, (n_variables,)."""
        return self._scores.copy()

    @property
    def additional_scores(self) -> FloatArray:
        """Additional scores of all factors, one factor after the other, (n_additional,)."""
        parts = [f._all_additional() for f in self._factors if f._full_shape != (0,)]
        theirs = next(filter(is_device, parts), None)
        if theirs is not None:
            xp = namespace(**{"a factor's additional scores": theirs, "the graph's scores": self._scores})
            return xp.concatenate([xp.asarray(part) for part in parts])
        return np.concatenate([*parts, np.zeros(0)])

    def variable(self, scores: ArrayLike | tuple[int, ...]) -> Variable:
        """New variables.

        Parameters
        ----------
        scores : array-like of floats, or tuple of int
            Their scores, -inf where a variable must be off; or a shape, for scores of 0. A list of whole
            numbers counts as scores; only a tuple is a shape. CuPy arrays: the graph is solved on the GPU.

        Returns
        -------
        Variable
            A view of them, which slices, transposes and reshapes like an array.

        Raises
        ------
        TypeError, ValueError
            If the scores are no numbers, NaN or inf, or a size is negative.

        Examples
        --------
        >>> from sparsekit import FactorGraph
        >>> graph = FactorGraph()
        >>> u = graph.variable([0.5, -1.0])
        >>> v = graph.variable((2, 3))
        >>> v[:, 0], v.T, graph.n_variables
        (Variable(shape=(2,)), Variable(shape=(3, 2)), 8)
        """
        if isinstance(scores, tuple) and all(
            isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in scores
        ):
            if any(size < 0 for size in scores):
                raise ValueError(f"sizes must be at least 0; got {scores}")
            scores = np.zeros(scores, like=self._scores)
        scores = as_scores(scores, "scores")
        first = self.n_variables
        if first:
            namespace(**{"the graph's scores": self._scores, "scores": scores})
        self._scores = np.concatenate([self._scores, scores.ravel()]) if first else scores.ravel().copy()
        self._n_variables = first + scores.size
        self._shapes.append(scores.shape)
        self._layout = None
        return Variable(self, np.arange(first, self._n_variables).reshape(scores.shape))

    def all_variables(self) -> Variable:
        """A view of all variables, in the order in which they were made.

        Returns
        -------
        Variable
            Of shape (n_variables,).
        """
        return Variable(self, np.arange(self.n_variables))

    def add(self, factor: Factor) -> None:
        """Add a factor over variables of this graph.

        Parameters
        ----------
        factor : Factor
            A logic factor over a view of two dimensions is one factor a row.

        Raises
        ------
        TypeError, ValueError
            If it is no factor, in the graph already, or about another graph's variables.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Imply, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable([[0.5, 0.3], [0.9, 0.2]])
        >>> graph.add(Xor(u))  # each row
        >>> graph.add(Imply([u[0, 0], u[1, 1]]))  # single variables, side by side
        >>> len(graph.factors)
        2
        """
        check_factor(factor)
        if factor.graph is not self:
            raise ValueError("the factor's variables belong to another graph")
        if id(factor) in self._known:
            raise ValueError("the factor is in the graph already")
        self._factors.append(factor)
        self._known.add(id(factor))
        self._n_additional += factor.n_additional
        self._layout = None

    def set_scores(self, where: Variable | Factor, scores: ArrayLike) -> None:
        """New scores for a view's variables, or new additional scores for a factor.

        Parameters
        ----------
        where : Variable or Factor
            A view of this graph's variables, or one of its factors.
        scores : array-like of the view's shape, or of the shape of the factor's additional scores
            The scores; -inf forbids.

        Raises
        ------
        TypeError, ValueError
            If ``where`` is neither, or the scores have another shape, are NaN or inf.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable((2,))
        >>> graph.add(Xor(u))
        >>> graph.set_scores(u, [0.5, 0.1])
        >>> graph.solve()[u].round(3)
        array([0.7, 0.3])
        """
        scores = as_scores(scores, "scores")
        if isinstance(where, Factor) and id(where) in self._known:
            if scores.shape != where._given_shape:
                raise ValueError(f"scores must have the shape {where._given_shape}; got {scores.shape}")
            where._additional = scores
        elif isinstance(where, Variable) and where.graph is self:
            if scores.shape != where.shape:
                raise ValueError(f"scores must have the shape {where.shape}; got {scores.shape}")
            xp = namespace(**{"the graph's scores": self._scores, "scores": scores})
            self._scores = self._scores.astype(np.result_type(self._scores.dtype, scores.dtype))
            self._scores[xp.asarray(where.index)] = scores
        else:
            raise TypeError("where must be a view of this graph's variables or one of its factors")

    def _plan(self):
        if self._layout is None:
            self._layout = Layout(self.n_variables, self._factors)
        return self._layout

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
            Marginals by view and by factor, and what tells whether they are the solution: ``status``,
            ``optimality``.

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
