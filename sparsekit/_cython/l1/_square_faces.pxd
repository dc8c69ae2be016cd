from ._square_columns cimport GramColumns

cdef double sweeps_of_a_face(GramColumns c, int k) noexcept nogil
cdef bint step_on_faces(GramColumns c, const double[::1] l1, const double[::1] l2, bint positive, const int* some,
                        int n_some) except -1 nogil
