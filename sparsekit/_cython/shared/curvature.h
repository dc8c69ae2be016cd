/* Products with the curvature of class scores in single precision, in two phases: scores by rows,
 * sums by columns. A table has one row a feature and B blocks of eight classes, padded with zeros. */
#ifndef SPARSEKIT_CURVATURE_H
#define SPARSEKIT_CURVATURE_H

#include "shared/kernels.h"

#if defined(__GNUC__) || defined(__clang__)
typedef float sk_f8 __attribute__((vector_size(32), aligned(4), may_alias));
#endif

/* out rows lo .. hi = A V for A in compressed rows; 32 classes at a time stay in registers */
SK_MULTI(void, sk_product32,
         (const int64_t *restrict ptr, const int32_t *restrict col, const float *restrict val,
          const float *restrict V, float *restrict out, sk_size lo, sk_size hi, sk_size B),
         (ptr, col, val, V, out, lo, hi, B)) {
    sk_size K = 8 * B;
    for (sk_size i = lo; i < hi; i++)
        for (sk_size c = 0; c < B; c += 4) {
            sk_size blocks = B - c < 4 ? B - c : 4;
            const float *from = V + 8 * c;
            float *to = out + i * K + 8 * c;
#if defined(__GNUC__) || defined(__clang__)
            sk_f8 t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};
#define SK_ROW(WORK)                                                                             \
    for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {                                              \
        const sk_f8 *v = (const sk_f8 *)(from + (sk_size)col[e] * K);                            \
        float x = val[e];                                                                        \
        WORK                                                                                     \
    }
            if (blocks == 4) {
                SK_ROW(t0 += x * v[0]; t1 += x * v[1]; t2 += x * v[2]; t3 += x * v[3];)
            } else if (blocks == 3) {
                SK_ROW(t0 += x * v[0]; t1 += x * v[1]; t2 += x * v[2];)
            } else if (blocks == 2) {
                SK_ROW(t0 += x * v[0]; t1 += x * v[1];)
            } else {
                SK_ROW(t0 += x * v[0];)
            }
#undef SK_ROW
            ((sk_f8 *)to)[0] = t0;
            if (blocks > 1) ((sk_f8 *)to)[1] = t1;
            if (blocks > 2) ((sk_f8 *)to)[2] = t2;
            if (blocks > 3) ((sk_f8 *)to)[3] = t3;
#else
            for (sk_size k = 0; k < 8 * blocks; k++) to[k] = 0.0f;
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++)
                for (sk_size k = 0; k < 8 * blocks; k++) to[k] += val[e] * from[(sk_size)col[e] * K + k];
#endif
        }
}

/* the same for tables of two or four classes, whose padding to eight would be most of them */
SK_MULTI(void, sk_product32_few,
         (const int64_t *restrict ptr, const int32_t *restrict col, const float *restrict val,
          const float *restrict V, float *restrict out, sk_size lo, sk_size hi, sk_size K),
         (ptr, col, val, V, out, lo, hi, K)) {
    for (sk_size i = lo; i < hi; i++) {
        float *to = out + i * K, a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
        if (K == 2) {
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {
                const float *v = V + 2 * (sk_size)col[e];
                a += val[e] * v[0];
                b += val[e] * v[1];
            }
        } else {
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {
                const float *v = V + 4 * (sk_size)col[e];
                a += val[e] * v[0];
                b += val[e] * v[1];
                c += val[e] * v[2];
                d += val[e] * v[3];
            }
            to[2] = c;
            to[3] = d;
        }
        to[0] = a;
        to[1] = b;
    }
}

SK_MULTI(double, sk_dot32,
         (const float *restrict a, const float *restrict b, sk_size n),
         (a, b, n)) {
    double sum = 0.0;
    SK_SIMD_WITH(reduction(+ : sum))
    for (sk_size i = 0; i < n; i++) sum += (double)(a[i] * b[i]);
    return sum;
}
SK_MULTI(double, sk_dot64,
         (const double *restrict a, const double *restrict b, sk_size n),
         (a, b, n)) {
    double sum = 0.0;
    SK_SIMD_WITH(reduction(+ : sum))
    for (sk_size i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The three passes of conjugate gradients over vectors of n floats, with sums in double precision. Hp +=
 * alpha p and <p, Hp>; d += c p, r -= c Hp and <r, r / M>; p = b p + r / M. */
SK_MULTI(double, sk_cg_curve,
         (const float *restrict p, float *restrict Hp, float alpha, sk_size n),
         (p, Hp, alpha, n)) {
    double sum = 0.0;
    SK_SIMD_WITH(reduction(+ : sum))
    for (sk_size i = 0; i < n; i++) {
        Hp[i] += alpha * p[i];
        sum += (double)(p[i] * Hp[i]);
    }
    return sum;
}
SK_MULTI(double, sk_cg_step,
         (float c, const float *restrict p, const float *restrict Hp, const float *restrict inverse,
          float *restrict d, float *restrict r, sk_size n),
         (c, p, Hp, inverse, d, r, n)) {
    double sum = 0.0;
    SK_SIMD_WITH(reduction(+ : sum))
    for (sk_size i = 0; i < n; i++) {
        d[i] += c * p[i];
        r[i] -= c * Hp[i];
        sum += (double)(r[i] * r[i] * inverse[i]);
    }
    return sum;
}
SK_MULTI(void, sk_cg_turn,
         (float b, const float *restrict r, const float *restrict inverse, float *restrict p, sk_size n),
         (b, r, inverse, p, n)) {
    for (sk_size i = 0; i < n; i++) p[i] = b * p[i] + r[i] * inverse[i];
}

/* s = weight (diag(p) - p p^T) t in place. All scores are taken relative to the top class, whose
 * own probability never enters: p is zero there. */
SK_INLINE void sk_curve_row(const float *restrict p, sk_size top, float weight, float *restrict t,
                            sk_size K) {
    float base = t[top], mean = 0.0f, sum = 0.0f;
    SK_SIMD_WITH(reduction(+ : mean))
    for (sk_size k = 0; k < K; k++) {
        t[k] -= base;
        mean += p[k] * t[k];
    }
    SK_SIMD_WITH(reduction(+ : sum))
    for (sk_size k = 0; k < K; k++) {
        t[k] = weight * p[k] * (t[k] - mean);
        sum += t[k];
    }
    t[top] = -sum;
}

/* S rows lo .. hi = the curvature of the scores S + first; last += the sum of the rows */
SK_MULTI(void, sk_curve_scores,
         (float *restrict S, const float *restrict P, const int32_t *restrict top,
          const float *restrict weight, const float *restrict first, float *restrict last, sk_size lo,
          sk_size hi, sk_size K),
         (S, P, top, weight, first, last, lo, hi, K)) {
    for (sk_size i = lo; i < hi; i++) {
        float *s = S + i * K;
        if (first != NULL)
            for (sk_size k = 0; k < K; k++) s[k] += first[k];
        sk_curve_row(P + i * K, top[i], weight[i], s, K);
        if (first != NULL)
            for (sk_size k = 0; k < K; k++) last[k] += s[k];
    }
}
#endif
