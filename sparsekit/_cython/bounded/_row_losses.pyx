"""Losses of one predictor a row: value, slope, dual variable and second derivative, and slopes along a line.

All arrays have length n and float64. ``s`` are the rows' weights; ``c`` (signs) and ``prev`` may be None.
"""
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
