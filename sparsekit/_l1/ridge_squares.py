"""Least squares with a ridge and no L1 penalty: one linear system, whose solution is where OBA starts.

Variables w and, with an intercept, b = mean(y) - mean(X) w; with B = diag(s)^(1/2) (X - mean(X)) the system
is (B^T B + diag(l2)) w = B^T diag(s)^(1/2) (y - mean(y)). Conjugate gradients solve it. Of dense data, where
they would take longer than a factor does, the sums over rows (or over columns, where there are fewer rows)
are made in single precision and factorised, and what rounding left is mended by products in double
precision. They end where the fit does: at a gradient g the gap is sum_j g_j^2 / (2 l2_j).
"""

import time

import numpy as np
from scipy.linalg import lapack

from .._arrays import is_device
from .._linalg.design import DenseDesign
from .._linalg.special import largest
from .centred_squares import CentredSquares
from .losses import LeastSquaresLoss

# what sums in single precision cost, in products and as a part of the side of their matrix; the steps after
# which their number is judged; largest side, of 64 MB then
_PART, _LOOK, _SIDE = 0.06, 3, 4000
# side up to which they always are: fewer steps are never enough
_AT_ONCE = 320
# steps with a factor, and by the diagonal alone
_FEW, _MANY = 12, 1000
# entries that are scaled at once: they stay in a core's cache
_BLOCK = 2**18
# least fall of the residual that steps of refinement must have
_FALL = 0.25


def ridge_start(loss, l1, l2, x, opts):
    """Variables near the solution, or None where this is no way to it, whether they are near enough; None.

    ``l2`` (n_variables,) are the weights of half of each square, ``x`` is where it begins. Sets the loss'
    ``origin_scale``.
    """
    if type(loss) is not LeastSquaresLoss or is_device(l2) or l1.any():
        return None, False, None
    p = loss.n_features
    if not loss.design.nnz or not opts.max_iter or not l2[:p].min() > 0.0 or bool(l2[p:].any()):
        return None, False, None
    loss.n_solves += 1
    with np.errstate(over="ignore", invalid="ignore"):
        system = RidgeSystem(loss, l2[:p], opts)
        if not system.tame:
            return None, False, None
        w, done = system.solve(x[:p])
        if not np.isfinite(w).all():
            return None, False, None
        return system.variables(w), done, None


class RidgeSystem(CentredSquares):
    """The system of weights l2 (p,) > 0, and when it counts as solved."""

    def __init__(self, loss, l2, opts):
        super().__init__(loss, opts)
        self.l2 = l2

    def _diagonal(self):
        """Diagonal of the system, (p,)."""
        design, s = self.design, self.s
        if not isinstance(design, DenseDesign):
            squared = design.private()
            squared.data = np.square(design.data)
            squares = squared.rmatvec(s if s.size else np.ones(design.shape[0]))
        elif s.size:
            squares = np.einsum("ij,ij,i->j", design.X, design.X, s, dtype=np.float64)
        else:
            squares = np.einsum("ij,ij->j", design.X, design.X, dtype=np.float64)
        return np.maximum(squares - self.total * self.means**2, 0.0) + self.l2

    def product(self, w):
        """(B^T B + diag(l2)) w, (p,)."""
        z = self.rows(w)
        if self.s.size:
            z *= self.s
        out = self.design.rmatvec(z)
        out += self.l2 * w
        return out

    def distance(self, w, r):
        """How far w, whose gradient is -r, is from the end, in parts of what that asks for."""
        gap = 0.5 * float(r @ (r / self.l2))
        # the quadratic's value follows from its gradient
        value = self.square - 0.5 * float(w @ (self.target + r))
        steep = largest(np.abs(r)) / self.goal
        return max(steep, (gap / max(self.gap_goal * value, 1e-300)) ** 0.5)

    def solve(self, x):
        """Coefficients (p,) near the solution, from x, and whether they are near enough."""
        w, r = np.zeros_like(self.l2), self.target
        if x.any():
            rest = self.target - self.product(x)
            if float(x @ (self.target + rest)) >= 0.0:  # else zero is better
                w, r = x.copy(), rest
                if self.distance(w, r) <= 1.0:
                    return w, True
        side, wide = min(self.design.shape), self.design.shape[0] < self.design.shape[1]
        direct = isinstance(self.design, DenseDesign) and side <= _SIDE
        if not direct or side > _AT_ONCE:
            # by the diagonal where the columns decide, by the ridge where the rows do
            scales = self.l2 if wide else self._diagonal()
            worth = _PART * side if direct else np.inf
            w, r, done = self._conjugate(w, r, lambda r: r / scales, worth, _MANY)
            if done or not direct:
                return w, done
        return self._by_rows(w) if wide else self._by_columns(w, r)

    def _conjugate(self, w, r, scaled, worth, most):
        """Conjugate gradients from w, whose residual is r, scaled by a function.

        They end where their pace says that they need more than ``worth`` steps, and after ``most``.
        """
        r, d, before = r.copy(), None, 0.0
        first = distance = self.distance(w, r)
        for step in range(most):
            if distance <= 1.0:
                return w, r, True
            if time.perf_counter() >= self.end:
                break
            if step >= _LOOK and step * np.log(first) > worth * max(np.log(first / distance), 0.0):
                break
            v = scaled(r)
            now = float(r @ v)
            d = v if d is None else v + (now / before) * d
            before = now
            Ad = self.product(d)
            curvature = float(d @ Ad)
            if not 0.0 < curvature < np.inf:
                break
            w = w + (now / curvature) * d
            r -= (now / curvature) * Ad
            distance = self.distance(w, r)
        return w, r, distance <= 1.0

    def _by_columns(self, w, r):
        M = self.single_products()
        M[np.diag_indices(len(M))] += self.l2.astype(np.float32)
        by = 1.0 / np.sqrt(M.diagonal())
        M *= by
        M *= by[:, None]
        factor, failed = lapack.spotrf(M.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return w, False

        def scaled(r):
            solution, _ = lapack.spotrs(factor, (by * r).astype(np.float32), lower=1)
            return by * solution

        w, _, done = self._conjugate(w, r, scaled, np.inf, _FEW)
        return w, done

    def _by_rows(self, w):
        """Refinement of K a = y, K = B diag(1 / l2) B^T + 1, w = diag(1 / l2) B^T a."""
        n, p = self.design.shape
        least = float(self.l2.min())
        by = np.sqrt(least / self.l2).astype(np.float32)
        K = np.zeros((n, n), dtype=np.float32)
        size = max(_BLOCK // n, 2 * n, 1)
        for at in range(0, p, size):
            block = self.single(slice(None), slice(at, at + size))
            if by.min() < 1.0:
                block *= by[at : at + size]
            K += block @ block.T
        K /= np.float32(least)
        K[np.diag_indices(n)] += 1.0
        factor, failed = lapack.spotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return w, False
        root = np.sqrt(self.s) if self.s.size else 1.0
        y = root * self.y
        a, w, rest, last = np.zeros(n), np.zeros(p), y, np.inf
        for _ in range(_FEW):
            step, _ = lapack.spotrs(factor, rest.astype(np.float32), lower=1)
            a += step
            w = self.columns(root * a) / self.l2
            rest = y - a - root * self.rows(w)
            size = float(np.linalg.norm(rest))
            if self.distance(w, self.columns(root * rest)) <= 1.0:
                return w, True
            if not size <= _FALL * last:
                break
            last = size
        return w, False
