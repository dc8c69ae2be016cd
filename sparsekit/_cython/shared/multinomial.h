/* Hot loops of the multinomial loss. Arrays with one value a class are stored row by row, so
 * that every inner loop runs over neighbouring numbers. */
#ifndef SPARSEKIT_MULTINOMIAL_H
#define SPARSEKIT_MULTINOMIAL_H

#include "shared/kernels.h"

/* Z[lo:hi] = A W and G[:, k0:k1] = A^T U[:, k0:k1] for A in compressed rows, K classes. Sums of 16, 8 or 4 classes
 * stay in registers; the last group of a row may overlap the one before it. */
#define SK_MATMAT(NAME, INDEX, REAL)                                                             \
    SK_INLINE void sk_row_times_##NAME(sk_size n, const INDEX *restrict col,                     \
                                       const REAL *restrict val, const double *restrict W,       \
                                       double *restrict z, sk_size K, sk_size width) {           \
        for (sk_size k0 = 0; k0 < K; k0 += width) {                                              \
            const sk_size at = k0 + width <= K ? k0 : K - width;                                 \
            double sum[16] = {0};                                                                \
            for (sk_size e = 0; e < n; e++) {                                                    \
                const double *restrict w = W + (sk_size)col[e] * K + at;                         \
                const double x = (double)val[e];                                                 \
                SK_SIMD                                                                          \
                for (sk_size k = 0; k < width; k++) sum[k] += x * w[k];                          \
            }                                                                                    \
            for (sk_size k = 0; k < width; k++) z[at + k] = sum[k];                              \
        }                                                                                        \
    }                                                                                            \
    SK_MULTI(void, sk_matmat_##NAME,                                                             \
             (const int64_t *restrict ptr, const INDEX *restrict col, const REAL *restrict val,  \
              const double *restrict W, double *restrict Z, sk_size lo, sk_size hi, sk_size K),  \
             (ptr, col, val, W, Z, lo, hi, K)) {                                                 \
        for (sk_size i = lo; i < hi; i++) {                                                      \
            const sk_size at = ptr[i], n = ptr[i + 1] - at;                                      \
            double *z = Z + i * K;                                                               \
            if (K >= 16)                                                                         \
                sk_row_times_##NAME(n, col + at, val + at, W, z, K, 16);                         \
            else if (K >= 8)                                                                     \
                sk_row_times_##NAME(n, col + at, val + at, W, z, K, 8);                          \
            else if (K >= 4)                                                                     \
                sk_row_times_##NAME(n, col + at, val + at, W, z, K, 4);                          \
            else { /* in the order of the entries, whatever the type of the index */             \
                for (sk_size k = 0; k < K; k++) z[k] = 0.0;                                      \
                for (sk_size e = at; e < at + n; e++)                                            \
                    for (sk_size k = 0; k < K; k++) z[k] += (double)val[e] * W[(sk_size)col[e] * K + k]; \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    SK_MULTI(void, sk_rmatmat_##NAME,                                                            \
             (const int64_t *restrict ptr, const INDEX *restrict col, const REAL *restrict val,  \
              const double *restrict U, double *restrict G, sk_size n, sk_size K, sk_size k0,    \
              sk_size k1),                                                                       \
             (ptr, col, val, U, G, n, K, k0, k1)) {                                              \
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

/* exp(z_k - max z) into e; returns the index of the maximum */
SK_INLINE sk_size sk_softmax_row(const double *restrict z, double *restrict e, sk_size K) {
    sk_size top = 0;
    double high;
    for (sk_size k = 1; k < K; k++)
        if (z[k] > z[top]) top = k;
    high = z[top];
    SK_SIMD
    for (sk_size k = 0; k < K; k++) e[k] = sk_exp_neg(z[k] - high);
    return top;
}

/* sum_i s_i (log sum_k exp z_ik - z_ic) and its derivative U by rows; s may be NULL (ones). What
 * the other classes weigh is summed without the row's own class: 1 - p loses all digits where p
 * is close to one. */
SK_MULTI(double, sk_multinomial_all,
         (const double *restrict Z, const int32_t *restrict code, const double *restrict s,
          double *restrict U, sk_size lo, sk_size hi, sk_size K),
         (Z, code, s, U, lo, hi, K)) {
    double total = 0.0;
    for (sk_size i = lo; i < hi; i++) {
        const double *z = Z + i * K;
        double *u = U + i * K, weight = s == NULL ? 1.0 : s[i], own, rest = 0.0, scale, loss;
        sk_size c = code[i], top = sk_softmax_row(z, u, K);
        own = u[c];
        u[c] = 0.0;
        SK_SIMD_WITH(reduction(+ : rest))
        for (sk_size k = 0; k < K; k++) rest += u[k];
        loss = top == c ? log1p(rest) : log(rest + own) + (z[top] - z[c]);
        scale = weight / (rest + own);
        for (sk_size k = 0; k < K; k++) u[k] *= scale;
        u[c] = -rest * scale;
        if (weight > 0.0) total += weight * loss;
    }
    return total;
}

/* The same for target distributions Q: sum_i s_i (log sum_k exp z_ik - sum_k q_ik z_ik). */
SK_MULTI(double, sk_target_all,
         (const double *restrict Z, const double *restrict Q, const double *restrict s,
          double *restrict U, sk_size lo, sk_size hi, sk_size K),
         (Z, Q, s, U, lo, hi, K)) {
    double total = 0.0;
    for (sk_size i = lo; i < hi; i++) {
        const double *z = Z + i * K, *q = Q + i * K;
        double *u = U + i * K, sum = 0.0, mean = 0.0, high, inv;
        high = z[sk_softmax_row(z, u, K)];
        SK_SIMD_WITH(reduction(+ : sum, mean))
        for (sk_size k = 0; k < K; k++) {
            sum += u[k];
            mean += q[k] * (z[k] - high);
        }
        inv = 1.0 / sum;
        for (sk_size k = 0; k < K; k++) u[k] = s[i] * (u[k] * inv - q[k]);
        if (s[i] > 0.0) total += s[i] * (log(sum) - mean);
    }
    return total;
}

/* Probabilities P with the largest of each row set to zero and kept apart: top, and rest, the sum
 * of the others. With ``radius`` the other scores are raised by radius_i, at most to the largest. */
SK_MULTI(void, sk_multinomial_model,
         (const double *restrict Z, const double *restrict radius, double *restrict P,
          double *restrict rest, int32_t *restrict top, sk_size lo, sk_size hi, sk_size K),
         (Z, radius, P, rest, top, lo, hi, K)) {
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
            SK_SIMD
            for (sk_size k = 0; k < K; k++) p[k] = sk_exp_neg(p[k]);
        } else
            c = sk_softmax_row(z, p, K);
        p[c] = 0.0;
        SK_SIMD_WITH(reduction(+ : sum))
        for (sk_size k = 0; k < K; k++) sum += p[k];
        inv = 1.0 / (1.0 + sum);
        for (sk_size k = 0; k < K; k++) p[k] *= inv;
        rest[i] = sum * inv;
        top[i] = (int32_t)c;
    }
}

/* Rows of the model: entries at ptr[i] .. ptr[i + 1] in columns col, whose values are of several types and given
 * apart. P (n, K) lacks each row's top class, of probability 1 - rest; s are weights. */
typedef struct {
    const int64_t *ptr;
    const int32_t *col, *top;
    const double *P, *rest, *s;
    sk_size K;
} sk_class_rows;

/* m variables: those of feature f are first[f] .. first[f + 1], of classes cls. Feature F is the intercepts'. */
typedef struct {
    const int32_t *first, *cls;
    sk_size F, m;
    int intercept;
} sk_class_variables;

/* Entries of one row, once for each variable of their feature: variable, class, value, value times probability */
typedef struct {
    int32_t *var, *k;
    double *x, *a;
} sk_class_entries;

/* Lower triangle of G += the Hessian of rows lo .. hi on the variables: a row's entries are listed once in
 * ``list``, which is long enough, and then paired. */
#define SK_CLASS_GRAM(NAME, REAL)                                                                \
    static void sk_class_gram_##NAME(sk_class_rows of, const REAL *val, sk_class_variables on,   \
                                     sk_size lo, sk_size hi, double *G, sk_class_entries list) { \
        const int64_t *ptr = of.ptr;                                                             \
        const int32_t *col = of.col, *top = of.top, *first = on.first, *cls = on.cls;            \
        const double *rest = of.rest, *s = of.s;                                                 \
        int32_t *var = list.var, *k = list.k;                                                    \
        double *x = list.x, *a = list.a;                                                         \
        sk_size F = on.F, m = on.m;                                                              \
        for (sk_size i = lo; i < hi; i++) {                                                      \
            const double *p = of.P + i * of.K;                                                   \
            sk_size n = 0, stop = ptr[i + 1] + (on.intercept ? 1 : 0);                           \
            if (s[i] == 0.0 || rest[i] == 0.0) continue; /* no curvature */                      \
            for (sk_size e = ptr[i]; e < stop; e++) {                                            \
                int last = e == ptr[i + 1];                                                      \
                sk_size f = last ? F : (sk_size)col[e];                                          \
                double value = last ? 1.0 : (double)val[e];                                      \
                for (int32_t v = first[f]; v < first[f + 1]; v++) {                              \
                    int32_t c = cls[v];                                                          \
                    var[n] = v;                                                                  \
                    k[n] = c;                                                                    \
                    x[n] = value;                                                                \
                    a[n++] = value * (c == top[i] ? 1.0 - rest[i] : p[c]);                       \
                }                                                                                \
            }                                                                                    \
            for (sk_size e = 0; e < n; e++) {                                                    \
                int32_t c = k[e], v = var[e];                                                    \
                double off = -s[i] * a[e];                                                       \
                double same = s[i] * a[e] * (c == top[i] ? rest[i] : 1.0 - p[c]);                \
                double *row = G + (sk_size)v * m;                                                \
                for (sk_size b = 0; b <= e; b++) {                                               \
                    double h = k[b] == c ? same * x[b] : off * a[b];                             \
                    if (var[b] <= v)                                                             \
                        row[var[b]] += h;                                                        \
                    else                                                                         \
                        G[(sk_size)var[b] * m + v] += h;                                         \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }
SK_CLASS_GRAM(f64, double)
SK_CLASS_GRAM(f32, float)

/* Rows lo .. hi of the two factors of the Hessian, from row ``from`` on: U = s^(1/2) x p, V = (s p (1 -
 * p))^(1/2) x. Variable v is column at[v]. Products of U's columns give the blocks between two classes, those
 * of V the blocks of one class. */
#define SK_CLASS_FACTORS(NAME, REAL, OUT)                                                        \
    static void sk_class_factors_##NAME(                                                         \
        sk_class_rows of, const REAL *restrict val, sk_class_variables on,                       \
        const int32_t *restrict at, sk_size lo, sk_size hi, sk_size from, OUT *restrict U,       \
        OUT *restrict V, OUT *restrict weight) {                                                 \
        const int64_t *restrict ptr = of.ptr;                                                    \
        const int32_t *restrict col = of.col, *restrict top = of.top;                            \
        const int32_t *restrict first = on.first, *restrict cls = on.cls;                        \
        const double *restrict rest = of.rest, *restrict s = of.s;                               \
        sk_size F = on.F, K = of.K, m = on.m;                                                    \
        OUT *share = weight + K;                                                                 \
        for (sk_size i = lo; i < hi; i++) {                                                      \
            const double *restrict p = of.P + i * K;                                             \
            OUT *u = U + (i - from) * m, *v = V + (i - from) * m;                                \
            sk_size stop = ptr[i + 1] + (on.intercept ? 1 : 0);                                  \
            double root = sqrt(s[i]);                                                            \
            memset(u, 0, (size_t)m * sizeof(OUT));                                               \
            memset(v, 0, (size_t)m * sizeof(OUT));                                               \
            for (sk_size k = 0; k < K; k++) {                                                    \
                weight[k] = (OUT)(root * p[k]);                                                  \
                share[k] = (OUT)(root * sqrt(p[k] * (1.0 - p[k])));                              \
            }                                                                                    \
            weight[top[i]] = (OUT)(root * (1.0 - rest[i]));                                      \
            share[top[i]] = (OUT)(root * sqrt(rest[i] * (1.0 - rest[i])));                       \
            for (sk_size e = ptr[i]; e < stop; e++) {                                            \
                int last = e == ptr[i + 1];                                                      \
                sk_size f = last ? F : (sk_size)col[e];                                          \
                OUT x = last ? (OUT)1.0 : (OUT)val[e];                                           \
                for (int32_t w = first[f]; w < first[f + 1]; w++) {                              \
                    u[at[w]] += x * weight[cls[w]];                                              \
                    v[at[w]] += x * share[cls[w]];                                               \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }
SK_CLASS_FACTORS(f64_f64, double, double)
SK_CLASS_FACTORS(f64_f32, double, float)
SK_CLASS_FACTORS(f32_f64, float, double)
SK_CLASS_FACTORS(f32_f32, float, float)

#endif
