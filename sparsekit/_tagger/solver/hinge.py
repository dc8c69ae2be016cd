"""The structured hinge loss by smoothing: a support vector machine over labellings.

The smooth problem of `HingeLoss` is minimised by L-BFGS, the temperature lowered, and so on (Nesterov,
"Smooth minimization of non-smooth functions", 2005). Its dual certifies the result.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from ..._solver.tolerances import FORCING, ROUNDING
from .lbfgs import init_state, record_step, step

# Factor of the temperature from one continuation step to the next.
COOLING = 0.1
# Largest relative gap in units of tol: smaller gaps take many more steps and change no labels.
HINGE_GAP_FACTOR = 100.0

_MESSAGES = outcome.messages("the duality gap is at most a hundred times tol times the objective")


def minimize_hinge(loss, x0, *, tol, max_iter, max_time, memory=10, callback=None, history=False):
    """The minimiser of a `HingeLoss` without its smoothing.

    ``optimality`` is a hundredth of the gap relative to the objective. While it runs, ``fun`` is the smooth
    value, which is an upper bound.
    """
    progress = outcome.Progress.of_call(max_iter, max_time, callback, history)
    x = np.zeros(loss.n_variables) if x0 is None else np.array(x0, dtype=np.float64)
    f, g = loss.value_and_gradient(x)
    state = init_state(x, f, g, loss.curvature(), memory)
    # no objective is below 0, which is attained where there is one label
    dual, least, found, nit, status = 0.0, np.inf, x, 0, None
    while status is None:  # a continuation step
        left = True
        while True:
            dual = max(dual, loss.dual(state.x, state.g))
            optimality = _optimality(state.f, dual)
            status = record_step(state, nit, optimality, progress)
            if status is None:
                status = outcome.CONVERGED if optimality <= tol else progress.limits.reached(nit)
            inner = 0.5 * float(state.g @ state.g)
            if status is not None or not left or inner <= FORCING * (state.f - dual):
                break
            left = step(loss.value_and_gradient, state)
            if left:
                nit += 1
            else:  # the last trial was at another point
                loss.cool(loss.temperature)
                state.f, state.g = loss.value_and_gradient(state.x)
        value = state.f - loss.excess()
        if not value >= least:
            least, found = value, state.x
        if status is None and _optimality(least, dual) <= tol:
            status = outcome.CONVERGED
        elif status is None and loss.temperature <= ROUNDING:  # a cost is 1 a position
            status = outcome.NO_PROGRESS
        elif status is None:
            loss.cool(COOLING * loss.temperature)
            state.f, state.g = loss.value_and_gradient(state.x)
    return OptimizeResult(
        x=found, fun=least, nit=nit, nfev=loss.n_evaluations, status=status, message=_MESSAGES[status],
        success=status in outcome.SUCCESSES, optimality=_optimality(least, dual),
        dual_gap=max(least - dual, 0.0), time=progress.limits.seconds, history=progress.history.columns(),
    )  # fmt: skip


def _optimality(value, dual):
    gap = max(value - dual, 0.0)
    return gap / (HINGE_GAP_FACTOR * abs(value)) if gap > 0.0 else 0.0
