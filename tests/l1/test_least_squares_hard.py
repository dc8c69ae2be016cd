"""Least-squares fits that are hard for rounding: nearly equal, infinite or constant columns, exact fits."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import LassoOBA
from sparsekit._l1 import plan


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("p", [5, 20, 60])
def test_few_columns_that_are_nearly_equal_at_weak_penalties(p):
    """A Gram matrix in single precision takes hundreds of iterations, and ends without a certificate."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = 1e-4 * rng.normal(size=(4 * p, p)) + rng.normal(size=(4 * p, 1))
        X *= 10.0 ** rng.uniform(-3, 3, p)
        y = X @ (rng.normal(size=p) / np.linalg.norm(X, axis=0)) + 0.1 * rng.normal(size=4 * p)
        alpha = 1e-6 * abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
        model = LassoOBA(alpha).fit(X, y)
        assert model.n_iter_ <= 20 and model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize(
    "n, p, strength, seed", [(100, 1500, 1e-3, 2), (100, 1000, 1e-4, 5), (150, 2000, 1e-3, 7)]
)
def test_fits_that_nearly_interpolate_take_few_rounds(n, p, strength, seed):
    # along combinations of columns that do not change the predictor each step on a face is cut
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    y = X[:, :: p // 20] @ rng.standard_normal(len(range(0, p, p // 20)))
    y += 0.1 * y.std() * rng.standard_normal(n)
    alpha = strength * np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / n
    model = LassoOBA(alpha, solver="gram").fit(X, y)
    assert model.solver_ == "gram" and model.n_iter_ <= 40  # 80 to 200 without the descent
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_infinite_products_of_an_unpenalised_column_are_left_to_oba():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3000)) * (rng.random((40, 3000)) < 0.2)
    X[:, 0] = 3e19 * rng.standard_normal(40)  # its square is infinite in single precision
    weights = np.append(0.0, np.ones(2999))
    model = LassoOBA(0.03, penalty_weights=weights).fit(sp.csr_array(X), rng.standard_normal(40))
    assert model.solver_ == "gram, oba"
    assert model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 3.7])
def test_columns_without_slopes_take_no_iteration(value):
    y = np.random.default_rng(0).standard_normal(20) + 1e5
    for X in (np.full((20, 3), value), sp.csr_array(np.full((20, 3), value))):
        for alpha in (1e-12, 1e-3, 1e3):
            model = LassoOBA(alpha, tol=1e-10).fit(X, y)
            assert model.n_iter_ == 0 and not model.coef_.any()


@pytest.mark.filterwarnings("error")
def test_free_columns_of_lower_rank_than_rows_have_a_certificate():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 60)), rng.standard_normal(20)
    X[:, 12:24] = X[:, :12]
    weights = np.repeat([0.0, 1.0], [24, 36])
    model = LassoOBA(0.05, penalty_weights=weights).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


def test_exact_fits_by_free_columns_end():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((30, 100)), rng.standard_normal(30)
        weights = np.repeat([0.0, 1.0], [35, 65])
        model = LassoOBA(0.01, l1_ratio=0.0, tol=1e-8, penalty_weights=weights).fit(X, y)
        assert model.n_iter_ <= 20 and model.objective_ <= 1e-10


@pytest.mark.parametrize("n, p, part", [(40, 120, 0.1), (900, 300, 0.1)])
def test_float32_columns_of_large_numbers_are_solved(n, p, part):
    """Also by more columns than have sums in double precision."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    alpha = part * np.abs(X.T @ (y - y.mean())).max() / n
    expected = LassoOBA(alpha, tol=1e-8).fit(X, y)
    model = LassoOBA(1e20 * alpha, tol=1e-8).fit((1e20 * X).astype(np.float32), y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    assert model.solver_ == expected.solver_


def test_after_the_interior_point_method_working_sets_have_their_limit(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 600)), rng.standard_normal(60)
    model = LassoOBA(0.05, l1_ratio=0.02, solver="interior").fit(X, y)
    assert model.solver_ == "interior, gram" and np.count_nonzero(model.coef_) > 200
    monkeypatch.setattr(plan, "MAX_SIDE", 100)
    limited = LassoOBA(0.05, l1_ratio=0.02, solver="interior").fit(X, y)
    assert limited.solver_ == "interior, gram, oba"
    assert limited.objective_ == pytest.approx(model.objective_, rel=1e-4)
