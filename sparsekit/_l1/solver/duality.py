"""Duality gaps of f(x) + sum_j l1_j |x_j| + l2_j / 2 x_j^2 for losses of a linear predictor.

The dual point is theta = dl/dz at the solution, made feasible. First X_j^T theta = 0 for the variables
without a penalty, by a weighted least-squares correction; what it leaves raises the gap. Then theta is scaled
so that |X_j^T theta| <= l1_j where there is no ridge. Where there is one any theta is feasible, at the price
of the conjugate of l1 |x| + l2/2 x^2, max(|X_j^T theta| - l1_j, 0)^2 / (2 l2_j). The gap bounds the objective
at x less the least one from above. Where a loss is never below a number, so is the optimum: such losses have
it as ``lower_bound``.
"""

import numpy as np

from ..._linalg.special import largest
from .face_points import face_points


def duality_gap(loss, problem, x, l1, g, allowed=np.inf, products=0):
    """Primal minus dual value, >= 0 up to rounding; nan where the loss has no dual here.

    Infinite where no dual point was found, and the loss has no ``lower_bound``.

    The dual point is made of the derivatives by row at x. Where the gap is above the ``allowed`` one,
    `face_points` are tried too, if they cost at most about as much as ``products`` with X.
    """
    inner, primal = problem.inner, problem.f + l1 @ np.abs(x)
    # a user's loss may have a dual, and need not
    if getattr(loss, "dual_value", None) is None or inner.state is None:
        return np.nan
    l2 = np.zeros_like(l1) if problem.l2 is None else problem.l2
    free = np.flatnonzero((l1 == 0) & (l2 == 0))

    def gap_at(theta, grad):
        price = 0.0
        if free.size:
            theta, grad, _, price = inner.project_free(free, theta, grad, x)
            if theta is None:
                return gap_of(loss, primal, -np.inf)
        dual = dual_with_ridge(lambda scale: loss.dual_value(scale * theta), grad, l1, l2)
        return np.nan if dual is None else gap_of(loss, primal, dual - price)

    grad = g - l2 * x
    gap = gap_at(inner.state.u, grad)
    if gap > allowed:
        for point in face_points(loss, problem, x, l1, l2, grad, products):
            gap = min(gap, gap_at(*point))
            if gap <= allowed:
                break
    return gap


def gap_of(loss, primal, dual):
    """``primal`` less a dual value or the loss' lower bound, whichever is larger; inf without either."""
    least = max(float(dual), getattr(loss, "lower_bound", -np.inf))
    return float(primal - least) if np.isfinite(least) else np.inf


def dual_with_ridge(dual_value, grad, l1, l2):
    """The largest dual value found at multiples of theta: ``dual_value(scale)`` less the ridge's conjugate.

    ``grad`` is X^T theta, zero on variables without a penalty. None where there is no dual.
    """
    size, curved = np.abs(grad), l2 > 0
    hard = (l1 > 0) & ~curved
    most = 1.0 / max(1.0, largest(size[hard] / l1[hard]))
    soft = (l1 > 0) & curved
    least = min(most, 1.0 / max(1.0, largest(size[soft] / l1[soft])))
    best = -np.inf
    # a weak ridge has a large conjugate, and theta is better where it needs none
    for scale in {most, least}:
        dual = dual_value(scale)
        if dual is None:
            return None
        beyond = np.maximum(scale * size[curved] - l1[curved], 0.0)
        best = max(best, float(dual) - 0.5 * float(beyond @ (beyond / l2[curved])))
    return best


def tightened(optimality, allowed, gap):
    """The next optimality to reach where the gap is above the ``allowed`` one: it falls as fast or faster."""
    return optimality * min(0.5, max(0.01, 0.5 * allowed / gap))
