"""L-BFGS in scaled variables, for smooth strongly convex functions of very many variables.

Nocedal, Wright, "Numerical Optimization" (2006), algorithm 7.5, with the compact matrix of `Pairs`. With d a
diagonal of the loss, z = d^(1/2) x: rare and frequent features then have steps of their own sizes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ..._linalg import lbfgs
from ..._solver import outcome
from ..._solver.line_search import Trial, backtrack
from ..._solver.tolerances import FTOL_WINDOW, GAP_FACTOR, ROUNDING

_MESSAGES = outcome.messages(
    "the largest entry of the gradient is at most tol times that at zero",
    small_decrease="Converged: the objective hardly falls any more, or no step lowers it (it has kinks).",
)


@dataclass
class State:
    """A point x, f and its gradient there, and the pairs of steps in z = x / unit that led to it.

    ``theta`` is the scale of the L-BFGS matrix, y.y / s.y of the newest pair.
    """

    x: np.ndarray
    f: float
    g: np.ndarray
    unit: np.ndarray
    z: np.ndarray
    pairs: Any
    theta: float = 1.0


def init_state(x, f, g, diagonal, memory):
    """The state before the first step; ``diagonal`` is that of the loss."""
    unit = diagonal**-0.5
    pairs = lbfgs.new_pairs(len(x), memory, x)
    pairs.set_free(np.ones(len(x), dtype=np.uint8))
    return State(x, f, g, unit, x / unit, pairs)


def direction(state):
    """Minus the inverse L-BFGS matrix times the gradient; along the scaled gradient where there is no pair.

    None where the matrix is singular by rounding.
    """
    slope = state.unit * state.g
    if not len(state.pairs):
        return state.unit * -slope
    p = np.empty_like(slope)
    return state.unit * p if state.pairs.direction(slope, state.theta, p) else None


def step(value_and_gradient, state):
    """One step, in place; whether there was one.

    If the pairs give no descent, they are dropped and the step follows the scaled gradient. Near the minimum,
    and at kinks, pairs are dependent up to rounding.
    """
    while True:
        found = _line_search(value_and_gradient, state, direction(state))
        if found is not None:
            break
        if not len(state.pairs):
            return False
        state.pairs.clear()
    x, g = found.point
    z = x / state.unit
    if lbfgs.add_pair(state.pairs, state.z, z, state.unit * state.g, state.unit * g):
        state.theta = lbfgs.scale(state.pairs)
    state.x, state.f, state.g, state.z = x, found.f, g, z
    return True


def _line_search(value_and_gradient, state, d):
    slope = np.nan if d is None else float(state.g @ d)
    if not slope < 0.0:
        return None

    def evaluate(t):
        x = state.x + t * d
        f, g = value_and_gradient(x)
        return Trial(t, f, float(g @ d), (x, g))

    # below rounding the slope decides on a step, not the value
    return backtrack(evaluate, state.f, slope, flat=ROUNDING * abs(state.f))


def record_step(state, nit, optimality, progress):
    """Report a step; the status if the run ends by it, else None."""
    if not np.isfinite(state.f):
        progress.history.add(progress.limits.seconds, state.f, optimality)
        return outcome.NOT_FINITE
    return outcome.STOPPED if progress.report(state.x, state.f, nit, optimality) else None


def _gap(state, modulus):
    """By how much f is too high at most: strong convexity."""
    return float(state.g @ state.g) / (2.0 * modulus)


def has_stalled(values, least):
    """Whether the last iterations have decreased the objective by at most ``least``."""
    return len(values) > FTOL_WINDOW and values[-1 - FTOL_WINDOW] - values[-1] <= least


def minimize(
    loss, x0, *, tol, max_iter, max_time, memory=10, modulus=1.0, kinks=False, callback=None, history=False
):
    """The minimiser of ``loss.value_and_gradient``.

    ``loss.curvature()`` is the diagonal, ``modulus`` the convexity, from which the gap follows:
    f(x) - min f <= |g|^2 / (2 modulus). With ``kinks`` gradients say little near the minimum, and the
    objective says when to stop.
    """
    progress = outcome.Progress.of_call(max_iter, max_time, callback, history)
    zero = np.zeros(loss.n_variables)
    f, g = loss.value_and_gradient(zero)
    unit = float(np.abs(g).max(initial=0.0)) or 1.0
    x = zero
    if x0 is not None:
        x = np.array(x0, dtype=np.float64)
        f, g = loss.value_and_gradient(x)
    state, nit, status = init_state(x, f, g, loss.curvature(), memory), 0, None
    values = []
    while status is None:
        optimality = float(np.abs(state.g).max(initial=0.0)) / unit
        values.append(state.f)
        status = record_step(state, nit, optimality, progress)
        if status is not None:
            break
        if optimality <= tol and (kinks or _gap(state, modulus) <= GAP_FACTOR * tol * abs(state.f)):
            status = outcome.CONVERGED
        elif kinks and has_stalled(values, tol * abs(state.f)):
            status = outcome.SMALL_DECREASE
        elif (reached := progress.limits.reached(nit)) is not None:
            status = reached
        elif step(loss.value_and_gradient, state):
            nit += 1
        else:
            status = outcome.SMALL_DECREASE if kinks else outcome.NO_PROGRESS
    gap = np.nan if kinks else _gap(state, modulus)
    return OptimizeResult(
        x=state.x, fun=state.f, grad=state.g, nit=nit, nfev=loss.n_evaluations, status=status,
        message=_MESSAGES[status], success=status in outcome.SUCCESSES, optimality=optimality, dual_gap=gap,
        time=progress.limits.seconds, history=progress.history.columns(),
    )  # fmt: skip
