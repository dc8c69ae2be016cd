from libc.math cimport INFINITY


cdef inline double below_zero(double l1, bint one_sided) noexcept nogil:
    # the penalty of a negative value: infinite where ``one_sided``, but for variables without a penalty
    return INFINITY if one_sided and l1 > 0.0 else l1


cdef inline double median(double a, double b, double c) noexcept nogil:
    if a > b:
        a, b = b, a
    if b > c:
        b = c if c > a else a
    return b


cdef double search_line(int m, const double* x, const double* d, const double* hd, const double* grad,
                        const double* l1, bint one_sided, double* zero, double* out) noexcept nogil
