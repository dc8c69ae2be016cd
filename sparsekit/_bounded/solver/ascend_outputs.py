"""Coordinate ascent on the duals of several outputs with kinks (`dual_ascent`); the outputs share one X."""

import numpy as np

from ..._solver import outcome
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LossRows, PiecewiseLoss
from .dual_ascent import Pace, best_shift, dual_of, rows_of
from .proximal_points import WARM_SMOOTHING


def ascend_outputs(form, bounds, tol, steps):
    """Sweep over the rows of `RidgeOutputs` until ``bounds`` meet, or until the gap falls slowly.

    None then, else the status of a limit. Dual variables are the last centre.
    """
    design, weight, rows, p = form.systems.design, form.weight, form.rows, form.p
    by_rows, squares = rows_of(design)
    outputs = []
    for k, side in enumerate((rows.lo + rows.hi).T):  # slopes are between 0 and ``side``
        loss = PiecewiseLoss(rows.target[:, k].copy(), weight, side.copy(), lo=0.0, hi=1.0)
        dual = dual_of(loss, form.alpha, squares, p, form.fit_intercept)
        dual.a[:], dual.w[:] = side * rows.centre[:, k], form.table[:p, k]
        dual.b = form.table[p, k] if form.fit_intercept else 0.0
        outputs.append((loss, dual))
    pace, spare = Pace(design), LossRows.empty(len(weight))
    rows.smoothing = WARM_SMOOTHING
    while True:
        n_sweeps, left = pace.step(), np.flatnonzero(bounds.goal(tol, True) < np.inf)
        for k in left:
            loss, dual = outputs[k]
            dual.sweep(*by_rows, n_sweeps)
            rows.centre[:, k] = loss.c * dual.a
        sums = form.systems.sums(rows.centre[:, left] * weight[:, None])
        form.table[:p, left] = sums[:p] / -form.alpha
        if form.fit_intercept:
            form.table[p, left] = [outputs[k][1].b for k in left]
        form.eta[:, left] = form.systems.scores(form.table[:, left])
        rest = 0.0
        for k, sum_ in zip(left, sums[-1]):
            loss, dual = outputs[k]
            dual.w[:] = form.table[:p, k]  # the kernel's sums of many changes have rounding errors
            rest = max(rest, dual.violation)
            if form.fit_intercept:
                z = form.eta[:, k].copy()
                shift, _ = best_shift(loss, z, loss.evaluate(z, spare).f, spare)
                form.table[p, k] += shift
                form.eta[:, k] += shift
                dual.b += max(shift, -dual.q * sum_, key=abs)
                rest = max(rest, abs(dual.q * sum_))
        bounds.update(form, rows.centre)
        steps.nfev += n_sweeps
        fun, gap = bounds.sums
        if steps.report(form.x.copy(), fun):
            return outcome.STOPPED
        if gap <= tol * fun or rest <= ROUNDING or pace.is_slow(gap, tol * fun):
            return None
        steps.optimality, status = bounds.optimality, steps.limits.reached(steps.nit)
        if status is not None:
            return status
