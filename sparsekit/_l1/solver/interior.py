"""Least squares with an elastic net where many columns are in use for the number of rows.

There a working set goes on changing, since the objective hardly depends on which columns are in it. An
interior-point method takes all columns at once, and solves one system of the rows an iteration, mostly 10 to
25. It is the predictor-corrector method of Mehrotra [1]_ for the dual problem

    maximise y . u - 1/2 u . u - 1/2 sum_j l2_j w_j^2   where |B_j^T u - l2_j w_j| <= l1_j

over u (n,), the residuals of the rows times the roots of their weights, and w (p,). The multipliers of the
constraints are the positive and the negative parts of w, which are the coefficients. With ``positive=True``
the second ones are missing.

.. [1] S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on
   Optimization 2 (1992), 575-601; J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition,
   algorithm 16.4.
"""

from __future__ import annotations

import time

import numpy as np

from ..._linalg.positive import positive_solver
from ..._linalg.special import largest
from ..._solver.tolerances import FORCING
from .working_set import PATIENCE

# Part of the way to the nearest constraint that a step goes.
TO_BOUNDARY = 0.99
# Mean product of slack and multiplier at the start, as a part of the squares of y for each constraint.
CENTRE = 0.1


def interior_point(rows, y, l1, l2, *, positive, gap_tol, max_iter=np.inf, end=np.inf):
    """Coefficients (p,), and the number of iterations.

    They are near the solution unless ``max_iter``, ``end`` or rounding came before. The gap at the end is a
    part of the wanted one, so that the signs are mostly those of the solution.
    Those that seem to be zero are exactly zero.

    Parameters
    ----------
    rows : Prepared
        X and its weights.
    y : ndarray of shape (n,)
        Targets, of weighted mean zero where there is an intercept.
    l1, l2 : ndarray of shape (p,)
        Penalties, l1 > 0.
    positive : bool
        Whether coefficients must be >= 0.
    gap_tol : float
        Relative duality gap that is wanted.
    max_iter : int
    end : float
        `time.perf_counter` at which to stop.
    """
    point = _Point(rows, y, l1, l2, positive)
    nit, slow, best = 0, 0, np.inf
    while nit < max_iter and time.perf_counter() < end:
        fun, gap = point.certify()
        slow = 0 if gap < best else slow + 1
        best = min(best, gap)
        if gap <= FORCING * gap_tol * fun or slow > PATIENCE:
            break
        try:
            point.step()
        except np.linalg.LinAlgError:
            break
        nit += 1
    w, slack = point.w, point.slack.min(axis=0)
    # at the solution either the slack is zero or the coefficient is
    return np.where(np.abs(w) / (largest(np.abs(w)) or 1.0) > slack / l1, w, 0.0), nit


class _Point:
    """An iterate inside the constraints: u (n,), and slacks and multipliers, (1 or 2, p)."""

    def __init__(self, rows, y, l1, l2, positive):
        self.rows, self.y, self.l1, self.l2, self.positive = rows, self._by_root(rows, y), l1, l2, positive
        self.signs = np.array([[1.0]] if positive else [[1.0], [-1.0]])
        slack = np.tile(l1, (len(self.signs), 1))
        self.u, self.multiplier = np.zeros(rows.n), CENTRE * float(self.y @ self.y) / slack.size / slack
        self._complete()

    @staticmethod
    def _by_root(rows, values):
        return values if rows.root is None else rows.root * values

    def _product(self, w):
        return self._by_root(self.rows, self.rows.product(w)[0])

    def _transposed_product(self, u):
        return self.rows.transposed_product(self._by_root(self.rows, u))

    def _complete(self):
        """Compute what depends on u and the multipliers."""
        self.w, self.slopes = (self.signs * self.multiplier).sum(axis=0), self._transposed_product(self.u)
        inside = self.l1 - self.signs * (self.slopes - self.l2 * self.w)
        self.slack = np.maximum(inside, np.finfo(np.float64).tiny)
        self.fitted = self._product(self.w)

    def certify(self):
        """Objective at w, and its distance from the dual value of u."""
        w, l1, l2, u = self.w, self.l1, self.l2, self.u
        residual = self.y - self.fitted
        fun = 0.5 * float(residual @ residual) + float(l1 @ np.abs(w)) + 0.5 * float(w @ (l2 * w))
        beyond = np.maximum((self.slopes if self.positive else np.abs(self.slopes)) - l1, 0.0)
        some = (beyond > 0.0) & (l2 > 0.0)  # without a ridge it is rounding
        price = 0.5 * float((beyond[some] ** 2 / l2[some]).sum())
        return fun, fun - (float(u @ self.y) - 0.5 * float(u @ u) - price)

    def step(self):
        """One iteration; raises LinAlgError where the system has no solution."""
        slack, multiplier = self.slack, self.multiplier
        weight = (multiplier / slack).sum(axis=0)
        shrink = 1.0 / (1.0 + self.l2 * weight)
        system = self.rows.row_gram(shrink * weight, np.float64, by_entries=True)
        self.rows.add_intercept(system)
        system[np.diag_indices(len(self.u))] += 1.0
        solve = positive_solver(system)

        def direction(products):
            """Steps of u, slacks and multipliers whose products ``products`` would be."""
            rest = (self.signs * products / slack).sum(axis=0) - self.w
            du = solve(self.y - self.u - self.fitted - self._product(shrink * rest))
            dslopes = self._transposed_product(du)
            dw = shrink * (rest + weight * dslopes)
            dslack = self.signs * (self.l2 * dw - dslopes)
            return du, dslack, (products - multiplier * dslack) / slack - multiplier

        _, dslack, dmultiplier = direction(np.zeros_like(slack))
        part = min(_longest(slack, dslack), _longest(multiplier, dmultiplier))
        before = float((slack * multiplier).mean())
        after = float(((slack + part * dslack) * (multiplier + part * dmultiplier)).mean())
        du, dslack, dmultiplier = direction((after / before) ** 3 * before - dslack * dmultiplier)
        part = TO_BOUNDARY * min(_longest(slack, dslack), _longest(multiplier, dmultiplier))
        self.u, self.multiplier = self.u + part * du, multiplier + part * dmultiplier
        self._complete()


def _longest(values, step):
    """The longest part of the step, at most 1, that leaves values >= 0."""
    falls = step < 0.0
    return min(1.0, float((values[falls] / -step[falls]).min(initial=np.inf)))
