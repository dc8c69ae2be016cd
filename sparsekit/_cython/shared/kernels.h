/* Hot loops of the losses and of the model's copies of X. Those that gain from SIMD are compiled for several
 * levels of instructions (simd.h). */
#ifndef SPARSEKIT_KERNELS_H
#define SPARSEKIT_KERNELS_H

#include <math.h>

#include "shared/simd.h"

/* exp(x) for x <= 0, within 1 ulp or so: 2^k times a degree-12 Taylor polynomial on |r| <= ln(2)/2. Below -708 the
 * value is subnormal and 0 is returned. Branch-free, so that it vectorises. */
SK_INLINE double sk_exp_neg(double x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double clamped = x < -708.0 ? -708.0 : x;
    double t = clamped * 1.4426950408889634074 + magic;
    double k = t - magic;
    double r = (clamped - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    int64_t bits;
    double scale, p;
    memcpy(&bits, &t, sizeof bits);
    bits = (int64_t)((uint64_t)(bits + 1023) << 52);
    memcpy(&scale, &bits, sizeof scale);
    p = 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return x < -708.0 ? 0.0 : p * scale;
}

/* log(1 + e) for 0 <= e <= 1 by 2 atanh(s). Above sqrt(2) - 1 the argument is halved first. Then |s| <= 0.1716, and
 * eleven terms give full precision. */
SK_INLINE double sk_log1p_unit(double e) {
    int upper = e > 0.41421356237309503;
    double num = upper ? e - 1.0 : e;
    double den = upper ? e + 3.0 : e + 2.0;
    double s = num / den, q = s * s, p;
    p = 1.0 / 23.0;
    p = p * q + 1.0 / 21.0;
    p = p * q + 1.0 / 19.0;
    p = p * q + 1.0 / 17.0;
    p = p * q + 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    p = p * q + 1.0;
    return 2.0 * s * p + (upper ? 0.69314718055994530942 : 0.0);
}

#define SK_EXP_NEG sk_exp_neg
#define SK_LOG1P_UNIT sk_log1p_unit
#include "losses.h"

/* sum_i s_i log(1 + exp(-y_i z_i)); s may be NULL (ones) */
SK_MULTI(double, sk_logistic_value,
         (const double *restrict z, const double *restrict y, const double *restrict s, sk_size n),
         (z, y, s, n)) {
    double total = 0.0;
    if (s == NULL) {
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size i = 0; i < n; i++) total += sk_logistic_of(y[i] * z[i]);
    } else {
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size i = 0; i < n; i++) total += s[i] * sk_logistic_of(y[i] * z[i]);
    }
    return total;
}

SK_INLINE double sk_logistic_one(double z, double y, double s, double *restrict u, double *restrict d) {
    double miss, loss = sk_logistic(y * z, s, &miss, d);
    *u = -s * y * miss;
    return s * loss;
}

/* the same with u = dloss/dz and d = d2loss/dz2 */
SK_MULTI(double, sk_logistic_all,
         (const double *restrict z, const double *restrict y, const double *restrict s, double *restrict u,
          double *restrict d, sk_size n),
         (z, y, s, u, d, n)) {
    double total = 0.0;
    if (s == NULL) {
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size i = 0; i < n; i++) total += sk_logistic_one(z[i], y[i], 1.0, &u[i], &d[i]);
    } else {
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size i = 0; i < n; i++) total += sk_logistic_one(z[i], y[i], s[i], &u[i], &d[i]);
    }
    return total;
}

SK_MULTI(void, sk_axpy,
         (double c, const double *restrict a, double *restrict out, sk_size n),
         (c, a, out, n)) {
    for (sk_size i = 0; i < n; i++) out[i] += c * a[i];
}

/* out (n) = A v for a symmetric A (n, n), of which the lower triangle is read in C order, four rows at once */
SK_MULTI(void, sk_symmetric_times,
         (const double *restrict A, sk_size n, const double *restrict v, double *restrict out),
         (A, n, v, out)) {
    for (sk_size i = 0; i < n; i += 4) {
        sk_size done = 0;
        for (sk_size k = i; k < i + 4 && k < n; k++) out[k] = 0.0;
        if (i + 4 <= n) {
            const double *restrict r = A + i * n, *restrict s = r + n, *restrict t = s + n, *restrict w = t + n;
            double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
            SK_SIMD_WITH(reduction(+ : a, b, c, d))
            for (sk_size j = 0; j < i; j++) {
                a += r[j] * v[j];
                b += s[j] * v[j];
                c += t[j] * v[j];
                d += w[j] * v[j];
                out[j] += v[i] * r[j] + v[i + 1] * s[j] + v[i + 2] * t[j] + v[i + 3] * w[j];
            }
            out[i] = a;
            out[i + 1] = b;
            out[i + 2] = c;
            out[i + 3] = d;
            done = i;
        }
        for (sk_size k = i; k < i + 4 && k < n; k++) {
            for (sk_size j = done; j < k; j++) {
                out[k] += A[k * n + j] * v[j];
                out[j] += A[k * n + j] * v[k];
            }
            out[k] += A[k * n + k] * v[k];
        }
    }
}

/* out (n) = A v for rows of floats, A (n, p) in C order. Vectors and sums are doubles: with four rows at once the
 * loops wait for A alone. */
SK_MULTI(void, sk_float_rows_dot,
         (const float *restrict A, sk_size n, sk_size p, const double *restrict v, double *restrict out),
         (A, n, p, v, out)) {
    sk_size i = 0;
    for (; i + 4 <= n; i += 4) {
        const float *restrict r = A + i * p, *restrict s = r + p, *restrict t = s + p, *restrict w = t + p;
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
        SK_SIMD_WITH(reduction(+ : a, b, c, d))
        for (sk_size j = 0; j < p; j++) {
            a += r[j] * v[j];
            b += s[j] * v[j];
            c += t[j] * v[j];
            d += w[j] * v[j];
        }
        out[i] = a;
        out[i + 1] = b;
        out[i + 2] = c;
        out[i + 3] = d;
    }
    for (; i < n; i++) {
        const float *restrict r = A + i * p;
        double a = 0.0;
        SK_SIMD_WITH(reduction(+ : a))
        for (sk_size j = 0; j < p; j++) a += r[j] * v[j];
        out[i] = a;
    }
}
/* out (p) = A^T u for the first p columns of A (n, lead) in C order; A is read once. */
#define SK_ROWS_SUM(NAME, REAL)                                                                           \
    SK_MULTI(void, NAME,                                                                                  \
             (const REAL *restrict A, sk_size n, sk_size p, sk_size lead, const double *restrict u,       \
              double *restrict out),                                                                      \
             (A, n, p, lead, u, out)) {                                                                   \
        sk_size i = 0;                                                                                    \
        for (sk_size j = 0; j < p; j++) out[j] = 0.0;                                                     \
        for (; i + 4 <= n; i += 4) {                                                                      \
            const REAL *restrict r = A + i * lead, *restrict s = r + lead, *restrict t = s + lead,        \
                                *restrict w = t + lead;                                                   \
            const double a = u[i], b = u[i + 1], c = u[i + 2], d = u[i + 3];                              \
            for (sk_size j = 0; j < p; j++) out[j] += a * r[j] + b * s[j] + (c * t[j] + d * w[j]);        \
        }                                                                                                 \
        for (; i < n; i++) {                                                                              \
            const REAL *restrict r = A + i * lead;                                                        \
            const double a = u[i];                                                                        \
            for (sk_size j = 0; j < p; j++) out[j] += a * r[j];                                           \
        }                                                                                                 \
    }
SK_ROWS_SUM(sk_float_rows_sum, float)
SK_ROWS_SUM(sk_double_rows_sum, double)


/* Rows of a model copy of X: row i holds entries start[i] .. stop[i] of (index, value), with
 * 16-bit column numbers where they fit and float32 values. The copy serves Hessians only,
 * where seven digits are plenty, and half the bytes are half the time: these loops wait for
 * memory. Four partial sums keep a row's dot product from waiting for itself. */
/* G += A^T diag(d) A, each pair of columns in one of its two entries; G of order size */
#define SK_GRAM_ROWS(NAME, INDEX, REAL)                                                                \
    static void sk_gram_rows_##NAME##_##REAL(const int64_t *start, const int64_t *stop,                \
                                             const INDEX *col, const float *val, const double *d,      \
                                             sk_size lo, sk_size hi, REAL *G, sk_size size,            \
                                             int intercept) {                                          \
        REAL *last = G + (size - 1) * size;                                                            \
        for (sk_size i = lo; i < hi; i++) {                                                            \
            const INDEX *c = col + start[i];                                                           \
            const float *x = val + start[i];                                                           \
            sk_size len = stop[i] - start[i];                                                          \
            double di = d[i];                                                                          \
            for (sk_size a = 0; a < len; a++) {                                                        \
                REAL t = (REAL)(di * x[a]);                                                            \
                REAL *row = G + (sk_size)c[a] * size;                                                  \
                for (sk_size b = 0; b <= a; b++) row[c[b]] += t * x[b];                                \
                if (intercept) last[c[a]] += t;                                                        \
            }                                                                                          \
            if (intercept) last[size - 1] += (REAL)di;                                                 \
        }                                                                                              \
    }

#define SK_ROW_KERNELS(NAME, INDEX)                                                              \
    SK_INLINE double sk_row_dot_##NAME(const INDEX *restrict col, const float *restrict val,     \
                                       sk_size len, const double *restrict v) {                  \
        double a = 0.0, b = 0.0, c = 0.0, e = 0.0;                                               \
        sk_size k = 0;                                                                           \
        for (; k + 4 <= len; k += 4) {                                                           \
            a += val[k] * v[col[k]];                                                             \
            b += val[k + 1] * v[col[k + 1]];                                                     \
            c += val[k + 2] * v[col[k + 2]];                                                     \
            e += val[k + 3] * v[col[k + 3]];                                                     \
        }                                                                                        \
        for (; k < len; k++) a += val[k] * v[col[k]];                                            \
        return (a + b) + (c + e);                                                                \
    }                                                                                            \
    /* out += A^T diag(d) A v over rows lo .. hi; the intercept's entry is v[m], out[m] */       \
    static void sk_hessian_rows_##NAME(const int64_t *start, const int64_t *stop,                \
                                       const INDEX *col, const float *val, const double *d,      \
                                       sk_size lo, sk_size hi, const double *v, double *out,     \
                                       sk_size m, int intercept) {                               \
        double last = 0.0, v0 = intercept ? v[m] : 0.0;                                          \
        for (sk_size i = lo; i < hi; i++) {                                                      \
            const INDEX *c = col + start[i];                                                     \
            const float *x = val + start[i];                                                     \
            sk_size len = stop[i] - start[i];                                                    \
            double t = d[i] * (v0 + sk_row_dot_##NAME(c, x, len, v));                            \
            for (sk_size k = 0; k < len; k++) out[c[k]] += x[k] * t;                             \
            last += t;                                                                           \
        }                                                                                        \
        if (intercept) out[m] += last;                                                           \
    }                                                                                            \
    SK_GRAM_ROWS(NAME, INDEX, double)                                                            \
    SK_GRAM_ROWS(NAME, INDEX, float)                                                             \
    /* out[j] += sum_i d_i x_ij^2 */                                                             \
    static void sk_diagonal_rows_##NAME(const int64_t *start, const int64_t *stop,               \
                                        const INDEX *col, const float *val, const double *d,     \
                                        sk_size lo, sk_size hi, double *out) {                   \
        for (sk_size i = lo; i < hi; i++)                                                        \
            for (sk_size k = start[i]; k < stop[i]; k++)                                         \
                out[col[k]] += d[i] * ((double)val[k] * val[k]);                                 \
    }                                                                                            \
    /* the entries by columns: those of column j start at at[j], which ends behind the last one */\
    static void sk_transpose_rows_##NAME(const int64_t *start, const int64_t *stop,              \
                                         const INDEX *col, const float *val, sk_size n,          \
                                         int64_t *at, int32_t *row, float *out) {                \
        for (sk_size i = 0; i < n; i++)                                                          \
            for (sk_size k = start[i]; k < stop[i]; k++) {                                       \
                int64_t next = at[col[k]]++;                                                     \
                row[next] = (int32_t)i;                                                          \
                out[next] = val[k];                                                              \
            }                                                                                    \
    }                                                                                            \
    static void sk_count_rows_##NAME(const int64_t *start, const int64_t *stop,                  \
                                     const INDEX *col, sk_size n, int64_t *count) {              \
        for (sk_size i = 0; i < n; i++)                                                          \
            for (sk_size k = start[i]; k < stop[i]; k++) count[col[k]]++;                        \
    }
SK_ROW_KERNELS(u16, uint16_t)
SK_ROW_KERNELS(i32, int32_t)

/* A column of a model and pairs of numbers, one pair a row: d_i t_i, and the weight d_i. */
static double sk_pair_dot(const int32_t *restrict row, const float *restrict val, sk_size len,
                          const double *restrict pair) {
    double a = 0.0, b = 0.0, c = 0.0, e = 0.0;
    sk_size k = 0;
    for (; k + 4 <= len; k += 4) {
        a += val[k] * pair[2 * (sk_size)row[k]];
        b += val[k + 1] * pair[2 * (sk_size)row[k + 1]];
        c += val[k + 2] * pair[2 * (sk_size)row[k + 2]];
        e += val[k + 3] * pair[2 * (sk_size)row[k + 3]];
    }
    for (; k < len; k++) a += val[k] * pair[2 * (sk_size)row[k]];
    return (a + b) + (c + e);
}

/* t += move * column */
static void sk_pair_add(const int32_t *restrict row, const float *restrict val, sk_size len,
                        double move, double *restrict pair) {
    for (sk_size k = 0; k < len; k++) {
        double *at = pair + 2 * (sk_size)row[k];
        at[0] += at[1] * (move * val[k]);
    }
}

/* Copy the columns with position[j] >= 0 of rows lo .. hi. Every entry is written and the
 * cursor moves only past those that stay: a branch here would be a coin toss a non-zero. */
#define SK_SELECT(NAME, XINDEX, REAL, INDEX)                                                     \
    static void sk_select_##NAME(const XINDEX *indptr, const XINDEX *indices, const REAL *data,  \
                                 const int32_t *position, sk_size lo, sk_size hi, int64_t at,    \
                                 int64_t *start, int64_t *stop, INDEX *col, float *val) {        \
        for (sk_size i = lo; i < hi; i++) {                                                      \
            start[i] = at;                                                                       \
            for (sk_size k = indptr[i]; k < (sk_size)indptr[i + 1]; k++) {                       \
                int32_t new_column = position[indices[k]];                                       \
                col[at] = (INDEX)new_column;                                                     \
                val[at] = (float)data[k];                                                        \
                at += new_column >= 0;                                                           \
            }                                                                                    \
            stop[i] = at;                                                                        \
        }                                                                                        \
    }
SK_SELECT(i32_f64_u16, int32_t, double, uint16_t)
SK_SELECT(i64_f64_u16, int64_t, double, uint16_t)
SK_SELECT(i32_f32_u16, int32_t, float, uint16_t)
SK_SELECT(i64_f32_u16, int64_t, float, uint16_t)
SK_SELECT(i32_f64_i32, int32_t, double, int32_t)
SK_SELECT(i64_f64_i32, int64_t, double, int32_t)
SK_SELECT(i32_f32_i32, int32_t, float, int32_t)
SK_SELECT(i64_f32_i32, int64_t, float, int32_t)

/* out += A^T diag(d) A v over dense float32 rows lo .. hi of width m; each row is read once and
 * used twice. The intercept's entry is v[m], out[m]. */
SK_MULTI(void, sk_hessian_dense,
         (const float *restrict A, const double *restrict d, sk_size lo, sk_size hi, const float *restrict v,
          float *restrict out, sk_size m, int intercept),
         (A, d, lo, hi, v, out, m, intercept)) {
    float v0 = intercept ? v[m] : 0.0f, last = 0.0f;
    for (sk_size i = lo; i < hi; i++) {
        const float *row = A + i * m;
        float acc = 0.0f;
        SK_SIMD_WITH(reduction(+ : acc))
        for (sk_size k = 0; k < m; k++) acc += row[k] * v[k];
        float t = (float)d[i] * (acc + v0);
        for (sk_size k = 0; k < m; k++) out[k] += t * row[k];
        last += t;
    }
    if (intercept) out[m] += last;
}

/* out[k] += sum_i d_i A[i, k]^2 over dense float32 rows lo .. hi of width m */
SK_MULTI(void, sk_dense_squares,
         (const float *restrict A, const double *restrict d, sk_size lo, sk_size hi, float *restrict out,
          sk_size m),
         (A, d, lo, hi, out, m)) {
    for (sk_size i = lo; i < hi; i++) {
        const float *row = A + i * m;
        float di = (float)d[i];
        for (sk_size k = 0; k < m; k++) out[k] += di * row[k] * row[k];
    }
}
#endif
