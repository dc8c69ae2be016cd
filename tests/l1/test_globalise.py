"""Steps of OBA whose model was wrong are shortened, and the next model is damped."""

from types import SimpleNamespace

import numpy as np
import pytest

from sparsekit._cython.l1._model import solve_model
from sparsekit._l1.solver.globalise import Trial, _shortened
from sparsekit._l1.solver.minimise_model import DAMPING, Effort, ModelSolver
from sparsekit._l1.solver.oba_run import Counts, Kernels
from sparsekit._l1.solver.oba_step import minimum_of_model
from sparsekit.optimize import LogisticLoss


@pytest.fixture
def at_zero():
    """A problem at zero, and the trial point of a step from there of a length and a predicted reduction."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 4)), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    loss, x = LogisticLoss(X, y), np.zeros(4)
    problem, l1 = loss.problem(), loss.l1_vector(0.01)
    f = problem.start(x)
    state = SimpleNamespace(problem=problem, x=x, phi=f, l1=l1)
    run = SimpleNamespace(kernels=Kernels(x), counts=Counts())
    descent = -problem.gradient()

    def step(length, predicted):
        there = length * descent
        dz = problem.move_all().direction(there)
        phi = problem.try_move(dz, there) + l1 @ abs(there)
        return state, Trial(there, phi, dz, predicted, 0), run

    def objective(x):
        return loss.value(x) + l1 @ abs(x)

    return step, objective


@pytest.mark.parametrize("length", [0.2, 2.0], ids=["little", "worse"])
def test_an_overshoot_is_halved_while_that_helps(at_zero, length):
    step, objective = at_zero
    state, trial, run = step(length, 100.0)
    assert (state.phi > trial.phi) == (length == 0.2) and state.phi - trial.phi < 25.0
    far = trial.x.copy()
    found = _shortened(state, trial, np.arange(4), run)
    halves = [objective(far * 0.5**k) for k in range(12)]
    k = int(np.argmin(halves))
    assert k > 0 and found.phi == pytest.approx(halves[k])
    np.testing.assert_allclose(found.x, far * 0.5**k)
    assert run.counts.nfev == k + 1
    # the problem accepts the point that was returned
    state.problem.accept()
    assert state.problem.f + state.l1 @ abs(found.x) == pytest.approx(found.phi)


def test_other_steps_stay(at_zero):
    step, _ = at_zero
    state, trial, run = step(0.05, 1.0)
    assert state.phi - trial.phi > 0.25
    assert _shortened(state, trial, np.arange(4), run) is trial and run.counts.nfev == 0


def test_damping_rises_where_models_are_wrong_and_falls_where_they_are_right():
    solver = ModelSolver(None)
    seen = []
    for ratio in (1.0, 0.1, 0.0, 0.9, 1.0):
        solver.update_damping(ratio)
        seen.append(solver.damping)
    assert seen == [0.0, DAMPING, DAMPING, pytest.approx(DAMPING / 10), pytest.approx(DAMPING / 100)]


def test_the_model_after_a_wrong_one_has_a_larger_diagonal(at_zero):
    step, _ = at_zero
    state, _, run = step(0.05, 1.0)
    run.model_solver, ridges = ModelSolver(solve_model), []

    class Watched:
        def __getattr__(self, name):
            return getattr(state.problem, name)

        def model(self, variables, ridge):
            ridges.append(ridge)
            return state.problem.model(variables, ridge)

    run.effort, state.g, state.kind = Effort(2), state.problem.gradient(), None
    watched = SimpleNamespace(**{**vars(state), "problem": Watched()})
    for _ in range(2):
        minimum_of_model(watched, np.arange(4), run)
        run.model_solver.update_damping(0.0)
    assert ridges[1] == DAMPING > ridges[0]
