"""Elastic nets of least squares along falling penalties: what cross-validation solves by hundreds.

For least squares the quadratic model of OBA is the function itself, so that there is nothing around
Algorithm 1. The loops are compiled (`_cython._squares`), over the Gram matrix where there are more rows than
columns, and over the columns themselves elsewhere. Here stand their data, the rounds of one penalty, and the
way from one to the next.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult

from .._cython._square_columns import GramColumns
from .._cython._squares import CONVERGED, OUT_OF_TIME, STALLED, WORKED, Descent
from .._linalg.threads import blas_threads
from .._solver import outcome
from .oba_run import MESSAGES

# rows whose products are added up at once
_BLOCK = 4096
# a product of two entries of a row takes as long as so many of dense columns, and an entry that is made dense
# as so many; part of the rows' weight that no column of entries may exceed
_ENTRY, _WIDEN, _FILLED = 300.0, 30.0, 0.99
# rounds in a row in which nothing moved
_STALLS = 2
# part of the target's squares that sums over rows hold to seven digits
_LEFT = 1e-6
# largest sum of squares
_WILD = 1e200
# largest penalty: its products with weights and ratios are numbers
_LARGEST = 1e300
# numbers of the solutions that are made in one go
_CHUNK = 2**20
_STATUS = {
    CONVERGED: outcome.CONVERGED, WORKED: outcome.MAX_ITER, STALLED: outcome.NO_PROGRESS,
    OUT_OF_TIME: outcome.MAX_TIME,
}  # fmt: skip
# factor of the penalty from stage to stage of a single one, and the gap to which stages are solved
_STAGE, _STAGE_GAP = 0.2, 1e-2
# part of its penalty from which a variable's pull lets it into the first working set of a single penalty
_NEAR = 0.8


@dataclass
class Moments:
    """Sums over rows, of columns and target less some centre: all that least squares depend on.

    gram (p, p), products (p,) with the target, sums (p,) of the columns, and of the target its square and
    sum; and the sum of the weights.
    """

    gram: np.ndarray
    products: np.ndarray
    sums: np.ndarray
    square: float
    y_sum: float
    weight: float

    def __sub__(self, other):
        return Moments(*(a - b for a, b in zip(vars(self).values(), vars(other).values())))

    def __add__(self, other):
        return Moments(*(a + b for a, b in zip(vars(self).values(), vars(other).values())))

    def columns(self, fit_intercept):
        """The compiled squares, centred where there is an intercept, and the means of columns and target."""
        gram, products, square = self.gram, self.products, self.square
        means, y_mean = np.zeros(len(products)), 0.0
        if fit_intercept:
            means, y_mean = self.sums / self.weight, self.y_sum / self.weight
            gram = gram - np.outer(self.sums, means)
            products = products - self.sums * y_mean
            square = square - self.y_sum * y_mean
        return GramColumns(np.ascontiguousarray(gram), products, max(float(square), 0.0)), means, y_mean


def moments(X, y, weight, centre, y_centre):
    """`Moments` of rows of X (n, p), in double precision and a block at a time."""
    n, p = X.shape
    if sp.issparse(X) and _by_entries(X, weight):
        return _moments_of_entries(X, y, weight, centre, y_centre)
    found = Moments(np.zeros((p, p)), np.zeros(p), np.zeros(p), 0.0, 0.0, 0.0)
    for at in range(0, n, _BLOCK):
        rows = slice(at, at + _BLOCK)
        A = X[rows]
        A = (A.toarray() if sp.issparse(A) else np.asarray(A)) - centre
        b = np.asarray(y[rows], dtype=np.float64) - y_centre
        if weight is None:
            found += Moments(A.T @ A, A.T @ b, A.sum(axis=0), float(b @ b), float(b.sum()), float(len(b)))
            continue
        s = weight[rows]
        half = np.sqrt(s)
        A, b = A * half[:, None], b * half
        found += Moments(A.T @ A, A.T @ b, A.T @ half, float(b @ b), float(b @ half), float(s.sum()))
    return found


def _by_entries(X, weight):
    """Whether products of entries are fewer than all products, and no column is nearly constant."""
    n, p = X.shape
    counts = np.diff(X.indptr) if X.format == "csr" else np.bincount(X.indices, minlength=n)
    if _ENTRY * float(counts.astype(np.float64) @ counts) > n * p * (p + _WIDEN):
        return False
    there = sp.csr_array(
        (np.ones(X.nnz), X.indices, X.indptr), shape=X.shape if X.format == "csr" else (p, n)
    )
    s = np.ones(n) if weight is None else weight
    filled = there.T @ s if X.format == "csr" else there @ s
    return bool(filled.max(initial=0.0) <= _FILLED * s.sum())


def _moments_of_entries(X, y, weight, centre, y_centre):
    # the variance of a column that is not zero in part d of the weight is (1 - d) / d of its squared mean at
    # least: taking the centre off afterwards loses no more digits than that
    X = X.tocsr().astype(np.float64)
    b = np.asarray(y, dtype=np.float64) - y_centre
    s = np.ones(len(b)) if weight is None else weight
    total, weighted, raw = float(s.sum()), s * b, X.T @ s
    gram = (X.T @ (X if weight is None else sp.diags_array(s) @ X)).toarray()
    gram -= np.outer(raw, centre) + np.outer(centre, raw - total * centre)
    along = float(weighted.sum())
    return Moments(
        gram, X.T @ weighted - along * centre, raw - total * centre, float(weighted @ b), along, total
    )


def tame(sums, square):
    """Whether sums of squares are numbers whose products are numbers too."""
    return bool(np.isfinite(sums).all() and np.abs(sums).max(initial=0.0) < _WILD and square < _WILD)


def means_of(X, weight):
    """Weighted means of the columns of X (n, p), float64."""
    total = X.shape[0] if weight is None else weight.sum()
    s = np.ones(X.shape[0]) if weight is None else weight
    return np.asarray(X.T @ s, dtype=np.float64).ravel() / total


def squares_solver(sums, centre, target_square, fit_intercept, positive=False):
    """A `SquaresSolver` of the `Moments` of columns less ``centre``, or None where squares overflow.

    ``target_square`` is the weighted sum of the squares of the centred target.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram, means, _ = sums.columns(fit_intercept)
        means = means + centre
    if tame(np.asarray(gram.curvature), target_square):
        return SquaresSolver(gram, means, fit_intercept, positive)
    if positive:
        raise ValueError("The squares of X or y overflow: bring the columns of X and y to sizes near 1.")
    return None


class SquaresSolver:
    """Least squares with the penalties of an elastic net, from one penalty to the next.

    Parameters
    ----------
    columns : Columns
        The compiled squares.
    means : ndarray of shape (p,)
        Means of the columns; zero without an intercept.
    fit_intercept : bool
        Whether the variables end with an intercept; y's mean is not in it.
    positive : bool
        Whether no coefficient may be below zero.
    """

    def __init__(self, columns, means, fit_intercept, positive=False):
        self.columns, self.descent = columns, Descent(columns)
        self.means, self.fit_intercept = means, fit_intercept
        self.positive = positive
        self.p = len(means)
        self.w = np.zeros(self.p)
        columns.set_point(self.w)
        nothing = np.zeros(self.p)
        self.value_at_zero = self.descent.look(nothing, nothing, False)[0]
        self.origin = np.array(columns.pulls)
        self.origin_scale = float(np.abs(self.origin).max(initial=0.0)) or 1.0

    def null_model(self, v, options):
        """Variables of the best model in which every coefficient with v > 0 is zero."""
        self.go_to(np.zeros(self.p))
        if not (v > 0).all():
            tight = {**options, "tol": min(options["tol"], 1e-8), "promise_tol": 0.0}
            return self.solve(np.where(v > 0, np.inf, 0.0), np.zeros(self.p), **tight).x
        return self.variables()

    def largest_penalty(self, v):
        """The smallest factor of v at which the model that `null_model` left is optimal."""
        pulls = np.asarray(self.columns.pulls)
        sizes = np.maximum(pulls, 0.0) if self.positive else np.abs(pulls)
        return float(np.max(sizes[v > 0] / v[v > 0], initial=0.0))

    def go_to(self, w):
        """Make w (p,) the current point."""
        self.w[:] = w
        self.columns.set_point(self.w)

    def proves(self, result, tol):
        """Whether a result's gap is as small as asked for, and what is left no rounding of the sums."""
        enough = result.dual_gap <= 10.0 * tol * result.fun
        return result.success and enough and result.fun >= _LEFT * self.value_at_zero

    def variables(self):
        """The current point as variables [w, b]."""
        return np.append(self.w, -self.means @ self.w) if self.fit_intercept else self.w.copy()

    def solve(
        self, l1, l2, *, near=None, tol, max_iter, max_time=None, promise_tol=0.0, callback=None,
        history=False, **_,
    ):  # fmt: skip
        """Minimise from the current point, and return the result with the fields of `minimize_oba`.

        With ``promise_tol`` the gap is at most that part of the objective, and nothing else is asked for.
        """
        limits = outcome.Limits(max_iter, np.inf if max_time is None else max_time)
        record = outcome.History(("time", "fun", "optimality", "nnz", "n_free", "n_corrections"), history)
        near = _NEAR * l1 if near is None else near
        goal, gap_tol = (np.inf, promise_tol) if promise_tol else (tol * self.origin_scale, 10.0 * tol)
        end = limits.start + limits.max_time
        nit, stalls, status = 0, 0, None
        while status is None:
            with blas_threads(1):
                how, fun, gap, worst = self.descent.solve(
                    l1, l2, near, self.positive, goal, gap_tol, end, not promise_tol
                )
            near, nit = l1, nit + 1
            stalls = stalls + 1 if how == STALLED else 0
            nnz = int(np.count_nonzero(self.w)) if history or callback is not None else 0
            if history:
                record.add(limits.seconds, fun, worst / self.origin_scale, nnz, nnz, 0)
            if callback is not None:
                current = OptimizeResult(
                    x=self.variables(), fun=fun, nit=nit, optimality=worst / self.origin_scale, nnz=nnz,
                    time=limits.seconds,
                )  # fmt: skip
                if outcome.wants_to_stop(callback, current):
                    status = outcome.STOPPED
            if status is None and how == CONVERGED:
                status = outcome.CONVERGED
            elif status is None and stalls == _STALLS:
                # what rounding forbade may be the gap's last digits
                status = outcome.CONVERGED if worst <= goal else outcome.NO_PROGRESS
            elif status is None:
                status = limits.reached(nit)
        return OptimizeResult(
            x=self.variables(), fun=fun, nit=nit, status=status, success=status == outcome.CONVERGED,
            message=MESSAGES[status], optimality=worst / self.origin_scale, dual_gap=gap,
            history=record.columns(),
        )  # fmt: skip

    def minimize(self, l1, l2, x0, *, max_time=None, **options):
        """`solve` from x0 (p,) or zero, at first for stronger penalties."""
        begin = time.perf_counter()
        nothing = np.zeros(self.p)
        start = nothing if x0 is None else x0[: self.p]
        self.go_to(np.maximum(start, 0.0) if self.positive else start)
        fun, _, _ = self.descent.look(l1, l2, self.positive)
        if not fun <= self.value_at_zero:
            self.go_to(nothing)
        pulls, part = np.abs(np.asarray(self.columns.pulls)), l1 > 0
        boost = _STAGE * float(np.max(pulls[part] / l1[part], initial=0.0))
        loose = {**options, "callback": None, "history": False, "promise_tol": _STAGE_GAP}
        while 1.0 < boost < np.inf:
            if max_time is not None and time.perf_counter() - begin >= max_time:
                break
            self.solve(boost * l1, boost * l2, max_time=max_time, **loose)
            boost *= _STAGE
        left = None if max_time is None else max(max_time - (time.perf_counter() - begin), 1e-9)
        return self.solve(l1, l2, max_time=left, **options)

    @property
    def n_variables(self):
        """Features and the intercept."""
        return self.p + bool(self.fit_intercept)

    def iterate(
        self, v, lambdas, x0, options, *, l1_ratio=1.0, max_time=None, callback=None, lazily=False,
        only_solved=False,
    ):  # fmt: skip
        """The twin of `iterate_path`: results for falling lambdas, each from the last one's solution.

        Many are solved at once, unless ``lazily`` says that not all may be asked for. With ``only_solved``
        the first one that is not is the last.
        """
        if callback is not None:
            for result in self._one_by_one(v, lambdas, x0, options, l1_ratio, max_time, callback):
                yield result
                if only_solved and not result.success:
                    return
            return
        end = np.inf if max_time is None else time.perf_counter() + max_time
        promise = options.get("promise_tol", 0.0)
        goal = (np.inf, promise) if promise else (options["tol"] * self.origin_scale, 10.0 * options["tol"])
        self.go_to(x0[: self.p])
        lambdas = np.minimum(lambdas, _LARGEST / max(1.0, float(v.max(initial=0.0))))
        before, size = 0.0, 1 if lazily else max(1, _CHUNK // self.p)
        for at in range(0, len(lambdas), size):
            part = np.ascontiguousarray(lambdas[at : at + size])
            found, report = np.empty((len(part), self.n_variables)), np.empty((len(part), 5))
            points = found[:, : self.p]
            with blas_threads(1):
                done = self.descent.path(
                    v,
                    part,
                    l1_ratio,
                    before,
                    self.positive,
                    *goal,
                    options["max_iter"],
                    end,
                    points,
                    report,
                    not promise,
                    only_solved,
                )
            before = part[-1]
            if self.fit_intercept:
                found[:, self.p] = -(points @ self.means)
            for x, row in zip(found[:done], report[:done].tolist()):
                yield self._result(x, *row, goal[0])
            if done < len(part):
                return

    def _one_by_one(self, v, lambdas, x0, options, l1_ratio, max_time, callback):
        end = np.inf if max_time is None else time.perf_counter() + max_time
        self.go_to(x0[: self.p])
        before = None
        for lam in np.minimum(lambdas, _LARGEST / max(1.0, float(v.max(initial=0.0)))):
            l1, l2 = (l1_ratio * lam) * v, ((1.0 - l1_ratio) * lam) * v
            near = None if before is None else np.maximum(2.0 * l1 - before, 0.0)
            left = max(end - time.perf_counter(), 1e-9)
            result = self.solve(l1, l2, near=near, max_time=left, callback=callback, **options)
            yield result
            if result.status == outcome.STOPPED:
                return
            before = l1

    def _result(self, x, how, fun, gap, worst, nit, goal):
        status = _STATUS[int(how)]
        if status == outcome.NO_PROGRESS and worst <= goal:
            status = outcome.CONVERGED  # what rounding forbade are the gap's last digits
        return OptimizeResult(
            x=x, fun=fun, nit=int(nit), status=status, success=status == outcome.CONVERGED,
            message=MESSAGES[status],
            optimality=worst / self.origin_scale, dual_gap=gap,
        )  # fmt: skip
