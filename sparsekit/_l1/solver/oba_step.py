"""One iteration of OBA on a set of variables, Algorithm 2 of chapter 2 of Keskar's thesis.

Line 2 identifies, lines 3 to 5 choose variables and minimise a model on them (`minimise_model`, Algorithm 1),
and lines 6 to 15 bring the step to where the objective falls enough (`globalise`).
"""

from dataclasses import dataclass

import numpy as np

from ..._linalg.special import largest
from ..losses.problem import Problem
from .globalise import LEAST_BOUND, Trial, globalise
from .minimise_model import minimise_model

# part of the variables above which all are taken: designs keep what they made for all columns
_NEARLY_ALL = 0.8


@dataclass
class OBAState:
    """Where a run on one set of variables is.

    Parameters
    ----------
    problem : Problem
        At ``x``.
    x, g, l1 : array of shape (n,)
        Point, gradient of f there, and the penalty.
    phi : float
        f(x) + l1 @ |x|.
    tau : int
        Zero variables that may move in the next step.
    kind, size : array of shape (n,)
        What `identify` writes: 1 for a free variable, 2 for one that may leave zero, and |subgradient|.
    """

    problem: Problem
    x: np.ndarray
    g: np.ndarray
    l1: np.ndarray
    phi: float
    tau: int
    kind: np.ndarray
    size: np.ndarray
    unpenalised: np.ndarray
    everything: np.ndarray
    n_free: int = 0
    n_unsure: int = 0


@dataclass
class Step:
    """What became of an iteration.

    Parameters
    ----------
    progress : float
        Decrease of the objective.
    kept : float
        Ratio of actual to predicted reduction; 0 where the step had to be cut.
    n_variables, n_corrections : int
        Variables of the model, and corrective cycles of its first pass.
    """

    progress: float
    kept: float
    n_variables: int
    n_corrections: int


def init_state(problem, x, l1, g, tau, run):
    """The state at x, where the problem is and g is its gradient."""
    n = problem.size
    return OBAState(
        problem, x, g, l1, problem.f + run.kernels.orthant.penalty(x, l1), tau,
        np.empty(n, dtype=np.int8, like=x), np.empty(n, like=x), l1 == 0, np.arange(n, like=x),
    )  # fmt: skip


def identify(state, run):
    """Line 2: the free set F and the undecided U by eq. (2.7); returns the optimality measure (2.4)."""
    measure, state.n_free, state.n_unsure = run.kernels.orthant.identify(
        state.x, state.g, state.l1, state.kind, state.size
    )
    return measure


def choose_variables(state, share):
    """Lines 6 and 7 of Algorithm 1: F, the unpenalised, and members of U with the largest subgradients.

    As many of these as ``state.tau`` or ``share`` of F.
    """
    kind, n_unsure, room = state.kind, state.n_unsure, max(state.tau, int(share * state.n_free))
    if n_unsure > room:
        unsure = np.flatnonzero(kind == 2)
        order = np.argpartition(state.size[unsure], n_unsure - room)[: n_unsure - room]
        kind[unsure[order]] = 0
    variables = np.flatnonzero((kind != 0) | state.unpenalised)
    if len(variables) > _NEARLY_ALL * len(state.x):
        variables = state.everything
    return state.problem.anchored(variables, state.x, state.g, state.l1)


def step(state, variables, run):
    """Lines 3 to 15 on these variables; changes the state, and returns the `Step`."""
    problem = state.problem
    trial, bound = minimum_of_model(state, variables, run)
    x, phi, kept = globalise(state, trial, bound, run)
    if problem.several_classes:
        x = problem.centred(x, state.l1)
        phi = problem.f + run.kernels.orthant.penalty(x, state.l1)
    done = Step(state.phi - phi, kept, len(variables), trial.n_corrections)
    state.g = problem.gradient(state.g)  # first: where there is none the run ends at the last point
    state.x, state.phi = x, phi
    if trial.n_corrections == 0:
        state.tau *= 2
    run.counts.nit += 1
    run.counts.njev += 1
    run.counts.n_corrections.append(trial.n_corrections + 1)
    run.model.adapt(kept, run.options)
    return done


def minimum_of_model(state, variables, run):
    """Lines 3 to 5: the `Trial` point, and a lower bound of the gradient's Lipschitz constant."""
    problem, x, g, l1 = state.problem, state.x, state.g, state.l1
    problem.observe(x, g)
    ridge = max(run.model.ridge, problem.least_ridge)
    operator, move = problem.model(variables, ridge, run.model.bend)
    classes, old = problem.several_classes, x[variables]
    new, n_corrections, predicted = minimise_model(operator, old, g[variables], l1[variables], run, classes)
    if classes or ridge > run.options.ridge:
        # the actual reduction includes what the ridge takes from the predicted one: add it back, so that
        # the ridge may fall
        predicted += 0.5 * operator.ridge * float(operator.diag @ (new - old) ** 2)
    run.model.predicted = predicted
    dz = move.direction(new - old)
    there = x.copy()
    there[variables] = new
    f = problem.try_move(dz, there)
    run.counts.nfev += 1
    trial = Trial(there, f + run.kernels.orthant.penalty(there, l1), dz, predicted, n_corrections)
    length = float(np.sum((new - old) ** 2))
    bound = problem.stretch(dz) / length if length > 0 else 0.0
    bound = max(largest(operator.diag), bound, LEAST_BOUND)
    return trial, bound if np.isfinite(bound) else problem.lipschitz()
