"""Likelihoods with an L1 penalty: OBA, with L-BFGS, in variables that a diagonal has scaled.

Rare and frequent features have curvatures that differ by orders of magnitude, and an L-BFGS matrix begins
with one for all. With s_j = d_j^(-1/2), d the loss's diagonal, and x = s z, OBA minimises

    f(s z) + sum_j l1 s_j |z_j| .

It stops when a model with the Hessian diag(d) predicts too small a reduction. With v the subgradient of least
norm at x, that is 1/2 sum_j v_j^2 / d_j <= tol times the objective. L-BFGS models predict a step's reduction,
and steps are many; the largest |v_j| says little of the objective. This number was 0.3 to 20 times what was
left on sets of 8 to 30 labels, from 1e-1 to 1e-7 of the objective.

Most coefficients of all pairs of features and labels are zero. OBA works on a set of variables, which grows
until the predicted reduction over all variables is small enough.
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
# Part of the penalty from which the gradient of a variable lets it into the working set. 16 fits to four sets
# take 1.05 times the evaluations with 0.8 and with 0.97.
NEAR = 0.9
# Part of the predicted reduction of all variables down to which those of the working set are solved. The 16
# fits take 1.07 times the evaluations with 0.03, 1.05 with 0.003, 1.01 with 0.001.
WORKING_TOL = 0.01


class ScaledLoss:
    """f(s z) on the ``variables`` (m,) of a loss of x (n,), the others zero; ``unit`` (m,) has their s.

    ``lipschitz`` is a bound of the gradient's Lipschitz constant, where one is known.
    """

    def __init__(self, loss, unit, variables, lipschitz=None):
        self._loss, self._unit = loss, unit
        self.variables, self.n_variables = variables, len(variables)
        self._problem = ScaledProblem(self, lipschitz)

    @property
    def lipschitz(self):
        """The bound, as runs have left it."""
        return self._problem.known_lipschitz

    def problem(self):
        return self._problem

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

    def __init__(self, loss, lipschitz):
        super().__init__(loss, False)
        self._lipschitz = lipschitz

    @property
    def known_lipschitz(self):
        return self._lipschitz

    def try_move(self, dz, x):
        # use x itself: the loss recognises its last point only, and the point plus dz rounds differently
        self._trial, self._trial_f = x.copy(), self._value(x)
        return self._trial_f if np.isfinite(self._trial_f) else np.inf


def unit_of(loss):
    """s (n,) of a loss with a ``curvature``."""
    diagonal = loss.curvature()
    # nearly zero features have hardly any curvature
    least = ROUNDING * float(diagonal.max(initial=0.0))
    return np.maximum(diagonal, least) ** -0.5 if least > 0.0 else np.ones(loss.n_variables)


class _WorkingSets:
    """Runs of OBA on one working set after another; ``measures`` are of the start and each iteration.

    A measure is of the working set alone where nobody sees it and the run goes on.
    """

    def __init__(self, loss, l1, x, tol, callback, history):
        self.loss, self.l1, self.x, self.tol, self.callback = loss, l1, x, tol, callback
        self.history, self.unit, self.lipschitz = history, unit_of(loss), None
        self.is_used, self.is_stopped = np.zeros(len(x), dtype=bool), False
        self.measures = [self.predict_reduction()]

    def predict_reduction(self, variables=slice(None)):
        """The reduction that a model with the Hessian diag(d) predicts at x, relative to the objective."""
        f, g = self.loss.value_and_gradient(self.x)
        fun = _penalised(f, self.x, self.l1)
        x, g, unit = self.x[variables], g[variables], self.unit[variables]
        v = np.where(x != 0.0, g + np.copysign(self.l1, x), np.maximum(np.abs(g) - self.l1, 0.0))
        predicted = 0.5 * float(np.sum((unit * v) ** 2))
        return predicted / fun if predicted > 0.0 else predicted

    @property
    def is_converged(self):
        return self.measures[-1] <= self.tol

    def is_near(self):
        """Whether each variable is not zero, or its gradient near where it leaves zero, (n,)."""
        return (self.x != 0.0) | (np.abs(self.loss.gradient(self.x)) > NEAR * self.l1)

    def goes_on(self, result):
        """Whether there is more to do after a run on a working set, of this result."""
        if self.is_converged or self.is_stopped:
            return False
        if result.status == outcome.NO_PROGRESS:
            return bool((self.is_near() & ~self.is_used).any())
        return result.status == outcome.STOPPED

    def run(self, limits):
        """OBA's result on a working set, which has all variables that are not zero or near to leave zero."""
        begun, nit = limits.seconds, len(self.measures) - 1
        self.is_used |= self.is_near()
        variables = np.flatnonzero(self.is_used)
        unit = self.unit[variables]
        scaled = ScaledLoss(self.loss, unit, variables, self.lipschitz)
        working_tol = max(self.tol, WORKING_TOL * self.measures[-1])

        def watch(report):
            self.x = scaled.point(report.x)
            measure = self.predict_reduction(variables)
            is_done = measure <= working_tol
            if is_done or self.history or self.callback is not None:
                measure = self.predict_reduction()
            self.measures.append(measure)
            if self.callback is not None:
                seen = {"x": self.x.copy(), "optimality": measure, "nit": len(self.measures) - 1}
                seen["time"] = begun + report.time
                self.is_stopped = outcome.wants_to_stop(self.callback, OptimizeResult(report, **seen))
            return is_done or self.is_stopped

        # `watch` ends the run, or it is done already
        options = OBAOptions(
            tol=np.inf if self.is_converged else 0.0, max_iter=max(limits.max_iter - nit, 0),
            max_time=max(limits.max_time - begun, 0.0), hessian="lbfgs",
        )  # fmt: skip
        result = minimize_oba(
            scaled, self.l1 * unit, self.x[variables] / unit, options=options, gap=False, callback=watch,
            history=self.history, unit=1.0,
        )  # fmt: skip
        self.lipschitz, self.x = scaled.lipschitz, scaled.point(result.x)
        self.measures[-1] = self.predict_reduction()
        if self.history:
            first = 1 if nit else 0  # where the last run ended
            result.history["time"] += begun
            result.history = {name: column[first:] for name, column in result.history.items()}
        return result


def minimize_scaled(loss, l1, x0, *, tol, max_iter, max_time, callback=None, history=False):
    """The minimiser of f(x) + l1 |x|_1 for a `ChainLoss`, by its own variables; ``grad`` is None."""
    limits = Limits(max_iter, np.inf if max_time is None else max_time)
    x, l1 = np.zeros(loss.n_variables), float(l1)
    f = loss.value(x)
    if x0 is not None and _penalised(loss.value(x0), x0, l1) <= f:
        x = np.array(x0, dtype=np.float64)
    sets, before = _WorkingSets(loss, l1, x, tol, callback, history), []
    result = sets.run(limits)
    while sets.goes_on(result):
        before.append(result)
        result = sets.run(limits)
    result = joined(before, result, history)
    result.x, result.grad, result.optimality = sets.x, None, sets.measures[-1]
    if sets.is_converged:
        result.status, result.success = outcome.CONVERGED, True
        result.message = _REACHED
    if history:
        result.history["optimality"] = np.array(sets.measures)
    return result


def _penalised(f, x, l1):
    return f + l1 * float(np.abs(x).sum())
