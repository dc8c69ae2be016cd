"""Cholesky factor of a matrix, and solutions with its principal submatrices from the same factor.

An active set method solves with the rows and columns of one face after another. With V = A^{-1} E, E the unit
columns of the variables K that are off the face, the solution on the face is A^{-1} r + V m, where m makes it zero
on K: (E^T V) m = -(A^{-1} r)_K. A column of V costs two triangular solves, and is kept.
"""
import numpy as np

from libc.string cimport memset

from ._blas cimport dpotrf, dpotrs, dtrsm, dtrsv

# variables off the face that are taken out exactly; more would cost as much as another factor
cdef int ROOM = 512
cdef char UPPER = b'U'
cdef char TURNED = b'T'
cdef char PLAIN = b'N'
cdef char LEFT = b'L'


cdef class FaceFactor:
    """What factors that serve one face after another share: the face, a vector, and ``crowded``.

    That says that a face lacked so many variables that solutions on it are not its own.
    """

    def solution(self, const double[::1] r, inside):
        """Solution (m,) with the rows and columns ``inside`` (m,) alone; r and the result are zero elsewhere."""
        cdef Py_ssize_t k, m = self.v.shape[0]
        cdef const unsigned char[::1] chosen = np.ascontiguousarray(inside, dtype=np.uint8)
        if r.shape[0] != m or chosen.shape[0] != m:
            raise ValueError(f"r and inside must have shape ({m},); got ({r.shape[0]},) and ({chosen.shape[0]},)")
        for k in range(m):
            self.inside[k] = chosen[k]
            self.v[k] = r[k]
        with nogil:
            self.face()
            self.solve()
        return np.asarray(self.v).copy()

    cdef void forget(self) noexcept nogil:
        if self.inside.shape[0]:
            memset(&self.inside[0], 0, self.inside.shape[0])

    cdef void face(self) noexcept nogil:
        # prepare solutions on the variables ``inside``
        pass

    cdef void solve(self) noexcept nogil:
        # v becomes the solution for the right-hand side v, which is zero off the face, as it is then itself
        pass


cdef class Factor(FaceFactor):
    """Factor of a matrix (m, m), which it overwrites, with a part ``ridge`` of its diagonal added.

    That part is raised until the factor exists; ValueError if it has to be as large as 1. ``crowded`` says that a
    face lacked so many variables that solutions on it are those of the whole matrix, cut off.
    """

    def __init__(self, double[:, ::1] matrix, double ridge):
        cdef int m = <int>matrix.shape[0], info = 1, i, j, room = min(max(m // 5, 1), ROOM)
        diagonal = np.diagonal(matrix).copy()
        cdef double[::1] kept = diagonal
        self.A, self.v = matrix, np.empty(m)
        self.inside = np.zeros(m, dtype=np.int8)
        self.slot, self.out = np.full(m, -1, dtype=np.int32), np.empty(m, dtype=np.int32)
        self.columns, self.schur, self.shift = np.empty((room, m)), np.empty((room, room)), np.empty(room)
        if m == 0:
            return
        while True:
            with nogil:
                for i in range(m):
                    matrix[i, i] = kept[i] * (1.0 + ridge) if kept[i] > 0.0 else 1.0
                # LAPACK's upper triangle is the lower one of rows
                dpotrf(&UPPER, &m, &matrix[0, 0], &m, &info)
            if info == 0:
                break
            if ridge >= 0.5:
                raise ValueError("the matrix has no Cholesky factor")
            ridge = max(10.0 * ridge, 1e-12)
            with nogil:
                for i in range(m):
                    for j in range(i):
                        matrix[i, j] = matrix[j, i]

    cdef void face(self) noexcept nogil:
        cdef int m = <int>self.v.shape[0], room = <int>self.shift.shape[0], k, a, b, fresh = 0, info = 0
        cdef int first
        cdef double one = 1.0
        self.n_out = 0
        self.crowded = False
        for k in range(m):
            if not self.inside[k]:
                if self.n_out == room:
                    self.n_out = 0
                    self.crowded = True
                    return
                self.out[self.n_out] = k
                self.n_out += 1
                fresh += self.slot[k] < 0
        if self.n_out == 0:
            return
        if self.n_slots + fresh > room:
            for k in range(m):
                self.slot[k] = -1
            self.n_slots, fresh = 0, self.n_out
        first = self.n_slots
        if fresh:
            memset(&self.columns[first, 0], 0, <size_t>fresh * m * sizeof(double))
            for a in range(self.n_out):
                k = self.out[a]
                if self.slot[k] < 0:
                    self.slot[k] = self.n_slots
                    self.columns[self.n_slots, k] = 1.0
                    self.n_slots += 1
            dtrsm(&LEFT, &UPPER, &TURNED, &PLAIN, &m, &fresh, &one, &self.A[0, 0], &m, &self.columns[first, 0], &m)
            dtrsm(&LEFT, &UPPER, &PLAIN, &PLAIN, &m, &fresh, &one, &self.A[0, 0], &m, &self.columns[first, 0], &m)
        for a in range(self.n_out):
            for b in range(a + 1):
                self.schur[a, b] = self.columns[self.slot[self.out[a]], self.out[b]]
        dpotrf(&UPPER, &self.n_out, &self.schur[0, 0], &room, &info)
        if info != 0:
            # rounding has the last word on variables that are nearly copies of others
            self.n_out = 0
            self.crowded = True

    cdef void solve(self) noexcept nogil:
        cdef int m = <int>self.v.shape[0], one = 1, a, room = <int>self.shift.shape[0], info = 0, k
        cdef double* column
        cdef double c
        dtrsv(&UPPER, &TURNED, &PLAIN, &m, &self.A[0, 0], &m, &self.v[0], &one)
        dtrsv(&UPPER, &PLAIN, &PLAIN, &m, &self.A[0, 0], &m, &self.v[0], &one)
        if self.n_out == 0:
            return
        for a in range(self.n_out):
            self.shift[a] = -self.v[self.out[a]]
        dpotrs(&UPPER, &self.n_out, &one, &self.schur[0, 0], &room, &self.shift[0], &self.n_out, &info)
        for a in range(self.n_out):
            column = &self.columns[self.slot[self.out[a]], 0]
            c = self.shift[a]
            for k in range(m):
                self.v[k] += c * column[k]
        for a in range(self.n_out):
            self.v[self.out[a]] = 0.0
