"""Kernels that read all scores of a row once: the highest ones, and the logarithm of the normaliser."""
from cython.parallel cimport prange
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

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

TILE = SK_TILE


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


cdef int _rank_range(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                     const weight[:, :] coef, const int64_t[::1] columns, const real[::1] bias, Py_ssize_t lo,
                     Py_ssize_t hi, int64_t first, real[:, ::1] best, int64_t[:, ::1] codes, double[::1] high,
                     double[::1] total, const int64_t[::1] own, double[::1] own_score) noexcept nogil:
    cdef Py_ssize_t n = indptr.shape[0] - 1, d = columns.shape[0], k, l, i, j, t, m
    cdef real* tile = <real*>malloc((d + 1) * SK_TILE * sizeof(real))
    cdef real* offset
    cdef sk_rank row
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
            row = _row(best, codes, high, total, own, own_score, i)
            if real is float:
                sk_rank_tile_f32(row, &data[indptr[i]], &indices[indptr[i]], indptr[i + 1] - indptr[i], tile, offset, m,
                                 first + k)
            else:
                sk_rank_tile_f64(row, &data[indptr[i]], &indices[indptr[i]], indptr[i + 1] - indptr[i], tile, offset, m,
                                 first + k)
    free(tile)
    return 0


def rank_sparse(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                const weight[:, :] coef, const int64_t[::1] columns, const real[::1] bias, int64_t first,
                real[:, :, ::1] best, int64_t[:, :, ::1] codes, double[:, ::1] high, double[:, ::1] total,
                const int64_t[::1] own, double[::1] own_score):
    """The same for CSR rows (data, indices, indptr), whose column j is column columns[j] of coef (n_classes, d).

    bias (n_classes,); class k is number first + k. Each of the len(best) threads has a range of classes and
    its own results. These are best and codes (threads, n, k), high (threads, n), total (threads, n) or
    (threads, 0). own_score (n,) is shared.
    """
    cdef Py_ssize_t part, parts = best.shape[0], K = coef.shape[0]
    cdef int failed = 0
    for part in prange(parts, nogil=True, num_threads=<int>parts, schedule='static', chunksize=1):
        # whole tiles a thread
        failed += _rank_range(data, indices, indptr, coef, columns, bias,
                              min(K, K * part // parts // SK_TILE * SK_TILE),
                              K if part == parts - 1 else K * (part + 1) // parts // SK_TILE * SK_TILE, first,
                              best[part], codes[part], high[part], total[part], own, own_score)
    if failed:
        raise MemoryError("no memory for the weights of some classes")
