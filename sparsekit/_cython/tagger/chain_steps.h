/* Steps of a linear chain's coefficients by one sequence at a time: the structured perceptron.
 *
 * Coefficients are one table of rows of K: p features, K transitions [previous][next], the sequence's beginning, its
 * end; -inf forbids. Rows of a sequence's positions are compressed: indptr (T + 1,), indices, data. */
#ifndef SPARSEKIT_CHAIN_STEPS_H
#define SPARSEKIT_CHAIN_STEPS_H

#include "tagger/chains.h"

/* scores (T, K) of the positions, with those of the ends in theirs */
SK_MULTI(void, sk_chain_unary,
         (sk_size T, sk_size K, sk_size p, const int64_t *indptr, const int64_t *indices, const double *data,
          const double *restrict table, double *restrict unary),
         (T, K, p, indptr, indices, data, table, unary)) {
    const double *restrict begin = table + (p + K) * K, *restrict end = begin + K;
    for (sk_size t = 0; t < T; t++) {
        double *restrict u = unary + t * K;
        for (sk_size k = 0; k < K; k++) u[k] = 0.0;
        for (int64_t e = indptr[t]; e < indptr[t + 1]; e++) {
            const double x = data[e], *restrict w = table + indices[e] * K;
            SK_SIMD
            for (sk_size k = 0; k < K; k++) u[k] += x * w[k];
        }
    }
    for (sk_size k = 0; k < K; k++) {
        unary[k] += begin[k];
        unary[(T - 1) * K + k] += end[k];
    }
}

/* Indices and values of the features of y minus those of z, without those that cancel; returns how many. zeros, of the
 * table's size, is 0 before and afterwards. free, of the same size, marks the free coefficients, or is NULL. With
 * `ends` the sequence's ends are features too. The buffers have 2 (entries + T + 1) entries. */
static sk_size sk_chain_difference(sk_size T, sk_size K, sk_size p, const int64_t *indptr, const int64_t *indices,
                                   const double *data, const int32_t *y, const int32_t *z, int ends,
                                   const uint8_t *free, double *zeros, int64_t *index, double *value) {
    sk_size n = 0, kept = 0;
    for (sk_size t = 0; t < T; t++) {
        const int other = y[t] != z[t];
        if (other)
            for (int64_t e = indptr[t]; e < indptr[t + 1]; e++) {
                const int64_t row = indices[e] * K;
                index[n++] = row + y[t];
                zeros[row + y[t]] += data[e];
                index[n++] = row + z[t];
                zeros[row + z[t]] -= data[e];
            }
        if (t > 0 && (other || y[t - 1] != z[t - 1])) {
            const int64_t one = (p + y[t - 1]) * K + y[t], two = (p + z[t - 1]) * K + z[t];
            index[n++] = one;
            zeros[one] += 1.0;
            index[n++] = two;
            zeros[two] -= 1.0;
        }
        if (ends && other && (t == 0 || t == T - 1))
            for (int side = 0; side < 2; side++) {
                const int64_t row = (p + K + side) * K;
                if (side == 0 ? t != 0 : t != T - 1) continue;
                index[n++] = row + y[t];
                zeros[row + y[t]] += 1.0;
                index[n++] = row + z[t];
                zeros[row + z[t]] -= 1.0;
            }
    }
    for (sk_size i = 0; i < n; i++) {
        const double v = zeros[index[i]];
        zeros[index[i]] = 0.0;
        if (v == 0.0 || (free && !free[index[i]])) continue;
        index[kept] = index[i];
        value[kept++] = v;
    }
    return kept;
}

#endif
