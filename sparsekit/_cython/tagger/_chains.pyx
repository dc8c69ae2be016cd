"""Kernels of linear chains with one table of transition scores: forward-backward and best sequences."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t


cdef extern from "tagger/chains.h" nogil:
    Py_ssize_t sk_chain_padded(Py_ssize_t)
    Py_ssize_t sk_chain_buffer_size(Py_ssize_t, Py_ssize_t)
    double sk_chain_range(Py_ssize_t, Py_ssize_t, const double*)
    double sk_chain_scaled(Py_ssize_t, Py_ssize_t, double*, const double*, const double*, double, double, double*,
                           double*)
    double sk_chain_logs(Py_ssize_t, Py_ssize_t, double*, const double*, double, double*, double*)
    double sk_viterbi(Py_ssize_t, Py_ssize_t, const double*, const double*, Py_ssize_t, int32_t*, double*)


def forward_backward(const int64_t[::1] start, const int64_t[::1] blocks, double[:, ::1] unary,
                     const double[:, ::1] trans, double near, const double[::1] weight,
                     double[::1] value, double[:, ::1] pairs, int n_threads):
    """log Z of many sequences and their marginals; -inf and zeros where no labelling is allowed.

    Sequence i has the rows start[i] .. start[i + 1] of unary (N, K); blocks (B + 1,) cut the sequences into
    parts, whose sums are added in order. Written: unary, weight[i] times the marginals; value (S,), log Z;
    pairs (K, K), the weighted sum of the transitions' marginals [previous, next]. trans (K, K) is without NaN
    or inf, -inf forbids. Sequences whose scores of a position are at most ``near`` apart are summed without
    logarithms.
    """
    cdef Py_ssize_t K = trans.shape[0], B = blocks.shape[0] - 1, P = sk_chain_padded(K), b, i, j, T, longest = 0
    cdef double top
    pairs[:] = 0.0
    if K == 0 or B <= 0 or unary.shape[0] == 0:
        value[:] = 0.0
        return
    for i in range(start.shape[0] - 1):
        longest = max(longest, start[i + 1] - start[i])
    table = np.asarray(trans)
    most = table.max()
    top = most if most > -np.inf else 0.0
    wide = np.zeros((2, K, P))
    wide[0, :, :K] = np.exp(table - top)
    wide[1, :, :K] = wide[0, :, :K].T
    outers, direct = np.zeros((B, K, P)), np.zeros((B, K, K))
    cdef double[:, :, ::1] E = wide, outer = outers, own = direct
    cdef double[:, ::1] buffer = np.empty((B, sk_chain_buffer_size(longest, K)))
    for b in prange(B, nogil=True, num_threads=n_threads, schedule='dynamic'):
        for i in range(blocks[b], blocks[b + 1]):
            T = start[i + 1] - start[i]
            if T == 0:
                value[i] = 0.0
            elif sk_chain_range(T, K, &unary[start[i], 0]) <= near:
                value[i] = sk_chain_scaled(T, K, &unary[start[i], 0], &E[0, 0, 0], &E[1, 0, 0], top, weight[i],
                                           &outer[b, 0, 0], &buffer[b, 0])
            else:
                value[i] = sk_chain_logs(T, K, &unary[start[i], 0], &trans[0, 0], weight[i], &own[b, 0, 0],
                                         &buffer[b, 0])
    for b in range(B):
        np.asarray(pairs)[:] += outers[b, :, :K] * wide[0, :, :K] + direct[b]


def best_sequences(const int64_t[::1] start, const double[:, ::1] unary, const double[:, ::1] trans,
                   int32_t[::1] tags, double[::1] value, int n_threads):
    """tags (N,) of the best labelling of each sequence and its score value (S,), -inf where none is allowed."""
    cdef Py_ssize_t K = trans.shape[0], S = start.shape[0] - 1, i, b, T, longest = 0
    cdef Py_ssize_t parts = max(min(<Py_ssize_t>n_threads, S), 1)
    if K == 0 or unary.shape[0] == 0:
        value[:] = 0.0
        return
    for i in range(S):
        longest = max(longest, start[i + 1] - start[i])
    cdef double[:, ::1] buffer = np.empty((parts, (longest + 1) * K))
    for b in prange(parts, nogil=True, num_threads=n_threads, schedule='static'):
        for i in range(S * b // parts, S * (b + 1) // parts):
            T = start[i + 1] - start[i]
            if T == 0:
                value[i] = 0.0
            else:
                value[i] = sk_viterbi(T, K, &unary[start[i], 0], &trans[0, 0], 0, &tags[start[i]], &buffer[b, 0])
