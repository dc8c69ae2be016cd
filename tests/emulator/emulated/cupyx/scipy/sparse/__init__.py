"""Sparse matrices and arrays of the emulated device: CSR, CSC and COO."""

from scipy.sparse import SparseEfficiencyWarning, SparseWarning

from ._base import _spbase, issparse, isspmatrix, sparray, spmatrix
from ._formats import (
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    eye,
    hstack,
    identity,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    random,
    vstack,
)

__all__ = [
    "SparseEfficiencyWarning",
    "SparseWarning",
    "_spbase",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "eye",
    "hstack",
    "identity",
    "issparse",
    "isspmatrix",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "random",
    "sparray",
    "spmatrix",
    "vstack",
]
