cdef inline double soft_step(double h, double x, double g, double l1, double below) noexcept nogil:
    # minimiser of h/2 (t - x)^2 + g (t - x) + l1 |t| over t, h > 0; ``below`` is the penalty of negative t
    cdef double t = h * x - g
    if t > l1:
        return (t - l1) / h
    if t < -below:
        return (t + below) / h
    return 0.0


cdef class QuadOperator:
    cdef readonly int size
    cdef readonly double ridge
    # what a product reads: "matrix" for H itself, "rows" or "dense" for the data; None for anything else
    cdef readonly str reads
    # whether ``factor`` is cheap for any free set and needs no ``work``
    cdef readonly bint always_direct
    # whether the last variable is an intercept, whose column of H the preconditioner may take out
    cdef readonly bint intercept
    cdef double[::1] common
    # whether variables with a penalty must not be negative
    cdef public bint one_sided
    # steps of the last model that went straight on through zeros, where the projected ones were worse
    cdef readonly int crossed
    cdef readonly long n_products
    # what a user's function raised
    cdef public object error
    # with what `add_diagonal` added, which ``plus`` holds; NULL for nothing
    cdef double[::1] diagonal
    cdef const double[::1] added
    cdef const double* plus
    cdef void add_plus(self, const double* v, double* out) noexcept nogil
    cdef void product(self, const double* v, double* out) noexcept nogil
    cdef void precondition(self, const double* r, const signed char* kind, double* p) noexcept nogil
    cdef double apart(self, Py_ssize_t j) noexcept nogil
    cdef bint sweep(self, double* x, double* grad, const double* l1, int n_sweeps) noexcept nogil
    cdef bint copy_face(self, const int* free, int n_free, double* work) noexcept nogil
    cdef bint factor(self, const int* free, int n_free, double* rhs, double* work) noexcept nogil


cdef void face_product(const double* face, const int* free, int n_free, const double* v, double* out,
                       double* chosen, double* result) noexcept nogil
