r"""Linear models with a ridge and without bounds, several outputs at once: Newton's method, certified.

.. math:: \min_{w_k, b_k} \sum_i s_i l_{ik}(x_i^T w_k + b_k) + \tfrac{\alpha}{2} \|w_k\|^2

Outputs are problems of their own with one X: a product with it serves all, and those that are done drop out.
Losses with kinks get coordinate ascent on the dual or proximal steps (`proximal_points`). The dual has slopes
u for its variables,

.. math:: \max_u - \sum_i s_i l^*_{ik}(u_{ik}) - \|X^T S u_k\|^2 / (2 \alpha), \quad s^T u_k = 0,

the last condition that of a free intercept.
"""

import numpy as np

from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..._solver.line_search import find_slope_roots
from ..._solver.tolerances import FORCING
from .. import plan
from .ascend_outputs import ascend_outputs
from .output_systems import OutputSystems
from .proximal_points import (
    FIRST_SMOOTHING,
    MIN_SMOOTHING,
    SHRINK,
    WARM_SMOOTHING,
    Bounds,
    Steps,
    balanced,
    proximal_points,
)  # fmt: skip


def minimize_outputs(
    design, weight, rows, x0, *, alpha, fit_intercept, n_threads, tol, max_iter, max_time=None,
    callback=None, history=False,
):  # fmt: skip
    """Minimise for all outputs.

    Parameters
    ----------
    design : of shape (n, p)
    weight : ndarray of shape (n,)
        s, of sum 1.
    rows : PiecewiseRows or LogisticRows
        Of n rows and K outputs.
    x0 : ndarray of shape (q * K,) or None
        A table of p coefficients and, with ``fit_intercept``, an intercept; None: zero.
    alpha : float
    fit_intercept : bool
    n_threads : int
        Of BLAS.
    tol : float
        The run ends when the duality gap is at most tol times the objective.
    max_iter : int
        Largest number of Newton steps and of rounds of sweeps, together.
    max_time : float or None
        Seconds.
    callback : callable or None
        Gets an OptimizeResult of copies (x, fun, nit, optimality, nnz, time) after each step. In proximal
        steps ``fun`` is that of their problem, whose minimum is below that of the objective, and the
        optimality is that before the step.
    history : bool

    Returns
    -------
    OptimizeResult
        x, fun, nit, nfev, status, message, optimality, dual_gap, history. optimality is the gap relative to
        the objective. dual_gap is NaN for alpha = 0, where the lower bound is an estimate.
    """
    shape = design.shape[1] + fit_intercept, rows.n_outputs
    table = np.zeros(shape, like=weight)
    if x0 is not None:
        table += x0.reshape(shape)
    steps = Steps.of_call(table.size, max_iter, max_time, callback, history)
    with blas_threads(n_threads), np.errstate(over="ignore", invalid="ignore"):
        form = RidgeOutputs(design, weight, rows, alpha, fit_intercept, table, is_warm=x0 is not None)
        return steps.result(*solve_outputs(form, tol, steps))


def solve_outputs(form, tol, steps):
    """`Bounds` and status of `RidgeOutputs`."""
    bounds = best = Bounds(form)
    status = None
    if cost := plan.estimate_outputs_cost(form.systems.design, form.alpha, form.has_kinks):
        status = ascend_outputs(form, best, tol, steps, cost)
        if status is None and best.optimality > tol:
            bounds = Bounds(form)  # proximal steps are judged by their own progress
    bounds, status = proximal_points(form, tol, steps, status, bounds)
    return min(bounds, best, key=lambda found: found.optimality), status


class RidgeOutputs:
    """The outputs at a table (q, K), for `proximal_points`."""

    def __init__(self, design, weight, rows, alpha, fit_intercept, table, is_warm=False):
        self.weight, self.rows, self.alpha, self.fit_intercept = weight, rows, alpha, fit_intercept
        self.systems = OutputSystems(design, weight, alpha, fit_intercept)
        self.p, self.every = design.shape[1], np.arange(table.shape[1], like=weight)
        self.table, self.has_kinks = table, rows.has_kinks
        self.eta = self.systems.scores(table)
        if self.has_kinks:
            rows.smoothing = WARM_SMOOTHING if is_warm else FIRST_SMOOTHING
            if is_warm:
                rows.centre = rows.slopes(self.eta, self.every)

    @property
    def x(self):
        return self.table.ravel()

    def copy_where(self, x, better):
        """Put the outputs of which this is the best point into x."""
        x.reshape(self.table.shape)[:, better] = self.table[:, better]

    def at_zero(self):
        """Objectives (K,) of no coefficients."""
        return self.weight @ self.rows.exact_values(np.zeros_like(self.eta))

    def primal(self):
        """Objectives (K,)."""
        return self.weight @ self.rows.exact_values(self.eta) + self._ridge(self.table)

    def dual_variables(self):
        """Slopes (n, K)."""
        return self.rows.slopes(self.eta, self.every)

    def dual(self, u):
        """Lower bounds (K,) on the optima, and whether they are certain."""
        if not self.alpha > 0.0:
            # radius around the minimum of this problem, which is at most that without a proximal term
            reach = 2.0 * np.maximum(np.sqrt((self.table**2).sum(axis=0)), 1.0)
            return self.f - np.sqrt((self.G**2).sum(axis=0)) * reach, False
        if self.fit_intercept:
            E = balanced(u * self.weight[:, None])
            u = E / np.where(self.weight > 0.0, self.weight, 1.0)[:, None]
        sums = self.systems.sums(u * self.weight[:, None])[: self.p]
        return -(self.weight @ self.rows.conjugates(u)) - (sums**2).sum(axis=0) / (2.0 * self.alpha), True

    def recentre(self, u):
        """The next proximal term."""
        if self.has_kinks:
            self.rows.centre = u
            self.rows.smoothing = max(SHRINK * self.rows.smoothing, MIN_SMOOTHING)

    def _ridge(self, table):
        return 0.5 * self.alpha * (table[: self.p] ** 2).sum(axis=0)

    def _values(self, eta, table, at):
        return self.weight @ self.rows.values(eta, at) + self._ridge(table)

    def _gradient(self, eta, table, at):
        G = self.systems.sums(self.rows.slopes(eta, at) * self.weight[:, None])
        G[: self.p] += self.alpha * table[: self.p]
        return G

    def _left(self):
        """About how much each output's problem (K,) is above its minimum here."""
        square, size = (self.G**2).sum(axis=0), np.maximum(np.sqrt((self.table**2).sum(axis=0)), 1.0)
        if not self.alpha > 0.0:
            return np.sqrt(square) * size
        if self.has_kinks:  # the objective itself is left as well
            return np.maximum(np.sqrt(square) * size, square / (2.0 * self.alpha))
        free = np.abs(self.G[self.p :] * np.maximum(np.abs(self.table[self.p :]), 1.0)).sum(axis=0)
        return (self.G[: self.p] ** 2).sum(axis=0) / (2.0 * self.alpha) + free

    def descend(self, goal, steps):
        """Newton steps until what is left of the outputs' problems is about ``goal`` (K,); status."""
        self.f = self._values(self.eta, self.table, self.every)
        self.G = self._gradient(self.eta, self.table, self.every)
        self.worst = np.abs(self.G).max(axis=0) if self.G.size else np.zeros_like(self.f)
        steps.nfev += 1
        unit = (float(self.worst.max()) if len(self.every) else 0.0) or 1.0
        stuck = np.zeros_like(goal, dtype=bool)
        while True:
            left = self._left()
            at = np.flatnonzero((left > goal) & ~stuck)
            if not len(at):
                return outcome.NO_PROGRESS if bool((left > goal).any()) else outcome.CONVERGED
            status = steps.limits.reached(steps.nit)
            if status is not None:
                return status
            # the accuracy of systems follows the gradient
            forcing = np.minimum(FORCING, np.sqrt(self.worst[at] / unit))
            forcing = np.maximum(forcing, 0.3 * np.sqrt(goal[at] / left[at]))
            stuck[at] = self._step(at, forcing, steps)
            if steps.report(self.table.ravel().copy(), float(self.f.sum())):
                return outcome.STOPPED

    def _step(self, at, forcing, steps):
        """One step of the outputs ``at``; which of them it did not change."""
        f, worst = self.f, self.worst
        g, T, eta = self.G[:, at], self.table[:, at], self.eta[:, at]
        enough = forcing * np.sqrt((g**2).sum(axis=0))
        d = self.systems.solve(g, self.rows.curvatures(eta, at) * self.weight[:, None], enough)
        along, slope = self.systems.scores(d), (g * d).sum(axis=0)
        t = self._step_sizes(at, eta, along, slope, T, d, steps)
        value, before = self._values(eta + t * along, T + t * d, at), f[at]
        # a step must not increase the value; up to rounding, short steps leave it unchanged
        t = np.where(value <= before + 1e-15 * np.abs(before), t, 0.0)
        value = np.where(t > 0.0, value, before)
        self.table[:, at], self.eta[:, at], f[at] = T + t * d, eta + t * along, value
        self.G[:, at] = self._gradient(self.eta[:, at], self.table[:, at], at)
        largest, worst_before = np.abs(self.G[:, at]).max(axis=0), worst[at]
        worst[at] = largest
        # rounding: neither the value nor the gradient falls
        return (t == 0.0) | ~((value < before) | (largest < worst_before))

    def _step_sizes(self, at, eta, along, slope, T, d, steps):
        """Step sizes (k,) at which slopes are nearly zero."""
        ridge, square = (self.alpha * (A[: self.p] * d[: self.p]).sum(axis=0) for A in (T, d))

        def evaluate(t):
            steps.nfev += 1
            return self.weight @ (self.rows.slopes(eta + t * along, at) * along) + ridge + t * square

        def select(left):
            nonlocal eta, along, at, ridge, square
            eta, along, at, ridge, square = (A[..., left] for A in (eta, along, at, ridge, square))

        return find_slope_roots(evaluate, select, slope)
