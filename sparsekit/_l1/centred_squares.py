"""Least squares about its means: what a start of them needs of the data, whatever the penalty is."""

import time
from functools import cached_property

import numpy as np

from .._linalg.special import largest

# part of what the end asks for at which a start aims
_AIM = 0.7
# mean of y beside its largest entry that is rounding
_ROUNDING = 1e-12
# entries that are scaled at once: they stay in a core's cache
_BLOCK = 2**18


class CentredSquares:
    """Rows less the columns' means where there is an intercept, which is then mean(y) - mean(X) w.

    Sets the loss' ``origin_scale``. It is ``tame`` where that is a number that things can be relative to;
    ``goal`` is the largest entry of a gradient, ``gap_goal`` the gap as a part of the objective, at which to
    end, and ``target`` (p,) minus the gradient at zero.
    """

    def __init__(self, loss, opts):
        self.design, self.s = loss.design.private(), loss.s
        self.centred = loss.fit_intercept
        self.end = time.perf_counter() + opts.max_time
        y, s = loss.y, loss.s
        self.total = float(s.sum()) if s.size else float(len(y))
        self.y_mean = 0.0
        if self.centred:
            self.y_mean = float(s @ y if s.size else y.sum()) / self.total
        self.y = y - self.y_mean
        weighted = s * self.y if s.size else self.y
        self.target = self.design.rmatvec(weighted)
        self.square = 0.5 * float(weighted @ self.y)
        if loss.origin_scale is None:
            at_zero = self.target
            lost = abs(self.y_mean) * self.total
            if abs(self.y_mean) > _ROUNDING * largest(np.abs(y)):
                at_zero = at_zero + self.y_mean * self.total * self.means
            scale = max(largest(np.abs(at_zero)), lost)
            loss.origin_scale = scale if 0.0 < scale < np.inf else None
        scale = loss.origin_scale or 0.0
        self.goal, self.gap_goal = _AIM * opts.tol * scale, _AIM * opts.gap_tol
        self.tame = 0.0 < scale < np.inf

    @cached_property
    def means(self):
        """Means of the columns, (p,); zero without an intercept."""
        if not self.centred:
            return np.zeros_like(self.target)
        return self.design.rmatvec(self.s if self.s.size else np.ones_like(self.y)) / self.total

    def variables(self, w):
        """Coefficients w (p,) and the intercept."""
        return np.append(w, self.y_mean - self.means @ w) if self.centred else w

    def rows(self, w):
        """(X - means) w, (n,)."""
        z = self.design.matvec(w)
        if self.centred:
            z -= self.means @ w
        return z

    def columns(self, u):
        """(X - means)^T u, (p,)."""
        out = self.design.rmatvec(u)
        if self.centred:
            out -= float(u.sum()) * self.means
        return out

    def single(self, rows, cols):
        """Entries X - means of rows or columns of dense X with the rows' weights, in single precision."""
        block = self.design.X[rows, cols].astype(np.float32)
        if self.centred:
            block -= self.means[cols].astype(np.float32)
        if self.s.size:
            block *= np.sqrt(self.s[rows]).astype(np.float32)[:, None]
        return block

    def single_products(self):
        """(X - means)^T diag(s) (X - means) in single precision."""
        n, p = self.design.shape
        out = np.zeros((p, p), dtype=np.float32)
        size = max(_BLOCK // p, 2 * p, 1)
        for at in range(0, n, size):
            block = self.single(slice(at, at + size), slice(None))
            out += block.T @ block
        return out
