"""CUDA kernels of the L1 solver against NumPy and the Cython kernels, which they mirror."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device
from test_kernels import _matrix as hessian

RNG = np.random.default_rng


def _device_csr(cupy, X):
    return tuple(cupy.asarray(part) for part in (X.indptr, X.indices, X.data))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_selections_keep_order_and_values(cupy, dtype):
    from sparsekit.gpu.shared import _sparse as gpu

    X = sp.random(60, 120, 0.5, format="csr", random_state=RNG(0)).astype(dtype)
    p = X.shape[1]
    cols = np.flatnonzero(RNG(4).random(p) < 0.7)
    chosen = X[:, cols]
    position = np.full(p, -1, dtype=np.int32)
    position[cols] = np.arange(len(cols))
    by_columns = gpu.transpose(*_device_csr(cupy, X), p)
    for found, expected in (
        (gpu.select(*_device_csr(cupy, X), cupy.asarray(position)), chosen),
        (gpu.gather(*by_columns, cupy.asarray(cols), chosen.nnz), chosen.T.tocsr()),
    ):
        expected.sort_indices()
        for mine, theirs in zip(found, (expected.indptr, expected.indices, expected.data)):
            np.testing.assert_array_equal(mine.get(), theirs)
        assert found[1].dtype == np.int32 and found[2].dtype == dtype


@pytest.mark.parametrize(
    "layout, dtype", [("C", np.float32), ("F", np.float64), ("csr", np.float64), ("csc", np.float32)]
)
def test_designs(cupy, layout, dtype, monkeypatch):
    from sparsekit._linalg import device_design
    from sparsekit._linalg.as_design import as_design

    X, rng = sp.random(701, 30, 0.3, format="csr", random_state=RNG(0)).astype(dtype), RNG(9)
    X = np.asarray(X.toarray(), order=layout) if layout in "CF" else X.asformat(layout)
    there, exact = as_design(to_device(cupy, X)), as_design(X.astype(np.float64))
    assert there.shape == X.shape
    d, u, w = rng.random(701), rng.standard_normal(701), rng.standard_normal(30)
    cols = np.flatnonzero(rng.random(30) < 0.5)
    dcols, dd = cupy.asarray(cols), cupy.asarray(d)
    for here, design, columns in ((exact, there, 30), (exact.select(cols), there.select(dcols), len(cols))):
        v = w[:columns]
        np.testing.assert_allclose(design.matvec(cupy.asarray(v)).get(), here.matvec(v), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            design.rmatvec(cupy.asarray(u)).get(), here.rmatvec(u), rtol=1e-6, atol=1e-6
        )
    matrix = X.toarray() if sp.issparse(X) else X
    for intercept in (False, True):
        largest = np.linalg.eigvalsh(hessian(matrix, np.arange(30), d, intercept, 0.0))[-1]
        assert there.norm_bound(dd, intercept) >= largest * (1 - 1e-6)
        assert there.norm_bound(dd, intercept) == pytest.approx(exact.norm_bound(d, intercept), rel=1e-5)
        for side, name in ((768, "GramOperator"), (0, None)):
            monkeypatch.setattr(device_design, "MAX_FACTOR_SIDE", side)
            operator, move = there.model(dcols, dd, intercept, 0.5)
            assert (type(operator).__name__ == "GramOperator") == (name is not None)
            v = rng.standard_normal(len(cols) + intercept)
            H = hessian(matrix, cols, d, intercept, 0.5)
            np.testing.assert_allclose(operator.matvec(cupy.asarray(v)).get(), H @ v, rtol=1e-4, atol=1e-4)
            along = matrix[:, cols].astype(float) @ v[: len(cols)]
            found = move.matvec(cupy.asarray(v[: len(cols)])).get()
            np.testing.assert_allclose(found, along, rtol=1e-6, atol=1e-6)
    if sp.issparse(X):
        np.testing.assert_array_equal(there.counts().get(), np.diff(X.tocsc().indptr))
