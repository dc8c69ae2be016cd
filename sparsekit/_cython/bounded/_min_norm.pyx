"""The point of least norm in a convex hull, by Wolfe's method on the Gram matrix."""
import numpy as np

from libc.float cimport DBL_EPSILON, DBL_MAX, DBL_MIN
from libc.math cimport hypot, sqrt

cdef int ROUNDS = 1000


cdef bint _enter(Py_ssize_t m, Py_ssize_t k, const double* gram, Py_ssize_t stride, double unit, double shift,
                 double ridge, const Py_ssize_t* chosen, double* L) noexcept nogil:
    """Row m of the Cholesky factor L (., k), for point chosen[m]; whether its pivot was positive."""
    cdef Py_ssize_t i, j
    cdef const double* row = gram + chosen[m] * stride
    cdef double* new = L + m * k
    cdef double t, square = unit * row[chosen[m]]
    cdef double pivot = square + shift + ridge * square
    for j in range(m):
        t = unit * row[chosen[j]] + shift
        for i in range(j):
            t = t - new[i] * L[j * k + i]
        new[j] = t / L[j * k + j]
        pivot = pivot - new[j] * new[j]
    new[m] = sqrt(pivot) if pivot > 0.0 else 0.0
    return pivot > 0.0


cdef void _leave(Py_ssize_t m, Py_ssize_t k, Py_ssize_t gone, Py_ssize_t* chosen, double* weights,
                 double* L) noexcept nogil:
    """Take point number ``gone`` of m out of the chosen ones, their weights and their factor."""
    cdef Py_ssize_t i, j
    cdef double c, s, t
    for i in range(gone, m - 1):
        chosen[i], weights[i] = chosen[i + 1], weights[i + 1]
        for j in range(i + 2):
            L[i * k + j] = L[(i + 1) * k + j]
    for j in range(gone, m - 1):  # rotations of columns j and j + 1 bring back the triangle
        t = hypot(L[j * k + j], L[j * k + j + 1])
        c, s = L[j * k + j] / t, L[j * k + j + 1] / t
        for i in range(j, m - 1):
            t = c * L[i * k + j] + s * L[i * k + j + 1]
            L[i * k + j + 1] = c * L[i * k + j + 1] - s * L[i * k + j]
            L[i * k + j] = t


cdef void _affine(Py_ssize_t m, Py_ssize_t k, const double* L, double* target) noexcept nogil:
    """Weights of the point of least norm in the affine hull: the solution of L L^T u = 1, divided by its sum."""
    cdef Py_ssize_t i, j
    cdef double t, total = 0.0
    for i in range(m):
        t = 1.0
        for j in range(i):
            t = t - L[i * k + j] * target[j]
        target[i] = t / L[i * k + i]
    for i in range(m - 1, -1, -1):
        target[i] = target[i] / L[i * k + i]
        total += target[i]
        for j in range(i):
            target[j] = target[j] - L[i * k + j] * target[i]
    for i in range(m):
        target[i] = target[i] / total


cdef Py_ssize_t min_norm(Py_ssize_t k, const double* gram, Py_ssize_t stride, double tol, double* weights,
                         double* buffer, Py_ssize_t* chosen) noexcept nogil:
    """weights (k,) become those of the point of least norm in the hull of k >= 1 points.

    gram (k, k), rows ``stride`` apart, holds their inner products. The workspace ``buffer`` has k (k + 3)
    doubles. ``chosen`` has k integers; the first of them become the points of weight above
    0. Returns their number. It ends where ||x||^2 - min_j g_j.x <= tol max_j ||g_j||^2. Where products
    overflowed, the smallest point has all weight.

    The factor is that of G + shift 1 1^T on the chosen points. This is positive definite if they are affinely
    independent. With the smallest diagonal entry as the shift it is as well scaled as G. Each diagonal entry
    is raised by some units of rounding, so that no points are dependent.
    """
    cdef double* L = buffer
    cdef double* w = buffer + k * k
    cdef double* target = w + k
    cdef double* along = target + k
    cdef Py_ssize_t i, j, best, gone, m, entered
    cdef double most = 0.0, least = DBL_MAX, unit, shift, ridge = 4.0 * k * DBL_EPSILON, t, square, total
    best = 0
    for i in range(k):
        weights[i] = 0.0
        t = gram[i * stride + i]
        if not t <= most:
            most = t
        if t < least:
            least, best = t, i
    chosen[0], w[0], m = best, 1.0, 1
    weights[best] = 1.0
    if not (DBL_MIN <= most <= DBL_MAX):  # zeros, or products that overflowed
        return 1
    unit = 1.0 / most
    shift = unit * least
    if shift < DBL_MIN:  # the origin, next to the others
        return 1
    _enter(0, k, gram, stride, unit, shift, ridge, chosen, L)
    for _ in range(ROUNDS):
        best, square = -1, 0.0
        for i in range(k):
            t = 0.0
            for j in range(m):
                t += gram[i * stride + chosen[j]] * w[j]
            along[i] = unit * t
            if best < 0 or along[i] < along[best]:
                best = i
        for j in range(m):
            square += w[j] * along[chosen[j]]
        if not along[best] < square - tol:
            break
        entered = best
        for j in range(m):
            if chosen[j] == best:
                entered = -1
        if entered < 0:
            break
        chosen[m], w[m] = best, 0.0
        if not _enter(m, k, gram, stride, unit, shift, ridge, chosen, L):
            break
        m += 1
        while True:
            _affine(m, k, L, target)
            gone, t = -1, 1.0
            for j in range(m):
                if target[j] <= 0.0 and (gone < 0 or w[j] < t * (w[j] - target[j])):
                    gone = j
                    t = w[j] / (w[j] - target[j]) if w[j] > 0.0 else 0.0
            if gone < 0:
                for j in range(m):
                    w[j] = target[j]
                break
            # the longest step to the affine minimiser with all weights >= 0
            total = 0.0
            for j in range(m):
                w[j] = w[j] + t * (target[j] - w[j])
                if w[j] < 0.0 or j == gone:
                    w[j] = 0.0
                total += w[j]
            for j in range(m):
                w[j] = w[j] / total
            if chosen[gone] == entered:
                entered = -1
            _leave(m, k, gone, chosen, w, L)
            m -= 1
        if entered < 0:  # within rounding of the optimum: in exact arithmetic an added point stays
            break
    for i in range(k):
        weights[i] = 0.0
    for j in range(m):
        weights[chosen[j]] = w[j]
    return m


def min_norm_weights(const double[:, ::1] gram, double tol, double[::1] weights, Py_ssize_t[::1] chosen):
    """:func:`min_norm` on arrays: gram (k, k), weights (k,), chosen (k,)."""
    cdef Py_ssize_t k = gram.shape[0]
    if not (k and gram.shape[1] == k and weights.shape[0] >= k and chosen.shape[0] >= k):
        raise ValueError("gram must be square, of one point at least, and have a weight for each")
    cdef double[::1] buffer = np.empty(k * (k + 3))
    with nogil:
        k = min_norm(k, &gram[0, 0], gram.shape[1], tol, &weights[0], &buffer[0], &chosen[0])
    return k
