"""The compact L-BFGS matrix as an operator of the quadratic model."""
import numpy as np

from libc.string cimport memcpy
from ._blas cimport ddot, dgemv, dgesv, dgetrf, dgetrs, dsyrk

from ._operators cimport QuadOperator


cdef class LBFGSOperator(QuadOperator):
    """theta ((1 + ridge) I - W M W^T) on m variables, W (m, c) and M^-1 (c, c), c = 2 pairs.

    A product costs O(m c), the exact solve on any f free variables O(f c^2 + c^3).
    ``diag`` is theta (1 + ridge) throughout, the scale of B_0.
    """
    cdef double[:, ::1] W, rows, middle, lu, reduced
    cdef double[::1] short
    cdef int[::1] pivots, swaps
    cdef double theta, shift
    cdef int c

    def __init__(self, double[:, ::1] W, double[:, ::1] middle, double theta, double ridge):
        cdef int info = 0
        self.size, self.c = <int>W.shape[0], <int>W.shape[1]
        if middle.shape[0] != self.c or middle.shape[1] != self.c:
            raise ValueError(f"middle must have shape ({self.c}, {self.c})")
        self.W, self.middle = W, middle
        self.theta, self.ridge, self.shift = theta, ridge, 1.0 + ridge
        self.always_direct = True
        self.diagonal = np.full(self.size, theta * self.shift)
        self.rows = np.empty((self.size, self.c))
        self.reduced = np.empty((self.c, self.c))
        self.short = np.empty(self.c)
        self.pivots = np.empty(self.c, dtype=np.int32)
        self.swaps = np.empty(self.c, dtype=np.int32)
        self.lu = np.array(middle)
        if self.c:
            dgetrf(&self.c, &self.c, &self.lu[0, 0], &self.c, &self.pivots[0], &info)
            if info != 0:
                raise np.linalg.LinAlgError("the middle matrix of the L-BFGS pairs is singular")

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef int i, info = 0, one = 1, m = self.size, c = self.c
        cdef double zero = 0.0, unit = 1.0, minus = -self.theta, scale = self.theta * self.shift
        cdef char no = b'N', yes = b'T'
        self.n_products += 1
        for i in range(m):
            out[i] = scale * v[i]
        if c == 0 or m == 0:
            return
        # row-major W is W^T to BLAS
        dgemv(&no, &c, &m, &unit, &self.W[0, 0], &c, <double*>v, &one, &zero, &self.short[0], &one)
        dgetrs(&no, &c, &one, &self.lu[0, 0], &c, &self.pivots[0], &self.short[0], &c, &info)
        dgemv(&yes, &c, &m, &minus, &self.W[0, 0], &c, &self.short[0], &one, &unit, out, &one)

    cdef bint factor(self, const int* free, int n_free, double* rhs, double* work) noexcept nogil:
        # Sherman-Morrison-Woodbury, with W_F^T W_F of the free rows F alone: with t = 1 + ridge,
        # x = (rhs / t + W_F (M^-1 - W_F^T W_F / t)^-1 W_F^T rhs / t^2) / theta
        cdef int i, j, info = 0, one = 1, nf = n_free, c = self.c
        cdef double zero = 0.0, unit = 1.0, t = self.shift
        cdef double minus = -1.0 / t, first = 1.0 / (self.theta * t), second = 1.0 / (self.theta * t * t)
        cdef double along
        cdef char no = b'N', yes = b'T', upper = b'U'
        if nf == 0:
            return True
        if c == 0:
            for i in range(nf):
                rhs[i] *= first
            return True
        for i in range(nf):
            memcpy(&self.rows[i, 0], &self.W[free[i], 0], c * sizeof(double))
        memcpy(&self.reduced[0, 0], &self.middle[0, 0], <size_t>c * c * sizeof(double))
        dsyrk(&upper, &no, &c, &nf, &minus, &self.rows[0, 0], &c, &unit, &self.reduced[0, 0], &c)
        for i in range(c):
            for j in range(i):
                # Fortran's upper triangle is the lower one here
                self.reduced[j, i] = self.reduced[i, j]
        dgemv(&no, &c, &nf, &unit, &self.rows[0, 0], &c, rhs, &one, &zero, &self.short[0], &one)
        dgesv(&c, &one, &self.reduced[0, 0], &c, &self.swaps[0], &self.short[0], &c, &info)
        if info != 0:
            return False
        # x goes to the first column of W_F, which is used up row by row: the right side is
        # needed once more, to see that rounding left the matrix positive definite
        for i in range(nf):
            along = ddot(&c, &self.rows[i, 0], &one, &self.short[0], &one)
            self.rows[i, 0] = first * rhs[i] + second * along
        along = 0.0
        for i in range(nf):
            along += self.rows[i, 0] * rhs[i]
        if not along > 0.0:
            for i in range(nf):
                if rhs[i] != 0.0:
                    return False
        for i in range(nf):
            rhs[i] = self.rows[i, 0]
        return True

    def solve(self, rhs, free=None):
        """Solve B[free, free] x = rhs, (f,); all variables where ``free`` is None.

        Raises LinAlgError where rounding has spoilt the positive definite matrix.
        """
        index = np.arange(self.size) if free is None else np.asarray(free)
        cdef int[::1] chosen = np.ascontiguousarray(index, dtype=np.int32)
        cdef double[::1] x = np.array(rhs, dtype=np.float64)
        cdef int nf = <int>chosen.shape[0]
        cdef bint good
        if x.shape[0] != nf:
            raise ValueError(f"rhs must have length {nf}, one entry a free variable; got {x.shape[0]}")
        if nf and (np.min(index) < 0 or np.max(index) >= self.size or nf > self.size):
            raise ValueError(f"free must hold distinct numbers from 0 to {self.size - 1}")
        if nf == 0:
            return np.asarray(x)
        with nogil:
            good = self.factor(&chosen[0], nf, &x[0], NULL)
        if not good:
            raise np.linalg.LinAlgError("the reduced L-BFGS matrix is not positive definite")
        return np.asarray(x)
