"""Cholesky factor of a large matrix in single precision, and near solutions with its principal submatrices.

They precondition conjugate gradients, so that single precision is enough, at half of the time.

The factor L is that of a base, the variables of some face. On a face that lacks the variables K of it, A x = r is
solved by x = L^{-T} P L^{-1} r, where P projects along W = L^{-1} E, E the unit columns of K: x is zero on K then,
and the other rows hold. A column of W costs one triangular solve, and is kept. Where the columns of a new face would
cost more than another factor, the face becomes the base: the matrix is kept beside its factor.
"""
import numpy as np

from libc.string cimport memset

from ._blas cimport dpotrf, dpotrs, sgemm, sgemv, spotrf, strsm, strsv
from ._factor cimport FaceFactor

# variables off the face that are projected out; more take a factor of their own
cdef int ROOM = 512
# part of the base from which this holds as well
cdef double SHARE = 0.2
# variables of a face that may be missing in the base, where they have their diagonal alone
cdef double MISSING = 0.05
# time of a multiply-add in triangular solves of many columns, as a multiple of that in a factor
cdef double COLUMN = 1.0
# rows that are rounded at a time
cdef Py_ssize_t ROWS = 64
# least part of the diagonal that is added: rounding in single precision is about as large
cdef double LEAST_RIDGE = 3e-7
# part of the diagonal that keeps the projection's matrix above its rounding
cdef double SLACK = 1e-5
cdef char UPPER = b'U'
cdef char TURNED = b'T'
cdef char PLAIN = b'N'
cdef char LEFT = b'L'


cdef class SingleFactor(FaceFactor):
    """Factor of a matrix (m, m), which it overwrites, with a part ``ridge`` of its diagonal added.

    That part is raised until the factor exists; ValueError if it has to be as large as 1. ``crowded`` says that a
    face had no factor, and solutions on it are those of its diagonal.
    """
    # the matrix with a diagonal of ones, what made it that, and the factor of the base, of n_base rows
    cdef float[:, ::1] G, L, columns, inner
    cdef double[::1] scale
    cdef double ridge
    # the base's variables, and each variable's place in it, -1 for none
    cdef int[::1] base, at
    cdef int n_base
    cdef double[:, ::1] schur
    cdef double[::1] shift
    cdef float[::1] y, part
    cdef int[::1] slot, out
    cdef int n_slots, n_out

    def __init__(self, double[:, ::1] matrix, double ridge):
        cdef Py_ssize_t m = matrix.shape[0], i
        cdef int room = <int>min(max(<int>(SHARE * m), 1), ROOM)
        diagonal = np.diagonal(matrix).copy()
        kept = np.where(diagonal > 0.0, diagonal, 1.0)
        scale = 1.0 / np.sqrt(kept)
        # the matrix with a diagonal of ones in the first half of its own memory, its factor in the second
        whole = np.asarray(matrix)
        single = whole.reshape(-1).view(np.float32)
        rounded = single[: m * m].reshape(m, m)
        for i in range(0, m, ROWS):
            rounded[i : i + ROWS] = (whole[i : i + ROWS] * scale * scale[i : i + ROWS, None]).astype(np.float32)
        self.G, self.L = rounded, single[m * m :].reshape(m, m)
        self.scale, self.v, self.y = scale, np.empty(m), np.empty(m, dtype=np.float32)
        self.inside = np.ones(m, dtype=np.int8)
        self.base, self.at = np.arange(m, dtype=np.int32), np.arange(m, dtype=np.int32)
        self.slot, self.out = np.full(m, -1, dtype=np.int32), np.empty(room, dtype=np.int32)
        self.columns = np.empty((room, m), dtype=np.float32)
        self.inner, self.part = np.empty((room, room), dtype=np.float32), np.empty(room, dtype=np.float32)
        self.schur, self.shift = np.empty((room, room)), np.empty(room)
        self.ridge = max(ridge, LEAST_RIDGE)
        with nogil:
            self.take_face()
        if self.crowded:
            raise ValueError("the matrix has no Cholesky factor")

    cdef void take_face(self) noexcept nogil:
        # make the variables ``inside`` the base
        cdef Py_ssize_t m = self.v.shape[0], i, j, n = 0
        cdef int size, info = 1
        cdef float* row
        cdef const float* whole
        for i in range(m):
            self.at[i] = -1
            self.slot[i] = -1
            if self.inside[i]:
                self.at[i] = <int>n
                self.base[n] = <int>i
                n += 1
        self.n_base = size = <int>n
        self.n_slots = self.n_out = 0
        self.crowded = False
        while n:
            for i in range(n):
                row = &self.L[0, 0] + i * n
                whole = &self.G[self.base[i], 0]
                for j in range(i):
                    row[j] = whole[self.base[j]]
                row[i] = <float>(1.0 + self.ridge)
            # LAPACK's upper triangle is the lower one of rows
            spotrf(&UPPER, &size, &self.L[0, 0], &size, &info)
            if info == 0:
                return
            if self.ridge >= 0.5:
                # nothing is left of the base
                for i in range(m):
                    self.at[i] = -1
                self.n_base = 0
                self.crowded = True
                return
            self.ridge *= 10.0

    cdef void face(self) noexcept nogil:
        cdef int m = <int>self.v.shape[0], room = <int>self.shift.shape[0], k, a, fresh = 0, out = 0, missing = 0
        cdef int size = self.n_base, on = 0
        cdef double column = COLUMN * <double>size * size
        for k in range(m):
            if self.inside[k]:
                on += 1
                missing += self.at[k] < 0
            elif self.at[k] >= 0:
                out += 1
                fresh += self.slot[k] < 0
        if on == 0:
            self.n_out = 0
            return
        if out <= room and self.n_slots + fresh > room:
            for k in range(m):
                self.slot[k] = -1
            self.n_slots, fresh = 0, out
        if out > room or missing > MISSING * on or column * fresh > <double>on * on * on / 3.0:
            self.take_face()
            return
        self.n_out = 0
        for a in range(size):
            k = self.base[a]
            if not self.inside[k]:
                self.out[self.n_out] = k
                self.n_out += 1
        if self.n_out:
            self._project(fresh)

    cdef void _project(self, int fresh) noexcept nogil:
        # the columns of W that are new, and the factor of the matrix W^T W of those in ``out``
        cdef int m = <int>self.v.shape[0], room = <int>self.shift.shape[0], size = self.n_base, first = self.n_slots
        cdef int k, a, b, p, q, info = 0
        cdef float one = 1.0, zero = 0.0
        if fresh:
            memset(&self.columns[first, 0], 0, <size_t>fresh * m * sizeof(float))
            for a in range(self.n_out):
                k = self.out[a]
                if self.slot[k] < 0:
                    self.slot[k] = self.n_slots
                    self.columns[self.n_slots, self.at[k]] = 1.0
                    self.n_slots += 1
            strsm(&LEFT, &UPPER, &TURNED, &PLAIN, &size, &fresh, &one, &self.L[0, 0], &size, &self.columns[first, 0],
                  &m)
            # rows ``first`` and on of the products with all columns
            sgemm(&TURNED, &PLAIN, &self.n_slots, &fresh, &size, &one, &self.columns[0, 0], &m,
                  &self.columns[first, 0], &m, &zero, &self.inner[first, 0], &room)
        for a in range(self.n_out):
            for b in range(a + 1):
                p, q = self.slot[self.out[a]], self.slot[self.out[b]]
                self.schur[a, b] = self.inner[max(p, q), min(p, q)]
            self.schur[a, a] *= 1.0 + SLACK
        dpotrf(&UPPER, &self.n_out, &self.schur[0, 0], &room, &info)
        if info != 0:
            # rounding has the last word on variables that are nearly copies of others
            self.take_face()

    cdef void solve(self) noexcept nogil:
        cdef int m = <int>self.v.shape[0], size = self.n_base, one = 1, a, k, info = 0
        cdef int room = <int>self.shift.shape[0]
        cdef float unit = 1.0, minus = -1.0, zero = 0.0
        if size == 0:
            for k in range(m):
                self.v[k] *= self.scale[k] * self.scale[k]
            return
        for a in range(size):
            self.y[a] = <float>(self.v[self.base[a]] * self.scale[self.base[a]])
        strsv(&UPPER, &TURNED, &PLAIN, &size, &self.L[0, 0], &size, &self.y[0], &one)
        if self.n_out:
            sgemv(&TURNED, &size, &self.n_slots, &unit, &self.columns[0, 0], &m, &self.y[0], &one, &zero,
                  &self.part[0], &one)
            for a in range(self.n_out):
                self.shift[a] = self.part[self.slot[self.out[a]]]
            dpotrs(&UPPER, &self.n_out, &one, &self.schur[0, 0], &room, &self.shift[0], &self.n_out, &info)
            memset(&self.part[0], 0, self.n_slots * sizeof(float))
            for a in range(self.n_out):
                self.part[self.slot[self.out[a]]] = <float>self.shift[a]
            sgemv(&PLAIN, &size, &self.n_slots, &minus, &self.columns[0, 0], &m, &self.part[0], &one, &unit,
                  &self.y[0], &one)
        strsv(&UPPER, &PLAIN, &PLAIN, &size, &self.L[0, 0], &size, &self.y[0], &one)
        for k in range(m):
            if self.at[k] < 0:
                self.v[k] *= self.scale[k] * self.scale[k]
            elif self.inside[k]:
                self.v[k] = self.y[self.at[k]] * self.scale[k]
            else:
                self.v[k] = 0.0
