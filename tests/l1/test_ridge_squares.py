"""Ridges of least squares: the solution of one linear system, and fits where that does not converge."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from sparsekit import LassoOBA
from sparsekit._l1 import plan
from sparsekit._l1.solver.ridge_squares import RidgeSystem
from sparsekit._linalg.matrix import Matrix
from sparsekit._linalg.prepared import Prepared

LAYOUTS = [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix]


def data(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, p)) + 2.0) * (rng.random((n, p)) < 0.5) * (1.0 + np.arange(p) % 3)
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n) + 3.0, rng.integers(0, 3, n).astype(float)


def reference(X, y, weight, l2, intercept):
    """The solution of the normal equations."""
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    s = np.ones(len(y)) if weight is None else weight
    ridge = np.append(l2, 0.0) if intercept else l2
    return np.linalg.solve(A.T @ (s[:, None] * A) + np.diag(ridge), A.T @ (s * y))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
@pytest.mark.parametrize(
    "weighted, intercept, plain", [(True, True, False), (False, True, True), (True, False, True)]
)
@pytest.mark.parametrize("how", ["steps, then a factor", "factor", "steps"])
def test_the_system_has_the_solution(how, shape, layout, weighted, intercept, plain, monkeypatch):
    monkeypatch.setattr(Matrix, "block_entries", 100)
    if how != "steps, then a factor":
        monkeypatch.setattr(plan, "MAX_SIDE" if how == "steps" else "RIDGE_STEPS_PER_SIDE", 0)
    X, y, weight = data(*shape)
    weight = weight if weighted else None
    l2 = np.full(shape[1], 3.0) if plain else 0.5 + np.arange(shape[1]) % 4
    best, mean = reference(X, y, weight, l2, intercept), np.average(y, weights=weight) if intercept else 0.0
    rows = Prepared(layout(X), weight, intercept)
    system, start = RidgeSystem(rows, y - mean), np.zeros(shape[1])
    unit = np.abs(rows.transposed_product(rows.weighted(y - mean))).max()
    goal = 1e-9 * unit, 1e-8, np.inf, unit
    w, is_solved = system.solve(start, l2, *goal)
    assert is_solved
    assert_allclose(w, best[: shape[1]], rtol=1e-6, atol=1e-7)
    again = system.solve(w, l2, *goal)
    assert again[1]
    assert_allclose(again[0], w, rtol=1e-6, atol=1e-7)
    other = reference(X, y, weight, 3.0 * l2, intercept)
    assert_allclose(system.solve(w, 3.0 * l2, *goal)[0], other[: shape[1]], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
def test_a_fit_needs_one_step_and_says_how_good_it_is(shape, layout, dtype):
    X, y, weight = data(*shape)
    X, seen, alpha = X.astype(dtype), [], 0.1

    def callback(intermediate_result):
        seen.append(intermediate_result)

    model = LassoOBA(alpha, l1_ratio=0.0, history=True, callback=callback).fit(layout(X), y, weight)
    total = weight.sum()
    best = reference(X.astype(float), y, weight, np.full(shape[1], alpha * total), True)
    half = 0.5 * weight @ (y - X @ best[:-1] - best[-1]) ** 2 / total + 0.5 * alpha * best[:-1] @ best[:-1]
    assert_allclose(model.objective_, half, rtol=1e-5)
    assert model.dual_gap_ <= 1e-4 * half and model.objective_ - half <= model.dual_gap_ + 1e-6 * half
    assert_allclose(model.coef_, best[:-1], atol=2e-3)
    assert model.n_iter_ == 1 and len(seen) == 1 and seen[0].x.size == shape[1] + 1
    assert_allclose(model.history_["fun"][-1], seen[0].fun / total)


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
@pytest.mark.parametrize("spoil", ["nearly collinear", "far from zero", "of unlike scales"])
def test_what_single_precision_cannot_tell_apart(spoil, shape):
    X, y, _ = data(*shape)
    if spoil == "nearly collinear":
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    elif spoil == "far from zero":
        X += 1e3
    else:
        X[:, 0] *= 1e4
    model = LassoOBA(1e-6, l1_ratio=0.0, tol=1e-7).fit(X, y)
    middle = X - X.mean(axis=0)
    A = np.vstack([middle, np.sqrt(1e-6 * len(y)) * np.eye(shape[1])])
    best = np.linalg.lstsq(A, np.append(y - y.mean(), np.zeros(shape[1])), rcond=None)[0]
    value = 0.5 * np.sum((middle @ best - y + y.mean()) ** 2) / len(y) + 0.5e-6 * best @ best
    assert model.objective_ - value <= 1e-5 * value


def centred_ridge(X, y, alpha):
    """Ridge with an intercept through singular values; the solution of least norm where alpha is 0."""
    U, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = s > 1e-12 * s[0]
    s = s[kept]
    return Vt[kept].T @ (s / (s**2 + len(y) * alpha) * (U[:, kept].T @ (y - y.mean())))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("alpha", [1e-8, 1e-11, 1e-14, 2e-18, 0.0])
def test_wide_data_without_noise_and_a_ridge_near_zero(alpha, layout):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 100))
    y = X @ rng.normal(size=100) + 3.0
    model = LassoOBA(alpha, l1_ratio=0.0).fit(layout(X), y)
    assert_allclose(model.coef_, centred_ridge(X, y, alpha), atol=2e-6)
    assert model.objective_ <= 0.5 * alpha * np.sum(model.coef_**2) * (1.0 + 1e-6) + 1e-20
    assert model.dual_gap_ <= model.objective_


@pytest.mark.filterwarnings("ignore:LassoOBA reached tol")
def test_no_penalty_gives_the_solution_of_least_norm():
    """Of wide X, with rows that repeat others with other targets too."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 50))
    X[10:] = X[:10]
    y = rng.normal(size=20)
    model = LassoOBA(0.0).fit(X, y)
    assert_allclose(model.coef_, centred_ridge(X, y, 0.0), atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_an_exact_fit_is_no_reason_to_warn():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 20))
    y = X @ rng.normal(size=20)
    model = LassoOBA(0.0, fit_intercept=False).fit(X, y)
    assert 0.0 <= model.dual_gap_ <= model.objective_ < 1e-20
    empty = LassoOBA(1.0, l1_ratio=0.0).fit(0.0 * X, y)
    assert not empty.coef_.any() and empty.dual_gap_ <= 1e-12 * empty.objective_
