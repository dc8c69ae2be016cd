"""Algorithm 1 of OBA on models whose Hessian is a Gram matrix."""

import numpy as np

from ..._cython._model import solve_model
from ..._cython._operators import GramOperator
from .. import plan
from .minimise_model import MIN_RIDGE, Effort, balance_of, next_ridge

EFFORT = Effort(
    max_cycles=25, forcing=0.1, cg_tol=0.1, cg_max=50, direct_size=100, sweeps=3, holds=20,
    largest_factor=plan.MAX_GRAM_COLUMNS,
)  # fmt: skip


class GramModel:
    """Minimiser of models g.d + 1/2 d.(H + diag(l2)) d + l1.|x + d|, with a Gram matrix H of m variables.

    Attributes
    ----------
    ridge : float
        Part of the diagonal that the next model adds to it, see `next_ridge`.
    """

    def __init__(self, positive=False):
        self.positive, self.ridge = positive, MIN_RIDGE

    def minimize(self, matrix, x, g, l1, l2):
        """The point x + d near x, which need not be finite, and the decrease of the model.

        ``g`` (m,) is the gradient at x without the L1 penalty.
        """
        if l2.any():
            matrix = matrix.copy()
            matrix[np.diag_indices(len(x))] += l2
        operator, new = GramOperator(matrix, self.ridge), np.empty_like(x)
        decrease = solve_model(operator, x, g, l1, new, EFFORT, self.positive)[0]
        balance = balance_of(operator, l1, new) if operator.crossed else None
        self.ridge = next_ridge(self.ridge, MIN_RIDGE, balance)
        return new, decrease
