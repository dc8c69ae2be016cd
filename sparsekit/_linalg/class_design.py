"""Which design a loss with a score for each class has; those of a GPU are imported when one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .._arrays import namespace
from .._cython.shared import _sparse
from .._typing import DeviceArray, DeviceMatrix
from .as_design import as_design
from .dense_design import DenseDesign
from .sparse_design import CSRDesign

if TYPE_CHECKING:
    from .device_class_design import DeviceDense, DeviceRows

# An X with at most this share of non-zeros is worked on as compressed rows.
SPARSE_SHARE = 0.3


def device_design(X: DeviceArray | DeviceMatrix) -> DeviceDense | DeviceRows:
    """The design of a CuPy array, or of a CSR or CSC matrix of ``cupyx.scipy.sparse``."""
    from .device_class_design import device_class_design  # CuPy's users alone pay for its import

    return device_class_design(X)


def design_of(X, n_threads):
    """The design of X, on the GPU where X is there."""
    if namespace(X=X) is np:
        return compress_zeros(as_design(X, n_threads), n_threads)
    if hasattr(X, "nnz") and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # entries of a row are worked on at once
    return device_design(X)


def compress_zeros(design, n_threads):
    """A dense design of mostly zeros as compressed rows; any other as it is."""
    if not isinstance(design, DenseDesign) or design.nnz < 100000:
        return design
    X, (n, p) = design.X, design.shape
    if not X.flags.c_contiguous or p > np.iinfo(np.int32).max:
        if np.count_nonzero(X) > SPARSE_SHARE * design.nnz:
            return design
        rows = sp.csr_matrix(X)
        return CSRDesign(rows.indptr, rows.indices, rows.data, rows.shape, n_threads)
    counts = np.empty(n, dtype=np.int64)
    _sparse.dense_count(X, counts, n_threads)
    nnz = int(counts.sum())
    if nnz > SPARSE_SHARE * design.nnz:
        return design
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices, data = np.empty(nnz, dtype=np.int32), np.empty(nnz, dtype=X.dtype)
    _sparse.dense_compress(X, indptr, indices, data, n_threads)
    if nnz < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return CSRDesign(indptr, indices, data, X.shape, n_threads)
