"""The highest scores of sparse rows among very many classes, most of which weights in 8 bits rule out."""
from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, intptr_t
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

    void sk_rank_tile_f32(sk_rank, const float*, const int64_t*, Py_ssize_t, const float*, const float*, Py_ssize_t,
                          int64_t)
    void sk_rank_tile_f64(sk_rank, const double*, const int64_t*, Py_ssize_t, const double*, const double*,
                          Py_ssize_t, int64_t)

cdef extern from "extreme/shortlist.h" nogil:
    int SK_PART
    int SK_FIRST

    ctypedef struct sk_rounded:
        const int8_t *q
        const float *parts

    ctypedef struct sk_reach:
        double offset
        double error
        double top

    ctypedef struct sk_shortlist:
        Py_ssize_t k
        Py_ssize_t n
        Py_ssize_t capacity
        double *lower
        double *upper
        int64_t *codes

    void SK_PREFETCH(const void*)
    void sk_round_part_f32(const float*, Py_ssize_t, int8_t*, float*, float*, float*)
    void sk_round_part_f64(const double*, Py_ssize_t, int8_t*, float*, float*, float*)
    int sk_reaches(const double*, const sk_rounded*, Py_ssize_t, Py_ssize_t, double*, sk_reach*)
    int sk_visit_part(const double*, const sk_rounded*, Py_ssize_t, Py_ssize_t, Py_ssize_t, sk_reach, Py_ssize_t,
                      int16_t*, const int8_t**, sk_shortlist*)
    void sk_thin_out(sk_shortlist*)
    Py_ssize_t sk_first_parts(const sk_reach*, Py_ssize_t, Py_ssize_t*)
    int sk_by_code(const void*, const void*)

PART = SK_PART
cdef enum:
    ROWS = 64  # rows whose reaches are in memory at once
    WIDE = 1024 + 16  # a part and a cache line, lest all features of a class compete for the same cache lines


cdef int _round_part(const weight[:, :] coef, const int32_t[::1] order, Py_ssize_t part, int8_t[:, ::1] q,
                     float[:, :, ::1] parts) noexcept nogil:
    cdef Py_ssize_t t, j, lo = part * SK_PART, n = min(<Py_ssize_t>SK_PART, coef.shape[0] - lo), m = coef.shape[1]
    cdef weight* copy = <weight*>malloc(m * WIDE * sizeof(weight))
    cdef const weight* w
    if copy == NULL:
        return -1
    if coef.strides[0] >= coef.strides[1]:
        for t in range(n):
            if t + 16 < n:  # rows are pages apart, which no processor foresees
                SK_PREFETCH(&coef[order[lo + t + 16], 0])
            for j in range(m):
                copy[j * WIDE + t] = coef[order[lo + t], j]
    else:
        for j in range(m):
            for t in range(n):
                copy[j * WIDE + t] = coef[order[lo + t], j]
    for j in range(m):
        w = copy + j * WIDE
        if weight is float:
            sk_round_part_f32(w, n, &q[j, lo], &parts[j, 0, part], &parts[j, 1, part], &parts[j, 2, part])
        else:
            sk_round_part_f64(w, n, &q[j, lo], &parts[j, 0, part], &parts[j, 1, part], &parts[j, 2, part])
    free(copy)
    return 0


def round_columns(const weight[:, :] coef, const int32_t[::1] order, int8_t[:, ::1] q, float[:, :, ::1] parts,
                  int n_threads):
    """Weights (n_classes, m) of m features as whole numbers q (m, n_parts * PART), the classes in this order.

    parts (m, 3, n_parts) are middle, step and error of each part of PART classes: |weight - middle - step *
    q| <= error. An error of infinity says that weights are not finite, or too large.
    """
    cdef Py_ssize_t part, n_parts = parts.shape[2]
    cdef int failed = 0
    for part in prange(n_parts, nogil=True, num_threads=n_threads, schedule='static'):
        failed += _round_part(coef, order, part, q, parts)
    if failed:
        raise MemoryError("no memory for the weights of some classes")


cdef void _best_of(const real* x, const int64_t* columns, Py_ssize_t d, const weight[:, :] coef, const weight[::1] bias,
                   sk_shortlist* found, real* best, int64_t* codes, real* tile, int64_t* every) noexcept nogil:
    """The k best of a row's shortlist, by the sums that `_ranking.rank_sparse` makes."""
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


cdef int _rows(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr, Py_ssize_t begin,
               Py_ssize_t end, const int32_t[::1] order, const intptr_t[::1] rounded, const intptr_t[::1] parts, int has_bias,
               const weight[:, :] coef, const weight[::1] bias, Py_ssize_t longest, Py_ssize_t capacity,
               real[:, ::1] best, int64_t[:, ::1] codes, char[::1] failed, int64_t[::1] looked) noexcept nogil:
    cdef Py_ssize_t K = coef.shape[0], n_parts = (K + SK_PART - 1) // SK_PART, k = best.shape[1], n = end - begin
    cdef Py_ssize_t i, j, b, f, width = longest + 1, n_first, bias_column = rounded.shape[0] - 1
    cdef Py_ssize_t first[16]
    cdef Py_ssize_t* length = <Py_ssize_t*>malloc(n * sizeof(Py_ssize_t))
    cdef double* x = <double*>malloc(n * width * sizeof(double))
    cdef sk_rounded* columns = <sk_rounded*>malloc(n * width * sizeof(sk_rounded))
    cdef sk_reach* reach = <sk_reach*>malloc(n * n_parts * sizeof(sk_reach))
    cdef double* numbers = <double*>malloc((4 * n_parts + n * (k + capacity)) * sizeof(double))
    cdef int64_t* places = <int64_t*>malloc((n * capacity + width) * sizeof(int64_t))
    cdef sk_shortlist* lists = <sk_shortlist*>malloc(n * sizeof(sk_shortlist))
    cdef int16_t* a = <int16_t*>malloc((width + 3) * sizeof(int16_t))
    cdef const int8_t** q = <const int8_t**>malloc((width + 3) * sizeof(const int8_t*))
    cdef real* tile = <real*>malloc(width * SK_TILE * sizeof(real))
    cdef int64_t* every
    cdef int bad = 0, ok
    if (length == NULL or x == NULL or columns == NULL or reach == NULL or numbers == NULL or places == NULL
            or lists == NULL or a == NULL or q == NULL or tile == NULL):
        bad = -1
    else:
        every = places + n * capacity
        for j in range(width):
            every[j] = j
        for i in range(n):
            length[i] = 0
            for j in range(indptr[begin + i], indptr[begin + i + 1]):
                if data[j] == 0:
                    continue
                f = indices[j]
                x[i * width + length[i]] = data[j]
                columns[i * width + length[i]].q = <const int8_t*>rounded[f]
                columns[i * width + length[i]].parts = <const float*>parts[f]
                length[i] += 1
            if has_bias:
                x[i * width + length[i]] = 1
                columns[i * width + length[i]].q = <const int8_t*>rounded[bias_column]
                columns[i * width + length[i]].parts = <const float*>parts[bias_column]
                length[i] += 1
            lists[i].k, lists[i].n, lists[i].capacity = k, 0, capacity
            lists[i].lower = numbers + 4 * n_parts + i * (k + capacity)
            lists[i].upper = lists[i].lower + k
            lists[i].codes = places + i * capacity
            for j in range(k):
                lists[i].lower[j] = -INFINITY
            failed[begin + i] = not sk_reaches(x + i * width, columns + i * width, length[i], n_parts, numbers,
                                               reach + i * n_parts)
            if failed[begin + i]:
                continue
            n_first = sk_first_parts(reach + i * n_parts, n_parts, first)
            for j in range(n_first):
                b = first[j]
                if not sk_visit_part(x + i * width, columns + i * width, length[i], n_parts, b, reach[i * n_parts + b],
                                     min(<Py_ssize_t>SK_PART, K - b * SK_PART), a, q, &lists[i]):
                    failed[begin + i] = 1
                    break
                reach[i * n_parts + b].top = -INFINITY
        looked[0] += n * SK_FIRST
        for b in range(n_parts):
            for i in range(n):
                if failed[begin + i] or reach[i * n_parts + b].top < lists[i].lower[0]:
                    continue
                if reach[i * n_parts + b].top == -INFINITY:
                    continue
                looked[0] += 1
                failed[begin + i] = not sk_visit_part(x + i * width, columns + i * width, length[i], n_parts, b,
                                                      reach[i * n_parts + b], min(<Py_ssize_t>SK_PART, K - b * SK_PART),
                                                      a, q, &lists[i])
        for i in range(n):
            if failed[begin + i]:
                continue
            sk_thin_out(&lists[i])
            looked[1] += lists[i].n
            for j in range(lists[i].n):
                lists[i].codes[j] = order[lists[i].codes[j]]
            j = indptr[begin + i]
            if indptr[begin + i + 1] > j:
                _best_of(&data[j], &indices[j], indptr[begin + i + 1] - j, coef, bias, &lists[i], &best[begin + i, 0],
                         &codes[begin + i, 0], tile, every)
            else:
                _best_of(NULL, NULL, 0, coef, bias, &lists[i], &best[begin + i, 0], &codes[begin + i, 0], tile, every)
    free(length)
    free(x)
    free(columns)
    free(reach)
    free(numbers)
    free(places)
    free(lists)
    free(a)
    free(q)
    free(tile)
    return bad


def rank_shortlisted(const real[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                     const int32_t[::1] order, const intptr_t[::1] rounded, const intptr_t[::1] parts, bint has_bias, const weight[:, :] coef,
                     const weight[::1] bias, Py_ssize_t capacity, real[:, ::1] best, int64_t[:, ::1] codes,
                     char[::1] failed, int64_t[::1] looked, int n_threads):
    """The k highest scores of CSR rows (data, indices, indptr), bit for bit those of `_ranking.rank_sparse`.

    order (n_classes,) is that of the columns. rounded and parts (n_features + 1,) are addresses of the
    results of `round_columns` for each feature of the rows. The last entry belongs to the intercepts, which
    count if has_bias. A row may have ``capacity`` undecided classes. If it has more, or its sums are not
    finite, failed (n,) becomes 1 and its rows of best and codes stay unchanged. best and codes (n, k) are
    initially -inf and a number beyond all classes. looked (2,) counts parts and undecided classes.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, part, n_calls = (n + ROWS - 1) // ROWS, longest = 0, i, share
    cdef int bad = 0
    cdef int64_t[:, ::1] counts
    if n == 0:
        return
    for i in range(n):
        longest = max(longest, indptr[i + 1] - indptr[i])
    # rows of a call go over the parts together; a thread has some at least
    share = max(<Py_ssize_t>1, min(<Py_ssize_t>ROWS, (n + n_threads - 1) // n_threads))
    n_calls = (n + share - 1) // share
    import numpy as np
    counts = np.zeros((n_calls, 8), dtype=np.int64)
    for part in prange(n_calls, nogil=True, num_threads=n_threads, schedule='dynamic'):
        bad += _rows(data, indices, indptr, part * share, min(n, (part + 1) * share), order, rounded, parts,
                     has_bias, coef, bias, longest, capacity, best, codes, failed, counts[part])
    for part in range(n_calls):
        looked[0] += counts[part, 0]
        looked[1] += counts[part, 1]
    if bad:
        raise MemoryError("no memory for the classes in doubt")
