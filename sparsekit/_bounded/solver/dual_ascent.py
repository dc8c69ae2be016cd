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
from ..._linalg.newton import SMALL_SIDE
from ..._solver.line_search import Trial, find_slope_root
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LossRows, PiecewiseLoss

# Least number of sweeps between two certificates.
MIN_SWEEPS = 10
# The largest: max_time and callbacks wait for it.
MAX_SWEEPS = 100
# Their number as a part of all sweeps so far. Always ten sweeps take 2.4 times as long to the last digits of
# a weak penalty.
MORE_SWEEPS = 0.2
# Sweeps after which the gap has to fall by half while their number grows fourfold. Else other methods go on:
# columns with large means and strong ridges have an intercept that moves slowly. With twofold, a fit to text
# takes 15 times as long.
PATIENT_SWEEPS = 60
# Quadratic term of an intercept, as a part of a row's mean one. With 1 six fits to text take 1.7 times as
# long.
INTERCEPT = 0.1
# Mean square of a row, in units of n l2, up to which sparse X with more rows than columns, but more than
# `SMALL_SIDE`, goes this way for losses with kinks: 26 such fits take 0.25 of the time, at most 1.9 times as
# long. Beyond it three of four sets take 1 to 4 times as long, tags of papers a tenth of the time.
MAX_ROW = 20.0


def ascends(run):
    """Whether `ascend` solves the problem: with more columns than rows, or sparse columns of short rows."""
    problem, loss = run.problem, run.problem.loss
    is_known = isinstance(loss, PiecewiseLoss) and is_in_main_memory(loss.s) and not run.is_small
    is_plain = problem.l2 > 0.0 and problem.l1 == 0.0
    if not (is_known and is_plain) or np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any():
        return False
    if problem.p >= problem.n:
        return True
    if not (loss.has_kinks and problem.matrix.is_sparse and problem.p > SMALL_SIDE):
        return False
    return float(problem.matrix.squares(loss.s).sum()) <= MAX_ROW * problem.n * problem.l2


def ascend(run, w, b):
    """Go from (w, b) to the solution (`Stop`), or until the gap falls slowly."""
    problem, loss = run.problem, run.problem.loss
    X, none = problem.matrix.X, np.empty(0, dtype=np.int32)
    if problem.matrix.is_sparse:
        X = X.tocsr()
        squares = problem.matrix.with_values(np.square(problem.matrix.data, dtype=np.float64))
        by_rows, squares = (X.data, X.indices, X.indptr), squares.matvec(np.ones(problem.p))
    else:
        by_rows = np.ascontiguousarray(X).ravel(), none, none
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    q = INTERCEPT * float(loss.s @ squares) / problem.l2 if problem.fit_intercept else 0.0
    shape = loss.lo, loss.hi, loss.eps, loss.delta
    dual = DualAscent(loss.t, loss.s, loss.c, shape, problem.l2, q, squares, problem.p)
    rows, spare = LossRows.empty(problem.n), LossRows.empty(problem.n)
    dual.b, n_sweeps, gaps = b, 0, [(0, np.inf)]
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
            shift, f = _best_shift(loss, z, f, spare)
        run.update_best(dual.w, dual.b + shift, f + problem.penalty(dual.w))
        run.certificate.update(dual.w, dual.b + shift, z, rows, gradient, run.primal)
        run.iteration("dual")
        before = next(gap for at, gap in reversed(gaps) if 4 * at <= n_sweeps)
        intercept_step = q * float(rows.u.sum())
        is_rounding = max(dual.violation, abs(intercept_step)) <= ROUNDING * loss.spread
        if is_rounding or (n_sweeps >= PATIENT_SWEEPS and not run.gap <= 0.5 * before):
            return
        gaps.append((n_sweeps, run.gap))
        dual.b -= intercept_step
        n_next = min(max(MIN_SWEEPS, int(MORE_SWEEPS * n_sweeps)), MAX_SWEEPS)
        problem.n_passes += dual.sweep(*by_rows, n_next) // problem.n
        n_sweeps += n_next


def _best_shift(loss, z, f, rows):
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
