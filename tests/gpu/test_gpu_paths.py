"""Regularisation paths on a GPU: those of main memory, where their arrays are."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

from sparsekit import l1_logistic_path, lasso_path

pytestmark = pytest.mark.thorough

TIGHT = dict(tol=1e-10, n_lambdas=6, eps=0.05)


def _data(layout, classes=0, p=14, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((70, p)) + 0.3
    if layout == "csr":
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    z = X @ (2.0 * rng.standard_normal((p, max(classes, 1)))) + rng.standard_normal((70, max(classes, 1)))
    y = 3 * np.argmax(z, axis=1) if classes > 2 else (z[:, 0] > 0).astype(int) if classes else z[:, 0] + 5.0
    return X, y, rng.uniform(0.1, 2.0, 70)


def _same(here, there, rtol=1e-8):
    for name in ("lambdas", "lambda_max", "objectives"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=rtol)
    dense = [path.coefs.toarray() if sp.issparse(path.coefs) else path.coefs for path in (here, there)]
    assert type(there.coefs) is type(here.coefs) and there.coefs.dtype == here.coefs.dtype
    np.testing.assert_allclose(dense[1], dense[0], atol=1e-5 * np.abs(dense[0]).max())
    np.testing.assert_allclose(there.intercepts, here.intercepts, atol=1e-5)
    np.testing.assert_array_equal(there.statuses, 0)
    assert (there.dual_gaps <= 1e-8 * there.objectives).all() and (there.dual_gaps >= -1e-12).all()
    assert there.n_nonzero[0] <= here.n_nonzero[0] + 1 and there.n_nonzero[-1] > 2


@pytest.mark.parametrize(
    "layout, options",
    [("C", {}), ("csr", {"l1_ratio": 0.5}), ("C", {"positive": True}), ("csr", {"fit_intercept": False})],
)
def test_paths_of_the_lasso(cupy, layout, options):
    X, y, s = _data(layout)
    v, offset = np.where(np.arange(14) % 5 == 0, 0.0, 1.0 + np.arange(14) % 3), np.sin(np.arange(70.0))
    for given in ({}, {"sample_weight": s, "penalty_weights": v, "offset": offset}):
        there = {name: cupy.asarray(values) for name, values in given.items()}
        here = lasso_path(X, y, **given, **options, **TIGHT)
        _same(here, lasso_path(to_device(cupy, X), cupy.asarray(y), **there, **options, **TIGHT))


@pytest.mark.parametrize(
    "layout, classes, ratio", [("C", 2, 1.0), ("csr", 3, 1.0), ("csr", 2, 0.5), ("C", 3, 0.5)]
)
def test_paths_of_logistic_regression(cupy, layout, classes, ratio):
    X, y, s = _data(layout, classes)
    offset = 0.2 * np.sin(np.arange(70.0 * max(classes - 1, 1) if classes == 2 else 70.0 * classes))
    offset = offset if classes == 2 else offset.reshape(70, classes)
    for given in ({}, {"sample_weight": s, "penalty_weights": {3: 0.0}, "offset": offset}):
        there = {k: v if isinstance(v, dict) else cupy.asarray(v) for k, v in given.items()}
        options = dict(l1_ratio=ratio, class_weight="balanced", coefs="sparse", **TIGHT)
        here = l1_logistic_path(X, y, **given, **options)
        path = l1_logistic_path(to_device(cupy, X), cupy.asarray(y), **there, **options)
        _same(here, path)
        np.testing.assert_array_equal(path.classes, here.classes)
