"""Sparse matrices and arrays of the emulated device: CSR, CSC and COO."""

from scipy.sparse import SparseEfficiencyWarning, SparseWarning

from ._base import _spbase, issparse, sparray, spmatrix
from ._formats import (
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    hstack,
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
    "hstack",
    "issparse",
    "sparray",
    "spmatrix",
]
