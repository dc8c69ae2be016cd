"""The comparison's problems: objective, largest penalty, lower bound, layouts."""

import math

import numpy as np
import pytest
from compare_problems import make_problem
from scipy import sparse

from sparsekit._compare import peers
from sparsekit._compare.problem import MultinomialProblem, Problem


def naive_objective(problem, w, b, C):
    X = problem.X.toarray() if problem.is_sparse else problem.X
    loss = sum(math.log1p(math.exp(-y * (float(x @ w) + b))) for x, y in zip(X, problem.y))
    return sum(abs(v) for v in w) + C * loss


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_objective_is_the_formula(kind):
    problem = make_problem(kind, n=80, p=12)
    w = np.random.default_rng(1).standard_normal(12)
    assert problem.objective(w, 0.3, 2.5) == pytest.approx(naive_objective(problem, w, 0.3, 2.5), rel=1e-13)


def test_multinomial_objective_is_the_formula():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4)), np.arange(20) % 3
    W, b = rng.standard_normal((3, 4)), rng.standard_normal(3)
    problem = MultinomialProblem("m", X, y.astype(float))
    loss = 0.0
    for x, k in zip(X, y):
        z = [float(W[c] @ x + b[c]) for c in range(3)]
        loss += math.log(sum(math.exp(v) for v in z)) - z[k]
    assert problem.objective(W, b, 0.7) == pytest.approx(np.abs(W).sum() + 0.7 * loss, rel=1e-13)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_lambda_max_is_where_the_first_feature_enters(fit_intercept):
    """Directional derivatives of F at w = 0 are non-negative at lambda_max and not below it."""
    problem = make_problem(n=80, p=12, fit_intercept=fit_intercept)
    share = np.mean(problem.y > 0)
    b = math.log(share / (1 - share)) if fit_intercept else 0.0
    step = 1e-6
    for factor, optimal in ((1.001, True), (0.999, False)):
        C = 1 / (factor * problem.lambda_max)
        at_zero = problem.objective(np.zeros(12), b, C)
        moved = [problem.objective(s * step * e, b, C) for e in np.eye(12) for s in (1, -1)]
        assert (min(moved) >= at_zero) == optimal


def test_lower_bound_is_below_every_value_and_tight_at_the_optimum():
    problem = make_problem(n=80, p=12)
    C = 1 / (0.1 * problem.lambda_max)
    solver = peers.Liblinear()
    fit = solver.fit(*solver.data(problem), C, 1e-12, 10000)
    best = problem.objective(fit.coef, 0.0, C)
    rng = np.random.default_rng(0)
    assert problem.lower_bound(np.zeros(12), 0.0, C) <= best
    for scale in (0, 0.1, 1, 10):
        bound = problem.lower_bound(fit.coef + scale * rng.standard_normal(12), 0.0, C)
        assert bound <= best * (1 + 1e-12)
    assert best - problem.lower_bound(fit.coef, 0.0, C) < 1e-6 * best
    assert math.isnan(make_problem(n=80, p=12, fit_intercept=True).lower_bound(fit.coef, 0.0, C))


def test_layouts_are_made_once():
    problem = make_problem("sparse", n=80, p=12)
    assert problem.design("row").format == "csr" and problem.design("column").format == "csc"
    assert problem.design("column") is problem.design("column")
    assert make_problem(n=80, p=12).design("column").flags.f_contiguous


def test_dense_hessians_are_not_attempted_beyond_memory():
    wide = Problem("wide", sparse.csr_matrix((4, 200_000)), np.array([1.0, -1, 1, -1]))
    assert "GiB" in peers.Glum().refuses(wide)
