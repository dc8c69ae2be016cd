cdef class QuadOperator:
    cdef readonly int size
    cdef readonly double ridge
    # whether ``factor`` is cheap for any free set and needs no ``work``
    cdef readonly bint always_direct
    cdef readonly long n_products
    cdef double[::1] diagonal
    cdef void product(self, const double* v, double* out) noexcept nogil
    cdef bint sweep(self, double* x, double* grad, const double* l1, int n_sweeps) noexcept nogil
    cdef bint factor(self, const int* free, int n_free, double* rhs, double* work) noexcept nogil
