"""Dual points from several iterates: never a gap below the true error, and tighter ones near the end."""

import numpy as np
import pytest
from test_oba_weak_penalties import text

from sparsekit._l1 import oba_run as _run
from sparsekit._l1.duality import duality_gap
from sparsekit._l1.extrapolation import DualExtrapolation
from sparsekit._l1.user_problem import as_problem
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, OBAOptions, minimize_oba


class Iterates:
    """What `minimize_oba` shows of its iterates."""

    def __init__(self):
        self.x = []

    def __call__(self, result):
        self.x.append(result.x.copy())


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("make", [LogisticLoss, LeastSquaresLoss])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_bound_the_error_and_shrink(make, fit_intercept, weighted):
    X, y = text(900, 600, 1)
    weight = np.random.default_rng(0).uniform(0, 2, 900) if weighted else None
    loss = make(X, y, weight, fit_intercept=fit_intercept)
    l1 = loss.l1_vector(0.1)
    best = minimize_oba(loss, l1, tol=1e-11)
    seen = Iterates()
    minimize_oba(loss, l1, tol=1e-8, callback=seen)
    dual, tighter = DualExtrapolation(), []
    problem = as_problem(loss, OBAOptions(), None)
    for x in seen.x[-8:]:
        problem.start(x)
        g = problem.gradient()
        dual.add(problem, g, problem.state.u)
        error = problem.f + l1 @ np.abs(x) - best.fun
        plain = duality_gap(loss, problem, x, l1, g)
        found = dual.combine(x, l1)
        if found is None:
            assert len(dual.kept) == 1
            continue
        gap = duality_gap(loss, problem, x, l1, g, found[0])
        assert min(gap, plain) >= error - 1e-11 * best.fun
        tighter.append(gap / plain)
    assert len(tighter) == min(len(seen.x), 8) - 1 and min(tighter) < 0.9


def test_the_combination_is_that_of_an_affine_residual():
    rng = np.random.default_rng(1)
    H = rng.standard_normal((40, 12))
    H = H.T @ H
    x_best, l1 = rng.standard_normal(12), np.full(12, 0.1)
    dual = DualExtrapolation()
    steps = rng.standard_normal((4, 12)) * 1e-3
    # in the span of the steps the residual can be made zero
    path = [x_best + step for step in steps]
    path.append(x_best - 0.5 * steps.sum(axis=0))
    for x in path:
        dual.add(None, H @ (x - x_best) - l1 * np.sign(x_best), x)
    theta, violation = dual.combine(path[-1], l1)
    np.testing.assert_allclose(theta, x_best, atol=1e-9)
    assert violation < 1e-9


def test_iterates_of_another_problem_are_forgotten():
    dual = DualExtrapolation()
    first, second = object(), object()
    for problem in (first, first, second):
        dual.add(problem, np.ones(2), np.ones(3))
    assert len(dual.kept) == 1
    assert dual.combine(np.ones(2), np.ones(2)) is None
    dual.add(second, np.ones(2), np.ones(3))
    assert dual.combine(np.zeros(2), np.ones(2)) is None  # no support


def test_a_run_ends_on_the_proof_that_it_asked_for(monkeypatch):
    X, y = text(3000, 2000, 2)
    loss = LogisticLoss(X, y, fit_intercept=True)
    l1 = loss.l1_vector(0.003)
    with_it = minimize_oba(loss, l1)
    monkeypatch.setattr(_run, "_EARLIER", -1.0)
    without = minimize_oba(loss, l1)
    for result in (with_it, without):
        assert result.status == 0 and result.optimality <= 1e-5
        assert result.dual_gap <= 1e-4 * result.fun
    assert with_it.n_products <= without.n_products
