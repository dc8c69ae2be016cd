/* Equations of the smallest face around a factor's answer, for known polytopes: the constraints that are tight. They
 * depend on the weights, and for sequences on ties of transitions. */
#ifndef SPARSEKIT_FACTOR_EQUATIONS_H
#define SPARSEKIT_FACTOR_EQUATIONS_H

#include "factor_graph/factor_chain.h"
#include "factor_graph/factor_span.h"

/* largest weight, and largest relative difference to the best score, that count as rounding */
#define FG_NO_WEIGHT 1e-10
#define FG_TIED_SCORE 3e-9

/* Strongly connected sets of tags at two adjacent positions: forward by transitions tied with the best, back by those
 * in use. Weight can circulate in them. side (2 K) becomes the set's number, from `first` on; returns how many. */
static sk_size fg_flow_sets(sk_size K, const unsigned char *tied, const unsigned char *used, const unsigned char *here,
                            sk_size first, int32_t *side, int32_t *queue, unsigned char *seen) {
    sk_size count = 0;
    for (sk_size i = 0; i < 2 * K; i++) side[i] = -1;
    for (sk_size from = 0; from < K; from++) {
        if (!here[from] || side[from] >= 0) continue;
        memset(seen, 0, (size_t)(2 * K));
        for (int way = 1; way <= 2; way++) { /* forward, then backward reachability */
            const unsigned char *right = way == 1 ? tied : used, *left = way == 1 ? used : tied;
            sk_size n = 1;
            queue[0] = (int32_t)from;
            seen[from] |= way;
            while (n > 0) {
                const sk_size at = queue[--n];
                for (sk_size k = 0; k < K; k++) {
                    const sk_size to = at < K ? K + k : k;
                    if ((at < K ? right[at * K + k] : left[k * K + at - K]) && !(seen[to] & way)) {
                        seen[to] |= way;
                        queue[n++] = (int32_t)to;
                    }
                }
            }
        }
        for (sk_size i = 0; i < 2 * K; i++)
            if (seen[i] == 3) side[i] = (int32_t)(first + count);
        count++;
    }
    return count;
}

/* In each such set the weight that leaves one position equals what enters the next. g: scores minus the answer. If
 * `tied_below` is negative, only transitions in use count, and only for variables. */
static int fg_span_sequence(const fg_spec *f, const fg_active *t, const double *x, const double *g, const double *c,
                            double tied_below, fg_span *s) {
    const sk_size T = f->rows, K = f->columns, n = T * K, arcs = (T - 1) * K * K;
    double *ahead = malloc((size_t)(3 * n + 1) * sizeof(double)), *back = ahead + n, *u = back + n, best = 0.0;
    unsigned char *tied = calloc((size_t)(2 * arcs + n + 2 * K + 1), 1), *used = tied + arcs, *here = used + arcs;
    int32_t *side = malloc((size_t)(2 * T * K + 2 * K + 1) * sizeof(int32_t)), *queue = side + 2 * T * K;
    sk_size n_row = 1, n_arc = 0;
    int ready = ahead != NULL && tied != NULL && side != NULL;
    for (sk_size i = 0; ready && i < n; i++) here[i] = x[i] > 0.0, u[i] = here[i] ? g[i] : -INFINITY;
    if (ready) best = fg_best_with(T, K, u, c, ahead, back);
    for (sk_size e = 0; ready && e < arcs; e++) {
        const sk_size from = e / K, to = (from / K + 1) * K + e % K;
        if (here[from] && here[to]) tied[e] = best - (ahead[from] + c[e] + u[to] + back[to]) <= tied_below;
    }
    for (sk_size k = 0; ready && k < t->m * f->n_bonus; k++) used[t->bonus[k]] = tied[t->bonus[k]] = 1;
    for (sk_size k = 0; ready && t->by_constraints && k < arcs; k++)
        if (t->flow->E[k] > FG_NO_WEIGHT) used[k] = tied[k] = 1;
    for (sk_size p = 0; ready && p < T - 1; p++)
        n_row += fg_flow_sets(K, tied + p * K * K, used + p * K * K, here + p * K, n_row, side + 2 * p * K, queue,
                              here + n);
    ready = ready && fg_rows_begin(&s->on, n_row, n, 3 * n);
    for (sk_size i = 0; ready && i < n; i++) {
        const sk_size p = i / K, k = i % K;
        if (here[i]) {
            if (p == 0) fg_rows_enter(&s->on, 0, 1.0);
            /* a tag's weight may be so small that none of its transitions counts as in use */
            if (p > 0 && side[(2 * p - 1) * K + k] > 0) fg_rows_enter(&s->on, side[(2 * p - 1) * K + k], -1.0);
            if (p < T - 1 && side[2 * p * K + k] > 0) fg_rows_enter(&s->on, side[2 * p * K + k], 1.0);
        }
        fg_rows_next(&s->on);
    }
    for (sk_size i = 0; ready && i < arcs; i++) {
        const sk_size p = i / (K * K), j = i / K % K, k = i % K;
        tied[i] = tied_below >= 0.0 && tied[i] && side[2 * p * K + j] > 0 &&
                  side[2 * p * K + j] == side[(2 * p + 1) * K + k];
        n_arc += tied[i];
    }
    if (ready && n_arc > 0) {
        s->arc = malloc((size_t)n_arc * sizeof(int32_t));
        ready = s->arc != NULL && fg_rows_begin(&s->part, 2 * (T - 1) * K, n_arc, 2 * n_arc);
        for (sk_size i = 0; ready && i < arcs; i++)
            if (tied[i]) {
                s->arc[s->part.n_column] = (int32_t)i;
                fg_rows_enter(&s->part, 2 * (i / (K * K)) * K + i / K % K, 1.0);
                fg_rows_enter(&s->part, (2 * (i / (K * K)) + 1) * K + i % K, 1.0);
                fg_rows_next(&s->part);
            }
    }
    free(ahead);
    free(tied);
    free(side);
    return ready;
}

#endif
