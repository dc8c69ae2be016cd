"""Kernels of the highest scores of a row among very many classes, and of the logarithm of the normaliser.

Those of a shortlist read most weights in 8 bits, the others read all scores of a row once.
"""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free, malloc, qsort

ctypedef fused real:
    float
    double

ctypedef fused weight:
    float
    double

cdef extern from "extreme/ranking.h" nogil:
    int SK_TILE

    ctypedef struct sk_rank:
        Py_ssize_t k
        void *best
        int64_t *codes
        double *high
        double *total
        int64_t own
        double *own_score

    void sk_rank_scores_f32(sk_rank, const float*, Py_ssize_t, int64_t)
    void sk_rank_scores_f64(sk_rank, const double*, Py_ssize_t, int64_t)
    void sk_rank_tile_f32(sk_rank, const float*, const int64_t*, Py_ssize_t, const float*, const float*, Py_ssize_t,
                          int64_t)
    void sk_rank_tile_f64(sk_rank, const double*, const int64_t*, Py_ssize_t, const double*, const double*,
                          Py_ssize_t, int64_t)

cdef extern from "extreme/shortlist.h" nogil:
    int SK_PART

    ctypedef struct sk_rounded:
        Py_ssize_t n_classes
        Py_ssize_t n_parts
        const int8_t *q
        const float *steps
        const float *bias
        const float *about_bias

    ctypedef struct sk_shortlist:
        Py_ssize_t k
        Py_ssize_t n
        Py_ssize_t capacity
        double *lower
        double *upper
        int64_t *codes

    void SK_PREFETCH(const void*)
    float sk_round_part(const float*, Py_ssize_t, int8_t*)
    int sk_list_candidates(const sk_rounded*, const double*, const int64_t*, Py_ssize_t, sk_shortlist*)
    int sk_by_code(const void*, const void*)

TILE, PART = SK_TILE, SK_PART


cdef inline sk_rank _row(real[:, ::1] best, int64_t[:, ::1] codes, double[::1] high, double[::1] total,
                         const int64_t[::1] own, double[::1] own_score, Py_ssize_t i) noexcept nogil:
    cdef sk_rank row
    row.k = best.shape[1]
    row.best = &best[i, 0] if row.k else NULL
    row.codes = &codes[i, 0] if row.k else NULL
    row.high = &high[i] if total.shape[0] else NULL
    row.total = &total[i] if total.shape[0] else NULL
    row.own = own[i] if own.shape[0] else -1
    row.own_score = &own_score[i] if own.shape[0] else NULL
    return row


def rank_scores(const real[:, ::1] scores, int64_t lo, real[:, ::1] best, int64_t[:, ::1] codes, double[::1] high,
                double[::1] total, const int64_t[::1] own, double[::1] own_score, int n_threads):
    """Scores (n, m) of the classes lo, lo + 1, ... into what is known of each row.

    Written: heaps best and codes (n, k), initially -inf and a number beyond all classes. log sum exp = high +
    log(total), (n,), initially -inf and 0. own_score (n,) is written if the class own (n,) is among these
    classes. total and own may be of size 0: not asked for.
    """
    cdef Py_ssize_t i, n = scores.shape[0], m = scores.shape[1]
    if m == 0:
        return
    for i in prange(n, nogil=True, num_threads=n_threads, schedule='static'):
        if real is float:
            sk_rank_scores_f32(_row(best, codes, high, total, own, own_score, i), &scores[i, 0], m, lo)
        else:
            sk_rank_scores_f64(_row(best, codes, high, total, own, own_score, i), &scores[i, 0], m, lo)


def sparse_scores(X, coef, dtype):
    """X coef^T (n, classes) for X in CSR."""
    # only columns that some row has are read
    columns = np.unique(X.indices)
    if 2 * len(columns) < X.shape[1]:
        X = type(X)((X.data, np.searchsorted(columns, X.indices), X.indptr), shape=(X.shape[0], len(columns)))
        coef = coef.T[columns].T
    return X @ np.ascontiguousarray(coef.T, dtype=dtype)


cdef int _rank_range(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                     const weight[:, :] coef, const int64_t[::1] columns, const real[::1] bias, Py_ssize_t lo,
                     Py_ssize_t hi, int64_t first, const sk_rank* rows) noexcept nogil:
    cdef Py_ssize_t n = indptr.shape[0] - 1, d = columns.shape[0], k, l, i, j, t, m
    cdef real* tile = <real*>malloc((d + 1) * SK_TILE * sizeof(real))
    cdef real* offset
    if tile == NULL:
        return -1
    offset = tile + d * SK_TILE
    for l in range((hi - lo + SK_TILE - 1) // SK_TILE):
        k = lo + l * SK_TILE
        m = min(<Py_ssize_t>SK_TILE, hi - k)
        for t in range(SK_TILE):
            offset[t] = bias[k + t] if t < m else 0
        # classes outside where their weights lie class by class, inside where they lie feature by feature
        if coef.strides[0] >= coef.strides[1]:
            for t in range(m):
                for j in range(d):
                    tile[j * SK_TILE + t] = <real>coef[k + t, columns[j]]
        else:
            for j in range(d):
                for t in range(m):
                    tile[j * SK_TILE + t] = <real>coef[k + t, columns[j]]
        for t in range(m, SK_TILE):
            for j in range(d):
                tile[j * SK_TILE + t] = 0
        for i in range(n):
            if real is float:
                sk_rank_tile_f32(rows[i], &data[indptr[i]], &indices[indptr[i]], indptr[i + 1] - indptr[i], tile, offset,
                                 m, first + k)
            else:
                sk_rank_tile_f64(rows[i], &data[indptr[i]], &indices[indptr[i]], indptr[i + 1] - indptr[i], tile, offset,
                                 m, first + k)
    free(tile)
    return 0


def rank_sparse(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                const weight[:, :] coef, const int64_t[::1] columns, const real[::1] bias, int64_t first, result):
    """The same for CSR rows (data, indices, indptr), whose column j is column columns[j] of coef (n_classes, d).

    bias (n_classes,); class k is number first + k. Each of the threads has a range of classes and its own part of
    ``result``, a `Ranking`: best and codes (threads, n, k), high (threads, n), total (threads, n) or (threads, 0).
    own_score (n,) is shared.
    """
    cdef real[:, :, ::1] best = result.best
    cdef int64_t[:, :, ::1] codes = result.codes
    cdef double[:, ::1] high = result.high, total = result.total
    cdef const int64_t[::1] own = result.own
    cdef double[::1] own_score = result.own_score
    cdef Py_ssize_t part, i, parts = best.shape[0], n = best.shape[1], K = coef.shape[0]
    cdef int failed = 0
    cdef sk_rank* rows = <sk_rank*>malloc(parts * (n + 1) * sizeof(sk_rank))
    if rows == NULL:
        raise MemoryError("no memory for the scores of some rows")
    for part in range(parts):
        for i in range(n):
            rows[part * n + i] = _row(best[part], codes[part], high[part], total[part], own, own_score, i)
    for part in prange(parts, nogil=True, num_threads=<int>parts, schedule='static', chunksize=1):
        # whole tiles a thread
        failed += _rank_range(data, indices, indptr, coef, columns, bias,
                              min(K, K * part // parts // SK_TILE * SK_TILE),
                              K if part == parts - 1 else K * (part + 1) // parts // SK_TILE * SK_TILE, first,
                              rows + part * n)
    free(rows)
    if failed:
        raise MemoryError("no memory for the weights of some classes")


def round_columns(const weight[:, :] coef, const int64_t[::1] columns, const int32_t[::1] order, int8_t[:, ::1] q,
                  float[:, ::1] steps, int n_threads):
    """Columns (m,) of the weights (n_classes, n_features) as whole numbers q (m, n_parts * PART), classes in this order.

    Each part of PART classes has a step (m, n_parts): |weight - step q| <= 0.5001 step. A step of infinity says that
    weights are not finite. Weights beyond the last class are 0.
    """
    cdef Py_ssize_t at, part, t, n, n_parts = steps.shape[1], m = columns.shape[0]
    cdef float* copy
    cdef int failed = 0
    for at in prange(m * n_parts, nogil=True, num_threads=n_threads, schedule='static'):
        copy = <float*>malloc(SK_PART * sizeof(float))
        if copy == NULL:
            failed += 1
        else:
            part = at % n_parts
            n = min(<Py_ssize_t>SK_PART, coef.shape[0] - part * SK_PART)
            for t in range(n):
                copy[t] = <float>coef[order[part * SK_PART + t], columns[at // n_parts]]
            steps[at // n_parts, part] = sk_round_part(copy, n, &q[at // n_parts, part * SK_PART])
            free(copy)
    if failed:
        raise MemoryError("no memory for the weights of some classes")


cdef void _best_of(const real* x, const int64_t* columns, Py_ssize_t d, const weight[:, :] coef, const weight[::1] bias,
                   sk_shortlist* found, real* best, int64_t* codes, real* tile, int64_t* every) noexcept nogil:
    """The k best of a row's shortlist, by the sums that `rank_sparse` makes."""
    cdef Py_ssize_t j, t, l, lo, m, k = found.k
    cdef real* offset = tile + d * SK_TILE
    cdef sk_rank row
    row.k, row.best, row.codes = k, best, codes
    row.high = row.total = row.own_score = NULL
    row.own = -1
    qsort(found.codes, found.n, sizeof(int64_t), sk_by_code)
    for t in range(found.n):  # prefetch all before the first is used
        for j in range(d):
            SK_PREFETCH(&coef[found.codes[t], columns[j]])
    for l in range((found.n + SK_TILE - 1) // SK_TILE):
        lo = l * SK_TILE
        m = min(<Py_ssize_t>SK_TILE, found.n - lo)
        for t in range(SK_TILE):
            offset[t] = <real>bias[found.codes[lo + t]] if t < m else 0
            for j in range(d):
                tile[j * SK_TILE + t] = <real>coef[found.codes[lo + t], columns[j]] if t < m else 0
        if real is float:
            sk_rank_tile_f32(row, x, every, d, tile, offset, m, lo)
        else:
            sk_rank_tile_f64(row, x, every, d, tile, offset, m, lo)
    # codes are indices in the shortlist so far, which is in the order of the classes
    for t in range(k):
        if codes[t] < found.n:
            codes[t] = found.codes[codes[t]]


cdef Py_ssize_t _list_row(const real[::1] data, const int64_t[::1] indices, Py_ssize_t begin, Py_ssize_t end,
                          const int64_t[::1] slots, const sk_rounded* rounded, const int32_t[::1] order,
                          const weight[:, :] coef, const weight[::1] bias, Py_ssize_t capacity, real[::1] best,
                          int64_t[::1] codes) noexcept nogil:
    """One row: the number of classes in doubt, -1 if a score is not bounded, or -2 without memory."""
    cdef Py_ssize_t j, n = 0, longest = end - begin + 1, k = best.shape[0]
    cdef double* numbers = <double*>malloc((longest + k + capacity) * sizeof(double))
    cdef int64_t* places = <int64_t*>malloc((2 * longest + capacity) * sizeof(int64_t))
    cdef real* tile = <real*>malloc(longest * SK_TILE * sizeof(real))
    cdef int64_t* every = places + longest
    cdef sk_shortlist found
    cdef Py_ssize_t result = -2
    if numbers != NULL and places != NULL and tile != NULL:
        result = -1
        for j in range(begin, end):
            every[j - begin] = j - begin
            if data[j] != 0:
                numbers[n] = data[j]
                places[n] = slots[indices[j]]
                n += 1
        found.k, found.n, found.capacity = k, 0, capacity
        found.lower = numbers + longest
        found.upper = found.lower + k
        found.codes = every + longest
        for j in range(k):
            found.lower[j] = -INFINITY
        if sk_list_candidates(rounded, numbers, places, n, &found):
            result = found.n
            for j in range(found.n):
                found.codes[j] = order[found.codes[j]]
            _best_of(&data[0] + begin, &indices[0] + begin, end - begin, coef, bias, &found, &best[0], &codes[0], tile,
                     every)
    free(numbers)
    free(places)
    free(tile)
    return result


def rank_shortlisted(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr, kept,
                     const weight[:, :] coef, const weight[::1] bias, Py_ssize_t capacity, real[:, ::1] best,
                     int64_t[:, ::1] codes, int64_t[::1] listed, int n_threads):
    """The k highest scores of CSR rows (data, indices, indptr), bit for bit those of `rank_sparse`.

    ``kept`` is a `Shortlist` with the weights of all features of the rows. A row may have ``capacity`` undecided
    classes. ``listed`` (n,) gets their number, or -1 for a row that has more, or scores that are not finite. best and
    codes (n, k) are initially -inf and a number beyond all classes.
    """
    cdef Py_ssize_t i, n = indptr.shape[0] - 1
    cdef int bad = 0
    cdef const int64_t[::1] slots = kept.slots
    cdef const int32_t[::1] order = kept.order
    cdef const int8_t[:, ::1] q = kept.q
    cdef const float[:, ::1] steps = kept.steps, about_bias = kept.about_bias
    cdef const float[::1] own_bias = kept.bias
    cdef sk_rounded rounded
    if n == 0 or data.shape[0] == 0:
        listed[:] = -1
        return
    rounded.n_classes, rounded.n_parts = coef.shape[0], steps.shape[1]
    rounded.q, rounded.steps = &q[0, 0], &steps[0, 0]
    rounded.bias, rounded.about_bias = &own_bias[0], &about_bias[0, 0]
    for i in prange(n, nogil=True, num_threads=n_threads, schedule='dynamic', chunksize=16):
        listed[i] = _list_row(data, indices, indptr[i], indptr[i + 1], slots, &rounded, order, coef, bias, capacity, best[i],
                         codes[i])
        bad += listed[i] < -1
    if bad:
        raise MemoryError("no memory for the classes in doubt")
