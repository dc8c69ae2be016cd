"""Sparsemax of arrays against sorting, and the answers that its docstrings define."""

import numpy as np
import pytest
import reference_sparsemax as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sparsekit as sk

# around the width of a row that is turned, of a block and of several
SIZES = [1, 2, 3, 10, 31, 32, 33, 64, 127, 128, 129, 200, 1000, 5003]
TOL = {np.float32: 2e-6, np.float64: 1e-14}


def scores(n, K, scale, dtype, seed=0):
    return (scale * np.random.default_rng(seed).standard_normal((n, K))).astype(dtype)


@pytest.mark.parametrize("K", SIZES)
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 0.1, 1.0, 10.0, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_sorting(K, scale, dtype):
    Z = scores(37, K, scale, dtype)
    P = sk.sparsemax(Z, n_jobs=2)
    # sorting loses digits of large scores; taken relative to the maximum it does not
    high = Z.max(axis=1, keepdims=True)
    expected, tau, size = reference.rows((Z - high).astype(np.float64))
    assert P.dtype == dtype and P.shape == Z.shape
    np.testing.assert_allclose(P, expected, rtol=0, atol=TOL[dtype])
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=max(K, 16) * np.finfo(dtype).eps)
    np.testing.assert_allclose(
        sk.sparsemax_threshold(Z), high[:, 0] + tau, rtol=4 * np.finfo(dtype).eps, atol=TOL[dtype]
    )
    if scale >= 0.1:  # else members at the threshold are a matter of rounding
        np.testing.assert_array_equal(sk.sparsemax_support_size(Z), size)
        np.testing.assert_array_equal(np.count_nonzero(P, axis=1), size)


@pytest.mark.parametrize("K", [5, 32, 33, 400])
def test_ties_share_equally(K):
    for value in (0.0, -3.5, 1e9, 1e-30):
        np.testing.assert_allclose(sk.sparsemax(np.full((2, K), value)), 1.0 / K, rtol=1e-13)
    Z = np.zeros((3, K))
    Z[:, [1, 4]] = 7.0
    P = sk.sparsemax(Z)
    np.testing.assert_array_equal(P[:, [1, 4]], 0.5)
    assert np.count_nonzero(P) == 6
    # exactly one apart: the second one's share is zero, and it is no member
    Z = np.zeros((1, K))
    Z[0, 3] = 1.0
    assert sk.sparsemax_support_size(Z)[0] == 1 and sk.sparsemax(Z)[0, 3] == 1.0


@pytest.mark.parametrize("K", [4, 32, 33, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inplace", [False, True])
def test_masks_infinities_and_nan(K, dtype, inplace):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((40, K)).astype(dtype)
    masked = rng.random((40, K)) < 0.5
    masked[:, 0] = False
    Z[masked] = -np.inf
    Z[7] = -np.inf
    Z[8, [1, 3]] = np.inf
    Z[9, 2] = np.nan
    Z[10, [1, 2]] = np.inf, np.nan
    Z[11] = np.inf
    Z[12, 0] = np.nan
    expected = np.zeros((40, K))
    for i in set(range(40)) - {7, 8, 9, 10, 11, 12}:
        open_ = ~masked[i]
        expected[i, open_] = reference.sparsemax(Z[i, open_])[0]
    expected[8, [1, 3]] = 0.5
    expected[[9, 10, 12]] = np.nan
    expected[11] = 1.0 / K
    tau, size = sk.sparsemax_threshold(Z), sk.sparsemax_support_size(Z)
    P = sk.sparsemax(Z, out=Z if inplace else None)
    np.testing.assert_allclose(P, expected, atol=TOL[dtype])
    np.testing.assert_array_equal(tau[7:13], [-np.inf, np.inf, np.nan, np.nan, np.inf, np.nan])
    np.testing.assert_array_equal(size[7:13], [0, 2, 0, 0, K, 0])


@pytest.mark.parametrize("K", [3, 30, 34, 260])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jacobian_vector_product(K, dtype):
    rng = np.random.default_rng(2)
    Z = scores(21, K, 0.7, dtype)
    V = rng.standard_normal((21, K)).astype(dtype)
    P = sk.sparsemax(Z)
    expected = np.array([reference.jacobian(p) @ v for p, v in zip(P, V)])
    np.testing.assert_allclose(sk.sparsemax_jvp(P, V, n_jobs=2), expected, atol=10 * TOL[dtype])
    # outside of the support nothing is read
    V[P == 0] = np.nan
    np.testing.assert_allclose(sk.sparsemax_jvp(P, V), expected, atol=10 * TOL[dtype])
    assert sk.sparsemax_jvp(P, V, out=V) is V
    np.testing.assert_allclose(V, expected, atol=10 * TOL[dtype])
    np.testing.assert_array_equal(sk.sparsemax_jvp(np.zeros((2, K)), np.ones((2, K))), 0.0)


@pytest.mark.parametrize("K", [2, 9, 32, 33, 150])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loss_and_gradient(K, scale, dtype):
    rng = np.random.default_rng(4)
    Z = scores(45, K, scale, dtype)
    Q = rng.random((45, K)) * (rng.random((45, K)) < 0.3)
    Q[:, 0] += 0.1
    Q = (Q / Q.sum(axis=1, keepdims=True)).astype(dtype)
    expected = np.array([reference.loss(z, q) for z, q in zip(Z, Q)])
    tol = 2e-5 * max(scale, 1) ** 2 if dtype == np.float32 else 1e-12
    loss, slope = sk.sparsemax_loss_and_gradient(Z, Q, n_jobs=2)
    assert loss.dtype == slope.dtype == dtype
    np.testing.assert_allclose(loss, expected, rtol=tol, atol=tol)
    np.testing.assert_allclose(slope, sk.sparsemax(Z) - Q, atol=TOL[dtype])
    np.testing.assert_allclose(sk.sparsemax_loss(Z, Q), loss, rtol=1e-6 if dtype == np.float32 else 1e-14)
    codes = rng.integers(K, size=45)
    hot = np.eye(K, dtype=dtype)[codes]
    dense = sk.sparsemax_loss_and_gradient(Z, hot)
    for a, b in zip(sk.sparsemax_loss_and_gradient(Z, codes), dense):
        np.testing.assert_allclose(a, b, rtol=1e-6 if dtype == np.float32 else 1e-14, atol=1e-30)
    np.testing.assert_array_equal(sk.sparsemax_loss(Z, codes.astype(np.int32)), sk.sparsemax_loss(Z, codes))


def test_loss_is_zero_exactly_at_its_minimum_and_never_negative():
    Z = scores(50, 60, 3.0, np.float64)
    P = sk.sparsemax(Z)
    assert sk.sparsemax_loss(Z, P).max() <= 1e-30
    one = sk.sparsemax_loss(Z * 1e3 + 1e9, Z.argmax(axis=1))
    assert (one >= 0).all() and np.isfinite(one).all()
    # far scores: the digits of the distance survive an offset
    np.testing.assert_allclose(sk.sparsemax_loss([[1e9 + 3.0, 1e9]], [1]), 2.5 + 0.0 + 0.5, rtol=1e-12)


@pytest.mark.parametrize("K", [6, 50])
def test_loss_with_masks(K):
    Z = scores(4, K, 1.0, np.float64)
    Z[:, K // 2 :] = -np.inf
    Z[3] = np.nan
    loss, slope = sk.sparsemax_loss_and_gradient(Z, [0, 1, K - 1, 0])
    plain = sk.sparsemax_loss(Z[:, : K // 2], [0, 1, 0, 0])
    np.testing.assert_allclose(loss[:2], plain[:2], rtol=1e-14)
    assert loss[2] == np.inf and np.isnan(loss[3]) and np.isnan(slope[3]).all()
    np.testing.assert_allclose(slope[2], sk.sparsemax(Z[2]) - np.eye(K)[K - 1])
    top = np.zeros((1, K))
    top[0, [1, 2]] = np.inf
    half = np.eye(K)[[1]] / 2 + np.eye(K)[[2]] / 2
    assert sk.sparsemax_loss(top, half) == 0.0
    assert sk.sparsemax_loss(top, [1]) == pytest.approx(0.25)
    assert sk.sparsemax_loss(top, [0]) == np.inf


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(axis):
    Z = scores(6 * 35, 40, 1.0, np.float64).reshape(6, 35, 40)
    turned = np.moveaxis(Z, axis, -1).copy()
    P = sk.sparsemax(Z, axis)
    expected = np.moveaxis(sk.sparsemax(turned), -1, axis)
    np.testing.assert_array_equal(P, expected)
    np.testing.assert_array_equal(sk.sparsemax_threshold(Z, axis), sk.sparsemax_threshold(turned))
    np.testing.assert_array_equal(sk.sparsemax_support_size(Z, axis), (P > 0).sum(axis=axis))
    V = np.random.default_rng(0).standard_normal(Z.shape)
    back = sk.sparsemax_jvp(turned > 0, np.moveaxis(V, axis, -1)) * 0 + sk.sparsemax_jvp(
        sk.sparsemax(turned), np.moveaxis(V, axis, -1)
    )
    np.testing.assert_array_equal(sk.sparsemax_jvp(P, V, axis), np.moveaxis(back, -1, axis))
    codes = np.random.default_rng(1).integers(turned.shape[-1], size=turned.shape[:-1])
    loss, slope = sk.sparsemax_loss_and_gradient(Z, codes, axis)
    np.testing.assert_array_equal(loss, sk.sparsemax_loss(turned, codes))
    assert loss.shape == turned.shape[:-1] and slope.shape == Z.shape
    out = np.empty_like(Z)
    assert sk.sparsemax(Z, axis, out=out) is out
    np.testing.assert_array_equal(out, P)


@pytest.mark.parametrize("K", [20, 140])
def test_strided_input_and_output(K):
    big = scores(80, 2 * K, 1.0, np.float32)
    turned = np.asfortranarray(big)[:, :K]
    views = [big[::2, :K], big[::-1, :K], big[:, ::2], big[:, ::-2], turned, big[3:4, :K], big[:1, ::2]]
    for view in views:
        P = sk.sparsemax(view)
        np.testing.assert_array_equal(P, sk.sparsemax(view.copy(order="C")))
        out = np.zeros((2 * len(view), 2 * K), dtype=np.float32)[::2, ::2]
        assert sk.sparsemax(view, out=out) is out
        np.testing.assert_array_equal(out, P)
    wide = np.broadcast_to(big[0, :K], (33, K))
    np.testing.assert_array_equal(sk.sparsemax(wide), np.tile(sk.sparsemax(big[0, :K]), (33, 1)))
    # a result that overlaps its input
    line = scores(1, 60 * K + 1, 1.0, np.float64)[0]
    source, target = line[:-1].reshape(60, K), line[1:].reshape(60, K)
    expected = sk.sparsemax(source)
    np.testing.assert_array_equal(sk.sparsemax(source, out=target), expected)
    packed = np.frombuffer(b"x" + big[:4, :K].tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(4, K)
    assert not packed.flags.aligned
    np.testing.assert_array_equal(sk.sparsemax(packed), sk.sparsemax(big[:4, :K].copy()))


def test_dtypes_and_shapes():
    assert sk.sparsemax([3, 1]).dtype == np.float64
    assert sk.sparsemax(np.float16([3, 1])).dtype == np.float32
    np.testing.assert_array_equal(sk.sparsemax([True, False]), [1.0, 0.0])
    np.testing.assert_array_equal(sk.sparsemax(np.arange(3.0).astype(">f8")), [0.0, 0.0, 1.0])
    assert sk.sparsemax_threshold([0.0, 0.0]) == -0.5 and np.ndim(sk.sparsemax_threshold([0.0, 0.0])) == 0
    for shape in ((0, 5), (3, 0), (0,), (2, 0, 3)):
        Z = np.zeros(shape)
        assert sk.sparsemax(Z).shape == shape and sk.sparsemax_jvp(Z, Z).shape == shape
        assert sk.sparsemax_threshold(Z).shape == sk.sparsemax_support_size(Z).shape == shape[:-1]
    assert sk.sparsemax_threshold(np.zeros((2, 0))).tolist() == [-np.inf, -np.inf]
    assert sk.sparsemax_loss(np.zeros((0, 4)), np.zeros((0, 4))).shape == (0,)
    assert sk.sparsemax(np.full((3, 1), 5.0)).tolist() == [[1.0]] * 3


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: sk.sparsemax(1.0), ValueError, "at least one dimension"),
        (lambda: sk.sparsemax(["a"]), TypeError, "z must hold real numbers"),
        (lambda: sk.sparsemax([1j]), TypeError, "z must hold real numbers"),
        (lambda: sk.sparsemax([[1.0]], axis=2), ValueError, r"axis must lie in -2 .. 1; got 2"),
        (lambda: sk.sparsemax([1.0], out=np.zeros(2)), ValueError, r"out must be an array of float64 \(1,\)"),
        (lambda: sk.sparsemax([1.0], out=[1.0]), ValueError, "out must be an array"),
        (lambda: sk.sparsemax([1.0], n_jobs=0), ValueError, "n_jobs"),
        (lambda: sk.sparsemax_jvp([1.0], [1.0, 2.0]), ValueError, "same shape"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [[0.5, 0.4]]), ValueError, "sum to 1"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [[1.5, -0.5]]), ValueError, "entries >= 0"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [[np.nan, 1.0]]), ValueError, "sum to 1"),
        (lambda: sk.sparsemax_loss([[np.nan, 2.0]], [[0.5, 0.4]]), ValueError, "sum to 1"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [2]), ValueError, "class 2; classes lie in 0 .. 1"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [-1]), ValueError, "class -1"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [0.0]), ValueError, "q must have the shape of z"),
        (lambda: sk.sparsemax_loss([[1.0, 2.0]], [[1.0, 0.0, 0.0]]), ValueError, "q must have the shape"),
        (lambda: sk.sparsemax_loss(np.zeros((2, 0)), np.zeros((2, 0))), ValueError, "no score"),
    ],
)
def test_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("K", [10, 200])
def test_threads_do_not_change_a_bit(K):
    Z = scores(3001, K, 1.0, np.float32)
    codes = np.random.default_rng(0).integers(K, size=3001)
    for f in (sk.sparsemax, lambda z, n_jobs: sk.sparsemax_loss_and_gradient(z, codes, n_jobs=n_jobs)[1]):
        np.testing.assert_array_equal(f(Z, n_jobs=1), f(Z, n_jobs=2))
        np.testing.assert_array_equal(f(Z, n_jobs=1), f(Z, n_jobs=-1))


@settings(max_examples=200, deadline=None)
@given(
    arrays(np.float64, st.integers(1, 150), elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.5, 1.0]))
)
def test_projection_properties(z):
    p = sk.sparsemax(z)
    assert (p >= 0).all() and p.sum() == pytest.approx(1.0, abs=1e-12)
    # a member's distance to the threshold is its share; what is no member lies below
    tau = z.max() - p.max()
    assert np.abs(np.where(p > 0, z - tau - p, 0.0)).max() <= 1e-9 * max(1.0, np.abs(z).max())
    assert (z[p == 0] <= tau + 1e-9 * max(1.0, np.abs(z).max())).all()
    # a permutation permutes, up to the order of the sums
    np.testing.assert_allclose(sk.sparsemax(z[::-1]), p[::-1], atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_tiny_shares(dtype):
    """A long row whose members hardly exceed the threshold: no bound may cut them off."""
    Z = np.full((1, 127 * 128), -2.0, dtype=dtype)
    Z.reshape(127, 128)[:, :16] = -(32568 + 0.492) / 32768
    Z[0, 0] = 0.0
    P = sk.sparsemax(Z)
    expected, _, size = reference.sparsemax(Z[0])
    np.testing.assert_allclose(P[0], expected, atol=2e-7)
    assert P.sum() == pytest.approx(1.0, abs=1e-6) and size > 2000


def test_output_of_odd_stride_is_written():
    Z = scores(1, 40, 1.0, np.float64)
    out = np.zeros(5, [("x", "f8", (40,)), ("b", "u1")])[:1]["x"]
    assert out.strides[0] % 8 and sk.sparsemax(Z, out=out) is out
    np.testing.assert_array_equal(out, sk.sparsemax(Z))
