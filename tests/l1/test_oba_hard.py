"""Runs of the solver that once hung, crashed or lied."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import reference_oba as ref
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.model_selection import StratifiedKFold

from sparsekit import L1LogisticOBA
from sparsekit._l1.solver.globalise import UpperModel
from sparsekit._l1.solver.oba_run import Kernels
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


def test_tolerance_met_to_the_last_bit_ends_the_run():
    result = minimize_oba(LogisticLoss(np.array([[1.7563316212955213]]), [1.0]), 0.7903492295829846, tol=0.1)
    assert result.status == 0


@pytest.mark.parametrize("l1", [1e-308, 1e-300, 1e-100])
def test_a_vanishing_penalty_ends(l1):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 5)), np.where(rng.random(200) < 0.5, 1.0, -1.0)
    result = minimize_oba(LogisticLoss(X, y), l1)
    assert result.status == 0
    free = minimize_oba(LogisticLoss(X, y), 0.0)
    np.testing.assert_allclose(result.x, free.x, atol=1e-4)


def test_one_loss_minimised_by_several_threads():
    rng = np.random.default_rng(0)
    X = sp.random(2000, 3000, 0.02, format="csr", random_state=rng)
    loss = LogisticLoss(X, np.where(rng.random(2000) < 0.5, 1.0, -1.0))
    expected = minimize_oba(loss, 0.5).x
    found = [None] * 6

    def solve(i):
        found[i] = minimize_oba(loss, 0.5).x

    workers = [threading.Thread(target=solve, args=(i,), daemon=True) for i in range(6)]
    [worker.start() for worker in workers]
    [worker.join(timeout=60) for worker in workers]
    for x in found:
        np.testing.assert_array_equal(x, expected)


def test_a_start_on_the_flat_side_is_as_good_as_none():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X / X.max(axis=0), 2.0 * y - 1
    x0 = np.full(X.shape[1], -1e8)
    result = minimize_oba(LogisticLoss(X, y), 1.0, x0)
    assert result.status == 0
    assert result.fun == pytest.approx(minimize_oba(LogisticLoss(X, y), 1.0).fun, rel=1e-6)


def test_bad_arguments_are_refused():
    X = sp.random(5, 2000, 0.1, format="csr", random_state=0)
    y = np.ones(5)
    with pytest.raises(ValueError, match="x must have shape"):
        LogisticLoss(X, y).value(np.ones(3))
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        LogisticLoss(X, y, n_threads=-1)
    with pytest.raises(ValueError, match="model_cycles must be at least 1; got 0"):
        OBAOptions(model_cycles=0)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_integer_data_are_not_multiplied_as_integers(kind):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 300, (60, 7)).astype(np.int16)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    X = counts if kind == "dense" else sp.csr_matrix(counts).asformat(kind)
    found = minimize_oba(LogisticLoss(X, y), 20.0).x
    assert np.any(found)
    expected = minimize_oba(LogisticLoss(counts.astype(float), y), 20.0).x
    np.testing.assert_allclose(found, expected, atol=1e-4)


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


def test_the_upper_model_moves_its_variables_alone():
    rng = np.random.default_rng(0)
    x, g, l1, bound = rng.normal(size=12), 3.0 * rng.normal(size=12), rng.uniform(0.1, 1.0, 12), 2.5
    variables = np.array([1, 4, 5, 9])
    others = np.setdiff1d(np.arange(12), variables)

    def value(point):
        step = point - x
        return 7.0 + g @ step + 0.5 * bound * step @ step + l1 @ abs(point)

    upper = UpperModel(
        SimpleNamespace(x=x, g=g, l1=l1, problem=SimpleNamespace(f=7.0)), variables, Kernels(x)
    )
    point = upper.ista_point(bound)
    np.testing.assert_array_equal(point[others], x[others])
    np.testing.assert_allclose(upper.minimum(bound), value(point), rtol=1e-12)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(50):
            other = point.copy()
            other[variables] += scale * rng.normal(size=4)
            assert value(other) >= value(point)


def test_hard_designs_end_with_the_right_answer():
    """Constant, duplicate, zero, tiny and huge columns, a single row, nothing to fit."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((40, 4))
    X = np.column_stack([base, base[:, 0], np.ones(40), np.zeros(40), 1e-8 * base[:, 1], 1e8 * base[:, 2]])
    y = rng.choice([-1.0, 1.0], 40)
    for fit_intercept in (False, True):
        smooth = ref.logistic(X, y, fit_intercept=fit_intercept)
        loss = LogisticLoss(X, y, fit_intercept=fit_intercept)
        l1 = loss.l1_vector(1.0)
        result = minimize_oba(loss, l1, tol=1e-12, max_iter=500)
        assert np.isfinite(result.x).all() and result.status in (0, 4)
        # 1e8-fold columns make the relative measure weak, the value is what counts
        lowest = ref.objective(smooth, l1, ref.oba(smooth, l1, tol=1e-13)[0])
        assert result.fun <= lowest + 1e-7 * lowest
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
