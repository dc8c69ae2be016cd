"""Kernels of the multinomial loss: products with several right-hand sides, softmax, curvature.

The quadratic model's products go over float32 copies of the working features; values and
gradients are float64 throughout.
"""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from ._blas cimport sgemm

from ._operators cimport QuadOperator

ctypedef fused real:
    float
    double

ctypedef fused out_real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


# doubles of a partial sum of A^T U that stays in a core's cache
cdef Py_ssize_t _SMALL_TABLE = 32768

cdef extern from "shared/multinomial.h" nogil:
    void sk_matmat_i32_f64(const int64_t*, const int32_t*, const double*, const double*, double*, Py_ssize_t,
                           Py_ssize_t, Py_ssize_t)
    void sk_matmat_i64_f64(const int64_t*, const int64_t*, const double*, const double*, double*, Py_ssize_t,
                           Py_ssize_t, Py_ssize_t)
    void sk_matmat_i32_f32(const int64_t*, const int32_t*, const float*, const double*, double*, Py_ssize_t,
                           Py_ssize_t, Py_ssize_t)
    void sk_matmat_i64_f32(const int64_t*, const int64_t*, const float*, const double*, double*, Py_ssize_t,
                           Py_ssize_t, Py_ssize_t)
    void sk_rmatmat_i32_f64(const int64_t*, const int32_t*, const double*, const double*, double*, Py_ssize_t,
                            Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void sk_rmatmat_i64_f64(const int64_t*, const int64_t*, const double*, const double*, double*, Py_ssize_t,
                            Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void sk_rmatmat_i32_f32(const int64_t*, const int32_t*, const float*, const double*, double*, Py_ssize_t,
                            Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void sk_rmatmat_i64_f32(const int64_t*, const int64_t*, const float*, const double*, double*, Py_ssize_t,
                            Py_ssize_t, Py_ssize_t, Py_ssize_t)
    double sk_multinomial_all(const double*, const int32_t*, const double*, double*, Py_ssize_t, Py_ssize_t,
                              Py_ssize_t)
    double sk_target_all(const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t)
    void sk_multinomial_model(const double*, const double*, double*, double*, int32_t*, Py_ssize_t, Py_ssize_t,
                              Py_ssize_t)
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
    ctypedef struct sk_class_rows:
        const int64_t *ptr
        const int32_t *col
        const int32_t *top
        const double *P
        const double *rest
        const double *s
        Py_ssize_t K
    ctypedef struct sk_class_variables:
        const int32_t *first
        const int32_t *cls
        Py_ssize_t F
        Py_ssize_t m
        int intercept
    ctypedef struct sk_class_entries:
        int32_t *var
        int32_t *k
        double *x
        double *a
    void sk_class_gram_f64(sk_class_rows, const double*, sk_class_variables, Py_ssize_t, Py_ssize_t, double*,
                           sk_class_entries)
    void sk_class_gram_f32(sk_class_rows, const float*, sk_class_variables, Py_ssize_t, Py_ssize_t, double*,
                           sk_class_entries)
    void sk_class_factors_f64_f64(sk_class_rows, const double*, sk_class_variables, const int32_t*, Py_ssize_t,
                                 Py_ssize_t, Py_ssize_t, double*, double*, double*)
    void sk_class_factors_f64_f32(sk_class_rows, const double*, sk_class_variables, const int32_t*, Py_ssize_t,
                                 Py_ssize_t, Py_ssize_t, float*, float*, float*)
    void sk_class_factors_f32_f64(sk_class_rows, const float*, sk_class_variables, const int32_t*, Py_ssize_t,
                                 Py_ssize_t, Py_ssize_t, double*, double*, double*)
    void sk_class_factors_f32_f32(sk_class_rows, const float*, sk_class_variables, const int32_t*, Py_ssize_t,
                                 Py_ssize_t, Py_ssize_t, float*, float*, float*)
    void sk_curve_dense(float*, const float*, const int32_t*, const float*, const float*, float*, Py_ssize_t,
                        Py_ssize_t, Py_ssize_t)


def matmat(const int64_t[::1] indptr, const index[::1] indices, const real[::1] data, const double[:, ::1] W,
           double[:, ::1] Z, int n_threads):
    """Z = A W for A in compressed rows, W (p, K), Z (n, K)."""
    cdef Py_ssize_t n = Z.shape[0], K = Z.shape[1], b, parts = min(16, max(n // 64, 1)), lo, hi
    if data.shape[0] == 0 or W.shape[0] == 0 or n == 0:
        Z[:, :] = 0.0
        return
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        lo = (n * b) // parts
        hi = (n * (b + 1)) // parts
        if index is int32_t:
            if real is float:
                sk_matmat_i32_f32(&indptr[0], &indices[0], &data[0], &W[0, 0], &Z[0, 0], lo, hi, K)
            else:
                sk_matmat_i32_f64(&indptr[0], &indices[0], &data[0], &W[0, 0], &Z[0, 0], lo, hi, K)
        else:
            if real is float:
                sk_matmat_i64_f32(&indptr[0], &indices[0], &data[0], &W[0, 0], &Z[0, 0], lo, hi, K)
            else:
                sk_matmat_i64_f64(&indptr[0], &indices[0], &data[0], &W[0, 0], &Z[0, 0], lo, hi, K)


def rmatmat(const int64_t[::1] indptr, const index[::1] indices, const real[::1] data, const double[:, ::1] U,
            double[:, ::1] G, int n_threads):
    """G = A^T U for A in compressed rows, U (n, K), G (p, K).

    If G is small, threads sum parts of the rows, whose number depends on the shapes alone. Otherwise each
    thread has some of the classes. Either way the order of each sum does not depend on the number of threads.
    """
    cdef Py_ssize_t n = U.shape[0], p = G.shape[0], K = U.shape[1], b, i, j, k0, k1, lo, hi
    cdef Py_ssize_t parts = 4 if p * K <= _SMALL_TABLE and data.shape[0] >= 16 * p else 1
    cdef double[:, :, ::1] work
    if data.shape[0] == 0 or n == 0:
        G[:, :] = 0.0
        return
    if parts > 1:
        work = np.zeros((parts, p, K))
        for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
            lo = (n * b) // parts
            hi = (n * (b + 1)) // parts
            _rmatmat(&indptr[lo], &indices[0], &data[0], &U[lo, 0], &work[b, 0, 0], hi - lo, K, 0, K)
        np.asarray(work).sum(axis=0, out=np.asarray(G))
        return
    G[:, :] = 0.0
    parts = max(min(<Py_ssize_t>n_threads, K // 4), 1)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        k0 = (K * b) // parts
        k1 = (K * (b + 1)) // parts
        _rmatmat(&indptr[0], &indices[0], &data[0], &U[0, 0], &G[0, 0], n, K, k0, k1)


cdef void _rmatmat(const int64_t* indptr, const index* indices, const real* data, const double* U, double* G,
                   Py_ssize_t n, Py_ssize_t K, Py_ssize_t k0, Py_ssize_t k1) noexcept nogil:
    if index is int32_t:
        if real is float:
            sk_rmatmat_i32_f32(indptr, indices, data, U, G, n, K, k0, k1)
        else:
            sk_rmatmat_i32_f64(indptr, indices, data, U, G, n, K, k0, k1)
    else:
        if real is float:
            sk_rmatmat_i64_f32(indptr, indices, data, U, G, n, K, k0, k1)
        else:
            sk_rmatmat_i64_f64(indptr, indices, data, U, G, n, K, k0, k1)


def value_and_derivative(const double[:, ::1] Z, const int32_t[::1] codes, const double[::1] s,
                         double[:, ::1] U, int n_threads):
    """sum_i s_i (logsumexp z_i - z_{i, c_i}); U (n, K) gets its derivative in Z."""
    cdef Py_ssize_t n = Z.shape[0], K = Z.shape[1], b, parts = min(16, max(n // 256, 1))
    cdef const double* weights = &s[0] if s.shape[0] else NULL
    cdef double sums[16]
    cdef double total = 0.0
    if n == 0:
        return 0.0
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        sums[b] = sk_multinomial_all(&Z[0, 0], &codes[0], weights, &U[0, 0], (n * b) // parts,
                                     (n * (b + 1)) // parts, K)
    for b in range(parts):
        total += sums[b]
    return total


def target_value_and_derivative(const double[:, ::1] Z, const double[:, ::1] Q, const double[::1] s,
                                double[:, ::1] U, int n_threads):
    """sum_i s_i (logsumexp z_i - <q_i, z_i>); U (n, K) gets its derivative in Z."""
    cdef Py_ssize_t n = Z.shape[0], K = Z.shape[1], b, parts = min(16, max(n // 256, 1))
    cdef double sums[16]
    cdef double total = 0.0
    if n == 0:
        return 0.0
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        sums[b] = sk_target_all(&Z[0, 0], &Q[0, 0], &s[0], &U[0, 0], (n * b) // parts, (n * (b + 1)) // parts, K)
    for b in range(parts):
        total += sums[b]
    return total


def model_probabilities(const double[:, ::1] Z, const double[::1] radius, double[:, ::1] P, double[::1] rest,
                        int32_t[::1] top, int n_threads):
    """Softmax P (n, K) without each row's largest entry: ``top`` names it, ``rest`` is 1 - it.

    A ``radius`` (n,), or empty, raises the scores of the other classes towards the largest.
    """
    cdef Py_ssize_t n = Z.shape[0], K = Z.shape[1], b, parts = min(16, max(n // 256, 1))
    cdef const double* raised = &radius[0] if radius.shape[0] else NULL
    if n == 0:
        return
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        sk_multinomial_model(&Z[0, 0], raised, &P[0, 0], &rest[0], &top[0], (n * b) // parts,
                             (n * (b + 1)) // parts, K)


cdef sk_class_rows _rows_of(const int64_t[::1] indptr, const int32_t[::1] indices, const double[:, ::1] P,
                            const double[::1] rest, const int32_t[::1] top, const double[::1] s) noexcept:
    # with at least one row
    cdef sk_class_rows of
    of.ptr, of.col = &indptr[0], &indices[0] if indices.shape[0] else NULL
    of.P, of.rest, of.top, of.s, of.K = &P[0, 0], &rest[0], &top[0], &s[0], P.shape[1]
    return of


cdef sk_class_variables _variables(const int32_t[::1] first, const int32_t[::1] classes, bint intercept) noexcept:
    # at least one
    cdef sk_class_variables on
    on.first, on.cls, on.intercept = &first[0], &classes[0], intercept
    on.F, on.m = first.shape[0] - 2, classes.shape[0]
    return on


def class_gram(const int64_t[::1] indptr, const int32_t[::1] indices, const real[::1] data, probabilities,
               const double[::1] s, variables, bint intercept, Py_ssize_t longest, double[:, :, ::1] work,
               int n_threads):
    """work[0] = the Hessian on m variables, those of feature f at first[f] .. first[f + 1].

    ``probabilities`` are P, rest and top of `model_probabilities`; ``variables`` are first and the classes (m,).
    ``work`` (parts, m, m) has a partial sum for each part of the rows; ``longest`` bounds the
    entries that a row gives.
    """
    cdef Py_ssize_t parts = work.shape[0], m = work.shape[1], n = s.shape[0], b, i, j
    cdef int32_t[:, :, ::1] numbers = np.empty((parts, 2, longest + 1), dtype=np.int32)
    cdef double[:, :, ::1] values = np.empty((parts, 2, longest + 1))
    cdef const real* val = &data[0] if data.shape[0] else NULL
    cdef sk_class_rows of
    cdef sk_class_variables on
    cdef sk_class_entries entries
    work[:, :, :] = 0.0
    if n == 0 or m == 0:
        return
    P, rest, top = probabilities
    first, classes = variables
    of, on = _rows_of(indptr, indices, P, rest, top, s), _variables(first, classes, intercept)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        # assigned as a whole: each thread has its own then
        entries = sk_class_entries(&numbers[b, 0, 0], &numbers[b, 1, 0], &values[b, 0, 0], &values[b, 1, 0])
        if real is float:
            sk_class_gram_f32(of, val, on, (n * b) // parts, (n * (b + 1)) // parts, &work[b, 0, 0], entries)
        else:
            sk_class_gram_f64(of, val, on, (n * b) // parts, (n * (b + 1)) // parts, &work[b, 0, 0], entries)
    with nogil:
        for b in range(1, parts):
            for i in range(m):
                for j in range(i + 1):
                    work[0, i, j] += work[b, i, j]
        for i in range(m):
            for j in range(i):
                work[0, j, i] = work[0, i, j]


def class_factors(const int64_t[::1] indptr, const int32_t[::1] indices, const real[::1] data, probabilities,
                  const double[::1] s, variables, const int32_t[::1] at, bint intercept, Py_ssize_t start,
                  out_real[:, ::1] U, out_real[:, ::1] V, int n_threads):
    """Rows start .. of U = s^(1/2) x p and V = (s p (1 - p))^(1/2) x, (rows, m) each.

    ``probabilities`` are P, rest and top of `model_probabilities`; ``variables`` are first and the classes (m,):
    those of feature f are first[f] .. first[f + 1], variable v in column at[v].
    """
    cdef Py_ssize_t n = U.shape[0], m = U.shape[1], b, lo, hi, parts = min(16, max(n // 16, 1))
    cdef const real* val = &data[0] if data.shape[0] else NULL
    cdef out_real[:, ::1] scratch
    cdef sk_class_rows of
    cdef sk_class_variables on
    if n == 0 or m == 0:
        return
    P, rest, top = probabilities
    first, classes = variables
    of, on = _rows_of(indptr, indices, P, rest, top, s), _variables(first, classes, intercept)
    scratch = np.empty((parts, 2 * of.K), dtype=np.float32 if out_real is float else np.float64)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        lo = start + (n * b) // parts
        hi = start + (n * (b + 1)) // parts
        if real is float:
            if out_real is float:
                sk_class_factors_f32_f32(of, val, on, &at[0], lo, hi, start, &U[0, 0], &V[0, 0], &scratch[b, 0])
            else:
                sk_class_factors_f32_f64(of, val, on, &at[0], lo, hi, start, &U[0, 0], &V[0, 0], &scratch[b, 0])
        else:
            if out_real is float:
                sk_class_factors_f64_f32(of, val, on, &at[0], lo, hi, start, &U[0, 0], &V[0, 0], &scratch[b, 0])
            else:
                sk_class_factors_f64_f64(of, val, on, &at[0], lo, hi, start, &U[0, 0], &V[0, 0], &scratch[b, 0])


def row_entries(const int64_t[::1] indptr, const index[::1] indices, const int64_t[::1] counts, int64_t[::1] out,
                int n_threads):
    """out[i] = sum over the entries of row i of counts[column]."""
    cdef Py_ssize_t n = out.shape[0], i, e
    cdef int64_t total
    for i in prange(n, nogil=True, num_threads=n_threads, schedule='static'):
        total = 0
        for e in range(indptr[i], indptr[i + 1]):
            total = total + counts[indices[e]]
        out[i] = total


cdef class _ClassOperator(QuadOperator):
    """Base: variables at ``place`` in a (features + 1, classes) table, float32 inside."""
    cdef const float[:, ::1] P
    cdef const int32_t[::1] top
    cdef const float[::1] weight
    cdef const int64_t[::1] place
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
            V[self.place[i]] = <float>(v[i] / scale)
        return scale

    cdef void _store(self, const double* v, double* out, double scale) noexcept nogil:
        cdef Py_ssize_t i, b, m = self.size, parts = self.work.shape[0]
        cdef Py_ssize_t stride = self.work.shape[1] * self.work.shape[2]
        cdef const float* table = &self.work[0, 0, 0]
        cdef double acc
        for i in range(m):
            acc = 0.0
            for b in range(parts):
                acc += table[b * stride + self.place[i]]
            out[i] = acc * scale + self.ridge * self.diagonal[i] * v[i]
        self.add_plus(v, out)


cdef class ClassRowOperator(_ClassOperator):
    """H v by one fused pass over compressed float32 rows.

    ``P`` (n, K) has K padded with zeros to a multiple of 8. ``place`` (m,) is feature * K + class with that
    padded K. The intercepts are the feature after the last.
    """
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] indices
    cdef const float[::1] data
    cdef float[:, ::1] score

    def __init__(self, indptr, indices, data, F, P, top, weight, place, diagonal, bint intercept,
                 double ridge, int n_threads):
        self.indptr, self.indices, self.data = indptr, indices, data
        self.F, self.K = F, P.shape[1]
        self.P, self.top, self.weight, self.place = P, top, weight, place
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

    def __init__(self, A, P, top, weight, place, diagonal, bint intercept, double ridge):
        self.A = A
        self.F, self.K = A.shape[1], P.shape[1]
        self.P, self.top, self.weight, self.place = P, top, weight, place
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
