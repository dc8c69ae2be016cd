/* Hot loops of the multinomial loss. Arrays with one value a class are stored row by row, so
 * that every inner loop runs over neighbouring numbers. */
#ifndef SPARSEKIT_MULTINOMIAL_H
#define SPARSEKIT_MULTINOMIAL_H

#include "kernels.h"

/* Z[lo:hi] = A W and G[:, k0:k1] = A^T U[:, k0:k1] for A in compressed rows, K classes */
#define SK_MATMAT(NAME, INDEX, REAL)                                                             \
    SK_MULTI void sk_matmat_##NAME(const int64_t *restrict ptr, const INDEX *restrict col,       \
                                   const REAL *restrict val, const double *restrict W,           \
                                   double *restrict Z, sk_size lo, sk_size hi, sk_size K) {      \
        for (sk_size i = lo; i < hi; i++) {                                                      \
            double *z = Z + i * K;                                                               \
            for (sk_size k = 0; k < K; k++) z[k] = 0.0;                                          \
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {                                      \
                const double *w = W + (sk_size)col[e] * K;                                       \
                double x = (double)val[e];                                                       \
                for (sk_size k = 0; k < K; k++) z[k] += x * w[k];                                \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    SK_MULTI void sk_rmatmat_##NAME(const int64_t *restrict ptr, const INDEX *restrict col,      \
                                    const REAL *restrict val, const double *restrict U,          \
                                    double *restrict G, sk_size n, sk_size K, sk_size k0,        \
                                    sk_size k1) {                                                \
        for (sk_size i = 0; i < n; i++) {                                                        \
            const double *u = U + i * K;                                                         \
            for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {                                      \
                double *g = G + (sk_size)col[e] * K;                                             \
                double x = (double)val[e];                                                       \
                for (sk_size k = k0; k < k1; k++) g[k] += x * u[k];                              \
            }                                                                                    \
        }                                                                                        \
    }
SK_MATMAT(i32_f64, int32_t, double)
SK_MATMAT(i64_f64, int64_t, double)
SK_MATMAT(i32_f32, int32_t, float)
SK_MATMAT(i64_f32, int64_t, float)

/* exp(z_k - max z) into e; returns the place of the maximum */
SK_INLINE sk_size sk_softmax_row(const double *restrict z, double *restrict e, sk_size K) {
    sk_size top = 0;
    double high;
    for (sk_size k = 1; k < K; k++)
        if (z[k] > z[top]) top = k;
    high = z[top];
#pragma omp simd
    for (sk_size k = 0; k < K; k++) e[k] = sk_exp_neg(z[k] - high);
    return top;
}

/* sum_i s_i (log sum_k exp z_ik - z_ic) and its derivative U by rows; s may be NULL (ones). What
 * the other classes weigh is summed without the row's own class: 1 - p loses all digits where p
 * is close to one. */
SK_MULTI double sk_multinomial_all(const double *restrict Z, const int32_t *restrict code,
                                   const double *restrict s, double *restrict U, sk_size lo,
                                   sk_size hi, sk_size K) {
    double total = 0.0;
    for (sk_size i = lo; i < hi; i++) {
        const double *z = Z + i * K;
        double *u = U + i * K, weight = s == NULL ? 1.0 : s[i], own, rest = 0.0, scale, loss;
        sk_size c = code[i], top = sk_softmax_row(z, u, K);
        own = u[c];
        u[c] = 0.0;
#pragma omp simd reduction(+ : rest)
        for (sk_size k = 0; k < K; k++) rest += u[k];
        loss = top == c ? log1p(rest) : log(rest + own) + (z[top] - z[c]);
        scale = weight / (rest + own);
        for (sk_size k = 0; k < K; k++) u[k] *= scale;
        u[c] = -rest * scale;
        if (weight > 0.0) total += weight * loss;
    }
    return total;
}

/* Probabilities P with the largest of each row set to zero and kept apart: top, and rest, the sum
 * of the others. With ``radius`` the other scores are raised by radius_i, at most to the largest. */
SK_MULTI void sk_multinomial_model(const double *restrict Z, const double *restrict radius,
                                   double *restrict P, double *restrict rest,
                                   int32_t *restrict top, sk_size lo, sk_size hi, sk_size K) {
    for (sk_size i = lo; i < hi; i++) {
        const double *z = Z + i * K;
        double *p = P + i * K, sum = 0.0, inv;
        sk_size c;
        if (radius != NULL) {
            double r = radius[i], high = z[0];
            for (sk_size k = 1; k < K; k++) high = z[k] > high ? z[k] : high;
            for (sk_size k = 0; k < K; k++) {
                double t = z[k] - high + r;
                p[k] = t < 0.0 ? t : 0.0;
            }
            c = 0;
            for (sk_size k = 1; k < K; k++)
                if (z[k] > z[c]) c = k;
#pragma omp simd
            for (sk_size k = 0; k < K; k++) p[k] = sk_exp_neg(p[k]);
        } else
            c = sk_softmax_row(z, p, K);
        p[c] = 0.0;
#pragma omp simd reduction(+ : sum)
        for (sk_size k = 0; k < K; k++) sum += p[k];
        inv = 1.0 / (1.0 + sum);
        for (sk_size k = 0; k < K; k++) p[k] *= inv;
        rest[i] = sum * inv;
        top[i] = (int32_t)c;
    }
}

/* s = weight (diag(p) - p p^T) t in place. All scores are taken relative to the top class, whose
 * own probability never enters: p is zero there. */
SK_INLINE void sk_curve_row(const float *restrict p, sk_size top, float weight, float *restrict t,
                            sk_size K) {
    float base = t[top], mean = 0.0f, sum = 0.0f;
#pragma omp simd reduction(+ : mean)
    for (sk_size k = 0; k < K; k++) {
        t[k] -= base;
        mean += p[k] * t[k];
    }
#pragma omp simd reduction(+ : sum)
    for (sk_size k = 0; k < K; k++) {
        t[k] = weight * p[k] * (t[k] - mean);
        sum += t[k];
    }
    t[top] = -sum;
}

/* out += H V over rows lo .. hi: the scores of a row, their curvature, and back; row F of V and
 * out belongs to the intercepts. */
SK_INLINE void sk_curve_rows(const int64_t *restrict ptr, const int32_t *restrict col,
                             const float *restrict val, const float *restrict P,
                             const int32_t *restrict top, const float *restrict weight,
                             const float *restrict V, float *restrict out, sk_size lo, sk_size hi,
                             sk_size F, int intercept, float *restrict t, sk_size K) {
    const float *first = V + F * K;
    float *last = out + F * K;
    for (sk_size i = lo; i < hi; i++) {
        if (ptr[i] == ptr[i + 1] && !intercept) continue;
        if (intercept)
            for (sk_size k = 0; k < K; k++) t[k] = first[k];
        else
            for (sk_size k = 0; k < K; k++) t[k] = 0.0f;
        for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {
            const float *v = V + (sk_size)col[e] * K;
            float x = val[e];
            for (sk_size k = 0; k < K; k++) t[k] += x * v[k];
        }
        sk_curve_row(P + i * K, top[i], weight[i], t, K);
        for (sk_size e = ptr[i]; e < ptr[i + 1]; e++) {
            float *o = out + (sk_size)col[e] * K;
            float x = val[e];
            for (sk_size k = 0; k < K; k++) o[k] += x * t[k];
        }
        if (intercept)
            for (sk_size k = 0; k < K; k++) last[k] += t[k];
    }
}

/* the same with the number of classes (a multiple of 8) known to the compiler where it is small */
#define SK_CURVE(KP)                                                                             \
    SK_MULTI void sk_curve_rows_##KP(const int64_t *ptr, const int32_t *col, const float *val,   \
                                     const float *P, const int32_t *top, const float *weight,    \
                                     const float *V, float *out, sk_size lo, sk_size hi,         \
                                     sk_size F, int intercept) {                                 \
        float t[KP];                                                                             \
        sk_curve_rows(ptr, col, val, P, top, weight, V, out, lo, hi, F, intercept, t, KP);       \
    }
SK_CURVE(8)
SK_CURVE(16)
SK_CURVE(24)
SK_CURVE(32)
SK_MULTI void sk_curve_rows_any(const int64_t *ptr, const int32_t *col, const float *val,
                                const float *P, const int32_t *top, const float *weight,
                                const float *V, float *out, sk_size lo, sk_size hi, sk_size F,
                                int intercept, float *t, sk_size K) {
    sk_curve_rows(ptr, col, val, P, top, weight, V, out, lo, hi, F, intercept, t, K);
}

/* T[i] = curvature of the scores T[i] + first for rows lo .. hi of T (hi - lo, K), in place */
SK_MULTI void sk_curve_dense(float *restrict T, const float *restrict P, const int32_t *restrict top,
                             const float *restrict weight, const float *restrict first,
                             float *restrict last, sk_size lo, sk_size hi, sk_size K) {
    for (sk_size i = lo; i < hi; i++) {
        float *t = T + (i - lo) * K;
        if (first != NULL)
            for (sk_size k = 0; k < K; k++) t[k] += first[k];
        sk_curve_row(P + i * K, top[i], weight[i], t, K);
        if (first != NULL)
            for (sk_size k = 0; k < K; k++) last[k] += t[k];
    }
}
#endif
