"""Row losses in main memory for one penalty after another, or one ridge: OBA, the Hessian reused.

For each penalty

1. columns that violate their optimality condition join a working set;
2. the loss is minimised over the working set, by Algorithm 1 of OBA [1]_ on quadratic models. Their Hessian
   is computed again only where actual and predicted reduction differ;
3. the gradient of all columns certifies the solution, or the next columns join.

The working set, its Hessian, the predictor and the gradient are reused from penalty to penalty. Where this
makes no progress `minimize_oba` goes on from the last point.

.. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
   Northwestern University, 2017, chapter 2.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult

from ..._cython.shared._orthant import measure
from ..._linalg.special import largest
from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..._solver.line_search import Trial, backtrack
from .. import plan
from ..losses.ridge import RidgeProblem
from ..losses.rounding import VALUE_ROUNDING
from .duality import duality_gap, tightened
from .globalise import MIN_STEP
from .gram_model import GramModel
from .least_squares_session import STEP
from .oba import minimize_oba, unit_of_tol
from .oba_run import CONVERGED_BY_PREDICTION, MAX_PREDICTION_ERROR, MESSAGES
from .working_hessian import WorkingHessian
from .working_set import PATIENCE, most_new

# A run ends where the predicted reduction is at most this part of predicted_tol: with an old Hessian more is
# left than the model predicts. Scores of folds are wrong by up to 0.8 % with 1, and by 0.15 % with 0.1.
PREDICTED_PART = 0.1


class NewtonSession:
    """Solver of f(x) + l1 . |x| + 1/2 l2 . x^2 for one penalty after another.

    Parameters
    ----------
    loss : LinearLoss
        In main memory, with second derivatives and a dual.
    """

    def __init__(self, loss):
        self.loss, self.problem, self.unit = loss, loss.problem(), None
        self.n, self.p = loss.design.shape
        self.x = self.g = self._last_l1 = None
        self.hessian = WorkingHessian(loss.design.private(), bool(loss.fit_intercept))
        self.model, self.predicted = GramModel(), np.inf

    def detach(self):
        """The Hessian, without X, for `attach` of a session of an equal loss; or None."""
        if self.hessian is not None:
            self.hessian.detach()
            self.hessian.is_new = False
        return self.hessian

    def attach(self, hessian):
        """Reuse the Hessian of a session that ended."""
        hessian.attach(self.loss.design.private())
        self.hessian = hessian

    def minimize(self, l1, x0=None, *, l2=None, max_time=None, unit=None, **options):
        """`minimize_oba` of the loss from x0 (n_variables,), by default from the last solution, or zero.

        ``unit`` is that of the tolerance, by default the last one, or `unit_of_tol`.
        """
        self.unit = self.unit if unit is None else unit
        options = {name: value for name, value in options.items() if name not in ("hessian", "memory")}
        ridge, run = np.zeros(len(l1)) if l2 is None else l2, _Run(max_time=max_time, **options)
        if self.hessian is not None:
            with np.errstate(over="ignore", invalid="ignore"), blas_threads(self.loss.blas_threads):
                result = self._solve(l1, ridge, x0, run)
            if result.status != outcome.NO_PROGRESS:
                return result
            self.hessian, x0 = None, result.x  # weaker penalties are left to OBA too
        left = None if max_time is None else max(max_time - run.limits.seconds, 1e-9)
        options["max_iter"] = max(options["max_iter"] - run.nit, 0)
        x0 = self.x if x0 is None else x0
        result = minimize_oba(self.loss, l1, x0, l2=l2, max_time=left, unit=self.unit, **options)
        self.x, result.nit = result.x, result.nit + run.nit
        return result

    def _solve(self, l1, l2, x0, run):
        level = l1
        if x0 is not None or self.x is None:
            self._go_to(np.zeros(len(l1)) if x0 is None else x0.copy())
        elif self._last_l1 is not None:
            level = np.clip(2.0 * l1 - self._last_l1, 0.0, l1)  # the sequential strong rule
        self._last_l1, run.l1, run.l2 = l1, l1, l2
        goal, gap_tol, message = run.tol * self.unit, 10.0 * run.tol, None
        multiplier, slow, best = np.inf, 0, np.inf
        while True:
            fun, gap = self._objective(l1, l2), None
            violation = measure(self.x, self.g + l2 * self.x, l1)
            run.least_reduction = PREDICTED_PART * run.predicted_tol * abs(fun)
            is_predicted = run.nit and multiplier == 1.0 and self.predicted <= run.least_reduction
            if run.status is None and is_predicted and not self._violation_outside(l1):
                run.status, message = outcome.CONVERGED, CONVERGED_BY_PREDICTION
            if run.status is None and violation <= goal:
                gap = self._gap(l1, l2)
                if not gap > gap_tol * abs(fun):
                    run.status = outcome.CONVERGED
                else:
                    goal = tightened(violation, gap_tol * abs(fun), gap)
            multiplier = self._next_multiplier(multiplier, l1)
            slow = 0 if violation < best or multiplier > 1.0 else slow + 1
            best = min(best, violation)
            run.check_limits()
            # what is left to other columns need not be known better than they are
            target = max(goal, STEP * self._violation_outside(multiplier * l1))
            if run.status is None and (slow > PATIENCE or not self._add_columns(l1, multiplier * level)):
                run.status = outcome.NO_PROGRESS
            if run.status is not None:
                break
            self._minimize_on_columns(multiplier * l1, multiplier * l2, target, run)
            self.g = self.problem.gradient(self.g)
            level = l1
        gap = self._gap(l1, l2) if gap is None else gap
        return OptimizeResult(
            x=self.x, fun=fun, nit=run.nit, status=run.status, success=run.status == outcome.CONVERGED,
            message=message or MESSAGES[run.status], optimality=violation / self.unit,
            dual_gap=0.0 if gap < 0.0 else gap,
        )  # fmt: skip

    def _go_to(self, x):
        """Start at x, or at zero where that is better."""
        at_zero = self.problem.start(np.zeros_like(x))
        if x.any() and not self.problem.start(x) <= at_zero:
            x = np.zeros_like(x)
            self.problem.start(x)
        self.x, self.g = x, self.problem.gradient()
        self.unit = unit_of_tol(self.loss, x, self.g) if self.unit is None else self.unit

    def _objective(self, l1, l2):
        return self.problem.f + _penalty(self.x, l1, l2)

    def _gap(self, l1, l2):
        problem = RidgeProblem(self.problem, l2, self.x) if l2.any() else self.problem
        return duality_gap(self.loss, problem, self.x, l1, self.g + l2 * self.x)

    def _next_multiplier(self, multiplier, l1):
        """The next penalty multiplier: a part of the last one, and of the one at which all stay at zero."""
        penalised = l1 > 0.0
        return max(1.0, STEP * min(multiplier, largest(np.abs(self.g[penalised]) / l1[penalised])))

    def _violation_outside(self, l1):
        """The largest violation of an optimality condition by a column outside the working set."""
        violations = np.abs(self.g[: self.p]) - l1[: self.p]
        return max(0.0, largest(violations[~self.hessian.is_used]))

    def _add_columns(self, l1, level):
        """Add the columns whose slopes exceed ``level``; whether that is within the limits of the plan."""
        x, slopes, l1, level = (values[: self.p] for values in (self.x, np.abs(self.g), l1, level))
        needed = ~self.hessian.is_used & ((x != 0.0) | (l1 == 0.0))
        joins = np.flatnonzero(needed | (~self.hessian.is_used & (slopes > level)))
        most = most_new(self.n, self.p, np.count_nonzero(x))
        if len(joins) > most:
            with np.errstate(divide="ignore"):
                ratios = np.where(needed[joins], np.inf, slopes[joins] / l1[joins])
            most = max(most, np.count_nonzero(needed))
            joins = np.sort(joins[np.argsort(-ratios, kind="stable")[:most]])
        if len(joins) or self.hessian.matrix is None:
            columns = np.concatenate([self.hessian.columns, joins])
            if not plan.hessian_fits(len(columns), self.hessian.count(columns)):
                return False
            self.hessian.add(joins, self.problem.state.d)
        return True

    def _minimize_on_columns(self, l1, l2, target, run):
        """Go to about the minimiser over the working set.

        It ends where the violation is at most ``target``, or where the predicted reduction is small.
        """
        hessian, state, variables = self.hessian, self.problem.state, self.hessian.variables
        l1, l2, g, x = l1[variables], l2[variables], self.g[variables], self.x[variables]
        m, self.predicted = len(hessian.columns), np.inf
        if not np.isfinite(hessian.matrix.diagonal()).all():
            run.status = outcome.NO_PROGRESS
        while True:
            violation = measure(x, g + l2 * x, l1)
            run.check_limits()
            if run.status is not None or violation <= target or self.predicted <= run.least_reduction:
                break
            before = self.problem.f + _penalty(x, l1, l2)
            new, predicted = self.model.minimize(hessian.matrix, x, g + l2 * x, l1, l2)
            step = new - x
            part, fall = self._line_search(x, step, before, predicted, l1, l2)
            if part is None or not predicted > 0.0:
                if hessian.is_new:
                    run.status = outcome.NO_PROGRESS
                    break
                hessian.renew(state.d)
                continue
            state.accept()
            x, hessian.is_new, self.predicted = x + part * step, False, predicted
            run.nit += 1
            g[:m] = hessian.part.rmatvec(state.u)
            g[m:] = state.u.sum()
            if abs(fall - predicted) > max(MAX_PREDICTION_ERROR * predicted, VALUE_ROUNDING * abs(before)):
                hessian.renew(state.d)
            if run.callback is not None:
                self._report(self._whole(variables, x), run)
        if len(x) > m and (curvature := float(state.d.sum())) > 0.0:
            # a dual point needs an intercept that is optimal up to rounding
            step = -float(state.u.sum()) / curvature
            if state.try_step(np.full(self.n, step)) <= self.problem.f:
                state.accept()
                x[m] += step
        self.x = self._whole(variables, x)

    def _report(self, x, run):
        """Show the callback an iterate, which may end the run; its optimality is that of the working set."""
        variables, u = self.hessian.variables, self.problem.state.u
        fun = self.problem.f + _penalty(x, run.l1, run.l2)
        g = np.append(self.hessian.part.rmatvec(u), u.sum())[: len(variables)]
        violation = measure(x[variables], g + (run.l2 * x)[variables], run.l1[variables])
        current = OptimizeResult(
            x=x, fun=fun, nit=run.nit, optimality=violation / self.unit, nnz=int(np.count_nonzero(x)),
            time=run.limits.seconds,
        )  # fmt: skip
        if outcome.wants_to_stop(run.callback, current):
            run.status = outcome.STOPPED

    def _whole(self, variables, x):
        whole = np.zeros(len(self.x))
        whole[variables] = x
        return whole

    def _line_search(self, x, step, before, predicted, l1, l2):
        """The step size, 1, 1/2, ..., and the reduction of the objective; None and 0 where every size fails.

        The trial point of the state is that of the step size.
        """
        m, state = len(self.hessian.columns), self.problem.state
        move = self.hessian.part.matvec(step[:m])
        if len(step) > m:
            move += step[m]

        def evaluate(t):
            return Trial(t, state.try_step(move, t) + _penalty(x + t * step, l1, l2))

        found = backtrack(
            evaluate, before, -predicted, rounding=VALUE_ROUNDING * abs(before),
            shrink=(0.5, 0.5), min_t=MIN_STEP,
        )  # fmt: skip
        return (None, 0.0) if found is None else (found.t, before - found.f)


class _Run:
    """Limits, callback and counter of one penalty."""

    def __init__(self, *, tol, max_iter, max_time=None, predicted_tol=0.0, callback=None):
        self.tol, self.predicted_tol, self.callback = tol, predicted_tol, callback
        self.limits = outcome.Limits(max_iter, np.inf if max_time is None else max_time)
        self.nit, self.status, self.least_reduction = 0, None, 0.0
        self.l1 = self.l2 = None

    def check_limits(self):
        """Set the status where a limit is reached."""
        if self.status is None:
            self.status = self.limits.reached(self.nit)


def _penalty(x, l1, l2):
    return float(l1 @ np.abs(x)) + 0.5 * float(x @ (l2 * x))
