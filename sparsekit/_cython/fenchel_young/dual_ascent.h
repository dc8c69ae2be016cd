/* Block coordinate ascent on the dual of L2-regularised sparsemax regression: each row in turn gets its best
 * distribution, at fixed distributions of the others. */
#ifndef SPARSEKIT_DUAL_ASCENT_H
#define SPARSEKIT_DUAL_ASCENT_H

#include "shared/kernels.h"

/* The projection of v (K) onto the simplex, in place: thresholds rise until no member is below (Michelot). */
SK_INLINE void sk_project_simplex(double *restrict v, sk_size K) {
    double tau = -HUGE_VAL, sum = 0.0;
    sk_size size = K, before;
    for (sk_size k = 0; k < K; k++) sum += v[k];
    do {
        before = size;
        tau = (sum - 1.0) / (double)size;
        sum = 0.0;
        size = 0;
        for (sk_size k = 0; k < K; k++)
            if (v[k] > tau) {
                sum += v[k];
                size++;
            }
    } while (size < before && size > 0);
    for (sk_size k = 0; k < K; k++) v[k] = v[k] > tau ? v[k] - tau : 0.0;
}

/* With scores z, the row's distribution p and s = w |a|^2 / alpha the best one is the projection of
 * (z + s p) / (1 + s). Returns the largest change, and the change in z; p becomes the new one. */
SK_INLINE double sk_ascend_row(double *restrict z, double *restrict p, double s, double *restrict v, sk_size K) {
    double scale = 1.0 / (1.0 + s), high = z[0], most = 0.0;
    /* relative to the largest score: weak penalties leave few digits */
    for (sk_size k = 1; k < K; k++) high = z[k] > high ? z[k] : high;
    for (sk_size k = 0; k < K; k++) v[k] = (z[k] - high + s * p[k]) * scale;
    sk_project_simplex(v, K);
    for (sk_size k = 0; k < K; k++) {
        double change = v[k] - p[k], size = change < 0.0 ? -change : change;
        most = size > most ? size : most;
        z[k] = change;
        p[k] = v[k];
    }
    return most;
}

#define SK_ASCEND(NAME, REAL)                                                                                    \
    SK_MULTI(void, sk_ascend_##NAME,                                                                             \
             (const int64_t *restrict ptr, const int32_t *restrict col, const REAL *restrict val,                \
              const int64_t *restrict order, sk_size rows, const double *restrict weight,                        \
              const double *restrict squares, double *restrict P, double *restrict W, sk_size p, int intercept,  \
              double alpha, double *restrict z, sk_size K),                                                      \
             (ptr, col, val, order, rows, weight, squares, P, W, p, intercept, alpha, z, K)) {                   \
        double *v = z + K, *last = W + p * K;                                                                    \
        for (sk_size r = 0; r < rows; r++) {                                                                     \
            sk_size i = (sk_size)order[r];                                                                       \
            double step = weight[i] / alpha;                                                                     \
            if (!(step > 0.0)) continue;                                                                         \
            for (sk_size k = 0; k < K; k++) z[k] = intercept ? last[k] : 0.0;                                    \
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {                                                      \
                const double *w = W + (sk_size)col[e] * K;                                                       \
                double x = (double)val[e];                                                                       \
                SK_SIMD                                                                                          \
                for (sk_size k = 0; k < K; k++) z[k] += x * w[k];                                                \
            }                                                                                                    \
            if (!(sk_ascend_row(z, P + i * K, step * squares[i], v, K) > 0.0)) continue;                         \
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {                                                      \
                double *w = W + (sk_size)col[e] * K;                                                             \
                double x = step * (double)val[e];                                                                \
                SK_SIMD                                                                                          \
                for (sk_size k = 0; k < K; k++) w[k] -= x * z[k];                                                \
            }                                                                                                    \
            if (intercept)                                                                                       \
                for (sk_size k = 0; k < K; k++) last[k] -= step * z[k];                                          \
        }                                                                                                        \
    }                                                                                                            \
    SK_MULTI(void, sk_ascend_dense_##NAME,                                                                       \
             (const REAL *restrict X, sk_size stride, const int64_t *restrict order, sk_size rows,               \
              const double *restrict weight, const double *restrict squares, double *restrict P,                 \
              double *restrict W, sk_size p, int intercept, double alpha, double *restrict z, sk_size K),        \
             (X, stride, order, rows, weight, squares, P, W, p, intercept, alpha, z, K)) {                       \
        double *v = z + K, *last = W + p * K;                                                                    \
        for (sk_size r = 0; r < rows; r++) {                                                                     \
            sk_size i = (sk_size)order[r];                                                                       \
            const REAL *x = X + i * stride;                                                                      \
            double step = weight[i] / alpha;                                                                     \
            if (!(step > 0.0)) continue;                                                                         \
            for (sk_size k = 0; k < K; k++) z[k] = intercept ? last[k] : 0.0;                                    \
            for (sk_size j = 0; j < p; j++) {                                                                    \
                const double *w = W + j * K;                                                                     \
                double value = (double)x[j];                                                                     \
                SK_SIMD                                                                                          \
                for (sk_size k = 0; k < K; k++) z[k] += value * w[k];                                            \
            }                                                                                                    \
            if (!(sk_ascend_row(z, P + i * K, step * squares[i], v, K) > 0.0)) continue;                         \
            for (sk_size j = 0; j < p; j++) {                                                                    \
                double *w = W + j * K, value = step * (double)x[j];                                              \
                SK_SIMD                                                                                          \
                for (sk_size k = 0; k < K; k++) w[k] -= value * z[k];                                            \
            }                                                                                                    \
            if (intercept)                                                                                       \
                for (sk_size k = 0; k < K; k++) last[k] -= step * z[k];                                          \
        }                                                                                                        \
    }
SK_ASCEND(f64, double)
SK_ASCEND(f32, float)

#endif
