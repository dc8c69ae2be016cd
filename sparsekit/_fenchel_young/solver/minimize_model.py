"""Newton's method for L2-regularised Fenchel-Young losses.

min_T  alpha/2 ||T||^2 + sum_i w_i L(z_i; q_i),  Z = X W + b, T = [W; b]      (eq. (11))

The loss is convex with a Lipschitz gradient. That of sparsemax is piecewise quadratic, so the step is the
semismooth Newton step with the Jacobian of eq. (5). An exact line search on the scores costs no pass over the
data. For alpha > 0 the objective is alpha-strongly convex, and ||gradient||^2 / (2 alpha) is exactly the
duality gap at the point and its own predictions.

Far from the solution of a weak penalty the supports of sparsemax change too much for Newton steps.
Continuation in alpha leads there: a decreasing sequence of alphas, each solved approximately.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..._solver.outcome import Progress, Stop
from ..._solver.tolerances import F_ROUNDING, GAP_FACTOR, MAX_STALLED
from ..._typing import EitherArray
from ..plan import ascent_comes_first
from .ascent import Ascent
from .directions import Continuation, Directions, largest
from .gap import balance, scaled_gap
from .line_search import line_search

MESSAGES = outcome.messages("the relative optimality measure is at most tol")
# Largest relative residual of a step.
MAX_FORCING = 0.5


def minimize_fenchel_young(
    loss,
    alpha,
    x0=None,
    *,
    penalize_intercept=True,
    tol=1e-5,
    max_iter=200,
    max_time=None,
    callback=None,
    history=False,
):
    """Minimise alpha/2 ||T||^2 + loss(T).

    Parameters
    ----------
    loss : FenchelYoungLoss
    alpha : float
        Strength of the penalty, >= 0.
    x0 : array-like of shape ``loss.shape``, default=None
        Start; None is zero, and so is one whose objective is larger than zero's. The solution is where the
        loss is, in main memory or on a GPU.
    penalize_intercept : bool, default=True
        Whether alpha holds for the last row of T too, as eq. (11) has it.
    tol : float
        Largest entry of the gradient, relative to that at zero, to stop at. For alpha > 0 the duality gap
        must also be at most 10 tol times the objective, or within rounding of the loss at zero.
    max_iter : int
        Newton steps, or blocks of sweeps of dual ascent.
    max_time : float, default=None
        Seconds.
    callback : callable, default=None
        ``callback(intermediate_result)`` after each step, of copies; true stops the run.
    history : bool, default=False

    Returns
    -------
    OptimizeResult
        x (the table), fun, nit, nfev, njev, status, success, message, optimality, dual_gap, grad, n_cg,
        n_data_passes, history. dual_gap is NaN if alpha is 0, or if free intercepts could not be balanced.
    """
    progress = Progress.of_call(max_iter, max_time, callback, history)
    run = FenchelYoungRun(loss, float(alpha), penalize_intercept, progress)
    with blas_threads(loss.blas_threads):
        return minimise(run, x0, tol)


@dataclass
class Point:
    """A table, its scores, the loss there and its derivatives in the scores and in the table."""

    T: EitherArray
    Z: EitherArray
    value: float
    R: EitherArray
    gradient: EitherArray


class FenchelYoungRun:
    """One call: counters, limits, the history, the best lower bound and the loss at zero."""

    def __init__(self, loss, alpha, penalize_intercept, progress):
        self.loss, self.alpha, self.progress, self.limits = loss, alpha, progress, progress.limits
        self.kernels, self.is_on_device = loss.kernels, loss.design.is_on_device
        self.free = loss.fit_intercept and not penalize_intercept
        self.nit = self.nfev = self.n_cg = self.passes = 0
        self.bound, self.zero = -np.inf, 0.0
        self._last = None, None, None

    def begin(self, x0):
        """The start, and the largest entry of the gradient at zero."""
        loss = self.loss
        like = loss.w
        T = np.zeros(loss.shape, like=like) if x0 is None else np.array(x0, dtype=np.float64, like=like)
        if T.shape != loss.shape:
            raise ValueError(f"x0 must have shape {loss.shape}; got {T.shape}")
        if not np.all(np.isfinite(T)):
            raise ValueError("x0 must be finite; it holds NaN or infinity")
        scores = np.zeros((loss.design.shape[0], loss.n_classes), like=like)
        zero = self.point(np.zeros(loss.shape, like=like), scores)
        scale = largest(zero.gradient) or 1.0
        self.zero = zero.value
        if T.any():
            point = self.point(T)
            # zero is better than this initial point
            if self.objective(point, self.alpha)[0] < zero.value:
                return point, scale
        return zero, scale

    def point(self, T, Z=None, state=None):
        """The Point of a table, with its scores and their loss and derivative where they are known."""
        Z = self.loss.scores(T) if Z is None else Z
        value, R = self.evaluate(Z) if state is None else state
        self.passes += 1
        return Point(T, Z, value, R, self.loss.adjoint(R))

    def evaluate(self, Z):
        """Loss and its derivative at scores Z."""
        self.nfev += 1
        return self.loss.derivatives(Z)

    def dots(self, *pairs):
        """Inner products; a GPU is waited for once."""
        found = [self.kernels.dot(A.ravel(), B.ravel(), *self.loss.threads) for A, B in pairs]
        return self.kernels.numbers(found) if self.is_on_device else found

    def penalised(self, T):
        """The rows of a table that have a penalty."""
        return T[:-1] if self.free else T

    def objective(self, point, alpha):
        """Objective, its gradient, and the square of the norm of its penalised part; the last one is kept."""
        if self._last[0] is point and self._last[1] == alpha:
            return self._last[2]
        self._last = None, None, None  # two tables at once would need much memory
        part, G = self.penalised(point.T), np.empty_like(point.gradient)
        slope = self.penalised(G)
        np.multiply(part, alpha, out=slope)
        slope += self.penalised(point.gradient)
        if self.free:
            G[-1] = point.gradient[-1]
        size, square = self.dots((part, part), (slope, slope))
        self._last = point, alpha, (point.value + 0.5 * alpha * size, G, square)
        return self._last[2]

    def is_near(self, point, alpha):
        """Whether the point's own duality gap at alpha is at most its objective."""
        f, _, square = self.objective(point, alpha)
        return alpha > 0.0 and square <= 2.0 * alpha * f

    def rounding(self, f):
        """Error to expect of an objective."""
        return F_ROUNDING * (abs(f) + self.loss.magnitude)

    def gap(self, f, square):
        """Duality gap, by the best bound so far; where intercepts are free, as if they were balanced."""
        if not self.alpha > 0.0:
            return np.nan
        gap = square / (2.0 * self.alpha)
        if self.free:
            return gap
        self.bound = max(self.bound, f - gap)
        return min(gap, max(f - self.bound, 0.0) + self.rounding(f))

    def enough(self, f, tol):
        """Duality gap to stop at; where the optimum is zero, or all but, a part of f may be out of reach."""
        return max(GAP_FACTOR * tol * f, F_ROUNDING * self.zero)

    def certify(self, point, tol):
        """The point, and whether its gap is proved; there is none where intercepts cannot be balanced."""
        if not self.free or not self.alpha > 0.0:
            return point, True
        point, balanced = balance(self, point)
        f, _, square = self.objective(point, self.alpha)
        return point, not balanced or not self.gap(f, square) > self.enough(f, tol)

    def result(self, point, scale, status):
        balanced = True
        if self.free and self.alpha > 0.0:
            point, balanced = balance(self, point)
        f, G, square = self.objective(point, self.alpha)
        gap = self.gap(f, square) if balanced else np.nan
        if status != outcome.CONVERGED and gap > 0.0:
            gap = min(gap, scaled_gap(self, point, f))
        if self.free:
            # the imbalance that is left: the mass of a label without rows could be lost
            gap += float(np.abs(G[-1]).sum())
        return OptimizeResult(
            x=point.T, fun=f, nit=self.nit, nfev=self.nfev, njev=self.nit + 1, status=status,
            success=status == outcome.CONVERGED, message=MESSAGES[status], optimality=largest(G) / scale,
            dual_gap=gap, grad=G, n_cg=self.n_cg, n_data_passes=self.passes,
            history=self.progress.history.columns(),
        )  # fmt: skip


@dataclass
class NewtonState:
    """Where a run is.

    Parameters
    ----------
    point : Point
    scale : float
        Largest entry of the gradient at zero.
    directions : Directions
    ascent : Ascent or None
        Sweeps of dual ascent, as long as they go on.
    continuation : Continuation or None
        None before the first step.
    best : tuple
        Lowest objective, and its point: continuation and sweeps pass through worse points.
    flat : bool
        Whether the last step's decrease was lost in rounding.
    """

    point: Point
    scale: float
    directions: Directions
    ascent: Ascent | None
    continuation: Continuation | None = None
    best: tuple = (np.inf, None)
    flat: bool = False


def init_state(run, x0, tol):
    """The state at ``x0``, or at zero where that is better."""
    point, scale = run.begin(x0)
    sweeps = ascent_comes_first(run.loss, run.alpha)
    ascent = Ascent(run, point, GAP_FACTOR * tol) if sweeps else None
    return NewtonState(point, scale, Directions(run), ascent)


def step(state, run):
    """One Newton step of eq. (11) at the current alpha; changes the state.

    If the line search fails, only alpha changes; `Stop` is raised if alpha is the last.
    """
    point = state.point
    if state.continuation is None:
        state.continuation = Continuation.of(run, point)
    alpha = state.continuation.at(run, point)
    f, G, _ = run.objective(point, alpha)
    D = state.directions.at(point.Z, G, alpha, min(MAX_FORCING, (largest(G) / state.scale) ** 0.5))
    found = line_search(run, point, f, G, D, alpha)
    if found is None:
        if alpha == run.alpha:
            # a direction of float32 products may be no descent at the last digits
            raise Stop(outcome.NO_PROGRESS)
        state.continuation.alpha = run.alpha  # whose directions may be better
        return
    D *= found.t
    D += point.T
    state.point = run.point(D, *found.point)
    state.flat = alpha == run.alpha and not f - found.f > run.rounding(f)
    run.nit += 1


def sweep(state, run, f, gap):
    """A block of sweeps of dual ascent, as long as these pay; whether one was made."""
    if not state.ascent.goes_on(f, gap):
        state.ascent, state.point = None, state.best[1]
        return False
    T, bound = state.ascent.block()
    run.bound = max(run.bound, bound)
    state.point = run.point(T)
    run.nit += 1
    return True


def minimise(run, x0, tol):
    """The result from a start: sweeps where they pay, then Newton steps."""
    state = init_state(run, x0, tol)
    status, least, stalls = None, np.inf, 0
    while status is None:
        point = state.point
        f, G, square = run.objective(point, run.alpha)
        optimality, gap = largest(G) / state.scale, run.gap(f, square)
        if run.progress.report(point.T, f, run.nit, optimality):
            status = outcome.STOPPED
        if optimality <= tol and not gap > run.enough(f, tol):
            proved, certain = run.certify(point, tol)
            if certain:
                status, state.point = outcome.CONVERGED, proved
                break
        measure = gap if run.alpha > 0.0 else optimality
        stalls = stalls + 1 if state.flat and measure > 0.5 * least else 0
        least = min(least, measure)
        if f <= state.best[0] + run.rounding(f) or state.best[1] is None:
            state.best = f, point
        if status is None:
            status = run.limits.reached(run.nit)
        if status is None and stalls >= MAX_STALLED:
            status = outcome.NO_PROGRESS
        if status is None and not (state.ascent is not None and sweep(state, run, f, gap)):
            try:
                step(state, run)
            except Stop as stop:
                status = stop.status
        if status is not None:
            state.point = state.best[1]
    return run.result(state.point, state.scale, status)
