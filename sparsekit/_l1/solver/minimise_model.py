"""Algorithm 1 of OBA: the minimiser of a quadratic model, and the ridge that keeps models solvable."""

from dataclasses import dataclass, replace

import numpy as np

from ..._linalg.newton import MAX_SIDE
from ..._solver.tolerances import ROUNDING

# Cycles on a matrix: 2 take 1.5 to 2 times the time on one-hot tables (a9a, 40000 x 300).
MATRIX_CYCLES = 10
# Steps of conjugate gradients on a first model that is no matrix; they double as long as models are right.
# Always 50 takes 1.1 times the time on text, up to 1.8 times.
FIRST_CG = 8
# Most steps of conjugate gradients.
MAX_CG = 400
# A step whose actual reduction is a smaller part of the predicted one is shortened. Without it a row of text
# overshoots far to the wrong side: news20 as tf-idf at C = 100 takes 5.4 s instead of 1.0. 64 fits to 16 made
# and real sets take 0.97 of the time with it, at most 1.1 times as long; with 0.5 at most 1.3 times.
MIN_RATIO = 0.25
# A model is right where the actual reduction differs from the predicted one by at most this part: then more
# steps of conjugate gradients pay, the predicted reduction may end a run, and a session keeps its Hessian.
# With 0.3 twelve fits of three classes to 50 to 100 rows at weak penalties take 1.8 times as long.
MAX_PREDICTION_ERROR = 0.1
# Factor by which the ridge rises and falls.
RIDGE_STEP = 10.0
# Part of the diagonal that a model gets more after one that was far off. Without it 4000 texts of 19 classes,
# as counts at C = 1, are not certified after 60 iterations, in 18 s; with it in 2.7 s. 0.1 takes 10 s.
DAMPING = 0.5


@dataclass
class Effort:
    """How well a model is minimised; `solve_model` of the kernels has the meanings."""

    max_cycles: int
    # 0.01 takes 1.05 times the time, 0.2 1.1 times as many iterations
    forcing: float = 0.1
    # 0.1 takes 1.03 to 1.1 times the time
    cg_tol: float = 0.4
    cg_max: int = MAX_CG
    largest_factor: int = 0
    # 0 takes 1.27 times the time, up to 5.9 times
    sweeps: int = 3
    # 0 takes 1.5 times the time, up to 17 times; no limit as long
    holds: int = 20
    on_support: bool = False


def of_operator(effort, reads):
    """The effort of a model whose products read a ``"matrix"``, sparse ``"rows"`` or anything else.

    A product with a matrix costs little, what made the matrix costs much. With the effort of other models
    madelon takes 3 to 13 times as long, a9a 1.3 times.

    On sparse rows, coordinate descent alone makes the steps as long as models are wrong. With conjugate
    gradients instead 20 fits to five sets take 1.22 times the time, up to 3.4. 23 unseen fits take 1.09 times
    the time, up to 2.1: raw counts and weak penalties gain most.
    """
    if reads == "matrix":
        cycles = MATRIX_CYCLES if effort.max_cycles > 1 else 1
        # at the other models' tolerance of 0.4 nearly collinear columns fail
        return replace(
            effort, max_cycles=cycles, cg_tol=effort.forcing, cg_max=MAX_CG, largest_factor=MAX_SIDE
        )
    if reads == "rows" and effort.cg_max == FIRST_CG:
        return replace(effort, forcing=1.0)
    return replace(effort, sweeps=0)


def next_effort(effort, ratio):
    """The effort after a step with this ratio of actual to predicted reduction.

    Far from the solution a model is soon wrong, and needs no exact minimiser. Near it, what is left lies
    along directions of little curvature, which few steps of conjugate gradients do not see.
    """
    is_right = abs(ratio - 1.0) <= MAX_PREDICTION_ERROR
    return replace(effort, cg_max=min(2 * effort.cg_max, MAX_CG) if is_right else FIRST_CG)


class ModelSolver:
    """Minimiser of one model g.d + 1/2 d.H d + l1.|x + d| after another.

    Attributes
    ----------
    solve_model : callable
        The kernel.
    ridge, least : float
        Part of the diagonal that the next model adds to it, and the least one: by default rounding.
    damping : float
        The same by Levenberg and Marquardt: it rises where models are wrong. The larger one counts.
    """

    def __init__(self, solve_model, least=ROUNDING):
        self.solve_model, self.ridge, self.least, self.damping = solve_model, least, least, 0.0

    def minimize(self, operator, x, g, l1, effort):
        """The minimiser x + d, and what `solve_model` returns: the predicted reduction and counts.

        x is returned where the minimiser overflows.
        """
        new = np.empty_like(x)
        predicted, *counts = self.solve_model(operator, x, g, l1, new, effort)
        if not np.all(np.isfinite(new)):
            new, predicted = x.copy(), 0.0
        self._update_ridge(operator, l1, new)
        return new, predicted, counts

    def update_damping(self, ratio):
        """Raise the damping where the ratio of actual to predicted reduction was small, else lower it."""
        # without a bound it rises where steps are cut for another reason, and no step moves any more
        self.damping = DAMPING if ratio < MIN_RATIO else self.damping / RIDGE_STEP

    def _update_ridge(self, operator, l1, x):
        """Raise the ridge where the last step had to cross zeros, and lower it where it did not.

        Along combinations of columns that do not change the predictor the penalty alone limits the step. A
        ridge makes it a proximal step there. It rises up to where it weighs as much at x as the penalty.
        Without it logistic losses of three classes and weak penalties take up to 22 times as long.
        """
        if not operator.crossed:
            self.ridge = max(self.ridge / RIDGE_STEP, self.least)
            return
        square = float(operator.diag @ x**2)
        most = float(l1 @ abs(x)) / max(square, np.finfo(np.float64).tiny)
        self.ridge = min(most, max(RIDGE_STEP * self.ridge, most / RIDGE_STEP))
