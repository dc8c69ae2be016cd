"""Coordinate ascent on the duals of several hinges (`dual_ascent`) that share one X."""

import numpy as np

from ..._solver import outcome
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LossRows, PiecewiseLoss
from ..plan import GOOD_PART
from .dual_ascent import Pace, find_shift, make_dual, read_rows
from .proximal_points import WARM_SMOOTHING


def ascend_outputs(form, bounds, tol, steps, cost):
    """Sweep over the rows of `RidgeOutputs` until the gap is at most tol times the objective or falls slowly.

    Rows have slopes between 0 and -1, or between 0 and 1, as hinges have. At a solution the centre has its
    dual variables. ``cost`` is what other methods cost, in sweeps. Where the gap falls slowly, outputs whose
    objective is at most `GOOD_PART` of the first one keep the last point. The others go back to the start:
    with large means of columns proximal steps from the last dual variables do not converge.

    Returns
    -------
    int or None
        The status of a limit; None where nothing or another method is left to do.
    """
    design, weight, rows, p = form.systems.design, form.weight, form.rows, form.p
    by_rows, squares = read_rows(design)
    outputs, infinite = [], np.full(p, np.inf)
    for k, end in enumerate((rows.lo + rows.hi).T):  # slopes are between 0 and the end
        loss = PiecewiseLoss(rows.target[:, k].copy(), weight, end.copy(), lo=0.0, hi=1.0)
        dual = make_dual(loss, form.alpha, squares, form.fit_intercept, -infinite, infinite)
        dual.a[:], dual.b = end * rows.centre[:, k], form.table[p, k] if form.fit_intercept else 0.0
        outputs.append((loss, dual))
    pace, spare, unit = Pace(cost), LossRows.empty(len(weight)), float(bounds.least.sum())
    start, first = (form.table.copy(), form.eta.copy(), rows.centre.copy()), form.primal()
    smoothing, rows.smoothing = rows.smoothing, WARM_SMOOTHING
    while True:
        open_ = np.flatnonzero(bounds.goal(tol, True) < np.inf)
        violation = _move(form, outputs, open_, spare)
        bounds.update(form, rows.centre)
        steps.optimality, (fun, gap) = bounds.optimality, bounds.sums
        if pace.n_sweeps and steps.report(bounds.x, fun):
            return outcome.STOPPED
        if steps.optimality <= tol:
            return None
        if violation <= ROUNDING or pace.is_slow(gap, tol * max(fun, unit)):
            poor = ~(form.primal() <= GOOD_PART * first)  # or NaN
            form.table[:, poor], form.eta[:, poor], rows.centre[:, poor] = (A[:, poor] for A in start)
            rows.smoothing = smoothing
            return None
        status = steps.limits.reached(steps.nit)
        if status is not None:
            return status
        n_sweeps = pace.count_next()
        steps.nfev += n_sweeps
        for count, k in enumerate(open_):
            if count and steps.limits.reached() is not None:  # max_time
                break
            loss, dual = outputs[k]
            dual.sweep(*by_rows, n_sweeps)
            rows.centre[:, k] = loss.c * dual.a


def _move(form, outputs, open_, spare):
    """Put the coefficients of the outputs' dual variables into the form; the largest violation of a dual."""
    p, largest = form.p, 0.0
    sums = form.systems.sums(form.rows.centre[:, open_] * form.weight[:, None])
    form.table[:p, open_] = sums[:p] / -form.alpha
    form.table[p:, open_] = [outputs[k][1].b for k in open_]
    form.eta[:, open_] = form.systems.scores(form.table[:, open_])
    for k, slope in zip(open_, sums[p:].sum(axis=0)):
        loss, dual = outputs[k]
        dual.set_sums(form.table[:p, k])  # sums of many updates have rounding errors
        largest = max(largest, dual.violation, abs(dual.q * slope))
        if form.fit_intercept:
            z = form.eta[:, k].copy()
            shift, _ = find_shift(loss, z, loss.evaluate(z, spare).f, spare)
            form.table[p, k] += shift
            form.eta[:, k] += shift
            dual.b += max(shift, -dual.q * slope, key=abs)
    return largest
