"""Fits of `LabelLoss` by NQN: smooth in a box for two of its losses; the hinge has its own (label_hinge)."""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import kernel_module
from ..._bounded.solver import nqn
from ..._solver import outcome
from ..._solver.outcome import Progress

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
    limits = progress.limits
    lower, upper = loss.bounds()
    zero = loss.xp.zeros(loss.n_variables)
    measure = kernel_module("shared._box", zero).optimality
    unit = measure(zero, loss.value_and_gradient(zero)[1], lower, upper) or 1.0
    opts = nqn.NQNOptions(gtol=tol * unit, ftol=1e-12, max_iter=max_iter, max_time=limits.max_time)

    def report(result):
        optimality = measure(result.x, result.jac, lower, upper) / unit
        return progress.report(result.x, result.fun, result.nit, optimality)

    x = zero if x0 is None else np.clip(loss.xp.asarray(x0), lower, upper)
    hook = report if callback is not None or history else None
    found = nqn.minimize(loss.value_and_gradient, x, lower, upper, opts, callback=hook)
    status = _MEANS.get(found.status, found.status)
    return OptimizeResult(
        x=found.x, fun=found.fun, nit=found.nit, nfev=found.nfev, status=status, message=found.message,
        optimality=measure(found.x, found.jac, lower, upper) / unit,
        dual_gap=_gap(loss, found, lower), time=limits.seconds,
        history=progress.history.columns(),
    )  # fmt: skip


def _gap(loss, found, lower):
    """By how much the objective can be too high: half the squared projected gradient over the convexity."""
    modulus = min(loss.alpha, loss.pair_alpha) if loss.n_pairs else loss.alpha
    if loss.fit_intercept or not modulus > 0:
        return np.nan
    held = (found.x <= lower) & (found.jac > 0)
    return float(np.sum(found.jac[~held] ** 2) / (2.0 * modulus))
