"""Least squares of many dense rows with an L1 penalty: where OBA starts, which is mostly where it ends.

Coordinate descent and steps on faces (`squares`) solve them over sums of rows in single precision, of the
columns that seem to be in use or of all. Each round ends with the gradient of all rows in double precision,
from which the next one mends what rounding left: proximal Newton with a Hessian that has seven digits.
"""

import time

import numpy as np
from scipy.linalg import lapack

from .._arrays import is_device
from .._cython._square_columns import GramColumns
from .._linalg.design import DenseDesign
from .._linalg.special import largest
from .._linalg.threads import blas_threads
from .centred_squares import CentredSquares
from .duality import dual_with_ridge
from .losses import LeastSquaresLoss
from .squares import SquaresSolver

# rows for each column from which this is the way; columns up to which; and entries of X from which
_ROWS, _MOST, _ENTRIES = 1.3, 1000, 5000
# columns of the first set, by number and as a part of all, and the part from which all are taken
_FIRST, _PART, _ALL = 10, 0.05, 0.25
# columns that ought to join, as a multiple of the set, from which all are taken after as many rounds as are
# worth their sums, one for each so many columns; as a part of all from which they are taken at once, and the
# solution of a small ridge is the nearer start
_JOIN, _WORTH, _WEAK = 2.0, 200, 0.33
_RIDGE = 1e-6
# rounds; of the descent in each of them, and its sweeps, after which the columns count as too dependent
_ROUNDS, _DESCENT, _SWEEPS = 12, 4, 200
# part of the diagonal that keeps a matrix in single precision above zero
_ROUNDING = 1e-6
# parts of what the end asks for to which a round descends, and at which another one is not worth it; part of
# the slope before that a round should leave
_AIM, _FINE, _SLOW = 0.1, 0.3, 0.1
# what slopes without a penalty, which a certificate has at zero, count for
_FREE = 1e6


def tall_start(loss, l1, l2, x, opts):
    """Variables near the solution, or None where this is no way to it, whether they are near enough, and what
    `Problem.start_at` takes.

    ``l2`` (n_variables,) are the weights of half of each square, or None; ``x`` is where it begins. Sets the
    loss' ``origin_scale``.
    """
    if type(loss) is not LeastSquaresLoss or is_device(l1) or not isinstance(loss.design, DenseDesign):
        return None, False, None
    (n, p), X = loss.design.shape, loss.design.X
    if X.dtype != np.float64 or not 0 < p <= _MOST or n < _ROWS * p or n * p < _ENTRIES:
        return None, False, None
    l2 = np.zeros_like(l1) if l2 is None else l2
    if not opts.max_iter or l1[p:].any() or l2[p:].any():
        return None, False, None
    with np.errstate(over="ignore", invalid="ignore"), blas_threads(1):
        squares = TallSquares(loss, l1[:p], l2[:p], opts)
        if not squares.tame:
            return None, False, None
        w, done = squares.solve(x[:p])
        if not np.isfinite(w).all():
            return None, False, None
        return squares.variables(w), done, (squares.z + squares.y_mean, -squares.pulls)


class TallSquares(CentredSquares):
    """The squares with penalties l1, l2 (p,), at a point w (p,)."""

    def __init__(self, loss, l1, l2, opts):
        super().__init__(loss, opts)
        self.l1, self.l2, self.free = l1, l2, np.flatnonzero((l1 == 0.0) & (l2 == 0.0))
        self.go_to(np.zeros_like(l1))

    def go_to(self, w):
        """Make w the point, with minus the gradient, ``pulls`` (p,), of the squares, ``half`` of them."""
        self.w = w
        if not w.any():
            self.pulls, self.half, self.shift, self.z = self.target, self.square, 0.0, np.zeros_like(self.y)
            self.along_z = 0.0
            return
        self.z, self.shift = self.design.matvec(w), 0.0
        if self.centred:
            self.shift = float(self.s @ self.z if self.s.size else self.z.sum()) / self.total
            self.z -= self.shift
        rest = self.y - self.z
        weighted = self.s * rest if self.s.size else rest
        # which sum to 0 where there are means
        self.pulls, self.half = self.design.rmatvec(weighted), 0.5 * float(weighted @ rest)
        self.along_z = float(weighted @ self.z)

    def variables(self, w):
        return np.append(w, self.y_mean - self.shift) if self.centred else w

    def products(self, cols):
        """Sums over rows of products of columns less their means: of all in single precision."""
        if len(cols) == len(self.l1):
            found = self.single_products().astype(np.float64)
            found[np.diag_indices(len(found))] *= 1.0 + _ROUNDING
            return found
        part, s = np.take(self.design.X, cols, axis=1), self.s
        if self.centred:
            part -= (s @ part if s.size else part.sum(axis=0)) / self.total
        return part.T @ (s[:, None] * part if s.size else part)

    def distance(self):
        """How far the point is from the end, in parts of what that asks for: of a slope, and of a gap."""
        slopes = self.pulls - self.l2 * self.w
        left = np.where(
            self.w == 0.0,
            np.maximum(np.abs(slopes) - self.l1, 0.0),
            np.abs(slopes - self.l1 * np.sign(self.w)),
        )
        steep = max(largest(left), _FREE * largest(left[self.free])) / self.goal
        fun, along = self.half + self._penalty(), 2.0 * self.half + self.along_z
        dual = dual_with_ridge(lambda t: t * along - t**2 * self.half, self.pulls, self.l1, self.l2)
        return max(steep, (fun - dual) / max(self.gap_goal * fun, 1e-300))

    def solve(self, x):
        """Coefficients near the solution, from x (p,), and whether they are near enough."""
        p = len(self.l1)
        if x.any():
            self.go_to(x.copy())
            if not self.half + self._penalty() <= self.square:
                self.go_to(np.zeros(p))
        used = (self.w != 0.0) | (self.l1 == 0.0)
        products, before, weak = None, np.inf, False
        for turn in range(_ROUNDS):
            joins = np.flatnonzero(~used & (np.abs(self.pulls) > self.l1))
            if not joins.size and (turn or self.distance() <= _FINE):
                distance = self.distance()
                if distance <= _FINE or (distance <= 1.0 and distance > _SLOW * before):
                    return self.w, True
                if not distance < before:
                    break
                before = distance
            elif joins.size:
                weak = products is not None and joins.size > _WEAK * p
                many = weak or (turn * _WORTH >= p and joins.size > _JOIN * np.count_nonzero(used))
                most = max(_FIRST, int(_PART * p), np.count_nonzero(used))
                if joins.size > most:
                    joins = joins[np.argsort(-np.abs(self.pulls[joins]) / self.l1[joins])[:most]]
                used[joins] = True
                if many or np.count_nonzero(used) > _ALL * p:
                    used[:] = True
                products, before = None, np.inf
            if time.perf_counter() >= self.end:
                break
            cols = np.flatnonzero(used)
            if products is None:
                products = self.products(cols)
            if not np.isfinite(products).all():
                break
            if not self._descend(cols, products, weak):
                break
            weak = False
        return self.w, False

    def _penalty(self):
        return float(self.l1 @ np.abs(self.w)) + 0.5 * float(self.l2 @ np.square(self.w))

    def _descend(self, cols, products, weak):
        """Go to about the minimiser over columns with these products, and whether it was found.

        ``weak``: most of them will be in use.
        """
        w, l1, l2 = self.w[cols], self.l1[cols], self.l2[cols]
        along = products @ w
        target = self.pulls[cols] + along
        square = 2.0 * self.half + float(w @ (2.0 * target - along))
        solver = SquaresSolver(
            GramColumns(products, target, max(square, 0.0)), np.zeros(len(w)), False, most_sweeps=_SWEEPS
        )
        solver.go_to(self._of_a_ridge(products, target, l2, w) if weak else w)
        found = solver.solve(
            l1, l2, tol=_AIM * self.goal / solver.origin_scale, max_iter=_DESCENT,
            max_time=max(self.end - time.perf_counter(), 1e-9),
        )  # fmt: skip
        to = np.zeros_like(self.w)
        to[cols] = found.x
        self.go_to(to)
        return found.success

    @staticmethod
    def _of_a_ridge(products, target, l2, w):
        matrix = products.copy()
        matrix[np.diag_indices(len(w))] += l2 + _RIDGE * products.diagonal()
        _, solution, failed = lapack.dposv(matrix.T, target, lower=1, overwrite_a=1)
        return w if failed or not np.isfinite(solution).all() else solution
