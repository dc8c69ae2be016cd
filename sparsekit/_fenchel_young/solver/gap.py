"""Duality gaps of Fenchel-Young losses where a point's own predictions give none, or a bad one."""

import numpy as np
from scipy.optimize import minimize_scalar

from ..._arrays import to_host
from ..._solver.tolerances import F_ROUNDING, ROUNDING


def balance(run, point):
    """Newton steps in the free intercepts alone, so that the point's predictions are dual feasible.

    They cost no pass over the data but a last one. Returns the point behind them, and whether the intercepts'
    gradient is zero to rounding.
    """
    T, Z, state, loss = point.T, point.Z, (point.value, point.R), run.loss
    for _ in range(30):
        g = state[1].sum(axis=0)
        size = float(np.abs(g).max())
        if size <= F_ROUNDING:
            break
        (P, rest, top), weight = loss.curvature(Z)
        P = P.copy()
        P[np.arange(len(P), like=P), top] = 1.0 - rest
        H = np.diag(weight @ P) - (P * weight[:, None]).T @ P
        # a matrix of few classes is slow on a GPU
        d = -np.linalg.lstsq(to_host(H), to_host(g), rcond=1e-12)[0]
        d = np.asarray(d, like=g)
        for t in (1.0, 0.5, 0.25, 0.125):
            trial = run.evaluate(Z + t * d)
            if float(np.abs(trial[1].sum(axis=0)).max()) < size:
                break
        else:
            break
        T = T.copy()
        T[-1] += t * d
        Z, state = Z + t * d, trial
    if T is not point.T:
        point = run.point(T, Z, state)
    return point, float(np.abs(point.R.sum(axis=0)).max()) <= ROUNDING


def scaled_gap(run, point, f):
    """The smallest gap of the dual points between the targets and the point's predictions.

    q + t (p - q) has t times the residuals, which dominate at weak penalties. Far from a solution a small t
    is better than 1; t = 0 gives the objective itself.
    """
    slopes = run.penalised(point.gradient)
    cost = run.dots((slopes, slopes))[0] / (2.0 * run.alpha)

    def gap(t):
        return f + run.loss.spread(point.R, t) + t * t * cost

    high = 1.0
    while gap(0.1 * high) < gap(high):
        high *= 0.1
    high = min(10.0 * high, 1.0)  # by convexity the minimum is not farther
    found = minimize_scalar(gap, bounds=(0.0, high), method="bounded", options={"xatol": 1e-3 * high})
    return max(min(float(found.fun), f), 0.0)
