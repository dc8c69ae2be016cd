"""Fits of `LabelLoss` for the hinge: proximal points of the dual, with the duality gap as certificate.

The dual's variables are the rows' marginals mu, of the relaxed sets that the factors allow. It maximises

    sum_i w_i sum_k |mu_ik - y_ik| - |X^T w (mu - Y)|^2 / (2 alpha)
        - (|max(t - h, 0)|^2 + |max(l - t, 0)|^2) / (2 pair_alpha),    sum_i w_i (mu_i - y_i) = 0,

h and l the sums over the rows of the most and the least that both labels of a pair can be on, t of how often
they are; the last condition is that of free intercepts. A proximal step subtracts sigma / 2 |mu_i - c_i|^2 of
each row. That makes the primal loss piecewise quadratic; the marginals at its minimum are the next centres c
(Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming",
1976; Li, Sun, Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems", 2018, of Newton's method for the steps). Few steps are enough, since sigma falls. Without pairs and
factors labels are problems of their own, each with its bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..._solver.outcome import History, Limits
from .label_hinge_apart import ApartHinge
from .label_hinge_together import TogetherHinge

# sigma at first, with pairs after a fit without, from another fit's coefficients; and the least
_FIRST, _SECOND, _WARM, _LEAST = 1.0, 0.5, 0.1, 1e-6
# gap at which the fit without pairs ends, in parts of tol
_ROUGH = 100.0
# a step ends when what is left of its problem is about this share of the gap
_SHARE = 0.1
# steps in succession that leave more than this part of the gap, each more exact than the last, at most
_LEAVES, _STALLED = 0.8, 6
# objective, relative to that at zero, below which it counts as 0
_NOTHING = 1e-9

_MESSAGES = outcome.messages("the duality gap is at most tol times the objective")
# what says nothing of the run as a whole when a proximal step ends with it
_GOES_ON = None, outcome.CONVERGED, outcome.NO_PROGRESS


def minimize_hinge(loss, x0, *, tol, max_iter, max_time=None, callback=None, history=False):
    """Minimise a `LabelLoss` of the hinge; parameters and result as of `minimize_labels`, but for these.

    Parameters
    ----------
    tol : float
        The run ends when the duality gap is at most tol times the objective.
    max_iter : int
        Largest number of Newton steps, of all proximal steps together.

    Returns
    -------
    OptimizeResult
        ``optimality`` is the gap over the objective. Where a penalty is 0, or the labels' means lie on a face
        of what factors allow, so that marginals of just these means are not to be had by mixing, the bound
        behind it is an estimate, and ``dual_gap`` NaN. What a callback gets has the ``fun`` of the proximal
        step's problem, whose minimum is below that of the objective, and the optimality before that step.
    """
    steps = _Steps(
        Limits(max_iter=max_iter, max_time=np.inf if max_time is None else max_time), callback,
        History(("time", "fun", "optimality"), history), loss.n_variables,
    )  # fmt: skip
    with blas_threads(loss.n_threads), np.errstate(over="ignore", invalid="ignore"):
        try:
            bounds, status = _fit(loss, x0, tol, steps)
        finally:
            loss.smoothing, loss.centre = 0.0, 0.0
    fun, gap = bounds.sums
    return OptimizeResult(
        x=bounds.x, fun=fun, nit=steps.nit, nfev=steps.nfev, status=status, message=_MESSAGES[status],
        optimality=bounds.optimality, dual_gap=gap if bounds.certain else np.nan,
        time=steps.limits.seconds, history=steps.lines.columns(),
    )  # fmt: skip


@dataclass
class _Steps:
    """What has been done in all proximal steps, and the callback."""

    limits: Limits
    callback: Callable | None
    lines: History
    size: int
    nit: int = 0
    nfev: int = 0
    optimality: float = 1.0

    def tell(self, x, fun):
        """Count a step; whether the callback wants to stop."""
        self.nit += 1
        seconds = self.limits.seconds
        self.lines.add(seconds, fun, self.optimality)
        if self.callback is None:
            return False
        full = np.zeros(self.size, like=x)
        full[: len(x)] = x  # as long as labels are apart there are no variables of pairs
        return self.callback(
            OptimizeResult(
                x=full, fun=fun, nit=self.nit, optimality=self.optimality, time=seconds,
                nnz=int(np.count_nonzero(full)),
            )
        )  # fmt: skip


def _fit(loss, x0, tol, steps):
    """_Bounds, status."""
    xp, apart = loss.xp, loss.labels.are_free and not loss.n_pairs
    x = xp.zeros(loss.n_variables) if x0 is None else xp.clip(xp.asarray(x0), *loss.bounds())
    loss.smoothing, loss.centre, status = _FIRST, loss.Y, None
    if x0 is None and loss.labels.are_free and not apart:
        # labels apart are quick to solve, and their marginals are good centres
        bounds, status = _proximal(ApartHinge(loss, x), _ROUGH * tol, steps)
        x[: len(bounds.x)] = bounds.x
        status = None if status in _GOES_ON else status
        loss.smoothing = _SECOND
    form = (ApartHinge if apart else TogetherHinge)(loss, x)
    if x0 is not None:
        loss.smoothing = _WARM
        loss.centre = form.marginals()
    return _proximal(form, tol, steps, status)


class _Bounds:
    """The best point so far, and what its objective and the optimum are between: of each label, or of all."""

    def __init__(self, form):
        self.x, self.upper = form.x.copy(), form.primal()
        self.lower, self.certain = 0.0 * self.upper, True
        self.proven, self.guessed = self.lower, self.lower
        self.least = _NOTHING * form.at_zero()

    def look(self, form):
        """Take in where the problem is now; its marginals."""
        mu = form.marginals()
        upper = form.primal()  # last, so that rows without a solution are told of those of the loss
        lower, self.certain = form.dual(mu)
        form.keep(self.x, upper < self.upper)
        self.upper = np.minimum(upper, self.upper)
        if self.certain:
            self.proven = np.maximum(lower, self.proven)
        else:
            self.guessed = np.maximum(lower, self.guessed)
        lower = self.proven if self.certain else np.maximum(self.proven, self.guessed)
        self.lower = np.minimum(lower, self.upper)
        return mu

    def goal(self, tol):
        """The gap, or what it may be if that is more; inf for labels that are done."""
        gap, enough = self.upper - self.lower, tol * np.maximum(self.upper, self.least)
        return np.where(gap > enough, gap, np.inf)

    @property
    def sums(self):
        """Objective and gap."""
        return float(self.upper.sum()), float((self.upper - self.lower).sum())

    @property
    def optimality(self):
        fun, gap = self.sums
        return gap / max(fun, float(self.least.sum())) if gap > 0.0 else 0.0


def _proximal(form, tol, steps, status=None):
    """Proximal steps until the gap is small; _Bounds, status."""
    loss, bounds, share, stalled = form.loss, _Bounds(form), _SHARE, 0
    while True:
        before = steps.optimality = bounds.optimality
        if before <= tol and status != outcome.STOPPED:
            return bounds, outcome.CONVERGED
        if status not in _GOES_ON:
            return bounds, status
        if stalled == _STALLED:
            return bounds, outcome.NO_PROGRESS
        status = form.descend(share * bounds.goal(tol), steps)
        loss.centre = bounds.look(form)
        loss.smoothing = max(loss.smoothing * form.fall, _LEAST)
        if bounds.optimality > _LEAVES * before:
            stalled, share = stalled + 1, 0.1 * share
        else:
            stalled = 0
