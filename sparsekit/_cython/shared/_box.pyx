"""Steps in a box: bound and free variables, and the feasible part of a direction."""

cdef extern from "shared/box.h" nogil:
    Py_ssize_t sk_free_variables(Py_ssize_t, const double*, const double*, const double*, const double*,
                                 unsigned char*)
    double sk_feasible_part(Py_ssize_t, const double*, const double*, const double*, const double*, const double*,
                            double*)
    double sk_feasible_slope(Py_ssize_t, const double*, const double*, const double*, const double*, const double*)
    double sk_optimality(Py_ssize_t, const double*, const double*, const double*, const double*)
    void sk_trial_point(Py_ssize_t, const double*, const double*, double, const double*, const double*, double*)
    double sk_longest_step(Py_ssize_t, const double*, const double*, const double*, const double*)


def free_variables(const double[::1] x, const double[::1] g, const double[::1] lower, const double[::1] upper,
                   unsigned char[::1] free):
    """free (n,) becomes 1 outside B(g) of (3.4), else 0; returns the number of free variables."""
    return sk_free_variables(x.shape[0], &x[0], &g[0], &lower[0], &upper[0], &free[0])


def feasible_part(const double[::1] x, const double[::1] p, const double[::1] g, const double[::1] lower,
                  const double[::1] upper, double[::1] out):
    """out (n,) becomes T(x, p) of (3.3); returns g . T(x, p)."""
    return sk_feasible_part(x.shape[0], &x[0], &p[0], &g[0], &lower[0], &upper[0], &out[0])


def feasible_slope(const double[::1] x, const double[::1] p, const double[::1] g, const double[::1] lower,
                   const double[::1] upper):
    """g . T(x, p)."""
    return sk_feasible_slope(x.shape[0], &x[0], &p[0], &g[0], &lower[0], &upper[0])


def optimality(const double[::1] x, const double[::1] g, const double[::1] lower, const double[::1] upper):
    """max_i |T(x, -g)_i|."""
    return sk_optimality(x.shape[0], &x[0], &g[0], &lower[0], &upper[0])


def trial_point(const double[::1] x, const double[::1] p, double alpha, const double[::1] lower,
                const double[::1] upper, double[::1] out):
    """out (n,) becomes P(x + alpha p)."""
    sk_trial_point(x.shape[0], &x[0], &p[0], alpha, &lower[0], &upper[0], &out[0])


def longest_step(const double[::1] x, const double[::1] p, const double[::1] lower, const double[::1] upper):
    """The largest step at which some variable is still on its way to its bound; p = T(x, p), x in the box."""
    return sk_longest_step(x.shape[0], &x[0], &p[0], &lower[0], &upper[0])
