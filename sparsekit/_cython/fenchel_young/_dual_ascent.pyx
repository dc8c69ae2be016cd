"""Sweeps of block coordinate ascent on the dual of sparsemax regression."""
import numpy as np

from libc.stdint cimport int32_t, int64_t

ctypedef fused real:
    float
    double


cdef extern from "fenchel_young/dual_ascent.h" nogil:
    void sk_ascend_f32(const int64_t*, const int32_t*, const float*, const int64_t*, Py_ssize_t, const double*,
                       const double*, double*, double*, Py_ssize_t, int, double, double*, Py_ssize_t)
    void sk_ascend_f64(const int64_t*, const int32_t*, const double*, const int64_t*, Py_ssize_t, const double*,
                       const double*, double*, double*, Py_ssize_t, int, double, double*, Py_ssize_t)
    void sk_ascend_dense_f32(const float*, Py_ssize_t, const int64_t*, Py_ssize_t, const double*, const double*,
                             double*, double*, Py_ssize_t, int, double, double*, Py_ssize_t)
    void sk_ascend_dense_f64(const double*, Py_ssize_t, const int64_t*, Py_ssize_t, const double*, const double*,
                             double*, double*, Py_ssize_t, int, double, double*, Py_ssize_t)


def ascend(const int64_t[::1] indptr, const int32_t[::1] indices, const real[::1] data, const int64_t[::1] order,
           const double[::1] weight, const double[::1] squares, double[:, ::1] P, double[:, ::1] W, bint intercept,
           double alpha):
    """Ascend by the rows ``order`` of compressed X, one after another.

    P (n, K) are the rows' distributions and W (p + intercept, K) their table, both updated in place.
    ``squares`` (n,) are the squared norms of the rows, with the intercept's.
    """
    cdef Py_ssize_t K = P.shape[1], p = W.shape[0] - intercept
    cdef double[::1] work = np.empty(2 * K)
    cdef const int32_t* col = &indices[0] if indices.shape[0] else NULL
    cdef const real* val = &data[0] if data.shape[0] else NULL
    if order.shape[0] == 0 or K == 0 or W.shape[0] == 0:
        return
    with nogil:
        if real is float:
            sk_ascend_f32(&indptr[0], col, val, &order[0], order.shape[0], &weight[0], &squares[0], &P[0, 0],
                          &W[0, 0], p, intercept, alpha, &work[0], K)
        else:
            sk_ascend_f64(&indptr[0], col, val, &order[0], order.shape[0], &weight[0], &squares[0], &P[0, 0],
                          &W[0, 0], p, intercept, alpha, &work[0], K)


def ascend_dense(const real[:, :] X, const int64_t[::1] order, const double[::1] weight,
                 const double[::1] squares, double[:, ::1] P, double[:, ::1] W, bint intercept, double alpha):
    """The same for dense X of unit stride within a row."""
    cdef Py_ssize_t K = P.shape[1], p = W.shape[0] - intercept
    cdef double[::1] work = np.empty(2 * K)
    cdef const real* x = &X[0, 0] if X.shape[0] and X.shape[1] else NULL
    cdef Py_ssize_t stride = X.strides[0] // sizeof(real)
    if order.shape[0] == 0 or K == 0 or W.shape[0] == 0:
        return
    with nogil:
        if real is float:
            sk_ascend_dense_f32(x, stride, &order[0], order.shape[0], &weight[0], &squares[0], &P[0, 0], &W[0, 0],
                                p, intercept, alpha, &work[0], K)
        else:
            sk_ascend_dense_f64(x, stride, &order[0], order.shape[0], &weight[0], &squares[0], &P[0, 0], &W[0, 0],
                                p, intercept, alpha, &work[0], K)
