/* Sets of words with multipliers: their memory, trees' marginals at the multipliers, and the Hessian of the dual. */
#ifndef SPARSEKIT_FACTOR_CUT_SETS_H
#define SPARSEKIT_FACTOR_CUT_SETS_H

#include "factor_graph/factor_graph.h"
#include "factor_graph/factor_newton.h"
#include "factor_graph/factor_simplex.h"
#include "factor_graph/factor_span.h"
#include "factor_graph/tree_cuts.h"

struct fg_cuts {
    sk_size n, m, capacity;           /* words; sets, and how many fit */
    int one;                      /* whether the first set is that of all words, entered just once */
    double near;                  /* an entry not above this is 0 */
    double *v, *d, *x, *u, *free; /* (n, n); free: d where x is not 0 */
    double *tau, *mass, *row;     /* (n): of rows: potentials, sums of d over free entries; workspace */
    double *out;                  /* (capacity, n): 0 for the words of a set, else 1 */
    double *part;                 /* (capacity, n): sums of d over free entries of a row that enter */
    double *y, *g, *step, *to;    /* (capacity): multipliers, gradient, a direction, where it leads */
    sk_size *in, n_in;            /* (capacity): the sets that count */
    sk_size *on, *keep, n_on;     /* (capacity): indices in `in` of free sets; workspace */
    double *S, *L;                /* (size, size): the Hessian of the sets `in`, and a factor of the part `on` */
    sk_size size;
    sk_cuts flow;
};

static void fg_free_cuts(fg_cuts *t) {
    if (t != NULL) free(t->v), free(t->out), free(t->S);
    free(t);
}

/* Allocates buffers for so many sets; whether it succeeded. */
static int fg_grow_cuts(fg_cuts *t, sk_size least) {
    const sk_size n = t->n, m = t->m, capacity = 2 * least;
    double *block, *at;
    if (least <= t->capacity) return 1;
    at = block = calloc((size_t)(capacity * (2 * n + 7)), sizeof(double));
    if (at == NULL) return 0;
    at += 2 * capacity * n;
    if (t->out != NULL) {
        memcpy(block, t->out, (size_t)(m * n) * sizeof(double));
        memcpy(at, t->y, (size_t)m * sizeof(double));
        free(t->out);
    }
    t->capacity = capacity;
    t->out = block, t->part = block + capacity * n;
    t->y = at, at += capacity;
    t->g = at, at += capacity;
    t->step = at, at += capacity;
    t->to = at, at += capacity;
    t->in = sk_take_indices(&at, capacity);
    t->on = sk_take_indices(&at, capacity);
    t->keep = sk_take_indices(&at, capacity);
    return 1;
}

static fg_cuts *fg_make_cuts(const fg_spec *f, const double *w) {
    const sk_size n = f->columns;
    fg_cuts *t = calloc(1, sizeof *t);
    double *at;
    if (t == NULL) return NULL;
    t->v = at = calloc((size_t)(5 * n * n + 3 * n + sk_cuts_buffer_size(n)), sizeof(double));
    if (at == NULL) {
        free(t);
        return NULL;
    }
    t->n = n, t->one = f->flag;
    at += n * n;
    t->d = at, at += n * n;
    t->x = at, at += n * n;
    t->u = at, at += n * n;
    t->free = at, at += n * n;
    t->tau = at, at += n;
    t->mass = at, at += n;
    t->row = at, at += n;
    sk_cuts_take(&t->flow, n, at);
    for (sk_size i = 0; i < n * n; i++) t->d[i] = 1.0 / w[i];
    if (!fg_grow_cuts(t, n + 8)) {
        fg_free_cuts(t);
        return NULL;
    }
    t->m = t->one; /* the first set is already that of all words */
    return t;
}

/* x (n) += s out, and the root's own entry */
SK_INLINE void fg_add_entering(sk_size n, sk_size i, double s, const double *out, const double *d, double *x) {
    for (sk_size j = 0; j < n; j++) x[j] += s * out[j] * d[j];
    x[i] += s * d[i];
}

/* x for the multipliers y, and the gradient there */
static void fg_cuts_at(fg_cuts *t, const double *y) {
    const sk_size n = t->n;
    memcpy(t->u, t->v, (size_t)(n * n) * sizeof(double));
    for (sk_size k = 0; k < t->m; k++)
        for (sk_size i = 0; y[k] != 0.0 && i < n; i++)
            if (t->out[k * n + i] == 0.0) fg_add_entering(n, i, y[k], t->out + k * n, t->d + i * n, t->u + i * n);
    for (sk_size i = 0; i < n; i++)
        t->tau[i] = fg_project_simplex(n, t->u + i * n, t->d + i * n, 1, t->tau[i], t->x + i * n);
    for (sk_size k = 0; k < t->m; k++) {
        t->g[k] = 1.0;
        for (sk_size i = 0; i < n; i++)
            if (t->out[k * n + i] == 0.0) t->g[k] -= fg_line_dot(n, t->x + i * n, t->out + k * n) + t->x[i * n + i];
    }
}

static int fg_grow_factor(fg_cuts *t, sk_size K) {
    double *S;
    if (K <= t->size) return 1;
    S = realloc(t->S, (size_t)(8 * K * K) * sizeof(double));
    if (S == NULL) return 0;
    t->size = 2 * K;
    t->S = S;
    t->L = S + 4 * K * K;
    return 1;
}

/* S: the Hessian for the sets `in` */
static void fg_cuts_hessian(fg_cuts *t) {
    const sk_size n = t->n, K = t->n_in;
    for (sk_size i = 0; i < n; i++) {
        t->mass[i] = 0.0;
        for (sk_size j = 0; j < n; j++) {
            t->free[i * n + j] = t->x[i * n + j] > t->near ? t->d[i * n + j] : 0.0;
            t->mass[i] += t->free[i * n + j];
        }
    }
    for (sk_size r = 0; r < K; r++) {
        const double *out = t->out + t->in[r] * n;
        double *row = t->S + r * t->size, *part = t->part + t->in[r] * n;
        memset(row, 0, (size_t)(r + 1) * sizeof(double));
        for (sk_size i = 0; i < n; i++) {
            const double *d = t->free + i * n;
            double *q = t->row, share;
            part[i] = 0.0;
            if (out[i] != 0.0) continue;
            for (sk_size j = 0; j < n; j++) q[j] = d[j] * out[j];
            q[i] = d[i];
            for (sk_size j = 0; j < n; j++) part[i] += q[j];
            if (!(part[i] > 0.0 && part[i] < t->mass[i])) continue; /* no curvature */
            share = part[i] / t->mass[i];
            for (sk_size c = 0; c <= r; c++) {
                const double *other = t->out + t->in[c] * n;
                if (other[i] == 0.0)
                    row[c] += fg_line_dot(n, q, other) + q[i] - share * t->part[t->in[c] * n + i];
            }
        }
        for (sk_size c = 0; c < r; c++) t->S[c * t->size + r] = row[c];
    }
}

/* Cholesky factor of S + ridge for the sets `on`; `to` is work */
static void fg_factor_cuts(fg_cuts *t, double ridge) {
    for (sk_size r = 0; r < t->n_on; r++) {
        const double *from = t->S + t->on[r] * t->size;
        for (sk_size k = 0; k <= r; k++) t->L[r * t->size + k] = from[t->on[k]];
        t->to[r] = from[t->on[r]];
    }
    fg_factor_hessian(t->n_on, t->size, ridge, t->to, t->L);
}

SK_INLINE int fg_cut_is_held(const fg_cuts *t, sk_size k) { return t->y[k] > 0.0 || (t->one && k == 0); }

#endif
