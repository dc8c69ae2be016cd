"""What is proved of a linear model with bounded coefficients: a lower bound, from dual variables."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..losses.losses import natural_size, spread_of

# Without a penalty or bounds, the gap holds for coefficients up to this many natural sizes.
MAX_NATURAL_SIZES = 10.0
# Limits of more than this many natural sizes count as infinite.
UNLIMITED_SIZES = 1e4


@dataclass
class Certificate:
    """The lower bound of P: the best one of all dual points seen.

    The dual function needs a limit of each coefficient: its bounds, or the penalty, which is at most the
    objective. If these exceed UNLIMITED_SIZES natural sizes, the limit is MAX_NATURAL_SIZES of them. The
    natural size is the coefficient, or what moves the predictor by the targets' size if that is larger. P is
    convex: a point k times as far is better by at most k times the gap. The intercept always has this limit.
    """

    problem: object
    reach: np.ndarray | None = None
    width: np.ndarray | None = None
    reach_intercept: float = np.inf
    best: float = -np.inf

    def covers(self, w, b):
        """Whether the point is well inside of where the bound holds."""
        if self.reach is None:
            return False
        return not np.any(np.abs(w) > 0.5 * self.reach) and abs(b) <= 0.5 * self.reach_intercept

    def weigh(self, slopes, free, slope_b):
        """What slopes of free coefficients and of the intercept add to the gap at most."""
        free = np.flatnonzero(free)  # once: finding them synchronises a GPU
        left = float(np.abs(slopes[free]) @ self.width[free])
        return left + abs(slope_b) * self.reach_intercept if slope_b else left

    def forget(self):
        self.reach, self.best = None, -np.inf

    @cached_property
    def _target_size(self):
        # kept: it sorts the targets
        loss = self.problem.loss
        return natural_size(loss.t, loss.s, self.problem.fit_intercept)

    def _set_reach(self, w, b, z):
        problem = self.problem
        mean, variance = problem.moments()
        size = max(self._target_size, problem.loss.spread, spread_of(z, problem.loss.s))
        self.reach = MAX_NATURAL_SIZES * np.maximum(np.abs(w), size / np.sqrt(variance))
        self.reach_intercept = MAX_NATURAL_SIZES * (abs(b) + size + float(np.abs(mean) @ np.abs(w)))
        self.best = -np.inf

    def _limits(self, primal):
        problem, wide = self.problem, (UNLIMITED_SIZES / MAX_NATURAL_SIZES) * self.reach
        known = primal / problem.l1 if problem.l1 else np.inf
        if problem.l2:
            known = min(known, float(np.sqrt(2.0 * primal / problem.l2)))
        limit = np.where(known <= wide, known, self.reach)
        lower = np.where(problem.lower >= -wide, problem.lower, -limit)
        upper = np.where(problem.upper <= wide, problem.upper, limit)
        # a box beyond the limit keeps its nearest point
        return (
            np.minimum(np.maximum(lower, -limit), np.minimum(problem.upper, upper)),
            np.maximum(np.minimum(upper, limit), np.maximum(problem.lower, lower)),
        )

    def update(self, w, b, z, rows, gradient, primal):
        """Improve the bound by ``rows``' dual variables, gradient = X^T u; the gap of ``primal``."""
        if not self.covers(w, b):
            self._set_reach(w, b, z)
        problem = self.problem
        value = problem.loss.dual_value(rows)
        if problem.fit_intercept:
            value -= abs(float(rows.u.sum())) * self.reach_intercept
        lower, upper = self._limits(primal)
        self.width = upper - lower
        value += _least(gradient, lower, upper, problem.l1, problem.l2)
        if value > self.best:  # NaN is not
            self.best = value
        return primal - self.best


def _least(g, lower, upper, l1, l2):
    """sum_j min over lower <= w <= upper of g w + l1 |w| + l2/2 w^2."""
    if l2 > 0:
        with np.errstate(over="ignore"):
            w = np.clip(-np.sign(g) * np.maximum(np.abs(g) - l1, 0.0) / l2, lower, upper)
        return float(g @ w + l1 * np.abs(w).sum() + 0.5 * l2 * (w @ w))
    middle = np.clip(np.zeros_like(lower), lower, upper)
    ends = [g * w + l1 * np.abs(w) for w in (lower, middle, upper)]
    return float(np.minimum(np.minimum(ends[0], ends[1]), ends[2]).sum())
