"""Solutions of factor graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import namespace, thread_arguments, to_host
from ..._linalg.threads import count_threads
from ..._solver import outcome
from ..._typing import Array, FloatArray
from ..factors.factors import Factor
from ..factors.variables import Variable
from ..plan import MARGINAL_TOL
from ..solver.graph_run import differentiate
from ..solver.layout import MESSAGES


class _Marginals:
    """Values for the variables and the additional scores of a graph, to be read by view and by factor."""

    def __init__(self, graph, layout, scores, additional):
        self._graph, self._layout = graph, layout
        self.scores, self.additional_scores = scores, additional

    def _read(self, where):
        if isinstance(where, Variable) and where.graph is self._graph:
            if where.size and where.index.max() >= self.scores.shape[-1]:
                raise KeyError("the view's variables were made after this was solved")
            return self.scores[..., namespace(x=self.scores).asarray(where.index)]
        start = self._layout.add_start.get(id(where)) if isinstance(where, Factor) else None
        if start is None and isinstance(where, (Variable, Factor)):
            raise KeyError(
                "the factor was not in the graph when this was solved"
                if where.graph is self._graph
                else "it is of another graph; views and factors of a copied graph are copied together with it"
            )
        if start is None:
            raise KeyError("only views of the graph's variables and its factors have values here")
        return where, self.additional_scores[..., start : start + where.n_additional]


class Gradients(_Marginals):
    """What `vjp` returns: ``gradients[view]``, ``gradients[factor]``.

    Attributes
    ----------
    scores : ndarray of shape (..., n_variables)
    additional_scores : ndarray of shape (..., n_additional)
    """

    def __getitem__(self, where: Variable | Factor) -> FloatArray:
        got = self._read(where)
        if not isinstance(got, tuple):
            return got
        factor, full = got
        if full.ndim == 1:
            return factor._gradient(full)
        rows = [factor._gradient(row) for row in full]
        stacked = np.stack(rows) if rows else np.empty(0, like=full)
        return stacked.reshape((len(full), *factor._given_shape))


class BatchSolution:
    """Solutions of one graph for many scores.

    Attributes
    ----------
    x : ndarray of shape (n_graphs, n_variables)
        Marginals mu.
    additional : ndarray of shape (n_graphs, n_additional)
        Marginals N p of the additional scores.
    status, nit : ndarray of int of shape (n_graphs,)
        0 converged, 1 stopped at max_iter, 2 after max_time, 10 infeasible, for which x is NaN; number of
        passes over the factors.
    optimality : ndarray of shape (n_graphs,)
        Norm of the disagreement: of the dual's gradient where ``exact=True``, then 0 at the solution alone.
    success : ndarray of bool of shape (n_graphs,)
    solver : ndarray of str of shape (n_graphs,)
        What ended each solve: "ADMM" (with Newton's method where ``exact=True``), "interior point", "HiGHS",
        or "ADMM after" one of these, which then found nothing.
    n_fallbacks : ndarray of int of shape (n_graphs,)
        Number of factors whose flow or multipliers did not converge. The slower active set of structures
        solved them.
    """

    def __init__(self, graph, run, dtype, options):
        report, mu, additional = run.finish()
        self._graph, self._run, self._dtype, self._stale = graph, run, dtype, False
        self._options = options
        self.x, self.additional = mu.astype(dtype, copy=False), additional.astype(dtype, copy=False)
        self.status, self.nit = report["status"], report["n_iter"]
        self.primal_residual, self.dual_residual = report["primal"], report["dual"]
        self.optimality, self.step_size = report["primal"], report["step_size"]
        self.success = self.status == outcome.CONVERGED
        self.solver, self.n_fallbacks = run.solver.astype(str), report["n_fallbacks"]
        # infeasible graphs have no answer
        self.x[self.status == outcome.INFEASIBLE] = np.nan
        self.additional[self.status == outcome.INFEASIBLE] = np.nan

    def __repr__(self) -> str:
        n, size = self.x.shape
        return f"BatchSolution({n} graphs of {size} variables: {int(self.success.sum())} converged)"

    def __getitem__(self, where: Variable | Factor) -> FloatArray:
        if isinstance(where, Factor):
            self._check_fresh()
        values = _Marginals(self._graph, self._run and self._run.layout, self.x, self.additional)._read(where)
        if not isinstance(values, tuple):
            return values
        factor, full = values
        return full.reshape((*full.shape[:-1], *factor._full_shape))

    def vjp(self, direction: ArrayLike, *, n_jobs: int | None = None) -> Gradients:
        """Gradients of ``sum(direction * x)`` with respect to all scores (Algorithm 2, in its limit).

        Parameters
        ----------
        direction : array-like of shape (n_graphs, n_variables)
            What the gradient of a loss in the marginals is.
        n_jobs : int, default=None
            Threads over graphs.

        Returns
        -------
        Gradients
            Of shapes (n_graphs, ...).

        Raises
        ------
        ValueError
            If a graph is infeasible, or the shape is wrong.
        """
        self._check()
        d = self._direction(direction, "direction", self._run.layout.n_variables)
        to_add = np.zeros((self._run.n, self._run.layout.n_additional), like=self.x)
        differentiate(self._run, "vjp", d, to_add, *thread_arguments(d, count_threads(n_jobs)))
        return Gradients(
            self._graph,
            self._run.layout,
            d.astype(self._dtype, copy=False),
            to_add.astype(self._dtype, copy=False),
        )

    def jvp(
        self, scores: ArrayLike, additional_scores: ArrayLike | None = None, *, n_jobs: int | None = None
    ) -> FloatArray:
        """How x moves as the scores move in these directions.

        Parameters
        ----------
        scores : array-like of the shape of ``x``
            Directions of the variables' scores.
        additional_scores : array-like of the shape of ``additional``, default=None
            Directions of the additional scores; None is 0.
        n_jobs : int, default=None
            Threads over graphs; one graph is worked by one thread.

        Returns
        -------
        ndarray of the shape of ``x``
            The derivative of x in these directions.
        """
        self._check()
        n_add = self._run.layout.n_additional
        d = self._direction(scores, "scores", self._run.layout.n_variables)
        extra = additional_scores
        if extra is None:
            extra = np.zeros((self._run.n, n_add), like=self.x)
        extra = self._direction(extra, "additional_scores", n_add)
        moved = differentiate(self._run, "jvp", d, extra, *thread_arguments(d, count_threads(n_jobs)))
        return moved.reshape(self.x.shape).astype(self._dtype, copy=False)

    def _direction(self, values, name, size):
        """A copy, (n_graphs, size), of a direction in which derivatives are wanted."""
        self._check_device(values, name)
        d, n = np.array(values, dtype=np.float64, like=self.x), self._run.n
        if d.shape not in ((n, size), (size,)) and not (d.ndim > 2 and len(d) == n and d.size == n * size):
            raise ValueError(f"{name} must have the shape {(n, size)}; got {d.shape}")
        if not np.isfinite(d).all():
            raise ValueError(f"{name} must be finite")
        return np.broadcast_to(d if d.ndim == 1 else d.reshape(n, size), (n, size)).copy()

    def _check_device(self, values, name):
        namespace(x=self.x, **{name: values})

    def __getstate__(self):
        # the kernels' state is not pickled
        return self.__dict__ | {"_run": None}

    def _check_fresh(self):
        if self._run is None:
            raise ValueError(
                "a copy of a solution has its marginals only: no derivatives, no local solutions"
            )
        if self._stale:
            raise ValueError("a later solve with warm_start=True has replaced this solution")

    def _check(self):
        self._check_fresh()
        if not self._options.quadratic:
            raise ValueError("LP-MAP is piecewise constant in the scores: it has no derivatives of use")
        if np.any(self.status == outcome.INFEASIBLE):
            raise ValueError(MESSAGES[outcome.INFEASIBLE])


class Solution(BatchSolution):
    """Solution of a graph, to be read by view and by factor.

    ``solution[view]`` are marginals, ``solution[factor]`` those of its additional scores.

    Attributes
    ----------
    x : ndarray of shape (n_variables,)
        Marginals mu.
    additional : ndarray of shape (n_additional,)
        Marginals N p of the additional scores, one factor after the other.
    fun : float
        Value of eq. (10), which is maximised.
    status : int
        0 converged, 1 stopped at max_iter, 2 after max_time, 10 infeasible (certified), for which x is NaN.
    message : str
        The same in words.
    success : bool
        Whether it converged.
    nit : int
        Number of passes over the factors.
    optimality, primal_residual : float
        Norm of the disagreement between the factors' answers and their mean. With ``exact=True`` the answers
        are those of the dual (gamma = 0), and the norm is 0 at the solution alone.
    dual_residual : float
        gamma times the last change of the marginals; 0 after Newton's method.
    step_size : float
        gamma at the end.
    solver : str
        What ended the solve: "ADMM" (with Newton's method where ``exact=True``), "interior point" or "HiGHS",
        or "ADMM after" one of these, which then found nothing.
    n_fallbacks : int
        Number of factors whose flow or multipliers did not converge. The slower active set of structures
        solved them.
    """

    def __init__(self, graph, run, index, options):
        super().__init__(graph, run, graph._scores.dtype, options)
        for name in ("x", "additional", "status", "nit", "primal_residual", "dual_residual", "optimality",
                     "step_size", "success"):  # fmt: skip
            one = getattr(self, name)[index]
            setattr(self, name, one if one.ndim else to_host(one)[()])
        self.status, self.nit, self.success = int(self.status), int(self.nit), bool(self.success)
        self.n_fallbacks = int(self.n_fallbacks[index])
        self.message = MESSAGES[self.status]
        self.solver = str(self.solver[index])
        extra = namespace(x=self.x).asarray(graph.additional_scores)
        # forbidden scores count as 0 times 0
        self.additional[run.low_too[index] & (self.additional < MARGINAL_TOL)] = 0.0
        on, on_too = self.x != 0, self.additional != 0
        self.fun = float(
            graph._scores[on] @ self.x[on]
            + extra[on_too] @ self.additional[on_too]
            - (0.5 * self.x @ self.x if options.quadratic else 0.0)
        )

    def __repr__(self) -> str:
        if self.status == outcome.INFEASIBLE:
            return f"Solution({self.message})"
        on = int((self.x != 0).sum())
        value = f"{on} of {self.x.size} variables not 0, fun={self.fun:.6g}, nit={self.nit}"
        return f"Solution({value}: {self.message})"

    def local(self, factor: Factor) -> dict[str, Array]:
        """A factor's own solution.

        Parameters
        ----------
        factor : Factor
            One of the graph's.

        Returns
        -------
        dict
            ``x``, its copies of its variables, in their shape. For a factor with a MAP oracle also
            ``weights`` (m,) of the structures in use, ``structures`` (m, number of variables) and
            ``additional`` (m, n_additional).

        Raises
        ------
        KeyError, ValueError
            If the factor is not in the graph, or the graph is infeasible or was solved again from here.
        """
        self._check_fresh()
        layout = self._run.layout
        if self.status == outcome.INFEASIBLE:
            raise ValueError(self.message)
        if id(factor) not in layout.add_start:
            raise KeyError("the factor is not in the graph")
        found = {"x": self._run.states.copies(0)[layout.slots(factor)].reshape(factor._shape)}
        k = layout.structured_index.get(id(factor))
        if k is not None:
            found["weights"], found["structures"], found["additional"] = self._run.states.structures(0, k)
            if not len(found["weights"]):  # the factor was solved without structures
                start = layout.add_start[id(factor)]
                additional = self._run.additionals()[0, start : start + factor.n_additional]
                mixed = factor._mixture(found["x"], additional)
                found["weights"], found["structures"], found["additional"] = mixed
        return found

    def vjp(
        self, direction: ArrayLike | dict[Variable, ArrayLike], *, n_jobs: int | None = None
    ) -> Gradients:
        """Gradients of ``<direction, x>`` with respect to all scores (Algorithm 2, in its limit).

        Parameters
        ----------
        direction : array-like of shape (n_variables,), or dict from views to arrays of their shapes
            What the gradient of a loss in the marginals is.
        n_jobs : int, default=None
            Not used: one graph is worked by one thread.

        Returns
        -------
        Gradients
            By view and by factor.

        Raises
        ------
        ValueError
            If the graph is infeasible, was solved by `FactorGraph.map` or solved again from here, or the
            shape is wrong.
        """
        self._check()
        if isinstance(direction, dict):
            xp = namespace(x=self.x)
            total = xp.zeros(self._run.layout.n_variables)
            for view, values in direction.items():
                if getattr(view, "graph", None) is not self._graph:
                    raise ValueError("direction: a view belongs to another graph")
                self._check_device(values, "direction")
                values = xp.broadcast_to(xp.asarray(values, dtype=np.float64), view.shape)
                xp.add.at(total, xp.asarray(view.index), values)
            direction = total
        elif np.size(direction) == self._run.layout.n_variables:
            direction = np.ravel(direction)
        else:
            n = self._run.layout.n_variables
            raise ValueError(f"direction must have the shape ({n},); got {np.shape(direction)}")
        got = super().vjp(direction, n_jobs=n_jobs)
        got.scores, got.additional_scores = got.scores[0], got.additional_scores[0]
        return got
