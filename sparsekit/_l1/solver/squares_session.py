"""Least squares in main memory: the session of row losses, an interior-point method and a linear system.

For least squares the quadratic model of OBA is the loss itself, so that one Hessian serves all points and
penalties. A single fit with many columns in use for the rows goes on by `interior_point`, also where OBA has
begun. A ridge without an L1 part is one linear system, `RidgeSystem`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..._cython.l1._squares import certify
from ..._linalg.prepared import Prepared
from ..._linalg.special import largest
from ..._solver import outcome
from ..._solver.tolerances import FORCING, GAP_FACTOR, ROUNDING
from .. import plan
from .interior import interior_point
from .newton_session import NewtonSession
from .ridge_squares import RidgeSystem, is_ridge
from .working_set import most_new, room_for_more


class SquaresSession(NewtonSession):
    """Solver of least squares with an elastic net, for one penalty after another.

    Parameters
    ----------
    loss : LeastSquaresLoss
        In main memory. With an intercept targets have the weighted mean zero.
    solver : {"auto", "gram", "interior"}
        "gram" keeps to the working set whatever it costs, "interior" begins with the interior-point method.
        Results have ``solver``, the names of those that ran: "newton", "gram", "interior" or "oba".
    is_path : bool
        Whether penalties follow each other, for which the interior-point method does not pay.
    """

    is_quadratic = True

    def __init__(self, loss, solver="auto", is_path=False):
        super().__init__(loss)
        self.solver, self.is_path, self.has_limits = solver, is_path, solver != "gram"
        entries = loss.design.nnz if loss.design.is_sparse else None
        self._has_all = plan.all_columns_fit(self.n, self.p, entries)
        self._can_use_interior = self._used_interior = self._has_free = False

    @cached_property
    def rows(self):
        """X and its weights."""
        loss = self.loss
        weight = loss.s if loss.s.size else None
        return Prepared(loss.design.X, weight, bool(loss.fit_intercept), loss.n_threads)

    @cached_property
    def _system(self):
        return RidgeSystem(self.rows, self.loss.y)

    def minimize(self, l1, x0=None, *, l2=None, tol, predicted_tol=0.0, **options):
        penalties, design = l1[: self.p], self.loss.design
        fits = self.has_limits and not self.is_path and plan.interior_fits(self.n, penalties, design.nnz)
        if self.solver == "interior" and not fits:
            if not (penalties > 0.0).all():
                raise ValueError(
                    "solver='interior' needs an L1 penalty of each feature; "
                    f"{np.count_nonzero(penalties == 0.0)} have none. Use solver='auto'."
                )
            most = max(plan.INTERIOR_ROWS, min(plan.MAX_SIDE, int(design.nnz**0.5)))
            raise ValueError(
                f"solver='interior' takes at most {most} rows of such an X, for its memory; got "
                f"{self.n}. Use solver='auto'."
            )
        self._can_use_interior, self._used_interior = fits, False
        bare = penalties == 0.0 if l2 is None else (penalties == 0.0) & (l2[: self.p] == 0.0)
        self._has_free = bool(bare.any())
        if predicted_tol:  # a bound of the gap, and the only one
            tol = min(tol, predicted_tol / GAP_FACTOR)
        return super().minimize(l1, x0, l2=l2, tol=tol, predicted_tol=predicted_tol, **options)

    def _first_multiplier(self):
        return 1.0 if self._has_all or self.is_path else np.inf

    def _is_near(self, run, fun, gap):
        return run.predicted_tol and gap is not None and gap <= run.predicted_tol * fun

    def _is_level_solved(self, run, multiplier):
        if not 1.0 < multiplier < np.inf:
            return True
        l1, l2 = multiplier * run.l1, multiplier * run.l2
        gap = self._cheap_gap(l1, l2)
        return gap is None or gap <= FORCING * self._objective(l1, l2)

    def _begin(self, run):
        l1, l2 = run.l1[: self.p], run.l2[: self.p]
        if self.positive or not is_ridge(l1, l2, self.n):
            return False
        run.nit += 1
        run.solver.append("newton")
        # without a ridge only the violation says how near a point is to the solution
        predicted = run.predicted_tol if l2.any() else 0.0
        violation, gap = np.inf if predicted else run.tol * self.unit, predicted or GAP_FACTOR * run.tol
        end = run.limits.start + run.limits.max_time
        w, is_solved = self._system.solve(self.x[: self.p], l2, violation, gap, end, self.unit)
        if not np.isfinite(w).all():
            return False
        self._move_to(w)
        self._report(self.x, run)
        return is_solved

    def _move_otherwise(self, run, is_continued=False, is_stuck=False):
        if not self._can_use_interior:
            return False
        n_used, l2 = int(np.count_nonzero(self.x[: self.p])), run.l2[: self.p]
        is_likely = is_continued and not self.positive and plan.has_many_active(self.n, n_used)
        takes_over = self.solver == "interior" or plan.interior_takes_over(
            self.n, n_used, run.nit, bool(l2.any()), is_stuck
        )
        if not is_likely and not takes_over:
            return False
        self._can_use_interior, self._used_interior = False, True
        run.solver.append("interior")
        before, fun = self.x, self._objective(run.l1, run.l2)
        w, nit = interior_point(
            self.rows, self.loss.y, run.l1[: self.p], l2, positive=self.positive,
            gap_tol=GAP_FACTOR * run.tol, max_iter=run.limits.max_iter - run.nit,
            end=run.limits.start + run.limits.max_time,
        )  # fmt: skip
        run.nit += nit
        self.hessian.clear()
        self._move_to(w)
        if not self._objective(run.l1, run.l2) <= fun:
            self._move_to(before[: self.p])
        self._report(self.x, run)
        return True

    def _go_on_by_oba(self, l1, l2, x0, run, options):
        """OBA. Where it comes to use too many columns the interior-point method and the session go on."""
        if not self._can_use_interior:
            return super()._go_on_by_oba(l1, l2, x0, run, options)
        takes_over, callback, has_ridge = False, options.get("callback"), bool(run.l2.any())

        def watch(report):
            nonlocal takes_over
            n_used = int(np.count_nonzero(report.x[: self.p]))
            is_crowded = plan.is_crowded(self.n, n_used, report.nit, has_ridge)
            stops = callback is not None and callback(report)
            takes_over = is_crowded and not stops
            return stops or takes_over

        result = super()._go_on_by_oba(l1, l2, x0, run, {**options, "callback": watch})
        if takes_over and result.status == outcome.STOPPED:
            self.hessian = self._new_hessian()
            result = self._solve(result.x, run)
            if result.status == outcome.NO_PROGRESS:
                self.hessian = None
                result = super()._go_on_by_oba(l1, l2, result.x, run, options)
        return result

    def _move_to(self, w):
        """Go to coefficients w (p,) and the best intercept."""
        x = np.zeros(len(self.x))
        x[: self.p] = w
        x[self.p :] = -self.rows.product(w)[1]
        self.problem.start(x)
        self.x, self.g = x, self.problem.gradient()

    def _cheap_gap(self, l1, l2):
        u, p = self.problem.state.u, self.p
        if self._has_free or (np.abs(self.g[p:]) > self._intercept_rounding()).any():
            return None
        half, along = self.problem.f, -float(u @ self.loss.y)
        return certify(self.x[:p], -self.g[:p], l1[:p], l2[:p], self.positive, half, along, 0.0)[1]

    def _is_rounding(self, run, violation, gap):
        # where y is fitted exactly the gap is rounding of its squares
        at_zero = 0.5 * float(self.rows.weighted(self.loss.y) @ self.loss.y)
        return violation <= run.tol * self.unit and gap <= ROUNDING * at_zero

    def _fits(self, columns):
        if self._used_interior:  # about as many columns as rows, whatever entries they have
            return plan.hessian_fits(len(columns), None)
        return self._has_all or super()._fits(columns)

    def _unit_of_tol(self):
        # the intercept is optimal up to rounding
        g = self.g if not self.x.any() else self.loss.gradient(np.zeros_like(self.x))
        return largest(np.abs(g[: self.p])) or 1.0

    def _measure(self, x, g, l1):
        if len(self.x) > self.p and abs(g[-1]) <= self._intercept_rounding():
            g[-1] = 0.0
        return super()._measure(x, g, l1)

    def _intercept_rounding(self):
        """The size of an intercept's gradient that is rounding."""
        return ROUNDING * float(np.abs(self.problem.state.u).sum())

    def _most_new(self, x, l2):
        n_used = int(np.count_nonzero(x))
        room = 0.0 if self.is_path else room_for_more(self.n, n_used, bool(l2.any()))
        return most_new(self.n, self.p, n_used, room)

    def _with_others(self, joins):
        size = len(self.hessian.columns) + len(joins)
        if not (self._has_all and len(joins) and size > plan.ALL_COLUMNS_PART * self.p):
            return joins
        self.hessian.clear()
        return np.arange(self.p)
