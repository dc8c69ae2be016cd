"""The squares 1/2 sum_i s_i r_i^2 of residuals r = y - X x, by columns: what `_squares` descends on.

Columns and y are centred where there is an intercept. A move of one variable keeps what its kind needs for the next:
all derivatives with the Gram matrix, the residuals with the columns themselves.
"""
import numpy as np

from libc.math cimport fabs
from libc.string cimport memcpy, memset

from ._blas cimport ddot, dgemv


cdef extern from "kernels.h" nogil:
    void sk_axpy(double c, const double* a, double* out, Py_ssize_t n)


# relative rounding of sums of products
cdef double _EPSILON = 1e-15


cdef class Columns:
    """The squares at a point x (m,), which the caller owns.

    ``curvature`` (m,) are their second derivatives; ``pulls`` (m,) minus their first ones, as of the last full pass.
    """

    cdef double pull(self, Py_ssize_t j) noexcept nogil:
        return 0.0

    cdef void move(self, Py_ssize_t j, double step) noexcept nogil:
        pass

    cdef void all_pulls(self) noexcept nogil:
        pass

    cdef void half_and_along_y(self, double* half, double* along) noexcept nogil:
        # 1/2 sum s r^2, and sum s r y
        pass

    cdef double size_of_residuals(self) noexcept nogil:
        return 0.0

    cdef double rounding(self) noexcept nogil:
        # what rounding may have taken from the squares
        return 0.0

    cdef void face_matrix(self, const int* face, int k, double* H) noexcept nogil:
        # the upper triangle, in Fortran's order, of the second derivatives on a face
        pass

    cdef void face_product(self, const int* face, int k, const double* p, double* q) noexcept nogil:
        # the product of that matrix with p (k,); only where ``has_products``
        pass

    cdef double length(self, Py_ssize_t j) noexcept nogil:
        # of a move or a pull of j, in nanoseconds, about
        return 1.0

    cdef double matrix_cost(self, int k, double total) noexcept nogil:
        # the same of a face's matrix, whose columns have this length together
        return 0.5 * k * total

    cdef void begin(self) noexcept nogil:
        # squares at x from their beginning, so that rounding of moves does not add up
        pass

    def set_point(self, double[::1] x):
        """Go to x (m,), which `solve` changes from then on."""
        if x.shape[0] != self.m:
            raise ValueError(f"x must have shape ({self.m},); got ({x.shape[0]},)")
        self.x = x
        with nogil:
            self.begin()
        self.fresh = False

    cdef void refresh(self) noexcept nogil:
        if not self.fresh:
            self.all_pulls()
            self.n_passes += 1
            self.fresh = True


cdef class GramColumns(Columns):
    """The squares as the Gram matrix G (m, m) of weighted, centred columns, their products c (m,) with y and y's square."""

    cdef const double[:, ::1] G
    cdef const double[::1] c
    cdef double yy

    def __init__(self, const double[:, ::1] G, const double[::1] c, double yy):
        cdef Py_ssize_t j
        self.m = c.shape[0]
        if G.shape[0] != self.m or G.shape[1] != self.m:
            raise ValueError(f"G must have shape ({self.m}, {self.m})")
        self.G, self.c, self.yy = G, c, yy
        self.curvature, self.pulls = np.empty(self.m), np.empty(self.m)
        for j in range(self.m):
            self.curvature[j] = G[j, j]

    # ``pulls`` is kept true at all times
    cdef double pull(self, Py_ssize_t j) noexcept nogil:
        return self.pulls[j]

    cdef void move(self, Py_ssize_t j, double step) noexcept nogil:
        sk_axpy(-step, &self.G[j, 0], &self.pulls[0], self.m)

    cdef void begin(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.m):
            self.pulls[j] = self.c[j]
        for j in range(self.m):
            if self.x[j] != 0.0:
                self.move(j, self.x[j])

    cdef void all_pulls(self) noexcept nogil:
        pass

    cdef void half_and_along_y(self, double* half, double* along) noexcept nogil:
        cdef Py_ssize_t j
        cdef double both = 0.0, cx = 0.0
        for j in range(self.m):
            if self.x[j] != 0.0:
                both += self.x[j] * (self.c[j] + self.pulls[j])
                cx += self.x[j] * self.c[j]
        half[0] = max(0.5 * (self.yy - both), 0.0)
        along[0] = self.yy - cx

    cdef double size_of_residuals(self) noexcept nogil:
        return self.yy ** 0.5

    cdef double rounding(self) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.m):
            if self.x[j] != 0.0:
                total += fabs(self.x[j]) * self.curvature[j] ** 0.5
        return _EPSILON * (self.yy + total * total)

    cdef double length(self, Py_ssize_t j) noexcept nogil:
        return 0.25 * self.m

    cdef double matrix_cost(self, int k, double total) noexcept nogil:
        return 1.0 * k * k

    cdef void face_matrix(self, const int* face, int k, double* H) noexcept nogil:
        cdef int i, j
        for i in range(k):
            for j in range(i + 1):
                H[<Py_ssize_t>i * k + j] = self.G[face[i], face[j]]


cdef class DataColumns(Columns):
    """What dense and sparse columns have in common: y, weights, means and the residual.

    ``u`` is s (y - X x) without the part of the means, which is s times ``shift``.
    """

    cdef readonly Py_ssize_t n
    cdef const double[::1] y, s, means
    cdef double[::1] u, room
    cdef double total, shift
    cdef bint centred, weighted

    def _set(self, y, s, means, curvature):
        self.y, self.means = y, means
        self.n, self.m = self.y.shape[0], self.means.shape[0]
        self.weighted = s is not None
        self.s = s if self.weighted else np.empty(0)
        if self.weighted and self.s.shape[0] != self.n:
            raise ValueError(f"s must have shape ({self.n},)")
        self.total = np.sum(s) if self.weighted else self.n
        self.curvature, self.pulls = curvature, np.empty(self.m)
        if self.curvature.shape[0] != self.m:
            raise ValueError(f"curvature must have shape ({self.m},)")
        self.u, self.room = np.empty(self.n), np.zeros(self.n)
        self.has_products = True

    cdef void begin(self) noexcept nogil:
        cdef Py_ssize_t i, j
        self.shift = 0.0
        for i in range(self.n):
            self.u[i] = self.s[i] * self.y[i] if self.weighted else self.y[i]
        for j in range(self.m):
            if self.x[j] != 0.0:
                self.move(j, self.x[j])

    cdef void half_and_along_y(self, double* half, double* along) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = 0.0, cross = 0.0, r, s
        for i in range(self.n):
            s = 1.0
            if self.weighted:
                s = self.s[i]
                if s == 0.0:
                    continue
            r = self.u[i] / s + self.shift
            total += s * r * r
            cross += s * r * self.y[i]
        half[0], along[0] = 0.5 * total, cross

    cdef double size_of_residuals(self) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(self.n):
            total += fabs(self.u[i] + (self.s[i] if self.weighted else 1.0) * self.shift)
        return total


    cdef void face_product(self, const int* face, int k, const double* p, double* q) noexcept nogil:
        # as moves from a residual of zero
        cdef double shift = self.shift
        cdef int i
        cdef Py_ssize_t size = self.n * sizeof(double)
        if self.n == 0:
            return
        memcpy(&self.room[0], &self.u[0], size)
        memset(&self.u[0], 0, size)
        self.shift = 0.0
        for i in range(k):
            self.move(face[i], -p[i])
        for i in range(k):
            q[i] = self.pull(face[i])
        memcpy(&self.u[0], &self.room[0], size)
        memset(&self.room[0], 0, size)
        self.shift = shift


cdef class DenseColumns(DataColumns):
    """Columns X (n, m) in Fortran's order."""

    cdef const double[::1, :] X

    def __init__(self, const double[::1, :] X, y, s, means, curvature):
        self._set(y, s, means, curvature)
        if X.shape[0] != self.n or X.shape[1] != self.m:
            raise ValueError(f"X must have shape ({self.n}, {self.m})")
        self.X = X

    cdef double pull(self, Py_ssize_t j) noexcept nogil:
        cdef int n = <int>self.n, one = 1
        return (ddot(&n, <double*>&self.X[0, j], &one, &self.u[0], &one)
                + self.shift * self.total * self.means[j])

    cdef void move(self, Py_ssize_t j, double step) noexcept nogil:
        cdef Py_ssize_t i
        self.shift += step * self.means[j]
        if not self.weighted:
            sk_axpy(-step, &self.X[0, j], &self.u[0], self.n)
            return
        for i in range(self.n):
            self.u[i] -= step * self.s[i] * self.X[i, j]

    cdef void all_pulls(self) noexcept nogil:
        cdef int n = <int>self.n, m = <int>self.m, one = 1
        cdef double alpha = 1.0, beta = 0.0
        cdef char trans = b'T'
        cdef Py_ssize_t j
        if n and m:
            dgemv(&trans, &n, &m, &alpha, <double*>&self.X[0, 0], &n, &self.u[0], &one, &beta, &self.pulls[0], &one)
        for j in range(self.m):
            self.pulls[j] += self.shift * self.total * self.means[j]

    cdef double length(self, Py_ssize_t j) noexcept nogil:
        return 0.25 * self.n

    cdef void face_matrix(self, const int* face, int k, double* H) noexcept nogil:
        cdef int i, j, n = <int>self.n, one = 1
        cdef const double* column
        cdef Py_ssize_t r
        for i in range(k):
            column = &self.X[0, face[i]]
            if self.weighted:
                for r in range(self.n):
                    self.room[r] = self.s[r] * column[r]
                column = &self.room[0]
            for j in range(i + 1):
                H[<Py_ssize_t>i * k + j] = (
                    ddot(&n, <double*>column, &one, <double*>&self.X[0, face[j]], &one)
                    - self.total * self.means[face[i]] * self.means[face[j]]
                )
        if self.weighted:
            memset(&self.room[0], 0, self.n * sizeof(double))


cdef class SparseColumns(DataColumns):
    """Columns of a matrix (n, m) in compressed sparse columns, with sorted, distinct rows."""

    cdef const double[::1] data
    cdef const int[::1] rows
    cdef const long long[::1] starts

    def __init__(self, const long long[::1] starts, const int[::1] rows, const double[::1] data, y, s, means, curvature):
        self._set(y, s, means, curvature)
        if starts.shape[0] != self.m + 1 or rows.shape[0] < starts[self.m] or data.shape[0] < starts[self.m]:
            raise ValueError("starts, rows and data do not fit together")
        if rows.shape[0] and not 0 <= np.min(rows) <= np.max(rows) < self.n:
            raise ValueError("a row lies outside of y")
        self.starts, self.rows, self.data = starts, rows, data

    cdef double pull(self, Py_ssize_t j) noexcept nogil:
        cdef long long e
        cdef double total = 0.0
        for e in range(self.starts[j], self.starts[j + 1]):
            total += self.data[e] * self.u[self.rows[e]]
        return total + self.shift * self.total * self.means[j]

    cdef void move(self, Py_ssize_t j, double step) noexcept nogil:
        cdef long long e
        self.shift += step * self.means[j]
        for e in range(self.starts[j], self.starts[j + 1]):
            self.u[self.rows[e]] -= step * self.data[e] * (self.s[self.rows[e]] if self.weighted else 1.0)

    cdef void all_pulls(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.m):
            self.pulls[j] = self.pull(j)

    cdef double length(self, Py_ssize_t j) noexcept nogil:
        return 2.0 * (self.starts[j + 1] - self.starts[j])

    cdef void face_matrix(self, const int* face, int k, double* H) noexcept nogil:
        cdef int i, j
        cdef long long e
        cdef double total
        for i in range(k):
            for e in range(self.starts[face[i]], self.starts[face[i] + 1]):
                self.room[self.rows[e]] = self.data[e] * (self.s[self.rows[e]] if self.weighted else 1.0)
            for j in range(i + 1):
                total = 0.0
                for e in range(self.starts[face[j]], self.starts[face[j] + 1]):
                    total += self.data[e] * self.room[self.rows[e]]
                H[<Py_ssize_t>i * k + j] = total - self.total * self.means[face[i]] * self.means[face[j]]
            for e in range(self.starts[face[i]], self.starts[face[i] + 1]):
                self.room[self.rows[e]] = 0.0
