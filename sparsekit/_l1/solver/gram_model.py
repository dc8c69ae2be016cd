"""Algorithm 1 of OBA on models whose Hessian is a Gram matrix."""

from functools import partial

import numpy as np

from ..._cython.l1._model import solve_model
from ..._cython.shared._operators import GramOperator
from ..._linalg.newton import MAX_SIDE
from .minimise_model import MATRIX_CYCLES, Effort, ModelSolver

# The first step stays on the support: where the penalty has just fallen it follows the tangent of the path.
# Sweeps of coordinate descent follow cut steps. Before each cycle they make cross-validation with fewer rows
# than columns take 1.5 times the time. Without any, 3 of 40 fits that nearly interpolate take over 100 times
# as long: along combinations of columns that do not change the predictor each step is cut. Such fits take
# 1.07 times the time with 25 cycles, 0.97 with 5.
EFFORT = Effort(MATRIX_CYCLES, cg_tol=0.1, largest_factor=MAX_SIDE, on_support=True)


class GramModel:
    """Minimiser of models g.d + 1/2 d.(H + diag(l2)) d + l1.|x + d|, with a Gram matrix H of m variables."""

    def __init__(self, positive=False):
        self.solver = ModelSolver(partial(solve_model, one_sided=positive))

    def step(self, hessian, x, g, l1, l2):
        """The step (len(x),) to the minimiser of a `WorkingHessian`'s model, and its predicted reduction.

        The intercept, which has no penalty, follows the coefficients.
        """
        m, step = len(hessian.columns), np.empty(len(x))
        own = g[:m] - hessian.ratios * g[m] if len(x) > m else g[:m]
        new, predicted = self.minimize(hessian.reduced, x[:m], own, l1[:m], l2[:m])
        step[:m] = new - x[:m]
        if len(x) > m:
            shift = g[m] / hessian.curvature if hessian.curvature > 0.0 else 0.0
            step[m] = -shift - hessian.ratios @ step[:m]
            predicted += 0.5 * shift * g[m]
        return step, predicted

    def minimize(self, matrix, x, g, l1, l2):
        """The point x + d near x, and the decrease of the model.

        ``g`` (m,) is the gradient at x without the L1 penalty. The diagonal of the matrix is changed, and
        restored.
        """
        diagonal = np.diag_indices(len(x))
        before = matrix[diagonal]
        matrix[diagonal] = before + l2
        try:
            return self.solver.minimize(GramOperator(matrix, self.solver.ridge), x, g, l1, EFFORT)[:2]
        finally:
            matrix[diagonal] = before
