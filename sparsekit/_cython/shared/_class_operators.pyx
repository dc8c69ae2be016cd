"""Products with the Hessian of a multinomial model, in single precision."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from ._blas cimport sgemm

from ._operators cimport QuadOperator

cdef extern from "shared/multinomial.h" nogil:
    void sk_curve_rows_8(const int64_t*, const int32_t*, const float*, const float*, const int32_t*,
                         const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)
    void sk_curve_rows_16(const int64_t*, const int32_t*, const float*, const float*, const int32_t*,
                          const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)
    void sk_curve_rows_24(const int64_t*, const int32_t*, const float*, const float*, const int32_t*,
                          const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)
    void sk_curve_rows_32(const int64_t*, const int32_t*, const float*, const float*, const int32_t*,
                          const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)
    void sk_curve_rows_any(const int64_t*, const int32_t*, const float*, const float*, const int32_t*,
                           const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, int,
                           float*, Py_ssize_t)
    void sk_curve_dense(float*, const float*, const int32_t*, const float*, const float*, float*, Py_ssize_t,
                        Py_ssize_t, Py_ssize_t)


cdef class _ClassOperator(QuadOperator):
    """Base: variables at ``index`` in a (features + 1, classes) table, float32 inside."""
    cdef const float[:, ::1] P
    cdef const int32_t[::1] top
    cdef const float[::1] weight
    cdef const int64_t[::1] index
    cdef float[:, ::1] V
    cdef float[:, :, ::1] work
    cdef Py_ssize_t F, K
    cdef bint has_intercepts
    cdef int n_threads

    cdef double _load(self, const double* v) noexcept nogil:
        # scaled to unit size, because very small steps underflow in float32
        cdef Py_ssize_t i, m = self.size
        cdef double scale = 0.0, a
        cdef float* V = &self.V[0, 0]
        for i in range(m):
            a = v[i] if v[i] >= 0.0 else -v[i]
            if a > scale:
                scale = a
        if scale == 0.0:
            scale = 1.0
        for i in range(m):
            V[self.index[i]] = <float>(v[i] / scale)
        return scale

    cdef void _store(self, const double* v, double* out, double scale) noexcept nogil:
        cdef Py_ssize_t i, b, m = self.size, parts = self.work.shape[0]
        cdef Py_ssize_t stride = self.work.shape[1] * self.work.shape[2]
        cdef const float* table = &self.work[0, 0, 0]
        cdef double acc
        for i in range(m):
            acc = 0.0
            for b in range(parts):
                acc += table[b * stride + self.index[i]]
            out[i] = acc * scale + self.ridge * self.diagonal[i] * v[i]
        self.add_plus(v, out)


cdef class ClassRowOperator(_ClassOperator):
    """H v by one fused pass over compressed float32 rows.

    ``P`` (n, K) has K padded with zeros to a multiple of 8. ``index`` (m,) is feature * K + class with that
    padded K. The intercepts are the feature after the last.
    """
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] indices
    cdef const float[::1] data
    cdef float[:, ::1] score

    def __init__(self, indptr, indices, data, F, P, top, weight, index, diagonal, bint intercept,
                 double ridge, int n_threads):
        self.indptr, self.indices, self.data = indptr, indices, data
        self.F, self.K = F, P.shape[1]
        self.P, self.top, self.weight, self.index = P, top, weight, index
        self.diagonal = diagonal
        self.size = <int>self.diagonal.shape[0]
        self.ridge, self.has_intercepts, self.n_threads = ridge, intercept, n_threads
        # parts depend on the data alone, so that sums do not depend on the threads
        parts = min(max(len(data) // max(4 * (F + 1), 5000), 1), 8)
        self.V = np.zeros((F + 1, self.K), dtype=np.float32)
        self.work = np.empty((parts, F + 1, self.K), dtype=np.float32)
        self.score = np.empty((parts, self.K), dtype=np.float32)

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef Py_ssize_t b, parts = self.work.shape[0], n = self.P.shape[0]
        cdef double scale = self._load(v)
        self.n_products += 1
        for b in prange(parts, num_threads=self.n_threads, schedule='static'):
            memset(&self.work[b, 0, 0], 0, (self.F + 1) * self.K * sizeof(float))
            self._part(b, (n * b) // parts, (n * (b + 1)) // parts)
        self._store(v, out, scale)

    cdef void _part(self, Py_ssize_t b, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        cdef const int32_t* col = &self.indices[0] if self.indices.shape[0] else NULL
        cdef const float* val = &self.data[0] if self.data.shape[0] else NULL
        cdef float* to = &self.work[b, 0, 0]
        if lo >= hi:
            return
        if self.K == 8:
            sk_curve_rows_8(&self.indptr[0], col, val, &self.P[0, 0], &self.top[0], &self.weight[0],
                            &self.V[0, 0], to, lo, hi, self.F, self.has_intercepts)
        elif self.K == 16:
            sk_curve_rows_16(&self.indptr[0], col, val, &self.P[0, 0], &self.top[0], &self.weight[0],
                             &self.V[0, 0], to, lo, hi, self.F, self.has_intercepts)
        elif self.K == 24:
            sk_curve_rows_24(&self.indptr[0], col, val, &self.P[0, 0], &self.top[0], &self.weight[0],
                             &self.V[0, 0], to, lo, hi, self.F, self.has_intercepts)
        elif self.K == 32:
            sk_curve_rows_32(&self.indptr[0], col, val, &self.P[0, 0], &self.top[0], &self.weight[0],
                             &self.V[0, 0], to, lo, hi, self.F, self.has_intercepts)
        else:
            sk_curve_rows_any(&self.indptr[0], col, val, &self.P[0, 0], &self.top[0], &self.weight[0],
                              &self.V[0, 0], to, lo, hi, self.F, self.has_intercepts, &self.score[b, 0], self.K)


cdef class ClassDenseOperator(_ClassOperator):
    """H v over a dense float32 copy of the features by blocks of rows, two BLAS products a block."""
    cdef const float[:, ::1] A
    cdef float[:, ::1] block

    def __init__(self, A, P, top, weight, index, diagonal, bint intercept, double ridge):
        self.A = A
        self.F, self.K = A.shape[1], P.shape[1]
        self.P, self.top, self.weight, self.index = P, top, weight, index
        self.diagonal = diagonal
        self.size = <int>self.diagonal.shape[0]
        self.ridge, self.has_intercepts, self.n_threads = ridge, intercept, 1
        self.V = np.zeros((self.F + 1, self.K), dtype=np.float32)
        self.work = np.empty((1, self.F + 1, self.K), dtype=np.float32)
        self.block = np.empty((512, self.K), dtype=np.float32)

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef Py_ssize_t lo, hi, n = self.P.shape[0]
        cdef int K = <int>self.K, F = <int>self.F, rows
        cdef float one = 1.0, zero = 0.0
        cdef char plain = b'N', turned = b'T'
        cdef float* V = &self.V[0, 0]
        cdef float* T = &self.block[0, 0]
        cdef float* to = &self.work[0, 0, 0]
        cdef float* A
        cdef double scale = self._load(v)
        self.n_products += 1
        memset(to, 0, (self.F + 1) * self.K * sizeof(float))
        lo = 0
        while lo < n:
            hi = min(lo + 512, n)
            rows = <int>(hi - lo)
            if F:
                A = <float*>&self.A[lo, 0]
                # rows of C are columns of Fortran: T^T = V^T A^T and out^T += S^T A
                sgemm(&plain, &plain, &K, &rows, &F, &one, V, &K, A, &F, &zero, T, &K)
            else:
                memset(T, 0, rows * K * sizeof(float))
            sk_curve_dense(T, &self.P[0, 0], &self.top[0], &self.weight[0],
                           V + self.F * self.K if self.has_intercepts else NULL, to + self.F * self.K, lo, hi, K)
            if F:
                sgemm(&plain, &turned, &K, &F, &rows, &one, T, &K, A, &F, &one, to, &K)
            lo = hi
        self._store(v, out, scale)
