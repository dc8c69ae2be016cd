/* The classes that may be among the best of a row, from weights in 8 bits.
 *
 * The weights of a feature are rounded to whole numbers q in -127 .. 127, by parts of SK_PART classes with a middle and
 * a step each: |w - (middle + step q)| <= error. A row's scores follow from them with an error bound. It includes the
 * rounding of q, of the sums here, and of the exact scores. A class whose upper bound is below the k-th highest lower
 * bound is not among the k best. A part with only such classes is not read. */
#ifndef SPARSEKIT_SHORTLIST_H
#define SPARSEKIT_SHORTLIST_H

#include "shared/kernels.h"

/* classes of a part: 16 cache lines of a feature; their sums stay in the first cache */
#define SK_PART 1024
/* classes whose highest sum is compared first */
#define SK_CHUNK 64
/* parts of a row that are read first, by their bounds */
#define SK_FIRST 4
/* above this all scores are read, since floats may overflow */
#define SK_SUM_LIMIT 1e36
/* error of a term: 2 units in the last place of a float, above that of the exact score's products, sums and weights */
#define SK_SUM_ERROR 2.4e-7
/* terms of a sum in 16 bits */
#define SK_LONGEST 8192

/* w (n <= SK_PART) into whole numbers q (SK_PART, zeros behind); an error of infinity: w is not finite */
#define SK_SHORT_PART(NAME, REAL)                                                                                \
    SK_MULTI(void, sk_round_part_##NAME,                                                                         \
             (const REAL *restrict w, sk_size n, int8_t *restrict q, float *middle, float *step, float *error),  \
             (w, n, q, middle, step, error)) {                                                                   \
        const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */                \
        double bad = 0.0, worst = 0.0, low, high, m, s, by;                                                      \
        REAL least = w[0], most = w[0];                                                                          \
        SK_SIMD_MAX(reduction(min : least) reduction(max : most))                                                \
        for (sk_size t = 0; t < n; t++) {                                                                        \
            least = w[t] < least ? w[t] : least;                                                                 \
            most = w[t] > most ? w[t] : most;                                                                    \
        }                                                                                                        \
        SK_SIMD_WITH(reduction(+ : bad))                                                                         \
        for (sk_size t = 0; t < n; t++) bad += (double)(w[t] - w[t]); /* 0, or NaN for good */                   \
        low = (double)least, high = (double)most;                                                                \
        m = (double)(float)(0.5 * low + 0.5 * high);                                                             \
        s = (double)(float)((high - low) * (1.0 / 254.0));                                                       \
        if (!(bad == 0.0 && fabs(m) < SK_SUM_LIMIT && s < SK_SUM_LIMIT)) {                                       \
            m = s = 0.0;                                                                                         \
            worst = INFINITY;                                                                                    \
        }                                                                                                        \
        by = s > 1e-30 ? 1.0 / s : 0.0;                                                                          \
        if (by == 0.0) s = 0.0;                                                                                  \
        if (worst == 0.0) {                                                                                      \
            double whole[SK_PART];                                                                               \
            SK_SIMD for (sk_size t = 0; t < n; t++) {                                                            \
                double r = (((double)w[t] - m) * by + magic) - magic;                                            \
                r = r < 127.0 ? r : 127.0;                                                                       \
                whole[t] = r > -127.0 ? r : -127.0;                                                              \
            }                                                                                                    \
            SK_SIMD_WITH(reduction(max : worst)) for (sk_size t = 0; t < n; t++) {                               \
                double off = fabs(((double)w[t] - m) - whole[t] * s);                                            \
                worst = off > worst ? off : worst;                                                               \
            }                                                                                                    \
            SK_SIMD for (sk_size t = 0; t < n; t++) q[t] = (int8_t)(int32_t)whole[t];                            \
        } else {                                                                                                 \
            memset(q, 0, SK_PART);                                                                               \
        }                                                                                                        \
        memset(q + n, 0, (size_t)(SK_PART - n));                                                                 \
        *middle = (float)m;                                                                                      \
        *step = (float)s;                                                                                        \
        *error = (float)(worst * (1.0 + 1e-6));                                                                  \
    }

SK_SHORT_PART(f32, float)
SK_SHORT_PART(f64, double)

/* Of a feature: q (n_parts, SK_PART), then the middles, steps and errors (3, n_parts) of its parts. */
typedef struct {
    const int8_t *q;
    const float *parts;
} sk_rounded;

/* Of a row and a part: scores are offset + sum, give or take error; none is above top. */
typedef struct {
    double offset, error, top;
} sk_reach;

/* A row's classes so far: the k highest lower bounds as a heap whose root is the lowest, and all candidates with their
 * upper bounds. */
typedef struct {
    sk_size k, n, capacity;
    double *lower; /* (k), -inf to begin with */
    double *upper; /* (capacity) */
    int64_t *codes;
} sk_shortlist;

/* Reaches of all parts; returns whether all are finite. */
SK_MULTI(int, sk_reaches,
         (const double *restrict x, const sk_rounded *restrict columns, sk_size len, sk_size n_parts,
          double *restrict size, sk_reach *restrict out),
         (x, columns, len, n_parts, size, out)) {
    double *restrict offset = size + n_parts, *restrict error = size + 2 * n_parts;
    double *restrict reach = size + 3 * n_parts;
    double largest = 0.0;
    for (sk_size b = 0; b < 4 * n_parts; b++) size[b] = 0.0;
    for (sk_size i = 0; i < len; i++) {
        const float *restrict middle = columns[i].parts, *restrict step = middle + n_parts;
        const float *restrict off = step + n_parts;
        double xi = x[i], by = fabs(x[i]);
        SK_SIMD for (sk_size b = 0; b < n_parts; b++) {
            offset[b] += xi * (double)middle[b];
            size[b] += by * fabs((double)middle[b]);
            reach[b] += by * (double)step[b];
            error[b] += by * (double)off[b];
        }
    }
    for (sk_size b = 0; b < n_parts; b++) {
        double sum = 127.0 * reach[b], all = size[b] + sum + error[b];
        largest = all > largest || all != all ? all : largest;
        out[b].offset = offset[b];
        out[b].error = error[b] * (1.0 + 1e-9) + (double)(len + 4) * SK_SUM_ERROR * all + 1e-36;
        out[b].top = offset[b] + sum + out[b].error;
    }
    return largest < SK_SUM_LIMIT;
}

/* sums (SK_PART) += a (4) / 256 times four features' integers, each rounded down: the upper halves of the products, the
 * cheapest operation. It is a separate function because GCC otherwise fuses it with the loop over features and
 * vectorises neither. */
SK_MULTI(void, sk_add_rounded,
         (const int16_t *restrict a, const int8_t *restrict q0, const int8_t *restrict q1, const int8_t *restrict q2,
          const int8_t *restrict q3, int16_t *restrict sums),
         (a, q0, q1, q2, q3, sums)) {
    const int16_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    SK_SIMD for (sk_size t = 0; t < SK_PART; t++) {
        int16_t b0 = (int16_t)(q0[t] * 256), b1 = (int16_t)(q1[t] * 256);
        int16_t b2 = (int16_t)(q2[t] * 256), b3 = (int16_t)(q3[t] * 256);
        int16_t s0 = (int16_t)(((int32_t)a0 * b0) >> 16), s1 = (int16_t)(((int32_t)a1 * b1) >> 16);
        int16_t s2 = (int16_t)(((int32_t)a2 * b2) >> 16), s3 = (int16_t)(((int32_t)a3 * b3) >> 16);
        sums[t] = (int16_t)(sums[t] + s0 + s1 + s2 + s3);
    }
}

/* the highest of the sums of each chunk */
SK_MULTI(void, sk_highest_sums, (const int16_t *restrict sums, int16_t *restrict highest), (sums, highest)) {
    for (sk_size c = 0; c < SK_PART / SK_CHUNK; c++) {
        int16_t top = sums[c * SK_CHUNK];
        SK_SIMD_WITH(reduction(max : top))
        for (sk_size t = 0; t < SK_CHUNK; t++) top = sums[c * SK_CHUNK + t] > top ? sums[c * SK_CHUNK + t] : top;
        highest[c] = top;
    }
}

static void sk_raise_lower(double *heap, sk_size k, double value) {
    sk_size at = 0;
    for (;;) {
        sk_size child = 2 * at + 1;
        if (child >= k) break;
        if (child + 1 < k && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

/* leaves those that may still be among the best */
static void sk_thin_out(sk_shortlist *list) {
    sk_size left = 0;
    for (sk_size i = 0; i < list->n; i++)
        if (list->upper[i] >= list->lower[0]) {
            list->upper[left] = list->upper[i];
            list->codes[left++] = list->codes[i];
        }
    list->n = left;
}

/* One part of n classes for one row; a and q have len + 3 entries. Returns 0 if too many classes are undecided.
 *
 * A feature's x times step is rounded to the integer a, in units of their sum / 32000. Then no sum of a q / 256
 * overflows 16 bits. The unit of the sums is 256 of these. Rounding down has a bias and an error of half a unit,
 * rounding a an error of a quarter. */
static int sk_visit_part(const double *x, const sk_rounded *columns, sk_size len, sk_size n_parts, sk_size part,
                         sk_reach reach, sk_size n, int16_t *a, const int8_t **q, sk_shortlist *list) {
    int16_t sums[SK_PART], highest[SK_PART / SK_CHUNK];
    double all = 0.0, by, unit, error, offset;
    if (len > SK_LONGEST) return 0;
    for (sk_size i = 0; i < len; i++) all += fabs(x[i] * (double)columns[i].parts[n_parts + part]);
    by = all > 1e-290 ? 32000.0 / all : 0.0;
    unit = 256.0 / 32000.0 * all;
    error = reach.error + (0.76 * (double)len) * unit; /* where by is 0, sums are far less than half a unit */
    offset = reach.offset + 0.5 * (double)len * unit;
    for (sk_size i = 0; i < len; i++) {
        double at = by * (x[i] * (double)columns[i].parts[n_parts + part]);
        a[i] = (int16_t)(at < 0.0 ? at - 0.5 : at + 0.5);
        q[i] = columns[i].q + part * SK_PART;
    }
    for (sk_size i = len; i % 4; i++) { /* whole fours */
        a[i] = 0;
        q[i] = q[0];
    }
    memset(sums, 0, sizeof sums);
    for (sk_size i = 0; i < len; i += 4) {
        /* each feature is a separate stream in memory, too many for the processor to foresee the next part */
        if (part + 1 < n_parts)
            for (sk_size j = i; j < i + 4 && j < len; j++)
                for (sk_size t = 0; t < SK_PART; t += 64) SK_PREFETCH_FAR(q[j] + SK_PART + t);
        sk_add_rounded(a + i, q[i], q[i + 1], q[i + 2], q[i + 3], sums);
    }
    sk_highest_sums(sums, highest);
    for (sk_size c = 0; c * SK_CHUNK < n; c++) {
        sk_size end = (c + 1) * SK_CHUNK < n ? (c + 1) * SK_CHUNK : n;
        if (offset + unit * (double)highest[c] + error < list->lower[0]) continue;
        for (sk_size t = c * SK_CHUNK; t < end; t++) {
            double score = offset + unit * (double)sums[t];
            if (score + error < list->lower[0]) continue;
            if (list->n == list->capacity) {
                sk_thin_out(list);
                if (4 * list->n > 3 * list->capacity) return 0;
            }
            list->upper[list->n] = score + error;
            list->codes[list->n++] = part * SK_PART + t;
            if (score - error > list->lower[0]) sk_raise_lower(list->lower, list->k, score - error);
        }
    }
    return 1;
}

/* the parts with the highest tops, at most SK_FIRST, the highest first; returns their number */
static sk_size sk_first_parts(const sk_reach *reach, sk_size n_parts, sk_size *first) {
    sk_size n = 0;
    for (sk_size b = 0; b < n_parts; b++) {
        sk_size at = n < SK_FIRST ? n++ : SK_FIRST - 1;
        if (at == SK_FIRST - 1 && n == SK_FIRST && b >= SK_FIRST && !(reach[b].top > reach[first[at]].top)) continue;
        for (; at > 0 && reach[b].top > reach[first[at - 1]].top; at--) first[at] = first[at - 1];
        first[at] = b;
    }
    return n;
}
static int sk_by_code(const void *a, const void *b) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return i < j ? -1 : i > j;
}
#endif
