"""L-BFGS with a diagonal, for smooth strongly convex functions of very many variables.

Nocedal, Wright, "Numerical Optimization" (2006), algorithm 7.4. The first matrix is a multiple of a given
diagonal: rare and frequent features then have steps of their own sizes.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.blas import daxpy, ddot
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from ..._solver.line_search import Trial, backtrack

_MESSAGES = outcome.messages(
    "the largest entry of the gradient is at most tol times that at zero",
    small_decrease="Converged: the objective hardly falls any more, or no step lowers it (it has kinks).",
)
# with kinks a run ends when so many steps have lowered the objective by less than tol times this share of it
_STEPS, _SHARE = 10, 1e-2
# without kinks the gap must be so many times tol relative to the objective: at weak penalties the gradient at
# zero is a large unit (as of OBA)
_GAP = 10.0
# Relative error of values from which the slope decides on a step.
_FLAT = 1e-10


@dataclass
class State:
    """A point, and the steps that led to it."""

    x: np.ndarray
    f: float
    g: np.ndarray
    diagonal: np.ndarray
    steps: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    products: list = field(default_factory=list)


def direction(state):
    """Minus the inverse matrix times the gradient, by the two loops."""
    q, parts = state.g.copy(), []
    for s, y, sy in zip(reversed(state.steps), reversed(state.changes), reversed(state.products)):
        a = ddot(s, q) / sy
        parts.append(a)
        daxpy(y, q, a=-a)
    if state.steps:
        y = state.changes[-1]
        q *= state.products[-1] / float(y @ (y / state.diagonal))
    q /= state.diagonal
    for s, y, sy, a in zip(state.steps, state.changes, state.products, reversed(parts)):
        daxpy(s, q, a=a - ddot(y, q) / sy)
    return np.negative(q, out=q)


def step(value_and_gradient, state, memory):
    """One step, in place; whether there was one."""
    d = direction(state)
    slope = float(state.g @ d)
    if not slope < 0.0:
        return False

    def evaluate(t):
        x = state.x + t * d
        f, g = value_and_gradient(x)
        return Trial(t, f, float(g @ d), (x, g))

    found = backtrack(evaluate, state.f, slope, flat=_FLAT * abs(state.f))
    if found is None:
        return False
    f, (x, g) = found.f, found.point
    s, y = x - state.x, g - state.g
    sy = float(s @ y)
    if sy > 1e-12 * np.sqrt(float(s @ s) * float(y @ y)):
        state.steps.append(s)
        state.changes.append(y)
        state.products.append(sy)
        if len(state.steps) > memory:
            for kept in (state.steps, state.changes, state.products):
                del kept[0]
    state.x, state.f, state.g = x, f, g
    return True


def look(state, nit, optimality, limits, lines, callback):
    """Note a step in the history and tell ``callback``; the status if the run ends by it, else None."""
    lines.add(limits.seconds, state.f, optimality)
    if not np.isfinite(state.f):
        return outcome.NOT_FINITE
    if callback is None:
        return None
    told = OptimizeResult(
        x=state.x.copy(), fun=state.f, nit=nit, optimality=optimality, nnz=int(np.count_nonzero(state.x)),
        time=limits.seconds,
    )  # fmt: skip
    return outcome.STOPPED if outcome.wants_to_stop(callback, told) else None


def _gap(state, modulus):
    """By how much f is too high at most: strong convexity."""
    return float(state.g @ state.g) / (2.0 * modulus)


def minimize(
    loss, x0, *, tol, max_iter, max_time, memory=10, modulus=1.0, kinks=False, callback=None, history=False
):
    """The minimiser of ``loss.value_and_gradient``.

    ``loss.curvature()`` is the diagonal, ``modulus`` the convexity, from which the gap follows:
    f(x) - min f <= |g|^2 / (2 modulus). With ``kinks`` gradients say little near the minimum, and the
    objective says when to stop.
    """
    limits = outcome.Limits(max_iter, np.inf if max_time is None else max_time)
    lines = outcome.History(("time", "fun", "optimality"), history)
    zero = np.zeros(loss.n_variables)
    f, g = loss.value_and_gradient(zero)
    unit = float(np.abs(g).max(initial=0.0)) or 1.0
    x = zero
    if x0 is not None:
        x = np.array(x0, dtype=np.float64)
        f, g = loss.value_and_gradient(x)
    state, nit, status = State(x, f, g, loss.curvature()), 0, None
    values = []
    while status is None:
        optimality = float(np.abs(state.g).max(initial=0.0)) / unit
        values.append(state.f)
        status = look(state, nit, optimality, limits, lines, callback)
        if status is not None:
            break
        if optimality <= tol and (kinks or _gap(state, modulus) <= _GAP * tol * abs(state.f)):
            status = outcome.CONVERGED
        elif kinks and nit >= _STEPS and values[-1 - _STEPS] - state.f <= _SHARE * tol * abs(state.f):
            status = outcome.SMALL_DECREASE
        elif (reached := limits.reached(nit)) is not None:
            status = reached
        elif step(loss.value_and_gradient, state, memory):
            nit += 1
        else:
            status = outcome.SMALL_DECREASE if kinks else outcome.NO_PROGRESS
    gap = np.nan if kinks else _gap(state, modulus)
    return OptimizeResult(
        x=state.x, fun=state.f, grad=state.g, nit=nit, nfev=loss.n_evaluations, status=status,
        message=_MESSAGES[status], success=status in outcome.SUCCESSES, optimality=optimality, dual_gap=gap,
        time=limits.seconds, history=lines.columns(),
    )  # fmt: skip
