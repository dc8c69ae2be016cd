/* Products with the Jacobian of sparsemax, for rows of probabilities. */
#ifndef SPARSEKIT_SPARSEMAX_JVP_H
#define SPARSEKIT_SPARSEMAX_JVP_H

#include "fenchel_young/sparsemax.h"

#define SK_SPARSEMAX_JVP(NAME, REAL)                                                                             \
    /* The Jacobian of short rows, 16 at once. */                                                                     \
    SK_INLINE void sk_jvp_lanes_##NAME(const REAL *p, sk_size p_step, const REAL *v, sk_size v_step, REAL *out,  \
                                       sk_size out_step, sk_size rows, sk_size K) {                              \
        REAL P[SK_SHORT * SK_LANES], V[SK_SHORT * SK_LANES], s[SK_LANES], c[SK_LANES];                           \
        if (rows < SK_LANES) {                                                                                   \
            memset(P, 0, sizeof P);                                                                              \
            memset(V, 0, sizeof V);                                                                              \
        }                                                                                                        \
        for (sk_size l = 0; l < rows; l++)                                                                       \
            for (sk_size k = 0; k < K; k++) {                                                                    \
                P[k * SK_LANES + l] = p[l * p_step + k];                                                         \
                V[k * SK_LANES + l] = v[l * v_step + k];                                                         \
            }                                                                                                    \
        SK_SIMD for (int l = 0; l < SK_LANES; l++) s[l] = (REAL)0, c[l] = (REAL)0;                               \
        for (sk_size k = 0; k < K; k++)                                                                          \
            SK_SIMD for (int l = 0; l < SK_LANES; l++) {                                                         \
                s[l] += P[k * SK_LANES + l] != (REAL)0 ? V[k * SK_LANES + l] : (REAL)0;                          \
                c[l] += P[k * SK_LANES + l] != (REAL)0 ? (REAL)1 : (REAL)0;                                      \
            }                                                                                                    \
        SK_SIMD for (int l = 0; l < SK_LANES; l++) s[l] /= c[l];                                                 \
        for (sk_size k = 0; k < K; k++)                                                                          \
            SK_SIMD for (int l = 0; l < SK_LANES; l++) {                                                         \
                REAL x = V[k * SK_LANES + l] - s[l];                                                             \
                V[k * SK_LANES + l] = P[k * SK_LANES + l] != (REAL)0 ? x : (REAL)0;                              \
            }                                                                                                    \
        for (sk_size l = 0; l < rows; l++)                                                                       \
            for (sk_size k = 0; k < K; k++) out[l * out_step + k] = V[k * SK_LANES + l];                         \
    }                                                                                                            \
    /* out = s (v - mean of v over the support s of p), eq. (5) with the number of its members */                \
    SK_MULTI(void, sk_sparsemax_jvp_##NAME,                                                                      \
             (const REAL *p, sk_size p_step, const REAL *v, sk_size v_step, REAL *out, sk_size out_step,         \
              sk_size lo, sk_size hi, sk_size K, REAL *keep, sk_size *where),                                    \
             (p, p_step, v, v_step, out, out_step, lo, hi, K, keep, where)) {                                    \
        if (K <= SK_SHORT) {                                                                                     \
            for (sk_size i = lo; i < hi; i += SK_LANES)                                                          \
                sk_jvp_lanes_##NAME(p + i * p_step, p_step, v + i * v_step, v_step, out + i * out_step, out_step, \
                                    hi - i < SK_LANES ? hi - i : SK_LANES, K);                                   \
            return;                                                                                              \
        }                                                                                                        \
        for (sk_size i = lo; i < hi; i++) {                                                                      \
            const REAL *pi = p + i * p_step, *vi = v + i * v_step;                                               \
            REAL *oi = out + i * out_step;                                                                       \
            sk_size full = K / SK_BLOCK, n = 0;                                                                  \
            double sum = 0.0;                                                                                    \
            REAL mean;                                                                                           \
            for (sk_size b = 0; b < full; b++) {                                                                 \
                const REAL *a = pi + b * SK_BLOCK;                                                               \
                REAL g[SK_LANES];                                                                                \
                unsigned hit = 0;                                                                                \
                SK_SIMD for (int j = 0; j < SK_LANES; j++) g[j] = (REAL)0;                                       \
                for (int s = 0; s < SK_STEPS; s++)                                                               \
                    SK_SIMD for (int j = 0; j < SK_LANES; j++) g[j] = a[s * SK_LANES + j] != (REAL)0 ? (REAL)1 : g[j]; \
                SK_SIMD_WITH(reduction(| : hit)) for (int j = 0; j < SK_LANES; j++)                              \
                    hit |= (unsigned)(g[j] != (REAL)0) << j;                                                     \
                for (; hit; hit &= hit - 1) {                                                                    \
                    const REAL *first = a + SK_LOWEST(hit);                                                      \
                    for (int s = 0; s < SK_STEPS; s++) {                                                         \
                        where[n] = first - a + b * SK_BLOCK + s * SK_LANES;                                      \
                        n += first[s * SK_LANES] != (REAL)0;                                                     \
                    }                                                                                            \
                }                                                                                                \
            }                                                                                                    \
            for (sk_size k = full * SK_BLOCK; k < K; k++) {                                                      \
                where[n] = k;                                                                                    \
                n += pi[k] != (REAL)0;                                                                           \
            }                                                                                                    \
            for (sk_size e = 0; e < n; e++) {                                                                    \
                keep[e] = vi[where[e]];                                                                          \
                sum += (double)keep[e];                                                                          \
            }                                                                                                    \
            mean = (REAL)(sum / (double)n);                                                                      \
            memset(oi, 0, (size_t)K * sizeof(REAL));                                                             \
            for (sk_size e = 0; e < n; e++) oi[where[e]] = keep[e] - mean;                                       \
        }                                                                                                        \
    }
SK_SPARSEMAX_JVP(f32, float)
SK_SPARSEMAX_JVP(f64, double)
#endif
