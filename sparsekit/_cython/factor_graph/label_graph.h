/* Marginals of labels with pair scores, and perhaps factors over them, for one row of scores.
 *
 * Most labels of a row are decided before any iteration. A label is off if its score is <= 0 even with all positive
 * scores of its pairs. It is on if its score is >= 1 (>= 0 in LP-MAP) even with all negative ones. Each decision
 * settles its pairs. The open labels form a small graph. */
#ifndef SPARSEKIT_LABEL_GRAPH_H
#define SPARSEKIT_LABEL_GRAPH_H

#include "factor_graph/factor_map.h"

typedef struct {
    sk_size n_labels, n_pairs;
    const sk_size *start;         /* (n_labels + 1): pairs of a label are other, pair [start .. next) */
    const int32_t *other, *pair;
    const double *plus, *minus;   /* (n_pairs): score = plus - minus, both >= 0 */
    const double *gain, *loss;    /* (n_labels): sums of plus and of minus over a label's pairs */
    const int32_t *alone;         /* whether no factor holds a label */
    const int32_t *may_fall, *may_rise; /* whether no factor forbids a label to decrease, or to increase */
    const fg_plan *factors;       /* linear ones and OrOut over all labels, without pairs */
} fg_labels;

/* One row: the decided labels, and the graph of the open ones. */
typedef struct {
    double *score, *up, *down;  /* (n_labels): scores with settled pairs; most that open pairs add, subtract */
    int32_t *number, *queue;    /* (n_labels): index among the open labels, from 1 on, or the decision */
    double enough;              /* score from which a label is on */
    sk_size tail;               /* of the queue of labels that are decided */
    sk_size n, n_pair, n_slot;  /* of the graph */
} fg_label_row;

enum { FG_LABEL_OFF = -2, FG_LABEL_ON = -1, FG_LABEL_OPEN = 0 };

/* Queues a label once its open pairs cannot change its value. */
SK_INLINE void fg_decide(const fg_labels *g, fg_label_row *r, sk_size j) {
    if (g->may_fall[j] && r->score[j] + r->up[j] <= 0.0) r->number[j] = FG_LABEL_OFF;
    else if (g->may_rise[j] && r->score[j] - r->down[j] >= r->enough) r->number[j] = FG_LABEL_ON;
    else return;
    r->queue[r->tail++] = (int32_t)j;
}

/* Decides labels whose value does not depend on the open ones. */
static void fg_decide_labels(const fg_labels *g, fg_label_row *r) {
    for (sk_size j = 0; j < g->n_labels; j++) fg_decide(g, r, j);
    for (sk_size head = 0; head < r->tail; head++) {
        const sk_size j = r->queue[head];
        for (sk_size e = g->start[j]; e < g->start[j + 1]; e++) {
            const sk_size k = g->other[e], pair = g->pair[e];
            if (r->number[k] != FG_LABEL_OPEN) continue;
            r->up[k] -= g->plus[pair];
            r->down[k] -= g->minus[pair];
            if (r->number[j] == FG_LABEL_ON) r->score[k] += g->plus[pair] - g->minus[pair];
            fg_decide(g, r, k);
        }
    }
}

/* Writes mu of decided labels and of open ones without open neighbours; numbers the others and their slots. */
static void fg_number_labels(const fg_labels *g, fg_label_row *r, double *mu) {
    const fg_plan *all = g->factors;
    const sk_size K = g->n_labels;
    for (sk_size j = 0; j < K; j++) {
        int is_tied = !g->alone[j];
        mu[j] = r->number[j] == FG_LABEL_ON;
        if (r->number[j] != FG_LABEL_OPEN) continue;
        for (sk_size e = g->start[j]; e < g->start[j + 1] && !is_tied; e++)
            is_tied = r->number[g->other[e]] >= FG_LABEL_OPEN;
        if (is_tied) r->number[j] = (int32_t)++r->n;
        else {
            mu[j] = fg_clip(r->score[j]);
            r->number[j] = FG_LABEL_OFF; /* its value is in mu */
        }
    }
    for (sk_size j = 0; j < K; j++)
        for (sk_size e = g->start[j]; r->number[j] > 0 && e < g->start[j + 1]; e++)
            if (g->other[e] > j && r->number[g->other[e]] > 0)
                r->n_pair += (g->plus[g->pair[e]] > 0.0) + (g->minus[g->pair[e]] > 0.0);
    r->n_slot = 2 * r->n_pair;
    for (sk_size s = 0; s < all->n_slot; s++) r->n_slot += r->number[all->var[s]] > 0;
}

/* the graph's arrays, which its plan points to */
typedef struct {
    double *deg, *w, *a, *ad, *pair_score, *bound;
    int32_t *var, *var_slot, *negated, *pair_add, *relation;
    sk_size *var_start, *linear, *orout;
} fg_arrays;

static void fg_free_arrays(fg_arrays *t) {
    free(t->deg);
    free(t->var);
    free(t->var_start);
}

static int fg_make_arrays(const fg_labels *g, const fg_label_row *r, fg_arrays *t) {
    const sk_size ns = r->n_slot, np = r->n_pair, nl = g->factors->n_linear;
    t->deg = malloc((size_t)(4 * ns + np + nl + 1) * sizeof(double));
    t->var = malloc((size_t)(3 * ns + np + nl + 1) * sizeof(int32_t));
    t->var_start = malloc((size_t)(r->n + 1 + nl + g->factors->n_orout + 2) * sizeof(sk_size));
    if (t->deg == NULL || t->var == NULL || t->var_start == NULL) {
        fg_free_arrays(t);
        return 0;
    }
    t->w = t->deg + ns, t->a = t->w + ns, t->ad = t->a + ns, t->pair_score = t->ad + ns, t->bound = t->pair_score + np;
    t->var_slot = t->var + ns, t->negated = t->var_slot + ns, t->pair_add = t->negated + ns;
    t->relation = t->pair_add + np;
    t->linear = t->var_start + r->n + 1, t->orout = t->linear + nl + 1;
    return 1;
}

/* two pairs where a score is positive in part and negative in part */
static void fg_open_pairs(const fg_labels *g, const fg_label_row *r, fg_arrays *t) {
    sk_size i = 0;
    for (sk_size j = 0; j < g->n_labels; j++)
        for (sk_size e = g->start[j]; r->number[j] > 0 && e < g->start[j + 1]; e++) {
            const sk_size k = g->other[e], pair = g->pair[e];
            if (k < j || r->number[k] <= 0) continue;
            for (int sign = 0; sign < 2; sign++) {
                const double score = sign ? -g->minus[pair] : g->plus[pair];
                if (score == 0.0) continue;
                t->var[i] = r->number[j] - 1;
                t->var[r->n_pair + i] = r->number[k] - 1;
                t->pair_add[i] = (int32_t)i;
                t->pair_score[i++] = score;
            }
        }
}

/* Linear factors without their decided labels, and OrOut, whose labels stay open; returns the number of linear ones. */
static sk_size fg_open_factors(const fg_labels *g, const fg_label_row *r, fg_arrays *t) {
    const fg_plan *all = g->factors;
    sk_size s = 2 * r->n_pair, left = 0;
    for (sk_size f = 0; f < all->n_linear; f++) {
        const sk_size first = s;
        double b = all->bound[f];
        t->linear[left] = s;
        for (sk_size e = all->linear[f]; e < all->linear[f + 1]; e++) {
            const sk_size j = all->var[e];
            if (r->number[j] > 0) {
                t->var[s] = r->number[j] - 1;
                t->a[s++] = all->a[e];
            } else if (r->number[j] == FG_LABEL_ON)
                b -= all->a[e];
        }
        if (s == first) continue;
        t->relation[left] = all->relation[f];
        t->bound[left++] = b;
    }
    t->linear[left] = s;
    for (sk_size f = 0; f < all->n_orout; f++) {
        t->orout[f] = s;
        for (sk_size e = all->orout[f]; e < all->orout[f + 1]; e++) {
            t->var[s] = r->number[all->var[e]] - 1;
            t->negated[s] = all->negated[e];
            t->a[s++] = all->a[e];
        }
    }
    t->orout[all->n_orout] = s;
    return left;
}

/* slots by variable, and degrees */
static void fg_open_slots(const fg_label_row *r, fg_arrays *t) {
    const sk_size n = r->n, ns = r->n_slot;
    memset(t->var_start, 0, (size_t)(n + 1) * sizeof(sk_size));
    for (sk_size s = 0; s < ns; s++) t->var_start[t->var[s] + 1]++;
    for (sk_size j = 0; j < n; j++) t->var_start[j + 1] += t->var_start[j];
    for (sk_size s = 0; s < ns; s++) t->var_slot[t->var_start[t->var[s]]++] = (int32_t)s;
    for (sk_size j = n; j > 0; j--) t->var_start[j] = t->var_start[j - 1];
    t->var_start[0] = 0;
    for (sk_size s = 0; s < ns; s++) {
        t->deg[s] = (double)(t->var_start[t->var[s] + 1] - t->var_start[t->var[s]]);
        t->w[s] = 1.0 / t->deg[s];
        if (s >= 2 * r->n_pair) t->ad[s] = t->a[s] * t->deg[s];
    }
}

/* mu of the open labels */
static int fg_solve_open(const fg_labels *g, const fg_label_row *r, const fg_options *o, double *mu, sk_size *passes) {
    fg_arrays t;
    fg_plan plan;
    fg_state state;
    int status = FG_NO_MEMORY;
    if (!fg_make_arrays(g, r, &t)) return FG_NO_MEMORY;
    memset(&plan, 0, sizeof plan);
    fg_open_pairs(g, r, &t);
    memset(t.negated, 0, (size_t)(2 * r->n_pair) * sizeof(int32_t));
    plan.n_linear = fg_open_factors(g, r, &t);
    fg_open_slots(r, &t);
    plan.n_var = r->n, plan.n_slot = r->n_slot, plan.n_add = plan.n_pair = r->n_pair, plan.n_orout = g->factors->n_orout;
    plan.var = t.var, plan.var_start = t.var_start, plan.var_slot = t.var_slot;
    plan.deg = t.deg, plan.w = t.w, plan.a = t.a, plan.ad = t.ad;
    plan.pair_add = t.pair_add, plan.linear = t.linear, plan.relation = t.relation, plan.bound = t.bound;
    plan.orout = t.orout, plan.negated = t.negated;
    if (fg_allocate(&plan, &state)) {
        for (sk_size j = 0; j < g->n_labels; j++)
            if (r->number[j] > 0) state.eta[r->number[j] - 1] = r->score[j];
        memcpy(state.add, t.pair_score, (size_t)r->n_pair * sizeof(double));
        status = fg_run(&plan, &state, o);
        *passes = state.n_iter;
        for (sk_size j = 0; j < g->n_labels; j++)
            if (r->number[j] > 0) mu[j] = fg_clip(state.mu[r->number[j] - 1]);
    }
    fg_free(&plan, &state);
    fg_free_arrays(&t);
    return status;
}

/* Marginals mu (n_labels) for scores eta; buffer: 4 n_labels doubles, queue: 2 n_labels integers. */
static int fg_label_marginals(const fg_labels *g, const double *eta, const fg_options *o, double *mu, double *buffer,
                              int32_t *queue, sk_size *passes) {
    const sk_size K = g->n_labels;
    fg_label_row r = {buffer, buffer + K, buffer + 2 * K, queue + K, queue, o->quadratic ? 1.0 : 0.0, 0, 0, 0, 0};
    memcpy(r.score, eta, (size_t)K * sizeof(double));
    memcpy(r.up, g->gain, (size_t)K * sizeof(double));
    memcpy(r.down, g->loss, (size_t)K * sizeof(double));
    memset(r.number, 0, (size_t)K * sizeof(int32_t)); /* FG_LABEL_OPEN */
    fg_decide_labels(g, &r);
    fg_number_labels(g, &r, mu);
    *passes = 0;
    return r.n == 0 ? FG_CONVERGED : fg_solve_open(g, &r, o, mu, passes);
}

#endif
