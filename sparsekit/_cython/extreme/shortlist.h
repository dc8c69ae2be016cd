/* The classes that may be among the best of a row, from weights in 8 bits.
 *
 * The weights of a feature are rounded to step q, q in -127 .. 127, with one step a part of SK_PART classes. A row's
 * scores follow from them with an error bound. It includes the rounding of q, of the sums here, and of the exact scores.
 * A class whose upper bound is below the k-th highest lower bound is not among the k best. A part with only such classes
 * is not read. */
#ifndef SPARSEKIT_SHORTLIST_H
#define SPARSEKIT_SHORTLIST_H

#include "shared/kernels.h"

/* classes of a part: 16 cache lines of a feature; their sums stay in the first cache */
#define SK_PART 1024
/* classes whose highest sum is compared first */
#define SK_CHUNK 64
/* above this all scores are read, since floats may overflow */
#define SK_SUM_LIMIT 1e36
/* error of a weight in steps: half a step, and the rounding of the quotient */
#define SK_STEP_ERROR 0.5001
/* error of a term: 2 units in the last place of a float, above that of the exact score's products, sums and weights */
#define SK_SUM_ERROR 2.4e-7
/* smallest step, whose products with the integers are normal numbers */
#define SK_LEAST_STEP 1e-30f
/* error of sums of numbers below the least normal one */
#define SK_TINY_ERROR 1e-34

/* w (n <= SK_PART) into whole numbers q (SK_PART, zeros behind); returns the step, infinity if w is not finite */
SK_MULTI(float, sk_round_part, (const float *restrict w, sk_size n, int8_t *restrict q), (w, n, q)) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float most = 0.0f, bad = 0.0f, step, by;
    SK_SIMD_WITH(reduction(+ : bad)) for (sk_size t = 0; t < n; t++) bad += w[t] - w[t]; /* 0, or NaN for good */
    memset(q, 0, SK_PART);
    if (bad != 0.0f) return INFINITY;
    SK_SIMD_MAX(reduction(max : most)) for (sk_size t = 0; t < n; t++) most = fabsf(w[t]) > most ? fabsf(w[t]) : most;
    step = most / 127.0f > SK_LEAST_STEP ? most / 127.0f : SK_LEAST_STEP;
    by = 1.0f / step;
    SK_SIMD for (sk_size t = 0; t < n; t++) q[t] = (int8_t)(int32_t)((w[t] * by + magic) - magic);
    return step;
}

/* Weights of some features: q (features, n_parts, SK_PART) and steps (features, n_parts); intercepts in the same order
 * (n_parts, SK_PART), and the highest and the largest absolute one of each part (2, n_parts). */
typedef struct {
    sk_size n_classes, n_parts;
    const int8_t *q;
    const float *steps, *bias, *about_bias;
} sk_rounded;

/* A row's classes so far: the k highest lower bounds as a heap whose root is the lowest, and all candidates with their
 * upper bounds. */
typedef struct {
    sk_size k, n, capacity;
    double *lower; /* (k), -inf to begin with */
    double *upper; /* (capacity) */
    int64_t *codes;
} sk_shortlist;

/* sums (SK_PART) += four features' c q, so that each sum is read and written once for all four */
SK_MULTI(void, sk_add_rounded,
         (const float *restrict c, const int8_t *restrict q0, const int8_t *restrict q1, const int8_t *restrict q2,
          const int8_t *restrict q3, float *restrict sums),
         (c, q0, q1, q2, q3, sums)) {
    const float c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
    SK_SIMD for (sk_size t = 0; t < SK_PART; t++)
        sums[t] += (c0 * (float)q0[t] + c1 * (float)q1[t]) + (c2 * (float)q2[t] + c3 * (float)q3[t]);
}

/* the highest of the sums of each chunk */
SK_MULTI(void, sk_highest_sums, (const float *restrict sums, float *restrict highest), (sums, highest)) {
    for (sk_size c = 0; c < SK_PART / SK_CHUNK; c++) {
        float top = sums[c * SK_CHUNK];
        SK_SIMD_MAX(reduction(max : top))
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

/* The candidates of a row x (len), whose entry i has the weights slot[i]. Returns 0 if too many are undecided, or if a
 * bound is not finite. */
static int sk_list_candidates(const sk_rounded *W, const double *x, const int64_t *slot, sk_size len,
                              sk_shortlist *list) {
    float sums[SK_PART], highest[SK_PART / SK_CHUNK];
    for (sk_size part = 0; part < W->n_parts; part++) {
        sk_size first = part * SK_PART, n = W->n_classes - first < SK_PART ? W->n_classes - first : SK_PART;
        double reach = 0.0, size, error;
        for (sk_size i = 0; i < len; i++) reach += fabs(x[i]) * (double)W->steps[slot[i] * W->n_parts + part];
        size = 127.0 * reach + (double)W->about_bias[W->n_parts + part];
        if (!(size < SK_SUM_LIMIT)) return 0;
        error = SK_STEP_ERROR * reach + (double)(len + 4) * SK_SUM_ERROR * size + SK_TINY_ERROR;
        if ((double)W->about_bias[part] + 127.0 * reach + error < list->lower[0]) continue;
        memcpy(sums, W->bias + first, sizeof sums);
        for (sk_size i = 0; i < len; i += 4) {
            const int8_t *q[4];
            float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            for (sk_size j = 0; j < 4; j++) {
                sk_size at = i + j < len ? slot[i + j] * W->n_parts + part : slot[i] * W->n_parts + part;
                q[j] = W->q + at * SK_PART;
                if (i + j < len) c[j] = (float)(x[i + j] * (double)W->steps[at]);
                /* each feature is a separate stream in memory, too many for the processor to foresee the next part */
                if (part + 1 < W->n_parts)
                    for (sk_size t = 0; t < SK_PART; t += 64) SK_PREFETCH_FAR(q[j] + SK_PART + t);
            }
            sk_add_rounded(c, q[0], q[1], q[2], q[3], sums);
        }
        sk_highest_sums(sums, highest);
        for (sk_size t = 0; t < n; t++) {
            double score = (double)sums[t];
            if (t % SK_CHUNK == 0 && (double)highest[t / SK_CHUNK] + error < list->lower[0]) {
                t += SK_CHUNK - 1;
                continue;
            }
            if (score + error < list->lower[0]) continue;
            if (list->n == list->capacity) {
                sk_thin_out(list);
                if (4 * list->n > 3 * list->capacity) return 0;
            }
            list->upper[list->n] = score + error;
            list->codes[list->n++] = first + t;
            if (score - error > list->lower[0]) sk_raise_lower(list->lower, list->k, score - error);
        }
    }
    sk_thin_out(list);
    return 1;
}

static int sk_by_code(const void *a, const void *b) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return i < j ? -1 : i > j;
}
#endif
