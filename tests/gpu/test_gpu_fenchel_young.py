"""Sparsemax and softmax regression on a GPU: kernels, losses, fits, and what estimators refuse."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp, softmax

from sparsekit._cython.shared import _curvature as host_curvature
from sparsekit._cython.shared import _multinomial as host_multinomial
from sparsekit.gpu.shared import _curvature, _multinomial

pytestmark = pytest.mark.thorough

# of a product: a lane a column, lanes that share a column, several tiles
WIDTHS = [1, 3, 40]


def uneven(n, p, seed=0, dtype=np.float64):
    """Sparse rows: empty ones in a row, nearly full ones (the first too), short ones."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.05)
    A[[0, n // 3]] = rng.standard_normal((2, p))
    A[n // 2 : n // 2 + n // 4] = 0.0
    A[:, p // 2 : 2 * p // 3] = 0.0
    A[:, 1] = 1.0
    return sp.csr_matrix(A.astype(dtype))


def parts_of(A, cupy, index=np.int32):
    return (
        cupy.asarray(A.indptr.astype(np.int64)),
        cupy.asarray(A.indices.astype(index)),
        cupy.asarray(A.data),
    )


@pytest.mark.parametrize("K", WIDTHS)
def test_products_of_uneven_rows(cupy, K):
    A = uneven(90, 280)  # a long row spans more pieces than a block has warps
    rng = np.random.default_rng(K)
    W, U = rng.standard_normal((280, K)), rng.standard_normal((90, K))
    Z, G = cupy.empty((90, K)), cupy.empty((280, K))
    _multinomial.matmat(*parts_of(A, cupy), cupy.asarray(W), Z)
    np.testing.assert_allclose(Z.get(), A @ W, rtol=1e-12, atol=1e-12)
    _multinomial.matmat(*parts_of(A.T.tocsr(), cupy), cupy.asarray(U), G)
    np.testing.assert_allclose(G.get(), A.T @ U, rtol=1e-12, atol=1e-12)
    wide = parts_of(A, cupy, np.int64)  # indices of 64 bits, and data of 32 in sums of 64
    _multinomial.matmat(*wide[:2], wide[2].astype(np.float32), cupy.asarray(W), Z)
    np.testing.assert_allclose(Z.get(), A.astype(np.float32) @ W, rtol=1e-12, atol=1e-12)
    single = A.astype(np.float32)
    out = cupy.empty((93, K), dtype=np.float32)
    out[90:] = 7.0
    _curvature.product32(*parts_of(single, cupy), cupy.asarray(W.astype(np.float32)), out)
    np.testing.assert_allclose(out.get()[:90], A @ W, rtol=1e-4, atol=1e-4)
    assert bool((out[90:] == 7.0).all())


@pytest.fixture(params=[1, 5, 33])
def scores(request):
    """Rows of scores, some of which are saturated, tied or huge."""
    K = request.param
    rng = np.random.default_rng(K)
    Z = 3.0 * rng.standard_normal((21, K))
    Z[3] = 0.0
    Z[4, K - 1] += 60.0
    Z[5] *= 1e100
    Z[6, : (K + 1) // 2] = 4.0
    codes = rng.integers(K, size=21)
    codes[4] = codes[3] = K - 1
    s = rng.random(21) / 21
    s[8] = 0.0
    return Z, codes.astype(np.int32), s, rng


def test_loss_of_classes(cupy, scores):
    Z, codes, s, _ = scores
    for weight in (s, np.empty(0)):
        U, expected = cupy.empty(Z.shape), np.empty(Z.shape)
        value = _multinomial.value_and_derivative(*map(cupy.asarray, (Z, codes, weight)), U)
        reference = host_multinomial.value_and_derivative(Z, codes, weight, expected, 1)
        assert isinstance(value, float) and value == pytest.approx(reference, rel=1e-13)
        # relative: what is left of a saturated row has all its digits
        np.testing.assert_allclose(U.get(), expected, rtol=1e-12, atol=1e-300)
    rows = np.delete(np.arange(21), 5)
    plain = s[rows] @ (logsumexp(Z[rows], axis=1) - Z[rows, codes[rows]])
    trusted = _multinomial.value_and_derivative(
        *map(cupy.asarray, (Z[rows], codes[rows], s[rows])), cupy.empty((20, Z.shape[1]))
    )
    assert trusted == pytest.approx(plain, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("raised", [False, True])
def test_probabilities_without_the_largest(cupy, scores, raised):
    Z, _, _, rng = scores
    radius = rng.random(21) * 4.0 if raised else np.empty(0)
    found = cupy.empty(Z.shape), cupy.empty(21), cupy.empty(21, dtype=np.int32)
    _multinomial.model_probabilities(cupy.asarray(Z), cupy.asarray(radius), *found)
    expected = np.empty(Z.shape), np.empty(21), np.empty(21, dtype=np.int32)
    host_multinomial.model_probabilities(Z, radius, *expected, 1)
    np.testing.assert_array_equal(found[2].get(), expected[2])
    for mine, theirs in zip(found[:2], expected[:2]):
        np.testing.assert_allclose(mine.get(), theirs, rtol=1e-12, atol=1e-300)
    if not raised:
        P = found[0].get()
        P[np.arange(21), found[2].get()] = 1.0 - found[1].get()
        np.testing.assert_allclose(P, softmax(Z, axis=1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n", [1, 300])
def test_passes_of_conjugate_gradients(cupy, n):
    rng = np.random.default_rng(n)
    here = [rng.standard_normal(n).astype(np.float32) for _ in range(4)]
    inverse = rng.random(n).astype(np.float32)
    there = [cupy.asarray(x) for x in here]
    weights = cupy.asarray(inverse)
    (p, Hp, d, r), (P, HP, D, R) = here, there
    before = _curvature.dot(R, P)
    assert float(before) == pytest.approx(np.dot(r.astype(float), p), rel=1e-5, abs=1e-4)
    host = [host_curvature.cg_curve(p, Hp, 0.3, n // 2, 1)]
    curve = _curvature.cg_curve(P, HP, 0.3, n // 2)
    np.testing.assert_allclose(HP.get(), Hp, rtol=1e-6, atol=1e-7)
    host.append(host_curvature.cg_step(0.7, p, Hp, inverse, d, r, 1))
    step = _curvature.cg_step(0.7, P, HP, weights, D, R)
    assert float(curve) == pytest.approx(host[0], rel=1e-5, abs=1e-3)
    assert float(step) == pytest.approx(host[1], rel=1e-5)
    host_curvature.cg_turn(-0.4, r, inverse, p, 1)
    _curvature.cg_turn(-0.4, R, weights, P)
    for mine, theirs in zip((P, D, R), (p, d, r)):
        np.testing.assert_allclose(mine.get(), theirs, rtol=1e-5, atol=1e-6)
    kept = D.get()  # where the curvature is not positive nothing moves
    assert np.isnan(float(_curvature.cg_step(-1.0, P, HP, weights, D, R)))
    np.testing.assert_array_equal(D.get(), kept)
    wide = cupy.asarray(p.astype(float))
    assert float(_curvature.dot(wide, wide)) == pytest.approx(np.sum(p.astype(float) ** 2), rel=1e-12)
