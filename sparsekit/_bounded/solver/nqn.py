r"""NQN: L-BFGS for nonsmooth functions on a box, after Keskar's thesis, chapter 3.

.. math:: \min_x f(x) \quad \text{subject to} \quad l \le x \le u,

f continuous and differentiable almost everywhere. Numbers of algorithms and equations are the thesis'. Where
a printed algorithm is undefined or does not end, the code departs from it and says so.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_args

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import enlarged, kernel_module
from ..._linalg.lbfgs import add_pair
from ..._linalg.special import largest
from ..._solver import outcome
from ..._solver.line_search import Trial, bracket_weak_wolfe
from ..._solver.outcome import Limits, Stop
from ..._solver.tolerances import F_ROUNDING, FTOL_WINDOW, MAX_STALLED, ROUNDING
from ..._typing import ActiveSet
from .min_norm_point import min_norm_weights

ACTIVE_SETS = get_args(ActiveSet)

MESSAGES = outcome.messages(
    "the projected gradient is at most gtol",
    ", gtol or ftol",
    small_decrease="Converged: the last iterations decreased f by at most ftol.",
    no_direction="Stopped without a direction of descent: the gradient may be wrong, or not finite.",
    no_progress="Stopped where no step decreases f: x may be a minimiser at which f is not differentiable. "
    "If it is not, check the gradient, or start again from x.",
    unbounded="Stopped where f falls without bound, along a ray or to -inf: add bounds.",
)
# statuses that are not valid if f was -inf: the line search only avoided such points
ENDS = outcome.SMALL_DECREASE, outcome.NO_DIRECTION, outcome.NO_PROGRESS
# "adaptive" reviews the rule for theta after this many iterations.
THETA_REVIEW_ITERATIONS = 30
# It keeps the rule if f fell by this part of its decrease so far.
THETA_MIN_DECREASE = 1e-6


@dataclass(frozen=True)
class NQNOptions:
    """Settings; those below max_time are Table 3.1's.

    gtol : largest entry of the projected gradient T(x, -grad f(x)) at which to stop.
    ftol : decrease of f over `FTOL_WINDOW` iterations at which to stop, relative to max(|f|, 1).
    active_set : one of `ACTIVE_SETS`, Variants 1 to 4 of Section 3.2.6.
    memory : pairs m of L-BFGS.
    n_gradients : gradients M of the program (3.8).
    initial_scale : theta of B_0 = theta I: "gradient" is Section 3.2.3's, "pairs" the smallest curvature in
        memory, "adaptive" goes from "pairs" to "gradient" and back where f stagnates.
    longer : first trial step over the last one's length, if that is below 1; inf is the thesis' Algorithm 4.
    interpolate : whether the line search interpolates the values and slopes it has seen; False is the
        thesis' Algorithm 4, which halves and doubles.
    c1, c2 : constants of the weak Wolfe conditions.
    eps_abs, eps_rel : widths of the bracket at which a line search ends.
    eps_skip : cosine of s and y below which a pair is not taken.
    """

    gtol: float = 1e-6
    ftol: float = 1e-9
    max_iter: int = 15000
    max_fun: float = np.inf
    max_time: float = np.inf
    active_set: ActiveSet = "corrected"
    initial_scale: str = "adaptive"
    longer: float = 2.0
    interpolate: bool = True
    memory: int = 20
    n_gradients: int = 20
    c1: float = 1e-8
    c2: float = 0.9
    eps_abs: float = 1e-16
    eps_rel: float = 1e-6
    eps_skip: float = 1e-8


class RecentGradients:
    """The last gradients and their inner products, for the program (3.8)."""

    def __init__(self, n, size, like):
        # the buffer doubles when it is full
        self.size, capacity = size, min(size, NQNOptions.n_gradients)
        self.rows, self.gram = np.empty((capacity, n), like=like), np.empty((capacity, capacity), like=like)
        self.count = self.at = 0

    def put(self, g):
        at = self.at
        if at == len(self.rows):
            capacity = min(2 * at, self.size)
            self.rows = enlarged(self.rows, (capacity, self.rows.shape[1]))
            self.gram = enlarged(self.gram, (capacity, capacity))
        self.rows[at] = g
        self.count = min(self.count + 1, len(self.rows))
        products = self.rows[: self.count] @ g
        self.gram[at, : self.count] = products
        self.gram[: self.count, at] = products
        self.at = (at + 1) % self.size

    def clear(self, g):
        """Remove all but g."""
        self.count = self.at = 0
        self.put(g)

    def least(self):
        """The solution g~ of (3.8)."""
        k = self.count
        return min_norm_weights(self.gram[:k, :k]) @ self.rows[:k]


@dataclass
class NQNState:
    """Where a run is: the point, its value and gradient, the pairs, and the kernels for such arrays."""

    kernels: ModuleType
    x: np.ndarray
    f: float
    g: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pairs: Any
    gradients: RecentGradients | None
    free: np.ndarray
    p: np.ndarray
    p_bar: np.ndarray
    nit: int = 0
    n_corrections: int = 0
    n_skipped: int = 0
    n_restarts: int = 0
    alpha: float = np.inf
    by_pairs: bool = True  # the rule for theta
    idle: int = 0
    n_free: int = 0


def init_state(x, f, g, lower, upper, opts):
    """The state at x, inside the box, with f and its gradient g there."""
    n, kernels = len(x), kernel_module("shared._box", x)
    gradients = None
    if opts.active_set.endswith("subgradient"):
        gradients = RecentGradients(n, opts.n_gradients, g)
        gradients.put(g)
    state = NQNState(
        kernels, x, f, g, lower, upper, kernel_module("shared._pairs", x).Pairs(n, opts.memory), gradients,
        np.empty(n, dtype=np.uint8, like=x), np.empty(n, like=x), np.empty(n, like=x),
    )  # fmt: skip
    state.by_pairs = opts.initial_scale != "gradient"
    return state


def scale_of(state):
    """theta of B_0 = theta I: the curvature of the flattest pair, or that of Section 3.2.3.

    The thesis' choice is safe at kinks, but far too large where f is smooth and flat. y.y / s.y of the last
    pair, as in L-BFGS-B, is large after each kink; the smallest one in memory is not.
    """
    if state.by_pairs and len(state.pairs):
        return min(max(state.pairs.smallest_curvature(), 1e-8), 1e8)
    return max(1.0, min(largest(np.abs(state.g)), 1e8))


def predict_free(state):
    """The complement of A^init: of B(grad f), or of (3.9)."""
    free_variables = state.kernels.free_variables
    free_variables(state.x, state.g, state.lower, state.upper, state.free)
    if state.gradients is not None:
        also = np.empty_like(state.free)
        free_variables(state.x, state.gradients.least(), state.lower, state.upper, also)
        state.free &= also


def choose_direction(state, opts):
    """Steps 6 and 7 of Algorithm 5: p, and T(x, p) with its slope."""
    predict_free(state)
    pairs, theta = state.pairs, scale_of(state)
    pairs.set_free(state.free)
    solved = pairs.direction(state.g, theta, state.p)
    if opts.active_set.startswith("corrected"):
        while solved and pairs.correct(state.x, state.p, state.lower, state.upper):
            state.n_corrections += 1
            solved = pairs.direction(state.g, theta, state.p)
    slope = state.kernels.feasible_part(state.x, state.p, state.g, state.lower, state.upper, state.p_bar)
    return slope if solved else np.nan


def line_search(state, slope, evaluate, opts):
    """Algorithm 4 along T(x, p): a `Trial` whose point is (x, gradient), of a decrease at least."""
    kernels, x, lower, upper = state.kernels, state.x, state.lower, state.upper
    # Departures from step 2. The printed ratio is negative for p_i < 0. "Infinity otherwise" would make the
    # maximum infinite as soon as one variable does not move.
    longest = kernels.longest_step(x, state.p_bar, lower, upper)

    def evaluate_at(alpha):
        trial = np.empty_like(x)
        kernels.trial_point(x, state.p_bar, alpha, lower, upper, trial)
        f, g = evaluate(trial)
        return Trial(alpha, f, kernels.feasible_slope(trial, state.p, g, lower, upper), (trial, g))

    return bracket_weak_wolfe(
        evaluate_at, state.f, slope, longest=longest, c1=opts.c1, c2=opts.c2,
        # departure from step 3: with many kinks a step of 1 is far too long, again and again
        t=min(1.0, opts.longer * state.alpha, longest),
        # departure from step 22: where the slope keeps the share c2, a parabola is lowest at 1 / (1 - c2)
        # times the step or farther away
        growth=1.0 / (1.0 - opts.c2) if opts.interpolate else 2.0,
        # A step shorter than p hints at kinks. There, cubics need more steps and lead to poorer minima of
        # functions that are not convex.
        use_cubics=opts.interpolate and state.alpha >= 1.0,
        min_width=opts.eps_abs, min_part=opts.eps_rel,
    )  # fmt: skip


def restart(state, opts):
    """Forget the pairs, and take the other rule for theta."""
    state.pairs.clear()
    state.n_restarts += 1
    state.alpha, state.idle = np.inf, 0
    if opts.initial_scale == "adaptive":
        state.by_pairs = not state.by_pairs


def step(state, evaluate, opts):
    """One iteration of Algorithm 5 (steps 6 to 15); changes the state."""
    slope = choose_direction(state, opts)
    if not slope < 0 and state.gradients is not None:
        # departure: an old gradient may fix a variable that should move (Lemma 3.2.1 is for Variant 3 only)
        state.gradients.clear(state.g)
        slope = choose_direction(state, opts)
    if not slope < 0 or not np.isfinite(slope):
        raise Stop(outcome.NO_DIRECTION)
    found = line_search(state, slope, evaluate, opts)
    f, (x, g) = found.f, found.point
    if not add_pair(state.pairs, state.x, x, state.g, g, opts.eps_skip):  # (3.11)
        state.n_skipped += 1
    state.idle = state.idle + 1 if not f < state.f - F_ROUNDING * abs(state.f) else 0
    state.x, state.f, state.g, state.alpha = x, f, g, found.t
    if state.gradients is not None:
        state.gradients.put(g)
    state.nit += 1


@dataclass
class Evaluations:
    """Calls of the user's function within the limits, and the best point that any of them saw."""

    fun_and_jac: object
    limits: Limits
    count: int = 0
    best: tuple = (np.inf, None, None)
    fell: bool = False  # whether f was -inf somewhere

    def __call__(self, x):
        # the first evaluation is made whatever the limits
        status = self.limits.reached(nfev=self.count) if self.count else None
        if status is not None:
            raise Stop(status)
        self.count += 1
        f, g = self.fun_and_jac(x)
        self.fell = self.fell or f == -np.inf
        if np.isfinite(f) and not np.isfinite(g).all():
            f = np.nan  # departure: a point without a gradient can't be used
        if np.isfinite(f) and f < self.best[0]:
            self.best = (f, x, g)
        return f, g


def minimize(fun_and_jac, x, lower, upper, opts, *, first=None, callback=None, history=False):
    """Algorithm 5 from x, inside the box and with finite f and gradient.

    Parameters
    ----------
    fun_and_jac : callable
        ``fun_and_jac(x)`` returns (float, new array of shape (n,)).
    x, lower, upper : ndarray of shape (n,)
        In main memory or on a GPU, like the gradients.
    opts : NQNOptions
    first : tuple (float, ndarray of shape (n,)), default=None
        ``fun_and_jac(x)``, if it is known; it is not counted then.
    callback : callable, default=None
        ``callback(report)`` after each iteration with x, fun, jac (copies), nit, nfev; a true value stops.
    history : bool, default=False
        Whether the result has a list of f, optimality, alpha, n_active, n_predicted, n_held, nfev and time of
        each iteration.

    Returns
    -------
    OptimizeResult
    """
    limits = Limits(opts.max_iter, opts.max_time, opts.max_fun)
    evaluate = Evaluations(fun_and_jac, limits)
    f, g = first or evaluate(x)
    state = init_state(x, f, g, lower, upper, opts)
    kernels = state.kernels
    recent, lines, status = [f], [], None
    f_failed, f_first, f_looked = np.inf, f, f
    while status is None:
        optimality = kernels.optimality(state.x, state.g, lower, upper)
        if optimality <= opts.gtol:
            status = outcome.CONVERGED
        elif len(recent) > FTOL_WINDOW and recent[-1 - FTOL_WINDOW] - recent[-1] <= opts.ftol * max(
            1.0, abs(state.f)
        ):
            status = outcome.SMALL_DECREASE
        else:
            # the number of evaluations is checked before each one
            status = limits.reached(state.nit)
        if status is None:
            try:
                if state.idle >= MAX_STALLED:  # (3.21) holds in floating point where f does not change
                    raise Stop(outcome.NO_PROGRESS)
                step(state, evaluate, opts)
            except Stop as stop:
                status = stop.status
                if status not in (outcome.NO_DIRECTION, outcome.NO_PROGRESS):
                    break
                # departure: the pairs may be bad; restart from theta I as long as that helps
                if not state.f < f_failed - F_ROUNDING * abs(state.f) or (
                    opts.initial_scale == "gradient" and not len(state.pairs)
                ):
                    break
                f_failed, status = state.f, None
                restart(state, opts)
                continue
            if opts.initial_scale == "adaptive" and state.nit % THETA_REVIEW_ITERATIONS == 0:
                if f_looked - state.f < THETA_MIN_DECREASE * (f_first - state.f):
                    state.by_pairs = not state.by_pairs
                f_looked = state.f
            recent = [*recent[-FTOL_WINDOW:], state.f]
            if history:
                lines.append(_line(state, evaluate))
            if callback is not None:
                report = OptimizeResult(
                    x=state.x.copy(), fun=state.f, jac=state.g.copy(), nit=state.nit, nfev=evaluate.count
                )
                if outcome.wants_to_stop(callback, report):
                    status = outcome.STOPPED
    if evaluate.fell and status in ENDS:
        status = outcome.UNBOUNDED
    f, x, g = state.f, state.x, state.g
    # a line search may have passed a better point, or stopped there; a stationary point is kept unless
    # another is better by more than rounding
    if evaluate.best[0] < f - (ROUNDING * max(1.0, abs(f)) if status == outcome.CONVERGED else 0.0):
        f, x, g = evaluate.best
    return OptimizeResult(
        x=x, fun=f, jac=g, nit=state.nit, nfev=evaluate.count, njev=evaluate.count, status=status,
        success=status in outcome.SUCCESSES, message=MESSAGES[status],
        optimality=kernels.optimality(x, g, lower, upper), n_corrections=state.n_corrections,
        n_skipped=state.n_skipped, n_restarts=state.n_restarts, history=lines if history else None,
    )  # fmt: skip


def _line(state, evaluate):
    active = int(((state.x <= state.lower) | (state.x >= state.upper)).sum())
    return {
        "f": state.f,
        "optimality": state.kernels.optimality(state.x, state.g, state.lower, state.upper),
        "alpha": state.alpha,
        "n_active": active,
        # A^init and A^k of the step just made
        "n_predicted": len(state.x) - int(state.free.sum()),
        "n_held": len(state.x) - int(state.pairs.free_set().sum()),
        # with those that forward differences take
        "nfev": evaluate.count + getattr(evaluate.fun_and_jac, "differences", 0),
        "time": evaluate.limits.seconds,
    }
