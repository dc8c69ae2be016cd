"""Sparse matrices of the emulated device: CSR, CSC and COO, as far as the package uses them."""

from ._matrices import coo_matrix, csc_matrix, csr_matrix, hstack, issparse, spmatrix

__all__ = ["coo_matrix", "csc_matrix", "csr_matrix", "hstack", "issparse", "spmatrix"]
