"""Settings of a fit with bounded coefficients, and one call's clock, counters, best point and certificate."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from ..._solver.outcome import History, Limits, Stop
from ..._solver.tolerances import ROUNDING, SINGLE_ROUNDING
from ..losses.losses import LossRows
from ..losses.problem import BoundedProblem
from ..plan import newton_runs_alone
from .certificate import Certificate


@dataclass(frozen=True)
class BoundedOptions:
    """Settings.

    tol : duality gap, relative to the objective, at which to stop.
    max_iter, max_time : limits of iterations (of NQN and of Newton together) and of seconds.
    kinked_ftol : relative decrease of ten iterations at which NQN ends, for losses with kinks.
    """

    tol: float = 1e-6
    max_iter: int = 10000
    max_time: float = np.inf
    kinked_ftol: float = 1e-3


@dataclass
class Point:
    """Coefficients, predictor, and what the loss or its envelope says of them; gradient = X^T u."""

    w: np.ndarray
    b: float
    z: np.ndarray
    rows: LossRows
    gradient: np.ndarray | None = None

    def evaluate(self, problem, smoothing=None, previous=None):
        problem.loss.evaluate(self.z, self.rows, smoothing, previous)
        self.gradient = problem.transposed(self.rows.u)


@dataclass
class BoundedRun:
    """The clock, the counters, the best point and the certificate of one call."""

    problem: BoundedProblem
    options: BoundedOptions
    certificate: Certificate
    callback: object = None
    keep: bool = False
    nit: int = 0
    excess: float = 0.0
    primal: float = np.inf
    w: np.ndarray | None = None
    b: float = 0.0
    spare: LossRows | None = None  # for the objective itself, while `rows` has its envelope

    def __post_init__(self):
        self.limits = Limits(self.options.max_iter, self.options.max_time)
        self.history = History(("time", "fun", "optimality", "nnz", "method"), self.keep)

    def begin(self, w, b):
        """Evaluate the first `Point` and return it; the run stops where it is the solution."""
        problem, rows = self.problem, LossRows.empty(self.problem.n, w)
        z, gradient = problem.evaluate(w, b, rows)
        self.excess = problem.loss.excess(z)
        self.update_best(w, b, rows.f + problem.penalty(w))
        self.certificate.update(w, b, z, rows, gradient, self.primal)
        if self.within(ROUNDING):
            self.iteration("start")
        return Point(w, b, z, rows, gradient)

    def update_best(self, w, b, primal):
        """Keep the point if it is the best so far."""
        if primal < self.primal:
            self.primal, self.w, self.b = primal, w.copy(), float(b)
            bound = self.certificate.best
            # a bound holds near the points that it was computed for; a lower value is outside of that range
            if primal < bound - SINGLE_ROUNDING * abs(bound) or not self.certificate.covers(w, b):
                self.certificate.forget()

    @property
    def gap(self):
        return self.primal - self.certificate.best

    @property
    def is_small(self):
        return newton_runs_alone(self.problem.matrix)

    @property
    def is_done(self):
        """Whether the gap is what was asked for; a small problem goes on."""
        return self.within(self.options.tol)

    def within(self, tol):
        """Whether the gap is at most ``tol`` times the objective, both being numbers."""
        return np.isfinite(self.gap) and self.gap <= self.allowed(tol)

    def allowed(self, tol):
        return tol * self._size()

    def _size(self):
        # the part of outliers in the objective is subtracted: it hides the error of the fit
        return max(self.primal - self.excess, SINGLE_ROUNDING * self.problem.loss.unit(), 1e-300)

    def measure(self):
        """The gap relative to what ``tol`` is relative to."""
        return max(self.gap, 0.0) / self._size() if np.isfinite(self.primal) else np.inf

    def check(self):
        if self.within(min(self.options.tol, ROUNDING) if self.is_small else self.options.tol):
            raise Stop(outcome.CONVERGED)
        status = self.limits.reached(self.nit)
        if status is not None:
            raise Stop(status)

    def iteration(self, kind):
        """Count one iteration; record and report it, and stop where that is due."""
        self.nit += 1
        if self.history:
            nnz = int(np.count_nonzero(self.w))
            self.history.add(self.limits.seconds, self.primal, self.measure(), nnz, kind)
        if self.callback is not None:
            report = OptimizeResult(
                x=np.append(self.w, self.b), fun=self.primal, nit=self.nit, optimality=self.measure(),
                nnz=int(np.count_nonzero(self.w)), time=self.limits.seconds,
            )  # fmt: skip
            if outcome.wants_to_stop(self.callback, report):
                raise Stop(outcome.STOPPED)
        self.check()
