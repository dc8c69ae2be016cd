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
from ..._linalg.dense_design import DenseDesign
from ..plan import ascent_goes_on, newton_sweeps

# Sweeps between two evaluations of the duality gap.
SWEEPS_PER_BLOCK = 5


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
        self.newton = newton_sweeps(loss)
        self.n_sweeps, self.gap, self.dual = 0, np.inf, -np.inf
        # where free intercepts stay near
        self.center = point.T[-1].copy() if run.free else None

        self.sweep = _sweep_of(loss.design)

    def goes_on(self, f, gap):
        """Whether another block pays, with this objective and duality gap."""
        if self.center is not None:
            # the point's predictions are far from balanced
            gap = abs(f - self.dual)
        gap = min(gap / f, 1.0) if f > 0.0 else 0.0
        ratio, self.gap = gap / self.gap if self.gap > 0.0 else 0.0, gap
        if not gap > self.enough and self.center is not None:
            return False
        expected = np.inf
        if ratio < 1.0:
            blocks = math.log(max(gap / self.enough, 1.0)) / -math.log(max(ratio, 1e-300))
            expected = SWEEPS_PER_BLOCK * blocks
        return ascent_goes_on(self.n_sweeps, expected, self.newton)

    def block(self):
        """Sweeps; returns the table that belongs to the distributions, and a lower bound of the objective."""
        loss = self.loss
        T = self._table()
        for _ in range(SWEEPS_PER_BLOCK):
            order = self.rng.permutation(self.used)
            self.sweep(order, loss.w, self.squares, self.P, T, loss.fit_intercept, self.alpha)
        self.n_sweeps += SWEEPS_PER_BLOCK
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
