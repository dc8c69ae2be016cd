"""The slow, obvious side of the NQN tests: Algorithms 3 to 5 with dense matrices, and loops for the problems.

Equation and algorithm numbers are those of chapter 3 of the thesis. `nqn` is Algorithm 5 line by line. Where
the letter of an algorithm is undefined, or never ends, the code is marked with "departure" and its reason.
Nothing here comes from sparsekit.
"""

from dataclasses import dataclass, field

import numpy as np
from reference_min_norm import min_norm_weights

# Table 3.1
MEMORY = 20  # m, curvature pairs
N_GRADIENTS = 20  # M, gradients of the program (3.8)
C1, C2 = 1e-8, 0.9  # weak Wolfe conditions
EPS_ABS, EPS_REL = 1e-16, 1e-6  # bracketing
EPS_SKIP = 1e-8  # curvature below which a pair is not taken

VARIANTS = ("gradient", "subgradient", "corrected", "corrected-subgradient")

STATIONARY, MAX_ITER, MAX_FUN, NO_DIRECTION, LINE_SEARCH, UNBOUNDED = range(6)
# step size at which a function that still falls is taken to be unbounded below
LONGEST = 1e30
MESSAGES = {
    STATIONARY: "T(x, -grad f(x)) = 0 (Algorithm 5, step 4)",
    MAX_ITER: "iteration limit",
    MAX_FUN: "evaluation limit",
    NO_DIRECTION: "no search direction (Algorithm 4, step 6)",
    LINE_SEARCH: "line search error (Algorithm 4, step 28)",
    UNBOUNDED: "f falls without bound (not in the thesis)",
}


# Sets and projections.


def project(x, lower, upper):
    """P(x): the nearest point of the box."""
    return np.minimum(np.maximum(x, lower), upper)


def feasible_part(x, p, lower, upper):
    """T(x, p) of (3.3): p without what leaves the box at once; nothing of a variable with l = u."""
    t = p.copy()
    t[(x <= lower) & (p < 0)] = 0.0
    t[(x >= upper) & (p > 0)] = 0.0
    return t


def binding(x, g, lower, upper):
    """B(g) of (3.4) as a boolean mask."""
    return ((x <= lower) & (g >= 0)) | ((x >= upper) & (g <= 0))


# The L-BFGS matrix.


def bfgs_matrix(pairs, theta, n):
    """B^k: theta I updated by (3.10) with the stored pairs (s, y), the oldest first."""
    B = theta * np.eye(n)
    for s, y in pairs:
        Bs = B @ s
        B = B + np.outer(y, y) / (y @ s) - np.outer(Bs, Bs) / (s @ Bs)
    return B


def initial_scale(g):
    """theta of B^{k,0} = theta I at the current gradient (Section 3.2.3)."""
    return max(1.0, min(np.abs(g).max(), 1e8))


def subspace_step(B, g, active):
    """p of (3.2): p_A = 0 and B_FF p_F = -g_F on the rest."""
    p = np.zeros(len(g))
    free = ~active
    if free.any():
        try:
            p[free] = np.linalg.solve(B[np.ix_(free, free)], -g[free])
        except np.linalg.LinAlgError:
            p[free] = np.nan
    return p


# Active sets.


def correct_active_set(x, active, step, lower, upper):
    """Algorithm 3 from the active set A^init; step(active) solves (3.2).

    Returns the final set, its direction, and the number of corrections t.
    """
    tight = (x <= lower) | (x >= upper)
    active, t = active.copy(), 0
    while True:
        p = step(active)
        leaving = tight & ~active & (feasible_part(x, p, lower, upper) != p)  # step 8
        if not leaving.any() or not np.isfinite(p).all():
            return active, p, t
        active |= leaving  # step 12
        t += 1


def predict_active_set(x, gradients, lower, upper, variant):
    """A^init: B(grad) for variants 1 and 3, (3.9) for variants 2 and 4; gradients are newest last."""
    active = binding(x, gradients[-1], lower, upper)
    if variant in ("subgradient", "corrected-subgradient"):
        rows = np.array(gradients)
        active |= binding(x, min_norm_weights(rows @ rows.T) @ rows, lower, upper)  # (3.8)
    return active


# The line search.


class LineSearchError(Exception):
    """Algorithm 4 ended without a step; args[0] is the status."""


@dataclass
class Step:
    """What Algorithm 4 found: step size, point, f and gradient there, and whether (3.22) holds too."""

    alpha: float
    x: np.ndarray
    f: float
    g: np.ndarray
    wolfe: bool


def modified_wolfe(evaluate, x, f, g, p, lower, upper, c1=C1, c2=C2, eps_abs=EPS_ABS, eps_rel=EPS_REL):
    """Algorithm 4. evaluate(x) gives (f, gradient) and may raise LineSearchError(MAX_FUN)."""
    p_bar = feasible_part(x, p, lower, upper)  # step 4
    slope = g @ p_bar
    # departure: a direction that is not one of descent, or not finite, is as bad as none. In exact
    # arithmetic every variant gives slope <= -p'Bp < 0 unless p_bar = 0
    if not p_bar.any() or not np.isfinite(p_bar).all() or not slope < 0:
        raise LineSearchError(NO_DIRECTION)  # step 6
    # Step 2, with two departures. The printed gamma is negative for p_i < 0. The printed "infinity otherwise"
    # would make the maximum infinite as soon as one variable does not move.
    moving = p_bar != 0
    distance = np.where(p_bar > 0, upper - x, x - lower)
    with np.errstate(divide="ignore", over="ignore"):
        longest = np.max(distance[moving] / np.abs(p_bar[moving]))
    low, high = 0.0, longest
    best, bracketed = None, False
    alpha = min(1.0, high)  # step 3
    while True:
        trial = project(x + alpha * p_bar, lower, upper)
        f_trial, g_trial = evaluate(trial)
        # written so that NaN fails; departure: a gradient that is not finite fails too
        decreases = f_trial <= f + alpha * c1 * slope and np.isfinite(f_trial) and np.isfinite(g_trial).all()
        if not decreases:  # (3.21), step 10
            high, bracketed = alpha, True
        else:
            wolfe = g_trial @ feasible_part(trial, p, lower, upper) >= c2 * slope  # (3.22)
            step = Step(alpha, trial, f_trial, g_trial, bool(wolfe))
            if wolfe:
                return step  # step 16
            low, best = alpha, step
        # steps 19 to 23; departure: the printed test U < max gamma misses a failure at alpha = max gamma,
        # after which min(2L, U) = 0 for ever
        alpha = 0.5 * (high + low) if bracketed else min(2.0 * low, high)
        if alpha > LONGEST:
            # departure: the doubling would go on to infinity, and bisect from there for ever
            raise LineSearchError(UNBOUNDED)
        if high - low < eps_abs + eps_rel * low:  # step 24
            if best is not None:
                return best  # step 26
            raise LineSearchError(LINE_SEARCH)  # step 28


# The main algorithm.


@dataclass
class Result:
    """x, f, status (see MESSAGES), nit, nfev; history has one dict for each iteration."""

    x: np.ndarray
    f: float
    status: int
    nit: int
    nfev: int
    history: list = field(default_factory=list)


def nqn(
    fun_and_jac,
    x0,
    lower=-np.inf,
    upper=np.inf,
    variant="corrected",
    *,
    memory=MEMORY,
    n_gradients=N_GRADIENTS,
    max_iter=10_000,
    max_fun=np.inf,
    gtol=0.0,
    eps_skip=EPS_SKIP,
    **line_search,
):
    """Algorithm 5 for min f(x), lower <= x <= upper, by one of the four variants of Section 3.2.6.

    Stops at max_j |T(x, -grad)_j| <= gtol (step 3 has gtol = 0) or at the exits of Algorithm 4. It also stops
    after max_iter iterations or before the evaluation max_fun + 1. f decreases at every iteration, so that
    the last point is the best. The exception is a line search cut short by max_fun: it may have seen a better
    point, which is returned.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {VARIANTS}; got {variant!r}")
    x = np.array(x0, dtype=np.float64)
    n = len(x)
    lower, upper = np.broadcast_to(lower, n).astype(float), np.broadcast_to(upper, n).astype(float)
    x = project(x, lower, upper)
    nfev, best_seen = 0, (np.inf, x)

    def evaluate(point):
        nonlocal nfev, best_seen
        if nfev >= max_fun:
            raise LineSearchError(MAX_FUN)
        nfev += 1
        value, gradient = fun_and_jac(point)
        if value < best_seen[0]:
            best_seen = (value, point)
        return value, gradient

    f, g = evaluate(x)
    pairs, gradients, history = [], [g], []
    status = MAX_ITER
    for _ in range(max_iter):
        if np.abs(feasible_part(x, -g, lower, upper)).max() <= gtol:
            status = STATIONARY
            break
        B = bfgs_matrix(pairs, initial_scale(g), n)

        def step(active, B=B, g=g):
            return subspace_step(B, g, active)

        initial = predict_active_set(x, gradients, lower, upper, variant)
        if variant.startswith("corrected"):
            active, p, corrections = correct_active_set(x, initial, step, lower, upper)
        else:
            active, p, corrections = initial, step(initial), 0
        before = nfev
        try:
            found = modified_wolfe(evaluate, x, f, g, p, lower, upper, **line_search)
        except LineSearchError as error:
            status = error.args[0]
            break
        s, y = found.x - x, found.g - g  # (3.11)
        taken = s @ y > eps_skip * np.linalg.norm(s) * np.linalg.norm(y)  # step 12
        if taken:
            pairs = [*pairs, (s, y)][-memory:]
        x, f, g = found.x, found.f, found.g
        gradients = [*gradients, g][-n_gradients:]
        history.append(
            {
                "f": f,
                "alpha": found.alpha,
                "wolfe": found.wolfe,
                "nfev": nfev - before,
                "n_initial": int(initial.sum()),
                "n_active": int(active.sum()),
                "corrections": corrections,
                "taken": bool(taken),
            }
        )
    if best_seen[0] < f:
        f, x = best_seen
    return Result(x, f, status, len(history), nfev, history)
