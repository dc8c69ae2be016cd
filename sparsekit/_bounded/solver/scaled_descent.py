"""NQN on a linear model, in variables that make it round.

The columns are centred through the intercept, so that sparse ones stay sparse, and scaled. A coefficient
with an L1 penalty and either sign is split into two of one sign. Then the penalty is linear, and zeros are
exact.
"""

import numpy as np

from ..._solver.tolerances import ROUNDING
from .. import plan
from ..losses.losses import LossRows
from . import nqn
from .run import Point

# Bytes that L-BFGS pairs may use if X is smaller.
MIN_PAIR_BYTES = 2**25
MIN_PAIRS = 5


class Descent:
    """The objective in NQN's variables v, and the runs of NQN on it."""

    def __init__(self, run):
        self.run, self.problem = run, run.problem
        problem = self.problem
        p = problem.p
        mean, variance = problem.moments()
        loss = problem.loss
        # curvature of the loss, by the spread of the residuals where it has kinks
        curvature = 1.0
        if loss.has_kinks and loss.c is None:
            curvature = (loss.hi - loss.lo) / (4.0 * loss.spread)
        self.mean, self.scale = mean, 1.0 / np.sqrt(curvature * variance + problem.l2)
        two = (problem.lower < 0) & (problem.upper > 0) if problem.l1 else np.zeros(p, dtype=bool, like=mean)
        self.split = np.flatnonzero(two)
        lower, upper = problem.lower / self.scale, problem.upper / self.scale
        self.lower = np.concatenate([np.where(two, 0.0, lower), np.zeros(len(self.split), like=mean)])
        self.upper = np.concatenate([upper, -lower[self.split]])
        side = np.where(two | (problem.lower >= 0), 1.0, -1.0)
        self.linear = problem.l1 * np.concatenate([side * self.scale, self.scale[self.split]])
        if problem.fit_intercept:
            self.lower, self.upper = np.append(self.lower, -np.inf), np.append(self.upper, np.inf)
            self.linear = np.append(self.linear, 0.0)
        self.rows = LossRows.empty(problem.n, mean)
        self.smoothing = self.previous = None
        self.last = None

    def point(self, v):
        """(w, b) of v, w in the box."""
        problem, p = self.problem, self.problem.p
        w = v[:p].copy()
        w[self.split] -= v[p : p + len(self.split)]
        w = np.clip(w * self.scale, problem.lower, problem.upper)
        for side in (problem.lower, problem.upper):
            # scaling a bound and back may have a rounding error
            w = np.where(np.isfinite(side) & (np.abs(w - side) <= ROUNDING * np.abs(side)), side, w)
        return w, float(v[-1] - self.mean @ w) if problem.fit_intercept else 0.0

    def variables(self, w, b):
        """v of (w, b)."""
        scaled = w / self.scale
        parts = [scaled, np.maximum(-scaled[self.split], 0.0)]
        parts[0][self.split] = np.maximum(scaled[self.split], 0.0)
        if self.problem.fit_intercept:
            parts.append(_one(b + float(self.mean @ w), w))
        return np.clip(np.concatenate(parts), self.lower, self.upper)

    def __call__(self, v):
        w, b = self.point(v)
        z, gradient = self.problem.evaluate(w, b, self.rows, self.smoothing, self.previous)
        return self._value(v, Point(w, b, z, self.rows, gradient))

    def _value(self, v, point):
        """The objective and its gradient in v (m,), evaluated at ``point``."""
        problem, rows = self.problem, point.rows
        w, gradient, slope = point.w, point.gradient, float(point.rows.u.sum())
        g = (gradient - self.mean * slope + problem.l2 * w) * self.scale
        parts = [g, -g[self.split]]
        full = np.concatenate([*parts, _one(slope, g)] if problem.fit_intercept else parts)
        f = rows.f + float(self.linear @ v) + 0.5 * problem.l2 * float(w @ w)
        self.last = (w, point.b, point.z, gradient, slope, f)
        return f, full + self.linear

    def minimize(self, start, ftol, visit, max_iter=np.inf):
        """Iterations of NQN from the `Point` on, until ``visit(w, b, z, gradient, slope)`` of one is true."""
        run = self.run

        def callback(report):
            *point, f = self.last
            # the last evaluation is mostly the iterate's
            done = f == report.fun and visit(*point)
            run.iteration("nqn")
            return done

        left = run.options.max_time - run.limits.seconds
        opts = nqn.NQNOptions(gtol=0.0, ftol=ftol, max_iter=max_iter, max_time=left, memory=self._memory())
        v = self.variables(start.w, start.b)
        first = self._value(v, start)
        nqn.minimize(self, v, self.lower, self.upper, opts, first=first, callback=callback)

    def _memory(self):
        """Pairs of L-BFGS: they use at most the memory of X or MIN_PAIR_BYTES."""
        pair = 16 * len(self.lower)
        most = max(self.problem.matrix.nbytes, MIN_PAIR_BYTES) // pair
        return int(min(max(most, MIN_PAIRS), nqn.NQNOptions.memory))

    def approach(self, start):
        """From the `Point` to one from which `refine` takes over; a smooth loss may end here."""
        run, problem = self.run, self.problem
        kinks, few, count = problem.loss.has_kinks, plan.nqn_iterations(problem), 0

        def visit(w, b, z, gradient, slope):
            nonlocal count
            run.update_best(w, b, self.rows.f + problem.penalty(w))
            if kinks:
                return False
            run.certificate.update(w, b, z, self.rows, gradient, run.primal)
            count += 1
            return count >= few and not self._is_mostly_linear()

        # Newton's method replaces NQN when ten iterations decrease the objective by little
        if kinks:
            self.minimize(start, run.options.kinked_ftol, visit)
        else:
            self.minimize(start, nqn.NQNOptions.ftol, visit, plan.NQN_LINEAR_FACTOR * few)

    def _is_mostly_linear(self):
        """Whether more than half of the rows have a slope and no curvature."""
        return 2 * np.count_nonzero((self.rows.curvature == 0.0) & (self.rows.u != 0.0)) > self.problem.n


def _one(value, like):
    """An array (1,) of the number, where ``like`` is."""
    return np.full_like(like, value, shape=1)
