"""The Hessian of least squares on dense rows, which is made once."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from sparsekit import LassoOBA
from sparsekit._l1 import constant_hessian, oba
from sparsekit._l1.constant_hessian import ConstantHessian
from sparsekit._l1.cv_problems import SquaresProblem
from sparsekit._l1.losses import LeastSquaresLoss


def data(n=90, p=12, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)).astype(dtype)
    return X, X[:, :3].sum(axis=1) + rng.normal(size=n), rng.random(n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_it_is_the_hessian(weighted, dtype, intercept, monkeypatch):
    monkeypatch.setattr(constant_hessian, "_BLOCK", 40)
    X, y, weight = data(dtype=dtype)
    loss = LeastSquaresLoss(X, y, weight if weighted else None, fit_intercept=intercept)
    A = np.column_stack([X, np.ones(90)])[:, : 12 + intercept].astype(np.float64)
    H = A.T @ (A * weight[:, None]) if weighted else A.T @ A
    chosen = np.array([0, 3, 4, 11 + intercept])
    found = loss.constant_hessian.on(chosen, rough=False)
    assert found is None  # a small one alone costs less
    while found is None:
        found = loss.constant_hessian.on(chosen, rough=True)
    assert_allclose(found, H[np.ix_(chosen, chosen)], rtol=1e-12)
    assert_allclose(loss.constant_hessian.matrix, H, rtol=1e-12, atol=1e-12)


def test_only_dense_and_narrow_losses_have_one():
    X, y, _ = data(20, 601)
    assert ConstantHessian.of(LeastSquaresLoss(X, y)) is None
    assert ConstantHessian.of(LeastSquaresLoss(sp.csr_matrix(X[:, :9]), y)) is None
    assert ConstantHessian.of(LeastSquaresLoss(X[:, :600], y)) is not None


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
def test_paths_make_it_once_and_find_the_same(ratio, monkeypatch):
    X, y, weight = data()
    monkeypatch.setattr(oba, "many_rows", lambda loss: None)  # which has a Hessian of its own
    monkeypatch.setattr(SquaresProblem, "descend", lambda *_, **options: None)  # which has sums
    made = []
    plain = ConstantHessian._make
    monkeypatch.setattr(
        ConstantHessian, "_make", lambda self, size: (made.append(size), plain(self, size))[1]
    )
    path = LassoOBA.path(X, y, n_lambdas=8, l1_ratio=ratio, tol=1e-9, sample_weight=weight)
    assert made == [13]
    monkeypatch.setattr(ConstantHessian, "of", classmethod(lambda cls, loss: None))
    other = LassoOBA.path(X, y, n_lambdas=8, l1_ratio=ratio, tol=1e-9, sample_weight=weight)
    assert made == [13]
    assert_allclose(path.objectives, other.objectives, rtol=1e-9)
    assert_allclose(path.coefs, other.coefs, atol=1e-6)
