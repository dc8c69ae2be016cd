cdef class Columns:
    cdef readonly Py_ssize_t m
    cdef readonly double[::1] curvature, pulls
    # passes over all columns
    cdef readonly long n_passes
    cdef bint fresh, has_products
    cdef double[::1] x
    cdef double pull(self, Py_ssize_t j) noexcept nogil
    cdef void move(self, Py_ssize_t j, double step) noexcept nogil
    cdef void all_pulls(self) noexcept nogil
    cdef void half_and_along_y(self, double* half, double* along) noexcept nogil
    cdef double size_of_residuals(self) noexcept nogil
    cdef double rounding(self) noexcept nogil
    cdef void face_matrix(self, const int* face, int k, double* H) noexcept nogil
    cdef void face_product(self, const int* face, int k, const double* p, double* q) noexcept nogil
    cdef double length(self, Py_ssize_t j) noexcept nogil
    cdef double matrix_cost(self, int k, double total) noexcept nogil
    cdef void begin(self) noexcept nogil
    cdef void refresh(self) noexcept nogil
