cdef inline double median(double a, double b, double c) noexcept nogil:
    if a > b:
        a, b = b, a
    if b > c:
        b = c if c > a else a
    return b
