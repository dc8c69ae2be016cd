/* Steps of softmax with very many classes: one row, or a few, and a few classes.
 *
 * A step reads and writes the rows of W of the label and of the sampled classes, at the non-zeros of x. It touches
 * nothing else of size K, D or N. The ridge is lazy: W_k = scale_k R_k, so that shrinkage multiplies one number.
 *
 * Threads share the arrays without locks (Niu et al., 2011): two that write one number at the
 * same time lose one of the changes. u has one number an example, which one thread owns. */
#ifndef SPARSEKIT_EXTREME_H
#define SPARSEKIT_EXTREME_H

#include "extreme/softmax_rules.h"

#define SK_EXTREME(NAME, REAL, INDEX)                                                                            \
    /* an entry of a hashed row: its index, and a sign that makes collisions cancel on average */              \
    SK_INLINE REAL sk_hashed_dot_##NAME(const REAL *restrict W, uint64_t key, int shift,                         \
                                        const REAL *restrict x, const INDEX *restrict col, sk_size len) {        \
        REAL a = 0;                                                                                              \
        for (sk_size i = 0; i < len; i++) {                                                                      \
            uint64_t h = sk_hash(key, (uint64_t)(col ? (sk_size)col[i] : i));                                    \
            a += ((h >> (shift - 1)) & 1 ? x[i] : -x[i]) * W[h >> shift];                                        \
        }                                                                                                        \
        return a;                                                                                                \
    }                                                                                                            \
    SK_INLINE void sk_hashed_add_##NAME(REAL *restrict W, uint64_t key, int shift, REAL c,                       \
                                        const REAL *restrict x, const INDEX *restrict col, sk_size len) {        \
        for (sk_size i = 0; i < len; i++) {                                                                      \
            uint64_t h = sk_hash(key, (uint64_t)(col ? (sk_size)col[i] : i));                                    \
            W[h >> shift] += ((h >> (shift - 1)) & 1 ? c : -c) * x[i];                                           \
        }                                                                                                        \
    }                                                                                                            \
    /* scores of two classes at once: twice the loads are in flight */                                           \
    SK_MULTI(void, sk_pair_##NAME,                                                                               \
             (const REAL *restrict V, const REAL *restrict W, const REAL *restrict x,                            \
              const INDEX *restrict col, sk_size len, double *fv, double *fw),                                   \
             (V, W, x, col, len, fv, fw)) {                                                                      \
        REAL a = 0, b = 0;                                                                                       \
        if (col == NULL) {                                                                                       \
            SK_SIMD_WITH(reduction(+ : a, b)) for (sk_size i = 0; i < len; i++) {                                \
                a += x[i] * V[i];                                                                                \
                b += x[i] * W[i];                                                                                \
            }                                                                                                    \
        } else {                                                                                                 \
            SK_SIMD_WITH(reduction(+ : a, b)) for (sk_size i = 0; i < len; i++) {                                \
                a += x[i] * V[col[i]];                                                                           \
                b += x[i] * W[col[i]];                                                                           \
            }                                                                                                    \
        }                                                                                                        \
        *fv = (double)a;                                                                                         \
        *fw = (double)b;                                                                                         \
    }                                                                                                            \
    SK_MULTI(double, sk_square_##NAME,                                                                           \
             (const REAL *restrict x, sk_size len),                                                              \
             (x, len)) {                                                                                         \
        REAL sum = 0;                                                                                            \
        SK_SIMD_WITH(reduction(+ : sum)) for (sk_size i = 0; i < len; i++) sum += x[i] * x[i];                   \
        return (double)sum;                                                                                      \
    }                                                                                                            \
    SK_INLINE void sk_axpy_##NAME(REAL c, const REAL *restrict x, const INDEX *restrict col, sk_size len,        \
                                  REAL *restrict W) {                                                            \
        if (col == NULL) {                                                                                       \
            SK_SIMD for (sk_size i = 0; i < len; i++) W[i] += c * x[i];                                          \
        } else {                                                                                                 \
            for (sk_size i = 0; i < len; i++) W[col[i]] += c * x[i];                                             \
        }                                                                                                        \
    }                                                                                                            \
    /* f[j] = W[k[j]] . x + bias, j = 0 .. n */                                                                  \
    SK_INLINE void sk_scores_##NAME(const sk_table *T, const REAL *restrict x, const INDEX *restrict col,        \
                                    sk_size len, const int64_t *k, sk_size n, double *f, int hashed) {           \
        const REAL *W = (const REAL *)T->W, *bias = (const REAL *)T->bias;                                       \
        sk_size D = T->n_features;                                                                               \
        if (hashed) {                                                                                            \
            for (sk_size j = 0; j <= n; j++)                                                                     \
                f[j] = (double)sk_hashed_dot_##NAME(W, sk_class_key(k[j]), T->shift, x, col, len);               \
        } else {                                                                                                 \
            double unused;                                                                                       \
            for (sk_size j = 0; j <= n; j += 2)                                                                  \
                sk_pair_##NAME(W + k[j] * D, W + k[j < n ? j + 1 : j] * D, x, col, len, &f[j],                   \
                               j < n ? &f[j + 1] : &unused);                                                     \
        }                                                                                                        \
        if (bias != NULL)                                                                                        \
            for (sk_size j = 0; j <= n; j++) f[j] += (double)bias[k[j]];                                         \
        if (T->scale != NULL)                                                                                    \
            for (sk_size j = 0; j <= n; j++) f[j] *= T->scale[k[j]];                                             \
    }                                                                                                            \
    /* W_k becomes shrink (W_k + c x) */                                                                         \
    SK_INLINE void sk_move_##NAME(const sk_table *T, const REAL *restrict x, const INDEX *restrict col, sk_size len,\
                                  int64_t k, double c, double shrink, int hashed) {                              \
        REAL *W = (REAL *)T->W, *bias = (REAL *)T->bias;                                                         \
        sk_size D = T->n_features;                                                                               \
        double scale = T->scale != NULL ? T->scale[k] : 1.0;                                                     \
        REAL step = (REAL)(c / scale);                                                                           \
        if (hashed) sk_hashed_add_##NAME(W, sk_class_key(k), T->shift, step, x, col, len);                       \
        else sk_axpy_##NAME(step, x, col, len, W + k * D);                                                       \
        if (bias != NULL) bias[k] += step;                                                                       \
        if (T->scale == NULL) return;                                                                            \
        scale *= shrink;                                                                                         \
        if (!(scale > SK_RESCALE)) { /* once in many steps of a class */                                         \
            for (sk_size i = 0; i < D; i++) W[k * D + i] *= (REAL)scale;                                         \
            if (bias != NULL) bias[k] *= (REAL)scale;                                                            \
            scale = 1.0;                                                                                         \
        }                                                                                                        \
        T->scale[k] = scale;                                                                                     \
    }

SK_EXTREME(f32_i32, float, int32_t)
SK_EXTREME(f32_i64, float, int64_t)
SK_EXTREME(f64_i32, double, int32_t)
SK_EXTREME(f64_i64, double, int64_t)
#endif
