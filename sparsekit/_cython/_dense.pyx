"""Gram matrices of dense rows, blocked so that a scaled block stays in cache."""
import numpy as np

from libc.math cimport sqrt
from scipy.linalg.cython_blas cimport dsyrk, ssyrk

ctypedef fused real:
    float
    double


ctypedef fused part:
    float
    double


def dense_gram(const real[:, :] X, const int[::1] cols, const double[::1] d, double[:, ::1] G,
               bint intercept, part[:, ::1] block, part[:, ::1] acc):
    """G = A^T diag(d) A, A = X[:, cols] or [X[:, cols], 1]; X (n, p) in any order, not copied.

    ``block`` (rows, m or m + 1) and ``acc`` (m or m + 1 square) are scratch for one block of rows,
    whose type is that of the sums within a block; ``G`` is overwritten, both triangles.
    """
    cdef Py_ssize_t n = X.shape[0], m = cols.shape[0], size = G.shape[0], i, j, start, rows
    cdef int k, mm = <int>size
    cdef part one = 1.0, root, beta = 0.0
    cdef char uplo = b'L', trans = b'N'
    cdef Py_ssize_t step = block.shape[0]
    if size == 0:
        return
    with nogil:
        for i in range(size):
            for j in range(size):
                G[i, j] = 0.0
        start = 0
        while start < n:
            rows = step if n - start > step else n - start
            for i in range(rows):
                root = <part>sqrt(d[start + i])
                for j in range(m):
                    block[i, j] = root * <part>X[start + i, cols[j]]
                if intercept:
                    block[i, m] = root
            k = <int>rows
            # a C-ordered (rows, m) block is a Fortran (m, rows) matrix: B B^T is what we want
            if part is double:
                dsyrk(&uplo, &trans, &mm, &k, &one, &block[0, 0], &mm, &beta, &acc[0, 0], &mm)
            else:
                ssyrk(&uplo, &trans, &mm, &k, &one, &block[0, 0], &mm, &beta, &acc[0, 0], &mm)
            for i in range(size):
                for j in range(i, size):
                    # Fortran lower (j, i) is C element [i, j]
                    G[i, j] += acc[i, j]
            start = start + rows
        for i in range(size):
            for j in range(i):
                G[i, j] = G[j, i]
