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
