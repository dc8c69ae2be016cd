"""Sparse matrices of the stand-in for CuPy against SciPy's, and what both refuse."""

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(autouse=True)
def emulation(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a GPU is there: the stand-in for CuPy is not used")
    cupy.emulation.reset()
    return cupy.emulation


@pytest.fixture
def csp(cupy):
    import cupyx.scipy.sparse

    return cupyx.scipy.sparse


@pytest.fixture
def host():
    return sp.random_array((5, 4), density=0.5, rng=np.random.default_rng(0), format="csr")


def _device(cupy, matrix):
    return tuple(cupy.asarray(part) for part in (matrix.data, matrix.indices, matrix.indptr))


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix"])
def test_operations_agree_with_scipy(cupy, csp, host, kind):
    host = getattr(sp, kind)(host)
    device = getattr(csp, kind)(host)
    v, V = np.arange(4.0), np.arange(8.0).reshape(4, 2)
    u = np.arange(5.0)

    def same(got, wanted):
        if csp.issparse(got):
            assert got.format == wanted.format
            got, wanted = got.toarray(), wanted.toarray()
        assert isinstance(got, cupy.ndarray)
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_allclose(got.get(), wanted, rtol=1e-14, atol=0)

    same(device @ cupy.asarray(v), host @ v)
    same(device @ cupy.asarray(V), host @ V)
    same(device.T @ cupy.asarray(u), host.T @ u)
    same(cupy.asarray(u) @ device, u @ host)
    same((device.tocsr() @ device.T.tocsr()), (host @ host.T).tocsr())
    same(device.toarray(), host.toarray())
    same(device.tocsr(), host.tocsr())
    same(device.tocoo(), host.tocoo())
    same(device.astype("f4"), host.astype("f4"))
    same(device.multiply(2.0).tocsr(), (host * 2.0).tocsr())
    same((device * 3.0).tocsr(), (host * 3.0).tocsr())
    same(device.multiply(cupy.asarray(v)).tocsr(), host.multiply(v).tocsr())
    same((device - device.multiply(0.5)).tocsr(), (host - 0.5 * host).tocsr())
    same(device.sum(), np.asarray(host.sum()))
    same(device.sum(axis=0), np.asarray(host.sum(axis=0)))
    same(device.sum(axis=1), np.asarray(host.sum(axis=1)))
    same(abs(device).tocsr(), abs(host).tocsr())
    same(device.sqrt().tocsr(), host.sqrt().tocsr())
    rows = np.array([3, 0])
    same(device[1:4], host[1:4])
    same(device[cupy.asarray(rows)], host[rows])
    same(device[:, 1:3], host[:, 1:3])
    same(device[2, 1], np.asarray(host[2, 1]))


def test_refused(cupy, csp, host):
    matrix = csp.csr_matrix(host)
    data, indices, indptr = _device(cupy, host)
    with pytest.raises(ValueError, match="Only bool, float32, float64, complex64 and complex128"):
        csp.csr_matrix(cupy.ones((2, 2), "i8"))
    with pytest.raises(ValueError, match="Only bool, float32"):
        csp.csr_matrix((data.astype("f2"), indices, indptr), shape=host.shape)
    with pytest.raises(ValueError, match="must be 1-D cupy arrays"):
        csp.csr_matrix((host.data, host.indices, host.indptr), shape=host.shape)
    with pytest.raises(ValueError, match="index pointer size"):
        csp.csr_matrix((data, indices, indptr), shape=(9, 4))
    with pytest.raises(ValueError, match="same size"):
        csp.csr_matrix((data[:-1], indices, indptr), shape=host.shape)
    with pytest.raises(ValueError, match="Unsupported initializer"):
        csp.csr_matrix(host.toarray())
    with pytest.raises(TypeError):
        matrix @ np.ones(4)
    with pytest.raises(TypeError):
        np.ones(5) @ matrix
    with pytest.raises(TypeError):
        matrix @ host.T
    with pytest.raises(TypeError, match="get"):
        np.asarray(matrix)
    with pytest.raises(ValueError, match="Scalar operands"):
        matrix @ 2.0
    with pytest.raises(ValueError, match="dimension mismatch"):
        matrix @ cupy.ones(3)
    with pytest.raises(TypeError, match="ambiguous"):
        len(matrix)
    with pytest.raises(AttributeError, match="tensordot"):
        _ = matrix.tensordot
