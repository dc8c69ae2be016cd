"""Duality gaps of f(x) + sum_j l1_j |x_j| for losses of a linear predictor.

The dual point is theta = -dl/dz at the solution, made feasible: first |X_j^T theta| = 0 for
the unpenalised variables (a weighted least-squares correction), then scaled so that
|X_j^T theta| <= l1_j. The gap bounds f(x) - f(x*) from above.
"""

import numpy as np

from .._device import namespace, to_host
from .._linalg.extremes import largest

# unpenalised variables up to which their dense system is solved for a certificate
_MOST_FREE = 500


def duality_gap(loss, problem, x, l1, g, theta=None):
    """Primal minus dual value, >= 0 up to rounding; nan where the loss has no dual here.

    The dual point is made of the derivatives by row at x, or of ``theta`` (n_rows,), at a pass over X more.
    """
    problem = getattr(problem, "inner", problem)
    dual_value = getattr(loss, "dual_value", None)
    state = getattr(problem, "state", None)
    if dual_value is None or state is None:
        return np.nan
    theta, grad = (state.u, g) if theta is None else _with_gradient(problem, loss.in_domain(theta), g)
    free = np.flatnonzero(l1 == 0)
    if free.size:
        if hasattr(problem, "project_free"):
            theta, grad = problem.project_free(free, g)
        else:
            theta, grad = _project_free(problem, state.d, free, theta, grad)
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


def _with_gradient(problem, theta, like):
    grad = np.empty_like(like)
    problem.design.rmatvec(theta, grad[: problem.design.shape[1]])
    if problem.intercept:
        grad[-1] = theta.sum()
    return theta, grad


def _project_free(problem, curvature, free, theta, g):
    """theta with a zero gradient on ``free``; the correction is D A c, so it is small where
    the loss is flat and theta cannot leave the dual's box by much."""
    if np.max(np.abs(g[free])) == 0.0:
        return theta, g
    if len(free) > min(_MOST_FREE, len(theta)):
        return None, None
    solve, grad = _system_of(problem, curvature, free, namespace(g=g)), g
    for _ in range(3):
        # refined, since the model's copy of X may be float32
        theta, grad = _with_gradient(problem, theta - curvature * solve(grad[free]), g)
        # what remains on the free variables is rounding, or a singular H that cannot be mended
        if np.max(np.abs(grad[free])) <= 1e-10 * max(1.0, np.abs(theta).sum()):
            return theta, grad
    return None, None


def _system_of(problem, curvature, free, xp):
    """A function from the gradient of the ``free`` variables to their Newton step, in rows."""
    if len(free) == 1 and problem.intercept and int(free[0]) == problem.size - 1:
        total = float(curvature.sum())
        return lambda gradient: float(gradient[0]) / total if total > 0.0 else 0.0
    operator, move = problem.model(free, 0.0)
    # a small system: it is solved in main memory, wherever X is
    H = to_host(np.column_stack([operator.matvec(e) for e in xp.eye(len(free))]))
    return lambda gradient: move.direction(xp.asarray(np.linalg.lstsq(H, to_host(gradient), rcond=None)[0]))
