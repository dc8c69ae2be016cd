"""minimize_oba and its estimators on a GPU: the same answers as in main memory, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, ProbitLoss, minimize_oba

LOSSES = [LogisticLoss, LeastSquaresLoss, ProbitLoss]


def _data(n, p, layout, dtype=np.float64, seed=0, regression=False):
    rng = np.random.default_rng(seed)
    if layout in ("C", "F"):
        X = np.asarray(rng.standard_normal((n, p)), dtype=dtype, order=layout)
    else:
        X = sp.random(n, p, 0.1, format=layout, random_state=rng).astype(dtype)
    w = np.where(rng.random(p) < 10 / p, 2 * rng.standard_normal(p), 0.0)
    z = X @ w + 0.3 * rng.standard_normal(n)
    return X, z if regression else np.where(z > 0, 1.0, -1.0)


def _to_device(cupy, X):
    if not sp.issparse(X):
        return cupy.asarray(X)
    import cupyx.scipy.sparse

    return getattr(cupyx.scipy.sparse, f"{X.format}_matrix")(X)


def _both(cupy, cls, X, y, weight=None, intercept=True, share=0.05, l1=None, tol=1e-8, **options):
    """Results in main memory and on the device for a penalty of ``share`` of the largest useful one."""
    loss = cls(X, y, weight, fit_intercept=intercept)
    if l1 is None:
        l1 = loss.l1_vector(share * np.abs(loss.gradient(np.zeros(loss.n_variables))[: X.shape[1]]).max())
    here = minimize_oba(loss, l1, tol=tol, **options)
    weight = None if weight is None else cupy.asarray(weight)
    loss = cls(_to_device(cupy, X), cupy.asarray(y), weight, fit_intercept=intercept)
    there = minimize_oba(loss, cupy.asarray(l1), tol=tol, **options)
    return here, there


def _same(cupy, here, there, tol=1e-8, gap=None):
    assert there.success
    assert isinstance(there.x, cupy.ndarray)
    assert isinstance(there.fun, float)
    assert isinstance(there.grad, cupy.ndarray)
    assert there.optimality <= tol
    assert there.fun == pytest.approx(here.fun, rel=1e-8)
    np.testing.assert_allclose(there.x.get(), here.x, atol=1e-4 * np.abs(here.x).max())
    if not np.isnan(here.dual_gap):
        assert -1e-10 * here.fun <= there.dual_gap <= max(1e-5 * here.fun, 10 * here.dual_gap)


@pytest.mark.parametrize("cls", LOSSES)
@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("shape", [(300, 60), (120, 700)])
def test_solutions_agree_with_main_memory(cupy, cls, layout, shape):
    X, y = _data(*shape, layout, regression=cls is LeastSquaresLoss)
    here, there = _both(cupy, cls, X, y)
    _same(cupy, here, there)


@pytest.mark.parametrize("layout", ["F", "csc", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_types_weights(cupy, layout, dtype):
    X, y = _data(150, 90, layout, dtype)
    weight = np.random.default_rng(3).random(150)
    weight[:5] = 0.0
    # dense products of float32 data are float32 in main memory and float64 on the device
    exact = LogisticLoss(X.astype(np.float64), y, weight)
    l1 = 0.05 * np.abs(exact.gradient(np.zeros(90))).max() * np.ones(90)
    here, _ = _both(cupy, LogisticLoss, X.astype(np.float64), y, weight, intercept=False, l1=l1)
    _, there = _both(cupy, LogisticLoss, X, y, weight, intercept=False, l1=l1)
    _same(cupy, here, there)
