"""Sums of squares and Gram matrices of dense X over several parts and blocks of rows, against NumPy."""

import numpy as np
import pytest

from sparsekit._cython.shared import _dense


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((53, 9)), rng.uniform(0.1, 1.0, 53), rng


@pytest.mark.parametrize("parts", [1, 3, 60])
def test_squares(data, parts):
    A, d, _ = data
    out = np.empty(9)
    _dense.dense_squares(A.astype(np.float32), d, out, parts, 2)
    np.testing.assert_allclose(out, d @ A**2, rtol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("sums", [np.float32, np.float64])
@pytest.mark.parametrize("parts, height", [(1, 53), (1, 5), (4, 4), (7, 100)])
def test_gram(data, parts, height, sums, order, intercept):
    A, d, _ = data
    A, cols = np.asarray(A, order=order), np.array([7, 0, 3], dtype=np.int32)
    B = np.column_stack([A[:, cols], np.ones(53)]) if intercept else A[:, cols]
    size, results = B.shape[1], []
    for n_threads in (1, 2):
        G, acc = np.full((parts, size, size), np.nan), np.full((parts, size, size), np.nan, dtype=sums)
        block = np.empty((parts, height, size), dtype=sums)
        _dense.dense_gram(A, cols, d, G, intercept, block, acc, n_threads)
        np.testing.assert_allclose(G[0], B.T @ (B * d[:, None]), atol=1e-12 if sums == np.float64 else 1e-4)
        results.append(G[0])
    assert np.array_equal(*results)
