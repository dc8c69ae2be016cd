"""From a model's minimiser to a point to accept: lines 6 to 15 of Algorithm 2, Keskar's thesis, chapter 2."""

import math
from dataclasses import dataclass

import numpy as np

from ..._solver import outcome
from ..._solver.outcome import Stop
from ..losses.rounding import GAP_ROUNDING, VALUE_ROUNDING

# Least Lipschitz constant: nothing is divided by zero.
LEAST_BOUND = 1e-300
# Shortest step size, as a part of the model's step, before the ISTA point is tried.
_SHORTEST = 1 / 64
# Multiple of rounding below which a predicted reduction says nothing.
_LOST = 10.0


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
        Decrease of the model.
    n_corrections : int
        Corrective cycles that it took.
    """

    x: np.ndarray
    phi: float
    dz: np.ndarray
    predicted: float
    n_corrections: int


def globalise(state, trial, bound, run):
    """A point that the problem has accepted: (x, objective, ratio of actual to predicted reduction).

    Line 6: it is at least as good as the upper model (2.14) at the ISTA point. That rises with the Lipschitz
    constant, so a step that passes with ``bound``, which may be below the constant, passes with the constant.
    """
    problem = state.problem
    level = _upper_model(state, bound, run)
    if trial.phi > level:
        bound = max(problem.lipschitz(), bound)
        level = _upper_model(state, bound, run)
    while True:
        if not math.isfinite(level):
            raise Stop(outcome.NOT_FINITE)
        # rounding of the sums may not reject a step that is as good
        enough = level + VALUE_ROUNDING * abs(level)
        if trial.phi <= enough:
            x, phi, kept = _take(state, trial, run)
            break
        kept = 0.0
        found = _shorter(state, trial, enough, run)
        if found is None:
            run.counts.n_ista += 1
            found = _segment(state, trial, bound, level, enough, run)
        if found is not None:
            x, phi = found
            break
        # the upper model failed at the ISTA point: the constant was too small
        bound = problem.raise_lipschitz()
        level = _upper_model(state, bound, run)
        problem.try_move(trial.dz, trial.x)  # accept() takes the last point tried
        run.counts.nfev += 1
    problem.accept()
    return x, phi, kept


def _upper_model(state, bound, run):
    """Smallest value of the upper model (2.14) with that Lipschitz constant."""
    return state.problem.f + run.kernels.orthant.ista_bound(state.x, state.g, state.l1, bound)


def _take(state, trial, run):
    """The trial point, or halves of the step to it where it kept little and they keep more."""
    # a decrease that is lost in rounding says nothing of the model
    lost = trial.predicted <= _LOST * VALUE_ROUNDING * abs(state.phi)
    kept = 1.0 if lost else (state.phi - trial.phi) / trial.predicted
    x, phi = trial.x, trial.phi
    if kept >= run.options.kept_low:
        return x, phi, kept
    full, share, best = trial.x - state.x, 1.0, 1.0
    while share > _SHORTEST:
        x_try, phi_try = _at(state, state.x, full, 0.5 * share, 0.5 * share * trial.dz, run)
        share *= 0.5
        if not phi_try < phi:
            break
        x, phi, best = x_try, phi_try, share
    if share != best:
        state.problem.try_move(best * trial.dz, x)
    return x, phi, kept


def _shorter(state, trial, enough, run):
    """The longest half, quarter ... of the step that is good enough, as (x, phi), or None.

    A departure: the segment of line 9 ends at the ISTA point, which has many small non-zeros where the trial
    point has few.
    """
    full, share = trial.x - state.x, 0.5
    while share >= _SHORTEST:
        x, phi = _at(state, state.x, full, share, share * trial.dz, run)
        if phi <= enough:
            return x, phi
        share *= 0.5
    return None


def _segment(state, trial, bound, level, enough, run):
    """Lines 8 to 14: the point of the segment from the ISTA point that is good enough, as (x, phi).

    None where the ISTA point itself is above its upper model.
    """
    ista = run.kernels.ista_point(state.x, state.g, state.l1, bound)
    to_ista = state.problem.move_all().direction(ista - state.x)
    full, share = trial.x - ista, 0.5
    while True:
        if share < run.options.segment_tol:
            share = 0.0
        x, phi = _at(state, ista, full, share, (1 - share) * to_ista + share * trial.dz, run)
        if phi <= enough:
            return x, phi
        if share == 0.0:
            # what is left of the difference there may be rounding
            return (x, phi) if phi - level <= GAP_ROUNDING * abs(level) else None
        share *= 0.5


def _at(state, origin, full, share, dz, run):
    """The point origin + share * full, to which dz leads, made the trial point; with its objective."""
    x = origin + share * full
    f = state.problem.try_move(dz, x)
    run.counts.nfev += 1
    return x, f + run.kernels.orthant.penalty(x, state.l1)
