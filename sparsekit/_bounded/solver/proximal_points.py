"""Proximal points of a dual, with the duality gap as certificate, for one problem or several at once.

A proximal step subtracts sigma / 2 |u - c|^2 in the inner maximum of a loss with kinks, which makes it
piecewise quadratic. The u at its minimum is the next centre c. The method is Rockafellar's, "Augmented
Lagrangians and applications of the proximal point algorithm in convex programming", 1976. Newton's method for
the steps follows Li, Sun and Toh, "A highly efficient semismooth Newton augmented Lagrangian method for
solving Lasso problems", 2018. Since sigma falls, a few steps suffice. A smooth loss is its own proximal step.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from ..._solver.outcome import Progress
from ..._solver.tolerances import FORCING, MAX_STALLED, SINGLE_ROUNDING

# First sigma.
FIRST_SMOOTHING = 1.0
# First sigma with another fit's coefficients.
WARM_SMOOTHING = 0.1
# Factor of sigma from step to step.
SHRINK = 0.2
# Least sigma.
MIN_SMOOTHING = 1e-6
# A step that leaves more than this part of the gap makes no progress.
MIN_REDUCTION = 0.8

MESSAGES = outcome.messages("the duality gap is at most tol times the objective")
# Statuses of a proximal step that do not end the run.
GOES_ON = None, outcome.CONVERGED, outcome.NO_PROGRESS


@dataclass
class Steps:
    """Newton steps of all proximal steps together, and the callback, which gets ``size`` variables."""

    progress: Progress
    size: int
    nit: int = 0
    nfev: int = 0
    optimality: float = 1.0

    @classmethod
    def of_call(cls, size, max_iter, max_time, callback, history):
        return cls(Progress.of_call(max_iter, max_time, callback, history), size)

    @property
    def limits(self):
        return self.progress.limits

    def limited(self, max_iter):
        """Counters from zero for at most ``max_iter`` steps, with the same clock and callback."""
        limits = replace(self.limits, max_iter=min(max_iter, self.limits.max_iter))
        return Steps(replace(self.progress, limits=limits), self.size)

    def report(self, x, fun):
        """Count a step; whether the callback asks to stop. Variables beyond those of x are zero."""
        self.nit += 1
        full = np.zeros(self.size, like=x)
        full[: len(x)] = x
        return self.progress.report(full, fun, self.nit, self.optimality)

    def result(self, bounds, status):
        fun, gap = bounds.sums
        return OptimizeResult(
            x=bounds.x, fun=fun, nit=self.nit, nfev=self.nfev, status=status, message=MESSAGES[status],
            optimality=bounds.optimality, dual_gap=gap if bounds.certain else np.nan,
            time=self.limits.seconds, history=self.progress.history.columns(),
        )  # fmt: skip


class Bounds:
    """The best point so far, and what its objective and the optimum are between, of each problem."""

    def __init__(self, form):
        self.x, self.upper = form.x.copy(), form.primal()
        self.lower, self.certain = 0.0 * self.upper, True
        self.proven, self.estimated = self.lower, self.lower
        self.least = SINGLE_ROUNDING * form.at_zero()  # which counts as 0

    def update(self, form, dual=None):
        """Evaluate the problem's point and dual variables, None for those of the point; returns these."""
        dual = form.dual_variables() if dual is None else dual
        upper = form.primal()  # last, so that errors of rows are those of the loss itself
        lower, self.certain = form.dual(dual)
        form.copy_where(self.x, upper < self.upper)
        self.upper = np.minimum(upper, self.upper)
        if self.certain:
            self.proven = np.maximum(lower, self.proven)
        else:
            self.estimated = np.maximum(lower, self.estimated)
        lower = self.proven if self.certain else np.maximum(self.proven, self.estimated)
        self.lower = np.minimum(lower, self.upper)
        return dual

    def goal(self, tol, has_kinks):
        """The gap, or for smooth losses the gap that is allowed; inf for problems that are done."""
        gap, allowed = self.upper - self.lower, tol * np.maximum(self.upper, self.least)
        return np.where(gap > allowed, gap if has_kinks else allowed, np.inf)

    @property
    def sums(self):
        """Objective and gap."""
        return float(self.upper.sum()), float((self.upper - self.lower).sum())

    @property
    def optimality(self):
        fun, gap = self.sums
        return gap / max(fun, float(self.least.sum())) if gap > 0.0 else 0.0


def proximal_points(form, tol, steps, status=None, bounds=None):
    """Proximal steps until the gap is at most tol times the objective; `Bounds`, status.

    ``form`` is the problem at its proximal term. It has x, primal(), dual(u), dual_variables(), at_zero(),
    copy_where(x, better), descend(goal, steps), recentre(u) and has_kinks.
    """
    bounds, forcing, stalled = bounds or Bounds(form), FORCING, 0
    while True:
        steps.optimality, gap = bounds.optimality, bounds.sums[1]
        if steps.optimality <= tol and status != outcome.STOPPED:
            return bounds, outcome.CONVERGED
        if status not in GOES_ON:
            return bounds, status
        if stalled == MAX_STALLED:
            return bounds, outcome.NO_PROGRESS
        status = form.descend(forcing * bounds.goal(tol, form.has_kinks), steps)
        form.recentre(bounds.update(form))
        if bounds.sums[1] > MIN_REDUCTION * gap:
            stalled, forcing = stalled + 1, 0.1 * forcing
        else:
            stalled = 0


def balanced(E):
    """Each column's positive or negative entries shrunk until its sum is 0."""
    plus, minus = E.clip(0.0, None).sum(axis=0), -E.clip(None, 0.0).sum(axis=0)
    least = np.minimum(plus, minus)
    return E * np.where(E > 0.0, least / np.maximum(plus, 1e-300), least / np.maximum(minus, 1e-300))
