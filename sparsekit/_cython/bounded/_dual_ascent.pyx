"""Coordinate ascent on the dual of a linear model with a ridge: a step reads one row of X.

The model minimises sum_i s_i h(c_i (x_i.w + b - t_i)) + l1 |w|_1 + l2/2 |w|^2 over lower <= w <= upper, with
h* = eps |a| + delta/2 a^2 on lo <= a <= hi.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint64_t

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

cdef struct Box:
    # coefficients are sums, shrunk by cut, between lower and upper
    double* sums
    double* coef
    const double* lower
    const double* upper
    double cut

cdef class DualAscent:
    """Dual variables, and what follows from them.

    Parameters
    ----------
    target, weight : ndarray of shape (n,)
        t, s.
    sign : ndarray of shape (n,) or None
        c.
    shape : tuple of lo, hi, eps, delta
    l2, q : float
        q / 2 (sum_i u_i)^2 is subtracted from the dual, for slopes u_i = s_i c_i a_i.
    squares : ndarray of shape (n,)
        |x_i|^2.
    lower, upper : ndarray of shape (p,)
        Bounds of the coefficients; may be infinite.
    l1 : float

    Attributes
    ----------
    a : ndarray of shape (n,)
        Dual variables.
    w : ndarray of shape (p,)
        Coefficients: ``v``, shrunk by l1 / l2, in the box.
    v : ndarray of shape (p,)
        -X^T u / l2. The array w where there are neither bounds nor an L1 part.
    b : float
    violation : float
        The largest slope of the dual, in units of a row's weight, that the last sweep found.
    """
    cdef readonly object a, w, v
    cdef public double b
    cdef readonly double violation
    cdef const double[::1] t, s, c, squares
    cdef double[::1] dual, coef
    cdef readonly double q
    cdef double lo, hi, eps, delta, inverse
    cdef Box _box
    cdef Box* box  # NULL without bounds and L1 part
    cdef object limits
    cdef int32_t[::1] order
    cdef uint64_t state

    def __init__(self, target, weight, sign, shape, double l2, double q, squares, lower, upper, double l1):
        self.t, self.s, self.c, self.squares = target, weight, sign, squares
        self.lo, self.hi, self.eps, self.delta = shape
        self.inverse, self.q = 1.0 / l2, q
        self.a, self.w = np.zeros(len(target)), np.zeros(len(lower))
        self.dual, self.coef, self.v, self.box = self.a, self.w, self.w, NULL
        self.limits = lower, upper, l1 / l2
        if len(lower) and (l1 or np.isfinite(lower).any() or np.isfinite(upper).any()):
            self.v = np.zeros(len(lower))
            self._set_box(self.v, self.w, lower, upper, l1 / l2)
        self.set_sums(self.v)
        self.order = np.flatnonzero(weight).astype(np.int32)
        self.b, self.state, self.violation = 0.0, 1, np.inf

    cdef _set_box(self, double[::1] sums, double[::1] coef, const double[::1] lower, const double[::1] upper,
                  double cut):
        self._box = Box(&sums[0], &coef[0], &lower[0], &upper[0], cut)
        self.box = &self._box

    def set_sums(self, v):
        """Set ``v`` (p,), and the coefficients that follow from it."""
        lower, upper, cut = self.limits
        self.v[:] = v
        if self.box != NULL:
            np.clip(np.sign(v) * np.maximum(np.abs(v) - cut, 0.0), lower, upper, out=self.w)

    def sweep(self, const real[::1] data, const index[::1] indices, const index[::1] indptr, Py_ssize_t n_sweeps):
        """Steps of the rows of X, in a shuffled order, ``n_sweeps`` times; returns how many.

        X is CSR, or C-ordered ``data`` with no ``indices`` and no ``indptr``. Rows whose dual variable is at a bound,
        and is far from leaving it, are left out of the later sweeps.
        """
        cdef Py_ssize_t m = self.order.shape[0], at, other, k, n_steps = 0
        cdef int32_t i
        cdef double most = 1e300, worst = 0.0
        with nogil:
            for k in range(n_sweeps):
                with gil:
                    PyErr_CheckSignals()  # Ctrl-C ends it
                worst = 0.0
                n_steps += m
                for at in range(m - 1, 0, -1):
                    # Marsaglia's xorshift: a function of the number of steps
                    self.state ^= self.state << 13
                    self.state ^= self.state >> 7
                    self.state ^= self.state << 17
                    other = <Py_ssize_t>(self.state % <uint64_t>(at + 1))
                    i = self.order[at]
                    self.order[at] = self.order[other]
                    self.order[other] = i
                at = 0
                while at < m:
                    i = self.order[at]
                    if self._step(data, indices, indptr, i, most, &worst):
                        at += 1
                        continue
                    m -= 1
                    self.order[at] = self.order[m]
                    self.order[m] = i
                most = worst if worst > 0.0 else 1e300
        self.violation = worst
        return n_steps

    cdef inline bint _step(self, const real[::1] data, const index[::1] indices, const index[::1] indptr, Py_ssize_t i,
                           double most, double* worst) noexcept nogil:
        # a step of row i; whether later sweeps take the row too
        cdef double c = self.c[i] if self.c is not None else 1.0, a = self.dual[i], z = self.b, r, new, size, step
        cdef Py_ssize_t p = self.coef.shape[0], k
        if indptr.shape[0]:
            for k in range(indptr[i], indptr[i + 1]):
                z += data[k] * self.coef[indices[k]]
        elif p:
            z += _dot(&data[i * p], &self.coef[0], p)
        r = c * (z - self.t[i]) - self.delta * a
        if (a == self.lo and r < -most - self.eps) or (a == self.hi and r > most + self.eps):
            return False
        if a == 0.0 and fabs(r) < self.eps - most:
            return False
        size = self.delta + self.s[i] * (self.squares[i] * self.inverse + self.q)
        if size > 0.0:
            new = size * a + r
            new = (new - self.eps if new > self.eps else (new + self.eps if new < -self.eps else 0.0)) / size
        else:  # neither the ridge nor the loss has curvature
            new = self.hi if r > self.eps else (self.lo if r < -self.eps else a)
        new = self.lo if new < self.lo else (self.hi if new > self.hi else new)
        if new == a:
            return True
        worst[0] = max(worst[0], size * fabs(new - a))
        self.dual[i] = new
        step = self.s[i] * c * (new - a)
        self.b -= self.q * step
        step *= self.inverse
        if self.box != NULL:
            k = indptr[i] if indptr.shape[0] else i * p
            _move(&data[k], &indices[k] if indptr.shape[0] else NULL, indptr[i + 1] - k if indptr.shape[0] else p, step,
                  self.box)
        elif indptr.shape[0]:
            for k in range(indptr[i], indptr[i + 1]):
                self.coef[indices[k]] -= data[k] * step
        else:
            for k in range(p):
                self.coef[k] -= data[i * p + k] * step
        return True


cdef void _move(const real* x, const index* columns, Py_ssize_t size, double step, const Box* box) noexcept nogil:
    # subtract step times a row, dense or of these columns, from the sums, and shrink and clip them to coefficients
    cdef Py_ssize_t k, j
    cdef double v
    for k in range(size):
        j = columns[k] if columns != NULL else k
        v = box.sums[j] - x[k] * step
        box.sums[j] = v
        v = v - box.cut if v > box.cut else (v + box.cut if v < -box.cut else 0.0)
        box.coef[j] = min(max(v, box.lower[j]), box.upper[j])


cdef inline double _dot(const real* x, const double* w, Py_ssize_t p) noexcept nogil:
    # eight sums side by side, which compilers put into vectors
    cdef double sums[8]
    cdef double total = 0.0
    cdef Py_ssize_t k, lane, end = p - p % 8
    for lane in range(8):
        sums[lane] = 0.0
    for k in range(0, end, 8):
        for lane in range(8):
            sums[lane] += x[k + lane] * w[k + lane]
    for k in range(end, p):
        total += x[k] * w[k]
    for lane in range(8):
        total += sums[lane]
    return total
