/* The highest scores of a row and the logarithm of its normaliser, from parts of its scores. */
#ifndef SPARSEKIT_RANKING_H
#define SPARSEKIT_RANKING_H

#include "shared/kernels.h"

/* classes whose weights are packed while all rows are scored */
#define SK_TILE 64

/* State of one row. The k highest scores so far are a heap whose root is the lowest (of equal ones the last class). log
 * sum exp = high + log(total). total may be NULL: not asked for. */
typedef struct {
    sk_size k;
    void *best; /* (k), of the scores' type */
    int64_t *codes;
    double *high, *total;
    int64_t own; /* a class whose score goes to *own_score, or -1 */
    double *own_score;
} sk_rank;

#define SK_RANKING(NAME, REAL)                                                                                   \
    SK_INLINE int sk_is_lower_##NAME(REAL a, int64_t i, REAL b, int64_t j) { return a < b || (a == b && i > j); }\
    static void sk_replace_root_##NAME(sk_size k, REAL *best, int64_t *codes, REAL score, int64_t code) {        \
        sk_size at = 0;                                                                                          \
        for (;;) {                                                                                               \
            sk_size child = 2 * at + 1;                                                                          \
            if (child >= k) break;                                                                               \
            if (child + 1 < k &&                                                                                 \
                sk_is_lower_##NAME(best[child + 1], codes[child + 1], best[child], codes[child])) child++;       \
            if (!sk_is_lower_##NAME(best[child], codes[child], score, code)) break;                              \
            best[at] = best[child];                                                                              \
            codes[at] = codes[child];                                                                            \
            at = child;                                                                                          \
        }                                                                                                        \
        best[at] = score;                                                                                        \
        codes[at] = code;                                                                                        \
    }                                                                                                            \
    /* scores a (n) of classes lo, lo + 1, ... */                                                                \
    SK_INLINE void sk_rank_part_##NAME(sk_rank row, const REAL *restrict a, sk_size n, int64_t lo) {             \
        REAL top = a[0], *best = (REAL *)row.best;                                                               \
        SK_SIMD_MAX(reduction(max : top)) for (sk_size t = 0; t < n; t++) top = a[t] > top ? a[t] : top;         \
        if (row.k && !(top < best[0]))                                                                           \
            for (sk_size t = 0; t < n; t++)                                                                      \
                if (sk_is_lower_##NAME(best[0], row.codes[0], a[t], lo + t))                                     \
                    sk_replace_root_##NAME(row.k, best, row.codes, a[t], lo + t);                                \
        if (row.own >= lo && row.own < lo + n) *row.own_score = (double)a[row.own - lo];                         \
        if (row.total != NULL) {                                                                                 \
            double high = *row.high, sum = 0.0;                                                                  \
            if ((double)top > high) {                                                                            \
                *row.total *= exp(high - (double)top);                                                           \
                *row.high = high = (double)top;                                                                  \
            }                                                                                                    \
            if (high > -INFINITY) { /* else all are: nothing, or NaN */                                          \
                SK_SIMD_WITH(reduction(+ : sum)) for (sk_size t = 0; t < n; t++)                                 \
                    sum += sk_exp_neg((double)a[t] - high);                                                      \
            } else {                                                                                             \
                for (sk_size t = 0; t < n; t++) sum += a[t] != a[t] ? (double)a[t] : 0.0;                        \
            }                                                                                                    \
            *row.total += sum;                                                                                   \
        }                                                                                                        \
    }                                                                                                            \
    SK_MULTI(void, sk_rank_scores_##NAME,                                                                        \
             (sk_rank row, const REAL *a, sk_size n, int64_t lo),                                                \
             (row, a, n, lo)) {                                                                                  \
        for (sk_size t = 0; t < n; t += SK_TILE)                                                                 \
            sk_rank_part_##NAME(row, a + t, n - t < SK_TILE ? n - t : SK_TILE, lo + t);                          \
    }                                                                                                            \
    /* A row of CSR with n classes from lo on, whose weights are tile (n_columns, SK_TILE). */                   \
    SK_MULTI(void, sk_rank_tile_##NAME,                                                                          \
             (sk_rank row, const REAL *restrict x, const int64_t *restrict col, sk_size len,                     \
              const REAL *restrict tile, const REAL *restrict bias, sk_size n, int64_t lo),                      \
             (row, x, col, len, tile, bias, n, lo)) {                                                            \
        REAL a[SK_TILE];                                                                                         \
        for (sk_size t = 0; t < SK_TILE; t++) a[t] = bias[t];                                                    \
        for (sk_size i = 0; i < len; i++) {                                                                      \
            const REAL *restrict w = tile + col[i] * SK_TILE, xi = x[i];                                         \
            SK_SIMD for (sk_size t = 0; t < SK_TILE; t++) a[t] += xi * w[t];                                     \
        }                                                                                                        \
        sk_rank_part_##NAME(row, a, n, lo);                                                                      \
    }

SK_RANKING(f32, float)
SK_RANKING(f64, double)
#endif
