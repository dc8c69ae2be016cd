"""Where along a Newton direction the objective stops falling."""

import math
from dataclasses import dataclass

import numpy as np

from .._typing import EitherArray

# part of the slope at the start that may be left, and evaluations
_ENOUGH, _MOST = 0.1, 30
# ratio of the ends of an interval from which its middle is the geometric mean
_FAR = 10.0
# part of what the first slope promises that has to be kept
_ARMIJO = 1e-4


@dataclass
class Step:
    """A step t, and scores, loss with derivative, and objective behind it."""

    t: float
    Z: EitherArray
    state: tuple[float, EitherArray]
    f: float
    slope: float


def search(run, point, f, G, D, alpha):
    """The step along D from objective f with hardly any slope left, or None where nothing goes down.

    Slopes are continuous and rise with t, those of sparsemax's loss in pieces of straight lines. So the root
    is looked for by lines, every third time by halving; sums of slopes keep their digits where differences
    of objectives are lost in rounding.
    """
    Z, part, along = point.Z, run.penalised(point.T), run.penalised(D)
    dZ = run.loss.scores(D)
    run.passes += 1
    slope, square, cross, length = run.dots((G, D), (part, part), (part, along), (along, along))
    if not slope < 0.0:
        return None

    def at(t):
        moved = Z + t * dZ
        state = run.evaluate(moved)
        rise = run.dots((state[1], dZ))[0] + alpha * (cross + t * length)
        after = state[0] + 0.5 * alpha * (square + 2.0 * t * cross + t * t * length)
        return Step(t, moved, state, after, rise if np.isfinite(rise) and np.isfinite(after) else np.inf)

    low, highs, best, t = [(0.0, slope)], [], None, 1.0
    for k in range(_MOST):
        step = at(t)
        # a slope that is steep for a moment only may be small, and uphill, far behind the minimum
        if step.f <= f + _ARMIJO * t * slope + 2.0 * run.rounding(f):
            if best is None or abs(step.slope) < abs(best.slope):
                best = step
            if abs(step.slope) <= -_ENOUGH * slope:
                return step
        side = highs if step.slope > 0.0 else low
        side.append((t, step.slope))
        if not highs:
            t = 2.0 * t
            continue
        t = _root(low, highs, k % 3)
        if not low[-1][0] < t < highs[-1][0]:
            break
    return best


def _root(low, high, turn):
    """Where the slope may be zero between the last points (t, slope) below and above.

    In turns where the chord is, where the line through the last two points above is, which ends at once the
    search for a place behind which the slope gets steep, and a middle, which no shape defeats.
    """
    (a, below), (b, above) = low[-1], high[-1]
    if turn == 1 and len(high) > 1:
        c, further = high[-2]
        t = b - above * (c - b) / (further - above) if further > above else a
        if a < t < b:
            return t
    if turn == 2 or not np.isfinite(above):
        if not a > 0.0:
            # directions without curvature but a weak penalty's are too long by many digits
            return b * 0.5 ** len(high)
        return math.sqrt(a * b) if b > _FAR * a else 0.5 * (a + b)
    return a + (b - a) * below / (below - above)
