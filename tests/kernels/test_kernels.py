"""Kernels against plain NumPy: a wrong Hessian only slows a solver, so no solution would show it."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._cython.l1 import _glm
from sparsekit._cython.shared import _orthant
from sparsekit._cython.shared._dense import DenseOperator
from sparsekit._cython.shared._operators import GramOperator
from sparsekit._cython.shared._rows import ModelRows, RowOperator
from sparsekit._linalg.as_design import as_design


def _problem(n=300, p=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, 0.2, format="csr", random_state=rng)
    cols = np.flatnonzero(rng.random(p) < 0.6)
    return X, cols, rng.random(n), rng


def _matrix(X, cols, d, intercept, ridge):
    A = (X.toarray() if sp.issparse(X) else X)[:, cols].astype(float)
    if intercept:
        A = np.column_stack([A, np.ones(len(A))])
    H = A.T @ (d[:, None] * A)
    return H + ridge * np.diag(np.diag(H))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("wide", [False, True])
def test_row_operator_and_gram(intercept, dtype, index, wide):
    X, cols, d, rng = _problem()
    if wide:  # past 65535 columns the column numbers take 32 bits
        X = sp.hstack([X, sp.csr_matrix((X.shape[0], 70000))], format="csr")
        cols = np.concatenate([cols, np.arange(40, 70040)])
    n, p = X.shape
    position = np.full(p, -1, dtype=np.int32)
    position[cols] = np.arange(len(cols), dtype=np.int32)
    rows = ModelRows(n, X.nnz, np.array([0, 100, 170, n]), 2)
    rows.fill(X.indptr.astype(index), X.indices.astype(index), X.data.astype(dtype), position, len(cols))
    operator = RowOperator(rows, d, intercept, 0.5)
    v = rng.standard_normal(len(cols) + intercept)
    A = X[:, cols].astype(np.float64)
    if intercept:
        A = sp.hstack([A, np.ones((n, 1))], format="csr")
    diagonal = np.asarray(A.multiply(A).T @ d).ravel()
    expected = A.T @ (d * (A @ v)) + 0.5 * diagonal * v
    np.testing.assert_allclose(operator.matvec(v), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(operator.diag, diagonal, rtol=1e-6, atol=1e-6)
    if not wide:
        for parts in (1, 3):
            work = np.empty((parts, len(v), len(v)))
            rows.gram(d, intercept, work)
            np.testing.assert_allclose(work[0], _matrix(X, cols, d, intercept, 0.0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_operators(intercept, dtype, order):
    X, cols, d, rng = _problem()
    X = np.asarray(X.toarray(), dtype=dtype, order=order)
    v = rng.standard_normal(len(cols) + intercept)
    expected = _matrix(X, cols, d, intercept, 0.25)
    operator, _ = as_design(X).model(cols, d, intercept, 0.25)
    assert isinstance(operator, GramOperator)
    np.testing.assert_allclose(operator.matvec(v), expected @ v, rtol=1e-5, atol=1e-5)
    part = np.ascontiguousarray(X[:, cols], dtype=np.float32)
    diagonal = np.diag(_matrix(X, cols, d, intercept, 0.0)).copy()
    operator = DenseOperator(part, d, diagonal, intercept, 0.25, 2)
    np.testing.assert_allclose(operator.matvec(1e-30 * v), 1e-30 * (expected @ v), rtol=1e-4, atol=1e-34)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_selection(kind):
    X, cols, _, rng = _problem()
    w = rng.standard_normal(len(cols))
    found = as_design(X.asformat(kind)).select(cols)
    np.testing.assert_allclose(found.matvec(w), X[:, cols] @ w, rtol=1e-12, atol=1e-12)
    u = rng.standard_normal(X.shape[0])
    np.testing.assert_allclose(found.rmatvec(u), X[:, cols].T @ u, rtol=1e-12, atol=1e-12)


def test_upper_model_at_the_ista_point():
    rng = np.random.default_rng(0)
    x, g, l1 = rng.standard_normal((3, 50))
    x[::3], l1 = 0.0, np.abs(l1)
    for L in (0.1, 1.0, 30.0):
        point = x - g / L
        point = np.sign(point) * np.maximum(np.abs(point) - l1 / L, 0)
        step = point - x
        expected = g @ step + L / 2 * step @ step + l1 @ np.abs(point)
        assert _orthant.ista_bound(x, g, l1, L) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_logistic_against_mpmath(y):
    mpmath.mp.dps = 60
    for z in (-800.0, -40.0, -3.0, -0.9, -1e-9, 0.0, 1e-12, 0.3, 2.0, 36.0, 700.0):
        t = mpmath.mpf(y) * mpmath.mpf(z)
        miss = 1 / (1 + mpmath.exp(t))
        # 19 entries, so that SIMD lanes and the remainder are both used
        zs, ys, u, d = np.full(19, z), np.full(19, y), np.empty(19), np.empty(19)
        value = _glm.logistic_derivatives(zs, ys, np.empty(0), u, d)
        assert value == pytest.approx(19 * float(mpmath.log1p(mpmath.exp(-t))), rel=1e-14, abs=1e-300)
        assert value == pytest.approx(_glm.logistic_value(zs, ys, np.empty(0)), rel=1e-14, abs=1e-300)
        np.testing.assert_allclose(u, -y * float(miss), rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(d, float(miss * (1 - miss)), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3000, 200), (200, 3000), (7, 3), (1, 1), (40, 1)])
def test_products_of_dense_rows(shape, order, dtype):
    """Whatever part of the coefficients is nonzero, and with one and two threads in the same bits."""
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal(shape), dtype=dtype, order=order)
    designs = [as_design(X, n_threads) for n_threads in (1, 2)]
    u = rng.standard_normal(shape[0])
    np.testing.assert_allclose(designs[0].rmatvec(u), X.T.astype(float) @ u, atol=1e-10)
    np.testing.assert_array_equal(designs[0].rmatvec(u), designs[1].rmatvec(u))
    for part in (0.0, 0.005, 0.1, 0.5, 1.0):
        w = np.where(rng.random(shape[1]) < part, rng.standard_normal(shape[1]), 0.0)
        out = np.full(shape[0], np.nan)
        assert designs[0].matvec(w, out) is out
        np.testing.assert_allclose(out, X.astype(float) @ w, atol=1e-10)
        np.testing.assert_array_equal(out, designs[1].matvec(w))
