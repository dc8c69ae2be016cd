r"""Linear models with bounded coefficients: NQN for the way, Newton's method with multipliers for the end.

.. math:: \min_{l \le w \le u, b} P(w, b) = \sum_i s_i h(c_i (x_i^T w + b - t_i))
          + \alpha_1 \|w\|_1 + \tfrac{\alpha_2}{2} \|w\|^2

NQN takes the objective as it is, kinks and all, in standardised columns. It comes near the solution in a few
dozen passes over X but can't tell how near. `_refine` then finds dual variables that prove it.
"""

import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult

from .._linalg.design import as_design
from .._linalg.threads import blas_threads
from .._losses.row_losses import Rows, spread_of
from ._refine import refine
from ._scaled_descent import Descent

CONVERGED, MAX_ITER, MAX_TIME, STOPPED, NO_PROGRESS = range(5)
MESSAGES = {
    CONVERGED: "Converged: the duality gap is at most tol times the objective.",
    MAX_ITER: "Stopped after max_iter iterations; raise max_iter or tol.",
    MAX_TIME: "Stopped after max_time seconds; raise max_time or tol.",
    STOPPED: "Stopped by the callback.",
    NO_PROGRESS: "Stopped where rounding allows no further progress; raise tol or scale the features.",
}
# objectives below this part of the one at zero count as zero: the fit is then perfect up to rounding
PERFECT = 1e-6
# natural sizes of the coefficients within which the gap is proved if no penalty bounds them
REACH = 10.0
# entries of X up to which Newton's method alone is the fastest, and goes on until rounding stops it: another
# order or weight of the same rows then gives the same answer
SMALL = 20000
EXACT = 1e-13
# rows that centre and scale dense columns; variance, relative to the second moment, that is rounding
SAMPLE, CONSTANT = 5000, 1e-12
# entries of a block of dense rows: half a core's cache
BLOCK = 2**17
# the same where rows are read twice, so that they stay beside the predictors
PASS = 2**14


@dataclass(frozen=True)
class BoundedOptions:
    """Settings.

    tol : duality gap, relative to the objective, at which to stop.
    max_iter, max_time : limits of iterations (of NQN and of Newton together) and of seconds.
    rough : relative decrease of ten iterations at which NQN has done its part, for losses with kinks.
    patience : passes over X, beside the price of a few Newton steps, that NQN has on a smooth loss.
    """

    tol: float = 1e-6
    max_iter: int = 10000
    max_time: float = np.inf
    rough: float = 1e-3
    patience: int = 60


class Stop(Exception):
    """Ends a run; args[0] is the status."""


class BoundedProblem:
    """Data, loss, penalty and box.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n, p)
    loss : PiecewiseLoss or LogLoss
    lower, upper : ndarray of shape (p,)
    l1, l2 : float
    fit_intercept : bool
    n_threads : int
    """

    def __init__(self, X, loss, lower, upper, l1, l2, *, fit_intercept, n_threads=1):
        self.X, self.loss, self.lower, self.upper = X, loss, lower, upper
        self.l1, self.l2, self.fit_intercept, self.n_threads = l1, l2, fit_intercept, n_threads
        self.design = as_design(X, n_threads).private()
        self.n, self.p = X.shape
        self.n_passes = 0
        self._moments = None
        self._in_blocks = False

    def be_exact(self):
        """From here on sum products of dense float32 data in float64: BLAS's own sums have seven digits."""
        self._in_blocks = not sp.issparse(self.X) and self.X.dtype == np.float32

    def _blocks(self):
        """Ranges of rows, and these rows in float64."""
        height = max(BLOCK // max(self.p, 1), 1)
        for at in range(0, self.n, height):
            rows = slice(at, at + height)
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def predictor(self, w, b):
        self.n_passes += 1
        if not w.any():
            z = np.zeros(self.n)
        elif self._in_blocks:
            z = np.empty(self.n)
            for rows, part in self._blocks():
                np.dot(part, w, out=z[rows])
        else:
            z = self.design.matvec(w)
        if b:
            z += b
        return z

    def transposed(self, u):
        """X^T u, (p,)."""
        self.n_passes += 1
        if not self._in_blocks:
            return self.design.rmatvec(u)
        return sum((u[rows] @ part for rows, part in self._blocks()), np.zeros(self.p))

    def evaluate(self, w, b, rows, smoothing=None, previous=None):
        """Fill ``rows`` at (w, b); the predictor and X^T u. Dense rows are read once for both."""
        X, loss = self.X, self.loss
        if sp.issparse(X) or not X.flags.c_contiguous or self._in_blocks or not X.size:
            z = self.predictor(w, b)
            loss.evaluate(z, rows, smoothing, previous)
            return z, self.transposed(rows.u)
        self.n_passes += 1
        z, gradient = np.empty(self.n), np.empty(self.p)
        # parts by the data alone, so that sums do not depend on the threads
        parts = int(min(max(X.size // 200000, 1), 16))
        blocks = max(PASS // self.p, 1), parts, min(self.n_threads, parts)
        loss.dense_pass(X, w.astype(X.dtype, copy=False), b, z, rows, gradient, blocks, smoothing, previous)
        return z, gradient

    def penalty(self, w):
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def moments(self):
        """Weighted mean and variance of the columns; the mean is 0 without an intercept."""
        if self._moments is None:
            s = self.loss.s
            if sp.issparse(self.X):
                second = (
                    type(self.X)((self.X.data**2, self.X.indices, self.X.indptr), shape=self.X.shape).T @ s
                )
            else:
                return self._moments_of_rows()
            second = np.asarray(second, dtype=np.float64)
            mean = self.transposed(s) if self.fit_intercept else np.zeros(self.p)
            variance = second - mean**2
            # what is left of a constant column is rounding
            constant = variance <= CONSTANT * second
            variance[constant] = np.where(second[constant] > 0, second[constant], 1.0)
            self._moments = mean, variance
        return self._moments

    def _moments_of_rows(self):
        """Mean and variance of dense columns, by some rows: what scales and centres need not be exact."""
        stride = max(self.n // SAMPLE, 1)
        s = self.loss.s[::stride]
        total = s.sum()
        if not total > 0:
            stride, s, total = 1, self.loss.s, 1.0
        rows = self.X[::stride].astype(np.float64)
        mean = s @ rows / total if self.fit_intercept else np.zeros(self.p)
        second = s @ rows**2 / total
        variance = second - mean**2
        for j in np.flatnonzero(variance <= CONSTANT * second):  # constant, or rare in the sample
            column = self.X[:, j].astype(np.float64)
            mean[j] = self.loss.s @ column if self.fit_intercept else 0.0
            second[j] = self.loss.s @ column**2
            variance[j] = second[j] - mean[j] ** 2
            if variance[j] <= CONSTANT * second[j]:
                variance[j] = second[j] or 1.0
        self._moments = mean, variance
        return self._moments


@dataclass
class Certificate:
    """The lower bound of P: the best one of all dual points seen.

    The dual function of a coefficient needs it to be bounded. Where neither its box nor a penalty does that,
    it is taken to be at most REACH times its natural size, the larger of its value and of what would move the
    predictor as much as the targets spread. P is convex: a point outside, k times as far, is better by at
    most k times the gap.
    """

    problem: BoundedProblem
    reach: np.ndarray | None = None
    reach_intercept: float = np.inf
    best: float = -np.inf
    floor: float = 0.0

    def _set_reach(self, w, b, z):
        problem = self.problem
        _, variance = problem.moments()
        spread = max(problem.loss.spread, spread_of(z, problem.loss.s))
        self.reach = REACH * np.maximum(np.abs(w), spread / np.sqrt(variance))
        self.reach_intercept = REACH * (
            abs(b) + spread + float(np.abs(self.problem.moments()[0]) @ np.abs(w))
        )
        self.best = -np.inf

    def update(self, w, b, z, rows, gradient, primal):
        """Improve the bound by ``rows``' dual variables, gradient = X^T u; the gap of ``primal``."""
        if self.reach is None or np.any(np.abs(w) > 0.5 * self.reach) or abs(b) > 0.5 * self.reach_intercept:
            self._set_reach(w, b, z)
        problem = self.problem
        value = problem.loss.dual_value(rows)
        if problem.fit_intercept:
            value -= abs(float(rows.u.sum())) * self.reach_intercept
        l1, l2 = problem.l1, problem.l2
        # the penalty alone is at most the objective, which is at most ``primal``
        reach = self.reach
        if l1 or l2:
            with np.errstate(divide="ignore", over="ignore"):
                known = min(np.divide(primal, l1), np.sqrt(np.divide(2.0 * primal, l2)))
            sure = value + _least(
                gradient, np.maximum(problem.lower, -known), np.minimum(problem.upper, known), l1, l2
            )
            self.best = max(self.best, sure)
            reach = np.minimum(reach, known)
        lower, upper = np.maximum(problem.lower, -reach), np.minimum(problem.upper, reach)
        # a box farther out than the reach: its nearest point
        lower, upper = np.minimum(lower, problem.upper), np.maximum(upper, problem.lower)
        self.best = max(self.best, value + _least(gradient, lower, upper, l1, l2))
        return primal - self.best


def _least(g, lower, upper, l1, l2):
    """sum_j min over lower <= w <= upper of g w + l1 |w| + l2/2 w^2."""
    if l2 > 0:
        with np.errstate(over="ignore"):
            w = np.clip(-np.sign(g) * np.maximum(np.abs(g) - l1, 0.0) / l2, lower, upper)
        return float(g @ w + l1 * np.abs(w).sum() + 0.5 * l2 * (w @ w))
    middle = np.clip(0.0, lower, upper)
    ends = [g * w + l1 * np.abs(w) for w in (lower, middle, upper)]
    return float(np.minimum(np.minimum(ends[0], ends[1]), ends[2]).sum())


@dataclass
class Run:
    """The clock, the counters, the best point and the certificate of one call."""

    problem: BoundedProblem
    options: BoundedOptions
    certificate: Certificate
    callback: object = None
    keep: bool = False
    start: float = field(default_factory=time.perf_counter)
    nit: int = 0
    n_newton: int = 0
    scale: float = 0.0
    excess: float = 0.0
    primal: float = np.inf
    w: np.ndarray | None = None
    b: float = 0.0
    begun: bool = False
    lines: list = field(default_factory=list)

    def begin_at(self, w, b):
        """Evaluate the first point."""
        rows = Rows.empty(self.problem.n)
        z, gradient = self.problem.evaluate(w, b, rows)
        self.begin(w, b, z, rows, gradient)

    def begin(self, w, b, z, rows, gradient):
        """Take the first point, which may be the solution."""
        self.begun = True
        primal = rows.f + self.problem.penalty(w)
        self.excess = self.problem.loss.excess(z)
        self.scale = primal - self.excess
        self.see(w, b, primal)
        self.certificate.update(w, b, z, rows, gradient, primal)
        if self.within(EXACT):
            self.iteration("start")

    def see(self, w, b, primal):
        """Keep the point if it is the best so far."""
        if primal < self.primal:
            self.primal, self.w, self.b = primal, w.copy(), float(b)

    @property
    def gap(self):
        return self.primal - self.certificate.best

    @property
    def is_small(self):
        return self.problem.n * self.problem.p <= SMALL

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
        # what outliers add to the objective says nothing of the fit
        return max(self.primal - self.excess, PERFECT * self.scale, 1e-300)

    @property
    def seconds(self):
        return time.perf_counter() - self.start

    def measure(self):
        """The gap relative to what ``tol`` is relative to."""
        return max(self.gap, 0.0) / self._size() if np.isfinite(self.primal) else np.inf

    def check(self):
        if self.within(min(self.options.tol, EXACT) if self.is_small else self.options.tol):
            raise Stop(CONVERGED)
        if self.nit >= self.options.max_iter:
            raise Stop(MAX_ITER)
        if self.seconds >= self.options.max_time:
            raise Stop(MAX_TIME)

    def iteration(self, kind):
        """Count one iteration; record and report it, and stop where that is due."""
        self.nit += 1
        if self.keep:
            self.lines.append(
                (self.seconds, self.primal, self.measure(), int(np.count_nonzero(self.w)), kind)
            )
        if self.callback is not None:
            report = OptimizeResult(
                x=np.append(self.w, self.b), fun=self.primal, nit=self.nit, optimality=self.measure(),
                nnz=int(np.count_nonzero(self.w)), time=self.seconds,
            )  # fmt: skip
            try:
                stop = bool(self.callback(report))
            except StopIteration:
                stop = True
            if stop:
                raise Stop(STOPPED)
        self.check()

    def history(self):
        names = ("time", "fun", "optimality", "nnz", "method")
        columns = list(zip(*self.lines)) or [[] for _ in names]
        return {name: np.asarray(column) for name, column in zip(names, columns)}


def minimize_bounded(problem, w, b, opts=None, *, callback=None, history=False):
    """Minimise from (w, b), w within the box.

    Parameters
    ----------
    problem : BoundedProblem
    w : ndarray of shape (p,)
    b : float
    opts : BoundedOptions
    callback : callable, default=None
        ``callback(report)`` after each iteration with copies; a true value or StopIteration stops.
    history : bool, default=False

    Returns
    -------
    OptimizeResult
        x = (w, b), fun, dual_gap, optimality (the gap relative to the objective), nit, n_newton, nfev (passes
        over X, of which an evaluation takes two), status, message, success, history.
    """
    opts = opts or BoundedOptions()
    run = Run(problem, opts, Certificate(problem), callback, history, w=w.copy(), b=float(b))
    with blas_threads(problem.n_threads):
        try:
            if run.is_small:
                run.begin_at(w, b)
            else:
                Descent(run).approach(w, b)
            refine(run)
            status = NO_PROGRESS
        except Stop as stop:
            status = stop.args[0]
    if status != STOPPED and run.is_done:
        status = CONVERGED
    return OptimizeResult(
        x=np.append(run.w, run.b), fun=run.primal, dual_gap=max(run.gap, 0.0), optimality=run.measure(),
        nit=run.nit, n_newton=run.n_newton, nfev=problem.n_passes, status=status, message=MESSAGES[status],
        success=status == CONVERGED, history=run.history() if history else None,
    )  # fmt: skip
