"""Single-precision products with the curvature of class scores, and the vector passes around them."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from sparsekit._cython.shared import _curvature
from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss


@pytest.mark.parametrize("K", [2, 8, 12, 20, 30, 32, 33, 50, 70])  # one to nine blocks of eight classes
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_products_for_any_number_of_classes(K, intercept, make):
    rng = np.random.default_rng(K)
    X = rng.standard_normal((150, 11)) * (rng.random((150, 11)) < 0.5)
    w = rng.random(150)
    loss = FenchelYoungLoss(
        "softmax", make(X), rng.integers(K, size=150), K, w, fit_intercept=intercept, n_threads=2
    )
    T = rng.standard_normal(loss.shape)
    operator = loss.operator(loss.scores(T))
    V = np.zeros(operator.shape, dtype=np.float32)
    V[:, :K] = rng.standard_normal(loss.shape)
    A = np.column_stack([X, np.ones(150)]) if intercept else X
    P, S = softmax(A @ T, axis=1), A @ V[:, :K].astype(float)
    S = P * (S - np.sum(P * S, axis=1, keepdims=True)) * (w / w.sum())[:, None]
    found = operator.multiply(V, np.full_like(V, np.nan))
    np.testing.assert_allclose(found[:, :K], A.T @ S, atol=2e-6 * np.abs(A.T @ S).max())
    assert not found[:, K:].any()
    diagonal = (A**2).T @ (P * (1 - P) * (w / w.sum())[:, None])
    np.testing.assert_allclose(operator.diag.reshape(loss.shape), diagonal, rtol=2e-5, atol=1e-8)


@pytest.mark.parametrize("n", [1, 100, 16384, 40001])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_passes_of_conjugate_gradients(n, n_threads):
    rng = np.random.default_rng(n)
    p, Hp, d, r = (rng.standard_normal(n).astype(np.float32) for _ in range(4))
    inverse = rng.random(n).astype(np.float32)
    penalised = n // 2
    ridged = Hp + np.where(np.arange(n) < penalised, np.float32(0.3) * p, 0)
    curve = _curvature.cg_curve(p, Hp, 0.3, penalised, n_threads)
    np.testing.assert_allclose(Hp, ridged, rtol=1e-6, atol=1e-6)
    assert curve == pytest.approx(np.dot(p.astype(float), Hp), rel=1e-4, abs=1e-3)
    d_new, r_new = d + 0.7 * p, r - 0.7 * Hp
    size = _curvature.cg_step(0.7, p, Hp, inverse, d, r, n_threads)
    np.testing.assert_allclose(d, d_new, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(r, r_new, rtol=1e-5, atol=1e-6)
    assert size == pytest.approx(np.sum(r.astype(float) ** 2 * inverse), rel=1e-5)
    p_new = 0.4 * p + r * inverse
    _curvature.cg_turn(0.4, r, inverse, p, n_threads)
    np.testing.assert_allclose(p, p_new, rtol=1e-5, atol=1e-6)
    assert _curvature.dot(p, d, n_threads) == pytest.approx(np.dot(p.astype(float), d), rel=1e-4, abs=1e-3)
    wide = p.astype(float)
    assert _curvature.dot(wide, wide, n_threads) == pytest.approx(np.dot(wide, wide), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("p", [0, 1, 7])
def test_pair_gram(dtype, intercept, p):
    rng = np.random.default_rng(p)
    n, K, q = 700, 4, p + intercept  # more rows than a block has
    X, weight = rng.standard_normal((n, p)).astype(dtype), rng.random(n)
    U = rng.random((K, n)) * (rng.random((K, n)) < 0.6)
    H = np.full((K * q, K * q), np.nan)
    _curvature.pair_gram(X, U, weight, intercept, H)
    A = np.column_stack([X, np.ones(n)])[:, :q].astype(float)
    J = -np.einsum("ki,li,i->ikl", U, U, weight)
    # a class's own block makes the sums over the classes zero, whatever the sum of u is
    J[:, range(K), range(K)] -= J.sum(axis=2)
    expected = np.einsum("ikl,ia,ib->kalb", J, A, A).reshape(K * q, K * q)
    np.testing.assert_allclose(np.tril(H), np.tril(expected), rtol=1e-11, atol=1e-11)
