"""When one method gives way to another: the rate of the gap against what the other one costs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import BoundedClassifier
from sparsekit._bounded.solver import pace as pace_module
from sparsekit._bounded.solver import scaled_descent
from sparsekit._bounded.solver.pace import Pace
from sparsekit._bounded.solver.scaled_descent import newton_cost
from sparsekit._linalg.as_design import as_design


def rounds(pace, gap_at, most=400):
    """The round after which it is slow, or None."""
    for k in range(1, most + 1):
        pace.count = k
        gap = gap_at(k)
        if gap <= 1e-6:
            return None
        if pace.is_slow(gap, 1e-6):
            return k
    return most


@pytest.mark.parametrize("other_cost, slow", [(20, True), (100, False)])
def test_a_steady_rate_is_judged_early(other_cost, slow):
    """The gap falls by a digit in ten rounds: sixty are needed."""
    found = rounds(Pace(other_cost), lambda k: 10.0 ** (-k / 10))
    assert (found == pace_module.MIN_COUNT) if slow else (found is None)


def test_the_rate_is_that_of_the_last_half():
    """A gap that falls at once, and then hardly, is slow when the first part is forgotten."""
    found = rounds(Pace(50), lambda k: 1e-3 * 0.999**k if k > 3 else 10.0 ** (-k))
    assert 5 <= found <= 10
    found = rounds(Pace(50), lambda k: 1.0 if k < 4 else 10.0 ** (-(k - 4) / 2))
    assert found is None


def test_the_first_part_of_the_other_cost_is_not_judged():
    pace = Pace(1000)
    assert rounds(pace, lambda k: 1.0) == pace_module.TRIAL * 1000


def test_a_gap_that_is_no_number_is_slow_and_one_that_is_infinite_is_not():
    pace = Pace(10)
    assert not pace.is_slow(np.inf, 1e-6)
    assert pace.is_slow(np.nan, 1e-6)


@pytest.mark.parametrize("allowed", [1e-6, 0.0])
def test_a_gap_that_is_reached_is_not_slow(allowed):
    pace = Pace(10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(1, 30):
            pace.count = k
            assert pace.is_slow(1.0, allowed) == (k >= pace_module.MIN_COUNT)
        for gap in (allowed, 0.0, -1e-9):
            assert not pace.is_slow(gap, allowed)


def test_what_a_newton_step_costs():
    """In iterations of NQN: more with more columns, less for sparse rows, nothing that is too large."""
    narrow, wide = (as_design(np.ones((2000, p))) for p in (20, 400))
    assert newton_cost(narrow) < 1.0 < 20.0 < newton_cost(wide) < 500.0
    sparse = as_design(sp.random(2000, 400, 0.01, format="csr", random_state=0))
    assert newton_cost(sparse) < newton_cost(wide)
    assert newton_cost(as_design(sp.random(4000, 4000, 1e-3, format="csr", random_state=0))) == np.inf


@pytest.mark.parametrize("steps", [0.0, np.inf])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "modified_huber"])
def test_either_method_ends_at_the_solution(loss, steps, monkeypatch):
    monkeypatch.setattr(scaled_descent, "NEWTON_STEPS", steps)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 40)) @ np.diag(10.0 ** rng.uniform(-2, 2, 40))
    X[:, :20] += X[:, 20:]
    y = X[:, ::3] @ rng.standard_normal(14) > 0
    model = BoundedClassifier(loss, bounds=(0.0, None), alpha=1e-6, history=True).fit(X, y)
    assert model.optimality_ <= model.tol
    methods = list(model.history_["method"])
    assert ("newton" in methods) == (steps == 0.0)
    assert methods.count("nqn") >= pace_module.MIN_COUNT
