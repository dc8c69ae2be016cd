"""Losses of one predictor a row: value, slope, dual variable and second derivative, and slopes along a line.

All arrays have length n and float64. ``s`` are the rows' weights; ``c`` (signs) and ``prev`` may be None.
"""
import numpy as np

from cython.parallel cimport prange
from ..shared._blas cimport dgemv, sgemv

ctypedef fused real:
    float
    double


cdef extern from "bounded/row_losses.h" nogil:
    ctypedef struct sk_piecewise:
        double lo, hi, eps, delta, inverse
    double sk_piecewise_all(const double*, const double*, const double*, const double*, const double*, sk_piecewise,
                            double*, double*, double*, Py_ssize_t)
    double sk_piecewise_along(const double*, const double*, double, const double*, const double*, const double*,
                              const double*, sk_piecewise, Py_ssize_t)
    double sk_log_loss_all(const double*, const double*, const double*, const double*, double*, double*, double*,
                           Py_ssize_t)
    double sk_log_loss_along(const double*, const double*, double, const double*, const double*, const double*,
                             Py_ssize_t)


cdef const double* _start(const double[::1] a) noexcept:  # returns a pointer, cannot fail
    return NULL if a is None or a.shape[0] == 0 else &a[0]


# copies numbers, in which nothing can be raised
cdef sk_piecewise _loss(double lo, double hi, double eps, double delta) noexcept:
    cdef sk_piecewise h
    h.lo, h.hi, h.eps, h.delta = lo, hi, eps, delta
    # a kink is the limit of small delta: r / delta leaves [lo, hi] unless r is 0
    h.inverse = 1.0 / delta if delta > 0.0 else 1e300
    return h


def piecewise_all(const double[::1] z, const double[::1] t, const double[::1] c, const double[::1] s,
                  const double[::1] prev, double lo, double hi, double eps, double delta, double[::1] u,
                  double[::1] dual, double[::1] d):
    """sum_i s_i h(c_i (z_i - t_i)), h* = eps |a| + delta/2 (a - prev_i)^2 on lo <= a <= hi.

    Fills ``dual`` with a_i, the slope of h, u with s c a (the slope in z), d with the second derivative in z.
    """
    cdef Py_ssize_t n = z.shape[0]
    cdef sk_piecewise h = _loss(lo, hi, eps, delta)
    cdef const double* sign = _start(c)
    cdef const double* centre = _start(prev)
    cdef double value
    if n == 0:
        return 0.0
    with nogil:
        value = sk_piecewise_all(&z[0], &t[0], sign, &s[0], centre, h, &u[0], &dual[0], &d[0], n)
    return value


def piecewise_along(const double[::1] z, const double[::1] dz, double step, const double[::1] t, const double[::1] c,
                    const double[::1] s, const double[::1] prev, double lo, double hi, double eps, double delta):
    """The derivative of `piecewise_all` along z + step dz."""
    cdef Py_ssize_t n = z.shape[0]
    cdef sk_piecewise h = _loss(lo, hi, eps, delta)
    cdef const double* sign = _start(c)
    cdef const double* centre = _start(prev)
    cdef double value
    if n == 0:
        return 0.0
    with nogil:
        value = sk_piecewise_along(&z[0], &dz[0], step, &t[0], sign, &s[0], centre, h, n)
    return value


def log_loss_all(const double[::1] z, const double[::1] t, const double[::1] c, const double[::1] s, double[::1] u,
                 double[::1] dual, double[::1] d):
    """sum_i s_i log(1 + exp(-c_i (z_i - t_i))), c_i in {-1, +1}; fills the others as `piecewise_all` does."""
    cdef Py_ssize_t n = z.shape[0]
    cdef double value
    if n == 0:
        return 0.0
    with nogil:
        value = sk_log_loss_all(&z[0], &t[0], &c[0], &s[0], &u[0], &dual[0], &d[0], n)
    return value


def log_loss_along(const double[::1] z, const double[::1] dz, double step, const double[::1] t, const double[::1] c,
                   const double[::1] s):
    """The derivative of `log_loss_all` along z + step dz."""
    cdef Py_ssize_t n = z.shape[0]
    cdef double value
    if n == 0:
        return 0.0
    with nogil:
        value = sk_log_loss_along(&z[0], &dz[0], step, &t[0], &c[0], &s[0], n)
    return value


cdef void _gemv(bint transposed, const real* A, int rows, int cols, const real* v, real* out, real beta) noexcept nogil:
    # out = A v, or A^T v + beta out; A (rows, cols) in C order is a Fortran (cols, rows) matrix. BLAS has no errors
    cdef int one = 1
    cdef char trans = b'N' if transposed else b'T'
    cdef real alpha = 1.0
    if real is double:
        dgemv(&trans, &cols, &rows, &alpha, <double*>A, &cols, <double*>v, &one, &beta, out, &one)
    else:
        sgemv(&trans, &cols, &rows, &alpha, <float*>A, &cols, <float*>v, &one, &beta, out, &one)


cdef struct row_arrays:
    # t, c, s and prev of a loss, c and prev perhaps NULL, and what it fills for predictors z
    const double* t
    const double* c
    const double* s
    const double* prev
    double* z
    double* u
    double* dual
    double* d


cdef double _evaluate(bint logistic, sk_piecewise h, row_arrays r, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
    # n rows from row i on
    cdef const double* c = NULL if r.c == NULL else r.c + i
    cdef const double* prev = NULL if r.prev == NULL else r.prev + i
    if logistic:
        return sk_log_loss_all(r.z + i, r.t + i, c, r.s + i, r.u + i, r.dual + i, r.d + i, n)
    return sk_piecewise_all(r.z + i, r.t + i, c, r.s + i, prev, h, r.u + i, r.dual + i, r.d + i, n)


cdef double _pass_part(const real[:, ::1] X, const real* w, double b, Py_ssize_t first, Py_ssize_t last,
                       Py_ssize_t height, bint logistic, sk_piecewise h, row_arrays r, real* buffer,
                       real* g) noexcept nogil:
    cdef Py_ssize_t p = X.shape[1], at, i, rows
    cdef double total = 0.0
    for i in range(p):
        g[i] = 0.0
    at = first
    while at < last:
        rows = min(height, last - at)
        _gemv(False, &X[at, 0], <int>rows, <int>p, w, buffer, <real>0.0)
        for i in range(rows):
            r.z[at + i] = buffer[i] + b
        total += _evaluate(logistic, h, r, at, rows)
        for i in range(rows):
            buffer[i] = r.u[at + i]
        # the rows are still in cache
        _gemv(True, &X[at, 0], <int>rows, <int>p, buffer, g, <real>1.0)
        at += rows
    return total


def dense_pass(const real[:, ::1] X, const real[::1] w, double b, loss, double delta, const double[::1] prev,
               double[::1] z, rows, double[::1] gradient, Py_ssize_t height, Py_ssize_t parts, int n_threads):
    """Value at z = X w + b, for X (n, p) in C order, neither 0, in one pass over X by blocks of ``height`` rows.

    ``loss`` has t, c and s, each (n,), and lo, hi, eps, or ``is_logistic``. Fills z, gradient = X^T u, and u, dual and
    curvature of ``rows`` as `piecewise_all` or `log_loss_all` do. The result does not depend on ``n_threads``, but
    on the number of ``parts`` that they share.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], k, j
    cdef bint logistic = loss.is_logistic
    cdef sk_piecewise h = _loss(loss.lo, loss.hi, loss.eps, delta)
    cdef const double[::1] t = loss.t, c = loss.c, s = loss.s
    cdef double[::1] u = rows.u, dual = rows.dual, d = rows.curvature
    cdef row_arrays r = row_arrays(&t[0], _start(c), &s[0], _start(prev), &z[0], &u[0], &dual[0], &d[0])
    dtype = np.float64 if real is double else np.float32
    cdef real[:, ::1] sums = np.empty((parts, p), dtype=dtype)
    cdef real[:, ::1] buffers = np.empty((parts, height), dtype=dtype)
    cdef double[::1] values = np.empty(parts)
    cdef double total = 0.0
    for k in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        values[k] = _pass_part(X, &w[0], b, (n * k) // parts, (n * (k + 1)) // parts, height, logistic, h, r,
                               &buffers[k, 0], &sums[k, 0])
    gradient[:] = 0.0
    for k in range(parts):
        total += values[k]
        for j in range(p):
            gradient[j] += sums[k, j]
    return total
