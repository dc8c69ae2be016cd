"""NQN on a linear model, in variables that make it round.

The columns are centred through the intercept, so that sparse ones stay sparse, and scaled. A coefficient
with an L1 penalty and either sign is split into two of one sign. Then the penalty is linear, and zeros are
exact.
"""

from dataclasses import dataclass

import numpy as np

from ..._linalg.cost import HOST
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LossRows
from . import nqn
from .run import Point

# Least number of NQN's iterations on a smooth loss. 240 fits of five losses to twelve made sets take 1.03
# times as long with 16.
MIN_ITERATIONS = 10
# Steps of Newton's method on a smooth loss that NQN's iterations may cost as much as. The 240 fits take the
# same time within 3 % with 3 and with 6. One of them takes 10 times as long with 1.5, and 4.5 times with 3.
NEWTON_STEPS = 4
# Factor of these iterations where most rows are on a linear part of the loss. There Newton's method takes
# hundreds of steps: Huber fits to wide X and targets of 1e4 take up to 13 times as long with 1.
MORE = 10
# Bytes that L-BFGS pairs may use if X is smaller.
MIN_PAIR_BYTES = 2**25
MIN_PAIRS = 5


@dataclass(frozen=True)
class IterationTime:
    """Nanoseconds of an iteration on a smooth loss; the five numbers are fitted to 22 fits on one core.

    On a GPU all times of `nqn_iterations` are those of a core as well: none has been measured there.
    """

    entry: float = 0.8
    sparse_entry: float = 2.5
    row: float = 40.0
    column: float = 180.0
    least: float = 2e5

    def of(self, matrix):
        """The time with this X."""
        (n, p), entry = matrix.shape, self.sparse_entry if matrix.is_sparse else self.entry
        return entry * matrix.nnz + self.row * n + self.column * p + self.least


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
        kinks, few, count = problem.loss.has_kinks, nqn_iterations(problem), 0

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
            self.minimize(start, nqn.NQNOptions.ftol, visit, MORE * few)

    def _is_mostly_linear(self):
        """Whether more than half of the rows have a slope and no curvature."""
        return 2 * np.count_nonzero((self.rows.curvature == 0.0) & (self.rows.u != 0.0)) > self.problem.n


def _one(value, like):
    """An array (1,) of the number, where ``like`` is."""
    return np.full_like(like, value, shape=1)


def nqn_iterations(problem):
    """How many iterations NQN gets on a smooth loss: as many as some of Newton's steps cost.

    Where the matrix of these would be too large that is more than NQN needs. Least squares without bounds
    take one step.
    """
    matrix = problem.matrix
    side, other = sorted(matrix.shape)
    gram = HOST.dense * side**2 * other
    if matrix.is_sparse:
        gram = 0.5 * HOST.pair * matrix.nnz**2 / other
    step = gram + HOST.factor * side**3  # about three factors, for the bounds that it meets
    steps = 1 if problem.is_ridge and problem.loss.is_quadratic else NEWTON_STEPS
    return max(MIN_ITERATIONS, int(steps * step / IterationTime().of(matrix)))
