"""Fits of `LabelLoss` by NQN: smooth in a box for two of its losses; the hinge has its own (label_hinge)."""

from dataclasses import replace

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import kernel_module
from ..._bounded.solver import nqn
from ..._solver import outcome
from ..._solver.outcome import History, Limits

# statuses of a fit by those of NQN
_MEANS = {
    outcome.SMALL_DECREASE: outcome.CONVERGED,
    outcome.NO_DIRECTION: outcome.NO_PROGRESS,
    outcome.UNBOUNDED: outcome.NO_PROGRESS,
}


def minimize_labels(loss, x0, *, tol, max_iter, max_time=None, callback=None, history=False):
    """Minimise a `LabelLoss` from x0 (None: zero).

    Parameters
    ----------
    loss : LabelLoss
    x0 : ndarray of shape (n_variables,) or None
        In main memory or where the loss is; the result is where the loss is.
    tol : float
        The run ends when the largest entry of the projected gradient is at most tol times that at zero.
    max_iter : int
    max_time : float or None
        Seconds.
    callback : callable or None
        Gets an OptimizeResult of copies (x, fun, nit, optimality, nnz, time) after each iteration.
    history : bool

    Returns
    -------
    OptimizeResult
        x, fun, nit, nfev, status, message, optimality (relative, as tol), dual_gap, history.
    """
    limits = Limits(max_time=np.inf if max_time is None else max_time)
    lower, upper = loss.bounds()
    zero = loss.xp.zeros(loss.n_variables)
    measure = kernel_module("shared._box", zero).optimality
    unit = measure(zero, loss.value_and_gradient(zero)[1], lower, upper) or 1.0
    opts = nqn.NQNOptions(gtol=tol * unit, ftol=1e-12, max_iter=max_iter, max_time=limits.max_time)
    lines = History(("time", "fun", "optimality"), history)
    before = 0

    def report(result):
        optimality = measure(result.x, result.jac, lower, upper) / unit
        seconds = limits.seconds
        lines.add(seconds, result.fun, optimality)
        if callback is None:
            return False
        return callback(
            OptimizeResult(
                x=result.x,
                fun=result.fun,
                nit=before + result.nit,
                optimality=optimality,
                time=seconds,
                nnz=int(np.count_nonzero(result.x)),
            )
        )  # fmt: skip

    x = zero if x0 is None else np.clip(loss.xp.asarray(x0), lower, upper)
    hook = report if callback is not None or history else None
    # Rows without pair scores are quick to solve, and most pairs never get a score. So the table is fitted
    # first.
    with_pairs = [False, True] if x0 is None and loss.n_pairs else [True]
    status, nit = None, 0
    for pairs in with_pairs:
        top = upper
        if not pairs:
            top = upper.copy()
            top[loss.n_variables - 2 * loss.n_pairs :] = 0.0
        left = limits.max_time - limits.seconds
        settings = replace(opts, max_iter=max_iter - nit, max_time=max(left, 0.0))
        if not pairs:  # reserve half of the limits for the fit with pairs
            settings = replace(
                settings, gtol=10 * tol * unit, ftol=0.1 * tol, max_iter=(max_iter - nit + 1) // 2,
                max_time=max(0.5 * left, 0.0),
            )  # fmt: skip
        before = nit
        found = nqn.minimize(loss.value_and_gradient, x, lower, top, settings, callback=hook)
        x, nit = found.x, nit + found.nit
        if found.status == outcome.STOPPED or pairs:
            status = _MEANS.get(found.status, found.status)
            break
        if limits.reached() is not None:
            status = outcome.MAX_TIME
            break
    return OptimizeResult(
        x=found.x, fun=found.fun, nit=nit, nfev=found.nfev, status=status, message=found.message,
        optimality=measure(found.x, found.jac, lower, upper) / unit,
        dual_gap=_gap(loss, found, lower), time=limits.seconds,
        history=lines.columns(),
    )  # fmt: skip


def _gap(loss, found, lower):
    """By how much the objective can be too high: half the squared projected gradient over the convexity."""
    modulus = min(loss.alpha, loss.pair_alpha) if loss.n_pairs else loss.alpha
    if loss.fit_intercept or not modulus > 0:
        return np.nan
    held = (found.x <= lower) & (found.jac > 0)
    return float(np.sum(found.jac[~held] ** 2) / (2.0 * modulus))
