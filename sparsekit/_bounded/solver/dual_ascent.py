r"""Coordinate ascent on the dual of a linear model with a ridge.

.. math:: \max_{lo \le a \le hi} - \sum_i s_i h^*(a_i) - u^T t - g^*(-X^T u),
          \quad u_i = s_i c_i a_i, \quad \sum_i u_i = 0

g is the penalty over the box. A step maximises over one a_i and reads one row of X [1]_; rows that stay at a
bound are left out. The curvature of a step is |x_i|^2 / alpha_2, an upper bound where coefficients are at
bounds or zero. The last condition is that of a free intercept. It has b as its multiplier and a quadratic
term, as in the method of multipliers. `plan.py` decides when it runs and when it gives way to other methods.

.. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual coordinate descent
   method for large-scale linear SVM", ICML 2008.
"""

import numpy as np

from ..._cython.bounded._dual_ascent import DualAscent
from ..._linalg.class_products import squared_norms
from ..._solver.line_search import Trial, find_slope_root
from ..._solver.tolerances import ROUNDING
from .. import plan
from ..losses.losses import LossRows

# Least number of sweeps between two certificates.
MIN_SWEEPS = 10
# Largest number of sweeps between two certificates: max_time and callbacks wait for them.
MAX_SWEEPS = 100
# Sweeps between two certificates, as a part of all sweeps so far. With 10 sweeps always, the last digits of a
# weak penalty take 2.4 times as long.
MORE_SWEEPS = 0.2
# Quadratic term of an intercept, as a part of a row's mean one. 192 fits to made data take 1.3 times as long
# with 0.1, and as long with 1, but up to 3.5 times.
INTERCEPT = 0.3


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
    """The number of sweeps so far, and the gaps after them.

    ``other_cost`` is what other methods cost, in sweeps.
    """

    def __init__(self, other_cost):
        self.other_cost = other_cost
        self.n_sweeps, self.gaps = 0, [(0, np.inf)]

    def is_slow(self, gap, allowed):
        """Whether more sweeps are left than the other methods cost, at the rate of the last half of them."""
        at, before = next(point for point in reversed(self.gaps) if 2 * point[0] <= self.n_sweeps)
        self.gaps.append((self.n_sweeps, gap))
        return plan.ascent_gives_way(self.n_sweeps, at, before, gap, allowed, self.other_cost)

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
