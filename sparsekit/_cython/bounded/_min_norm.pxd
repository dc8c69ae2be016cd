# The point of least norm in a convex hull, for other kernels; see _min_norm.pyx.
cdef Py_ssize_t min_norm_buffer_size(Py_ssize_t k) noexcept nogil
cdef Py_ssize_t min_norm(Py_ssize_t k, const double* gram, Py_ssize_t stride, double tol, double* weights,
                         double* buffer, Py_ssize_t* chosen) noexcept nogil
