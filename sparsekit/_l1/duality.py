"""Duality gaps of f(x) + sum_j l1_j |x_j| for losses of a linear predictor.

The dual point is theta = -dl/dz at the solution, made feasible: first |X_j^T theta| = 0 for
the unpenalised variables (a weighted least-squares correction), then scaled so that
|X_j^T theta| <= l1_j. The gap bounds f(x) - f(x*) from above.
"""

import numpy as np

from .._linalg.special import largest


def duality_gap(loss, problem, x, l1, g, theta=None):
    """Primal minus dual value, >= 0 up to rounding; nan where the loss has no dual here.

    The dual point is made of the derivatives by row at x, or of ``theta`` (n_rows,), at a pass over X more.
    """
    problem = problem.inner
    state = problem.state
    # a user's loss may have a dual, and need not
    dual_value = getattr(loss, "dual_value", None)
    if dual_value is None or state is None:
        return np.nan
    grad = g
    if theta is None:
        theta = state.u
    else:
        theta = loss.in_domain(theta)
        grad = problem.gradient_of(theta)
    free = np.flatnonzero(l1 == 0)
    if free.size:
        theta, grad, _ = problem.project_free(free, theta, grad)
        if theta is None:
            return np.inf
    penalised = l1 > 0
    ratio = largest(np.abs(grad[penalised]) / l1[penalised])
    theta = theta / max(1.0, ratio)
    dual = dual_value(theta)
    if dual is None:
        return np.nan
    primal = state.f + l1 @ np.abs(x)
    return float(primal - dual) if np.isfinite(dual) else np.inf
