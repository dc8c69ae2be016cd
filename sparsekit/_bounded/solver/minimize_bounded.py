r"""Linear models with bounded coefficients: NQN first, then Newton's method with multipliers.

.. math:: \min_{l \le w \le u, b} P(w, b) = \sum_i s_i h(c_i (x_i^T w + b - t_i))
          + \alpha_1 \|w\|_1 + \tfrac{\alpha_2}{2} \|w\|^2

NQN minimises the nonsmooth objective over standardised columns. It comes near the solution in a few dozen
passes over X, but where the loss has kinks without a certificate. `refine` then finds dual variables, which
certify the solution.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..._solver.outcome import Stop
from ..plan import estimate_other_cost
from .certificate import Certificate
from .dual_ascent import ascend
from .refine import refine
from .run import BoundedOptions, BoundedRun
from .scaled_descent import Descent

MESSAGES = outcome.messages("the duality gap is at most tol times the objective")


def minimize_bounded(problem, w, b, opts=None, *, callback=None, history=False):
    """Minimise from (w, b), w within the box.

    Parameters
    ----------
    problem : BoundedProblem
    w : ndarray of shape (p,)
    b : float
    opts : BoundedOptions
    callback : callable, default=None
        ``callback(report)`` after each iteration with copies; a true value or StopIteration stops.
    history : bool, default=False

    Returns
    -------
    OptimizeResult
        x = (w, b), fun, dual_gap, optimality, nit, nfev, status, message, success, history. optimality is the
        gap relative to the objective. nfev counts passes over X, one or two an evaluation.
    """
    opts, b = opts or BoundedOptions(), float(b)
    run = BoundedRun(problem, opts, Certificate(problem), callback, history, w=w.copy(), b=b)
    # BLAS sums in another order with more threads; the passes over X do not
    with blas_threads(1):
        try:
            first = run.begin(w, b)
            if not run.is_small:
                if cost := estimate_other_cost(problem):
                    ascend(run, w, b, cost)
                Descent(run).approach(first)
                if cost := estimate_other_cost(problem, run.w):
                    ascend(run, run.w, run.b, cost)
            refine(run)
            status = outcome.NO_PROGRESS
        except Stop as stop:
            status = stop.status
    if status != outcome.STOPPED and run.is_done:
        status = outcome.CONVERGED
    return OptimizeResult(
        x=np.append(run.w, run.b), fun=run.primal, dual_gap=max(run.gap, 0.0), optimality=run.measure(),
        nit=run.nit, nfev=problem.n_passes, status=status, message=MESSAGES[status],
        success=status == outcome.CONVERGED, history=run.history.columns(),
    )  # fmt: skip
