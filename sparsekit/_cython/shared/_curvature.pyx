"""Vector passes of conjugate gradients in single precision, and Gram matrices of pairs of classes."""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport sqrt
from ._blas cimport dsyrk

ctypedef fused real:
    float
    double


cdef extern from "shared/curvature.h" nogil:
    double sk_dot32(const float*, const float*, Py_ssize_t)
    double sk_dot64(const double*, const double*, Py_ssize_t)
    double sk_cg_curve(const float*, float*, float, Py_ssize_t)
    double sk_cg_step(float, const float*, const float*, const float*, float*, float*, Py_ssize_t)
    void sk_cg_turn(float, const float*, const float*, float*, Py_ssize_t)

# entries of a part of a vector: a function of its length alone, so that sums do not depend on the threads
cdef Py_ssize_t _ENTRIES = 16384
# rows of a block of a Gram matrix, which stays in cache
cdef Py_ssize_t _BLOCK = 256


def dot(const real[::1] a, const real[::1] b, int n_threads):
    """<a, b>, the same for any number of threads, which BLAS does not guarantee."""
    cdef Py_ssize_t n = a.shape[0], i, parts = (n + _ENTRIES - 1) // _ENTRIES, lo
    cdef double[::1] sums = np.zeros(parts)
    for i in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        lo = i * _ENTRIES
        if real is float:
            sums[i] = sk_dot32(&a[lo], &b[lo], min(_ENTRIES, n - lo))
        else:
            sums[i] = sk_dot64(&a[lo], &b[lo], min(_ENTRIES, n - lo))
    return float(np.sum(sums))


def cg_curve(const float[::1] p, float[::1] Hp, double alpha, Py_ssize_t penalised, int n_threads):
    """Hp += alpha p in the first ``penalised`` entries; returns <p, Hp> over all."""
    cdef Py_ssize_t n = p.shape[0], b, parts = (n + _ENTRIES - 1) // _ENTRIES, lo, hi, cut
    cdef double[::1] sums = np.zeros(parts)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        lo = b * _ENTRIES
        hi = min(lo + _ENTRIES, n)
        cut = min(max(penalised, lo), hi)
        if cut > lo:
            sums[b] += sk_cg_curve(&p[lo], &Hp[lo], <float>alpha, cut - lo)
        if hi > cut:
            sums[b] += sk_cg_curve(&p[cut], &Hp[cut], 0.0, hi - cut)
    return float(np.sum(sums))


def cg_step(double c, const float[::1] p, const float[::1] Hp, const float[::1] inverse, float[::1] d, float[::1] r,
            int n_threads):
    """d += c p, r -= c Hp; returns <r, inverse r>."""
    cdef Py_ssize_t n = p.shape[0], b, parts = (n + _ENTRIES - 1) // _ENTRIES, lo
    cdef double[::1] sums = np.zeros(parts)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        lo = b * _ENTRIES
        sums[b] = sk_cg_step(<float>c, &p[lo], &Hp[lo], &inverse[lo], &d[lo], &r[lo], min(_ENTRIES, n - lo))
    return float(np.sum(sums))


def cg_turn(double beta, const float[::1] r, const float[::1] inverse, float[::1] p, int n_threads):
    """p = beta p + inverse r."""
    cdef Py_ssize_t n = p.shape[0], b, parts = (n + _ENTRIES - 1) // _ENTRIES, lo
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        lo = b * _ENTRIES
        sk_cg_turn(<float>beta, &r[lo], &inverse[lo], &p[lo], min(_ENTRIES, n - lo))


cdef void _add_block(double* block, int rows, int q, bint first, double* tile) noexcept nogil:
    # a C-ordered (rows, q) block is a Fortran (q, rows) matrix, and Fortran's upper triangle is the lower one here
    cdef char upper = b'U', plain = b'N'
    cdef double one = 1.0, beta = 0.0 if first else 1.0
    dsyrk(&upper, &plain, &q, &rows, &one, block, &q, &beta, tile, &q)


def pair_gram(const real[:, :] X, const double[:, ::1] U, const double[::1] weight, bint intercept,
              double[:, ::1] H):
    """Lower triangle of H = sum_i weight_i (diag(u_i) - u_i u_i^T) kron a_i a_i^T, a_i = x_i or [x_i, 1].

    Parameters
    ----------
    X : (n, p), unit stride within a row
    U : (K, n)
        Weights of the classes, >= 0; rows where two of them are zero cost the pair nothing. What u_i lacks of
        1 is taken for left out: the blocks of one class make the sums over the other's zero.
    weight : (n,)
    intercept : bool
    H : (K q, K q), q = p or p + 1
        Variables of a class side by side.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], K = U.shape[0], q = p + intercept, i, j, a, k, l, count
    cdef double[:, ::1] block = np.empty((_BLOCK, max(q, 1)))
    cdef double[:, ::1] tile = np.empty((max(q, 1), max(q, 1)))
    cdef double s, h
    cdef bint first
    H[:, :] = 0.0
    if q == 0:
        return
    with nogil:
        for k in range(K):
            for l in range(k + 1, K):
                count = 0
                first = True
                for i in range(n):
                    s = weight[i] * U[k, i] * U[l, i]
                    if not s > 0.0:
                        continue
                    s = sqrt(s)
                    for j in range(p):
                        block[count, j] = s * X[i, j]
                    if intercept:
                        block[count, p] = s
                    count += 1
                    if count == _BLOCK:
                        _add_block(&block[0, 0], <int>count, <int>q, first, &tile[0, 0])
                        first = False
                        count = 0
                if count:
                    _add_block(&block[0, 0], <int>count, <int>q, first, &tile[0, 0])
                elif first:
                    continue
                for j in range(q):
                    for a in range(j + 1):
                        h = tile[j, a]
                        H[k * q + j, k * q + a] += h
                        H[l * q + j, l * q + a] += h
                        H[l * q + j, k * q + a] = -h
                        H[l * q + a, k * q + j] = -h
