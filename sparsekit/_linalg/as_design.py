"""The design of whatever matrix a user has."""

import numpy as np
import scipy.sparse as sp

from .._arrays import aligned, namespace
from .._cython.shared import _sparse
from .._messages import shown
from .dense_design import DenseDesign
from .sparse_design import CSCDesign, CSRDesign

# Share of entries that are not zero up to which X is worked on as compressed rows, whatever its form. With
# one score a row fits and paths to five shapes take 0.65 of the time of dense X at 0.1, 0.95 at 0.2, 1.2 at
# 0.25.
SPARSE_SHARE = 0.2
# Rows times columns of an X that may change its form.
MIN_ENTRIES = 100000
# Entries of X for each thread: threads with less work cost more than they give.
THREAD_WORK = 200000


def as_design(X, n_threads=1, share=SPARSE_SHARE):
    """Wrap a dense array, CSR or CSC matrix, of a GPU too.

    In main memory a large dense X with at most the ``share`` of entries that are not zero becomes compressed
    rows, and a large sparse X with more of them dense. Other arrays of float32 and float64 are not copied.
    """
    if namespace(X=X) is not np:
        from .device_design import as_device_design  # CuPy's users alone pay for its import

        return as_device_design(X)
    if sp.issparse(X):
        if X.format not in ("csr", "csc"):
            raise TypeError(f"X must be dense, CSR or CSC; got sparse format {shown(X.format)}")
        size = X.shape[0] * X.shape[1]
        if size >= MIN_ENTRIES and X.nnz > share * size:
            X = X.toarray()
    else:
        X = aligned(np.asarray(X))
    n_threads = min(n_threads, max((X.nnz if sp.issparse(X) else X.size) // THREAD_WORK, 1))
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)  # counts and booleans: products in their own type would overflow
    if sp.issparse(X):
        kind = CSRDesign if X.format == "csr" else CSCDesign
        return kind(X.indptr, X.indices, X.data, X.shape, n_threads)
    return _compressed(X, n_threads, share) or DenseDesign(X, n_threads)


def _compressed(X, n_threads, share):
    """A dense X of mostly zeros as compressed rows, or None where more than the ``share`` are not."""
    if X.size < MIN_ENTRIES or max(X.shape) > np.iinfo(np.int32).max:
        return None
    by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
    lines = X.T if by_columns else np.ascontiguousarray(X)
    counts, nnz = np.empty(len(lines), dtype=np.int64), 0
    step = max(n_threads * THREAD_WORK // lines.shape[1], 1)
    for at in range(0, len(lines), step):  # most of a dense X need not be counted
        _sparse.dense_count(lines[at : at + step], counts[at : at + step], n_threads)
        nnz += int(counts[at : at + step].sum())
        if nnz > share * X.size:
            return None
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices, data = np.empty(nnz, dtype=np.int32), np.empty(nnz, dtype=X.dtype)
    _sparse.dense_compress(lines, indptr, indices, data, n_threads)
    if nnz < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    if by_columns:
        rows = sp.csc_array((data, indices, indptr), shape=X.shape).tocsr()
        indptr, indices, data = rows.indptr, rows.indices, rows.data
    return CSRDesign(indptr, indices, data, X.shape, n_threads)
