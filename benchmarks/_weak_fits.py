"""One set at one C: LIBLINEAR as scikit-learn's users call it, ours, and how far each is from the optimum.

Everything is judged by one objective function in float64, that of ``sparsekit._compare.problem``.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from functools import cached_property

import _data
import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from sparsekit import L1LogisticOBA
from sparsekit._compare.peers import Liblinear, sklearn_l1
from sparsekit._compare.problem import Problem

NONE, PENALISED, FREE = INTERCEPTS = ("none", "penalised", "free")
# of the reference solution
REFERENCE_TOL = 1e-11
REFERENCE_ITER = 2000
# relative gaps below this are rounding and the reference's own error
FLOOR = 1e-10
# where the default tolerance does not lead to a gap, tolerances below it do
TIGHTER = (1.0, 1e-2, 1e-4, 1e-6)
# short fits are repeated until they sum to this many seconds
MIN_SECONDS = 0.3
# largest number of repetitions
MAX_REPEATS = 7


@dataclass(eq=False)
class Case:
    """One set with one kind of intercept.

    "none": no intercept. "penalised": LIBLINEAR's own, which is in the L1 norm; ours solves the same problem
    with a column of ones. "free": LIBLINEAR is called as for "penalised", since it has no free intercept,
    ours with its unpenalised one. Each then has its own problem and optimum.
    """

    name: str
    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    intercept: str = NONE
    best: dict = field(default_factory=dict)

    @cached_property
    def _with_ones(self):
        ones = np.ones((self.X.shape[0], 1))
        if sparse.issparse(self.X):
            return sparse.csr_matrix(sparse.hstack([self.X, ones], format="csr"))
        return np.ascontiguousarray(np.hstack([self.X, ones]))

    @cached_property
    def ours(self):
        """The problem that ours solves."""
        X = self._with_ones if self.intercept == PENALISED else self.X
        return Problem(self.name, X, self.y, self.intercept == FREE)

    @cached_property
    def liblinears(self):
        """The problem that LIBLINEAR solves."""
        if self.intercept == NONE or self.intercept == PENALISED:
            return self.ours
        return Problem(self.name, self._with_ones, self.y, False)

    def gap(self, problem, C, objective):
        """Relative distance to the lowest objective that was seen on this problem at this C."""
        best = self.best[id(problem), C][0]
        return max(objective - best, 0.0) / best

    def lower(self, problem, C, objective, certified=np.nan):
        """Note an objective."""
        known = self.best.setdefault((id(problem), C), (np.inf, np.nan))
        if objective < known[0]:
            self.best[id(problem), C] = objective, certified if np.isfinite(certified) else known[1]

    def refer(self, C, max_time):
        """Reference solutions, not timed, with the certificate of the solver."""
        for problem in {id(p): p for p in (self.ours, self.liblinears)}.values():
            fit = oba(problem, C, tol=REFERENCE_TOL, max_iter=REFERENCE_ITER, max_time=max_time)
            self.lower(problem, C, fit.objective, fit.certified)

    def certified(self, C):
        """Relative gap that is certified of the lowest objective of ours."""
        return self.best[id(self.ours), C][1]


@dataclass
class Run:
    """One fit."""

    seconds: float
    objective: float
    warned: bool
    coef: np.ndarray
    bias: float = 0.0
    certified: float = np.nan
    #: (seconds since the start, objective) of every iterate, if it was watched
    steps: list = field(default_factory=list)


def _timed(fit):
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        start = time.perf_counter()
        model = fit()
        seconds = time.perf_counter() - start
    return model, seconds, bool(caught)


def liblinear(case, C, **settings):
    """scikit-learn's LogisticRegression(solver="liblinear") with an L1 penalty, else at its defaults."""
    model = LogisticRegression(
        C=C,
        solver="liblinear",
        fit_intercept=case.intercept != NONE,
        random_state=0,
        **sklearn_l1(Liblinear().version),
        **settings,
    )
    model, seconds, warned = _timed(lambda: model.fit(case.X, case.y))
    coef, bias = model.coef_[0], float(model.intercept_[0]) if case.intercept != NONE else 0.0
    w = coef if case.intercept == NONE else np.append(coef, bias)
    objective = case.liblinears.objective(w, 0.0, C)
    case.lower(case.liblinears, C, objective)
    return Run(seconds, objective, warned, coef, bias)


class Watch:
    """A callback that keeps every iterate and takes its own time off the clock."""

    def __init__(self):
        self.start, self.cost, self.seen = time.perf_counter(), 0.0, []

    def __call__(self, intermediate_result):
        now = time.perf_counter()
        x = intermediate_result.x
        kept = np.flatnonzero(x)  # of a million coefficients few are not zero
        self.seen.append((now - self.start - self.cost, kept, x[kept]))
        self.cost += time.perf_counter() - now


def oba(problem, C, watch=False, **settings):
    """L1LogisticOBA, at its defaults where nothing else is said."""
    seen = Watch() if watch else None
    model = L1LogisticOBA(C=C, fit_intercept=problem.fit_intercept, callback=seen, **settings)
    X, y = _data.by_rows(problem), problem.y

    def fit():
        if watch:
            seen.start = time.perf_counter()
        return model.fit(X, y)

    model, seconds, warned = _timed(fit)
    coef, bias = model.coef_[0], float(model.intercept_[0])
    run = Run(
        seconds, problem.objective(coef, bias, C), warned, coef, bias, model.dual_gap_ / model.objective_
    )
    if watch:
        run.seconds -= seen.cost
        run.steps = [(t, _objective(problem, C, kept, values)) for t, kept, values in seen.seen]
        run.steps.append((run.seconds, run.objective))
    return run


def _objective(problem, C, kept, values):
    x = np.zeros(problem.X.shape[1] + 1)
    x[kept] = values
    return problem.objective(x[:-1], x[-1] if problem.fit_intercept else 0.0, C)


def time_to(run, objective):
    """Seconds until an iterate of a watched run was as low; inf if none was."""
    return next((t for t, value in run.steps if value <= objective), np.inf)


def enough(runs, repeats):
    """Whether a fit has been repeated enough."""
    n, total = len(runs), sum(run.seconds for run in runs)
    return n >= MAX_REPEATS or (n >= repeats and total >= MIN_SECONDS)


def median(values):
    """Median, nan of nothing."""
    values = list(values)
    return float(np.median(values)) if values else np.nan
