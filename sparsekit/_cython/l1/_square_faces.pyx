"""Steps of least squares to the minimisers on faces of the orthant, for `_squares`."""
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc

from ..shared._blas cimport dposv
from ._square_columns cimport GramColumns


# sweeps that are always made before a step
cdef int _FIRST_SWEEPS = 4
# relative addition to the diagonal of a face's matrix, which may be singular
cdef double _RIDGE = 1e-12
# steps on faces in a row, at most, of which each but the last meets a zero
cdef int _MOST_CROSSINGS = 20


cdef double sweeps_of_a_face(GramColumns c, int k) noexcept nogil:
    # sweeps over a face that take as long as the step on it, a Cholesky factorisation
    return _FIRST_SWEEPS + (<double>k * k / 30.0 + k) / (0.5 * c.m + 20.0)


cdef double _on_face(GramColumns c, const double[::1] l1, const double[::1] l2, const int* face, int k) noexcept nogil:
    # the objective where all but the face is at zero
    cdef double half = 0.0, along = 0.0
    cdef int i
    cdef Py_ssize_t j
    c.half_and_along_y(&half, &along)
    for i in range(k):
        j = face[i]
        half += l1[j] * fabs(c.x[j]) + 0.5 * l2[j] * c.x[j] * c.x[j]
    return half


cdef bint step_on_faces(GramColumns c, const double[::1] l1, const double[::1] l2, bint positive, const int* some,
                        int n_some) except -1 nogil:
    # Step to the minimiser on the face of the orthant. Variables that would cross zero end at zero. If that does not
    # decrease the objective, the step ends at the first zero instead. Repeat on the smaller face. Returns False if the
    # face has no minimiser.
    cdef bint found
    cdef size_t n_entries = <size_t>n_some * n_some
    cdef int* face = <int*>malloc(sizeof(int) * (n_some + 1))
    cdef double* H = <double*>malloc(sizeof(double) * (n_entries + 2 * n_some))
    if H == NULL or face == NULL:
        free(H)
        free(face)
        with gil:
            raise MemoryError
    found = _step(c, l1, l2, positive, some, n_some, face, H, H + n_entries, H + n_entries + n_some)
    free(H)
    free(face)
    return found


cdef bint _step(GramColumns c, const double[::1] l1, const double[::1] l2, bint positive, const int* some, int n_some,
                int* face, double* H, double* d, double* old) noexcept nogil:
    # face, d, old (n_some) and H (n_some, n_some) are workspace
    cdef int i, k = 0, at, info = 0, one = 1, crossings = 0
    cdef double t, ratio, sign, before
    cdef char uplo = b'U'
    cdef Py_ssize_t j
    while crossings < _MOST_CROSSINGS:
        k = 0
        for i in range(n_some):
            if c.x[some[i]] != 0.0:
                face[k] = some[i]
                k += 1
        if k == 0:
            break
        for i in range(k):
            j = face[i]
            sign = 1.0 if c.x[j] > 0.0 else -1.0
            d[i] = c.correlations[j] - l1[j] * sign - l2[j] * c.x[j]
            old[i] = c.x[j]
        for i in range(k):
            for at in range(i + 1):
                H[<Py_ssize_t>i * k + at] = c.G[face[i], face[at]]
            H[<Py_ssize_t>i * k + i] = (H[<Py_ssize_t>i * k + i] + l2[face[i]]) * (1.0 + _RIDGE)
        dposv(&uplo, &k, &one, H, &k, d, &k, &info)
        if info != 0:
            return False
        t, at = 1.0, -1
        for i in range(k):
            if not fabs(d[i]) < INFINITY:
                return False
            if (l1[face[i]] > 0.0 or positive) and old[i] * d[i] < 0.0:
                ratio = -old[i] / d[i]
                if ratio < t:
                    t, at = ratio, i
        before = _on_face(c, l1, l2, face, k) if at >= 0 else 0.0
        for i in range(k):
            j = face[i]
            if (l1[j] > 0.0 or positive) and old[i] * (old[i] + d[i]) < 0.0:
                _put(c, j, 0.0)
            else:
                _put(c, j, old[i] + d[i])
        if at < 0:
            break
        if not _on_face(c, l1, l2, face, k) < before:
            for i in range(k):
                _put(c, face[i], 0.0 if i == at else old[i] + t * d[i])
        crossings += 1
    return True


cdef void _put(GramColumns c, Py_ssize_t j, double value) noexcept nogil:
    if value != c.x[j]:
        c.move(j, value - c.x[j])
        c.x[j] = value
