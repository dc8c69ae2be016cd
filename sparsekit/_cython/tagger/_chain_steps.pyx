"""Steps of a chain's coefficients by one sequence after another: the structured perceptron.

A table (p + K + 2, K) has the coefficients: of p features, transitions [previous, next], the beginning, the end; -inf
forbids. Rows of the positions are compressed: indptr (N + 1,), indices, data; sequence i has the positions start[i] ..
start[i + 1]. free, of the table's shape, marks the coefficients that may move; an empty one: all.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "tagger/chain_steps.h" nogil:
    double sk_viterbi(Py_ssize_t, Py_ssize_t, const double*, const double*, Py_ssize_t, int32_t*, double*)
    void sk_chain_unary(Py_ssize_t, Py_ssize_t, Py_ssize_t, const int64_t*, const int64_t*, const double*,
                        const double*, double*)
    Py_ssize_t sk_chain_difference(Py_ssize_t, Py_ssize_t, Py_ssize_t, const int64_t*, const int64_t*, const double*,
                                   const int32_t*, const int32_t*, int, const uint8_t*, double*, int64_t*, double*)


cdef tuple _buffer_sizes(const int64_t[::1] start, const int64_t[::1] indptr, const int64_t[::1] order):
    """The number of positions of the longest sequence, and the largest number of entries of a difference."""
    cdef Py_ssize_t i, T, longest = 1, most = 0
    for i in order:
        T = start[i + 1] - start[i]
        longest = max(longest, T)
        most = max(most, indptr[start[i + 1]] - indptr[start[i]] + T + 1)
    return longest, 2 * most + 1


def perceptron_steps(const int64_t[::1] start, const int64_t[::1] indptr, const int64_t[::1] indices,
                     const double[::1] data, const int32_t[::1] y, const int64_t[::1] order,
                     const double[::1] weight, const uint8_t[::1] free, double[:, ::1] table, double[:, ::1] sums,
                     double[::1] zeros, double count, bint ends):
    """Perceptron steps by the sequences ``order`` (n,), in place; returns how many positions were labelled wrongly.

    sums, of the table's shape, gets each step times the number of sequences before it; ``count`` precede the
    first. The mean of the tables after each sequence is then table - sums / (count + n). zeros is of the
    table's size, 0 before and afterwards.
    """
    cdef Py_ssize_t K = table.shape[1], p = table.shape[0] - K - 2, n = order.shape[0], s, i, t, T, at, m, wrong = 0
    longest, most = _buffer_sizes(start, indptr, order)
    cdef double a, b
    cdef int32_t[::1] best = np.zeros(longest, dtype=np.int32)
    cdef int64_t[::1] index = np.empty(most, dtype=np.int64)
    cdef double[::1] unary = np.empty(longest * K), buffer = np.empty((longest + 1) * K), value = np.empty(most)
    if indices.shape[0] == 0:
        indices, data = np.zeros(1, dtype=np.int64), np.zeros(1)  # no entry is read
    cdef const uint8_t* moving = &free[0] if free.shape[0] else NULL
    cdef double* x = &table[0, 0]
    cdef double* summed = &sums[0, 0]
    with nogil:
        for s in range(n):
            i = order[s]
            at, T = start[i], start[i + 1] - start[i]
            if T == 0 or weight[i] == 0.0:
                continue
            sk_chain_unary(T, K, p, &indptr[at], &indices[0], &data[0], x, &unary[0])
            sk_viterbi(T, K, &unary[0], x + p * K, 0, &best[0], &buffer[0])
            for t in range(T):
                wrong += y[at + t] != best[t]
            m = sk_chain_difference(T, K, p, &indptr[at], &indices[0], &data[0], &y[at], &best[0], ends, moving,
                                    &zeros[0], &index[0], &value[0])
            a, b = weight[i], weight[i] * (count + s)
            for t in range(m):
                x[index[t]] += a * value[t]
                summed[index[t]] += b * value[t]
    return wrong
