cdef class GramColumns:
    cdef readonly Py_ssize_t m
    cdef readonly double[::1] curvature, correlations
    cdef const double[:, ::1] G
    cdef const double[::1] c
    cdef double yy
    cdef double[::1] x
    cdef void begin(self) noexcept nogil
    cdef void move(self, Py_ssize_t j, double step) noexcept nogil
    cdef void half_and_along_y(self, double* half, double* along) noexcept nogil
    cdef double rounding(self) noexcept nogil
