r"""Coordinate ascent on the dual of a linear model with a ridge, without bounds and L1 part.

.. math:: \max_{lo \le a \le hi} - \sum_i s_i h^*(a_i) - u^T t - \tfrac{1}{2 \alpha_2} \|X^T u\|^2,
          \quad u_i = s_i c_i a_i, \quad \sum_i u_i = 0

A step maximises over one a_i and reads one row of X [1]_; rows that stay at a bound are left out. The last
condition is that of a free intercept. It has b as its multiplier and a quadratic term, as in the method of
multipliers. Where the gap falls slowly NQN and Newton's method do the whole fit.

60 fits of six losses to five made sets, none of them used to choose anything here, take 0.11 of the time that
NQN and Newton's method take. Huber fits to 900 x 1000 normal numbers take up to 4.5 times as long.

.. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual coordinate descent
   method for large-scale linear SVM", ICML 2008.
"""

import numpy as np

from ..._arrays import is_in_main_memory
from ..._cython.bounded._dual_ascent import DualAscent
from ..._linalg.class_products import squared_norms
from ..._linalg.newton import MAX_SIDE
from ..._solver.line_search import Trial, find_slope_root
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LossRows

# Least number of sweeps between two certificates.
MIN_SWEEPS = 10
# The largest: max_time and callbacks wait for it.
MAX_SWEEPS = 100
# Their number as a part of all sweeps so far. Always ten sweeps take 2.4 times as long to the last digits of
# a weak penalty.
MORE_SWEEPS = 0.2
# What the other methods cost, in entries of X that sweeps read: STEPS min(n, p)^2 p + WORK. Where more sweeps
# seem to be left, these methods take over. 124 fits made for this choice take 1.07 times as long as the
# better way of each.
STEPS = 2.0
WORK = 1e8
# Cost in sweeps below which they do not begin. With none, fits to 10000 x 30 normal numbers take 1.6 times as
# long; with 600, fits to 3000 x 100 and 2000 x 150 ones 1.06 times.
MIN_COST = 350
# Part of that cost after which the sweeps left are estimated; the gap falls slowly at first.
TRIAL = 0.1
# Quadratic term of an intercept, as a part of a row's mean one. 192 fits to made data take 1.3 times as long
# with 0.1, and as long with 1, but up to 3.5 times.
INTERCEPT = 0.3


def ascends(matrix, weight, has_kinks):
    """Whether `ascend` solves ridges on X: with kinks or more columns than rows."""
    n, p = matrix.shape
    return is_in_main_memory(weight) and (p >= n or has_kinks) and cost_in_sweeps(matrix) >= MIN_COST


def cost_in_sweeps(matrix):
    """What the other methods cost."""
    n, p = matrix.shape
    return (STEPS * min(n, p, MAX_SIDE) ** 2 * p + WORK) / max(matrix.nnz, 1)


def ascend(run, w, b):
    """Go from (w, b) to the solution (`Stop`), or until the gap falls slowly."""
    problem, loss = run.problem, run.problem.loss
    rows, spare = LossRows.empty(problem.n), LossRows.empty(problem.n)
    by_rows, squares = rows_of(problem.matrix)
    dual = dual_of(loss, problem.l2, squares, problem.p, problem.fit_intercept)
    dual.b, pace = b, Pace(problem.matrix)
    if w.any():
        dual.a[:] = loss.evaluate(problem.predictor(w, b), rows).dual
    while True:
        rows.dual[:] = dual.a
        rows.u[:] = loss.s * dual.a if loss.c is None else loss.s * loss.c * dual.a
        gradient = problem.transposed(rows.u)
        dual.w[:] = gradient / -problem.l2  # the kernel's sums of many changes have rounding errors
        z = problem.predictor(dual.w, dual.b)
        f, shift = loss.evaluate(z, spare).f, 0.0
        if problem.fit_intercept:
            shift, f = best_shift(loss, z, f, spare)
        run.update_best(dual.w, dual.b + shift, f + problem.penalty(dual.w))
        run.certificate.update(dual.w, dual.b + shift, z, rows, gradient, run.primal)
        run.iteration("dual")
        intercept_step = dual.q * float(rows.u.sum())
        is_rounding = max(dual.violation, abs(intercept_step)) <= ROUNDING * loss.spread
        if is_rounding or pace.is_slow(run.gap, run.allowed(run.options.tol)):
            return
        dual.b += max(shift, -intercept_step, key=abs)
        problem.n_passes += dual.sweep(*by_rows, pace.step()) // problem.n


def rows_of(matrix):
    """Entries of X by rows, as `DualAscent.sweep` reads them, and the rows' squares (n,)."""
    X, none = matrix.X, np.empty(0, dtype=np.int32)
    if matrix.is_sparse:
        X = X.tocsr()
        return (X.data, X.indices, X.indptr), squared_norms(matrix)
    return (np.ascontiguousarray(X).ravel(), none, none), squared_norms(matrix)


def dual_of(loss, l2, squares, p, fit_intercept):
    """The `DualAscent` of a `PiecewiseLoss`."""
    q = INTERCEPT * float(loss.s @ squares) / l2 if fit_intercept else 0.0
    shape = loss.lo, loss.hi, loss.eps, loss.delta
    return DualAscent(loss.t, loss.s, loss.c, shape, l2, q, squares, p)


class Pace:
    """How many sweeps there were, how many come next, and whether it goes too slowly."""

    def __init__(self, matrix):
        self.most = cost_in_sweeps(matrix)
        self.n_sweeps, self.gaps = 0, [(0, np.inf)]

    def is_slow(self, gap, allowed):
        """Whether more sweeps are left than the other methods cost, at the rate of the last half of them."""
        at, before = next(point for point in reversed(self.gaps) if 2 * point[0] <= self.n_sweeps)
        self.gaps.append((self.n_sweeps, gap))
        if self.n_sweeps < TRIAL * self.most:
            return False
        return (self.n_sweeps - at) * np.log(gap / allowed) > self.most * np.log(before / gap)

    def step(self):
        """The number of sweeps that come next."""
        n_next = min(max(MIN_SWEEPS, int(MORE_SWEEPS * self.n_sweeps)), MAX_SWEEPS)
        self.n_sweeps += n_next
        return n_next


def best_shift(loss, z, f, rows):
    """What to add to the predictor z, at which the loss is f, for about the least loss, and that loss."""
    step = np.full_like(z, loss.spread)
    slope = loss.slope_along(z, step, 0.0)
    side = -np.sign(slope)
    found = find_slope_root(
        lambda t: Trial(t, slope=side * loss.slope_along(z, step, side * t)), -abs(slope), part=ROUNDING
    )
    if found is None:
        return 0.0, f
    shift = side * found.t * loss.spread
    moved = loss.evaluate(z + shift, rows).f
    return (shift, moved) if moved < f else (0.0, f)
