"""The best structures of factors: sequences, matchings, joint assignments and trees, by their scores."""
import numpy as np

from libc.stdint cimport int32_t


cdef extern from "shared/structures.h" nogil:
    Py_ssize_t sk_viterbi_buffer_size(Py_ssize_t, Py_ssize_t)
    double sk_viterbi(Py_ssize_t, Py_ssize_t, const double*, const double*, Py_ssize_t, int32_t*, double*)
    Py_ssize_t sk_matching_buffer_size(Py_ssize_t, Py_ssize_t)
    double sk_matching(Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t*, double*)
    Py_ssize_t sk_dense_buffer_size(Py_ssize_t, const Py_ssize_t*)
    double sk_dense(Py_ssize_t, const Py_ssize_t*, const Py_ssize_t*, const double*, const double*,
                    Py_ssize_t*, Py_ssize_t*, double*)


cdef extern from "factor_graph/trees.h" nogil:
    Py_ssize_t sk_arborescence_buffer_size(Py_ssize_t)
    double sk_arborescence(Py_ssize_t, const double*, int, Py_ssize_t*, double*)
    Py_ssize_t sk_eisner_buffer_size(Py_ssize_t)
    double sk_eisner(Py_ssize_t, const double*, int, Py_ssize_t*, double*)


cdef extern from "factor_graph/tree_cuts.h" nogil:
    ctypedef struct sk_cuts:
        unsigned char *seen
    Py_ssize_t sk_cuts_buffer_size(Py_ssize_t)
    void sk_cuts_take(sk_cuts*, Py_ssize_t, double*)
    void sk_cuts_begin(sk_cuts*, const double*)
    Py_ssize_t sk_cuts_next(sk_cuts*, const double*, double*)


def viterbi(const double[:, ::1] unary, const double[:, :, ::1] transitions):
    """(score, tags) of the best sequence; transitions [position, previous, next]."""
    cdef Py_ssize_t T = unary.shape[0], K = unary.shape[1]
    if T == 0 or K == 0 or transitions.shape[0] != T - 1:
        raise ValueError("a sequence has a position, a tag and transitions between its positions")
    if T > 1 and (transitions.shape[1] != K or transitions.shape[2] != K):
        raise ValueError("transitions are between as many tags as unary scores")
    tags = np.empty(T, dtype=np.int32)
    cdef int32_t[::1] out = tags
    cdef double[::1] work = np.empty(sk_viterbi_buffer_size(T, K))
    cdef const double *trans = &transitions[0, 0, 0] if T > 1 else NULL
    return sk_viterbi(T, K, &unary[0, 0], trans, K * K, &out[0], &work[0]), tags


def matching(const double[:, ::1] scores):
    """(score, column of each row) of the best matching; with m > n the row of each column."""
    cdef Py_ssize_t m = scores.shape[0], n = scores.shape[1]
    if m == 0 or n == 0:
        raise ValueError("a matching has rows and columns")
    columns = np.empty(min(m, n), dtype=np.intp)
    cdef Py_ssize_t[::1] out = columns
    cdef double[::1] work = np.empty(sk_matching_buffer_size(m, n))
    return sk_matching(m, n, &scores[0, 0], &out[0], &work[0]), columns


def dense(const Py_ssize_t[::1] sizes, const double[::1] unary, const double[::1] joint):
    """(score, value of each variable, index in joint) of the best joint assignment; joint in C order."""
    cdef Py_ssize_t K = sizes.shape[0], k, total = 0, product = 1, at
    if K == 0:
        raise ValueError("a joint assignment has a variable")
    offsets = np.empty(K, dtype=np.intp)
    values = np.empty(K, dtype=np.intp)
    cdef Py_ssize_t[::1] starts = offsets, out = values
    for k in range(K):
        starts[k] = total
        total += sizes[k]
        product *= sizes[k]
    if product <= 0 or unary.shape[0] != total or joint.shape[0] != product:
        raise ValueError("scores have one entry for each value, and for each joint assignment")
    cdef double[::1] work = np.empty(sk_dense_buffer_size(K, &sizes[0]))
    cdef double score = sk_dense(K, &sizes[0], &starts[0], &unary[0], &joint[0], &out[0], &at, &work[0])
    return score, values, at


def tree(const double[:, ::1] scores, bint projective, bint single_root):
    """(score, head of each word) of the best tree; row = modifier, column = head, diagonal = root."""
    cdef Py_ssize_t n = scores.shape[0]
    if n == 0 or scores.shape[1] != n:
        raise ValueError("scores of a tree are square")
    heads = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = heads
    cdef double[::1] work = np.empty(sk_eisner_buffer_size(n) if projective else sk_arborescence_buffer_size(n))
    cdef double value
    if projective:
        value = sk_eisner(n, &scores[0, 0], single_root, &out[0], &work[0])
    else:
        value = sk_arborescence(n, &scores[0, 0], single_root, &out[0], &work[0])
    return value, heads


def sets_that_lack(const double[:, ::1] arcs, double least):
    """Sets of words (k, n) that arcs of the given mass enter by less than into each word alone, by more than least."""
    cdef Py_ssize_t n = arcs.shape[0], i, to
    if n == 0 or arcs.shape[1] != n:
        raise ValueError("arcs of a tree are square")
    cdef double[::1] work = np.empty(sk_cuts_buffer_size(n))
    cdef double lacks = 0.0
    cdef sk_cuts cuts
    found = []
    sk_cuts_take(&cuts, n, &work[0])
    sk_cuts_begin(&cuts, &arcs[0, 0])
    while True:
        to = sk_cuts_next(&cuts, &arcs[0, 0], &lacks)
        if to < 0:
            break
        if lacks > least:
            found.append([cuts.seen[i] for i in range(n)])
    return np.array(found, dtype=bool).reshape(len(found), n)
