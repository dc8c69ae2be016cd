"""Dual block coordinate ascent for sparsemax regression, where Newton's systems are large.

Row by row the best distribution p_i is a sparsemax itself. With many more features than rows some sweeps
reach the solution for any penalty. With many times fewer features than rows, correlated features and a weak
penalty, sweeps stall. Newton's method then continues.

Free intercepts would tie the rows together. They get alpha for their distance to where the last block left
them, the proximal point method.
"""

import functools
import math

import numpy as np

from ..._cython.fenchel_young import _dual_ascent
from ..._linalg import class_products as _class_model
from ..._linalg.cost import PRODUCTS
from ..._linalg.dense_design import DenseDesign

# Largest number of variables, or of the rows' dimensions, for which Newton steps are cheap. With 200, fits of
# 250 to 600 rows, 100 to 200 features and 4 to 8 classes take 1.2 times as long in the mean, up to 3 times.
MAX_NEWTON_SIDE = 1500
# The same with fewer rows than features, where sweeps are fastest. With 600, fits of 150 rows, 3000 features
# and 4 classes take 8 to 17 times as long.
MAX_WIDE_SIDE = 200
# Largest number of rows per feature for sweeps: above it they stall.
MAX_ROWS_PER_FEATURE = 5.0
# Sweeps between two evaluations of the duality gap.
SWEEPS_PER_BLOCK = 5
# Time of a sweep, in Hessian products.
SWEEP_COST = 2.5
# Estimated number of Newton steps.
NEWTON_STEPS = 30
# Part of the estimated time of Newton's method that sweeps may always take.
FREE_PART = 0.1


class Ascent:
    """Blocks of sweeps.

    Parameters
    ----------
    run : Run
        Of a loss of sparsemax in main memory, with alpha > 0.
    point : Point
        Start.
    enough : float
        Relative duality gap to aim at.
    """

    def __init__(self, run, point, enough):
        loss = run.loss
        self.run, self.loss, self.alpha, self.enough = run, loss, run.alpha, enough
        self.rng = np.random.default_rng(0)
        self.used = np.flatnonzero(loss.w > 0)
        self.weight = loss.w[:, None]
        self.Q = loss.distributions()
        self.P = self.Q.copy()
        if point.T.any():
            self.P[self.used] += point.R[self.used] / self.weight[self.used]
        self.squares = _class_model.squared_norms(loss.design) + loss.fit_intercept
        # what Newton's method costs, in products
        self.newton = NEWTON_STEPS * min(PRODUCTS, loss.factor_products())
        self.spent, self.gap, self.dual = 0.0, np.inf, -np.inf
        # where free intercepts stay near
        self.center = point.T[-1].copy() if run.free else None

        self.sweep = _sweep_of(loss.design)

    @classmethod
    def where_it_pays(cls, run, point, enough):
        """An Ascent, or None where Newton's steps are cheap, or there is none."""
        loss = run.loss
        if loss.transform != "sparsemax" or not run.alpha > 0.0 or run.is_on_device:
            return None
        n, q = loss.design.shape[0], loss.shape[0]
        side = min(q * loss.n_classes, n * (loss.n_classes - 1))
        cheap = MAX_WIDE_SIDE if q > n else MAX_NEWTON_SIDE
        if n > MAX_ROWS_PER_FEATURE * q or side <= cheap:
            return None
        return cls(run, point, enough)

    def goes_on(self, f, gap):
        """Whether another block pays, with this objective and duality gap."""
        if self.center is not None:
            # the point's predictions are far from balanced
            gap = abs(f - self.dual)
        gap = min(gap / f, 1.0) if f > 0.0 else 0.0
        ratio, self.gap = gap / self.gap if self.gap > 0.0 else 0.0, gap
        if not gap > self.enough and self.center is not None:
            return False
        if self.spent <= FREE_PART * self.newton:
            return True
        if ratio >= 1.0:
            return False
        blocks = math.log(max(gap / self.enough, 1.0)) / -math.log(max(ratio, 1e-300))
        return self.spent + blocks * SWEEPS_PER_BLOCK * SWEEP_COST <= self.newton

    def block(self):
        """Sweeps; returns the table that belongs to the distributions, and a lower bound of the objective."""
        loss = self.loss
        T = self._table()
        for _ in range(SWEEPS_PER_BLOCK):
            order = self.rng.permutation(self.used)
            self.sweep(order, loss.w, self.squares, self.P, T, loss.fit_intercept, self.alpha)
        self.spent += SWEEPS_PER_BLOCK * SWEEP_COST
        T = self._table()  # sweeps accumulate rounding: recompute
        R = self.weight * self._residuals()
        moved = T
        if self.center is not None:
            moved = T.copy()
            moved[-1] -= self.center
        self.dual = -loss.spread(R, 1.0) - 0.5 * self.alpha * float(np.vdot(moved, moved))
        if self.center is None:
            return T, self.dual
        self.dual += float(self.center @ R.sum(axis=0))
        self.center = T[-1].copy()
        return T, -np.inf

    def _table(self):
        self.run.passes += 1
        T = self.loss.adjoint(self.weight * self._residuals()) / -self.alpha
        if self.center is not None:
            T[-1] += self.center
        return T

    def _residuals(self):
        """P - Q with rows that sum to zero: where P is all but Q, rounding of 1 is not small against them."""
        R = self.P - self.Q
        R[np.arange(len(R)), self.P.argmax(axis=1)] -= R.sum(axis=1)
        return R


def _sweep_of(design):
    """The kernel with the rows of the design, which are copied here once if they have to be."""
    if isinstance(design, DenseDesign):
        X = design.X
        rows = X.shape[1] <= 1 or X.strides[1] == X.itemsize
        return functools.partial(_dual_ascent.ascend_dense, X if rows else np.ascontiguousarray(X))
    indptr, indices = design.indptr.astype(np.int64, copy=False), design.indices.astype(np.int32, copy=False)
    return functools.partial(_dual_ascent.ascend, indptr, indices, design.data)
