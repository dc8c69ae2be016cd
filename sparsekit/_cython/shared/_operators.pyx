"""Operators that hold the Hessian of a quadratic model: the base, a matrix, a callable."""
import numpy as np

from ._blas cimport dposv
from ._orthant cimport below_zero


cdef extern from "shared/kernels.h" nogil:
    void sk_axpy(double c, const double* a, double* out, Py_ssize_t n)
    void sk_symmetric_times(const double* A, Py_ssize_t n, const double* v, double* out)


cdef void face_product(const double* face, const int* free, int n_free, const double* v, double* out,
                       double* chosen, double* result) noexcept nogil:
    # out = H_ff v on the free variables by what ``copy_face`` wrote; ``chosen`` and ``result`` are workspace (n_free)
    cdef int j
    for j in range(n_free):
        chosen[j] = v[free[j]]
    sk_symmetric_times(face, n_free, chosen, result)
    for j in range(n_free):
        out[free[j]] = result[j]


cdef class QuadOperator:
    """H restricted to m variables, plus ``ridge`` times its diagonal."""

    cdef void product(self, const double* v, double* out) noexcept nogil:
        pass

    def add_diagonal(self, const double[::1] added):
        """Add a diagonal (m,) to H, as the second derivatives of a ridge, before anything is asked of H."""
        if added.shape[0] != self.size:
            raise ValueError(f"added must have shape ({self.size},); got ({added.shape[0]},)")
        if self.size == 0:
            return
        self.diagonal = np.add(self.diagonal, added)
        self.added = added if self.plus == NULL else np.add(self.added, added)
        self.plus = &self.added[0]

    cdef void add_plus(self, const double* v, double* out) noexcept nogil:
        # the end of each product
        cdef Py_ssize_t j
        if self.plus != NULL:
            for j in range(self.size):
                out[j] += self.plus[j] * v[j]

    cdef double apart(self, Py_ssize_t j) noexcept nogil:
        # what is left of a diagonal entry where the intercept follows the variable
        cdef double h = self.diagonal[j], last = self.diagonal[self.size - 1]
        if not self.intercept or not (last > 0.0):
            return h
        return max(h - self.common[j] * self.common[j] / last, 1e-3 * h)

    cdef void precondition(self, const double* r, const signed char* kind, double* p) noexcept nogil:
        # p = M r on the face kind = 1, 2 and zero elsewhere. M is the diagonal, with the intercept solved for
        # exactly. Columns with a mean share far more curvature with it than with each other.
        cdef Py_ssize_t j, m = self.size
        cdef double last = 0.0, shift = 0.0, h
        cdef bint together = self.intercept and (kind[m - 1] == 1 or kind[m - 1] == 2)
        if together:
            last = self.diagonal[m - 1]
            together = last > 0.0
        if together:
            shift = r[m - 1] / last
        for j in range(m - together):
            if kind[j] == 1 or kind[j] == 2:
                h = self.apart(j) if together else self.diagonal[j]
                p[j] = (r[j] - (self.common[j] * shift if together else 0.0)) / (h if h > 0.0 else 1.0)
            else:
                p[j] = 0.0
        if together:
            for j in range(m - 1):
                shift -= self.common[j] / last * p[j]
            p[m - 1] = shift

    cdef bint copy_face(self, const int* free, int n_free, double* work) noexcept nogil:
        # the upper triangle of H_ff in Fortran's order; False where this operator has no matrix
        return False

    cdef bint factor(self, const int* free, int n_free, double* rhs, double* work) noexcept nogil:
        # solve H_ff x = rhs in place by Cholesky; False where this operator has no matrix
        return False

    cdef bint sweep(self, double* x, double* grad, const double* l1, int n_sweeps) noexcept nogil:
        # coordinate descent on q, x and its gradient in place; False where there is no matrix
        return False

    def matvec(self, v):
        """H v, (m,), with the ridge."""
        cdef double[::1] vv = np.ascontiguousarray(v, dtype=np.float64)
        cdef double[::1] out = np.empty(self.size)
        if self.size:
            with nogil:
                self.product(&vv[0], &out[0])
        return np.asarray(out)

    @property
    def diag(self):
        return np.asarray(self.diagonal)


cdef class GramOperator(QuadOperator):
    """H as a dense symmetric (m, m) matrix."""
    cdef double[:, ::1] G

    def __init__(self, double[:, ::1] G, double ridge):
        cdef Py_ssize_t i
        self.reads = "matrix"
        self.G = G
        self.size = <int>G.shape[0]
        self.ridge = ridge
        self.diagonal = np.empty(self.size)
        for i in range(self.size):
            self.diagonal[i] = G[i, i]

    def add_diagonal(self, const double[::1] added):
        """Add a diagonal (m,) to H, in the matrix itself."""
        cdef Py_ssize_t i
        if added.shape[0] != self.size:
            raise ValueError(f"added must have shape ({self.size},); got ({added.shape[0]},)")
        for i in range(self.size):
            self.G[i, i] += added[i]
            self.diagonal[i] = self.G[i, i]

    cdef void product(self, const double* v, double* out) noexcept nogil:
        # rows with v = 0 are skipped: most of a face's complement is zero
        cdef int m = self.size, i
        self.n_products += 1
        for i in range(m):
            out[i] = self.ridge * self.diagonal[i] * v[i]
        for i in range(m):
            if v[i] != 0.0:
                sk_axpy(v[i], &self.G[i, 0], out, m)

    cdef bint sweep(self, double* x, double* grad, const double* l1, int n_sweeps) noexcept nogil:
        cdef int m = self.size, j, k
        cdef double h, t, move, largest, below
        for k in range(n_sweeps):
            largest = 0.0
            for j in range(m):
                h = self.diagonal[j] * (1.0 + self.ridge)
                below = below_zero(l1[j], self.one_sided)
                if not (h > 0.0) or (x[j] == 0.0 and -l1[j] <= grad[j] <= below):
                    continue
                t = soft_step(h, x[j], grad[j], l1[j], below)
                move = t - x[j]
                if move != 0.0:
                    x[j] = t
                    sk_axpy(move, &self.G[j, 0], grad, m)
                    grad[j] += move * self.ridge * self.diagonal[j]
                    if h * move * move > largest:
                        largest = h * move * move
            if largest == 0.0:
                break
        return True

    cdef bint copy_face(self, const int* free, int n_free, double* work) noexcept nogil:
        cdef int i, j
        cdef const double* row
        for i in range(n_free):
            row = &self.G[free[i], 0]
            for j in range(i + 1):
                work[<Py_ssize_t>i * n_free + j] = row[free[j]]
            work[<Py_ssize_t>i * n_free + i] = row[free[i]] * (1.0 + self.ridge)
        return True

    cdef bint factor(self, const int* free, int n_free, double* rhs, double* work) noexcept nogil:
        cdef int info = 0, one = 1, nf = n_free
        cdef char uplo = b'U'
        self.copy_face(free, nf, work)
        dposv(&uplo, &nf, &one, work, &nf, rhs, &nf, &info)
        return info == 0


cdef class CallbackOperator(QuadOperator):
    """H as a Python callable v -> H v, for a user's loss."""
    cdef object func

    def __init__(self, func, diagonal, double ridge):
        self.func = func
        self.diagonal = np.ascontiguousarray(diagonal, dtype=np.float64)
        self.size = <int>self.diagonal.shape[0]
        self.ridge = ridge

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef int i
        self.n_products += 1
        with gil:
            self._call(v, out)
        for i in range(self.size):
            out[i] += self.ridge * self.diagonal[i] * v[i]
        self.add_plus(v, out)

    cdef void _call(self, const double* v, double* out) noexcept:
        # an exception cannot cross the nogil loop: it is kept and raised by the caller
        cdef double[::1] res
        cdef int i
        try:
            if self.error is not None:
                raise self.error
            vec = np.empty(self.size)
            for i in range(self.size):
                vec[i] = v[i]
            res = np.ascontiguousarray(self.func(vec), dtype=np.float64)
            if res.shape[0] != self.size:
                raise ValueError(f"Hessian-vector product has length {res.shape[0]}, expected {self.size}")
            for i in range(self.size):
                out[i] = res[i]
        except BaseException as exc:
            self.error = exc
            for i in range(self.size):
                out[i] = 0.0
