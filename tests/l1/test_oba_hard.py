"""Runs of the solver that once hung, crashed or lied."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from sparsekit import L1LogisticOBA
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, OBAOptions, minimize_oba


class Poisson:
    """sum exp(z) - y z: its curvature has no bound, so the ISTA constant must be raised."""

    def __init__(self, X, y):
        self.X, self.y, self.n_variables = X, y, X.shape[1]

    def value(self, x):
        z = self.X @ x
        with np.errstate(over="ignore"):
            return np.exp(z).sum() - self.y @ z

    def gradient(self, x):
        with np.errstate(over="ignore"):
            return self.X.T @ (np.exp(self.X @ x) - self.y)

    def hessian_product(self, x, subset, v):
        A = self.X[:, subset]
        return A.T @ (np.exp(self.X @ x) * (A @ v))


def test_result_describes_the_point_that_it_returns():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 8))
        loss = Poisson(X, rng.poisson(np.exp(X @ rng.normal(0, 1.5, 8))).astype(float))
        result = minimize_oba(loss, 0.5, tol=1e-7)
        assert result.fun == pytest.approx(loss.value(result.x) + 0.5 * np.abs(result.x).sum(), rel=1e-12)
        np.testing.assert_allclose(result.grad, loss.gradient(result.x), rtol=1e-9, atol=1e-9)


def test_bad_arguments_are_refused():
    X = sp.random(5, 2000, 0.1, format="csr", random_state=0)
    y = np.ones(5)
    with pytest.raises(ValueError, match="x must have shape"):
        LogisticLoss(X, y).value(np.ones(3))
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        LogisticLoss(X, y, n_threads=-1)
    with pytest.raises(ValueError, match="model_cycles must be at least 1; got 0"):
        OBAOptions(model_cycles=0)


class Flat(Poisson):
    """A Hessian that claims to be next to nothing, so that its model's minimiser overflows."""

    def hessian_product(self, x, subset, v):
        return 1e-305 * v


def test_a_model_that_overflows_ends_in_finite_steps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    loss = Flat(X, rng.poisson(np.exp(0.3 * X[:, 0])).astype(float))
    result = minimize_oba(loss, 0.5, tol=1e-6, max_iter=300)
    assert np.all(np.isfinite(result.x)) and np.isfinite(result.fun)
    assert result.fun < loss.value(np.zeros(8))
    assert result.n_ista > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_collinear_columns_far_from_zero_take_few_iterations(seed):
    """Their model is a matrix; minimised as loosely as others it takes 31 to 200 iterations."""
    X, y = make_classification(1000, 150, n_informative=5, n_redundant=15, random_state=seed)
    model = L1LogisticOBA(C=1.0).fit(X + 8.0, y)
    assert model.n_iter_[0] <= 25 and model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("seed", [1, 12, 17, 22])
def test_correlated_features_of_few_rows_at_a_weak_penalty(seed):
    """An ISTA point of all variables makes thousands of them nonzero, and fits end at max_iter."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(0.2) * rng.normal(size=(300, 3000)) + np.sqrt(0.8) * rng.normal(size=(300, 1))
    score = X[:, :30] @ rng.normal(size=30)
    y = score / score.std() * 2.0 + rng.logistic(size=300) > 0
    model = L1LogisticOBA(C=300.0, max_iter=60).fit(X, y)
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_designs_with_next_to_nothing():
    """A single row, no columns."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), rng.choice([-1.0, 1.0], 40)
    one = minimize_oba(LogisticLoss(X[:1], y[:1]), 0.5, tol=1e-9)
    assert one.status in (0, 4) and np.isfinite(one.x).all()
    empty = minimize_oba(LogisticLoss(np.zeros((5, 0)), y[:5]), 0.5)
    assert empty.status == 0 and empty.x.shape == (0,)
    free = minimize_oba(LogisticLoss(np.zeros((40, 0)), y, fit_intercept=True), 0.0, tol=1e-10)
    np.testing.assert_allclose(free.x[0], np.log((y > 0).sum() / (y < 0).sum()), rtol=1e-8)


@pytest.mark.parametrize("seed, l1", [(1, 0.1), (4, 0.01)])
def test_a_certified_point_is_a_solution_whatever_ended_the_run(seed, l1):
    """Nearly equal columns, on which the gap is met some iterations after the optimality measure."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 60))
    X[:, 30:] = X[:, :30] + 1e-2 * rng.standard_normal((30, 30))
    loss = LeastSquaresLoss(X, rng.standard_normal(30))
    runs = [minimize_oba(loss, l1, tol=1e-3, max_iter=k) for k in range(1, 12)]
    certified = [run.optimality <= 1e-3 and run.dual_gap <= 1e-2 * run.fun for run in runs]
    assert [run.success for run in runs] == certified and 0 < sum(certified) < len(runs)


def test_conjugate_gradients_go_on_along_directions_of_little_curvature(shared_data):
    """At a fixed limit, each of 40 iterations on this fold of rcv1 took a step of the same length."""
    data = shared_data("rcv1_binary")
    X, y = data["X_train"], data["y_train"]
    rows = list(StratifiedKFold(3).split(X, y))[2][0]
    model = L1LogisticOBA(100.0).fit(X[rows], y[rows])
    assert model.n_iter_[0] <= 30
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_many_classes_of_text_as_counts(shared_data):
    """Without damping the models overshoot: no certificate after 60 iterations."""
    data = shared_data("news20")
    model = L1LogisticOBA(C=1.0).fit(data["X_train"][::4], data["y_train"][::4])
    assert model.dual_gap_ <= 1e-4 * model.objective_ and model.n_iter_ < 60


@pytest.mark.parametrize("seed", [0, 4])
def test_damping_has_a_bound(seed):
    """Without one it rose by ten where steps were cut: 200 iterations, the objective five times the least."""
    rng = np.random.default_rng(seed)
    often = 1.0 / np.arange(1, 2001) ** 0.9
    X = sp.csr_matrix((rng.random((400, 2000)) < np.minimum(0.9, 60 * often / often.sum())).astype(float))
    y = (X @ rng.normal(size=2000) > 0).astype(int)
    model = L1LogisticOBA(C=100).fit(X, y, offset=rng.normal(size=400) * [10, 30][seed % 3])
    assert model.n_iter_[0] <= 100 and model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("seed", range(3))
def test_rows_stay_in_models_that_have_most_of_a_column(seed):
    """Empty rows have the largest weights, and no weight of the others is more than 1e-4 of the mean."""
    X = sp.random(300, 200, 0.05, format="csr", random_state=seed)
    X = sp.vstack([sp.csr_matrix((20, 200)), X[20:]], format="csr")
    y = np.random.default_rng(seed).integers(0, 2, 300)
    model = L1LogisticOBA(C=1e6).fit(X, y)
    assert model.n_iter_[0] <= 60 and model.dual_gap_ <= 1e-4 * model.objective_
