"""Least squares in main memory for one penalty or many: each from the last one's solution.

The Gram matrix of the columns in use is carried over from penalty to penalty. A single fit with fewer rows
than columns passes stronger penalties first, so that few columns join that the solution does not use. What
`LeastSquares` does not solve is left to `minimize_oba`, which starts at the point that was reached.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import OptimizeResult

from ..._linalg.special import largest
from ..._solver import outcome
from .. import plan
from ..losses.losses import LeastSquaresLoss
from .gram_path import MAX_PENALTY
from .least_squares import LeastSquares
from .nonnegative import NonnegativeSquares, minimize_nonnegative
from .oba import minimize_oba

# Penalty of one continuation step as a part of the last one's, and how well its problem is solved. Penalties
# of 0.05 to 0.2 take the same time within a tenth, gaps of 0.01 1.2 times.
STEP = 0.1


class LeastSquaresSession:
    """A `LeastSquares` and the loss for what it does not solve; see there for the parameters.

    ``solver``: "gram" keeps to the working set whatever it costs, "interior" begins with the interior-point
    method. Results have ``solver``, the names of those that ran: "newton", "gram", "interior" or "oba".
    """

    def __init__(self, X, y, s, fit_intercept, n_threads=1, positive=False, solver="auto"):
        self.squares = LeastSquares(X, y, s, fit_intercept, n_threads, positive, solver != "gram")
        self.solver = solver
        self.p, self.fit_intercept = X.shape[1], fit_intercept
        self.n_variables = self.p + bool(fit_intercept)
        self.value_at_zero = self.squares.value_at_zero
        # once a penalty is left to OBA, weaker ones are too
        self._loss = None

    def l1_vector(self, penalty):
        """Penalty of each variable, (p,) and 0 for the intercept, of one number or one a feature."""
        out = np.zeros(self.n_variables)
        out[: self.p] = penalty
        return out

    def null_model(self, v, options):
        """Variables of the best model in which every coefficient with v > 0 is zero."""
        self.squares.go_to(np.zeros(self.p))
        if not (v > 0.0).all():
            tight = {**_without_hessian(options), "tol": min(options["tol"], 1e-8), "predicted_tol": 0.0}
            self._solve(np.where(v > 0.0, MAX_PENALTY, 0.0), np.zeros(self.p), **tight)
            self._loss = None
        return self.squares.variables().copy()

    def largest_penalty(self, v):
        """The smallest factor of v at which the current point, a `null_model`, is optimal."""
        return largest(self.squares.sizes()[v > 0.0] / v[v > 0.0])

    def minimize(self, l1, x0=None, *, l2=None, max_time=None, **options):
        """What `minimize_oba` is for a loss: penalties l1 and l2 of all variables."""
        begin, squares, p, options = time.perf_counter(), self.squares, self.p, _without_hessian(options)
        l1 = np.minimum(l1[:p], MAX_PENALTY)
        l2 = np.zeros(p) if l2 is None else np.minimum(l2[:p], MAX_PENALTY)
        start = np.zeros(p) if x0 is None else x0[:p].copy()
        squares.go_to(np.maximum(start, 0.0) if squares.positive else start)
        if start.any() and not squares.certify(l1, l2)[0] <= squares.value_at_zero:
            squares.go_to(np.zeros(p))
        before, interior = None, self.solver == "interior"
        if interior and not (l1 > 0.0).all():
            raise ValueError(
                "solver='interior' needs an L1 penalty of each feature; "
                f"{np.count_nonzero(l1 == 0.0)} have none. Use solver='auto'."
            )
        if interior and not plan.interior_fits(squares.rows.n, l1, squares.rows.design.nnz):
            most = max(plan.INTERIOR_ROWS, min(plan.MAX_SIDE, int(squares.rows.design.nnz**0.5)))
            raise ValueError(
                f"solver='interior' takes at most {most} rows of such an X, for its memory; got "
                f"{squares.rows.n}. Use solver='auto'."
            )
        if not interior and not squares.working.has_all and not squares.w.any():
            before = self._approach(l1, l2, max_time=max_time, **options)
            if before is not None and before.status == outcome.STOPPED:
                before.fun, before.dual_gap, violation = squares.certify(l1, l2)
                before.optimality = violation / squares.origin_scale
                return before
            interior = self._has_many_active()
        nit = 0 if before is None else before.nit
        left = None if max_time is None else max(max_time - (time.perf_counter() - begin), 1e-9)
        result = self._solve(
            l1, l2, nit=nit, max_time=left, seconds=time.perf_counter() - begin, interior=interior, **options
        )
        if before is not None and before.history:
            result.history = _joined(before.history, result.history)
        return result

    def _approach(self, l1, l2, *, max_time=None, **options):
        """Solve stronger penalties loosely. Returns the last result, with the history of all, or None."""
        begin = time.perf_counter()
        end = np.inf if max_time is None else begin + max_time
        penalised, result, history = l1 > 0.0, None, None
        factor = STEP * largest(self.squares.sizes()[penalised] / l1[penalised])
        options = {**options, "predicted_tol": max(STEP, options.get("predicted_tol", 0.0))}
        while 1.0 < factor < np.inf and time.perf_counter() < end and not self._has_many_active():
            result = self.squares.solve(
                factor * l1, factor * l2, nit=0 if result is None else result.nit, reported=(l1, l2),
                max_time=end - time.perf_counter(), seconds=time.perf_counter() - begin, interior=None,
                **options,
            )  # fmt: skip
            history = result.history = _joined(history, result.history)
            if not result.success:
                break
            factor *= STEP
        return result

    def _has_many_active(self):
        return plan.has_many_active(self.squares.rows.n, np.count_nonzero(self.squares.w))

    def iterate(self, v, lambdas, x0, options, *, l1_ratio=1.0, max_time=None, callback=None):
        """As `iterate_path`: results for falling lambdas, each from the last one's solution.

        A path of one penalty has the solver of a fit.
        """
        options = _without_hessian(options)
        end = np.inf if max_time is None else time.perf_counter() + max_time
        self.squares.go_to(x0[: self.p].copy())
        before, lambdas = None, np.minimum(lambdas, MAX_PENALTY / max(1.0, largest(v)))
        if len(lambdas) == 1:
            l1, l2 = (l1_ratio * lambdas[0]) * v, ((1.0 - l1_ratio) * lambdas[0]) * v
            yield self.minimize(l1, x0, l2=l2, max_time=max_time, callback=callback, **options)
            return
        for lam in lambdas:
            l1, l2 = (l1_ratio * lam) * v, ((1.0 - l1_ratio) * lam) * v
            # the sequential strong rule
            near = None if before is None else np.maximum(2.0 * l1 - before, 0.0)
            left = max(end - time.perf_counter(), 1e-9)
            result = self._solve(
                l1, l2, near=near, max_time=left, callback=callback, interior=None, **options
            )
            yield result
            if result.status == outcome.STOPPED:
                return
            before = l1

    def _solve(
        self, l1, l2, *, near=None, nit=0, max_iter, max_time=None, seconds=0.0, interior=False, **options
    ):  # fmt: skip
        """`LeastSquares.solve`, and where that ends early `minimize_oba` from there on."""
        begin, history, before = time.perf_counter(), None, ()
        if self._loss is None:
            result = self.squares.solve(
                l1,
                l2,
                near=near,
                nit=nit,
                max_iter=max_iter,
                max_time=max_time,
                seconds=seconds,
                interior=interior,
                **options,
            )
            if result.status != outcome.NO_PROGRESS:
                return result
            self._loss, nit, history, before = self._make_loss(), result.nit, result.history, result.solver
        seconds += time.perf_counter() - begin
        if options.get("callback") is not None:
            options["callback"] = _counting_from(nit, seconds, options["callback"])
        left = None if max_time is None else max(max_time - (time.perf_counter() - begin), 1e-9)
        solver = minimize_nonnegative if self.squares.positive else minimize_oba
        result = solver(
            self._loss, self.l1_vector(l1), self.squares.variables().copy(), max_time=left,
            max_iter=max(max_iter - nit, 0), l2=self.l1_vector(l2) if l2.any() else None,
            unit=self.squares.origin_scale, **options,
        )  # fmt: skip
        result.nit, result.solver = result.nit + nit, (*before, "oba")
        if result.history:
            result.history["time"] = result.history["time"] + seconds
        if history:
            result.history = _joined(history, result.history)
        self.squares.go_to(result.x[: self.p].copy())
        return result

    def _make_loss(self):
        squares = self.squares
        squares.release()  # OBA has working sets and buffers of its own
        make = NonnegativeSquares if squares.positive else LeastSquaresLoss
        return make._of_validated(
            squares.rows.X, squares.y, squares.rows.s, fit_intercept=self.fit_intercept,
            n_threads=squares.n_threads,
        )  # fmt: skip


def _joined(history, more):
    """Two histories as one. The second begins with the point with which the first ends."""
    if not history or not more:
        return history or more
    return {name: np.concatenate([values[:-1], more[name]]) for name, values in history.items()}


def _without_hessian(options):
    """The options but those of the model's Hessian, which is exact here."""
    return {name: value for name, value in options.items() if name not in ("hessian", "memory")}


def _counting_from(nit, seconds, callback):
    """The callback of a run that follows one of ``nit`` iterations and so many seconds."""

    def counted(intermediate_result):
        one = OptimizeResult(intermediate_result)
        one.nit, one.time = one.nit + nit, one.time + seconds
        return callback(one)

    return counted
