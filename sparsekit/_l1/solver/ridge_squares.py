"""Least squares with a ridge and no L1 penalty: one linear system.

Variables w and, with an intercept, b = mean(y) - mean(X) w. With B = X - mean(X), S = diag(s) and y centred,
the solution has

    (B^T S B + diag(l2)) w = B^T S y,                                                        n >= p
    w = diag(l2)^-1 B^T S^(1/2) a,  (S^(1/2) B diag(l2)^-1 B^T S^(1/2) + 1) a = S^(1/2) y,   n < p

Preconditioned conjugate gradients solve either system. The preconditioner is diagonal, or for dense X a
Cholesky factor of the system in single precision. Products with X are in double precision.

By a working set of all columns instead 31 ridges over fewer rows than columns take 7 times as long, 64 over
more rows as long.

They end where the fit does. At a gradient g of the first system the duality gap is sum_j g_j^2 / (2 l2_j).
At a residual r of the second one it is |r|^2 / 2, which loses no digits where X fits y exactly.

Without a ridge and with n < p the first system is solved from zero and without a preconditioner. Its
solution is then the one of least norm.
"""

import time

import numpy as np

from ..._linalg.conjugate_gradients import conjugate_gradients
from ..._linalg.positive import single_solver
from ..._linalg.special import largest
from ..._solver.tolerances import ROUNDING
from .. import plan
from .minimise_model import MAX_CG

# Distance from the end of the second system at which the gradient of the first one is rounding. With none,
# exact data and a ridge of 2e-18 end at an objective of 5e-12.
EXACT_DISTANCE = 1e-4


def is_ridge(l1, l2, n_rows):
    """Whether `RidgeSystem` solves the problem with penalties l1, l2 (p,).

    Features with a ridge and features without one are left to others. So are features without a ridge whose
    number is at most that of the rows.
    """
    return not l1.any() and bool(l2.all() if l2.any() else n_rows < len(l2))


class RidgeSystem:
    """The systems of one target, for one weight after another. Their matrix is made once.

    Parameters
    ----------
    data : Prepared
        X and its weights.
    y : ndarray of shape (n,)
        Of weighted mean zero where ``data`` is centred.
    """

    def __init__(self, data, y):
        self.data, self.y = data, y
        weighted = data.weighted(y)
        self.target, self.square = data.transposed_product(weighted), 0.5 * float(weighted @ y)
        self.shape = data.X.shape
        self.root = 1.0 if self.data.root is None else self.data.root
        self._columns = self._rows = self._ratios = None

    def rows(self, w):
        """B w, (n,)."""
        return self.data.product(w)[0]

    def columns(self, u):
        """B^T u, (p,)."""
        return self.data.transposed_product(u)

    def _diagonal(self):
        """Diagonal of the first system, (p,)."""
        return self.data.squares() + self.l2

    def distance(self, w, residual, gap):
        """How far w (p,) is from the end, in parts of what that asks for.

        ``residual`` (n,) is S^(1/2) (y - B w), ``gap`` the duality gap. Without a ridge there is none.
        """
        if not self.least:
            return 0.0
        value = 0.5 * (float(residual @ residual) + float(w @ (self.l2 * w)))
        return (gap / max(self.gap_goal * value, 1e-300)) ** 0.5

    def solve(self, x, l2, violation, gap, end, unit):
        """Coefficients (p,) near the solution for weights l2, from x, and whether they are it.

        ``violation`` and ``gap`` are the largest violation and relative duality gap of a solution, ``end``
        is the `time.perf_counter` at which to stop, ``unit`` the largest gradient at zero.
        """
        self.l2, self.least = l2, float(l2.min())
        self.goal, self.gap_goal, self.end = violation, gap, end
        w = np.zeros_like(x)
        if not self.least:
            # the gap is the objective itself, which ends at zero
            self.goal = min(self.goal, ROUNDING * unit)
            return self._by_columns(w, lambda r: r, np.inf, MAX_CG)
        if x.any():
            start, done = self._by_columns(x, None, np.inf, 0)
            if done:
                return start, True
            if self._value(x) <= self.square:
                w = x
        side, wide = min(self.shape), self.shape[0] < self.shape[1]
        direct = not self.data.is_sparse and side <= plan.MAX_SIDE
        # by the diagonal where the columns decide, by the ridge where the rows do
        scales = self.l2 if wide else self._diagonal()
        worth = plan.RIDGE_STEPS_PER_SIDE * side if direct else np.inf
        w, done = self._by_columns(w, lambda r: r / scales, worth, MAX_CG)
        if done or not direct:
            return w, done
        solve = single_solver(self._row_products() if wide else self._column_products())
        if solve is None:
            return w, False
        return self._by_rows(w, solve) if wide else self._by_columns(w, solve, np.inf, MAX_CG)

    def _value(self, w):
        residual = self.root * (self.y - self.rows(w))
        return 0.5 * (float(residual @ residual) + float(w @ (self.l2 * w)))

    def _by_columns(self, w, precondition, worth, most):
        """Conjugate gradients on the first system from w (p,), its residual scaled by a function.

        The rows' residual is carried along, and the gradient made of it: no digits are lost where the fit is
        nearly exact. They end where steps do not move w, where their pace says that they need more than
        ``worth`` of them, and after ``most``. Returns w, and whether it has converged.
        """
        if w.any():
            residual = self.root * (self.y - self.rows(w))
            r = self.columns(self.root * residual) - self.l2 * w
        else:
            residual, r = self.root * self.y, self.target
        d, before, first = None, 0.0, None
        for step in range(most + 1):
            gap = 0.5 * float(r @ (r / self.l2)) if self.least else 0.0
            distance = max(largest(np.abs(r)) / self.goal, self.distance(w, residual, gap))
            if distance <= 1.0:
                return w, True
            first = distance if first is None else first
            if step == most or self._is_slow(step, first, distance, worth):
                break
            v = precondition(r)
            now = float(r @ v)
            d = v if d is None else v + (now / before) * d
            before = now
            along = self.root * self.rows(d)
            curvature = float(along @ along) + float(d @ (self.l2 * d))
            if not 0.0 < curvature < np.inf:
                break
            length = now / curvature
            before_step, w = w, w + length * d
            if np.array_equal(w, before_step):
                return w, True
            residual = residual - length * along
            r = self.columns(self.root * residual) - self.l2 * w
        return w, False

    def _by_rows(self, start, solve):
        """Conjugate gradients on the second system times the least weight, from a = 0.

        ``solve`` is the preconditioner. Where the end is not reached ``start`` (p,) is returned if it is the
        better one.
        """
        relative, w, u, is_solved = self.l2 / self.least, np.zeros_like(start), np.zeros_like(start), False

        def product(d):
            nonlocal u
            u = self.columns(self.root * d) / relative
            return self.root * self.rows(u) + self.least * d

        def needs_step(rest, a, step_size):
            nonlocal w, is_solved
            w = w + step_size * u  # it has the coefficients of a
            residual = rest + self.least * a
            distance = self.distance(w, residual, 0.5 * float(rest @ rest))
            if distance <= 1.0:  # the certificate of the fit is of the gradient, which costs a product
                r = self.columns(self.root * rest)
                proven = self.distance(w, residual, 0.5 * float(r @ (r / self.l2)))
                is_solved = max(proven, largest(np.abs(r)) / self.goal) <= 1.0 or distance <= EXACT_DISTANCE
            return not is_solved and time.perf_counter() < self.end

        conjugate_gradients(product, solve, self.root * self.y, needs_step, MAX_CG)
        return (w if is_solved or self._value(w) <= self._value(start) else start), is_solved

    def _is_slow(self, step, first, distance, worth):
        """Whether time is up, or the pace so far needs more than ``worth`` steps."""
        if time.perf_counter() >= self.end:
            return True
        is_known = step >= plan.RIDGE_FIRST_STEPS
        return is_known and step * np.log(first) > worth * max(np.log(first / distance), 0.0)

    def _column_products(self):
        """The first system in single precision."""
        if self._columns is None:
            self._columns = self.data.gram(np.float32)
        M = self._columns.astype(np.float32)
        M[np.diag_indices(len(M))] += self.l2.astype(np.float32)
        return M

    def _row_products(self):
        """The second system times the least weight, in single precision.

        What `Prepared.add_intercept` adds changes nothing, as y is centred.
        """
        ratios = self.least / self.l2
        if self._rows is None or not np.array_equal(self._ratios, ratios):
            self._rows, self._ratios = self.data.row_gram(ratios, np.float32), ratios
            self.data.add_intercept(self._rows)
        K = self._rows.copy()
        K[np.diag_indices(len(K))] += np.float32(self.least)
        return K
