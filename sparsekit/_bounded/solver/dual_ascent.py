r"""Coordinate ascent on the dual of a linear model with a ridge.

.. math:: \max_{lo \le a \le hi} - \sum_i s_i h^*(a_i) - u^T t - g^*(-X^T u),
          \quad u_i = s_i c_i a_i, \quad \sum_i u_i = 0

g is the penalty over the box. A step maximises over one a_i and reads one row of X [1]_; rows that stay at a
bound are left out. The curvature of a step is |x_i|^2 / alpha_2, an upper bound where coefficients are at
bounds or zero. The last condition is that of a free intercept. It has b as its multiplier and a quadratic
term, as in the method of multipliers. Where the gap falls slowly other methods go on.

Without bounds and L1 part it comes first. 180 fits of six losses to ten made sets, none of them used to
choose anything here, take 0.49 of the time that NQN and Newton's method take, 18 of them to wide X 0.06. One
takes 6.5 times as long (10 to 70 ms), the others at most 2.1 times. The cost of least squares came
later.

With them NQN comes first: narrow boxes take few iterations, and the number of free coefficients is known
then. 93 of 198 fits of five losses to nine made sets, none of them used to choose this, have sweeps. The 93
take 0.60 of the time without sweeps, cut off at 5 seconds, at most 1.4 times as long. The rule was simpler
afterwards: 169 of such fits take 1.00 of that time, one 2.4 times as long.

.. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual coordinate descent
   method for large-scale linear SVM", ICML 2008.
"""

import numpy as np

from ..._arrays import is_in_main_memory
from ..._cython.bounded._dual_ascent import DualAscent
from ..._linalg.class_products import squared_norms
from ..._linalg.cost import HOST
from ..._linalg.newton import MAX_SIDE
from ..._solver.line_search import Trial, find_slope_root
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LossRows, PiecewiseLoss
from .scaled_descent import IterationTime

# Least number of sweeps between two certificates.
MIN_SWEEPS = 10
# Largest number of sweeps between two certificates: max_time and callbacks wait for them.
MAX_SWEEPS = 100
# Sweeps between two certificates, as a part of all sweeps so far. With 10 sweeps always, the last digits of a
# weak penalty take 2.4 times as long.
MORE_SWEEPS = 0.2
# Number of Newton systems in the estimated cost of NQN and Newton's method. Where more sweeps seem to be left
# than that costs, these go on: 124 fits made for this choice take 1.08 times as long as the better way of
# each. With 1 a fit to 800 x 800 normal numbers takes 16 times as long, with 3 the 124 fits 1.13 times.
NEWTON_STEPS = 1.5
# NQN's part of that cost, in entries that sweeps read. With 5e7 a fit to 200 x 200 normal numbers takes
# 16 times as long, with 2e8 the 124 fits 1.1 times.
FIXED_COST = 1e8
# Cost of a sweep beside its entries and rows, in entries: its part of a certificate. Without it four fits to
# 300 x 80 to 600 x 50 sparse numbers take 5 to 6 times as long as by Newton's method, with it 1.2 to 1.9.
SWEEP_COST = 1e4
# Cost of NQN and Newton's method, in sweeps, below which no sweep is made. With 0 fits to 10000 x 30 normal
# numbers take 1.6 times as long; with 600 fits to 3000 x 100 and 2000 x 150 ones take 1.06 times as long.
MIN_COST = 350
# Part of the other methods' cost after which the number of sweeps left is estimated; the gap falls slowly at
# first. With 0.05 two of the 124 fits take 16 times as long, with 0.2 low ranks take 3 times as long.
TRIAL = 0.1
# Quadratic term of an intercept, as a part of a row's mean one. 192 fits to made data take 1.3 times as long
# with 0.1, and as long with 1, but up to 3.5 times.
INTERCEPT = 0.3


def estimate_ridge_cost(matrix, weight, has_kinks, is_quadratic=False):
    """`estimate_other_cost` of ridges on X; of smooth losses 0 where X has more rows than columns.

    Least squares take one step of Newton's method, whose multiply-adds take `HOST.factor` nanoseconds; an
    entry of a sweep takes what one of NQN's does. 85 fits to 17 matrices of p >= n take 0.64 of the time that
    they take with the cost of other losses and as long for NQN, at most 1.2 times as long; 56 others 0.66, at
    most 1.1, 112 to p from n to 10 n 0.90, at most 2.1. Sparse 3000 x 3000 ones of weak ridges take 0.13.
    """
    n, p = matrix.shape
    if not (is_in_main_memory(weight) and (p >= n or has_kinks)):
        return 0.0
    part = 1.0
    if is_quadratic:
        part = HOST.factor / (IterationTime.sparse_entry if matrix.is_sparse else IterationTime.entry)
    return _newton_cost(matrix, p, FIXED_COST, part)


def estimate_other_cost(problem, w=None):
    """What other methods cost, in sweeps; 0 where no sweep is made. w (p,) is NQN's point, None before it.

    Problems without bounds and L1 part have sweeps before NQN, others after it. Least squares in a box have
    none. They take few Newton steps, and sweeps take up to 3 times as long (36 fits to text and wide X).
    """
    loss = problem.loss
    if not (isinstance(loss, PiecewiseLoss) and problem.l2 > 0.0 and problem.is_ridge == (w is None)):
        return 0.0
    if problem.is_ridge:
        return estimate_ridge_cost(problem.matrix, loss.s, loss.has_kinks, loss.is_quadratic)
    if not is_in_main_memory(loss.s) or loss.is_quadratic:
        return 0.0
    return _newton_cost(problem.matrix, count_free(problem, w))


def _newton_cost(matrix, n_free, fixed=0.0, part=1.0):
    """The cost of Newton's method with ``n_free`` coefficients, in sweeps; 0 below `MIN_COST`.

    ``fixed`` is a cost in entries. ``part`` is a factor of what reaches `MIN_COST`.
    """
    n, m = matrix.shape[0], min(matrix.shape[0], n_free, MAX_SIDE)
    entries = NEWTON_STEPS * m**2 * (matrix.nnz / n + m / 3.0) + fixed
    cost = entries / (matrix.nnz + n + SWEEP_COST)
    return part * cost if cost >= MIN_COST else 0.0


def count_free(problem, w):
    """The number of coefficients off their bounds, and off zero where there is an L1 part."""
    is_free = (w > problem.lower) & (w < problem.upper)
    return np.count_nonzero(is_free & (w != 0.0) if problem.l1 else is_free)


def ascend(run, w, b, cost):
    """Go from (w, b) to the solution (`Stop`), or to where the gap falls slowly.

    ``cost`` is what other methods cost, in sweeps.
    """
    problem, loss = run.problem, run.problem.loss
    rows, spare = LossRows.empty(problem.n), LossRows.empty(problem.n)
    by_rows, squares = read_rows(problem.matrix)
    limits = problem.lower, problem.upper, problem.l1
    dual = make_dual(loss, problem.l2, squares, problem.fit_intercept, *limits)
    dual.b, pace = b, Pace(cost)
    if w.any() or b:
        dual.a[:] = loss.evaluate(problem.predictor(w, b), rows).dual
    while True:
        rows.dual[:] = dual.a
        rows.u[:] = loss.s * dual.a if loss.c is None else loss.s * loss.c * dual.a
        gradient = problem.transposed(rows.u)
        dual.set_sums(gradient / -problem.l2)  # sums of many updates have rounding errors
        z = problem.predictor(dual.w, dual.b)
        f, shift = loss.evaluate(z, spare).f, 0.0
        if problem.fit_intercept:
            shift, f = find_shift(loss, z, f, spare)
        run.update_best(dual.w, dual.b + shift, f + problem.penalty(dual.w))
        run.certificate.update(dual.w, dual.b + shift, z, rows, gradient, run.primal)
        run.iteration("dual")
        intercept_step = dual.q * float(rows.u.sum())
        is_rounding = max(dual.violation, abs(intercept_step)) <= ROUNDING * loss.spread
        if is_rounding or pace.is_slow(run.gap, run.allowed(run.options.tol)):
            return
        dual.b += max(shift, -intercept_step, key=abs)
        problem.n_passes += dual.sweep(*by_rows, pace.count_next()) // problem.n


def read_rows(matrix):
    """Entries of X by rows, as `DualAscent.sweep` reads them, and the rows' squares (n,)."""
    X, none = matrix.X, np.empty(0, dtype=np.int32)
    if matrix.is_sparse:
        X = X.tocsr()
        return (X.data, X.indices, X.indptr), squared_norms(matrix)
    return (np.ascontiguousarray(X).ravel(), none, none), squared_norms(matrix)


def make_dual(loss, l2, squares, fit_intercept, lower, upper, l1=0.0):
    """The `DualAscent` of a `PiecewiseLoss`."""
    q = INTERCEPT * float(loss.s @ squares) / l2 if fit_intercept else 0.0
    shape = loss.lo, loss.hi, loss.eps, loss.delta
    return DualAscent(loss.t, loss.s, loss.c, shape, l2, q, squares, lower, upper, l1)


class Pace:
    """Counts sweeps, and judges how fast the gap falls.

    ``other_cost`` is what other methods cost, in sweeps.
    """

    def __init__(self, other_cost):
        self.other_cost = other_cost
        self.n_sweeps, self.gaps = 0, [(0, np.inf)]

    def is_slow(self, gap, allowed):
        """Whether more sweeps are left than the other methods cost, at the rate of the last half of them."""
        at, before = next(point for point in reversed(self.gaps) if 2 * point[0] <= self.n_sweeps)
        self.gaps.append((self.n_sweeps, gap))
        if np.isnan(gap):
            return True
        if self.n_sweeps < TRIAL * self.other_cost:
            return False
        left = (self.n_sweeps - at) * np.log(gap / allowed)  # times the logarithm below
        return left > self.other_cost * np.log(before / gap)

    def count_next(self):
        """The number of sweeps until the next certificate, which are counted."""
        n_next = min(max(MIN_SWEEPS, int(MORE_SWEEPS * self.n_sweeps)), MAX_SWEEPS)
        self.n_sweeps += n_next
        return n_next


def find_shift(loss, z, f, rows):
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
