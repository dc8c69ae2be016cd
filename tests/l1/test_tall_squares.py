"""Least squares of many dense rows whose start is most often the end: by sums in single precision."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from sparsekit import LassoOBA
from sparsekit._cython._square_columns import GramColumns
from sparsekit._cython._squares import MOST_SWEEPS, OUT_OF_TIME, Descent
from sparsekit._l1 import lasso, oba, tall_squares
from sparsekit._l1.oba import minimize_oba
from sparsekit._l1.squares import SquaresSolver
from sparsekit.optimize import LeastSquaresLoss, OBAOptions

KINDS = ["few in use", "some in use", "most in use"]
STRENGTH = dict(zip(KINDS, [0.3, 0.03, 1e-4]))


def data(n=400, p=60, seed=0, rho=0.6):
    rng = np.random.default_rng([n, p, seed])
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + (1 - rho**2) ** 0.5 * X[:, j]
    w = rng.standard_normal(p) * (rng.random(p) < 0.4)
    return X + rng.standard_normal(p), X @ w + rng.standard_normal(n) + 3.0


def largest(X, y, s):
    mean = np.average(X, axis=0, weights=s), np.average(y, weights=s)
    return np.abs((s * (y - mean[1])) @ (X - mean[0])).max()


def slopes(X, y, s, w, b, l1, l2):
    """How far the optimality conditions are from met, relative to the largest penalty of an empty model."""
    g = X.T @ (s * (X @ w + b - y)) + l2 * w
    left = np.where(w == 0, np.maximum(np.abs(g) - l1, 0), np.abs(g + l1 * np.sign(w)))
    return left.max() / largest(X, y, s)


@pytest.fixture(autouse=True)
def no_small_fits(monkeypatch):
    # which these sets would be
    monkeypatch.setattr(lasso, "small_squares", lambda *_: None)


@pytest.fixture
def starts(monkeypatch):
    """What the starts of fits were: near enough or not; empty where there was none."""
    found, real = [], tall_squares.tall_start

    def watched(*args):
        out = real(*args)
        if out[0] is not None:
            found.append(out[1])
        return out

    monkeypatch.setattr(oba, "tall_start", watched)
    return found


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_optimality_in_double_precision(starts, kind, l1_ratio, fit_intercept, weighted, order):
    X, y = data()
    X = np.asarray(X, order=order)
    s = np.random.default_rng(1).integers(0, 4, len(y)) + 0.25 * weighted if weighted else np.ones(len(y))
    v = np.where(np.arange(60) % 7 == 3, 0.0, 1.0 + np.arange(60) % 3)
    alpha = STRENGTH[kind] * largest(X, y, s) / s.sum()
    model = LassoOBA(alpha, l1_ratio=l1_ratio, fit_intercept=fit_intercept, penalty_weights=v)
    model.fit(X, y, sample_weight=s if weighted else None)
    assert starts == [True] and model.n_iter_ == 1
    w, b, lam = model.coef_, model.intercept_, alpha * v * s.sum()
    assert slopes(X, y, s, w, b, l1_ratio * lam, (1 - l1_ratio) * lam) < 2e-6
    assert not fit_intercept or abs(s @ (y - X @ w - b)) < 1e-9 * (s @ abs(y))
    assert 0 <= model.dual_gap_ < 1e-6 * model.objective_
    assert {"few in use": 30, "some in use": 50, "most in use": 61}[kind] > np.count_nonzero(w) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_as_scikit_learn(starts, kind):
    X, y = data(seed=2)
    alpha = STRENGTH[kind] * largest(X, y, np.ones(len(y))) / len(y)
    ours = LassoOBA(alpha, l1_ratio=0.5, tol=1e-10).fit(X, y)
    theirs = ElasticNet(alpha, l1_ratio=0.5, tol=1e-14, max_iter=10**6).fit(X, y)
    assert starts == [True]
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_from_another_solution(starts, kind):
    X, y = data(seed=3)
    alpha = STRENGTH[kind] * largest(X, y, np.ones(len(y))) / len(y)
    cold = LassoOBA(alpha).fit(X, y)
    warm = LassoOBA(3 * alpha, warm_start=True).fit(X, y).set_params(alpha=alpha).fit(X, y)
    far = LassoOBA(alpha, warm_start=True).fit(X, -9 * y).fit(X, y)  # a start worse than zero
    assert starts == [True] * 5
    for model in (warm, far):
        np.testing.assert_allclose(model.coef_, cold.coef_, rtol=0, atol=1e-5)


@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-8])
@pytest.mark.parametrize("kind", KINDS)
def test_every_tolerance_is_certified_at_once(starts, kind, tol):
    """The start knows its gap, so that nothing is left to do after it."""
    X, y = data(seed=7)
    alpha = STRENGTH[kind] * largest(X, y, np.ones(len(y))) / len(y)
    model = LassoOBA(alpha, l1_ratio=0.8, tol=tol).fit(X, y)
    assert starts == [True] and model.n_iter_ == 1
    assert model.dual_gap_ <= 10 * tol * model.objective_ and model.optimality_ <= tol


@pytest.mark.parametrize("strength", [2.0, 0.03])
def test_where_the_start_is_the_end_no_sums_are_made(starts, strength, monkeypatch):
    X, y = data(seed=8)
    alpha = strength * largest(X, y, np.ones(len(y))) / len(y)
    made, real = [], tall_squares.TallSquares.products
    monkeypatch.setattr(
        tall_squares.TallSquares, "products", lambda self, cols: made.append(len(cols)) or real(self, cols)
    )
    model = LassoOBA(alpha, warm_start=True, tol=1e-4).fit(X, y)
    assert bool(made) == (strength < 1)
    made.clear()
    before = model.coef_
    np.testing.assert_allclose(model.fit(X, y).coef_, before, rtol=1e-12)
    assert not made and starts == [True, True]


def test_sums_of_a_set_are_those_of_weighted_columns_less_their_means(monkeypatch):
    """Right ones need one descent for each set; others would be mended, in more rounds than that."""
    X, y = data(700, 120, seed=9)
    s = np.random.default_rng(9).integers(1, 9, 700).astype(float)
    descents, sets = [], []
    for name, seen in (("products", sets), ("_descend", descents)):
        real = getattr(tall_squares.TallSquares, name)

        def watched(self, cols, *args, real=real, seen=seen):
            seen.append(len(cols))
            return real(self, cols, *args)

        monkeypatch.setattr(tall_squares.TallSquares, name, watched)
    model = LassoOBA(0.7 * largest(X, y, s) / s.sum()).fit(X + 20.0, y, s)
    assert model.n_iter_ == 1
    assert descents == sets and max(sets) < 30


def test_small_slopes_are_not_the_end_where_the_gap_is_large(starts):
    X, y = data(400, 60, seed=7, rho=0.99)
    alpha = 1e-4 * largest(X, y, np.ones(len(y))) / len(y)
    assert LassoOBA(alpha, tol=1e-4).fit(X, y).n_iter_ == 1


def test_rounds_mend_what_single_precision_left(starts):
    """Columns that are nearly combinations of others, and a tolerance that one round does not meet."""
    X, y = data(600, 40, rho=0.999)
    alpha = 1e-5 * largest(X, y, np.ones(600)) / 600
    model = LassoOBA(alpha, tol=1e-9).fit(X, y)
    assert starts == [True]
    assert model.optimality_ <= 1e-9 and model.dual_gap_ <= 1e-8 * model.objective_


HARD = {
    "constant columns": lambda X, y: (np.c_[X, np.ones((len(X), 2)), np.zeros(len(X))], y),
    "columns twice": lambda X, y: (np.c_[X, X[:, :9]], y),
    "columns nearly twice": lambda X, y: (np.c_[X, X[:, :30] + 1e-4 * X[:, 30:]], y),
    "scales": lambda X, y: (X * np.logspace(-4, 4, X.shape[1]), 1e6 * y),
    "no noise": lambda X, y: (X, X[:, 3] - 2 * X[:, 5]),
    "large means": lambda X, y: (X + 1e5, y - 1e6),
    "y constant": lambda X, y: (X, np.full(len(y), 7.0)),
    "small": lambda X, y: (1e-10 * X, 1e-10 * y),
    "overflow in single precision": lambda X, y: (1e30 * X, y),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", HARD)
def test_hard_data_end_as_without_the_start(kind, monkeypatch):
    X, y = HARD[kind](*data(seed=4))
    scale = largest(X, y, np.ones(len(y))) or 1.0
    model = LassoOBA(1e-2 * scale / len(y), tol=1e-7).fit(X, y)
    monkeypatch.setattr(oba, "tall_start", lambda *_: (None, False, None))
    other = LassoOBA(1e-2 * scale / len(y), tol=1e-7).fit(X, y)
    assert model.objective_ <= other.objective_ * (1 + 1e-6) + 1e-300
    assert model.optimality_ <= 1e-7 or other.optimality_ > 1e-7


def test_a_descent_that_takes_too_many_sweeps_ends(monkeypatch):
    X, y = data(200, 40, rho=0.99)
    gram, products, nothing = X.T @ X, X.T @ y, np.zeros(40)
    ends = []
    for sweeps in (3, MOST_SWEEPS):
        solver = SquaresSolver(GramColumns(gram, products, y @ y), nothing, False, most_sweeps=sweeps)
        ends.append(solver.solve(np.full(40, 0.01), nothing, tol=1e-9, max_iter=1))
    assert not ends[0].success and ends[1].success and ends[0].fun > ends[1].fun
    given = []
    monkeypatch.setattr(
        tall_squares, "SquaresSolver", lambda *args, **few: given.append(few) or SquaresSolver(*args, **few)
    )
    LassoOBA(0.01).fit(X, y)
    assert given and all(few["most_sweeps"] < 1000 for few in given)


def test_a_descent_looks_at_the_clock():
    X, y = data(200, 40)
    columns, l1 = GramColumns(X.T @ X, X.T @ y, y @ y), np.full(40, 0.01)
    columns.set_point(np.zeros(40))
    status = Descent(columns).solve(l1, 0 * l1, l1, False, 0.0, 0.0, 0.0)[0]
    assert status == OUT_OF_TIME


def test_a_known_gradient_is_that_of_its_point_alone():
    X, y = data(80, 10)
    loss, x = LeastSquaresLoss(X, y, fit_intercept=True), np.linspace(-1, 1, 11)
    problem, z = loss.problem(), X @ x[:10] + x[10]
    known = X.T @ (z - y)
    assert problem.start_at(x, z, known) == pytest.approx(loss.value(x))
    np.testing.assert_allclose(problem.gradient(), loss.gradient(x), rtol=1e-12)
    problem.try_move(problem.move_all().direction(0.5 * x), 1.5 * x)
    problem.accept()
    np.testing.assert_allclose(problem.gradient(), loss.gradient(1.5 * x), rtol=1e-12)
    for start in (problem.start, lambda to: problem.start_at(x, z, known) and problem.start(to)):
        start(2 * x)
        np.testing.assert_allclose(problem.gradient(), loss.gradient(2 * x), rtol=1e-12)


def test_limits_callbacks_and_history(starts):
    X, y = data(seed=5)
    alpha = 0.01 * largest(X, y, np.ones(len(y))) / len(y)
    seen = []
    model = LassoOBA(alpha, history=True, callback=lambda state: seen.append(state.nit)).fit(X, y)
    assert seen == [1] and len(model.history_["fun"]) == 1
    with pytest.warns(UserWarning, match="max_time"):
        LassoOBA(alpha, max_time=1e-9).fit(X, y)
    assert starts == [True, False]


def test_where_it_is_no_way():
    X, y = data()
    loss, none, l1 = LeastSquaresLoss(X, y, fit_intercept=True), np.zeros(61), np.ones(61)
    l1[-1] = 0.0
    start, options = tall_squares.tall_start, OBAOptions()
    assert start(loss, l1, None, none, options)[1]
    assert start(loss, np.ones(61), None, none, options)[0] is None  # a penalty on the intercept
    assert start(loss, l1, np.ones(61), none, options)[0] is None
    assert start(loss, l1, None, none, OBAOptions(max_iter=0))[0] is None
    for other in (X[:70], X.astype(np.float32)):
        rows = np.resize(y, len(other))
        assert start(LeastSquaresLoss(other, rows, fit_intercept=True), l1, None, none, options)[0] is None
    assert start(LeastSquaresLoss(1e200 * X, y), l1[:60], None, none[:60], options)[1] is False


def test_of_a_loss_whose_targets_have_a_mean():
    """The unit of the tolerance is the gradient at zero, intercept and all."""
    X, y = data(seed=6)
    loss, l1 = LeastSquaresLoss(X, y + 50.0, fit_intercept=True), np.full(61, 20.0)
    l1[-1] = 0.0
    found = minimize_oba(loss, l1)
    at_zero = np.abs(loss.gradient(np.zeros(61))).max()
    assert found.success and loss.origin_scale == pytest.approx(at_zero, rel=1e-12)
    assert slopes(X, y + 50.0, np.ones(len(y)), found.x[:60], found.x[60], l1[:60], 0.0) < 1e-5
