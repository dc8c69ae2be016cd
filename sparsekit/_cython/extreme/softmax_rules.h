/* Common parts of all steps of softmax with very many classes: the draw of negatives, and each method's changes of the
 * scores. */
#ifndef SPARSEKIT_SOFTMAX_RULES_H
#define SPARSEKIT_SOFTMAX_RULES_H

#include "extreme/implicit.h" /* first: it has what the shared headers are compiled with */

#include "draws.h"
#include "numbers.h"

typedef struct {
    sk_size n_classes, n_features;
    int shift;            /* hashed: 64 - log2(size of W); 0: W is (n_classes, n_features) */
    void *W, *bias;       /* of the rows' type; bias (n_classes) or NULL */
    double *scale;        /* (n_classes) or NULL: ones */
    const double *beta;   /* eq. (6) (n_classes), or NULL: no ridge */
} sk_table;

typedef struct {
    int method;
    sk_size n_negatives, batch_size;
    double eta, ridge;
    double log_ratio;        /* log((K - 1) / n_negatives) */
    const double *noise;     /* probabilities (n_classes), or NULL: uniform */
    const double *log_noise; /* their logarithms, or NULL */
    const double *keep;      /* alias table of the noise (n_classes) */
    const int64_t *alias;
} sk_rule;

/* The examples: CSR rows, or dense ones where start is NULL, of float32 or float64 (x) with indices of 32 or 64
 * bits (col, start). Example e is row of[e] (NULL: e), with label y[e], weight[e] (NULL: 1) and u[e] (NULL: the
 * method has none). */
typedef struct {
    const void *x, *col, *start;
    sk_size width;
    const int64_t *of, *y;
    const double *weight;
    double *u;
} sk_rows;

/* Workspace of a step. Every array has n_negatives + 1 entries a row (entry 0 is the label's); rho and q have those of
 * one row. */
typedef struct {
    int64_t *k;
    double *f, *g, *r, *rho, *q;
    sk_size *count;  /* (rows): negatives of each row */
    double *s, *eta; /* (rows): squared norm and step length */
    int64_t *blocks, *slot; /* steps with blocks of classes: those drawn, and the index of each (n_blocks) */
    double *weights;        /* of the blocks drawn */
} sk_workspace;

/* Negatives of label y into k[1 ..] with inverse probabilities r[1 ..]; returns their number.
 * Uniform: distinct, never y, all of them if there are no more. Draws from a noise distribution, with replacement.
 * Equal ones are merged and y is dropped, which keeps sums over k != y unbiased. NCE uses the draws unchanged. */
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
        while (n < m) {
            int64_t j = sk_below(state, K - 1);
            int seen = 0;
            j += j >= y;
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

/* log(1 + the sum of exp(f[j] - from) over the negatives with r[j] > 0) */
SK_INLINE double sk_log_sum(sk_size n, const double *restrict f, const double *restrict r, double from) {
    double high = 0.0, sum = 0.0;
    SK_SIMD_MAX(reduction(max : high))
    for (sk_size j = 1; j <= n; j++) high = r[j] > 0.0 && f[j] - from > high ? f[j] - from : high;
    SK_SIMD_WITH(reduction(+ : sum))
    for (sk_size j = 1; j <= n; j++) sum += r[j] > 0.0 ? sk_exp_any(f[j] - from - high) : 0.0;
    return high + log(exp(-high) + sum);
}

/* Gradient along x: g[j] of class k[j], from the scores f, j = 0 (the label) .. n; may change u. Entries
 * with r = 0 are none. k is read by NCE alone. */
SK_MULTI(void, sk_slopes,
         (const sk_rule *rule, sk_size n, double eta, const int64_t *restrict k, const double *restrict f,
          const double *restrict r, double *restrict g, double *u_, sk_size K),
         (rule, n, eta, k, f, r, g, u_, K)) {
    double fy = f[0], total = 0.0;
    if (rule->method == SK_OVE) {
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] / (1.0 + sk_exp_any(fy - f[j]));
            total += g[j];
        }
        g[0] = -total;
    } else if (rule->method == SK_IS) {
        double high = 0.0;
        SK_SIMD_MAX(reduction(max : high))
        for (sk_size j = 1; j <= n; j++) high = r[j] > 0.0 && f[j] - fy > high ? f[j] - fy : high;
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] * sk_exp_any(f[j] - fy - high);
            total += g[j];
        }
        g[0] = -total;
        total = 1.0 / (total + exp(-high));
        for (sk_size j = 0; j <= n; j++) g[j] *= total;
    } else if (rule->method == SK_NCE) {
        double log_m = log((double)rule->n_negatives), uniform = -log((double)K);
        const double *log_noise = rule->log_noise;
        double own = fy - log_m - (log_noise != NULL ? log_noise[k[0]] : uniform);
        if (log_noise != NULL) {
            SK_SIMD
            for (sk_size j = 1; j <= n; j++) g[j] = f[j] - log_m - log_noise[k[j]];
        } else {
            SK_SIMD
            for (sk_size j = 1; j <= n; j++) g[j] = f[j] - log_m - uniform;
        }
        SK_SIMD
        for (sk_size j = 1; j <= n; j++) g[j] = 1.0 / (1.0 + sk_exp_any(-g[j]));
        g[0] = -1.0 / (1.0 + sk_exp_any(own));
    } else { /* eq. (7) */
        double u = *u_;
        if (rule->method == SK_UMAX) {
            double bound = sk_log_sum(n, f, r, fy);
            if (u < bound - SK_UMAX_DELTA) u = bound;
        }
        SK_SIMD_WITH(reduction(+ : total))
        for (sk_size j = 1; j <= n; j++) {
            g[j] = r[j] * sk_exp_any(f[j] - fy - u);
            total += g[j];
        }
        g[0] = -total;
        u -= eta * (1.0 - exp(-u) - total);
        /* the optimal u is not negative */
        *u_ = rule->method == SK_UMAX && u < 0.0 ? 0.0 : u;
    }
}

/* shrinkage of class k by the ridge, in a step of length eta */
SK_INLINE double sk_shrink(const sk_table *T, const sk_rule *rule, int64_t k, double eta) {
    return T->beta != NULL ? 1.0 / (1.0 + eta * rule->ridge * T->beta[k]) : 1.0;
}

/* The step of one row from the scores f of its drawn classes k; eta has the batch's share in it. Leaves
 * the changes of the classes (before the shrinkage) in g. */
static void sk_solve(const sk_table *T, const sk_rule *rule, const int64_t *k, const double *f,
                     const double *r, double *g, sk_workspace workspace, double s, sk_size n, double eta,
                     double *u) {
    if (*u != *u) { /* not seen yet: what the drawn classes say, log K where all scores are equal */
        double high = 0.0, total = 0.0;
        for (sk_size j = 1; j <= n; j++) high = f[j] - f[0] > high ? f[j] - f[0] : high;
        for (sk_size j = 1; j <= n; j++) total += r[j] * exp(f[j] - f[0] - high);
        *u = high + log(exp(-high) + total);
    }
    if (rule->method != SK_IMPLICIT) {
        sk_slopes(rule, n, eta, k, f, r, g, u, T->n_classes);
        for (sk_size j = 0; j <= n; j++) g[j] *= -eta;
        return;
    }
    if (n != 1) { /* one negative: sk_implicit_rows, of several rows */
        double ry = sk_shrink(T, rule, k[0], eta);
        for (sk_size j = 1; j <= n; j++) {
            workspace.rho[j] = sk_shrink(T, rule, k[j], eta);
            g[j] = workspace.rho[j] * f[j] - ry * f[0];
        }
        g[0] = sk_implicit_many(n, g + 1, r + 1, workspace.rho + 1, workspace.q + 1, eta, s, ry, *u, u);
        for (sk_size j = 1; j <= n; j++) g[j] = -g[j];
    }
}
#endif
