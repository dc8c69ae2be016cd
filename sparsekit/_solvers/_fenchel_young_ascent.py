"""Dual block coordinate ascent for sparsemax regression, where Newton's systems are large.

Row by row the best distribution p_i is a sparsemax itself. With many more features than rows, or penalties that
are not weak, some sweeps reach the solution, however weak a penalty is; where features are many times fewer than
rows and correlated they lead nowhere, and Newton's steps go on from there.
"""

import math

import numpy as np

from .._cython import _dual_ascent
from .._device import is_device
from .._losses import _class_model

# number of variables and of the rows' dimensions up to which Newton's steps are cheap anyway
_SMALL = 1500
# sweeps between two looks at the duality gap
_BLOCK = 5
# products with the Hessian that take as long as a sweep, and that Newton's method is taken to need: steps, and
# products of each where no factorisation is cheaper
_SWEEP, _STEPS, _PRODUCTS = 2.5, 30, 60
# part of Newton's time to spend without progress, and factor of the gap from block to block that is none
_PATIENCE, _SLOW = 0.1, 0.8


class Ascent:
    """Blocks of sweeps at one alpha.

    Parameters
    ----------
    loss : FenchelYoungLoss
        Of sparsemax, in main memory.
    alpha : float
        Greater than 0, for all variables.
    T, R : ndarray
        Table to start from, and the derivative of the loss at its scores.
    enough : float
        Relative duality gap to aim at.
    """

    def __init__(self, loss, alpha, T, R, enough):
        self.loss, self.alpha, self.enough = loss, alpha, enough
        self.rng = np.random.default_rng(0)
        self.used = np.flatnonzero(loss.w > 0)
        self.weight = loss.w[:, None]
        self.Q = loss.distributions()
        self.P = self.Q.copy()
        if T.any():
            self.P[self.used] += R[self.used] / self.weight[self.used]
        self.squares = _class_model.squared_norms(loss.design) + loss.fit_intercept
        # what a Newton step costs, in products
        self.newton = _STEPS * min(_PRODUCTS, loss.factor_products())
        self.spent, self.gap, self.ratio = 0.0, 1.0, 1.0

    @classmethod
    def where_it_pays(cls, loss, alpha, free, T, R, enough):
        """An Ascent, or None where Newton's steps are cheap, or there is none."""
        n, m = loss.design.shape[0], loss.shape[0] * loss.shape[1]
        small = min(m, n * (loss.n_classes - 1)) <= _SMALL
        if loss.transform != "sparsemax" or free or not alpha > 0.0 or small or is_device(loss.w):
            return None
        return cls(loss, alpha, T, R, enough)

    def goes_on(self):
        """Whether another block pays."""
        if self.spent <= _PATIENCE * self.newton:
            return True
        if self.ratio > _SLOW:
            return False
        blocks = math.log(max(self.gap / self.enough, 1.0)) / -math.log(max(self.ratio, 1e-300))
        return self.spent + blocks * _BLOCK * _SWEEP <= self.newton

    def block(self):
        """Sweeps; returns the table that belongs to the distributions, and the dual objective."""
        loss, design = self.loss, self.loss.design
        T = self._table()
        for _ in range(_BLOCK):
            order = self.rng.permutation(self.used)
            common = (order, loss.w, self.squares, self.P, T, loss.fit_intercept, self.alpha)
            if hasattr(design, "indptr"):
                indptr, indices = design.indptr.astype(np.int64, copy=False), design.indices.astype(np.int32)
                _dual_ascent.ascend(indptr, indices, design.data, *common)
            else:
                X = design.X
                rows = X.shape[1] <= 1 or X.strides[1] == X.itemsize
                _dual_ascent.ascend_dense(X if rows else np.ascontiguousarray(X), *common)
        self.spent += _BLOCK * _SWEEP
        T = self._table()  # sweeps add up rounding
        R = self.P - self.Q
        R *= self.weight
        return T, -loss.spread(R, 1.0) - 0.5 * self.alpha * float(np.vdot(T, T))

    def note(self, gap):
        """Take the relative duality gap behind a block."""
        gap = min(gap, 1.0)
        self.ratio, self.gap = gap / self.gap if self.gap > 0.0 else 0.0, gap

    def _table(self):
        return self.loss.pull(self.weight * (self.P - self.Q)) / -self.alpha
