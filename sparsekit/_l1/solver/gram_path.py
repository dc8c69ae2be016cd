"""Paths of least squares over a Gram matrix of all columns, compiled from one penalty to the next.

Cross-validation solves hundreds of penalties: the loop is in `_cython.l1._squares`. A fold's Gram matrix is
that of all rows less that of its left-out ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from ..._cython.l1._squares import CONVERGED, OUT_OF_TIME, STALLED, WORKED, solve_path
from ..._linalg.matrix import BUFFER
from ..._linalg.prepared import Prepared
from ..._linalg.special import largest
from ..._linalg.threads import blas_threads
from ..._solver import outcome
from .gram_model import EFFORT
from .oba_run import MESSAGES

# Part of the squares of y that is rounding of the sums: what is left of them has seven digits beyond it.
MIN_LEFT = 1e-6
# Largest penalty whose products with weights and ratios are finite.
MAX_PENALTY = 1e300
_STATUS = {
    CONVERGED: outcome.CONVERGED, WORKED: outcome.MAX_ITER, STALLED: outcome.NO_PROGRESS,
    OUT_OF_TIME: outcome.MAX_TIME,
}  # fmt: skip


@dataclass
class Moments:
    """Weighted sums over rows of columns and target less a centre: all that least squares depend on.

    gram (p, p); products (p,) with the target; sums (p,) of the columns. square and y_sum are of the target;
    weight is the sum of the weights.
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

    @property
    def is_finite(self):
        """Whether sums of squares are numbers whose products are numbers too."""
        sizes, most = np.abs(self.gram).max(initial=0.0), float(np.finfo(np.float64).max) ** 0.5
        return bool(np.isfinite(self.gram).all() and sizes < most and self.square < most)


def moments(X, y, weight, centre, y_centre):
    """`Moments` of rows of X (n, p) about ``centre`` (p,) and ``y_centre``, in double precision."""
    rows = Prepared(X, weight, True, means=centre)
    b = np.asarray(y, dtype=np.float64) - y_centre
    weighted, ones = rows.weighted(b), np.ones(len(b))
    return Moments(
        rows.gram(np.float64), rows.transposed_product(weighted),
        rows.transposed_product(rows.weighted(ones)), float(weighted @ b), float(weighted.sum()), rows.total,
    )  # fmt: skip


class GramPath:
    """Elastic nets of least squares given by `Moments`.

    Parameters
    ----------
    moments : Moments
        Of columns less ``centre``, and of the target less about its mean.
    centre : ndarray of shape (p,)
    fit_intercept : bool
        Whether the variables end with an intercept; y's mean is not in it.
    positive : bool
        Whether no coefficient may be below zero.
    """

    def __init__(self, moments, centre, fit_intercept, positive=False):
        gram, products, square = moments.gram, moments.products, moments.square
        self.fit_intercept, self.positive, self.p = fit_intercept, positive, len(products)
        self.means = np.zeros(self.p)
        if fit_intercept:
            means, y_mean = moments.sums / moments.weight, moments.y_sum / moments.weight
            gram = gram - np.outer(moments.sums, means)
            products, square = products - moments.sums * y_mean, square - moments.y_sum * y_mean
            self.means = means + centre
        self.gram, self.products = np.ascontiguousarray(gram), np.ascontiguousarray(products)
        self.square = max(float(square), 0.0)
        self.origin_scale = largest(np.abs(products)) or 1.0

    def null_model(self, v, options):
        """Variables of the best model in which every coefficient with v > 0 is zero."""
        if (v > 0.0).all():
            return np.zeros(self.p + bool(self.fit_intercept))
        tight = {**options, "tol": min(options["tol"], 1e-8), "predicted_tol": 0.0}
        return next(self.iterate(np.where(v > 0.0, MAX_PENALTY, 0.0), np.ones(1), np.zeros(self.p), tight)).x

    def largest_penalty(self, x_null, v):
        """The smallest factor of v at which the `null_model` is optimal."""
        slopes = self.products - self.gram @ x_null[: self.p]
        sizes = np.maximum(slopes, 0.0) if self.positive else np.abs(slopes)
        return largest(sizes[v > 0.0] / v[v > 0.0])

    def is_certified(self, result, tol):
        """Whether a result's gap is as small as asked for, and what is left no rounding of the sums."""
        is_small = result.dual_gap <= 10.0 * tol * result.fun
        return result.success and is_small and result.fun >= MIN_LEFT * 0.5 * self.square

    def iterate(self, v, lambdas, x0, options, *, l1_ratio=1.0, max_time=None, lazily=False):
        """Results for falling lambdas, each from the last one's solution.

        Many are solved at once, unless ``lazily`` says that not all may be asked for.
        """
        end = np.inf if max_time is None else time.perf_counter() + max_time
        predicted = options.get("predicted_tol", 0.0)
        goal = options["tol"] * self.origin_scale, 10.0 * options["tol"]
        if predicted:
            goal = np.inf, predicted
        lambdas = np.minimum(lambdas, MAX_PENALTY / max(1.0, largest(v)))
        w, size = x0[: self.p], 1 if lazily else max(1, BUFFER // self.p)
        for at in range(0, len(lambdas), size):
            part = np.ascontiguousarray(lambdas[at : at + size])
            points, report = np.empty((len(part) + 1, self.p)), np.empty((len(part), 5))
            points[0] = w
            with blas_threads(1):
                solve_path(
                    self.gram, self.products, self.square, v, part, l1_ratio, self.positive, goal,
                    (options["max_iter"], end), EFFORT, points, report,
                )  # fmt: skip
            w = points[-1]
            for x, row in zip(points[1:], report.tolist()):
                b = np.full(int(self.fit_intercept), -(x @ self.means))
                yield self._result(np.append(x, b), *row, goal[0])

    def _result(self, x, how, fun, gap, violation, nit, goal):
        status = _STATUS[int(how)]
        if status == outcome.NO_PROGRESS and violation <= goal < np.inf:
            status = outcome.CONVERGED  # what rounding forbade are the gap's last digits
        return OptimizeResult(
            x=x, fun=fun, nit=int(nit), status=status, success=status == outcome.CONVERGED,
            message=MESSAGES[status], optimality=violation / self.origin_scale, dual_gap=gap,
        )  # fmt: skip
