"""Products, Gram matrices and the Hessian operator of dense rows, by blocks, for threads of our own.

BLAS runs on one thread inside a solve: its threads spin after each call, and then the kernels'
threads wait for them. Blocks depend on the data alone, so results do not depend on the threads.
"""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.string cimport memset

from ._blas cimport dgemv, dsyrk, ssyrk
from ._operators cimport QuadOperator


cdef extern from "shared/kernels.h" nogil:
    void sk_float_rows_dot(const float*, Py_ssize_t, Py_ssize_t, const double*, double*)
    void sk_float_rows_sum(const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*)
    void sk_double_rows_sum(const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*)
    void sk_hessian_dense(const float*, const double*, Py_ssize_t, Py_ssize_t, const float*, float*, Py_ssize_t,
                          int)
    void sk_dense_squares(const float*, const double*, Py_ssize_t, Py_ssize_t, float*, Py_ssize_t)


ctypedef fused real:
    float
    double

ctypedef fused part:
    float
    double


cdef void _gemv(const real* A, Py_ssize_t rows, Py_ssize_t cols, const double* v, double* out) noexcept nogil:
    # out = A v; A (rows, cols) in C order is a Fortran (cols, rows) matrix
    cdef int m = <int>cols, n = <int>rows, one = 1
    cdef char trans = b'T'
    cdef double alpha = 1.0, beta = 0.0
    if real is double:
        dgemv(&trans, &m, &n, &alpha, <double*>A, &m, <double*>v, &one, &beta, out, &one)
    else:
        sk_float_rows_dot(A, rows, cols, v, out)


cdef void _sum_rows(const real* A, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t lead, const double* u,
                    double* out) noexcept nogil:
    # out = A^T u; dgemv takes 1.04 to 2.2 times as long (twelve shapes, OpenBLAS 0.3.30 of SciPy 1.17)
    if real is double:
        sk_double_rows_sum(A, rows, cols, lead, u, out)
    else:
        sk_float_rows_sum(A, rows, cols, lead, u, out)


def dense_matvec(const real[:, ::1] A, const double[::1] v, double[::1] out, Py_ssize_t parts, int n_threads):
    """out = A v for A (rows, cols) in C order; neither side may be empty."""
    cdef Py_ssize_t n = A.shape[0], p = A.shape[1], b
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        if (n * (b + 1)) // parts > (n * b) // parts:
            _gemv(&A[(n * b) // parts, 0], (n * (b + 1)) // parts - (n * b) // parts, p, &v[0],
                  &out[(n * b) // parts])


def dense_rmatvec(const real[:, ::1] A, const double[::1] u, double[::1] out, Py_ssize_t parts, int n_threads):
    """out = A^T u for A (rows, cols) in C order; neither side may be empty."""
    cdef Py_ssize_t n = A.shape[0], p = A.shape[1], b, j
    cdef double[:, ::1] work
    if p > n:  # sums over parts of the rows would be as large as A itself
        for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
            if (p * (b + 1)) // parts > (p * b) // parts:
                _sum_rows(&A[0, (p * b) // parts], n, (p * (b + 1)) // parts - (p * b) // parts, p, &u[0],
                          &out[(p * b) // parts])
        return
    work = np.zeros((parts, p))
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        if (n * (b + 1)) // parts > (n * b) // parts:
            _sum_rows(&A[(n * b) // parts, 0], (n * (b + 1)) // parts - (n * b) // parts, p, p,
                      &u[(n * b) // parts], &work[b, 0])
    with nogil:
        for j in range(p):
            out[j] = work[0, j]
        for b in range(1, parts):
            for j in range(p):
                out[j] += work[b, j]


def dense_squares(const float[:, ::1] A, const double[::1] d, double[::1] out, Py_ssize_t parts, int n_threads):
    """out[j] = sum_i d_i A[i, j]^2 for A (rows, cols) in C order."""
    cdef Py_ssize_t n = A.shape[0], p = out.shape[0], b, j
    cdef float[:, ::1] work = np.zeros((parts, p), dtype=np.float32)
    if n == 0 or p == 0:
        out[:] = 0.0
        return
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        sk_dense_squares(&A[0, 0], &d[0], (n * b) // parts, (n * (b + 1)) // parts, &work[b, 0], p)
    with nogil:
        for j in range(p):
            out[j] = work[0, j]
        for b in range(1, parts):
            for j in range(p):
                out[j] += work[b, j]


def dense_gram(const real[:, :] X, const int[::1] cols, const double[::1] d, double[:, :, ::1] G,
               bint intercept, part[:, :, ::1] block, part[:, :, ::1] acc, int n_threads):
    """G[0] = A^T diag(d) A, A = X[:, cols] or [X[:, cols], 1]; X (n, p) in any order, not copied.

    ``G`` (parts, m, m) holds a sum for each part of the rows; m counts the intercept. ``block`` (parts, rows,
    m) and ``acc`` (parts, m, m) are workspaces for one block of rows. Their type is that of the sums within a
    block. ``G[0]`` gets both triangles.
    """
    cdef Py_ssize_t n = X.shape[0], size = G.shape[1], parts = G.shape[0], i, j, b
    if size == 0:
        return
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        _gram_part(X, cols, d, G, intercept, block, acc, b, (n * b) // parts, (n * (b + 1)) // parts)
    with nogil:
        for b in range(1, parts):
            for i in range(size):
                for j in range(i, size):
                    G[0, i, j] += G[b, i, j]
        for i in range(size):
            for j in range(i):
                G[0, i, j] = G[0, j, i]


cdef void _gram_part(const real[:, :] X, const int[::1] cols, const double[::1] d, double[:, :, ::1] G,
                     bint intercept, part[:, :, ::1] block, part[:, :, ::1] acc, Py_ssize_t b,
                     Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t m = cols.shape[0], size = G.shape[1], i, j, rows
    cdef int k, mm = <int>size
    cdef part one = 1.0, root, beta = 0.0
    cdef char uplo = b'L', trans = b'N'
    for i in range(size):
        for j in range(size):
            G[b, i, j] = 0.0
    while start < stop:
        rows = min(block.shape[1], stop - start)
        for i in range(rows):
            root = <part>sqrt(d[start + i])
            for j in range(m):
                block[b, i, j] = root * <part>X[start + i, cols[j]]
            if intercept:
                block[b, i, m] = root
        k = <int>rows
        # a C-ordered (rows, m) block is a Fortran (m, rows) matrix: B B^T is what we want
        if part is double:
            dsyrk(&uplo, &trans, &mm, &k, &one, &block[b, 0, 0], &mm, &beta, &acc[b, 0, 0], &mm)
        else:
            ssyrk(&uplo, &trans, &mm, &k, &one, &block[b, 0, 0], &mm, &beta, &acc[b, 0, 0], &mm)
        for i in range(size):
            for j in range(i, size):
                # Fortran lower (j, i) is C element [i, j]
                G[b, i, j] += acc[b, i, j]
        start = start + rows


cdef class DenseOperator(QuadOperator):
    """H = A^T diag(d) A by one fused pass over a float32 copy of dense columns.

    Sums are float32 within a part of the rows and float64 across parts.
    """
    cdef const float[:, ::1] A
    cdef const double[::1] d
    cdef float[:, ::1] work
    cdef float[::1] v32
    cdef Py_ssize_t parts
    cdef int n_threads

    def __init__(self, A, const double[::1] d, diagonal, bint intercept, double ridge, int n_threads):
        self.reads = "dense"
        self.A = A
        self.d = d
        self.diagonal = diagonal
        self.size = <int>self.diagonal.shape[0]
        self.ridge = ridge
        self.intercept = intercept
        self.n_threads = n_threads
        # parts depend on the data alone, so that sums do not depend on the threads
        self.parts = min(max(A.shape[0] // 64, 1), 16)
        self.work = np.empty((self.parts, self.size), dtype=np.float32)
        self.v32 = np.empty(self.size, dtype=np.float32)

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef int i, m = self.size
        cdef Py_ssize_t b, n = self.A.shape[0]
        cdef double acc, scale = 0.0
        self.n_products += 1
        # scaled to unit size, because very small steps underflow in float32
        for i in range(m):
            acc = v[i] if v[i] >= 0.0 else -v[i]
            if acc > scale:
                scale = acc
        if scale == 0.0:
            scale = 1.0
        for i in range(m):
            self.v32[i] = <float>(v[i] / scale)
        for b in prange(self.parts, num_threads=self.n_threads, schedule='static'):
            memset(&self.work[b, 0], 0, m * sizeof(float))
            if n:
                sk_hessian_dense(&self.A[0, 0], &self.d[0], (n * b) // self.parts, (n * (b + 1)) // self.parts,
                                 &self.v32[0], &self.work[b, 0], m - self.intercept, self.intercept)
        for i in range(m):
            acc = 0.0
            for b in range(self.parts):
                acc += self.work[b, i]
            out[i] = acc * scale + self.ridge * self.diagonal[i] * v[i]
        self.add_plus(v, out)
