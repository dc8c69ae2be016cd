"""From a model's minimiser to a point to accept: lines 6 to 15 of Algorithm 2, Keskar's thesis, chapter 2."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._solver import line_search, outcome
from ..._solver.outcome import Stop
from ..._solver.tolerances import ROUNDING
from ..losses.rounding import VALUE_ROUNDING
from .minimise_model import MIN_RATIO

# Smallest step size on the segment to the ISTA point (epsilon of Algorithm 2). With 1/64 as in other line
# searches 17 of 60 Huber fits to powers of a column, and fits to gamma targets, stop short of the solution.
MIN_STEP = 1e-4


@dataclass
class Trial:
    """Minimiser of a model, the problem's trial point.

    Parameters
    ----------
    x, phi : array, float
        The point and its objective.
    dz : array
        The step to it, as `Problem.try_move` takes it.
    predicted : float
        Predicted reduction.
    n_corrections : int
        Corrective cycles that it took.
    """

    x: np.ndarray
    phi: float
    dz: np.ndarray
    predicted: float
    n_corrections: int


def globalise(state, trial, variables, bound, run):
    """A point that the problem has accepted: (x, objective, ratio of actual to predicted reduction).

    Line 6: it is at least as good as the upper model (2.14) at the ISTA point. The model rises with the
    Lipschitz constant. A step that passes with a ``bound`` below the constant passes with the constant too.

    The ISTA point moves the model's ``variables`` alone. One of all variables makes most of them nonzero
    where rows are few. 300 x 3000 of correlation 0.8 at C = 300 then ended at max_iter.
    """
    problem, trial = state.problem, _shortened(state, trial, variables, run)
    upper = UpperModel(state, variables, run.kernels)
    level = upper.minimum(bound)
    if trial.phi > level:
        bound = max(problem.lipschitz(), bound)
        level = upper.minimum(bound)
    while True:
        if not math.isfinite(level):
            raise Stop(outcome.NOT_FINITE)
        # rounding of the sums may not reject a step that is as good
        threshold = level + VALUE_ROUNDING * abs(level)
        if trial.phi <= threshold:
            # a reduction that is lost in rounding says nothing of the model
            is_lost = trial.predicted <= VALUE_ROUNDING * abs(state.phi)
            x, phi = trial.x, trial.phi
            ratio = 1.0 if is_lost else (state.phi - phi) / trial.predicted
            break
        run.counts.n_ista += 1
        found = _search_segment(state, trial, upper.ista_point(bound), level, threshold, run)
        if found is not None:
            (x, phi), ratio = found, 0.0
            break
        # the upper model failed at the ISTA point: the constant was too small
        bound = problem.raise_lipschitz()
        level = upper.minimum(bound)
        problem.try_move(trial.dz, trial.x)  # accept() takes the last point tried
        run.counts.nfev += 1
    problem.accept()
    return x, phi, ratio


def _shortened(state, trial, variables, run):
    """The trial point, or where its model was wrong a better one on the way there: the step is halved."""
    reduction = state.phi - trial.phi
    is_lost = abs(reduction) <= VALUE_ROUNDING * abs(state.phi)
    if is_lost or not reduction < MIN_RATIO * trial.predicted:
        return trial
    problem, penalty, l1 = state.problem, run.kernels.orthant.penalty, state.l1[variables]
    old, x = state.x[variables], trial.x
    move = x[variables] - old
    fixed = penalty(state.x, state.l1) - penalty(old, l1)
    phi, step = trial.phi, 1.0
    while step > MIN_STEP:
        part = old + 0.5 * step * move
        x[variables] = part
        halved = problem.try_move(0.5 * step * trial.dz, x) + fixed + penalty(part, l1)
        run.counts.nfev += 1
        if not halved < phi:
            break
        phi, step = halved, 0.5 * step
    dz = step * trial.dz
    x[variables] = old + step * move
    problem.try_move(dz, x)  # accept() takes the last point tried
    return replace(trial, phi=phi, dz=dz)


class UpperModel:
    """The upper model (2.14) of the objective on some variables, the others fixed."""

    def __init__(self, state, variables, kernels):
        self.x, self.variables, self.kernels = state.x, variables, kernels
        self.own = state.x[variables], state.g[variables], state.l1[variables]
        penalty = kernels.orthant.penalty
        self.fixed = state.problem.f + penalty(state.x, state.l1) - penalty(self.own[0], self.own[2])

    def minimum(self, bound):
        """Its smallest value with the Lipschitz constant ``bound``."""
        return self.fixed + self.kernels.orthant.ista_bound(*self.own, bound)

    def ista_point(self, bound):
        """Its minimiser."""
        point = self.x.copy()
        point[self.variables] = self.kernels.ista_point(*self.own, bound)
        return point


def _search_segment(state, trial, ista, level, threshold, run):
    """Lines 8 to 14: a point between the ISTA point and the trial point below ``threshold``, as (x, phi).

    None where the ISTA point itself is above its upper model. It is evaluated first: where the constant is an
    estimate, and too small, no point may be low enough.
    """
    to_ista = state.problem.move_all().direction(ista - state.x)
    full = trial.x - ista

    def at(step):
        x = ista + step * full
        phi = state.problem.try_move((1 - step) * to_ista + step * trial.dz, x)
        run.counts.nfev += 1
        phi += run.kernels.orthant.penalty(x, state.l1)
        return line_search.Trial(step, phi, point=(x, phi))

    x, phi = at(0.0).point
    if not phi <= threshold:  # NaN is not
        # what is left of the difference there may be rounding
        return (x, phi) if phi - level <= ROUNDING * abs(level) else None
    found = line_search.backtrack(at, threshold, 0.0, t=0.5, shrink=(0.5, 0.5), min_t=MIN_STEP)
    return (found or at(0.0)).point
