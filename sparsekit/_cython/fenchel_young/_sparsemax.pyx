"""Kernels of sparsemax: the transform of rows, its loss, its Jacobian."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int64_t

ctypedef fused real:
    float
    double


cdef extern from "fenchel_young/sparsemax.h" nogil:
    int sk_sparsemax_f32(const float*, Py_ssize_t, const float*, Py_ssize_t, const int64_t*, float*, Py_ssize_t,
                         double*, int64_t*, double*, int, Py_ssize_t, Py_ssize_t, Py_ssize_t, float*, float*,
                         Py_ssize_t*, float*)
    int sk_sparsemax_f64(const double*, Py_ssize_t, const double*, Py_ssize_t, const int64_t*, double*, Py_ssize_t,
                         double*, int64_t*, double*, int, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*, double*,
                         Py_ssize_t*, double*)


cdef extern from "fenchel_young/sparsemax_jvp.h" nogil:
    void sk_sparsemax_jvp_f32(const float*, Py_ssize_t, const float*, Py_ssize_t, float*, Py_ssize_t, Py_ssize_t,
                              Py_ssize_t, Py_ssize_t, float*, Py_ssize_t*)
    void sk_sparsemax_jvp_f64(const double*, Py_ssize_t, const double*, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t,
                              Py_ssize_t, Py_ssize_t, double*, Py_ssize_t*)


cdef Py_ssize_t _step(Py_ssize_t stride, Py_ssize_t itemsize, Py_ssize_t rows) noexcept nogil:
    # a single row has no meaningful stride
    return stride // itemsize if rows > 1 else 0


def sparsemax_rows(const real[:, :] z, const real[:, :] q, const int64_t[::1] y, real[:, :] p, double[::1] tau,
                   int64_t[::1] size, double[::1] loss, bint minus, int n_threads):
    """Sparsemax of the rows of z (n, K), unit stride within a row, K > 0.

    All other arrays may be None. Targets are q (n, K) or codes y (n,). Results are p (n, K), which may be z
    itself, tau (n,), size (n,), loss (n,). With ``minus`` p becomes p - q. Returns whether all targets q were
    distributions.
    """
    cdef Py_ssize_t n = z.shape[0], K = z.shape[1], b, width
    cdef Py_ssize_t parts = max(min(<Py_ssize_t>n_threads, n // 16 if K <= 32 else n), 1)
    cdef Py_ssize_t item = sizeof(real)
    cdef Py_ssize_t z_step = _step(z.strides[0], item, n), q_step = 0, p_step = 0
    cdef const real* Q = NULL
    cdef real* P = NULL
    cdef const int64_t* Y = NULL
    cdef double* T = NULL
    cdef double* L = NULL
    cdef int64_t* S = NULL
    cdef int wrong = 0
    if n == 0:
        return True
    if q is not None:
        Q = &q[0, 0]
        q_step = _step(q.strides[0], item, n)
    if p is not None:
        P = &p[0, 0]
        p_step = _step(p.strides[0], item, n) if n > 1 else K
    if y is not None:
        Y = &y[0]
    if tau is not None:
        T = &tau[0]
    if size is not None:
        S = &size[0]
    if loss is not None:
        L = &loss[0]
    dtype = np.float32 if real is float else np.float64
    width = K if K > 32 else 1
    # pages that no entry reaches never become memory
    cdef real[:, ::1] keep = np.empty((parts, width + 1), dtype=dtype)
    cdef Py_ssize_t[:, ::1] where = np.empty((parts, width + 1), dtype=np.intp)
    cdef real[:, ::1] groups = np.empty((parts, (width // 128 + 1) * 16), dtype=dtype)
    cdef real[:, ::1] spare = np.empty((parts, K), dtype=dtype)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        if real is float:
            wrong += sk_sparsemax_f32(&z[0, 0], z_step, Q, q_step, Y, P, p_step, T, S, L, minus, (n * b) // parts,
                                      (n * (b + 1)) // parts, K, &groups[b, 0], &keep[b, 0], &where[b, 0],
                                      &spare[b, 0])
        else:
            wrong += sk_sparsemax_f64(&z[0, 0], z_step, Q, q_step, Y, P, p_step, T, S, L, minus, (n * b) // parts,
                                      (n * (b + 1)) // parts, K, &groups[b, 0], &keep[b, 0], &where[b, 0],
                                      &spare[b, 0])
    return wrong == 0


def sparsemax_jvp_rows(const real[:, :] p, const real[:, :] v, real[:, :] out, int n_threads):
    """out = s (v - mean of v over s), s the support of p; all (n, K), unit stride within a row.

    ``out`` may be v.
    """
    cdef Py_ssize_t n = p.shape[0], K = p.shape[1], b, item = sizeof(real)
    cdef Py_ssize_t parts = max(min(<Py_ssize_t>n_threads, n // 16 if K <= 32 else n), 1)
    if n == 0 or K == 0:
        return
    dtype = np.float32 if real is float else np.float64
    cdef real[:, ::1] keep = np.empty((parts, K + 1), dtype=dtype)
    cdef Py_ssize_t[:, ::1] where = np.empty((parts, K + 1), dtype=np.intp)
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        if real is float:
            sk_sparsemax_jvp_f32(&p[0, 0], _step(p.strides[0], item, n), &v[0, 0], _step(v.strides[0], item, n),
                                 &out[0, 0], _step(out.strides[0], item, n), (n * b) // parts,
                                 (n * (b + 1)) // parts, K, &keep[b, 0], &where[b, 0])
        else:
            sk_sparsemax_jvp_f64(&p[0, 0], _step(p.strides[0], item, n), &v[0, 0], _step(v.strides[0], item, n),
                                 &out[0, 0], _step(out.strides[0], item, n), (n * b) // parts,
                                 (n * (b + 1)) // parts, K, &keep[b, 0], &where[b, 0])
