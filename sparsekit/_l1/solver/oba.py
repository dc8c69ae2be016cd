"""OBA: the orthant-based adaptive method for min f(x) + sum_j l1_j |x_j|.

Algorithms 1 and 2 of chapter 2 of Keskar, "Second-order methods for stochastic and nonsmooth
optimization"; equation numbers below are that chapter's. `oba_step` has one iteration. The model is minimised
by several cycles of Algorithm 1 instead of one (``model_cycles``): a cycle on the model costs no pass over
the data.
"""

import time
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import namespace
from ..._linalg.special import largest
from ..._linalg.threads import blas_threads
from ..._messages import check_nonnegative, numbers
from ..._solver import outcome
from ..._solver.tolerances import ROUNDING
from ..._solver.user_values import as_number, check_start
from .. import plan
from ..losses.ridge import RidgeProblem
from ..losses.rounding import VALUE_ROUNDING
from ..losses.user_problem import as_problem
from .few_rows import few_rows, start_from_few_rows
from .oba_run import CONVERGED_BY_PREDICTION, MESSAGES, Kernels, OBAOptions, OBARun
from .oba_step import choose_variables, identify, init_state, step
from .quasi_newton import QuasiNewtonProblem
from .working_set import PATIENCE

# Iterations of little decrease that a smaller gap is worth.
MAX_SLOW = 15


def minimize_oba(
    loss,
    l1,
    x0=None,
    *,
    tol=OBAOptions.tol,
    max_iter=OBAOptions.max_iter,
    max_time=None,
    hessian="exact",
    memory=10,
    callback=None,
    history=False,
    gap=True,
    options=None,
    gradient=False,
    predicted_tol=OBAOptions.predicted_tol,
    l2=None,
    unit=None,
    row_basis=None,
    make_kernels=Kernels,
):
    """Minimise f(x) + sum_j l1_j |x_j| for a smooth convex loss f.

    See :func:`sparsekit.optimize.minimize_oba` for the parameters and the result. Without
    ``gradient`` its ``grad`` is None where not all variables are in the problem. ``l2``, a number or one a
    variable, adds sum_j l2_j / 2 x_j^2. ``unit`` is that of ``tol``, by default `unit_of_tol`.
    ``row_basis`` is a `FewRows` of the loss, where one is known, or False: none is made. ``make_kernels``
    makes the run's kernels of an array.
    """
    opts = options or OBAOptions(
        tol=tol,
        max_iter=max_iter,
        max_time=np.inf if max_time is None else max_time,
        hessian=hessian,
        memory=memory,
        predicted_tol=predicted_tol,
    )
    problem = as_problem(loss, opts, x0)
    n, like = problem.size, problem.like
    l1 = _check_weights(l1, n, like, "l1")
    l2 = None if l2 is None else _check_weights(l2, n, like, "l2")
    if l2 is not None and l2.any():
        problem = RidgeProblem(problem, l2)
    x = np.zeros(n, like=like) if x0 is None else numbers(x0, "x0", namespace(loss=like, x0=x0)).copy()
    if x.shape != (n,):
        raise ValueError(f"x0 must have shape ({n},), one value a variable; got {x.shape}")
    if not np.all(np.isfinite(x)):
        raise ValueError("x0 must be finite; it holds NaN or infinity")

    with blas_threads(problem.blas_threads):
        short = None
        if l2 is not None and opts.hessian == "exact" and row_basis is not False:
            short = few_rows(loss, l1, l2, row_basis)
        if short is not None:
            return _by_few_rows(loss, problem, l1, x, n, opts, callback, history, gap, unit, short)
        part, kept = problem.screened(l1, plan.SCREENED_PART)
        if kept is None:
            return _minimize(loss, problem, l1, x, n, opts, callback, history, gap, unit, make_kernels)
        seen = None if callback is None else of_all(callback, np.zeros_like(x), kept)
        result = _minimize(loss, part, l1[kept], x[kept], n, opts, seen, history, gap, unit, make_kernels)
        x[:] = 0.0
        x[kept] = result.x
        result.x, result.grad = x, None
        if gradient:
            problem.start(x)
            result.grad = problem.gradient()
        return result


def of_all(callback, x, variables, nit=0, seconds=0.0):
    """The callback of all variables, of a run on some ``variables`` that began at x after others."""

    def report(intermediate_result):
        one = OptimizeResult(intermediate_result)
        one.x = x.copy()
        one.x[variables] = intermediate_result.x
        one.nit, one.time = intermediate_result.nit + nit, intermediate_result.time + seconds
        return callback(one)

    return report


def _by_few_rows(loss, problem, l1, x, n_variables, opts, callback, history, gap, unit, short):
    """The result from a start that `start_from_few_rows` finds, most often the end, its counters added."""
    unit = unit_of_tol(loss, x) if unit is None else unit

    def minimize(loss, v, l2, options, callback, history):
        return minimize_oba(
            loss, 0.0, v, options=options, callback=callback, history=history, l2=l2, row_basis=False
        )

    begun = time.perf_counter()
    x, before = start_from_few_rows(*short, problem, x, unit, opts, minimize, callback, history)
    stopped, nit = before[-1].status == outcome.STOPPED, sum(one.nit for one in before)
    left = max(opts.max_time - (time.perf_counter() - begun), 0.0)
    rest = replace(opts, max_iter=0 if stopped else max(opts.max_iter - nit, 0), max_time=left)
    result = _minimize(loss, problem, l1, x, n_variables, rest, callback, history, gap, unit)
    if stopped:
        result.status, result.success, result.message = outcome.STOPPED, False, before[-1].message
    return joined(before, result, history)


def joined(before, result, history):
    """The result with the counters and the history of those before it."""
    result.n_corrections = [n for one in (*before, result) for n in one.n_corrections]
    for name in ("nit", "nfev", "njev", "n_cg", "n_direct", "n_products", "n_ista"):
        result[name] += sum(one[name] for one in before)
    if history:
        pieces = [one.history for one in (*before, result)]
        result.history = {name: np.concatenate([h[name] for h in pieces]) for name in result.history}
    return result


def _minimize(
    loss, problem, l1, x, n_variables, opts, callback, history, gap, unit, make_kernels=Kernels
):  # fmt: skip
    if opts.hessian == "lbfgs":
        problem = QuasiNewtonProblem(problem, opts.memory)
    problem.start(x)
    g = problem.gradient()  # first: a loss may recognise its last point
    kernels = make_kernels(x)
    if x.any() and not problem.f + kernels.orthant.penalty(x, l1) <= as_number(
        loss.value(np.zeros(n_variables, like=x)), "loss.value"
    ):
        # a start worse than zero (or not even finite) may lie where the loss is flat
        x = np.zeros_like(x)
        problem.start(x)
        g = problem.gradient()
    check_start(problem.f, g, "f", "the gradient of f")
    unit = unit_of_tol(loss, x, g) if unit is None else unit
    run = OBARun(opts, kernels, unit, callback, history)
    run.certify = partial(kernels.certificate, loss) if gap else _no_gap
    x, g, optimality = _solve(problem, x, l1, g, run)
    if run.status in (outcome.MAX_ITER, outcome.NO_PROGRESS) and problem.inner.falls_for_ever(x, l1):
        run.status = outcome.UNBOUNDED
    result = OptimizeResult(
        x=x,
        fun=float(problem.f + kernels.orthant.penalty(x, l1)),
        status=run.status,
        success=run.status == outcome.CONVERGED,
        message=MESSAGES[run.status],
        optimality=optimality,
        grad=g,
        n_data_passes=problem.passes(),
        history=run.history.columns(),
        **vars(run.counts),
    )
    result.nfev, result.njev = result.nfev + 1, result.njev + 1  # those at the start
    if run.is_predicted_small and result.success:
        result.message = CONVERGED_BY_PREDICTION
    gap = run.gap
    if gap is None:
        gap = run.certify(problem, x, l1, g, opts.gap_tol * abs(result.fun), run.counts.n_products)
    result.dual_gap = 0.0 if gap < 0.0 else gap  # by rounding; NaN stays
    is_certified = optimality <= opts.tol and gap <= opts.gap_tol * abs(result.fun)
    if (result.status == outcome.MAX_ITER and is_certified) or (
        result.status == outcome.NO_PROGRESS
        and (optimality <= opts.tol or _is_rounding(run.unit, gap, result.fun))
    ):
        # The last iterate is a solution. Or rounding forbade only the last digits of the gap. Or all slopes
        # at zero are rounding.
        result.status, result.success = outcome.CONVERGED, True
        result.message = MESSAGES[outcome.CONVERGED]
    return result


def _is_rounding(scale, gap, fun):
    """Whether slopes at zero, at most ``scale``, are rounding, as of constant columns, and x is proven."""
    return scale <= ROUNDING * abs(fun) ** 0.5 and abs(gap) <= ROUNDING * abs(fun) < np.inf


def _no_gap(*_):
    return np.nan


def _check_weights(weights, n, like, name):
    xp = namespace(loss=like, **{name: weights})
    weights = numbers(weights, name, xp)
    if weights.ndim == 0:
        weights = xp.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"{name} must be a number or have shape ({n},); got {weights.shape}")
    check_nonnegative(weights, name)
    return xp.ascontiguousarray(weights)


def unit_of_tol(loss, x, g=None):
    """max_j |grad_j f(0)|, the unit of the relative optimality measure; ``g`` is the gradient at x.

    It is taken at the origin and not at x0, so that a warm start does not tighten ``tol``. Where the
    gradient there is zero or not finite the unit is max_j |g_j|, or 1.
    """
    at_zero = g is not None and not x.any() and len(g) == loss.n_variables
    g0 = g if at_zero else loss.gradient(np.zeros(loss.n_variables, like=x))
    unit = largest(np.abs(g0))
    if 0.0 < unit < np.inf:
        return unit
    return (0.0 if g is None else largest(np.abs(g))) or 1.0


def _solve(problem, x, l1, g, run):
    """Algorithm 2 from x, where the problem is and g is its gradient; returns x, g and the optimality."""
    state = init_state(problem, x, l1, g, run)
    previous, is_lost, n_lost, n_slow = np.inf, False, 0, 0
    while True:
        violation = identify(state, run)
        optimality = violation / run.unit
        if run.history and not run.history.rows:
            run.record(state.x, state.phi, optimality, 0, 0)
        if run.status is None:  # else a callback has ended the run, converged or not
            tol = run.tol
            run.status = _verdict(problem, state.x, l1, state.g, optimality, run)
            is_lost = is_lost and run.tol == tol
        # steps whose reduction is lost in rounding go on as long as they reduce the gradient
        n_lost = n_lost + 1 if is_lost and violation > 0.5 * previous else 0
        previous = violation
        if run.out_of_budget():
            break
        if n_lost == PATIENCE or n_slow == MAX_SLOW:
            run.status = outcome.NO_PROGRESS
            break
        try:
            done = step(state, choose_variables(state), run)
        except outcome.Stop as stop:
            run.status = stop.status
            break
        if run.history or run.callback is not None:
            run.report(state, done)
        run.check_prediction(done.ratio, state.phi)
        is_lost = not done.reduction > VALUE_ROUNDING * abs(state.phi)
        # tol is reached and the gap is not, and nothing moves: columns that are copies of others, mostly
        is_slow = run.tol < run.options.tol and not done.reduction > ROUNDING * abs(state.phi)
        n_slow = n_slow + 1 if is_slow else 0
    return state.x, state.g, optimality


def _verdict(problem, x, l1, g, optimality, run):
    """Converged, if one of the rules says so, or None."""
    if optimality <= run.tol:
        return _certify(problem, x, l1, g, optimality, run)
    return outcome.CONVERGED if run.is_predicted_small else None


def _certify(problem, x, l1, g, optimality, run):
    """Converged where the duality gap is small as well; else None, and run.tol is tightened.

    The optimality measure is relative to the gradient at zero. Where the penalty is far below that, a
    gradient that is small relative to the one can be large relative to the other.
    """
    allowed = run.options.gap_tol * abs(problem.f + run.kernels.orthant.penalty(x, l1))
    run.gap = run.certify(problem, x, l1, g, allowed, run.counts.n_products)
    # NaN: no certificate can be had; where all slopes are rounding the gap gets no smaller
    if not run.gap > allowed or optimality <= VALUE_ROUNDING:
        return outcome.CONVERGED
    run.tol = 0.5 * optimality
    run.gap = None
    return None
