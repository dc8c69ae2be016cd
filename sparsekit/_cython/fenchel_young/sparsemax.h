/* Sparsemax of rows, its Jacobian and its loss, without a sort.
 *
 * The threshold tau of a row solves g(t) = sum_j max(z_j - t, 0) = 1. g is convex, so Newton's method from any lower
 * bound rises to tau and ends exactly (Michelot 1986). A step that changes the support divides the product of residual
 * and support by four or more (Dinkelbach), so there are few. Few entries need to be read again. The maxima of 16
 * interleaved parts are a subset of the row, so their threshold is a lower bound of tau. Only groups of 8 entries with
 * a maximum above it are read again. The result is written as zeros and the support. Entries are taken relative to the
 * row's maximum, so that 1e9 costs no digits. */
#ifndef SPARSEKIT_SPARSEMAX_H
#define SPARSEKIT_SPARSEMAX_H

#include "shared/kernels.h"

/* constant sizes of loops over lanes, which the compiler then vectorises */
#define SK_LANES 16
#define SK_STEPS 8
#define SK_BLOCK (SK_LANES * SK_STEPS)
/* index of the lowest bit that is set */
#if defined(__GNUC__) || defined(__clang__)
#define SK_LOWEST(bits) __builtin_ctz(bits)
#else
static int sk_lowest(unsigned bits) {
    int k = 0;
    while (!(bits & 1u)) bits >>= 1, k++;
    return k;
}
#define SK_LOWEST(bits) sk_lowest(bits)
#endif
/* longest rows that are processed 16 at once instead */
#define SK_SHORT 32

#define SK_SPARSEMAX(NAME, REAL, SLACK, SUM_TOL)                                                                 \
    /* the maxima of a block's 16 interleaved groups, and where a NaN was seen */                                \
    SK_INLINE void sk_groups_##NAME(const REAL *restrict a, REAL *restrict g,                                    \
                                    REAL *restrict bad) {                                                        \
        REAL m[SK_LANES];                                                                                        \
        SK_SIMD for (int j = 0; j < SK_LANES; j++) {                                                             \
            m[j] = a[j];                                                                                         \
            bad[j] = a[j] != a[j] ? (REAL)1 : bad[j];                                                            \
        }                                                                                                        \
        for (int i = 1; i < SK_STEPS; i++)                                                                       \
            SK_SIMD for (int j = 0; j < SK_LANES; j++) {                                                         \
                REAL x = a[i * SK_LANES + j];                                                                    \
                m[j] = x > m[j] ? x : m[j];                                                                      \
                bad[j] = x != x ? (REAL)1 : bad[j];                                                              \
            }                                                                                                    \
        SK_SIMD for (int j = 0; j < SK_LANES; j++) g[j] = m[j];                                                  \
    }                                                                                                            \
    /* Newton steps for the threshold of n values, relative to high, from a lower bound t of it */               \
    SK_INLINE REAL sk_raise_##NAME(const REAL *restrict a, sk_size n, REAL high, REAL t, int passes) {           \
        for (int pass = 0; pass < passes; pass++) {                                                              \
            REAL s = (REAL)0, c = (REAL)0, next;                                                                 \
            SK_SIMD_WITH(reduction(+ : s, c)) for (sk_size j = 0; j < n; j++) {                                  \
                REAL d = a[j] - high;                                                                            \
                s += d > t ? d : (REAL)0;                                                                        \
                c += d > t ? (REAL)1 : (REAL)0;                                                                  \
            }                                                                                                    \
            next = (s - (REAL)1) / c;                                                                            \
            if (!(next > t)) break;                                                                              \
            t = next;                                                                                            \
        }                                                                                                        \
        return t;                                                                                                \
    }                                                                                                            \
    /* Writes the entries above tau's lower bound to keep, relative to the maximum high, their indices to where, \
     * and tau - high to shift. Returns their number, or -1 if the row has +inf or NaN. */                       \
    SK_INLINE sk_size sk_find_##NAME(const REAL *restrict z, sk_size K, REAL *restrict G,                        \
                                     REAL *restrict keep, sk_size *restrict where,                               \
                                     double *high_, double *shift) {                                             \
        REAL all[SK_LANES], bad[SK_LANES], pad[SK_BLOCK], high, t = (REAL)-1;                                    \
        sk_size full = K / SK_BLOCK, rest = K - full * SK_BLOCK, n = 0;                                          \
        int wrong = 0;                                                                                           \
        double tau;                                                                                              \
        SK_SIMD for (int j = 0; j < SK_LANES; j++) {                                                             \
            all[j] = (REAL)-INFINITY;                                                                            \
            bad[j] = (REAL)0;                                                                                    \
        }                                                                                                        \
        if (rest) {                                                                                              \
            /* by lanes: a copy of unknown length is a slow instruction or a call */                             \
            const REAL *a = z + full * SK_BLOCK;                                                                 \
            sk_size i = 0;                                                                                       \
            for (; i + SK_LANES <= rest; i += SK_LANES)                                                          \
                SK_SIMD for (int j = 0; j < SK_LANES; j++) pad[i + j] = a[i + j];                                \
            for (sk_size k = i; k < SK_BLOCK; k += SK_LANES)                                                     \
                SK_SIMD for (int j = 0; j < SK_LANES; j++) pad[k + j] = (REAL)-INFINITY;                         \
            for (; i < rest; i++) pad[i] = a[i];                                                                 \
        }                                                                                                        \
        for (sk_size b = 0; b < full + (rest > 0); b++) {                                                        \
            REAL *g = G + b * SK_LANES;                                                                          \
            sk_groups_##NAME(b < full ? z + b * SK_BLOCK : pad, g, bad);                                         \
            SK_SIMD for (int j = 0; j < SK_LANES; j++) all[j] = g[j] > all[j] ? g[j] : all[j];                   \
        }                                                                                                        \
        high = all[0];                                                                                           \
        SK_SIMD_MAX(reduction(max : high) reduction(| : wrong)) for (int j = 0; j < SK_LANES; j++) {             \
            high = all[j] > high ? all[j] : high;                                                                \
            wrong |= bad[j] != (REAL)0;                                                                          \
        }                                                                                                        \
        *high_ = wrong ? NAN : (double)high;                                                                     \
        if (wrong || high == (REAL)INFINITY || high == (REAL)-INFINITY) return -1;                               \
        t = sk_raise_##NAME(all, SK_LANES, high, t, full < 128 ? 2 : SK_LANES);                                  \
        /* the maxima of all groups are a larger subset; very many are not worth it */                           \
        if (full < 128) t = sk_raise_##NAME(G, (full + (rest > 0)) * SK_LANES, high, t, 5);                      \
        /* rounding may not turn the bound into more than tau */                                                 \
        t = t - SLACK > (REAL)-1 ? t - SLACK : (REAL)-1;                                                         \
    collect:                                                                                                     \
        n = 0;                                                                                                   \
        for (sk_size b = 0; b < full + (rest > 0); b++) {                                                        \
            const REAL *a = b < full ? z + b * SK_BLOCK : pad, *g = G + b * SK_LANES;                            \
            unsigned hit = 0;                                                                                    \
            SK_SIMD_WITH(reduction(| : hit)) for (int j = 0; j < SK_LANES; j++)                                  \
                hit |= (unsigned)(g[j] - high > t) << j;                                                         \
            for (; hit; hit &= hit - 1) {                                                                        \
                const REAL *first = a + SK_LOWEST(hit);                                                          \
                for (int i = 0; i < SK_STEPS; i++) {                                                             \
                    REAL d = first[i * SK_LANES] - high;                                                         \
                    keep[n] = d;                                                                                 \
                    where[n] = first - a + b * SK_BLOCK + i * SK_LANES;                                          \
                    n += d > t;                                                                                  \
                }                                                                                                \
            }                                                                                                    \
        }                                                                                                        \
        tau = (double)t;                                                                                         \
        for (int pass = 0; pass < 100; pass++) {                                                                 \
            double s = 0.0, c = 0.0, next;                                                                       \
            SK_SIMD_WITH(reduction(+ : s, c)) for (sk_size e = 0; e < n; e++) {                                  \
                double d = (double)keep[e];                                                                      \
                s += d > tau ? d : 0.0;                                                                          \
                c += d > tau ? 1.0 : 0.0;                                                                        \
            }                                                                                                    \
            next = (s - 1.0) / c;                                                                                \
            if (pass == 0 && next < tau && t > (REAL)-1) {                                                       \
                /* t was above tau after all: test every possible member */                         \
                t = (REAL)-1;                                                                                    \
                goto collect;                                                                                    \
            }                                                                                                    \
            if (!(next > tau)) break;                                                                            \
            tau = next;                                                                                          \
        }                                                                                                        \
        *shift = tau;                                                                                            \
        return n;                                                                                                \
    }                                                                                                            \
    /* a row whose maximum high is not finite: NaN, equal shares of +inf, or nothing allowed */                  \
    static int64_t sk_special_##NAME(const REAL *z, sk_size K, double high, REAL *p) {                           \
        int64_t count = 0;                                                                                       \
        if (high > 0.0)                                                                                          \
            for (sk_size k = 0; k < K; k++) count += z[k] == (REAL)INFINITY;                                     \
        if (p == NULL) return count;                                                                             \
        for (sk_size k = 0; k < K; k++)                                                                          \
            p[k] = high != high                               ? (REAL)NAN                                        \
                   : high > 0.0 && z[k] == (REAL)INFINITY ? (REAL)(1.0 / (double)count)                          \
                                                              : (REAL)0;                                         \
        return count;                                                                                            \
    }                                                                                                            \
    /* 1/2 |p - q|^2 + sum_j q_j max(tau - z_j, 0): no term is negative, none cancels.                           \
     * p becomes p - q where ``minus``. Returns -1 for targets that are no distribution. */                      \
    SK_INLINE double sk_loss_row_##NAME(const REAL *restrict z, const REAL *restrict q,                          \
                                        REAL *restrict p, double high, double shift, sk_size K,                  \
                                        int minus) {                                                             \
        double square = 0.0, far = 0.0, sum = 0.0, below = 0.0;                                                  \
        SK_SIMD_WITH(reduction(+ : square, far, sum, below)) for (sk_size k = 0; k < K;                          \
                                                                        k++) {                                   \
            double t = (double)q[k], w = (double)p[k] - t, d = shift - ((double)z[k] - high);                    \
            square += w * w;                                                                                     \
            far += (t > 0.0) & (d > 0.0) ? t * d : 0.0;                                                          \
            sum += t;                                                                                            \
            below += t < 0.0 ? 1.0 : 0.0;                                                                        \
            p[k] = minus ? (REAL)w : p[k];                                                                       \
        }                                                                                                        \
        if (!(fabs(sum - 1.0) <= SUM_TOL) || below > 0.0) return -1.0;                                           \
        return 0.5 * square + far;                                                                               \
    }                                                                                                            \
    SK_INLINE double sk_loss_code_##NAME(const REAL *restrict z, sk_size y,                                      \
                                         const REAL *restrict p, double high, double shift,                      \
                                         sk_size K) {                                                            \
        double square = 0.0, own = (double)p[y], d = shift - ((double)z[y] - high);                              \
        SK_SIMD_WITH(reduction(+ : square)) for (sk_size k = 0; k < K; k++) {                                    \
            double w = k == y ? own - 1.0 : (double)p[k];                                                        \
            square += w * w;                                                                                     \
        }                                                                                                        \
        return 0.5 * square + (d > 0.0 ? d : 0.0);                                                               \
    }                                                                                                            \
    /* loss and gradient of a row from its p; high is not finite where the row was special */                    \
    SK_INLINE int sk_finish_##NAME(const REAL *z, const REAL *q, const int64_t *y, REAL *p,                      \
                                   double high, double shift, sk_size K, int minus,                              \
                                   double *loss) {                                                               \
        int whole = high - high == 0.0;                                                                          \
        if (q == NULL && y == NULL) return 0;                                                                    \
        if (!whole) {                                                                                            \
            /* distances are 0 inside and infinite outside of the classes with score +inf */                     \
            double sum = 0.0, square = 0.0, lost = 0.0;                                                          \
            for (sk_size k = 0; k < K; k++) {                                                                    \
                double t = q != NULL ? (double)q[k] : (double)(k == (sk_size)*y);                                \
                double w = (double)p[k] - t;                                                                     \
                if (t < 0.0) return 1;                                                                           \
                sum += t;                                                                                        \
                square += w * w;                                                                                 \
                if (t > 0.0 && p[k] == (REAL)0) lost = INFINITY;                                                 \
                if (minus) p[k] = (REAL)w;                                                                       \
            }                                                                                                    \
            *loss = 0.5 * square + lost;                                                                         \
            return !(fabs(sum - 1.0) <= SUM_TOL);                                                                \
        }                                                                                                        \
        if (q != NULL) {                                                                                         \
            *loss = sk_loss_row_##NAME(z, q, p, high, shift, K, minus);                                          \
            return *loss < 0.0;                                                                                  \
        }                                                                                                        \
        *loss = sk_loss_code_##NAME(z, (sk_size)*y, p, high, shift, K);                                          \
        if (minus) p[*y] -= (REAL)1;                                                                             \
        return 0;                                                                                                \
    }                                                                                                            \
    /* Short rows, 16 at once: T (K, 16) holds them turned, so that every loop runs over rows. */                \
    SK_INLINE void sk_lanes_##NAME(const REAL *restrict z, sk_size stride, sk_size rows,                         \
                                   sk_size K, REAL *restrict T, REAL *restrict high,                             \
                                   REAL *restrict t, REAL *restrict c) {                                         \
        REAL bad[SK_LANES], s[SK_LANES];                                                                         \
        if (rows < SK_LANES) memset(T, 0, (size_t)(K * SK_LANES) * sizeof(REAL));                                \
        for (sk_size l = 0; l < rows; l++)                                                                       \
            for (sk_size k = 0; k < K; k++) T[k * SK_LANES + l] = z[l * stride + k];                             \
        SK_SIMD for (int l = 0; l < SK_LANES; l++) {                                                             \
            high[l] = T[l];                                                                                      \
            bad[l] = T[l] != T[l] ? (REAL)1 : (REAL)0;                                                           \
            t[l] = (REAL)-1;                                                                                     \
        }                                                                                                        \
        for (sk_size k = 1; k < K; k++)                                                                          \
            SK_SIMD for (int l = 0; l < SK_LANES; l++) {                                                         \
                REAL x = T[k * SK_LANES + l];                                                                    \
                high[l] = x > high[l] ? x : high[l];                                                             \
                bad[l] = x != x ? (REAL)1 : bad[l];                                                              \
            }                                                                                                    \
        for (sk_size k = 0; k < K; k++)                                                                          \
            SK_SIMD for (int l = 0; l < SK_LANES; l++) T[k * SK_LANES + l] -= high[l];                           \
        for (int pass = 0; pass < 100; pass++) {                                                                 \
            int more = 0;                                                                                        \
            SK_SIMD for (int l = 0; l < SK_LANES; l++) s[l] = (REAL)-1, c[l] = (REAL)0;                          \
            for (sk_size k = 0; k < K; k++)                                                                      \
                SK_SIMD for (int l = 0; l < SK_LANES; l++) {                                                     \
                    REAL x = T[k * SK_LANES + l];                                                                \
                    s[l] += x > t[l] ? x : (REAL)0;                                                              \
                    c[l] += x > t[l] ? (REAL)1 : (REAL)0;                                                        \
                }                                                                                                \
            SK_SIMD_WITH(reduction(| : more)) for (int l = 0; l < SK_LANES; l++) {                               \
                REAL next = s[l] / c[l];                                                                         \
                more |= next > t[l];                                                                             \
                t[l] = next > t[l] ? next : t[l];                                                                \
            }                                                                                                    \
            if (!more) break;                                                                                    \
        }                                                                                                        \
        SK_SIMD for (int l = 0; l < SK_LANES; l++) high[l] = bad[l] != (REAL)0 ? (REAL)NAN : high[l];            \
    }                                                                                                            \
    /* Rows lo .. hi. Any of p, tau, size may be NULL, and loss with both kinds of target; p is                  \
     * the gradient p - q where ``minus``. spare: a row, for a loss without p. */                                \
    SK_MULTI(int, sk_sparsemax_##NAME,                                                                           \
             (const REAL *z, sk_size z_step, const REAL *q, sk_size q_step, const int64_t *y, REAL *p,           \
              sk_size p_step, double *tau, int64_t *size, double *loss, int minus, sk_size lo, sk_size hi,       \
              sk_size K, REAL *G, REAL *keep, sk_size *where, REAL *spare),                                      \
             (z, z_step, q, q_step, y, p, p_step, tau, size, loss, minus, lo, hi, K, G, keep, where, spare)) {   \
        int wrong = 0, fits = p != NULL, targets = q != NULL || y != NULL;                                       \
        if (!fits && targets) p = spare, p_step = 0;                                                             \
        if (K <= SK_SHORT) {                                                                                     \
            REAL T[SK_SHORT * SK_LANES], high[SK_LANES], t[SK_LANES], c[SK_LANES];                               \
            for (sk_size first = lo; first < hi; first += SK_LANES) {                                            \
                sk_size rows = hi - first < SK_LANES ? hi - first : SK_LANES;                                    \
                sk_lanes_##NAME(z + first * z_step, z_step, rows, K, T, high, t, c);                             \
                if (p != NULL && p_step)                                                                         \
                    for (sk_size l = 0; l < rows; l++) {                                                         \
                        /* a special row is read again, and p may be z */                                        \
                        if (!(high[l] - high[l] == (REAL)0)) continue;                                           \
                        for (sk_size k = 0; k < K; k++) {                                                        \
                            REAL x = T[k * SK_LANES + l] - t[l];                                                 \
                            p[(first + l) * p_step + k] = x > (REAL)0 ? x : (REAL)0;                             \
                        }                                                                                        \
                    }                                                                                            \
                if (!targets && tau == NULL && size == NULL) {                                                   \
                    int whole = 1;                                                                               \
                    for (int l = 0; l < SK_LANES; l++) whole &= high[l] - high[l] == (REAL)0;                    \
                    if (whole) continue;                                                                         \
                }                                                                                                \
                for (sk_size l = 0; l < rows; l++) {                                                             \
                    sk_size i = first + l;                                                                       \
                    const REAL *zi = z + i * z_step;                                                             \
                    REAL *pi = p == NULL ? NULL : p + i * p_step;                                                \
                    int64_t count = (int64_t)c[l];                                                               \
                    double top = (double)high[l], shift = (double)t[l];                                          \
                    if (!(top - top == 0.0)) {                                                                   \
                        count = sk_special_##NAME(zi, K, top, pi);                                               \
                        shift = 0.0;                                                                             \
                    } else if (pi != NULL && !p_step)                                                            \
                        for (sk_size k = 0; k < K; k++) {                                                        \
                            REAL x = T[k * SK_LANES + l] - t[l];                                                 \
                            pi[k] = x > (REAL)0 ? x : (REAL)0;                                                   \
                        }                                                                                        \
                    if (tau != NULL) tau[i] = top + shift;                                                       \
                    if (size != NULL) size[i] = count;                                                           \
                    wrong |= sk_finish_##NAME(zi, q == NULL ? NULL : q + i * q_step,                             \
                                              y == NULL ? NULL : y + i, pi, top, shift, K,                       \
                                              minus, loss == NULL ? NULL : loss + i);                            \
                }                                                                                                \
            }                                                                                                    \
            return wrong;                                                                                        \
        }                                                                                                        \
        for (sk_size i = lo; i < hi; i++) {                                                                      \
            const REAL *zi = z + i * z_step;                                                                     \
            REAL *pi = p == NULL ? NULL : p + i * p_step;                                                        \
            double top, shift = 0.0;                                                                             \
            sk_size n = sk_find_##NAME(zi, K, G, keep, where, &top, &shift);                                     \
            int64_t count = 0;                                                                                   \
            if (n < 0)                                                                                           \
                count = sk_special_##NAME(zi, K, top, pi);                                                       \
            else {                                                                                               \
                for (sk_size e = 0; e < n; e++) count += (double)keep[e] > shift;                                \
                if (pi != NULL) {                                                                                \
                    memset(pi, 0, (size_t)K * sizeof(REAL));                                                     \
                    for (sk_size e = 0; e < n; e++) {                                                            \
                        REAL v = (REAL)((double)keep[e] - shift);                                                \
                        pi[where[e]] = v > (REAL)0 ? v : (REAL)0;                                                \
                    }                                                                                            \
                }                                                                                                \
            }                                                                                                    \
            if (tau != NULL) tau[i] = top + shift;                                                               \
            if (size != NULL) size[i] = count;                                                                   \
            wrong |= sk_finish_##NAME(zi, q == NULL ? NULL : q + i * q_step,                                     \
                                      y == NULL ? NULL : y + i, pi, top, shift, K, minus,                        \
                                      loss == NULL ? NULL : loss + i);                                           \
        }                                                                                                        \
        return wrong;                                                                                            \
    }
SK_SPARSEMAX(f32, float, 4e-6f, 1e-4)
SK_SPARSEMAX(f64, double, 1e-14, 1e-6)
#endif
