"""Least squares with coefficients >= 0 over blocks of rows.

The expansions are those of `blockwise`; a working set goes to the compiled descent (`squares`). Where its
columns fit into this process they are gathered; of others the blocks add up the squares and products, in one
round, and nothing more is asked of them. A round at the solution certifies the whole: of least squares value
and gradient there are all that the duality gap depends on.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult

from .._linalg.special import largest
from .._row_blocks.blocks import Block
from .._solver import outcome
from .block_columns import MOST_VARIABLES
from .block_loss import LossOfBlocks, Sparse, gradient_of_block
from .blockwise import BlockProblem, Run
from .duality import dual_with_ridge
from .squares import Moments, SquaresSolver, moments, squares_solver

# part of what is asked for that is asked of a working set
_PART = 0.5
# part of y's length that is rounding in a derivative that has to be zero
_ROUNDING = 1e-10


class PositiveBlockProblem(BlockProblem):
    """min f(x) + l1 . |x| over x >= 0 but for the intercept, f the squares of blocks."""

    _squares: tuple[np.ndarray, SquaresSolver] | None = None
    _centre: np.ndarray | None = None

    @staticmethod
    def minimizer(*args: Any, **options: Any) -> OptimizeResult:
        """See `minimize_positive`."""
        return minimize_positive(*args, **options)

    @staticmethod
    def sizes(g: np.ndarray) -> np.ndarray:
        return np.maximum(-g, 0.0)

    def null_model(self, penalty_weights: Any, options: dict[str, Any]) -> np.ndarray:
        x = self.start()
        free = np.flatnonzero(np.broadcast_to(penalty_weights, (self.n_features,)) == 0)
        if free.size:
            nothing = np.zeros(len(free))
            tight = {**options, "tol": min(options["tol"], 1e-8), "promise_tol": 0.0}
            x[self.variables(free)] = self.squares(free).minimize(nothing, nothing, None, **tight).x
        return x

    def squares(self, columns: np.ndarray) -> SquaresSolver:
        """The squares of sorted features ``columns``."""
        if self._squares is None or not np.array_equal(self._squares[0], columns):
            self._squares = None  # or two copies would be in memory
            self._squares = columns, self._made(columns)
        return self._squares[1]

    def _made(self, columns):
        intercept = self.spec.fit_intercept
        if self.has_room(columns):
            X, centre = self.gathered.matrix(columns), self.centre()[columns]
            sums = moments(X, self.values, self.weight, centre, 0.0)
            return squares_solver(sums, centre, self._square(), intercept, positive=True)
        if len(columns) > MOST_VARIABLES:
            raise MemoryError(
                f"the {len(columns)} columns that the model may need do not fit into this process, and are "
                f"more than the {MOST_VARIABLES} whose products the blocks add up: set SPARSEKIT_MEMORY (in "
                "GiB) or the penalty higher."
            )
        sums = self.blocks.map_reduce(moments_of_block, self.spec, self.fold, columns, self.centre()[columns])
        return squares_solver(sums, self.centre()[columns], self._square(), intercept, positive=True)

    def _square(self):
        return float(self.values @ (self.values if self.weight is None else self.weight * self.values))

    def centre(self) -> np.ndarray:
        """What is taken off dense columns, (p,): their means, by a round, so that products keep digits."""
        if self._centre is None:
            self._centre = np.zeros(self.n_features)
            if self.spec.fit_intercept and not self.census.is_sparse:
                sums, total = self.blocks.map_reduce(sums_of_block, self.spec, self.fold)
                self._centre = sums / total
        return self._centre

    def look(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at x, by a round."""
        return self.blocks.map_reduce(gradient_of_block, self.spec, self.fold, Sparse.of(x), None, None)


def sums_of_block(block: Block, spec: LossOfBlocks, fold: int | None) -> tuple[np.ndarray, float] | None:
    """Weighted sums of the columns (p,), and the weights' sum."""
    if not block.X.shape[0]:
        return None
    X, _, weight, _ = spec.rows_of(block, fold)
    s = np.ones(X.shape[0]) if weight is None else weight
    return np.asarray(X.T @ s, dtype=np.float64).ravel(), float(s.sum())


def moments_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, columns: np.ndarray, centre: np.ndarray
) -> Moments | None:
    """`Moments` of some columns; ``centre`` (len(columns),) is taken off those of dense blocks."""
    if not block.X.shape[0]:
        return None
    X, y, weight, _ = spec.rows_of(block, fold)
    if not sp.issparse(X):
        return moments(np.ascontiguousarray(X[:, columns]), y, weight, centre, 0.0)
    s = np.ones(X.shape[0]) if weight is None else weight
    A = sp.csr_array(X[:, columns], dtype=np.float64)
    B = sp.csr_array(sp.diags_array(s) @ A)
    sums = np.asarray(B.sum(axis=0)).ravel()
    weighted = s * y
    return Moments(
        (A.T @ B).toarray(), B.T @ y, sums, float(weighted @ y), float(weighted.sum()), float(s.sum())
    )


def minimize_positive(
    problem: PositiveBlockProblem, l1: np.ndarray, x0: np.ndarray | None = None, *, tol: float, max_iter: int,
    max_time: float | None = None, callback: Any = None, history: bool = False, promise_tol: float = 0.0,
    l2: np.ndarray | None = None, **_: Any,
) -> OptimizeResult:  # fmt: skip
    """Minimise over x >= 0 from x0 (n_variables,); the rest is as of `minimize_on_blocks`."""
    run = _PositiveRun(
        problem, l1, l2, tol, max_iter, np.inf if max_time is None else max_time, callback, history
    )
    return run.minimise(x0, dict(promise_tol=promise_tol))


class _PositiveRun(Run):
    """One call."""

    def minimise(self, x, options):
        if x is not None:
            p = self.problem.n_features
            x = np.append(np.maximum(x[:p], 0.0), x[p:])
        return super().minimise(x, options)

    def _solve(self, columns, x, before):
        problem, promise = self.problem, self.options["promise_tol"]
        variables, solver = problem.variables(columns), problem.squares(columns)
        solver.origin_scale = problem.origin_scale
        begun = time.perf_counter() - self.begun
        left = self.max_time - begun
        result = solver.minimize(
            self.l1[columns], self.l2[columns], x[variables], tol=self.aim(before),
            max_iter=max(self.max_iter - self.counts["nit"], 0),
            max_time=max(left, 1e-3) if np.isfinite(left) else None, history=self.keep,
            promise_tol=_PART * promise,
            callback=None if self.callback is None else self._report_to(variables, x),
        )  # fmt: skip
        self._note(result, begun)
        x = x.copy()
        x[variables] = result.x
        return x, self._word_of(result, x)

    def _certify(self, columns, x, mask, last):
        problem, l1, l2 = self.problem, self.l1, self.l2
        p, solver = problem.n_features, problem.squares(columns)
        part, _, _ = solver.descent.look(l1[columns], l2[columns], True)
        value, g = problem.look(x)
        # which the descent knows in double precision
        g[columns] = -np.asarray(solver.columns.pulls)
        penalty = float(l1 @ np.abs(x) + 0.5 * (l2 @ x**2))
        if problem.census.dtype != np.float64:
            value = max(part - penalty, 0.0)
        problem._known = x.copy(), g
        self.fun = value + penalty
        w, sizes, l1, l2 = x[:p], problem.sizes(g[:p]), l1[:p], l2[:p]
        off = np.where(w > 0.0, np.minimum(w, np.abs(g[:p] + l2 * w + l1)), np.maximum(sizes - l1, 0.0))
        self.optimality = largest(off) / problem.origin_scale
        free = (l1 == 0.0) & (l2 == 0.0)
        self.gap = np.inf
        if largest(sizes[free]) <= _ROUNDING * max(1.0, np.sqrt(2.0 * problem.value_at_zero)):
            along = 2.0 * value - float(g[:p] @ w)
            dual = dual_with_ridge(lambda t: t * along - t * t * value, sizes, l1, l2)
            self.gap = max(self.fun - dual, 0.0)
        ratios = np.zeros(p)
        penalised = l1 > 0
        ratios[penalised] = sizes[penalised] / l1[penalised]
        return g + self.l2 * x, ratios

    def _verdict(self, status, complete, before):
        promise = self.options["promise_tol"]
        if promise and status is None:
            if self.gap <= promise * self.fun:
                return outcome.CONVERGED
            return outcome.NO_PROGRESS if complete and self.stuck else None
        return super()._verdict(status, complete, before)
