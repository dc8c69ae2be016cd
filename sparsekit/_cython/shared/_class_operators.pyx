"""Products with the Hessian of a multinomial model, in single precision."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from ._blas cimport sgemm

from ._operators cimport QuadOperator

cdef extern from "shared/curvature.h" nogil:
    void sk_product32(const int64_t*, const int32_t*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t,
                      Py_ssize_t)
    void sk_product32_few(const int64_t*, const int32_t*, const float*, const float*, float*, Py_ssize_t,
                          Py_ssize_t, Py_ssize_t)
    void sk_curve_scores(float*, const float*, const int32_t*, const float*, const float*, float*, Py_ssize_t,
                         Py_ssize_t, Py_ssize_t)

# rows that a part has at least
cdef Py_ssize_t _ROWS = 64
# rows of a block of dense data
cdef Py_ssize_t _BLOCK = 512


cdef class _ClassOperator(QuadOperator):
    """Base: variables at ``index`` in a (features + 1, classes) table, float32 inside.

    Without an index it multiplies tables of all variables only.
    """
    cdef const float[:, ::1] P
    cdef const int32_t[::1] top
    cdef const float[::1] weight
    cdef const int64_t[::1] index
    cdef float[:, ::1] table, sums
    cdef Py_ssize_t F, K
    cdef bint has_intercepts
    cdef int n_threads

    def __init__(self, F, P, top, weight, index, diagonal, bint intercept, double ridge, int n_threads):
        self.F, self.K = F, P.shape[1]
        self.P, self.top, self.weight, self.index = P, top, weight, index
        self.diagonal = diagonal
        self.size = <int>self.index.shape[0]
        self.ridge, self.has_intercepts, self.n_threads = ridge, intercept, n_threads
        self.table = np.zeros((F + 1, self.K), dtype=np.float32)
        self.sums = np.empty((F + 1, self.K), dtype=np.float32)

    @property
    def shape(self):
        """Shape of the tables that `multiply` takes."""
        return self.F + self.has_intercepts, self.K

    def multiply(self, const float[:, ::1] V, float[:, ::1] out):
        """out = H V for tables of all variables, without the ridge."""
        if (V.shape[0], V.shape[1]) != self.shape or (out.shape[0], out.shape[1]) != self.shape:
            raise ValueError(f"V and out must have shape {self.shape}")
        if V.shape[0] and self.K:
            with nogil:
                self.multiply_table(&V[0, 0], &out[0, 0])
        return np.asarray(out)

    cdef void multiply_table(self, const float* V, float* out) noexcept nogil:
        pass

    cdef void product(self, const double* v, double* out) noexcept nogil:
        # scaled to unit size, because very small steps underflow in float32
        cdef Py_ssize_t i, m = self.size
        cdef double scale = 0.0, a
        cdef float* V = &self.table[0, 0]
        cdef const float* sums = &self.sums[0, 0]
        self.n_products += 1
        for i in range(m):
            a = v[i] if v[i] >= 0.0 else -v[i]
            if a > scale:
                scale = a
        if scale == 0.0:
            scale = 1.0
        for i in range(m):
            V[self.index[i]] = <float>(v[i] / scale)
        self.multiply_table(V, &self.sums[0, 0])
        for i in range(m):
            out[i] = sums[self.index[i]] * scale + self.ridge * self.diagonal[i] * v[i]
        self.add_plus(v, out)


cdef class ClassRowOperator(_ClassOperator):
    """H v over compressed float32 rows and their columns: scores by rows, then their sums by columns.

    No thread needs a table of its own. ``P`` (n, K) has K padded with zeros to 2, 4 or a multiple of 8. ``index``
    (m,) is feature * K + class with that padded K. The intercepts are the feature after the last.
    """
    cdef const int64_t[::1] row_start, column_start
    cdef const int32_t[::1] row_entries, column_entries
    cdef const float[::1] row_data, column_data
    cdef float[:, ::1] scores, last

    def __init__(self, rows, columns, F, P, top, weight, index, diagonal, bint intercept, double ridge, int n_threads):
        super().__init__(F, P, top, weight, index, diagonal, intercept, ridge, n_threads)
        if self.K % 8 and self.K != 2 and self.K != 4:
            raise ValueError(f"P must have 2, 4 or a multiple of 8 columns; got {self.K}")
        self.row_start, self.row_entries, self.row_data = rows
        self.column_start, self.column_entries, self.column_data = columns
        n = P.shape[0]
        self.scores = np.empty((n, self.K), dtype=np.float32)
        # parts depend on the data alone, so that sums do not depend on the threads
        self.last = np.empty((min(16, max(n // _ROWS, 1)), self.K), dtype=np.float32)

    cdef void multiply_table(self, const float* V, float* out) noexcept nogil:
        cdef Py_ssize_t n = self.P.shape[0], K = self.K, parts = self.last.shape[0], b, k
        cdef const float* first = V + self.F * K if self.has_intercepts else NULL
        cdef float* last = out + self.F * K
        if n == 0:
            memset(out, 0, (self.F + self.has_intercepts) * K * sizeof(float))
            return
        self._multiply(self.row_start, self.row_entries, self.row_data, V, &self.scores[0, 0])
        memset(&self.last[0, 0], 0, parts * K * sizeof(float))
        for b in prange(parts, num_threads=self.n_threads, schedule='static'):
            sk_curve_scores(&self.scores[0, 0], &self.P[0, 0], &self.top[0], &self.weight[0], first, &self.last[b, 0],
                            (n * b) // parts, (n * (b + 1)) // parts, K)
        self._multiply(self.column_start, self.column_entries, self.column_data, &self.scores[0, 0], out)
        if self.has_intercepts:
            memset(last, 0, K * sizeof(float))
            for b in range(parts):
                for k in range(K):
                    last[k] += self.last[b, k]

    cdef void _multiply(self, const int64_t[::1] start, const int32_t[::1] entries, const float[::1] data,
                        const float* V, float* out) noexcept nogil:
        # out = A V for A in compressed rows
        cdef Py_ssize_t n = start.shape[0] - 1, K = self.K, b, parts = min(64, max(n // _ROWS, 1))
        if n <= 0:
            return
        if data.shape[0] == 0:
            memset(out, 0, n * K * sizeof(float))
            return
        for b in prange(parts, num_threads=self.n_threads, schedule='dynamic'):
            if K < 8:
                sk_product32_few(&start[0], &entries[0], &data[0], V, out, (n * b) // parts, (n * (b + 1)) // parts, K)
            else:
                sk_product32(&start[0], &entries[0], &data[0], V, out, (n * b) // parts, (n * (b + 1)) // parts, K // 8)


cdef class ClassDenseOperator(_ClassOperator):
    """H v over a dense float32 copy of the features by blocks of rows, two BLAS products a block."""
    cdef const float[:, ::1] A
    cdef float[:, ::1] block

    def __init__(self, A, P, top, weight, index, diagonal, bint intercept, double ridge):
        super().__init__(A.shape[1], P, top, weight, index, diagonal, intercept, ridge, 1)
        self.A = A
        self.block = np.empty((_BLOCK, self.K), dtype=np.float32)

    cdef void multiply_table(self, const float* V, float* out) noexcept nogil:
        cdef Py_ssize_t lo = 0, hi, n = self.P.shape[0]
        cdef int K = <int>self.K, F = <int>self.F, rows
        cdef float one = 1.0, zero = 0.0
        cdef char plain = b'N', turned = b'T'
        cdef float* from_table = <float*>V
        cdef float* first = from_table + self.F * self.K if self.has_intercepts else NULL
        cdef float* T = &self.block[0, 0]
        cdef float* A
        memset(out, 0, (self.F + self.has_intercepts) * self.K * sizeof(float))
        while lo < n:
            hi = min(lo + _BLOCK, n)
            rows = <int>(hi - lo)
            if F:
                A = <float*>&self.A[lo, 0]
                # rows of C are columns of Fortran: T^T = V^T A^T and out^T += S^T A
                sgemm(&plain, &plain, &K, &rows, &F, &one, from_table, &K, A, &F, &zero, T, &K)
            else:
                memset(T, 0, rows * K * sizeof(float))
            sk_curve_scores(T, &self.P[lo, 0], &self.top[lo], &self.weight[lo], first, out + self.F * self.K, 0, rows,
                            K)
            if F:
                sgemm(&plain, &turned, &K, &F, &rows, &one, T, &K, A, &F, &one, out, &K)
            lo = hi
