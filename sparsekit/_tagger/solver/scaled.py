"""Likelihoods with an L1 penalty: OBA, with L-BFGS, in variables that a diagonal has scaled.

Rare and frequent features have curvatures that differ by orders of magnitude, and an L-BFGS matrix begins
with one for all. With s_j = d_j^(-1/2), d the loss's diagonal, and x = s z, OBA minimises

    f(s z) + sum_j l1 s_j |z_j| .

It stops when a model with the Hessian diag(d) predicts too small a reduction. With v the subgradient of least
norm at x, that is 1/2 sum_j v_j^2 / d_j <= tol times the objective. L-BFGS models predict a step's reduction,
and steps are many; the largest |v_j| says little of the objective. This number was 0.3 to 20 times what was
left on sets of 8 to 30 labels, from 1e-1 to 1e-7 of the objective.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._l1.losses.user_problem import ProtocolProblem
from ..._l1.solver.oba import minimize_oba
from ..._l1.solver.oba_run import OBAOptions
from ..._solver import outcome
from ..._solver.tolerances import ROUNDING

_REACHED = "Converged: the predicted reduction is at most tol times the objective."


class ScaledLoss:
    """f(s z) for a loss of x."""

    def __init__(self, loss):
        self._loss, self.n_variables = loss, loss.n_variables
        diagonal = loss.curvature()
        # nearly zero features have hardly any curvature
        least = ROUNDING * float(diagonal.max(initial=0.0))
        self.unit = np.maximum(diagonal, least) ** -0.5 if least > 0.0 else np.ones(self.n_variables)

    def problem(self):
        return ScaledProblem(self, False)

    def value(self, z):
        return self._loss.value(self.unit * z)

    def gradient(self, z):
        return self.unit * self._loss.value_and_gradient(self.unit * z)[1]


class ScaledProblem(ProtocolProblem):
    """The problem of a `ScaledLoss`."""

    def try_move(self, dz, x):
        # use x itself: the loss recognises its last point only, and the point plus dz rounds differently
        self._trial, self._trial_f = x.copy(), self._value(x)
        return self._trial_f if np.isfinite(self._trial_f) else np.inf


def minimize_scaled(loss, l1, x0, *, tol, max_iter, max_time, callback=None, history=False):
    """The minimiser of f(x) + l1 |x|_1 for a `ChainLoss`; the result's values are those of x."""
    scaled = ScaledLoss(loss)
    s, weights = scaled.unit, np.full(loss.n_variables, float(l1))
    x, measures, reached = np.zeros(loss.n_variables), [], False
    f, _ = loss.value_and_gradient(x)
    if x0 is not None and _penalised(loss.value(x0), x0, l1) <= f:
        x = np.array(x0, dtype=np.float64)

    def watch(report):
        nonlocal reached
        x = s * report.x
        measures.append(_predicted(loss, x, l1, s))
        reached = measures[-1] <= tol
        if callback is None:
            return reached
        told = OptimizeResult(report, x=x, optimality=measures[-1])
        return outcome.wants_to_stop(callback, told) or reached

    measures.append(_predicted(loss, x, l1, s))
    # `watch` ends the run of z, or it is done already
    own = 0.0 if measures[0] > tol else np.inf
    options = OBAOptions(
        tol=own, max_iter=max_iter, max_time=np.inf if max_time is None else max_time, hessian="lbfgs"
    )  # fmt: skip
    result = minimize_oba(
        scaled, weights * s, x / s, options=options, gap=False, callback=watch, history=history
    )
    result.x, result.optimality = s * result.x, measures[-1]
    if reached:
        result.status, result.success = outcome.CONVERGED, True
        result.message = _REACHED
    if history:
        result.history["optimality"] = np.array(measures)
    return result


def _predicted(loss, x, l1, s):
    """The reduction that a model with the Hessian diag(1 / s^2) predicts at x, relative to the objective."""
    f, g = loss.value_and_gradient(x)
    v = np.where(x != 0.0, g + np.copysign(l1, x), np.maximum(np.abs(g) - l1, 0.0))
    predicted = 0.5 * float(np.sum((s * v) ** 2))
    return predicted / _penalised(f, x, l1) if predicted > 0.0 else predicted


def _penalised(f, x, l1):
    return f + l1 * float(np.abs(x).sum())
