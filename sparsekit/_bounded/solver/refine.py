r"""The last digits of a linear model in a box, and the proof: Newton's method, with multipliers where h has
kinks.

A loss with kinks is replaced by its envelope around dual variables a' (the multipliers), which is smooth,

.. math:: h_\delta(r) = \max_a \; a r - h^*(a) - \tfrac{\delta}{2} (a - a')^2;

its minimiser gives new multipliers. This is the proximal point method on the dual (Rockafellar 1976). It
needs no delta near zero. Where everything is piecewise linear or quadratic it ends after finitely many
rounds. Only the rows whose residual is within about delta of a kink have curvature, so that Newton's
matrix is small.
"""

from dataclasses import dataclass

import numpy as np

from ..._linalg.newton import NewtonSystem
from ..._solver.line_search import Trial, find_slope_root
from ..._solver.tolerances import FORCING, MAX_STALLED, ROUNDING
from ..losses.losses import LossRows, weighted_quantile
from .box_step import minimize_in_box
from .nqn import NQNOptions
from .proximal_points import MIN_REDUCTION, SHRINK, WARM_SMOOTHING
from .run import Point
from .scaled_descent import Descent

# Least first delta as a part of the targets' spread. With 0 an exact fit to 4000 rows takes 5 times as long;
# with 0.01 26 fits take 1.1 times as long.
MIN_FIRST_DELTA = 1e-3
# delta shrinks after a round of fewer Newton steps.
QUICK_STEPS = 15
# It grows after a round of MAX_STEPS Newton steps.
MAX_STEPS = 30
# First ridge of Newton's system, in units of the curvature that all rows would have. With 1e-8 rounding
# decides where an interpolating fit ends.
RIDGE = 1e-6
# Smallest descent of a step, relative to its square in Newton's matrix. A minimiser has 1. With 0 a fit of 8
# rows and 60 columns in a box does not converge.
MIN_DESCENT = 0.1


@dataclass
class Envelope:
    """delta and a'; both None for a smooth loss."""

    smoothing: float | None = None
    previous: np.ndarray | None = None


@dataclass
class Orthant:
    """The box in which the objective is smooth around w, by the signs of w; slopes with the L1 part."""

    lower: np.ndarray
    upper: np.ndarray
    slope: np.ndarray
    free: np.ndarray


def orthant(problem, w, gradient):
    """Where w may move without a kink of the L1 penalty, and the slope there."""
    lower, upper, l1 = problem.lower, problem.upper, problem.l1
    slope = gradient + problem.l2 * w
    if l1:
        side = np.sign(w)
        # a coefficient at zero moves if the slope exceeds the penalty
        at_zero = side == 0
        side = np.where(at_zero & (slope < -l1), 1.0, np.where(at_zero & (slope > l1), -1.0, side))
        rests = side == 0
        lower = np.where(side >= 0, np.maximum(lower, 0.0), lower)
        upper = np.where(side <= 0, np.minimum(upper, 0.0), upper)
        slope = np.where(rests, 0.0, slope + l1 * side)
        lower, upper = np.minimum(lower, w), np.maximum(upper, w)
    free = ~(((w <= lower) & (slope >= 0)) | ((w >= upper) & (slope <= 0)))
    return Orthant(lower, upper, slope, free)


def refine(run):
    """Improve the run's point until its gap is small enough (`Stop`), or rounding is all that is left."""
    problem, loss = run.problem, run.problem.loss
    # natural sizes are better known here than at the start
    run.certificate.forget()
    z = problem.predictor(run.w, run.b)
    point = Point(run.w.copy(), run.b, z, LossRows.empty(problem.n, z))
    envelope = Envelope()
    if loss.has_kinks:
        envelope = Envelope(first_delta(problem, z), loss.first_multipliers(z))
    point.evaluate(problem, envelope.smoothing, envelope.previous)
    inner = Newton(run)
    stalled, gap, primal = 0, np.inf, np.inf
    while stalled < MAX_STALLED and not (stalled and run.is_done):
        count = inner.solve(point, envelope)
        if count is None:  # too large for Newton's matrix
            inner = QuasiNewton(run)
            continue
        fell = not loss.has_kinks and run.primal < primal - run.allowed(NQNOptions.ftol)
        stalled = 0 if run.gap < MIN_REDUCTION * gap or fell else stalled + 1
        gap, primal = min(gap, run.gap), run.primal
        if not loss.has_kinks:
            continue
        envelope.previous = point.rows.dual.copy()
        if count < QUICK_STEPS:
            envelope.smoothing *= SHRINK
            # without it fits with residuals of 1e-6 of the target end with a gap as large as the objective
            typical = weighted_quantile(loss.kink_distance(point.z), loss.s, 0.5) / (loss.hi - loss.lo)
            envelope.smoothing = min(envelope.smoothing, max(typical, ROUNDING * loss.spread))
        elif count >= MAX_STEPS:
            envelope.smoothing /= SHRINK
        point.evaluate(problem, envelope.smoothing, envelope.previous)


def first_delta(problem, z):
    """The first delta at predictor z: within it of a kink are as many rows as there are variables.

    About as many lie on kinks at a solution. 46 fits of six losses take 0.85 of the time that they take from
    the largest delta, at most 1.2 times as long. Where there are no more rows than variables all may lie on
    kinks, and it is the largest.
    """
    loss, on_kinks = problem.loss, (problem.p + 1) / problem.n
    part = WARM_SMOOTHING
    if on_kinks < 1.0:
        distance = weighted_quantile(loss.kink_distance(z), loss.s, on_kinks)
        part = np.clip(distance / loss.spread, MIN_FIRST_DELTA, WARM_SMOOTHING)
    return part * loss.spread / (loss.hi - loss.lo)


def certify(run, point):
    """Gap at a point; what the objective itself is there."""
    problem, loss = run.problem, run.problem.loss
    primal = point.rows.f
    if loss.has_kinks:
        primal = loss.evaluate(point.z, run.spare).f
    run.update_best(point.w, point.b, primal + problem.penalty(point.w))
    run.certificate.update(point.w, point.b, point.z, point.rows, point.gradient, run.primal)


class Newton:
    """Newton's method on the envelope, in the box."""

    def __init__(self, run):
        self.run = run
        self.ridge, self.too_large = RIDGE, False
        _, self.variance = run.problem.moments()
        run.spare = LossRows.empty(run.problem.n, self.variance)

    def solve(self, point, envelope):
        """Minimise until the gap is mostly that of the multipliers; the steps it took, or None: too large."""
        run, problem = self.run, self.run.problem
        certify(run, point)
        run.check()
        for count in range(MAX_STEPS):
            if count >= QUICK_STEPS and run.is_done:
                return count - 1
            face = orthant(problem, point.w, point.gradient)
            slope_b = float(point.rows.u.sum()) if problem.fit_intercept else 0.0
            left = run.certificate.weigh(face.slope, face.free, slope_b)
            if problem.loss.has_kinks and count and left <= max(FORCING * run.gap, run.allowed(ROUNDING)):
                return count
            if left == 0.0 or not self._step(point, envelope, face, slope_b):
                return None if self.too_large else count
            certify(run, point)
            run.iteration("newton")
        return MAX_STEPS

    def _step(self, point, envelope, face, slope_b):
        problem, rows = self.run.problem, point.rows
        used = np.flatnonzero(face.free)
        curved = np.flatnonzero(rows.curvature)
        system = NewtonSystem.build(
            problem.matrix, curved, used, rows.curvature[curved], problem.l2, problem.fit_intercept
        )
        if system is None:
            self.too_large = True
            return False
        gradient = face.slope[used]
        low, high = face.lower[used] - point.w[used], face.upper[used] - point.w[used]
        # the ridge in units of the curvature that every row together would give
        full = 1.0 / envelope.smoothing if envelope.smoothing else 1.0
        unit = full * self.variance[used]
        if problem.fit_intercept:
            gradient, unit = np.append(gradient, slope_b), np.append(unit, full)
            low, high = np.append(low, -np.inf), np.append(high, np.inf)
        for ridge in _ridges(self.ridge):
            move = minimize_in_box(system, gradient, low, high, ridge * unit)
            slope = float(gradient @ move)
            # a step that is no descent needs a larger ridge, as does NaN, the step of a singular system
            if slope < 0 and slope <= -MIN_DESCENT * float(
                move @ (system.product(move) + ridge * unit * move)
            ):
                break
        else:
            return False
        self.ridge = ridge
        step = np.zeros(problem.p, like=move)
        step[used] = move[: len(used)]
        step_b = float(move[-1]) if problem.fit_intercept else 0.0
        dz = problem.predictor(step, step_b)
        step_size = self._line_search(point, envelope, face, step, dz, slope)
        old = point.w
        point.w = _snapped(old + step_size * step, old, step, face)
        point.b += step_size * step_b
        point.z = point.z + step_size * dz
        if step_size > 0.5:
            self.ridge = max(0.1 * self.ridge, ROUNDING)
        elif step_size < 0.1 and problem.loss.has_kinks:
            self.ridge = min(10.0 * self.ridge, 1.0)
        point.evaluate(problem, envelope.smoothing, envelope.previous)
        return True

    def _line_search(self, point, envelope, face, step, dz, slope):
        """Step size at which the slope along the step is nearly zero; the envelope's slope grows with it."""
        problem, w = self.run.problem, point.w
        side = np.where(w != 0, np.sign(w), np.sign(step))
        fixed = problem.l1 * float(side @ step) + problem.l2 * float(w @ step)
        square = problem.l2 * float(step @ step)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            distance = np.where(step > 0, (face.upper - w) / step, (face.lower - w) / step)
        longest = max(1.0, float(np.min(np.where(step != 0, distance, np.inf))))
        loss, args = problem.loss, (envelope.smoothing, envelope.previous)

        def along(t):
            return Trial(t, slope=loss.slope_along(point.z, dz, t, *args) + fixed + t * square)

        found = find_slope_root(along, slope, longest=longest)
        return 0.0 if found is None else found.t


def _ridges(first):
    """``first`` and larger ones, until curvature is rounding beside them."""
    ridge = first
    while ridge * ROUNDING <= 1.0:
        yield ridge
        ridge = max(10.0 * ridge, ROUNDING)


def _snapped(new, old, step, face):
    """``new`` in the face; what is within rounding of a bound goes there."""
    tiny = ROUNDING * (np.abs(old) + np.abs(step))
    new = np.where((new - face.lower <= tiny) & (step < 0), face.lower, new)
    return np.where((face.upper - new <= tiny) & (step > 0), face.upper, new)


class QuasiNewton:
    """The same by NQN, where Newton's matrix would be too large."""

    def __init__(self, run):
        self.run = run
        self.descent = Descent(run)

    def solve(self, point, envelope):
        run, problem, descent = self.run, self.run.problem, self.descent
        descent.smoothing, descent.previous = envelope.smoothing, envelope.previous
        done = False

        def visit(w, b, z, gradient, slope):
            nonlocal done
            point.w, point.b, point.z, point.gradient = w, b, z, gradient
            for name in ("u", "dual", "curvature"):
                getattr(point.rows, name)[:] = getattr(descent.rows, name)
            point.rows.f = descent.rows.f
            certify(run, point)
            face = orthant(problem, w, gradient)
            slope_b = slope if problem.fit_intercept else 0.0
            left = run.certificate.weigh(face.slope, face.free, slope_b)
            done = problem.loss.has_kinks and left <= FORCING * run.gap
            return done

        descent.minimize(point, -1.0, visit)
        return 0 if done else QUICK_STEPS
