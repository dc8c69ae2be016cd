/* Steps of softmax with very many classes: one row, or a few, and a few classes.
 *
 * A step reads and writes the rows of W that belong to the label and to the sampled classes, at
 * the non-zeros of x, and nothing else of size K, D or N. What would touch more is lazy:
 * W_k = scale_k R_k, so that the ridge and a projection multiply one number, and the average of
 * the iterates is (tau_k R_k - S_k) / T, where tau_k sums scale_k over the steps and S_k sums
 * tau_k times the changes of R_k (Xu, 2011, "Towards optimal one pass large scale learning with
 * averaged stochastic gradient descent", for the pair of vectors).
 *
 * Threads share the arrays without locks (Niu et al., 2011): two that write one number at the
 * same time lose one of the changes. u has one number an example, which one thread owns. */
#ifndef SPARSEKIT_EXTREME_H
#define SPARSEKIT_EXTREME_H

#include "implicit.h"

#define SK_SIMD _Pragma("omp simd")

enum { SK_IMPLICIT, SK_UMAX, SK_OVE, SK_NCE, SK_IS, SK_SGD };

typedef struct {
    sk_size n_classes, n_features;
    int shift;            /* hashed: 64 - log2(size of W); 0: W is (n_classes, n_features) */
    void *W, *bias;       /* of the rows' type; bias (n_classes) or NULL */
    double *scale;        /* (n_classes) or NULL: ones */
    double *square;       /* squared norms of W's rows (n_classes), or NULL: no bound */
    const double *beta;   /* eq. (6) (n_classes), or NULL: no ridge */
    void *sum, *sum_bias; /* S above, like W and bias, or NULL: no average */
    double *tau;          /* (n_classes), or NULL: scale is NULL and tau the number of steps */
    int64_t *last;        /* steps that tau_k counts (n_classes), or NULL */
} sk_table;

typedef struct {
    int method, raman;
    sk_size n_negatives, batch_size;
    double eta, ridge, delta, u_bound, w_bound;
    double log_ratio;        /* log((K - 1) / n_negatives) */
    const double *noise;     /* probabilities (n_classes), or NULL: uniform */
    const double *log_noise; /* their logarithms, or NULL */
    const double *keep;      /* alias table of the noise (n_classes) */
    const int64_t *alias;
    int64_t average_from;    /* steps before the average begins */
    const int64_t *classes;  /* a permutation of the classes in n_blocks blocks, or NULL: one block */
    const int64_t *place;    /* its inverse */
    sk_size n_blocks;
} sk_rule;

/* what steps need beside the model; every array has n_negatives + 1 entries a row (entry 0 is the
 * label's), rho and q those of one row */
typedef struct {
    int64_t *k;
    double *f, *g, *r, *rho, *q;
    sk_size *count;  /* (rows): negatives of each row */
    double *s, *eta; /* (rows): squared norm and step length */
} sk_room;

/* xorshift64* (Vigna, 2016): one word of state, which is enough to draw classes */
SK_INLINE uint64_t sk_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Dull;
}

/* uniform in 0 .. n - 1, n < 2^32, by a product's high half; the bias is below n / 2^32 */
SK_INLINE sk_size sk_below(uint64_t *state, sk_size n) {
    return (sk_size)(((sk_random(state) >> 32) * (uint64_t)n) >> 32);
}

SK_INLINE double sk_unit(uint64_t *state) { return (double)(sk_random(state) >> 11) * 0x1p-53; }

/* block j of n classes are the places from here to that of j + 1 */
SK_INLINE sk_size sk_block(sk_size j, sk_size n, sk_size n_blocks) { return (n * j + n_blocks - 1) / n_blocks; }

/* Negatives of label y into k[1 ..] with inverse probabilities r[1 ..]; returns their number.
 * Uniform: distinct, never y, all of them if there are no more. From a noise distribution: with
 * replacement; equal ones are merged and y is dropped, which keeps sums over k != y unbiased;
 * NCE takes them as they come. */
static sk_size sk_draw(const sk_rule *rule, sk_size K, int64_t y, uint64_t *state, int64_t *k, double *r) {
    sk_size m = rule->n_negatives, n = 0;
    if (rule->noise == NULL && rule->method != SK_NCE) {
        if (m >= K - 1) {
            for (sk_size j = 0; j < K; j++)
                if (j != y) {
                    k[++n] = j;
                    r[n] = 1.0;
                }
            return n;
        }
        sk_size from = 0, size = K, own = y;
        if (rule->classes != NULL) { /* those of the label's block; of a random one they are uniform */
            sk_size block = rule->place[y] * rule->n_blocks / K;
            from = sk_block(block, K, rule->n_blocks);
            size = sk_block(block + 1, K, rule->n_blocks) - from;
            own = rule->place[y] - from;
        }
        while (n < m) {
            int64_t j = sk_below(state, size - 1);
            int seen = 0;
            j += j >= own;
            if (rule->classes != NULL) j = rule->classes[from + j];
            for (sk_size i = 1; i <= n; i++) seen |= k[i] == j;
            if (!seen) {
                k[++n] = j;
                r[n] = (double)(K - 1) / (double)m;
            }
        }
        return n;
    }
    for (sk_size i = 0; i < m; i++) {
        int64_t j = sk_below(state, K);
        double weight;
        int seen = 0;
        if (rule->noise != NULL && !(sk_unit(state) < rule->keep[j])) j = rule->alias[j];
        weight = rule->noise != NULL ? 1.0 / ((double)m * rule->noise[j]) : (double)K / (double)m;
        if (rule->method != SK_NCE) {
            if (j == y) continue;
            for (sk_size l = 1; l <= n && !seen; l++)
                if (k[l] == j) {
                    r[l] += weight;
                    seen = 1;
                }
            if (seen) continue;
        }
        k[++n] = j;
        r[n] = weight;
    }
    return n;
}

SK_INLINE double sk_sigmoid(double x) {
    double e = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

SK_INLINE double sk_softplus(double x) { return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x))); }

/* Gradient along x: g[j] of class k[j], from the scores f, j = 0 (the label) .. n; may change u.
 * Returns the value of the sampled objective where asked, else 0. */
static double sk_slopes(const sk_rule *rule, sk_size n, double eta, const int64_t *k, const double *f,
                        const double *r, double *g, double *u_, sk_size K, int value) {
    double fy = f[0], total = 0.0, loss = 0.0;
    if (rule->method == SK_OVE) {
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] * sk_sigmoid(f[j] - fy);
            total += g[j];
            if (value) loss += r[j] * sk_softplus(f[j] - fy);
        }
        g[0] = -total;
    } else if (rule->method == SK_IS) {
        double high = 0.0;
        for (sk_size j = 1; j <= n; j++) high = f[j] - fy > high ? f[j] - fy : high;
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] * exp(f[j] - fy - high);
            total += g[j];
        }
        if (value) loss = high + log(exp(-high) + total);
        total += exp(-high);
        g[0] = 0.0;
        for (sk_size j = 1; j <= n; j++) {
            g[j] /= total;
            g[0] -= g[j];
        }
    } else if (rule->method == SK_NCE) {
        double log_m = log((double)rule->n_negatives), uniform = -log((double)K);
        for (sk_size j = 0; j <= n; j++) {
            double a = f[j] - log_m - (rule->log_noise != NULL ? rule->log_noise[k[j]] : uniform);
            g[j] = j ? sk_sigmoid(a) : -sk_sigmoid(-a);
            if (value) loss += sk_softplus(j ? a : -a);
        }
    } else if (!rule->raman) { /* eq. (7) */
        double u = *u_;
        if (rule->method == SK_UMAX) {
            double high = 0.0, bound = 0.0;
            for (sk_size j = 1; j <= n; j++) high = f[j] - fy > high ? f[j] - fy : high;
            for (sk_size j = 1; j <= n; j++) bound += exp(f[j] - fy - high);
            bound = high + log(exp(-high) + bound);
            if (u < bound - rule->delta) u = bound;
        }
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] * exp(f[j] - fy - u);
            total += g[j];
        }
        g[0] = -total;
        if (value) loss = u + exp(-u) + total - 1.0;
        u -= eta * (1.0 - exp(-u) - total);
        /* the optimal u is not negative */
        if (rule->method == SK_UMAX) u = u < 0.0 ? 0.0 : u > rule->u_bound ? rule->u_bound : u;
        *u_ = u;
    } else { /* eq. (8) */
        double u = *u_;
        if (rule->method == SK_UMAX) {
            double high = fy, bound = 0.0;
            for (sk_size j = 1; j <= n; j++) high = f[j] > high ? f[j] : high;
            for (sk_size j = 0; j <= n; j++) bound += exp(f[j] - high);
            bound = high + log(bound);
            if (u < bound - rule->delta) u = bound;
        }
        g[0] = exp(fy - u) - 1.0;
        total = g[0] + 1.0;
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] * exp(f[j] - u);
            total += g[j];
        }
        if (value) loss = u - fy + total - 1.0;
        u -= eta * (1.0 - total);
        if (rule->method == SK_UMAX && u > rule->u_bound) u = rule->u_bound;
        *u_ = u;
    }
    return loss;
}

SK_INLINE uint64_t sk_class_key(int64_t k) { /* splitmix64 */
    uint64_t x = ((uint64_t)k + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

SK_INLINE uint64_t sk_hash(uint64_t key, uint64_t j) {
    return (key ^ (j * 0xD6E8FEB86659FD93ull)) * 0xA0761D6478BD642Full;
}

/* shrinkage of class k by the ridge, in a step of length eta */
SK_INLINE double sk_shrink(const sk_table *T, const sk_rule *rule, int64_t k, double eta) {
    return T->beta != NULL ? 1.0 / (1.0 + eta * rule->ridge * T->beta[k]) : 1.0;
}

/* The step of one row from the scores f of its drawn classes k; eta has the batch's share in it. Leaves
 * the changes of the classes (before the shrinkage) in g. Returns the value of the sampled objective where
 * asked. */
static double sk_solve(const sk_table *T, const sk_rule *rule, const int64_t *k, const double *f,
                              const double *r, double *g, sk_room room, double s, sk_size n, double eta,
                              double *u, int value) {
    double loss = 0.0;
    if (*u != *u) { /* not seen yet: what the drawn classes say, log K where all scores are equal */
        double high = 0.0, total = 0.0;
        for (sk_size j = 1; j <= n; j++) high = f[j] - f[0] > high ? f[j] - f[0] : high;
        for (sk_size j = 1; j <= n; j++) total += r[j] * exp(f[j] - f[0] - high);
        *u = high + log(exp(-high) + total) + (rule->raman ? f[0] : 0.0);
    }
    if (rule->method != SK_IMPLICIT) {
        loss = sk_slopes(rule, n, eta, k, f, r, g, u, T->n_classes, value);
        for (sk_size j = 0; j <= n; j++) g[j] *= -eta;
        return loss;
    }
    if (value) {
        for (sk_size j = 1; j <= n; j++) loss += r[j] * exp(f[j] - f[0] - *u);
        loss += *u + exp(-*u) - 1.0;
    }
    if (n != 1) { /* one negative: sk_implicit_rows, of several rows */
        double ry = sk_shrink(T, rule, k[0], eta);
        for (sk_size j = 1; j <= n; j++) {
            room.rho[j] = sk_shrink(T, rule, k[j], eta);
            g[j] = room.rho[j] * f[j] - ry * f[0];
        }
        g[0] = sk_implicit_many(n, g + 1, r + 1, room.rho + 1, room.q + 1, eta, s, ry, *u, u);
        for (sk_size j = 1; j <= n; j++) g[j] = -g[j];
    }
    return loss;
}

#define SK_RESCALE 1e-12

#define SK_EXTREME(NAME, REAL, INDEX)                                                                            \
    /* an entry of a hashed row: its place, and the sign that makes collisions cancel on average */              \
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
    /* scores of two classes at once: twice the loads are under way */                                           \
    SK_MULTI static void sk_pair_##NAME(const REAL *restrict V, const REAL *restrict W, const REAL *restrict x,  \
                                        const INDEX *restrict col, sk_size len, double *fv, double *fw) {        \
        REAL a = 0, b = 0;                                                                                       \
        if (col == NULL) {                                                                                       \
            _Pragma("omp simd reduction(+ : a, b)") for (sk_size i = 0; i < len; i++) {                          \
                a += x[i] * V[i];                                                                                \
                b += x[i] * W[i];                                                                                \
            }                                                                                                    \
        } else {                                                                                                 \
            _Pragma("omp simd reduction(+ : a, b)") for (sk_size i = 0; i < len; i++) {                          \
                a += x[i] * V[col[i]];                                                                           \
                b += x[i] * W[col[i]];                                                                           \
            }                                                                                                    \
        }                                                                                                        \
        *fv = (double)a;                                                                                         \
        *fw = (double)b;                                                                                         \
    }                                                                                                            \
    SK_MULTI static double sk_square_##NAME(const REAL *restrict x, sk_size len) {                               \
        REAL sum = 0;                                                                                            \
        _Pragma("omp simd reduction(+ : sum)") for (sk_size i = 0; i < len; i++) sum += x[i] * x[i];             \
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
/* V += b x and W += c x at once; V and W may be one */                                                      \
    SK_INLINE void sk_axpy2_##NAME(REAL b, REAL c, const REAL *restrict x, const INDEX *restrict col, sk_size len,\
                                   REAL *V, REAL *W) {                                                           \
        if (col == NULL) {                                                                                       \
            if (V == W) b += c, c = (REAL)0;                                                                     \
            for (sk_size i = 0; i < len; i++) V[i] += b * x[i];                                                  \
            if (V != W) for (sk_size i = 0; i < len; i++) W[i] += c * x[i];                                      \
        } else {                                                                                                 \
            for (sk_size i = 0; i < len; i++) {                                                                  \
                sk_size j = (sk_size)col[i];                                                                     \
                V[j] += b * x[i];                                                                                \
                W[j] += c * x[i];                                                                                \
            }                                                                                                    \
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
    /* W_k becomes shrink (W_k + c x), s = ||x||^2; step number t counts from 1 */                               \
    SK_INLINE void sk_move_##NAME(const sk_table *T, const sk_rule *rule, const REAL *restrict x,                \
                                  const INDEX *restrict col, sk_size len, double s, int64_t k, double c,         \
                                  double shrink, int64_t t, int hashed) {                                        \
        REAL *W = (REAL *)T->W, *bias = (REAL *)T->bias, *sum = (REAL *)T->sum;                                  \
        sk_size D = T->n_features;                                                                               \
        double scale = T->scale != NULL ? T->scale[k] : 1.0, tau = 0.0;                                          \
        double f = 0.0;                                                                                          \
        REAL step = (REAL)(c / scale);                                                                           \
        if (T->square != NULL) sk_scores_##NAME(T, x, col, len, &k, 0, &f, hashed);                              \
        if (sum != NULL) {                                                                                       \
            int64_t from = rule->average_from, done = t - 1 > from ? t - 1 : from;                               \
            if (T->tau != NULL) {                                                                                \
                int64_t last = T->last[k] > from ? T->last[k] : from;                                            \
                if (done > last) T->tau[k] += scale * (double)(done - last);                                     \
                T->last[k] = done;                                                                               \
                tau = T->tau[k];                                                                                 \
            } else {                                                                                             \
                tau = (double)(done - from);                                                                     \
            }                                                                                                    \
        }                                                                                                        \
        if (hashed) {                                                                                            \
            uint64_t key = sk_class_key(k);                                                                      \
            sk_hashed_add_##NAME(W, key, T->shift, step, x, col, len);                                           \
            if (sum != NULL) sk_hashed_add_##NAME(sum, key, T->shift, (REAL)(tau * step), x, col, len);          \
        } else {                                                                                                 \
            sk_axpy_##NAME(step, x, col, len, W + k * D);                                                        \
            if (sum != NULL) sk_axpy_##NAME((REAL)(tau * step), x, col, len, sum + k * D);                       \
        }                                                                                                        \
        if (bias != NULL) {                                                                                      \
            bias[k] += step;                                                                                     \
            if (sum != NULL) ((REAL *)T->sum_bias)[k] += (REAL)(tau * step);                                     \
        }                                                                                                        \
        if (T->scale == NULL) return;                                                                            \
        if (T->square != NULL) { /* the norm follows without a look at W_k */                                    \
            double square = shrink * shrink * (T->square[k] + 2.0 * c * f + c * c * s);                          \
            if (square > rule->w_bound * rule->w_bound) {                                                        \
                shrink *= rule->w_bound / sqrt(square);                                                          \
                square = rule->w_bound * rule->w_bound;                                                          \
            }                                                                                                    \
            T->square[k] = square > 0.0 ? square : 0.0;                                                          \
        }                                                                                                        \
        scale *= shrink;                                                                                         \
if (!(scale > (sum != NULL ? (sizeof(REAL) == 8 ? 1e-3 : 0.1) : SK_RESCALE))) {                          \
            /* once in many steps of a class; an average cancels digits as the scale falls */                    \
            REAL by = (REAL)scale, seen = (REAL)(T->tau != NULL ? T->tau[k] : 0.0);                              \
            for (sk_size i = 0; i < D; i++) {                                                                    \
                if (sum != NULL) sum[k * D + i] -= seen * W[k * D + i];                                          \
                W[k * D + i] *= by;                                                                              \
            }                                                                                                    \
            if (bias != NULL) {                                                                                  \
                if (sum != NULL) ((REAL *)T->sum_bias)[k] -= seen * bias[k];                                     \
                bias[k] *= by;                                                                                   \
            }                                                                                                    \
            if (T->tau != NULL) T->tau[k] = 0.0;                                                                 \
            scale = 1.0;                                                                                         \
        }                                                                                                        \
        T->scale[k] = scale;                                                                                     \
    }

SK_EXTREME(f32_i32, float, int32_t)
SK_EXTREME(f32_i64, float, int64_t)
SK_EXTREME(f64_i32, double, int32_t)
SK_EXTREME(f64_i64, double, int64_t)
#endif
