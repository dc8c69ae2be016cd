"""Loss loops of the two-class and regression losses: value, first and second derivative.

All arrays have length n. ``z`` is the linear predictor, ``y`` the target, ``s`` the sample
weight (or length 0 for all ones); ``u`` gets dloss/dz and ``d`` gets d2loss/dz2. Losses are
sums, not means.
"""

cdef extern from "shared/kernels.h" nogil:
    double sk_logistic_value(const double* z, const double* y, const double* s, Py_ssize_t n)
    double sk_logistic_all(const double* z, const double* y, const double* s, double* u, double* d,
                           Py_ssize_t n)


def logistic_value(const double[::1] z, const double[::1] y, const double[::1] s):
    """sum_i s_i log(1 + exp(-y_i z_i)), y_i in {-1, +1}."""
    cdef Py_ssize_t n = z.shape[0]
    cdef const double* weight = &s[0] if s.shape[0] else NULL
    cdef double value
    if n == 0:
        return 0.0
    with nogil:
        value = sk_logistic_value(&z[0], &y[0], weight, n)
    return value


def logistic_derivatives(const double[::1] z, const double[::1] y, const double[::1] s,
                         double[::1] u, double[::1] d):
    """Value; u = -s y sigma(-y z), d = s sigma(z) sigma(-z)."""
    cdef Py_ssize_t n = z.shape[0]
    cdef const double* weight = &s[0] if s.shape[0] else NULL
    cdef double value
    if n == 0:
        return 0.0
    with nogil:
        value = sk_logistic_all(&z[0], &y[0], weight, &u[0], &d[0], n)
    return value


def squared_value(const double[::1] z, const double[::1] y, const double[::1] s):
    """1/2 sum_i s_i (z_i - y_i)^2."""
    cdef Py_ssize_t n = z.shape[0], i
    cdef bint weighted = s.shape[0] > 0
    cdef double value = 0.0, r
    with nogil:
        for i in range(n):
            r = z[i] - y[i]
            value += (s[i] if weighted else 1.0) * r * r
    return 0.5 * value


def squared_derivatives(const double[::1] z, const double[::1] y, const double[::1] s,
                        double[::1] u, double[::1] d):
    """Value; u = s (z - y), d = s."""
    cdef Py_ssize_t n = z.shape[0], i
    cdef bint weighted = s.shape[0] > 0
    cdef double value = 0.0, r, si
    with nogil:
        for i in range(n):
            si = s[i] if weighted else 1.0
            r = z[i] - y[i]
            u[i] = si * r
            d[i] = si
            value += si * r * r
    return 0.5 * value


def axpy_rows(const double[::1] z, double step, const double[::1] dz, double[::1] out):
    """out = z + step * dz."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(z.shape[0]):
            out[i] = z[i] + step * dz[i]
