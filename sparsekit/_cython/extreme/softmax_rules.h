/* Common parts of all steps of softmax with very many classes: the draw of negatives, and each method's changes of the
 * scores. */
#ifndef SPARSEKIT_SOFTMAX_RULES_H
#define SPARSEKIT_SOFTMAX_RULES_H

#include "extreme/implicit.h" /* first: it has what the shared headers are compiled with */

#include "draws.h"

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

/* See sk_draw_classes. */
SK_INLINE sk_size sk_draw(const sk_rule *rule, sk_size K, int64_t y, uint64_t *state, int64_t *k, double *r) {
    return (sk_size)sk_draw_classes(rule->method == SK_NCE, rule->n_negatives, K, y, state, rule->noise, rule->keep,
                                    rule->alias, k, r);
}

/* See sk_method_slopes; g[0] is that of the label. */
SK_MULTI(void, sk_slopes,
         (const sk_rule *rule, sk_size n, double eta, const int64_t *restrict k, const double *restrict f,
          const double *restrict r, double *restrict g, double *u, sk_size K),
         (rule, n, eta, k, f, r, g, u, K)) {
    const sk_method method = {rule->method, rule->n_negatives, K, rule->log_noise};
    g[0] = sk_method_slopes(0, method, n, eta, k, f, r, g, u);
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
    if (*u != *u) *u = sk_first_u(0, n, f, r); /* not seen yet */
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
