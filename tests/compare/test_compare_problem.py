"""The comparison's problems: objective, largest penalty, lower bound, scores, layouts."""

import math

import numpy as np
import pytest
from compare_problems import exact_fit, make_family_problem, make_problem
from scipy import sparse
from sklearn.linear_model import Lasso, TweedieRegressor

from sparsekit._compare import io, peers
from sparsekit._compare.options import FAMILIES, POWERS
from sparsekit._compare.problem import Problem


def naive_objective(problem, w, b, C):
    X = problem.X.toarray() if problem.is_sparse else problem.X
    loss = sum(math.log1p(math.exp(-y * (float(x @ w) + b))) for x, y in zip(X, problem.y))
    return sum(abs(v) for v in w) + C * loss


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_objective_is_the_formula(kind):
    problem = make_problem(kind, n=80, p=12)
    w = np.random.default_rng(1).standard_normal(12)
    assert problem.objective(w, 0.3, 2.5) == pytest.approx(naive_objective(problem, w, 0.3, 2.5), rel=1e-13)


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
    fit = solver.fit(problem.X, problem, C, 1e-12)
    best = problem.objective(fit.coef, 0.0, C)
    rng = np.random.default_rng(0)
    assert problem.lower_bound(np.zeros(12), 0.0, C) <= best
    for scale in (0, 0.1, 1, 10):
        bound = problem.lower_bound(fit.coef + scale * rng.standard_normal(12), 0.0, C)
        assert bound <= best * (1 + 1e-12)
    assert best - problem.lower_bound(fit.coef, 0.0, C) < 1e-6 * best
    assert math.isnan(make_problem(n=80, p=12, fit_intercept=True).lower_bound(fit.coef, 0.0, C))


def test_solvers_get_the_layout_that_they_like():
    problem = make_problem("sparse", n=80, p=12)
    assert peers.Liblinear().design(problem).format == "csr" and peers.Glum().design(problem).format == "csc"
    assert peers.Glum().design(make_problem(n=80, p=12)).flags.f_contiguous


def test_dense_hessians_are_not_attempted_beyond_memory():
    wide = Problem("wide", sparse.csr_matrix((4, 200_000)), np.array([1.0, -1, 1, -1]))
    assert "GiB" in peers.Glum().refuses(wide)


def regressions(fit_intercept=True, l1_ratio=1.0):
    """A problem of least squares and one of each family."""
    yield make_problem("dense", fit_intercept, model="lasso")
    for family in FAMILIES:
        yield make_family_problem(family, fit_intercept=fit_intercept, l1_ratio=l1_ratio)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_regressions_against_scikit_learn(fit_intercept):
    """Objectives, and bounds that are below the optimum and tight at it, where there are any."""
    for problem in regressions(fit_intercept, l1_ratio=0.0):
        C = 1 / (0.1 * problem.lambda_max)
        if problem.family in FAMILIES:
            if problem.family not in POWERS:
                continue
            options = dict(power=POWERS[problem.family], link="log", tol=1e-10, max_iter=10_000)
            model = TweedieRegressor(alpha=problem.alpha(C), fit_intercept=fit_intercept, **options)
        else:
            model = Lasso(problem.alpha(C), fit_intercept=fit_intercept, tol=1e-14, max_iter=10**5)
        model.fit(problem.X, problem.y)
        best = problem.objective(model.coef_, model.intercept_, C)
        for scale in (0.0, 0.99, 1.01):
            assert problem.objective(scale * model.coef_, model.intercept_, C) > best
        scaled = [scale * model.coef_ for scale in (1.0, 0.0, 0.5, 2.0, -1.0)]
        found = [problem.lower_bound(coef, model.intercept_, C) for coef in scaled]
        if problem.family in FAMILIES:
            assert np.isnan(found).all()
            continue
        residual = problem.y - model.predict(problem.X)
        penalty = problem.alpha(C) * np.abs(model.coef_).sum()
        assert best == pytest.approx(residual @ residual / (2 * len(residual)) + penalty)
        assert found[0] == pytest.approx(best, rel=1e-9) and max(found) <= best * (1 + 1e-12)


def test_lower_bounds_of_regressions_without_intercepts():
    for problem in regressions(False):
        C = 1 / (0.1 * problem.lambda_max)
        model = exact_fit(problem, C)
        best = problem.objective(model.coef_, 0.0, C)
        found = [problem.lower_bound(scale * model.coef_, 0.0, C) for scale in (1.0, 0.0, 0.5, 2.0)]
        assert found[0] == pytest.approx(best, rel=1e-7) and max(found) <= best * (1 + 1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_lambda_max_of_regressions(fit_intercept, l1_ratio):
    for problem in regressions(fit_intercept, l1_ratio):
        for part, is_zero in ((1.0001, True), (0.99, False)):
            assert exact_fit(problem, 1 / (part * problem.lambda_max)).coef_.any() != is_zero


def test_largest_penalties_of_data_of_any_size():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    for size in (1e-200, 1.0, 1e200):
        for matrix in (size * X, sparse.csr_array(size * X)):
            found = Problem("", matrix, y, True, family="gaussian").lambda_max
            np.testing.assert_allclose(found, size * np.abs(X.T @ (y - y.mean())).max())


def test_held_out_rows():
    for problem in regressions():
        model = exact_fit(problem, 1 / (0.1 * problem.lambda_max))
        assert np.isnan(problem.held_out(model.coef_, model.intercept_)).all()
        X, y = problem.X_test, problem.y_test = problem.X[:30], problem.y[:30]
        score, error = problem.held_out(model.coef_, model.intercept_)
        assert score == pytest.approx(model.score(X, y)) and error > 0
        if problem.family == "gaussian":
            assert error == pytest.approx(np.mean((model.predict(X) - y) ** 2))


def test_problems_go_to_processes_with_their_family():
    problem = make_family_problem("gamma", l1_ratio=0.25)
    for part in (problem.training_part(), problem.sample()):
        assert (part.family, part.l1_ratio, part.fit_intercept) == ("gamma", 0.25, True)
        assert part.X_test is None
    assert problem.sample().X.shape == (40, 8)


@pytest.mark.parametrize(
    ("family", "column", "words"),
    [
        ("poisson", [-1, 2, 0, 3], "y must be at least 0 .* got -1.0 in row 0"),
        ("gamma", [1, 2, 0, 3], "y must be above 0 .* in row 2"),
        ("gamma", ["a", "b", "c", "d"], "--lasso and --family need numbers"),
        ("gaussian", ["a", "b", "c", "d"], "--lasso and --family need numbers"),
        ("gaussian", [2, 2, 2, 2], "all 4 rows have the target 2"),
    ],
)
def test_targets_that_do_not_fit_are_named(tmp_path, family, column, words):
    path = tmp_path / "bad.csv"
    path.write_text("x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(column)), encoding="utf-8")
    with pytest.raises(io.DataError, match=words):
        io.read_problem(path, test_size=0, family=family)
