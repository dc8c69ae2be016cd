"""Least squares with an elastic net: OBA on a Gram matrix of the columns in use, refined by exact gradients.

For least squares the quadratic model of OBA is the loss itself. Each round

1. adds the columns that violate their optimality condition to the working set, and their sums of products to
   its Gram matrix;
2. runs Algorithm 1 of OBA on this set [1]_;
3. computes the gradient of all columns from X in double precision, which certifies the solution or starts the
   next round. It also corrects what rounding of the Gram matrix left: rounds are proximal Newton steps.

A problem whose working set grows beyond the limits of `plan`, or on which rounding leaves no progress, ends
unsolved: see `least_squares_session`.

.. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
   Northwestern University, 2017, chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from ..._cython.l1._squares import certify
from ..._linalg.prepared import Prepared
from ..._linalg.special import largest
from ..._linalg.threads import blas_threads
from ..._solver import outcome
from .. import plan
from ..losses.rounding import GAP_ROUNDING, GRADIENT_ROUNDING, VALUE_ROUNDING
from .gram_model import GramModel
from .interior import interior_point
from .nonnegative import one_sided
from .oba_run import MESSAGES
from .ridge_squares import RidgeSystem, is_ridge
from .working_gram import WorkingGram
from .working_set import PATIENCE


@dataclass
class Goal:
    """Largest violation and relative duality gap at which a solve ends, and the time when it has to."""

    violation: float
    gap: float
    end: float

    def is_met(self, fun, gap, violation):
        """Whether a point with these is a solution."""
        return violation <= self.violation and gap <= self.gap * fun < np.inf


class LeastSquares:
    r"""Solver of an elastic net of least squares for one penalty after another.

    .. math:: \tfrac12 \sum_i s_i (y_i - b - x_i^T w)^2 + \sum_j l_{1j} |w_j| + \tfrac{l_{2j}}{2} w_j^2

    Parameters
    ----------
    X : {ndarray, CSR or CSC matrix} of shape (n, p), float32 or float64
    y : ndarray of shape (n,)
        Targets, of weighted mean zero where there is an intercept.
    s : ndarray of shape (n,) or None
        Weights of the rows; None means ones.
    fit_intercept : bool
        Whether the variables end with an intercept; y's mean is not in it.
    n_threads : int
    positive : bool
        Whether coefficients must be >= 0.
    has_limits : bool
        Whether the limits of the plan hold for the working set, and the interior-point method may follow it.
    """

    def __init__(self, X, y, s, fit_intercept, n_threads=1, positive=False, has_limits=True):
        self.rows = Prepared(X, s, fit_intercept, n_threads)
        self.y, self.fit_intercept, self.positive = y, fit_intercept, positive
        self.n_threads, self.p, self.has_limits = n_threads, X.shape[1], has_limits
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = self.rows.weighted(y)
            self.gradient_at_zero = self.rows.transposed_product(weighted)
            self.value_at_zero = 0.5 * float(weighted @ y)
        self.origin_scale = largest(np.abs(self.gradient_at_zero)) or 1.0
        self.working, self._model = WorkingGram(self.rows, has_limits), GramModel(positive)
        self._system = None
        self.go_to(np.zeros(self.p))

    def release(self):
        """Free the working set and the buffers of products."""
        self.working.clear()
        self.rows.design = self.rows.design.private()

    def detach(self):
        """The working set, without X, for `attach` of a solver of an equal problem."""
        self.working.detach()
        return self.working

    def attach(self, working):
        """Reuse the working set of a solver that ended."""
        working.attach(self.rows)
        self.working = working

    def variables(self):
        """The current point as variables [w, b]."""
        return np.append(self.w, -self.shift) if self.fit_intercept else self.w

    def go_to(self, w):
        """Make w (p,) the current point, and compute residuals and the negative gradient of the loss."""
        self.w = w
        if not w.any():
            self.half, self.shift, self.along = self.value_at_zero, 0.0, 2.0 * self.value_at_zero
            self.residual, self.slopes = self.y, self.gradient_at_zero
            return
        fitted, self.shift = self._product(w)
        self.residual = self.y - fitted
        weighted = self.rows.weighted(self.residual)
        self.slopes = self.rows.transposed_product(weighted)
        self.half, self.along = 0.5 * float(weighted @ self.residual), float(weighted @ self.y)

    def _product(self, w):
        """`Prepared.product`, mostly of the working set's columns alone."""
        working = self.working
        if working.part is None or w[~working.is_used].any():
            return self.rows.product(w)
        return self.rows.centre(working.product(w))

    def sizes(self):
        """The penalty of each column, (p,), that would keep it at zero."""
        return np.maximum(self.slopes, 0.0) if self.positive else np.abs(self.slopes)

    def objective(self, l1, l2):
        """Value of the objective at the current point."""
        return self.half + float(l1 @ np.abs(self.w)) + 0.5 * float(self.w @ (l2 * self.w))

    def certify(self, l1, l2):
        """Objective, duality gap and largest violation of the optimality conditions."""
        rounding = GRADIENT_ROUNDING * max(1.0, float(np.abs(self.rows.weighted(self.residual)).sum()))
        return certify(self.w, self.slopes, l1, l2, self.positive, self.half, self.along, rounding)

    def solve(
        self, l1, l2, *, near=None, tol, max_iter, max_time=None, predicted_tol=0.0, callback=None,
        history=False, nit=0, reported=None, seconds=0.0, interior=False,
    ):  # fmt: skip
        """Minimise from the current point, and return the result with the fields of `minimize_oba`.

        Columns join the first working set where their slopes exceed ``near`` (p,), which is ``l1`` by
        default. With ``predicted_tol`` only the relative gap counts, which is at most that. ``nit`` and
        ``seconds`` are the iterations and the time before. The callback and the history get the objective
        with the penalties ``reported``, which are (l1, l2) by default. The interior-point method comes
        first with ``interior=True``, never with None, else where the working set ends without a solution, or
        takes many rounds.
        """
        limits = outcome.Limits(max_iter, np.inf if max_time is None else max_time)
        record = outcome.History(("time", "fun", "optimality", "nnz", "n_free", "n_corrections"), history)
        end = limits.start + limits.max_time
        strict = Goal(tol * self.origin_scale, 10.0 * tol, end)
        goal = Goal(np.inf, predicted_tol, end) if predicted_tol else strict
        first, is_solved, solver = nit, False, []
        can_use_interior = interior is not None and self.has_limits
        can_use_interior = can_use_interior and plan.interior_fits(self.rows.n, l1, self.rows.design.nnz)
        used_interior = False
        best, rounds = np.inf, 0
        with np.errstate(over="ignore", invalid="ignore"), blas_threads(1):
            if not self.positive and is_ridge(l1, l2, self.rows.n):
                is_solved = self._solve_system(l2, goal, strict)
                nit += 1
                solver.append("newton")
            while True:
                fun, gap, violation = self.certify(l1, l2)
                optimality, nnz = violation / self.origin_scale, int(np.count_nonzero(self.w))
                shown = fun if reported is None else self.objective(*reported)
                if history:
                    record.add(seconds + limits.seconds, shown, optimality, nnz, len(self.working.columns), 0)
                if callback is not None and nit > first:
                    current = OptimizeResult(
                        x=self.variables().copy(), fun=shown, nit=nit, optimality=optimality, nnz=nnz,
                        time=seconds + limits.seconds,
                    )  # fmt: skip
                    if outcome.wants_to_stop(callback, current):
                        status = outcome.STOPPED
                        break
                if is_solved or goal.is_met(fun, gap, violation):
                    status = outcome.CONVERGED
                    break
                status = limits.reached(nit)
                if status is not None:
                    break
                level = l1 if near is None or nit > first else np.minimum(near, l1)
                joins = self._choose(l1, l2, level, used_interior)
                rounds = 0 if fun < best - VALUE_ROUNDING * abs(fun) else rounds + 1
                best = min(fun, best)
                is_stuck = joins is None or rounds > (PATIENCE if len(joins) else 0)
                is_full = is_stuck and not l2.any()  # with a ridge OBA goes on as fast
                takes_over = interior or plan.interior_takes_over(self.rows.n, nnz, nit - first, is_full)
                if can_use_interior and takes_over:
                    can_use_interior, used_interior, rounds = False, True, 0
                    nit += self._run_interior_point(l1, l2, goal, max_iter - nit)
                    solver.append("interior")
                    continue
                if is_stuck:
                    # where y is fitted exactly the gap is rounding of its squares
                    is_end = violation <= goal.violation and gap <= GAP_ROUNDING * self.value_at_zero
                    status = outcome.CONVERGED if is_end else outcome.NO_PROGRESS
                    break
                if len(joins):
                    self.working.add(joins)
                if not self.working.is_finite:
                    status = outcome.NO_PROGRESS
                    break
                self._minimize_on_columns(l1, l2)
                self._solve_unpenalised(l1, l2)
                nit += 1
        return OptimizeResult(
            x=self.variables().copy(), fun=fun, nit=nit, status=status, success=status == outcome.CONVERGED,
            message=MESSAGES[status], optimality=optimality, dual_gap=gap, history=record.columns(),
            solver=tuple(solver) if is_solved else (*solver, "gram"),
        )  # fmt: skip

    def _choose(self, l1, l2, level, used_interior):
        """Columns that join the working set; None where it would be beyond the limits of the plan.

        A column violates its condition if its slope exceeds ``level`` (p,).
        """
        working, sizes = self.working, self.sizes()
        outside = np.flatnonzero(~working.is_used & ((sizes > level) | (self.w != 0.0)))
        is_needed = self.w[outside] != 0.0
        needed, violating = outside[is_needed], outside[~is_needed]
        with np.errstate(divide="ignore"):
            ratios = sizes[violating] / l1[violating]
        joins = working.choose(needed, violating, ratios, bool(l2.any()))
        if len(joins) and not working.fits(np.append(working.columns, joins), used_interior):
            working.keep(self.w[working.columns] != 0.0)
            if not working.fits(np.append(working.columns, joins), used_interior):
                return None
        return joins

    def _run_interior_point(self, l1, l2, goal, max_iter):
        """Go to the end of the interior-point method if it is better; returns its number of iterations."""
        w, nit = interior_point(
            self.rows, self.y, l1, l2, positive=self.positive, gap_tol=goal.gap, max_iter=max_iter,
            end=goal.end,
        )  # fmt: skip
        before, fun = self.w, self.objective(l1, l2)
        self.working.clear()
        self.go_to(w)
        if not self.objective(l1, l2) <= fun:
            self.go_to(before)
        return nit

    def _solve_system(self, l2, goal, strict):
        """Go to about the solution without an L1 penalty; returns whether it is the solution.

        Without a ridge only the violation says how near it is: that of the goal ``strict``.
        """
        if self._system is None:
            self._system = RidgeSystem(self)
        w, is_solved = self._system.solve(self.w, l2, goal if l2.any() else strict)
        if not np.isfinite(w).all():
            return False
        self.go_to(w)
        return is_solved

    def _minimize_on_columns(self, l1, l2):
        """Go to about the minimiser over the working set."""
        columns, matrix = self.working.columns, self.working.gram
        w, l1, l2 = self.w[columns], self._one_sided(l1[columns]), l2[columns]
        new, _ = self._model.minimize(matrix, w, l2 * w - self.slopes[columns], l1, l2)
        to = np.zeros(self.p)
        to[columns] = new if np.isfinite(new).all() else w
        self.go_to(to)

    def _solve_unpenalised(self, l1, l2):
        """Go to the minimiser over the columns without a penalty, at which a dual point has to be."""
        columns = self.working.columns
        bare = l1[columns] + l2[columns] == 0.0
        at = np.flatnonzero(bare & (self.w[columns] > 0.0) if self.positive else bare)
        if at.size:
            columns, w = columns[at], self.w.copy()
            w[columns] += np.linalg.lstsq(self.working.gram[np.ix_(at, at)], self.slopes[columns])[0]
            before, fun = self.w, self.objective(l1, l2)
            self.go_to(np.maximum(w, 0.0) if self.positive else w)
            if self.positive and not self.objective(l1, l2) <= fun:
                self.go_to(before)

    def _one_sided(self, l1):
        """Penalties that say which variables must be >= 0: all that have one."""
        return one_sided(l1, len(l1)) if self.positive else l1
