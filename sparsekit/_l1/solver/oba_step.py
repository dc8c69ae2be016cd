"""One iteration of OBA on a set of variables, Algorithm 2 of chapter 2 of Keskar's thesis.

Line 2 identifies. Lines 3 to 5 choose variables and minimise a model on them (`minimise_model`, Algorithm 1).
Lines 6 to 15 shorten the step until the objective has a sufficient decrease (`globalise`).
"""

from dataclasses import dataclass

import numpy as np

from ..._linalg.special import largest
from ..losses.problem import Problem
from .globalise import Trial, globalise
from .minimise_model import next_effort, of_operator
from .working_set import most_new, room_for_more


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
    kind, size : array of shape (n,)
        What `identify` writes: 1 for a free variable, 2 for one that may leave zero, and |subgradient|.
    """

    problem: Problem
    x: np.ndarray
    g: np.ndarray
    l1: np.ndarray
    phi: float
    kind: np.ndarray
    size: np.ndarray
    unpenalised: np.ndarray
    n_free: int = 0
    n_unsure: int = 0


@dataclass
class Step:
    """Results of an iteration.

    Parameters
    ----------
    reduction : float
        Of the objective.
    ratio : float
        Ratio of actual to predicted reduction; 0 where the step had to be cut.
    n_variables, n_corrections : int
        Variables of the model, and corrective cycles of its first pass.
    """

    reduction: float
    ratio: float
    n_variables: int
    n_corrections: int


def init_state(problem, x, l1, g, run):
    """The state at x, where the problem is and g is its gradient."""
    n, phi = problem.size, problem.f + run.kernels.orthant.penalty(x, l1)
    return OBAState(problem, x, g, l1, phi, np.empty(n, dtype=np.int8, like=x), np.empty(n, like=x), l1 == 0)


def identify(state, run):
    """Line 2: the free set F and the undecided U by eq. (2.7); returns the optimality measure (2.4)."""
    measure, state.n_free, state.n_unsure = run.kernels.orthant.identify(
        state.x, state.g, state.l1, state.kind, state.size
    )
    return measure


def choose_variables(state):
    """Lines 6 and 7 of Algorithm 1: F, the unpenalised, and members of U with the largest subgradients.

    A departure: their number is that of `most_new`, as in all solvers of this package.
    """
    problem, kind, n_unsure = state.problem, state.kind, state.n_unsure
    n_rows, n_used = problem.n_rows or problem.size, state.n_free
    room = room_for_more(n_rows, n_used, problem.l2 is not None)
    most = most_new(n_rows, problem.size, n_used, room)
    if n_unsure > most:
        unsure = np.flatnonzero(kind == 2)
        order = np.argpartition(state.size[unsure], n_unsure - most)[: n_unsure - most]
        kind[unsure[order]] = 0
    variables = np.flatnonzero((kind != 0) | state.unpenalised)
    return problem.anchored(variables, state.x, state.g, state.l1)


def step(state, variables, run):
    """Lines 3 to 15 on these variables; changes the state, and returns the `Step`."""
    problem = state.problem
    trial, bound = minimum_of_model(state, variables, run)
    x, phi, ratio = globalise(state, trial, variables, bound, run)
    run.effort = next_effort(run.effort, ratio)
    run.model_solver.update_damping(ratio)
    if problem.several_classes:
        x = problem.centred(x, state.l1, np.zeros_like(state.l1))
        phi = problem.f + run.kernels.orthant.penalty(x, state.l1)
    done = Step(state.phi - phi, ratio, len(variables), trial.n_corrections)
    state.g = problem.gradient(state.g)  # first: where there is none the run ends at the last point
    state.x, state.phi = x, phi
    run.counts.nit += 1
    run.counts.njev += 1
    run.counts.n_corrections.append(trial.n_corrections + 1)
    run.predicted = trial.predicted
    return done


def minimum_of_model(state, variables, run):
    """Lines 3 to 5: the `Trial` point, and a lower bound of the gradient's Lipschitz constant."""
    problem, x, g, l1, counts = state.problem, state.x, state.g, state.l1, run.counts
    problem.observe(x, g)
    solver = run.model_solver
    operator, move = problem.model(variables, max(solver.ridge, solver.damping))
    old, effort = x[variables], of_operator(run.effort, operator.reads)
    new, predicted, (_, n_corrections, n_cg, n_direct) = solver.minimize(
        operator, old, g[variables], l1[variables], effort
    )
    if operator.error is not None:
        raise operator.error
    counts.n_cg += n_cg
    counts.n_direct += n_direct
    counts.n_products += operator.n_products
    # the ridge is no part of the objective; a reduction that is not finite ends the run at the trial point
    with np.errstate(over="ignore", invalid="ignore"):
        predicted += 0.5 * operator.ridge * float(operator.diag @ (new - old) ** 2)
    dz = move.direction(new - old)
    there = x.copy()
    there[variables] = new
    f = problem.try_move(dz, there)
    counts.nfev += 1
    trial = Trial(there, f + run.kernels.orthant.penalty(there, l1), dz, predicted, n_corrections)
    length = float(np.sum((new - old) ** 2))
    bound = problem.stretch(dz) / length if length > 0 else 0.0
    bound = max(largest(operator.diag), bound, np.finfo(np.float64).tiny)
    return trial, bound if np.isfinite(bound) else problem.lipschitz()
