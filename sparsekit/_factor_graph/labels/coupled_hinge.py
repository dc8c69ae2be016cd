"""Fits of `LabelLoss` for the hinge and coupled labels: proximal points of the dual (`proximal_points`).

The dual's variables are the rows' marginals mu, of the relaxed sets that the factors allow. It maximises

    sum_i w_i sum_k |mu_ik - y_ik| - |X^T w (mu - Y)|^2 / (2 alpha)
        - (|max(t - h, 0)|^2 + |max(l - t, 0)|^2) / (2 pair_alpha),    sum_i w_i (mu_i - y_i) = 0,

t counts how often both labels of a pair are on, summed over the rows. h and l are the largest and smallest
sums that mu allows. The last condition is that of free intercepts.
"""

import numpy as np

from ..._bounded.losses.output_rows import hinge_rows
from ..._bounded.solver.proximal_points import (
    FIRST_SMOOTHING,
    GOES_ON,
    WARM_SMOOTHING,
    Steps,
    proximal_points,
)
from ..._bounded.solver.ridge_outputs import RidgeOutputs, solve_outputs
from ..._linalg.threads import blas_threads
from ..._solver import outcome
from .coupled_problem import CoupledHinge
from .independent import PAIRLESS_STEPS

# Gap at which the fit without pairs and factors ends, in units of tol. With 10 fits take 1.04 of the time (26
# fits).
PAIRLESS_GAP = 100.0


def minimize_coupled_hinge(loss, x0, *, tol, max_iter, max_time=None, callback=None, history=False):
    """Minimise a `LabelLoss` of the hinge; parameters and result as of `minimize_labels`, but for these.

    Parameters
    ----------
    tol : float
        The run ends when the duality gap is at most tol times the objective.
    max_iter : int
        Largest number of Newton steps and of rounds of sweeps, together.

    Returns
    -------
    OptimizeResult
        ``optimality`` is the gap over the objective. If a penalty is 0, ``optimality`` is an estimate and
        ``dual_gap`` NaN. The same holds if the labels' means lie on a face of the factors' set, so that no
        mixture has these means. A callback gets the ``fun`` of the proximal step's problem, whose minimum is
        below that of the objective, and the optimality before that step.
    """
    steps = Steps.of_call(loss.n_variables, max_iter, max_time, callback, history)
    with blas_threads(loss.n_threads), np.errstate(over="ignore", invalid="ignore"):
        try:
            return steps.result(*_fit(loss, x0, tol, steps))
        finally:
            loss.smoothing, loss.centre = 0.0, 0.0


def _fit(loss, x0, tol, steps):
    """`Bounds`, status."""
    xp = loss.xp
    x = xp.zeros(loss.n_variables) if x0 is None else xp.clip(xp.asarray(x0), *loss.bounds())
    loss.smoothing, loss.centre, status = FIRST_SMOOTHING, loss.Y, None
    if x0 is None:
        # Independent labels are quick to solve, and their marginals are good centres. 40 fits with factors
        # take 0.44 of the time of a start at zero.
        rows = hinge_rows(loss.Y)
        form = RidgeOutputs(
            loss.design, loss.weight, rows, loss.alpha, loss.fit_intercept, xp.zeros(loss.shape)
        )
        # it takes 1 to 23 steps; on badly scaled columns it took 500 without a limit
        first = steps.limited(3 * PAIRLESS_STEPS)
        bounds, status = solve_outputs(form, PAIRLESS_GAP * tol, first)
        x[: len(bounds.x)] = bounds.x
        steps.nit, steps.nfev = first.nit, first.nfev
        goes_on = status in GOES_ON or (status == outcome.MAX_ITER and steps.nit < steps.limits.max_iter)
        status = None if goes_on else status
        loss.centre = loss.Y + rows.centre
    form = CoupledHinge(loss, x)
    if x0 is not None:
        loss.smoothing = WARM_SMOOTHING
        loss.centre = form.dual_variables()
    return proximal_points(form, tol, steps, status)
