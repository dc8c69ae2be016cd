"""Line searches: step sizes t along a direction, by what is known of f there.

- `backtrack`: values. Armijo's condition; step sizes fall by parabolas, or by halves.
- `bracket_weak_wolfe`: values and slopes of a function that may have kinks. Trials are minima of cubics.
- `find_slope_root`: slopes of a convex function. Secants and bisection.
- `find_slope_roots`: the same for several functions at once, whose slopes one evaluation yields.

Each evaluates f by the caller's function of t. For a linear model f depends on z + t dz, the scores of the
point and of the direction. A trial then needs no pass over X.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import outcome
from .outcome import Stop

# Armijo's constant: the least actual reduction, as a part of the reduction to first order.
ARMIJO = 1e-4
# Least part of a bracket at which a cubic's minimum may be a trial: through both sides of a kink it means
# nothing.
MIN_PART = 0.1
# Step size at which a function that still falls is taken to be unbounded below.
MAX_STEP = 1e30
# Slope at which a search for a root of it ends, as a part of the first one.
SLOPE_PART = 0.1
# Largest number of trials of a search for a root.
MAX_TRIALS = 30


@dataclass
class Trial:
    """What is known at a step size.

    Parameters
    ----------
    t : float
        Step size.
    f : float
        Value there; -inf where only slopes are known.
    slope : float
        Derivative of f in t; NaN where only values are known.
    point : object
        What the caller needs of the step that is accepted.
    change : float, default=None
        f(t) - f(0) to first order, where it is not t times the slope at 0: the path is bent by a projection.
    """

    t: float
    f: float = -math.inf
    slope: float = math.nan
    point: Any = None
    change: float | None = None


def backtrack(
    evaluate, f, slope=math.nan, *, t=1.0, armijo=ARMIJO, rounding=0.0, flat=-math.inf, shrink=(0.1, 0.5),
    min_t=1e-12,
):  # fmt: skip
    """Armijo backtracking: the first trial that is low enough, or None.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(t)`` returns a `Trial`.
    f, slope : float
        Value and derivative at t = 0; the latter is not needed where trials know their ``change``.
    t : float
        The first step size.
    armijo : float
        A trial is low enough with f(t) <= f + armijo t slope + rounding.
    rounding : float
        Error of values.
    flat : float
        Values closer than this are equal up to rounding. A trial with f(t) <= f + flat is accepted if
        |slope(t)| <= (1 - 2 armijo) |slope(0)| (Hager, Zhang 2005, eq. 4.1). Needs ``Trial.slope``.
    shrink : tuple of float
        Least and largest factor from step size to step size; a parabola decides between them. The least one
        is taken where f is not finite.
    min_t : float
        Trials end below this step size.
    """
    while t >= min_t:
        trial = evaluate(t)
        if not math.isfinite(trial.f):
            t *= shrink[0]
            continue
        change = t * slope if trial.change is None else trial.change
        if trial.f <= f + armijo * change + rounding:
            return trial
        if trial.f <= f + flat and abs(trial.slope) <= (2.0 * armijo - 1.0) * slope:
            return trial
        # where the parabola through both values and the first slope is least
        t *= min(max(-0.5 * change / (trial.f - f - change), shrink[0]), shrink[1])
    return None


def bracket_weak_wolfe(
    evaluate, f, slope, *, t, longest, c1, c2, growth=2.0, use_cubics=True, min_width=0.0, min_part=0.0
):
    """A trial of the weak Wolfe conditions: f(t) <= f + c1 t slope and slope(t) >= c2 slope.

    This is Algorithm 4 of Keskar's thesis, chapter 3: bisection of a bracket whose ends are too short and too
    long.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(t)`` returns a `Trial`. A trial without a finite value is too long.
    f, slope : float
        Value and derivative at t = 0.
    t, longest : float
        The first step size and the longest.
    c1, c2 : float
        Constants of the conditions.
    growth : float
        Factor of the step size as long as no trial was too long.
    use_cubics : bool
        Whether the trial after one that was too long is placed by a cubic; else brackets are halved.
    min_width, min_part : float
        The search ends where the bracket is narrower than min_width + min_part times its lower end.

    Returns
    -------
    Trial
        The last one that was low enough, if none fulfils both.

    Raises
    ------
    Stop
        With NO_PROGRESS if no trial is low enough, with UNBOUNDED if f falls beyond `MAX_STEP`.
    """
    low, high, best, is_bracketed = Trial(0.0, f, slope), Trial(longest), None, False
    while True:
        trial = evaluate(t)
        is_too_long = not (trial.f <= f + t * c1 * slope and math.isfinite(trial.f))  # (3.21): NaN fails
        if is_too_long:
            high, is_bracketed = trial, True
        elif trial.slope >= c2 * slope:  # (3.22)
            return trial
        else:
            low = best = trial
        # steps 19 to 23; departure: after a failure at the longest step the printed test doubles for ever
        if not is_bracketed:
            t = min(growth * t, longest)
        elif is_too_long and use_cubics:
            # departure from step 20; after a trial that was not too long, halves again
            t = cubic_step(low, high)
        else:
            t = 0.5 * (low.t + high.t)
        if t > MAX_STEP:
            raise Stop(outcome.UNBOUNDED)
        if high.t - low.t < min_width + min_part * low.t:  # step 24
            if best is None:
                raise Stop(outcome.NO_PROGRESS)
            return best


def cubic_step(low, high):
    """The step size of the next trial in a bracket, from the trials at its two ends, the second one too long.

    The minimiser of the cubic through them, but in the nearer half. A bracket whose far end moves then
    shrinks as by bisection.
    """
    width = high.t - low.t
    t = low.slope + high.slope - 3.0 * (high.f - low.f) / width
    root = math.sqrt(max(t * t - low.slope * high.slope, 0.0))
    below = high.slope - low.slope + 2.0 * root
    part = 1.0 - (high.slope + root - t) / below if below != 0.0 else 0.5
    return low.t + width * (min(max(part, MIN_PART), 0.5) if math.isfinite(part) else 0.5)


def find_slope_root(
    evaluate, slope, *, f=math.inf, rounding=0.0, part=SLOPE_PART, longest=math.inf, max_trials=MAX_TRIALS
):
    """The trial with the smallest slope of a convex function; None if none is low enough.

    The slope is continuous, and below 0 at t = 0. Sums of slopes keep their digits where differences of
    values are lost in rounding.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(t)`` returns a `Trial`.
    slope : float
        Derivative at t = 0, below 0.
    f, rounding : float
        Value at t = 0 and the error of values: low enough is f(t) <= f + ARMIJO t slope + rounding. Without
        ``f`` slopes alone count.
    part : float
        The search ends where the slope is at most this part of the first one.
    longest : float
        The longest step size.
    max_trials : int
        Evaluations.
    """
    lows, best, t = [Trial(0.0, f, slope)], None, 1.0
    highs: list[Trial] = []
    for k in range(max_trials):
        trial = evaluate(t)
        # a slope that is steep for a moment only may be small, and uphill, far behind the minimum
        if trial.f <= f + ARMIJO * t * slope + rounding and not math.isnan(trial.slope):
            if best is None or abs(trial.slope) < abs(best.slope):
                best = trial
            if abs(trial.slope) <= -part * slope:
                return trial
        (lows if trial.slope <= 0.0 else highs).append(trial)
        if not highs:
            if t >= longest:
                break
            t = min(2.0 * t, longest)
            continue
        t = _root(lows, highs, k % 3)
        if not lows[-1].t < t < highs[-1].t:
            break
    return best


def _root(lows, highs, turn):
    """Where the slope may be zero, between the last trials below and above.

    Takes in turns the secant, the line through the last two trials above the root, and a midpoint. The second
    finds a steep part at once. The third guarantees convergence.
    """
    low, high = lows[-1], highs[-1]
    if turn == 1 and len(highs) > 1:
        rise = highs[-2].slope - high.slope
        t = high.t - high.slope * (highs[-2].t - high.t) / rise if rise > 0.0 else low.t
        if low.t < t < high.t:
            return t
    if turn == 2 or not math.isfinite(high.slope):
        if not low.t > 0.0:
            # directions without curvature but a weak penalty's are too long by many digits
            return high.t * 0.5 ** len(highs)
        return 0.5 * (low.t + high.t)
    return low.t + (high.t - low.t) * low.slope / (low.slope - high.slope)


def find_slope_roots(evaluate, select, slope):
    """Step sizes (k,) at which the slopes of k convex functions are nearly zero.

    Secants and midpoints in turns; a secant stays away from the ends of its bracket.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(t)`` returns slopes at step sizes t, one for each function that is left.
    select : callable
        ``select(left)`` is called when only the functions where ``left`` is true remain.
    slope : ndarray of shape (k,)
        Derivatives at t = 0, below 0. In main memory or on a GPU.
    """
    t, left = np.ones_like(slope), np.arange(len(slope), like=slope)
    last, a, b, fa, fb = t, np.zeros_like(slope), np.full_like(slope, np.inf), slope, np.zeros_like(slope)
    for count in range(MAX_TRIALS):
        f = evaluate(last)
        goes_on, rises = ~(np.abs(f) <= SLOPE_PART * np.abs(slope)), f > 0.0
        a, fa = np.where(rises, a, last), np.where(rises, fa, f)
        b, fb = np.where(rises, last, b), np.where(rises, f, fb)
        if not bool(goes_on.all()):
            last, a, b, fa, fb, slope, left = (A[goes_on] for A in (last, a, b, fa, fb, slope, left))
            if not len(left):
                break
            select(goes_on)
        is_bracket = b < np.inf
        width = np.where(is_bracket, b - a, 0.0)
        secant = a + width * fa / np.where(is_bracket, fa - fb, 1.0)
        inner = 0.5 * (a + b) if count % 2 else np.clip(secant, a + 0.05 * width, b - 0.05 * width)
        t[left] = last = np.where(is_bracket, inner, 2.0 * last)
    return t
