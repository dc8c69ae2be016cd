"""Sparsemax on a GPU: kernels against sorting and the CPU's kernels, and the functions of CuPy arrays."""

import numpy as np
import pytest
import reference_sparsemax as reference

import sparsekit
from sparsekit._cython.fenchel_young import _sparsemax as host
from sparsekit.gpu.fenchel_young import _sparsemax

TOL = {np.float32: 2e-6, np.float64: 1e-14}
# a warp a row, rows that are no multiple of it, and a block a row
CASES = [
    (1, np.float32),
    (3, np.float64),
    (33, np.float32),
    (1000, np.float64),
    (1025, np.float32),
    (4000, np.float64),
]


def hard_rows(K, dtype, seed=0):
    """Scores of several scales, ties, constants, masks, infinities, NaN, huge numbers; (14, K)."""
    rng = np.random.default_rng(seed)
    Z = (rng.standard_normal((14, K)) * np.repeat([1e-3, 0.1, 1.0, 10.0], [1, 3, 3, 7])[:, None]).astype(
        dtype
    )
    Z[4, rng.random(K) < 0.5] = -np.inf
    Z[4, K // 2] = 0.25
    Z[5] = np.round(Z[5])
    Z[6] = -3.5
    Z[7] = -np.inf
    Z[8, [0, K - 1]] = np.inf
    Z[9, K // 3] = np.nan
    Z[10, 0], Z[10, K - 1] = np.nan, np.inf
    Z[11] = 1e30 * np.sign(Z[11])
    Z[12] = 0.0
    Z[12, K - 1] = 1.0  # exactly one above the others: they are no members
    Z[13] = np.where(rng.random(K) < 0.5, 1e9, -1e9)
    return Z


def on_host(Z, q=None, y=None, minus=False):
    out = np.empty_like(Z), np.empty(len(Z)), np.empty(len(Z), np.int64), np.full(len(Z), 7.0)
    good = host.sparsemax_rows(Z, q, y, *out, minus, 1)
    return *out, good


def on_device(cupy, Z, q=None, y=None, minus=False):
    Z, q, y = (x if x is None or isinstance(x, cupy.ndarray) else cupy.asarray(x) for x in (Z, q, y))
    n = len(Z)
    out = cupy.empty(Z.shape, Z.dtype), cupy.empty(n), cupy.empty(n, np.int64), cupy.full(n, 7.0)
    good = _sparsemax.sparsemax_rows(Z, q, y, *out, minus)
    return *(x.get() for x in out), good


@pytest.mark.parametrize("K, dtype", CASES)
def test_forward(cupy, K, dtype):
    Z = hard_rows(K, dtype)
    p, tau, size, _, good = on_device(cupy, Z)
    expected, tau_, size_, _, _ = on_host(Z)
    eps = np.finfo(dtype).eps
    assert good
    np.testing.assert_allclose(p, expected, rtol=0, atol=TOL[dtype])
    np.testing.assert_allclose(tau, tau_, rtol=4 * eps, atol=TOL[dtype])
    np.testing.assert_array_equal(size, np.sum(p > 0, axis=1))
    plain = [2, 6, 7, 8, 9, 10, 12]  # elsewhere members at the threshold are a matter of rounding
    np.testing.assert_array_equal(size[plain], size_[plain])
    for i in (0, 1, 2, 5, 6, 12):
        z = Z[i].astype(np.float64)
        np.testing.assert_allclose(p[i], reference.sparsemax(z - z.max())[0], rtol=0, atol=TOL[dtype])
    finite = [0, 1, 2, 3, 4, 5, 6, 8, 11, 12, 13]
    np.testing.assert_allclose(p[finite].sum(axis=1, dtype=np.float64), 1.0, rtol=16 * eps)
    shares = p[6].astype(np.float64)
    assert len(set(shares)) == 1 and shares[0] == pytest.approx(1 / Z.shape[1], rel=8 * float(eps))
    # a result depends on no other row of its block, each of which ends after more or fewer steps
    for i in (0, 1, 2, 5, 11):
        np.testing.assert_array_equal(on_device(cupy, Z[i : i + 1])[0][0], p[i])


@pytest.mark.parametrize("K", [32, 1025])
def test_ties_that_the_threshold_cannot_tell_from_itself(cupy, K):
    """Shares of equal scores may be smaller than the rounding of tau, and still be a part of the sum."""
    rng = np.random.default_rng(8)
    Z = np.full((12, K), -2.0, dtype=np.float32)
    for z in Z:
        m = rng.integers(K // 2, K)
        z[:m] = -(1 - rng.uniform(0, 2) / m)
        z[0] = 0.0
        rng.shuffle(z)
    p, _, size, _, _ = on_device(cupy, Z)
    expected, _, size_ = reference.rows(Z)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(p.sum(axis=1, dtype=np.float64), 1.0, rtol=4e-7)
    np.testing.assert_array_equal(size, size_)


def distributions(Z, seed):
    rng = np.random.default_rng(seed)
    q = rng.random(Z.shape) * (rng.random(Z.shape) < 0.3)
    q[:, 0] += 0.1
    q[np.isneginf(Z)] = 0.0
    q[7, 0] = 1.0  # nothing is allowed in this row
    return (q / q.sum(axis=1, keepdims=True)).astype(Z.dtype)


@pytest.mark.parametrize("K, dtype", [(3, np.float64), (1000, np.float32), (1025, np.float32)])
def test_loss_and_gradient(cupy, K, dtype):
    Z = hard_rows(K, dtype)
    tol = 2e-6 if dtype == np.float32 else 1e-12
    q, y = distributions(Z, 1), np.random.default_rng(2).integers(K, size=len(Z))
    for kind in ({"q": q}, {"y": y}):
        for minus in (True, False):
            p, _, size, loss, good = on_device(cupy, Z, minus=minus, **kind)
            expected, _, _, loss_, good_ = on_host(Z, minus=minus, **kind)
            assert good and good_
            np.testing.assert_allclose(p, expected, rtol=0, atol=TOL[dtype])
            np.testing.assert_allclose(loss, loss_, rtol=tol, atol=tol)
            np.testing.assert_array_equal(size, on_device(cupy, Z)[2])
    for i in (1, 2, 5):
        np.testing.assert_allclose(
            on_device(cupy, Z[i : i + 1], q[i : i + 1])[3][0], reference.loss(Z[i], q[i]), rtol=2e-4
        )
    negative = q + np.eye(K, dtype=dtype)[[0] * len(q)] - np.eye(K, dtype=dtype)[[K - 1] * len(q)]
    for wrong in (0.5 * q, negative, np.where(q > 0, np.nan, q)):
        assert not on_device(cupy, Z, wrong.astype(dtype))[4]


@pytest.mark.parametrize("K, dtype", [(3, np.float64), (1000, np.float32), (1025, np.float32)])
def test_jacobian_vector_product(cupy, K, dtype):
    Z = hard_rows(K, dtype)
    p = on_host(Z)[0]
    V = np.random.default_rng(3).standard_normal(Z.shape).astype(dtype)
    expected = np.empty_like(V)
    host.sparsemax_jvp_rows(p, V, expected, 1)
    out = cupy.empty(V.shape, V.dtype)
    _sparsemax.sparsemax_jvp_rows(cupy.asarray(p), cupy.asarray(V), out)
    np.testing.assert_allclose(out.get(), expected, rtol=0, atol=10 * TOL[dtype])
    for i in (1, 2, 6):
        np.testing.assert_allclose(out.get()[i], reference.jacobian(p[i]) @ V[i], atol=10 * TOL[dtype])
    # outside of the support nothing counts, and the result may overwrite v
    V[p == 0] = np.nan
    v = cupy.asarray(V)
    _sparsemax.sparsemax_jvp_rows(cupy.asarray(p), v, v)
    np.testing.assert_array_equal(v.get(), out.get())


@pytest.mark.parametrize("K", [33, 1025])
def test_every_order_of_the_threads_gives_the_same_bits(cupy, K):
    Z = hard_rows(K, np.float32)
    q, found = distributions(Z, 1), []
    for seed in (0, 1, 12345):
        if hasattr(cupy, "emulation"):
            cupy.emulation.seed(seed)
        p, *rest = on_device(cupy, Z)
        out = cupy.empty(Z.shape, Z.dtype)
        _sparsemax.sparsemax_jvp_rows(cupy.asarray(p), cupy.asarray(q), out)
        found.append([p, *rest, *on_device(cupy, Z, q, minus=True), out.get()])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


def test_strides(cupy):
    K = 32
    big = np.random.default_rng(4).standard_normal((10, 2 * K + 1)).astype(np.float32)
    device = cupy.asarray(big)
    for view in (np.s_[::2, :K], np.s_[::-1, 1 : K + 1], np.s_[:, : 2 * K : 2], np.s_[3:4, :K]):
        z = device[view]
        whole = cupy.zeros((len(z), 3 * K), dtype=np.float32)
        for out in (whole[:, K : 2 * K], whole[:, : 2 * K : 2]):
            _sparsemax.sparsemax_rows(z, None, None, out, None, None, None, False)
            expected = sparsekit.sparsemax(big[view])
            np.testing.assert_allclose(out.get(), expected, atol=2e-6)
            _sparsemax.sparsemax_jvp_rows(out, z, out)
            np.testing.assert_allclose(out.get(), sparsekit.sparsemax_jvp(expected, big[view]), atol=2e-6)
    _sparsemax.sparsemax_rows(device[:, :K], None, None, device[:, :K], None, None, None, False)
    np.testing.assert_allclose(device[:, :K].get(), sparsekit.sparsemax(big[:, :K]), atol=2e-6)
    np.testing.assert_array_equal(device[:, K:].get(), big[:, K:])


@pytest.mark.parametrize("axis", [1, -1])
def test_functions_of_arrays(cupy, axis):
    rng = np.random.default_rng(6)
    Z, V = rng.standard_normal((2, 3, 5, 7))
    K = Z.shape[axis]
    y = rng.integers(K, size=np.delete(Z.shape, axis % 3))
    q = np.abs(V) / np.abs(V).sum(axis=axis, keepdims=True)
    z, v = cupy.asarray(Z), cupy.asarray(V)

    def same(found, expected):
        assert isinstance(found, cupy.ndarray) and found.dtype == expected.dtype
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found.get(), expected, atol=1e-14)

    p = sparsekit.sparsemax(z, axis)
    same(p, sparsekit.sparsemax(Z, axis))
    same(sparsekit.sparsemax_threshold(z, axis), sparsekit.sparsemax_threshold(Z, axis))
    same(sparsekit.sparsemax_support_size(z, axis), sparsekit.sparsemax_support_size(Z, axis))
    same(sparsekit.sparsemax_jvp(p, v, axis), sparsekit.sparsemax_jvp(p.get(), V, axis))
    for target in (q, y, y.astype(np.int32)):
        same(
            sparsekit.sparsemax_loss(z, cupy.asarray(target), axis), sparsekit.sparsemax_loss(Z, target, axis)
        )
        for a, b in zip(
            sparsekit.sparsemax_loss_and_gradient(z, cupy.asarray(target), axis),
            sparsekit.sparsemax_loss_and_gradient(Z, target, axis),
        ):
            same(a, b)
    out = cupy.empty(Z.shape)
    assert sparsekit.sparsemax(z, axis, out=out) is out
    np.testing.assert_array_equal(out.get(), p.get())
    assert sparsekit.sparsemax(z, axis, out=z) is z
    np.testing.assert_array_equal(z.get(), p.get())


def test_dtypes_and_shapes(cupy):
    assert sparsekit.sparsemax(cupy.asarray([3, 1, 0])).dtype == np.float64
    assert sparsekit.sparsemax(cupy.asarray([3, 1], dtype=np.float16)).dtype == np.float32
    tau = sparsekit.sparsemax_threshold(cupy.asarray([5.0, 4.5, 0.0]))
    assert tau.shape == () and float(tau) == 4.25
    for shape in ((0, 5), (3, 0), (2, 0, 3)):
        z = cupy.zeros(shape)
        assert sparsekit.sparsemax(z).shape == sparsekit.sparsemax_jvp(z, z).shape == shape
        assert sparsekit.sparsemax_threshold(z).shape == shape[:-1]
    # a result that overlaps its input, over several blocks
    line = cupy.asarray(np.random.default_rng(7).standard_normal(2101))
    source, target = line[:-1].reshape(300, 7), line[1:].reshape(300, 7)
    source[:, 0] += 5.0  # what the row before writes over
    expected = sparsekit.sparsemax(source).get()
    np.testing.assert_array_equal(sparsekit.sparsemax(source, out=target).get(), expected)


def test_bad_arguments(cupy):
    z = cupy.zeros((2, 3))
    for call, error, match in (
        (lambda: sparsekit.sparsemax(z, out=np.empty((2, 3))), TypeError, "z is on the GPU and out in main"),
        (lambda: sparsekit.sparsemax_jvp(z, z.get()), TypeError, "p is on the GPU and v in main"),
        (lambda: sparsekit.sparsemax_loss(z, z), ValueError, "sum to 1"),
        (lambda: sparsekit.sparsemax_loss(z, (z[:, 0] + 3).astype(int)), ValueError, "class 3; classes lie"),
    ):
        with pytest.raises(error, match=match):
            call()


def test_what_waits_for_the_device(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a GPU is there: only the stand-in for CuPy counts")
    z, y = cupy.zeros((4, 5)), cupy.zeros(4, dtype=np.int64)
    counts = cupy.emulation.counts
    for call, waits in (
        (lambda: sparsekit.sparsemax(z), 0),
        (lambda: sparsekit.sparsemax_jvp(z, z), 0),
        (lambda: sparsekit.sparsemax_loss_and_gradient(z, y), 1),
        (lambda: sparsekit.sparsemax_loss_and_gradient(z, cupy.full((4, 5), 0.2)), 1),
    ):
        cupy.emulation.reset()
        call()
        assert counts["syncs"] == waits and counts["uploads"] == 0
