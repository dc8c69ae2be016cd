r"""Linear models with bounded coefficients: NQN for the way, Newton's method with multipliers for the end.

.. math:: \min_{l \le w \le u, b} P(w, b) = \sum_i s_i h(c_i (x_i^T w + b - t_i))
          + \alpha_1 \|w\|_1 + \tfrac{\alpha_2}{2} \|w\|^2

NQN takes the objective as it is, kinks and all, in standardised columns. It comes near the solution in a few
dozen passes over X but can't tell how near. `_refine` then finds dual variables that prove it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from .._linalg.threads import blas_threads
from .._losses.row_losses import Rows
from .._solver import outcome
from .._solver.outcome import History, Limits, Stop
from ._bounded_data import as_data
from ._certificate import Certificate
from ._refine import refine
from ._scaled_descent import Descent

MESSAGES = outcome.messages("the duality gap is at most tol times the objective")
# objectives below this part of the loss' unit count as zero: the fit is then perfect up to rounding
PERFECT = 1e-6
# difference by which a bound may be above the objective, relatively: sums over dense float32 data are that
# rough
ABOVE = 1e-6
# entries of X up to which Newton's method alone is the fastest, and goes on until rounding stops it: another
# order or weight of the same rows then gives the same answer
SMALL = 20000
EXACT = 1e-12
# variance, relative to the second moment, that is rounding
CONSTANT = 1e-12


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


class BoundedProblem:
    """Data, loss, penalty and box.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n, p)
        Or a C-contiguous array or a CSR matrix on a GPU, where all else of many entries must be, too.
    loss : PiecewiseLoss or LogLoss
    lower, upper : ndarray of shape (p,)
    l1, l2 : float
    fit_intercept : bool
    n_threads : int
    """

    def __init__(self, X, loss, lower, upper, l1, l2, *, fit_intercept, n_threads=1):
        self.loss, self.lower, self.upper = loss, lower, upper
        self.l1, self.l2, self.fit_intercept = l1, l2, fit_intercept
        self.data = as_data(X, n_threads)
        self.n, self.p = X.shape
        self.n_passes = 0
        self._moments = None

    def predictor(self, w, b):
        self.n_passes += 1
        z = self.data.matvec(w)
        if b:
            z += b
        return z

    def transposed(self, u):
        """X^T u, (p,)."""
        self.n_passes += 1
        return self.data.rmatvec(u)

    def evaluate(self, w, b, rows, smoothing=None, previous=None):
        """Fill ``rows`` at (w, b); the predictor and X^T u."""
        found = self.data.evaluate(self.loss, w, b, rows, smoothing, previous)
        if found is not None:
            self.n_passes += 1
            return found
        z = self.predictor(w, b)
        self.loss.evaluate(z, rows, smoothing, previous)
        return z, self.transposed(rows.u)

    def penalty(self, w):
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def moments(self):
        """Weighted mean and variance of the columns, the mean 0 without an intercept.

        They centre and scale, so they need not be exact: dense columns are judged by some of the rows.
        ValueError where squares overflow or vanish.
        """
        if self._moments is None:
            data, s = self.data, self.loss.s
            mean, second = np.zeros(self.p, like=s), data.squares(s)
            if self.fit_intercept:
                mean = data.means(s)
                self.n_passes += not data.samples
            variance = second - mean**2
            constant = variance <= CONSTANT * second
            for j in np.flatnonzero(constant) if data.samples else ():  # constant, or rare in the sample
                middle, second[j] = data.of_column(s, j)
                mean[j] = middle if self.fit_intercept else 0.0
                variance[j] = second[j] - mean[j] ** 2
            # what is left of a constant column is rounding
            constant = variance <= CONSTANT * second
            self._check_squares(second)
            self._moments = mean, np.where(constant, np.where(second > 0, second, 1.0), variance)
        return self._moments

    def _check_squares(self, second):
        wrong = ~np.isfinite(second)
        empty = np.flatnonzero(second == 0)
        if len(empty):
            wrong[empty] = self.data.absolute_sums(self.loss.s, empty) > 0
        if wrong.any():
            raise ValueError(
                f"X: the squares of column {int(np.flatnonzero(wrong)[0])} are too large or too small. Bring "
                "the columns to similar scales (sklearn.preprocessing.MaxAbsScaler keeps X sparse)."
            )

    def rounded(self, w, b, inside):
        """(w, b, P) for coefficients rounded by ``inside``; b keeps the mean prediction."""
        new = inside(w)
        if self.fit_intercept:
            b = b + float(self.moments()[0] @ (w - new))
        rows = self.loss.evaluate(self.predictor(new.astype(np.float64), b), Rows.empty(self.n, w))
        return new, b, rows.f + self.penalty(new.astype(np.float64))


@dataclass
class Run:
    """The clock, the counters, the best point and the certificate of one call."""

    problem: BoundedProblem
    options: BoundedOptions
    certificate: Certificate
    callback: object = None
    keep: bool = False
    nit: int = 0
    n_newton: int = 0
    excess: float = 0.0
    primal: float = np.inf
    w: np.ndarray | None = None
    b: float = 0.0
    begun: bool = False
    spare: Rows | None = None  # for the objective itself, beside its envelope

    def __post_init__(self):
        self.limits = Limits(self.options.max_iter, self.options.max_time)
        self.history = History(("time", "fun", "optimality", "nnz", "method"), self.keep)

    def begin_at(self, w, b):
        """Evaluate the first point."""
        rows = Rows.empty(self.problem.n, w)
        z, gradient = self.problem.evaluate(w, b, rows)
        self.begin(w, b, z, rows, gradient)

    def begin(self, w, b, z, rows, gradient):
        """Take the first point, which may be the solution."""
        self.begun = True
        primal = rows.f + self.problem.penalty(w)
        self.excess = self.problem.loss.excess(z)
        self.see(w, b, primal)
        self.certificate.update(w, b, z, rows, gradient, primal)
        if self.within(EXACT):
            self.iteration("start")

    def see(self, w, b, primal):
        """Keep the point if it is the best so far."""
        if primal < self.primal:
            self.primal, self.w, self.b = primal, w.copy(), float(b)
            bound = self.certificate.best
            # a bound holds near the points that it was made for; what is below it is elsewhere
            if primal < bound - ABOVE * abs(bound) or not self.certificate.covers(w, b):
                self.certificate.forget()

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
        return max(self.primal - self.excess, PERFECT * self.problem.loss.unit(), 1e-300)

    def measure(self):
        """The gap relative to what ``tol`` is relative to."""
        return max(self.gap, 0.0) / self._size() if np.isfinite(self.primal) else np.inf

    def check(self):
        if self.within(min(self.options.tol, EXACT) if self.is_small else self.options.tol):
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
        over X, one or two an evaluation), status, message, success, history.
    """
    opts, b = opts or BoundedOptions(), float(b)
    run = Run(problem, opts, Certificate(problem), callback, history, w=w.copy(), b=b)
    # BLAS adds in another order with more threads; those of the passes over X do not
    with blas_threads(1):
        try:
            if run.is_small:
                run.begin_at(w, b)
            else:
                Descent(run).approach(w, b)
            refine(run)
            status = outcome.NO_PROGRESS
        except Stop as stop:
            status = stop.status
    if status != outcome.STOPPED and run.is_done:
        status = outcome.CONVERGED
    return OptimizeResult(
        x=np.append(run.w, run.b), fun=run.primal, dual_gap=max(run.gap, 0.0), optimality=run.measure(),
        nit=run.nit, n_newton=run.n_newton, nfev=problem.n_passes, status=status, message=MESSAGES[status],
        success=status == outcome.CONVERGED, history=run.history.columns(),
    )  # fmt: skip
