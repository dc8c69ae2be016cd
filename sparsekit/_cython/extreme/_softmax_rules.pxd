# What the kernels of softmax with very many classes share; see softmax_rules.h.
from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t

cdef extern from "extreme/softmax_rules.h" nogil:
    ctypedef struct sk_table:
        Py_ssize_t n_classes, n_features
        int shift
        void *W
        void *bias
        double *scale
        const double *beta

    ctypedef struct sk_rule:
        int method
        Py_ssize_t n_negatives, batch_size
        double eta, ridge, log_ratio
        const double *noise
        const double *log_noise
        const double *keep
        const int64_t *alias

    ctypedef struct sk_rows:
        const void *x
        const void *col
        const void *start
        Py_ssize_t width
        const int64_t *of
        const int64_t *y
        const double *weight
        double *u

    ctypedef struct sk_workspace:
        int64_t *k
        double *f
        double *g
        double *r
        double *rho
        double *q
        Py_ssize_t *count
        double *s
        double *eta
        int64_t *blocks
        int64_t *slot
        double *weights


# These take addresses and copy numbers, in which nothing can be raised: hence noexcept.


cdef inline double* pointer(double[::1] a) noexcept:
    return NULL if a is None or a.shape[0] == 0 else &a[0]


cdef inline const double* const_pointer(const double[::1] a) noexcept:
    return NULL if a is None or a.shape[0] == 0 else &a[0]


cdef inline const int64_t* int_pointer(const int64_t[::1] a) noexcept:
    return NULL if a is None or a.shape[0] == 0 else &a[0]


cdef inline sk_rows make_rows(rows, const void* x, const void* col, const void* start, const int64_t[::1] y,
                              double[::1] u):
    cdef const int64_t[::1] row_of = rows.row_of
    cdef const double[::1] weight = rows.weight
    cdef sk_rows out
    out.x = x
    out.col = col
    out.start = start
    out.width = rows.n_features
    out.of = int_pointer(row_of)
    out.y = int_pointer(y)
    out.weight = const_pointer(weight)
    out.u = pointer(u)
    return out


cdef inline sk_rule make_rule(
        int method, Py_ssize_t n_negatives, Py_ssize_t batch_size, double eta, double ridge, Py_ssize_t n_classes,
        const double[::1] noise, const double[::1] log_noise, const double[::1] keep,
        const int64_t[::1] alias) noexcept:
    cdef sk_rule rule
    rule.method = method
    rule.n_negatives = n_negatives
    rule.batch_size = batch_size
    rule.eta = eta
    rule.ridge = ridge
    # K - 1 classes are all there are to draw
    rule.log_ratio = log(max(1.0, <double>(n_classes - 1) / <double>n_negatives))
    rule.noise = const_pointer(noise)
    rule.log_noise = const_pointer(log_noise)
    rule.keep = const_pointer(keep)
    rule.alias = int_pointer(alias)
    return rule
