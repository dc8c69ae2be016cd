"""The step size along a Newton direction: where the objective stops falling."""

import numpy as np

from ..._solver.line_search import Trial, find_slope_root


def line_search(run, point, f, G, D, alpha):
    """The `Trial` along D from objective f with hardly any slope left, or None where nothing goes down.

    Slopes are continuous and rise with t, those of sparsemax's loss in pieces of straight lines. The trial's
    point is its scores and their loss with derivative; a trial costs no pass over X.
    """
    Z, part, along = point.Z, run.penalised(point.T), run.penalised(D)
    dZ = run.loss.scores(D)
    run.passes += 1
    slope, square, cross, length = run.dots((G, D), (part, part), (part, along), (along, along))
    if not slope < 0.0:
        return None

    def evaluate(t):
        moved = Z + t * dZ
        state = run.evaluate(moved)
        rise = run.dots((state[1], dZ))[0] + alpha * (cross + t * length)
        after = state[0] + 0.5 * alpha * (square + 2.0 * t * cross + t * t * length)
        return Trial(t, after, rise if np.isfinite(rise) and np.isfinite(after) else np.inf, (moved, state))

    return find_slope_root(evaluate, slope, f=f, rounding=2.0 * run.rounding(f))
