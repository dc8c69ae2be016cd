cdef class FaceFactor:
    # the right-hand side and the solution
    cdef double[::1] v
    # whether each variable is on the face
    cdef char[::1] inside
    cdef readonly bint crowded
    cdef void forget(self) noexcept nogil
    cdef void face(self) noexcept nogil
    cdef void solve(self) noexcept nogil


cdef class Factor(FaceFactor):
    cdef double[:, ::1] A, columns, schur
    cdef double[::1] shift
    cdef int[::1] slot, out
    cdef int n_slots, n_out
