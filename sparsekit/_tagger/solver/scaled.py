"""Likelihoods with an L1 penalty: OBA, with L-BFGS, in variables that a diagonal has scaled.

Rare and frequent features have curvatures that differ by orders of magnitude, and an L-BFGS matrix begins
with one for all. With s_j = d_j^(-1/2), d the loss's diagonal, and x = s z, OBA minimises

    f(s z) + sum_j l1 s_j |z_j| .

It stops when a model with the Hessian diag(d) predicts too small a reduction. With v the subgradient of least
norm at x, that is 1/2 sum_j v_j^2 / d_j <= tol times the objective. L-BFGS models predict a step's reduction,
and steps are many; the largest |v_j| says little of the objective. This number was 0.3 to 20 times what was
left on sets of 8 to 30 labels, from 1e-1 to 1e-7 of the objective.

Most coefficients of all pairs of features and labels are zero. OBA has a working set of variables, which
grows until the number of all of them is small enough.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._l1.losses.user_problem import ProtocolProblem
from ..._l1.solver.oba import joined, minimize_oba
from ..._l1.solver.oba_run import OBAOptions
from ..._solver import outcome
from ..._solver.outcome import Limits
from ..._solver.tolerances import ROUNDING

_REACHED = "Converged: the predicted reduction is at most tol times the objective."
# Part of the penalty that the gradient of a variable exceeds to join.
NEAR = 0.9
# Part of the predicted reduction of all variables at which those of the working set are solved.
ROUND_TOL = 0.01


class ScaledLoss:
    """f(s z) on the ``variables`` (m,) of a loss of x (n,), the others zero.

    Attributes
    ----------
    unit : ndarray of shape (n,)
        s.
    lipschitz : float
        What runs have found of the gradient's Lipschitz constant.
    """

    def __init__(self, loss):
        self._loss, self.lipschitz = loss, None
        diagonal = loss.curvature()
        # nearly zero features have hardly any curvature
        least = ROUNDING * float(diagonal.max(initial=0.0))
        self.unit = np.maximum(diagonal, least) ** -0.5 if least > 0.0 else np.ones(loss.n_variables)
        self.take(np.arange(loss.n_variables))

    def take(self, variables):
        """Go on with these variables."""
        self.variables, self.n_variables = variables, len(variables)
        self._unit = self.unit[variables]

    def problem(self):
        return ScaledProblem(self, False)

    def point(self, z):
        """x (n,)."""
        x = np.zeros(self._loss.n_variables)
        x[self.variables] = self._unit * z
        return x

    def value(self, z):
        return self._loss.value(self.point(z))

    def gradient(self, z):
        return self._unit * self._loss.value_and_gradient(self.point(z))[1][self.variables]


class ScaledProblem(ProtocolProblem):
    """The problem of a `ScaledLoss`."""

    def try_move(self, dz, x):
        # use x itself: the loss recognises its last point only, and the point plus dz rounds differently
        self._trial, self._trial_f = x.copy(), self._value(x)
        return self._trial_f if np.isfinite(self._trial_f) else np.inf

    def bound(self):
        if self.loss.lipschitz is None:
            self.loss.lipschitz = super().bound()
        return self.loss.lipschitz

    def raise_lipschitz(self):
        self.loss.lipschitz = super().raise_lipschitz()
        return self.loss.lipschitz


class _Rounds:
    """Runs of OBA on one working set after another; ``measures`` are of the start and each iteration."""

    def __init__(self, loss, l1, x, tol, callback):
        self.loss, self.l1, self.x, self.tol, self.callback = loss, l1, x, tol, callback
        self.scaled, self.is_used, self.is_stopped = ScaledLoss(loss), np.zeros(len(x), dtype=bool), False
        self.measures = [self._predicted()]

    def _predicted(self, variables=slice(None)):
        """The reduction that a model with the Hessian diag(d) predicts at x, relative to the objective."""
        f, g = self.loss.value_and_gradient(self.x)
        fun = _penalised(f, self.x, self.l1)
        x, g, unit = self.x[variables], g[variables], self.scaled.unit[variables]
        v = np.where(x != 0.0, g + np.copysign(self.l1, x), np.maximum(np.abs(g) - self.l1, 0.0))
        predicted = 0.5 * float(np.sum((unit * v) ** 2))
        return predicted / fun if predicted > 0.0 else predicted

    @property
    def is_converged(self):
        return self.measures[-1] <= self.tol

    def run(self, limits, history):
        """OBA's result on a working set, which has all variables that are not zero or may leave it."""
        scaled, begun = self.scaled, limits.seconds
        self.is_used |= (self.x != 0.0) | (np.abs(self.loss.gradient(self.x)) > NEAR * self.l1)
        scaled.take(np.flatnonzero(self.is_used))
        unit, nit = scaled.unit[scaled.variables], len(self.measures) - 1
        round_tol = max(self.tol, ROUND_TOL * self.measures[-1])

        def watch(report):
            self.x = scaled.point(report.x)
            measure = self._predicted(scaled.variables)
            is_done = measure <= round_tol
            self.measures.append(self._predicted() if is_done else measure)
            if self.callback is not None:
                seen = {"x": self.x.copy(), "optimality": self.measures[-1], "nit": len(self.measures) - 1}
                seen["time"] = begun + report.time
                self.is_stopped = outcome.wants_to_stop(self.callback, OptimizeResult(report, **seen))
            return is_done or self.is_stopped

        # `watch` ends the run, or it is done already
        options = OBAOptions(
            tol=np.inf if self.is_converged else 0.0, max_iter=max(limits.max_iter - nit, 0),
            max_time=max(limits.max_time - begun, 0.0), hessian="lbfgs",
        )  # fmt: skip
        result = minimize_oba(
            scaled, self.l1 * unit, self.x[scaled.variables] / unit, options=options, gap=False,
            callback=watch, history=history, unit=1.0,
        )  # fmt: skip
        if history:
            first = 1 if nit else 0  # where the last run ended
            result.history["time"] += begun
            result.history = {name: column[first:] for name, column in result.history.items()}
        return result


def minimize_scaled(loss, l1, x0, *, tol, max_iter, max_time, callback=None, history=False):
    """The minimiser of f(x) + l1 |x|_1 for a `ChainLoss`; the result's values are those of x."""
    limits = Limits(max_iter, np.inf if max_time is None else max_time)
    x, l1 = np.zeros(loss.n_variables), float(l1)
    f = loss.value(x)
    if x0 is not None and _penalised(loss.value(x0), x0, l1) <= f:
        x = np.array(x0, dtype=np.float64)
    rounds, before = _Rounds(loss, l1, x, tol, callback), []
    result = rounds.run(limits, history)
    while result.status == outcome.STOPPED and not (rounds.is_converged or rounds.is_stopped):
        before.append(result)
        result = rounds.run(limits, history)
    result = joined(before, result, history)
    result.x, result.optimality = rounds.scaled.point(result.x), rounds.measures[-1]
    if rounds.is_converged:
        result.status, result.success = outcome.CONVERGED, True
        result.message = _REACHED
    if history:
        result.history["optimality"] = np.array(rounds.measures)
    return result


def _penalised(f, x, l1):
    return f + l1 * float(np.abs(x).sum())
