"""The protocol between OBA and its problems: what each has, and that the solver does not probe for more."""

import ast
import inspect

import numpy as np
import pytest

from sparsekit._l1.losses.linear_problem import LinearProblem
from sparsekit._l1.losses.multinomial import MultinomialProblem
from sparsekit._l1.losses.problem import Problem
from sparsekit._l1.losses.user_problem import ProtocolProblem
from sparsekit._l1.solver import oba
from sparsekit._l1.solver.quasi_newton import QuasiNewtonProblem

# what one with a dual has in addition to what every problem has
DUAL = {"project_free"}
PROBLEMS = {
    LinearProblem: DUAL,
    MultinomialProblem: DUAL,
    ProtocolProblem: set(),
    QuasiNewtonProblem: set(),
}


class Least(Problem):
    """Has what every problem must have, and no more."""

    start = gradient = model = move_all = try_move = accept = lipschitz = raise_lipschitz = passes = None


@pytest.mark.parametrize("cls", PROBLEMS)
def test_every_problem_has_what_it_must(cls):
    assert issubclass(cls, Problem) and not cls.__abstractmethods__
    assert not {name for name in PROBLEMS[cls] if getattr(cls, name) is getattr(Problem, name)}


@pytest.mark.parametrize("cls", PROBLEMS)
def test_methods_take_what_the_protocol_says(cls):
    for name, method in vars(Problem).items():
        if inspect.isfunction(method):
            own = inspect.signature(getattr(cls, name))
            assert own.parameters.keys() == inspect.signature(method).parameters.keys(), name


def test_the_solver_does_not_probe_problems():
    for node in ast.walk(ast.parse(inspect.getsource(oba))):
        probes = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if probes and node.func.id in ("hasattr", "getattr", "isinstance"):
            assert not (isinstance(node.args[0], ast.Name) and node.args[0].id == "problem")


def test_defaults():
    problem, x = Least(), np.arange(3.0)
    assert problem.inner is problem and problem.centred(x, x) is x
    assert problem.anchored(x, x, x, x) is x and problem.stretch(x) == 0.0
    with pytest.raises(NotImplementedError, match="Least has no dual"):
        problem.project_free(x, x, x, x)
    with pytest.raises(TypeError, match="abstract"):
        Problem()
