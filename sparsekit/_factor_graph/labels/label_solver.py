"""Fits of `LabelLoss` by NQN, for the smooth loss; the hinge has `coupled_hinge`.

NQN starts at the fit without pairs and factors.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import kernel_module
from ..._bounded.solver import nqn
from ..._solver import outcome
from ..._solver.outcome import Progress
from ..._solver.tolerances import GAP_FACTOR
from .independent import PAIRLESS_STEPS, minimize_independent

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
    progress = Progress.of_call(max_iter, max_time, callback, history)
    lower, upper = loss.bounds()
    zero = loss.xp.zeros(loss.n_variables)
    measure = kernel_module("shared._box", zero).optimality
    first = loss.value_and_gradient(zero)
    unit = measure(zero, first[1], lower, upper) or 1.0
    x, nit, nfev, status = zero, 0, 1, None

    def report(result):
        optimality = measure(result.x, result.jac, lower, upper) / unit
        return progress.report(result.x, result.fun, nit + result.nit, optimality)

    hook = report if callback is not None or history else None
    if x0 is not None:
        x, first = np.clip(loss.xp.asarray(x0), lower, upper), None
    elif loss.alpha > 0.0:
        begun = _without_pairs(loss, tol, max_iter, max_time, hook)
        x, first, nit, nfev, status = begun.x, None, begun.nit, nfev + begun.nfev, begun.status
    is_stopped = status == outcome.STOPPED
    opts = nqn.NQNOptions(
        gtol=tol * unit, ftol=1e-12, max_iter=0 if is_stopped else max_iter - nit,
        max_time=progress.limits.max_time - progress.limits.seconds,
    )  # fmt: skip
    found = nqn.minimize(loss.value_and_gradient, x, lower, upper, opts, first=first, callback=hook)
    status = outcome.STOPPED if is_stopped else _MEANS.get(found.status, found.status)
    return OptimizeResult(
        x=found.x, fun=found.fun, nit=nit + found.nit, nfev=nfev + found.nfev, status=status,
        message=nqn.MESSAGES[status] if is_stopped else found.message,
        optimality=measure(found.x, found.jac, lower, upper) / unit,
        dual_gap=_gap(loss, found, lower), time=progress.limits.seconds,
        history=progress.history.columns(),
    )  # fmt: skip


def _without_pairs(loss, tol, max_iter, max_time, hook):
    """The result of the fit without pairs and factors, with all variables; the hook is that of NQN."""

    def all_variables(table):
        return np.concatenate([table, np.zeros(2 * loss.n_pairs, like=table)])

    def report(result):
        result.x = all_variables(result.x)
        result.fun, result.jac = loss.value_and_gradient(result.x)
        return hook(result)

    found = minimize_independent(
        loss, None, tol=GAP_FACTOR * tol, max_iter=min(PAIRLESS_STEPS, max_iter), max_time=max_time,
        callback=None if hook is None else report,
    )  # fmt: skip
    found.x = all_variables(found.x)
    if hook is not None:
        found.nfev += found.nit  # those of the hook
    return found


def _gap(loss, found, lower):
    """By how much the objective can be too high: half the squared projected gradient over the convexity."""
    modulus = min(loss.alpha, loss.pair_alpha) if loss.n_pairs else loss.alpha
    if loss.fit_intercept or not modulus > 0:
        return np.nan
    held = (found.x <= lower) & (found.jac > 0)
    return float(np.sum(found.jac[~held] ** 2) / (2.0 * modulus))
