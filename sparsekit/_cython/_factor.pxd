cdef class Factor:
    cdef double[:, ::1] A, columns, schur
    # the right-hand side and the solution
    cdef double[::1] v
    cdef double[::1] shift
    # whether each variable is on the face
    cdef char[::1] inside
    cdef int[::1] slot, out
    cdef int n_slots, n_out
    cdef readonly bint crowded
    cdef void forget(self) noexcept nogil
    cdef void face(self) noexcept nogil
    cdef void solve(self) noexcept nogil
