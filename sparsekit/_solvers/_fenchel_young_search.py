"""Where along a Newton direction the objective stops falling."""

from dataclasses import dataclass
from typing import Any

import numpy as np

# part of the slope at the start that may be left, and evaluations
_ENOUGH, _MOST = 0.1, 30
# part of what the first slope promises that has to be kept
_ARMIJO = 1e-4


@dataclass
class Step:
    """A step t, and scores, loss with derivative, and objective behind it."""

    t: float
    Z: Any
    state: Any
    f: float
    slope: float


def search(run, point, f, G, D, alpha):
    """The step along D from objective f with hardly any slope left, or None where nothing goes down.

    Slopes are continuous and rise with t, those of sparsemax's loss in pieces of straight lines. So the root
    is looked for by secants, every third time by halving; sums of slopes keep their digits where differences
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

    low, low_slope, high, best, t = 0.0, slope, None, None, 1.0
    for k in range(_MOST):
        step = at(t)
        # a slope that is steep for a moment only may be small, and uphill, far behind the minimum
        if step.f <= f + _ARMIJO * t * slope + 2.0 * run.rounding(f):
            if best is None or abs(step.slope) < abs(best.slope):
                best = step
            if abs(step.slope) <= -_ENOUGH * slope:
                return step
        if step.slope > 0.0:
            high = step
        else:
            low, low_slope = t, step.slope
        if high is None:
            t = 2.0 * low
            continue
        share = 0.5 if k % 3 == 2 else low_slope / (low_slope - high.slope)
        t = low + (high.t - low) * share
        if not low < t < high.t:
            break
    return best
