"""OBA: the orthant-based adaptive method for min f(x) + sum_j l1_j |x_j|.

Algorithms 1 and 2 of chapter 2 of Keskar, "Second-order methods for stochastic and nonsmooth
optimization"; equation numbers below are that chapter's. Two things stand around it:

* the model is minimised by several cycles of Algorithm 1 instead of one (``model_cycles``),
  since a cycle on the model costs no pass over the data;
* large problems are solved on a growing working set of variables, and the answer is certified
  by the optimality measure of *all* variables.
"""

from functools import partial

import numpy as np
from scipy.optimize import OptimizeResult

from .._device import namespace
from .._linalg.extremes import largest
from .._linalg.threads import blas_threads
from .._messages import numbers
from .._solver import outcome
from ._extrapolation import DualExtrapolation
from ._generic import as_problem
from ._minimise_model import minimise_model
from ._quasi_newton import QuasiNewtonProblem
from ._run import CONTENT, MESSAGES, Kernels, OBAOptions, Run
from .duality import duality_gap

# largest multiple of the penalty to start from; a penalty farther away is as good as none
_FARTHEST = 1e8
# relative error to expect of an objective summed over the rows
_ROUNDING = 1e-14
# variables up to which the last stage of a tall problem grows gently
_SMALL = 1000
# growth of tall problems
_TALL_GROWTH = 10.0
# part of its penalty that a zero variable's gradient must reach to enter a working set
_NEAR = 0.8
# shortest part of a step to try before the ISTA point is brought in
_SHORTEST = 1 / 64
# relative decrease of the objective that is little, and how many such iterations a smaller gap is worth
_SLOW, _PATIENCE = 1e-10, 15
# part of tol from which rounding is taken to forbid a smaller gap
_TIGHTEST = 1e-7


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
    promise_tol=OBAOptions.promise_tol,
):
    """Minimise f(x) + sum_j l1_j |x_j| for a smooth convex loss f.

    See :func:`sparsekit.optimize.minimize_oba` for the parameters and the result. Without
    ``gradient`` its ``grad`` is None where not all variables were looked at.
    """
    opts = options or OBAOptions(
        tol=tol,
        max_iter=max_iter,
        max_time=np.inf if max_time is None else max_time,
        hessian=hessian,
        memory=memory,
        promise_tol=promise_tol,
    )
    problem = as_problem(loss, opts, x0)
    n, like = problem.size, problem.like
    l1 = _check_l1(l1, n, like)
    x = np.zeros(n, like=like) if x0 is None else numbers(x0, "x0", namespace(loss=like, x0=x0)).copy()
    if x.shape != (n,):
        raise ValueError(f"x0 must have shape ({n},), one value a variable; got {x.shape}")
    if not np.all(np.isfinite(x)):
        raise ValueError("x0 must be finite; it holds NaN or infinity")

    with blas_threads(getattr(loss, "blas_threads", None)):
        # variables that no solution can use are never looked at again
        part = problem.screened(l1)
        if part is not problem:
            x, l1 = x[part.variables], l1[part.variables]
        result = _minimize(loss, part, l1, x, n, opts, callback, history, gap)
        if part is not problem:
            result.x = part.expand(result.x)
            problem.absorb(part)
            result.grad = problem.gradient() if gradient else None
            result.n_data_passes = problem.passes()
        return result


def _minimize(loss, problem, l1, x, n_variables, opts, callback, history, gap):
    if opts.hessian == "lbfgs":
        problem = QuasiNewtonProblem(problem, opts.memory)
    problem.start(x)
    kernels = Kernels(x)
    if x.any() and not problem.f + kernels.model.penalty(x, l1) <= loss.value(np.zeros(n_variables, like=x)):
        # a start worse than zero (or not even finite) may lie where the loss is flat
        x = np.zeros_like(x)
        problem.start(x)
    g = problem.gradient()
    run = Run(opts, kernels, _origin_scale(loss, problem, x, g), callback, history, n_variables=n_variables)
    run.certify = partial(duality_gap, loss) if gap else _no_gap
    run.dual = DualExtrapolation() if gap else None
    x, g, optimality = _working_sets(problem, x, l1, g, run)
    result = OptimizeResult(
        x=x,
        fun=float(problem.f + kernels.model.penalty(x, l1)),
        nit=run.nit,
        nfev=run.nfev + 1,
        njev=run.njev + 1,
        status=run.status,
        success=run.status == outcome.CONVERGED,
        message=CONTENT if run.content and run.status == outcome.CONVERGED else MESSAGES[run.status],
        optimality=optimality,
        grad=g,
        n_corrections=run.corrections,
        n_cg=run.n_cg,
        n_direct=run.n_direct,
        n_products=run.n_products,
        n_data_passes=problem.passes(),
        n_ista=run.n_ista,
        history=run.history.columns(),
    )
    result.dual_gap = run.certify(problem, x, l1, g) if run.gap is None else run.gap
    if result.status == outcome.NO_PROGRESS and optimality <= opts.tol:
        # what rounding forbade was the gap's last digits
        result.status, result.success = outcome.CONVERGED, True
        result.message = MESSAGES[outcome.CONVERGED]
    return result


def _no_gap(*_):
    return np.nan


def _check_l1(l1, n, like):
    xp = namespace(loss=like, l1=l1)
    l1 = numbers(l1, "l1", xp)
    if l1.ndim == 0:
        l1 = xp.full(n, float(l1))
    if l1.shape != (n,):
        raise ValueError(f"l1 must be a number or have shape ({n},); got {l1.shape}")
    if not np.all(np.isfinite(l1)) or np.any(l1 < 0):
        raise ValueError("l1 must be finite and at least 0 in every entry")
    return xp.ascontiguousarray(l1)


def _origin_scale(loss, problem, x, g):
    """max_j |grad_j f(0)|, the unit of the relative optimality measure.

    It is taken at the origin and not at x0, so that a warm start does not tighten ``tol``.
    """
    cached = getattr(loss, "origin_scale", None)
    if cached is None:
        g0 = g if not x.any() else loss.gradient(np.zeros_like(x))
        cached = largest(np.abs(g0)) or 1.0
        if hasattr(loss, "origin_scale"):
            loss.origin_scale = cached
    return cached


def _working_sets(problem, x, l1, g, run):
    """Lower the penalty to its value by stages, each on the variables that it can move.

    A stage with boost c > 1 solves c * l1 by ``stage_iter`` iterations; the last, c = 1, runs
    until all variables are optimal. Far from the solution a small penalty lets the predictor
    saturate, where the model is worthless; the stages keep each Newton step short.
    """
    opts, kernels = run.options, run.kernels.model
    n = problem.size
    whole = opts.working_set is False or not problem.restricts
    if opts.working_set is None and n <= 500:
        whole = True
    penalised = l1 > 0
    boost, stalls, best, sub, inside = np.inf, 0, np.inf, None, None
    # more new variables than rows would make the model singular
    most = max(10, int(opts.row_share * (problem.n_rows or n)))
    tau = min(max(int(opts.eta * run.n_variables), opts.min_new), most)
    while True:
        optimality = kernels.measure(x, g, l1) / run.scale
        if run.history and not run.history.rows:
            run.record(x, problem.f + kernels.penalty(x, l1), optimality, 0, 0)
        if run.status is not None:
            return x, g, optimality  # a callback's word holds, converged or not
        if run.theta is not None and run.proved(problem, x, l1, g, optimality):
            run.status = outcome.CONVERGED
        elif optimality <= run.tol:
            run.status = _enough(problem, x, l1, g, optimality, run)
        elif run.content:
            # variables that no model has seen may promise more
            run.content = whole or not bool((((x != 0) | (np.abs(g) > l1)) & ~inside).any())
            run.status = outcome.CONVERGED if run.content else None
        if run.status is not None or run.out_of_budget():
            return x, g, optimality
        with np.errstate(over="ignore"):
            ratio = min(largest(np.abs(g[penalised]) / l1[penalised]), _FARTHEST)
        boost = max(1.0, opts.stage * min(boost, ratio))
        final = boost == 1.0
        current = boost * l1
        if whole or not final:
            # a stage of one iteration does not repay a copy of its columns
            x, g, tau = _iterate(
                problem, x, current, l1, g, run.tol, tau, run, None if final else opts.stage_iter
            )
            continue
        moving = (x != 0) | (np.abs(g) > l1)
        if sub is None or bool((moving & ~inside).any()):
            inside = moving | (np.abs(g) >= _NEAR * l1)
            chosen = np.flatnonzero(inside)
            if not problem.restriction_pays(chosen):
                whole = True
                continue
            sub = problem.restrict(chosen)
        problem.base = x
        before = run.nit
        target = max(0.5 * run.tol, 0.1 * optimality)
        part, _, tau = _iterate(sub, x[chosen], l1[chosen], l1[chosen], g[chosen], target, tau, run)
        x[chosen] = part
        problem.absorb(sub)
        g = problem.gradient(g)
        run.njev += 1
        # a run on the set that stopped for rounding ends the whole only if it changed nothing
        if run.status == outcome.NO_PROGRESS:
            stalls = stalls + 1 if run.nit == before or optimality >= best else 0
            run.status = None if stalls < 2 else outcome.NO_PROGRESS
        best = min(best, optimality)


def _enough(problem, x, l1, g, optimality, run):
    """Converged where the duality gap is small enough as well; else None, and run.tol is tightened.

    The optimality measure is relative to the gradient at zero; a penalty far below that lets a gradient that
    is small beside the one be large beside the other.
    """
    run.gap = run.certify(problem, x, l1, g)
    allowed = run.options.gap_tol * abs(problem.f + run.kernels.model.penalty(x, l1))
    # NaN: no certificate can be had
    if not run.gap > allowed or optimality <= run.options.tol * _TIGHTEST:
        return outcome.CONVERGED
    # the gap falls about as the measure does, or faster
    run.tol = optimality * min(0.5, max(0.01, 0.5 * allowed / run.gap))
    run.gap = None
    return None


def _iterate(problem, x, l1, l1_true, g, tol, tau, run, limit=None):
    """Algorithm 2 on one set of variables with penalty l1 (a multiple of ``l1_true``).

    Ends at ``tol``, after ``limit`` iterations, or with run.status set. Returns x, its gradient
    and the size tau of the next selection.
    """
    opts, kernels = run.options, run.kernels.model
    n = problem.size
    kind, size = np.empty(n, dtype=np.int8, like=x), np.empty(n, like=x)
    free_always, everything = l1 == 0, np.arange(n, like=x)
    phi = problem.f + kernels.penalty(x, l1)
    begin = run.nit
    # with more rows than variables there is no reason to hold back: few variables asked to explain
    # many rows only grow too large. Small models are matrices, on which a gentle growth costs nothing
    tall = not problem.working and problem.n_rows >= n
    tall = tall and (limit is not None or n > _SMALL)
    share = _TALL_GROWTH * opts.growth if tall else opts.growth
    previous, flat, stalls = np.inf, False, 0
    while True:
        absolute, n_free, n_unsure = kernels.identify(x, g, l1, kind, size)
        run.look(absolute, l1, phi)
        if absolute / run.scale <= tol or run.out_of_budget():
            return x, g, tau
        # steps whose decrease is lost in rounding go on as long as they mend the gradient
        stalls = stalls + 1 if flat and absolute > 0.5 * previous else 0
        if stalls == 2:
            run.status = outcome.NO_PROGRESS if limit is None else None
            return x, g, tau
        previous = absolute
        if limit is not None and run.nit - begin >= limit:
            return x, g, tau
        room = max(tau, int(share * n_free))
        variables = _working_variables(kind, size, n_unsure, room, free_always)
        if len(variables) > 0.8 * n:
            variables = everything  # designs keep what they made for all columns
        variables = problem.anchored(variables, x, g, l1)
        run.rough = run.may_be_rough and (limit is not None or absolute / run.scale > opts.rough)
        x_new, phi_new, corrections, kept = _step(problem, x, l1, g, variables, phi, run)
        if kept < opts.kept_low:
            run.may_be_rough = limit is not None
        run.learn(kept)
        run.preconditioner.learn(kept, run.last_cg)
        if corrections == 0:
            tau *= 2
        run.nit += 1
        run.corrections.append(corrections + 1)
        if problem.several_classes:
            x_new = problem.centred(x_new, l1)
            phi_new = problem.f + kernels.penalty(x_new, l1)
        progress = phi - phi_new
        x, phi = x_new, phi_new
        g = problem.gradient(g)
        run.njev += 1
        if run.history or run.callback is not None:
            run.report(
                problem,
                x,
                problem.f + kernels.penalty(x, l1_true),
                g,
                l1_true,
                len(variables),
                corrections + 1,
            )
            if run.status is not None:
                return x, g, tau
        if limit is None and opts.promise_tol > 0:
            run.take(kept, phi)
            if run.content:
                return x, g, tau
        if limit is None and run.proves(problem, x, l1, g, phi):
            return x, g, tau
        flat = not progress > _ROUNDING * abs(phi)
        # tol is reached and the gap is not, and nothing moves: columns that are copies of others, mostly
        run.slow = run.slow + 1 if run.tol < opts.tol and not progress > _SLOW * abs(phi) else 0
        if run.slow >= _PATIENCE:
            run.status = outcome.NO_PROGRESS
            return x, g, tau


def _working_variables(kind, size, n_unsure, tau, free_always):
    """F, the unpenalised, and the tau members of U with the largest subgradient (lines 6-7)."""
    if n_unsure > tau:
        unsure = np.flatnonzero(kind == 2)
        order = np.argpartition(size[unsure], n_unsure - tau)[: n_unsure - tau]
        kind[unsure[order]] = 0
    return np.flatnonzero((kind != 0) | free_always)


def _step(problem, x, l1, g, variables, phi, run):
    """One model, its minimiser, and the globalisation of Algorithm 2 (lines 6-15)."""
    kernels = run.kernels.model
    problem.observe(x, g)
    run.preconditioner.prepare(problem, variables, run.absolute, run.aim)
    ridge = max(run.ridge, problem.least_ridge)
    operator, move = problem.model(variables, ridge, run.damping, run.rough, run.bend)
    xv = x[variables]
    helped = run.preconditioner.attach(operator, problem, variables)
    classes = problem.several_classes
    new, n_corrections, predicted = minimise_model(
        operator, xv, g[variables], l1[variables], run, helped, classes
    )
    if classes or ridge > run.options.ridge:
        # a step keeps what the ridge took from its promise: where that is much, the ridge may fall
        predicted += 0.5 * operator.ridge * float(operator.diag @ (new - xv) ** 2)
    run.promised = predicted
    dz = move.direction(new - xv)
    f_new = problem.try_move(dz)
    problem.remember(dz)
    run.nfev += 1
    x_new = x.copy()
    x_new[variables] = new
    phi_new = f_new + kernels.penalty(x_new, l1)

    # line 6: the upper model (2.14) at the ISTA point is the least that a step must reach. It
    # rises with L, so a step that passes with a lower bound of L passes with L itself.
    length = float(np.sum((new - xv) ** 2))
    bound = problem.stretch(dz) / length if length > 0 else 0.0
    if bound == 0.0 or not run.rough:  # a rough model may be an estimate
        bound = max(largest(operator.diag), bound, 1e-300)
    if not np.isfinite(bound):
        bound = problem.lipschitz()
    gamma = problem.f + kernels.ista_bound(x, g, l1, bound)
    if phi_new > gamma:
        bound = max(problem.lipschitz(), bound)
        gamma = problem.f + kernels.ista_bound(x, g, l1, bound)
    while True:
        # rounding of the sums may not reject a step that is as good
        enough = gamma + _ROUNDING * abs(gamma)
        if phi_new <= enough:
            # a decrease that is lost in rounding says nothing of the model
            lost = predicted <= 10.0 * _ROUNDING * abs(phi)
            kept = 1.0 if lost else (phi - phi_new) / predicted
            if kept < run.options.kept_low:
                x_new, phi_new = _shorter(problem, x, x_new, dz, l1, phi_new, run)
            problem.accept()
            return x_new, phi_new, n_corrections, kept
        # shorter steps to the trial point first: the segment of line 9 ends at the ISTA point,
        # which has many small non-zeros where the trial point has few
        full = x_new - x
        share = 0.5
        while share >= _SHORTEST:
            f_seg = problem.try_move(share * dz)
            run.nfev += 1
            x_seg = x + share * full
            phi_seg = f_seg + kernels.penalty(x_seg, l1)
            if phi_seg <= enough:
                problem.accept()
                return x_seg, phi_seg, n_corrections, 0.0
            share *= 0.5
        run.n_ista += 1
        ista = x - g / bound
        ista = np.sign(ista) * np.maximum(np.abs(ista) - l1 / bound, 0.0)
        delta = ista - x
        to_ista = problem.move_all().direction(delta)
        full = x_new - ista
        share = 0.5
        while True:
            if share < run.options.segment_tol:
                share = 0.0
            f_seg = problem.try_move((1 - share) * to_ista + share * dz)
            run.nfev += 1
            x_seg = ista + share * full
            phi_seg = f_seg + kernels.penalty(x_seg, l1)
            if phi_seg <= enough:
                problem.accept()
                return x_seg, phi_seg, n_corrections, 0.0
            if share == 0.0:
                break
            share *= 0.5
        if not phi_seg - gamma > 1e-12 * abs(gamma):
            # the ISTA point itself: what is left of the difference is rounding
            problem.accept()
            return x_seg, phi_seg, n_corrections, 0.0
        # the upper model failed at the ISTA point: the constant was too small
        bound = problem.raise_lipschitz()
        gamma = problem.f + kernels.ista_bound(x, g, l1, bound)
        problem.try_move(dz)  # accept() takes the last point tried
        run.nfev += 1


def _shorter(problem, x, x_new, dz, l1, phi_new, run):
    """The best of a step that kept too little and its halves, (x, phi), as the last point tried."""
    full, share, best = x_new - x, 1.0, 1.0
    while share > _SHORTEST:
        x_try = x + 0.5 * share * full
        phi_try = problem.try_move(0.5 * share * dz) + run.kernels.model.penalty(x_try, l1)
        run.nfev += 1
        share *= 0.5
        if not phi_try < phi_new:
            break
        x_new, phi_new, best = x_try, phi_try, share
    if share != best:
        problem.try_move(best * dz)
    return x_new, phi_new
