/* The MAP oracles of all factors, behind one function, and sums over the parts of their structures. */
#ifndef SPARSEKIT_FACTOR_ORACLES_H
#define SPARSEKIT_FACTOR_ORACLES_H

#include "factor_graph/factor_graph.h"
#include "shared/structures.h"
#include "factor_graph/trees.h"

/* The user's own oracle, called through the interpreter. It writes the structure's parts, (d) and (n_add) numbers. It
 * returns 0, or another number if an exception is pending. The extension module sets the pointer when it is loaded. */
static int (*fg_custom)(void *object, sk_size d, sk_size n_add, const double *u, const double *c, double *parts);

/* Number of doubles in an oracle's workspace, with its answer's indices. */
static sk_size fg_oracle_buffer_size(const fg_spec *f) {
    switch (f->kind) {
    case FG_DENSE: return f->rows + sk_dense_buffer_size(f->rows, f->sizes);
    case FG_SEQUENCE: return f->rows + sk_viterbi_buffer_size(f->rows, f->columns);
    case FG_TREE: return f->rows + sk_arborescence_buffer_size(f->rows);
    case FG_PROJECTIVE: return f->rows + sk_eisner_buffer_size(f->rows);
    case FG_MATCHING: return f->rows + f->columns + sk_matching_buffer_size(f->rows, f->columns);
    default: return 0;
    }
}

/* on (n_on) and bonus (n_bonus): the parts of the structure that is best for scores u and c */
static void fg_maximize(const fg_spec *f, const double *u, const double *c, int32_t *on, int32_t *bonus,
                        double *work) {
    sk_size *answer = sk_take_indices(&work, f->rows > f->n_on ? f->rows : f->n_on);
    const sk_size n = f->columns;
    switch (f->kind) {
    case FG_DENSE: {
        sk_size joint;
        sk_dense(f->rows, f->sizes, f->offsets, u, c, answer, &joint, work);
        for (sk_size k = 0; k < f->rows; k++) on[k] = (int32_t)(f->offsets[k] + answer[k]);
        bonus[0] = (int32_t)joint;
        break;
    }
    case FG_SEQUENCE:
        sk_viterbi(f->rows, n, u, c, n * n, on, work);
        for (sk_size t = 1; t < f->rows; t++) bonus[t - 1] = (int32_t)(((t - 1) * n + on[t - 1]) * n + on[t]);
        for (sk_size t = 0; t < f->rows; t++) on[t] += (int32_t)(t * n);
        break;
    case FG_TREE:
    case FG_PROJECTIVE:
        if (f->kind == FG_TREE) sk_arborescence(n, u, f->flag, answer, work);
        else sk_eisner(n, u, f->flag, answer, work);
        for (sk_size i = 0; i < n; i++) on[i] = (int32_t)(i * n + answer[i]);
        break;
    default:
        sk_matching(f->rows, n, u, answer, work);
        for (sk_size i = 0; i < f->n_on; i++)
            on[i] = (int32_t)(f->rows <= n ? i * n + answer[i] : answer[i] * n + i);
    }
}

/* sum of u (d) and c (n_add), which may be NULL, over the parts of structure k */
SK_INLINE double fg_of_parts(const fg_spec *f, const fg_active *t, sk_size k, const double *u, const double *c) {
    double s = 0.0;
    if (f->kind == FG_CUSTOM) {
        const double *value = t->value + k * (f->d + f->n_add);
        for (sk_size i = 0; i < f->d; i++) s += value[i] * u[i];
        if (c != NULL)
            for (sk_size i = 0; i < f->n_add; i++) s += value[f->d + i] * c[i];
        return s;
    }
    for (sk_size i = 0; i < f->n_on; i++) s += u[t->on[k * f->n_on + i]];
    if (c != NULL)
        for (sk_size i = 0; i < f->n_bonus; i++) s += c[t->bonus[k * f->n_bonus + i]];
    return s;
}

/* u (d) and c (n_add), either of which may be NULL, += weight times the structure's parts */
SK_INLINE void fg_add_parts(const fg_spec *f, const fg_active *t, sk_size k, double weight, double *u, double *c) {
    if (f->kind == FG_CUSTOM) {
        const double *value = t->value + k * (f->d + f->n_add);
        if (u != NULL)
            for (sk_size i = 0; i < f->d; i++) u[i] += weight * value[i];
        if (c != NULL)
            for (sk_size i = 0; i < f->n_add; i++) c[i] += weight * value[f->d + i];
        return;
    }
    if (u != NULL)
        for (sk_size i = 0; i < f->n_on; i++) u[t->on[k * f->n_on + i]] += weight;
    if (c != NULL)
        for (sk_size i = 0; i < f->n_bonus; i++) c[t->bonus[k * f->n_bonus + i]] += weight;
}

#endif
