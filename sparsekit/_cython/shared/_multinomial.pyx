"""Kernels of the multinomial loss: products with several right-hand sides, softmax, Gram matrices."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

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
