"""The design of whatever matrix a user has."""

import numpy as np
import scipy.sparse as sp

from .._arrays import aligned, namespace
from .._messages import shown
from .dense_design import DenseDesign
from .sparse_design import CSCDesign, CSRDesign

# Entries of X for each thread: threads with less work cost more than they give.
THREAD_WORK = 200000


def as_design(X, n_threads=1):
    """Wrap a dense array, CSR or CSC matrix, of a GPU too; float32 and float64 are not copied."""
    if namespace(X=X) is not np:
        from .device_design import as_device_design  # CuPy's users alone pay for its import

        return as_device_design(X)
    X = X if sp.issparse(X) else aligned(np.asarray(X))
    n_threads = min(n_threads, max((X.nnz if sp.issparse(X) else X.size) // THREAD_WORK, 1))
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)  # counts and booleans: products in their own type would overflow
    if sp.issparse(X):
        if X.format == "csr":
            return CSRDesign(X.indptr, X.indices, X.data, X.shape, n_threads)
        if X.format == "csc":
            return CSCDesign(X.indptr, X.indices, X.data, X.shape, n_threads)
        raise TypeError(f"X must be dense, CSR or CSC; got sparse format {shown(X.format)}")
    return DenseDesign(X, n_threads)
