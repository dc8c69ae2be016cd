/* Passes over all factors of a graph: answers, products with Jacobians, certificates of infeasibility; and the memory
 * of a state. */
#ifndef SPARSEKIT_FACTOR_PASSES_H
#define SPARSEKIT_FACTOR_PASSES_H

#include "factor_graph/factor_closed.h"
#include "factor_graph/factor_structured.h"

/* largest number of oracle calls for an exact local problem */
#define FG_MAX_ORACLE_CALLS 2000

/* Solves all factors for the scores v (n_slot) and inv times their additional ones, into x. Returns 0, an error, or a
 * limit's status, with feasible answers from all factors. */
static int fg_answer(const fg_plan *g, fg_state *t, double *v, double inv, sk_size rounds, double *x,
                     int jacobian) {
    const sk_size np = g->n_pair;
    int ended = 0;
    double *f = jacobian ? t->f : NULL, *e = jacobian ? t->e : NULL;
    if (fg_stopped(t->watch, 4 * g->n_slot)) return FG_INTERRUPTED;
    t->inv = inv;
    for (sk_size i = 0; i < g->n_flip; i++) v[g->flip[i]] = 1.0 - v[g->flip[i]];
    if (np) {
        fg_pairs(np, v, v + np, g->deg, g->deg + np, t->q, t->c, inv, x, x + np);
        if (jacobian)
            fg_pairs_jacobian(np, v, g->deg, t->q, t->c, inv, t->f, t->e, t->coef, t->n1);
    }
    for (sk_size i = 0; i < g->n_flip; i++) {
        sk_size s = g->flip[i];
        v[s] = 1.0 - v[s];
        x[s] = 1.0 - x[s];
        if (jacobian) {
            double *n = s < np ? t->n1 + s : t->n2 + (s - np);
            e[s] = -e[s];
            *n = -*n;
        }
    }
    for (sk_size i = 0; i < g->n_linear; i++) {
        sk_size s = g->linear[i];
        fg_linear(g->linear[i + 1] - s, v + s, g->a + s, g->ad + s, g->relation[i], g->bound[i], t->tau + i, x + s,
                  jacobian ? f + s : NULL, jacobian ? e + s : NULL, t->coef + np + i);
    }
    for (sk_size i = 0; i < g->n_orout; i++) {
        const sk_size s = g->orout[i], d = g->orout[i + 1] - s, k = g->n_linear + i;
        double *fs = jacobian ? f + s : NULL, *es = jacobian ? e + s : NULL, *coef = t->coef + np + k;
        if (fg_orout(d, v + s, g->w + s, g->negated + s, x + s, t->work, fs, es, coef))
            fg_linear(d, t->work, g->a + s, g->ad + s, FG_EQUAL, 0.0, t->tau + k, x + s, fs, es, coef);
        fg_turn_back(d, g->negated + s, x + s, es);
    }
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        fg_active *active = t->active + i;
        sk_size left = t->calls > active->calls ? t->calls - active->calls : 0;
        double *c = t->work;
        int status;
        for (sk_size k = 0; k < p->n_add; k++) c[k] = t->add[p->add + k] * inv;
        status = fg_structured_solve(p, active, v + p->slot, g->w + p->slot, c, rounds < left ? rounds : left,
                                     x + p->slot, t->work + p->n_add, t->watch);
        if (status) return status;
        if (!active->solved && (left < rounds || fg_late(t->watch))) ended = left < rounds ? FG_MAX_ITER : FG_MAX_TIME;
    }
    return ended;
}

/* Whether the last answer of some sequence is a flow. */
static int fg_has_flow(const fg_plan *g, const fg_state *t) {
    for (sk_size i = 0; i < g->n_struct; i++)
        if (g->spec[i].kind == FG_SEQUENCE && t->active[i].by_constraints) return 1;
    return 0;
}

/* Whether the last answer of every factor with an oracle is optimal. */
static int fg_all_solved(const fg_plan *g, const fg_state *t) {
    for (sk_size i = 0; i < g->n_struct; i++)
        if (!t->active[i].solved) return 0;
    return 1;
}

/* y = J u over the slots; y may not be u */
static void fg_jacobian(const fg_plan *g, const fg_state *t, const double *u, double *y) {
    const sk_size np = g->n_pair, closed = np + g->n_linear + g->n_orout;
    const double *f = t->f, *e = t->e, *w = g->w;
    if (np) fg_pairs_product(np, f, e, w, t->coef, u, y);
    for (sk_size i = np; i < closed; i++) {
        sk_size k = i - np;
        const sk_size *start = k < g->n_linear ? g->linear + k : g->orout + (k - g->n_linear);
        sk_size s = start[0];
        fg_factor_product(start[1] - s, f + s, e + s, w + s, t->coef[i], u + s, y + s);
    }
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        fg_structured_jvp(p, t->active + i, u + p->slot, w + p->slot, y + p->slot, t->work);
    }
}

/* The largest <rho_f, x_f> of all factors but pairs; infinite if an oracle failed. A score of -2 size forbids. */
static double fg_supports(const fg_plan *g, const fg_state *t, const double *rho, double size) {
    double total = 0.0, best;
    for (sk_size i = 0; i < g->n_linear; i++) {
        sk_size s = g->linear[i];
        total += fg_linear_support(g->linear[i + 1] - s, rho + s, g->a + s, g->relation[i], g->bound[i]);
    }
    for (sk_size i = 0; i < g->n_orout; i++) {
        sk_size s = g->orout[i];
        total += fg_orout_support(g->orout[i + 1] - s, rho + s, g->negated + s);
    }
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        double *c = t->work;
        for (sk_size k = 0; k < p->n_add; k++) c[k] = t->off_add[p->add + k] ? -2.0 * size : 0.0;
        if (fg_call_oracle(p, t->active + i, rho + p->slot, c, t->work + p->n_add, &best)) return INFINITY;
        total += best;
    }
    return total;
}

#define FG_SHARED static
#define FG_TEAM
#define FG_SAME_TEAM
#define FG_SHARE(j, n) for (sk_size j = 0; j < (n); j++)
#define FG_TEAM_SUM(x) (x)
#define FG_TEAM_SUMS(a, b)
#define FG_TEAM_MOST(x) (x)
#define FG_TEAM_WAIT
#define FG_TEAM_ENDS(g, t) (fg_stopped(t->watch, 8 * g->n_slot) || fg_late(t->watch))
#define FG_MULTIPLY(g, t, in, y) (fg_copies(g, in, t->s), fg_jacobian(g, t, t->s, y))
#define FG_MEAN(g, x, out) fg_mean(g, x, out)
#define FG_SUPPORTS(g, t, rho, size) fg_supports(g, t, rho, size)

#include "graph_passes.h"

/* Allocates one graph's state; whether there was memory. work: as large as the largest factor needs. */
static int fg_allocate(const fg_plan *g, fg_state *t) {
    const sk_size nv = g->n_var, ns = g->n_slot, np = g->n_pair, closed = np + g->n_linear + g->n_orout;
    sk_size work = 1, total;
    double *at;
    for (sk_size i = 0; i < g->n_orout; i++)
        work = g->orout[i + 1] - g->orout[i] > work ? g->orout[i + 1] - g->orout[i] : work;
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *f = g->spec + i;
        sk_size need = f->n_add + 3 * f->d + f->buffer_size;
        work = need > work ? need : work;
    }
    total = 12 * nv + 2 * g->n_add + 7 * ns + 4 * np + closed + g->n_linear + g->n_orout + work;
    memset(t, 0, sizeof *t);
    t->active = calloc((size_t)(g->n_struct + 1), sizeof(fg_active));
    t->off = calloc((size_t)(nv + g->n_add + 1), 1);
    if (t->off != NULL) t->off_add = t->off + nv;
    t->block = at = calloc((size_t)total, sizeof(double));
    if (at == NULL || t->active == NULL || t->off == NULL) return 0;
    t->eta = at, at += nv;
    t->add = at, at += g->n_add;
    t->eta0 = at, at += nv;
    t->h0 = at, at += nv;
    t->add0 = at, at += g->n_add;
    t->mu = at, at += nv;
    t->old = at, at += nv;
    t->h = at, at += nv;
    t->z = at, at += ns;
    t->l = at, at += ns;
    t->v = at, at += ns;
    t->x = at, at += ns;
    t->s = at, at += ns;
    t->f = at, at += ns;
    t->e = at, at += ns;
    t->c = at, at += np;
    t->q = at, at += np;
    t->n1 = at, at += np; /* n2 follows: fg_pairs_jacobian */
    t->n2 = at, at += np;
    t->coef = at, at += closed;
    t->tau = at, at += g->n_linear + g->n_orout;
    t->cg = at, at += 5 * nv;
    t->work = at;
    for (sk_size i = 0; i < np; i++) t->q[i] = 1.0 / (g->deg[i] + g->deg[np + i]);
    return 1;
}

static void fg_free(const fg_plan *g, fg_state *t) {
    if (t->active != NULL)
        for (sk_size i = 0; i < g->n_struct; i++) fg_release_structured(t->active + i);
    free(t->active);
    free(t->off);
    free(t->block);
}

#endif
