"""Least squares of many dense rows, which are looked at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.linear_model import ElasticNet, LinearRegression

from sparsekit import LassoOBA
from sparsekit._l1 import many_rows as module
from sparsekit._l1 import oba
from sparsekit._l1.losses import LeastSquaresLoss, LogisticLoss
from sparsekit._l1.many_rows import many_rows
from sparsekit.optimize import minimize_oba


@pytest.fixture(autouse=True)
def small_data_too(monkeypatch):
    monkeypatch.setattr(module, "_LEAST", 0)
    monkeypatch.setattr(module, "_BLOCK", 40)


def data(n=130, p=12):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X[:, :3].sum(axis=1) + rng.normal(size=n) + 5.0, rng.random(n)


@pytest.mark.parametrize("kind", ["plain", "collinear", "constant", "huge and tiny"])
@pytest.mark.parametrize("weighted, intercept", [(True, True), (False, True), (True, False)])
def test_values_and_gradients_are_the_same(weighted, intercept, kind):
    X, y, weight = data()
    if kind == "collinear":
        X[:, 4] = X[:, 3] - X[:, 2]
    elif kind == "constant":
        X[:, 4], X[:, 5] = 0.0, 2.0
    elif kind == "huge and tiny":
        X[:, 4] *= 1e9
        X[:, 5] *= 1e-9
    loss = LeastSquaresLoss(X, y, weight if weighted else None, fit_intercept=intercept)
    short, squares = many_rows(loss, False)
    assert many_rows(loss, False)[0] is short
    x = np.random.default_rng(1).normal(size=loss.n_variables)
    x[4] /= np.abs(X[:, 4]).max() or 1.0
    assert_allclose(short.value(x), loss.value(x), rtol=1e-10)
    assert_allclose(short.gradient(x), loss.gradient(x), rtol=1e-6, atol=1e-9 * np.abs(X).max())
    assert_allclose(squares, loss.value(np.zeros(loss.n_variables)))


def test_where_it_is_not_taken():
    X, y, _ = data()
    assert many_rows(LogisticLoss(X, np.sign(y - 5.0)), False) is None
    assert many_rows(LeastSquaresLoss(sp.csr_matrix(X), y), False) is None
    assert many_rows(LeastSquaresLoss(X[:40], y[:40]), False) is None
    assert many_rows(LeastSquaresLoss(X.astype(np.float32), y), False) is None
    with np.errstate(over="ignore"):
        assert many_rows(LeastSquaresLoss(1e200 * X, y), False) is None
    wide = LeastSquaresLoss(np.ones((1000, 301)), np.arange(1000.0))
    assert many_rows(wide, False) is None
    assert many_rows(wide, True) is not None


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_fits_and_paths_are_those_of_all_rows(intercept, ratio, monkeypatch):
    X, y, weight = data()
    options = dict(l1_ratio=ratio, fit_intercept=intercept, penalty_weights={0: 0.0, 3: 2.0}, tol=1e-9)
    seen = []
    make = LassoOBA(0.05, callback=lambda intermediate_result: seen.append(intermediate_result), **options)
    model, path = make.fit(X, y, weight), LassoOBA.path(X, y, n_lambdas=6, sample_weight=weight, **options)
    coef, gap = model.coef_.copy(), model.dual_gap_
    assert {one.x.size for one in seen} == {12 + intercept} and len(seen) == model.n_iter_
    monkeypatch.setattr(oba, "many_rows", lambda loss, several: None)
    other, others = make.fit(X, y, weight), LassoOBA.path(X, y, n_lambdas=6, sample_weight=weight, **options)
    assert_allclose(model.objective_, other.objective_, rtol=1e-9)
    assert_allclose(coef, other.coef_, atol=1e-6)
    assert 0.0 <= gap + 1e-14 <= 1e-8 * other.objective_
    assert_allclose(path.objectives, others.objectives, rtol=1e-8)
    assert_allclose(path.dual_gaps, others.dual_gaps, atol=1e-8 * others.objectives.max())
    if ratio == 0.5 and intercept:
        peer = ElasticNet(0.05, l1_ratio=0.5, tol=1e-13).fit(X, y)
        plain = LassoOBA(0.05, l1_ratio=0.5, tol=1e-10).fit(X, y)
        assert_allclose(plain.coef_, peer.coef_, atol=1e-7)


def test_squares_that_rounding_would_hide_are_of_all_rows():
    X, y, _ = data()
    y = X[:, :3].sum(axis=1)
    y[0] += 1e-6  # the squares that are left are a part of 1e-14 of those of y
    loss = LeastSquaresLoss(X, y)
    found = minimize_oba(loss, 0.0, tol=1e-12)
    best = y - X @ LinearRegression(fit_intercept=False).fit(X, y).coef_
    assert_allclose(found.fun, 0.5 * best @ best, rtol=1e-6)
    assert_allclose(found.fun, loss.value(found.x), rtol=1e-9)
