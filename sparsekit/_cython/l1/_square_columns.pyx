"""Least squares given by a Gram matrix, at a point that moves one variable at a time: what `_squares` descends on."""
import numpy as np

from libc.math cimport fabs, sqrt


cdef extern from "shared/kernels.h" nogil:
    void sk_axpy(double c, const double* a, double* out, Py_ssize_t n)


# Relative rounding of sums of products.
cdef double _EPSILON = 1e-15


cdef class GramColumns:
    """1/2 sum_i s_i (y_i - x_i^T w)^2 as a function of w.

    Parameters
    ----------
    G : Gram matrix X^T S X (m, m), of centred columns where there is an intercept
    c : products X^T S y (m,)
    yy : y^T S y

    ``curvature`` (m,) are the second derivatives; ``correlations`` (m,) is the negative gradient, true at all times.
    """

    def __init__(self, const double[:, ::1] G, const double[::1] c, double yy):
        self.m = c.shape[0]
        if G.shape[0] != self.m or G.shape[1] != self.m:
            raise ValueError(f"G must have shape ({self.m}, {self.m})")
        self.G, self.c, self.yy = G, c, yy
        self.curvature, self.correlations = np.diagonal(G).copy(), np.empty(self.m)

    def set_point(self, double[::1] x):
        """Go to x (m,), which `Descent` changes from then on."""
        if x.shape[0] != self.m:
            raise ValueError(f"x must have shape ({self.m},); got ({x.shape[0]},)")
        self.x = x
        with nogil:
            self.begin()

    cdef void begin(self) noexcept nogil:
        # from zero, so that the rounding of moves does not add up
        cdef Py_ssize_t j
        self.correlations[:] = self.c
        for j in range(self.m):
            if self.x[j] != 0.0:
                self.move(j, self.x[j])

    cdef void move(self, Py_ssize_t j, double step) noexcept nogil:
        sk_axpy(-step, &self.G[j, 0], &self.correlations[0], self.m)

    cdef void half_and_along_y(self, double* half, double* along) noexcept nogil:
        # 1/2 r^T S r and r^T S y for the residuals r
        cdef Py_ssize_t j
        cdef double both = 0.0, cx = 0.0
        for j in range(self.m):
            if self.x[j] != 0.0:
                both += self.x[j] * (self.c[j] + self.correlations[j])
                cx += self.x[j] * self.c[j]
        half[0] = max(0.5 * (self.yy - both), 0.0)
        along[0] = self.yy - cx

    cdef double rounding(self) noexcept nogil:
        # what rounding may have taken from the squares
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.m):
            if self.x[j] != 0.0:
                total += fabs(self.x[j]) * sqrt(max(self.curvature[j], 0.0))
        return _EPSILON * (self.yy + total * total)
