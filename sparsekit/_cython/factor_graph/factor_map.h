/* LP-MAP by proximal points or by one call of each oracle, and runs of many graphs by the threads of a call. */
#ifndef SPARSEKIT_FACTOR_MAP_H
#define SPARSEKIT_FACTOR_MAP_H

#include "factor_graph/factor_solve.h"

/* LP-MAP: largest residual of an answer at a small rho; above it rounding dominates */
#define FG_SPOILT_RESIDUAL 1e-7

/* LP-MAP by proximal points: each mu is the LP-SparseMAP solution for the scores eta / rho + the previous mu. A fixed
 * point solves the linear program. The number of steps is finite. rho decreases from step to step, to resolve small
 * scores next to large ones. Every step starts from the multipliers of the last one. */
typedef struct {
    double size, most, smallest; /* of the scores: their sum, the largest, the smallest that is not 0 */
    double rho, first;           /* weight of the quadratic term, and the one at the start */
    double least, exact;         /* rho that resolves the smallest score; below it answers are rounding, or 0 */
} fg_proximal;

static fg_proximal fg_proximal_begin(const fg_plan *g, const fg_state *t) {
    fg_proximal p = {0.0, 0.0, DBL_MAX, 1.0, 1.0, 0.0, 0.0};
    for (sk_size k = 0; k < g->n_var + g->n_add; k++) {
        const sk_size i = k - g->n_var;
        const double score = k < g->n_var ? (t->off[k] ? 0.0 : fabs(t->eta[k])) : (t->off_add[i] ? 0.0 : fabs(t->add[i]));
        p.size += score;
        p.most = score > p.most ? score : p.most;
        p.smallest = score > 0.0 && score < p.smallest ? score : p.smallest;
    }
    if (p.size > 0.0) p.rho = 0.2 * p.size / (double)(g->n_var + g->n_add);
    else p.smallest = 1.0; /* no scores to resolve, but forbidden variables still compare with rho */
    p.least = 0.5 * p.smallest > 1e-13 * p.most ? 0.5 * p.smallest : 1e-13 * p.most;
    p.rho = p.first = p.rho < p.least ? p.least : p.rho;
    return p;
}

/* scores of the proximal point from mu, in units of rho */
static void fg_proximal_scores(const fg_plan *g, fg_state *t, double rho) {
    memcpy(t->h0, t->mu, (size_t)g->n_var * sizeof(double));
    for (sk_size j = 0; j < g->n_var; j++) {
        t->eta[j] = t->eta0[j] / rho + t->mu[j];
        /* in no factor: on or off at once */
        if (g->var_start[j] == g->var_start[j + 1]) t->eta[j] = t->h0[j] = t->eta0[j] > 0.0;
    }
    for (sk_size k = 0; k < g->n_add; k++) t->add[k] = t->add0[k] / rho;
}

/* Rescales the multipliers, which are in units of rho. */
static void fg_proximal_rescale(const fg_plan *g, fg_state *t, fg_proximal *p, double rho) {
    for (sk_size s = 0; s < g->n_slot; s++) t->l[s] *= p->rho / rho;
    for (sk_size i = 0; i < g->n_linear + g->n_orout; i++) t->tau[i] *= p->rho / rho;
    p->rho = rho;
}

static int fg_map(const fg_plan *g, fg_state *t, const fg_options *given) {
    fg_options o = *given;
    fg_proximal p = fg_proximal_begin(g, t);
    sk_size passes = 0, newton = 0;
    int status;
    o.quadratic = 1;
    t->gamma = o.step_size; /* the last solve's scores may have been large; here they are in units of rho */
    memcpy(t->eta0, t->eta, (size_t)g->n_var * sizeof(double));
    memcpy(t->add0, t->add, (size_t)g->n_add * sizeof(double));
    if (!t->warm) memset(t->mu, 0, (size_t)g->n_var * sizeof(double));
    for (;;) {
        double moved = 0.0, next = 0.25 * p.rho, worth = 0.0;
        fg_proximal_scores(g, t, p.rho);
        o.max_iter = given->max_iter - passes;
        /* scores that are large relative to rho leave fewer digits for the marginals */
        o.tol_primal = given->tol_primal * (1e-3 * p.most / p.rho > 1.0 ? 1e-3 * p.most / p.rho : 1.0);
        if (o.tol_primal > FG_SPOILT_RESIDUAL && given->tol_primal < FG_SPOILT_RESIDUAL) o.tol_primal = FG_SPOILT_RESIDUAL;
        status = fg_solve(g, t, &o, o.step_size);
        passes += t->n_iter;
        newton += t->n_newton;
        if (status || p.size == 0.0) break; /* if all scores are 0, every mu is optimal */
        if (t->residual > fmax(o.tol_primal, FG_SPOILT_RESIDUAL) && p.rho < p.first && passes < given->max_iter) {
            /* rounding dominates at so small a rho: go back to the last mu and a larger rho */
            memcpy(t->mu, t->h0, (size_t)g->n_var * sizeof(double));
            p.exact = fmin(4.0 * p.rho, p.first);
            p.least = fmax(p.least, p.exact);
            fg_proximal_rescale(g, t, &p, p.exact);
            continue;
        }
        for (sk_size j = 0; j < g->n_var; j++) {
            double d = t->mu[j] - t->h0[j];
            moved += d * d;
            if (!t->off[j]) worth += fabs(t->eta0[j] * t->mu[j]);
        }
        t->dual = sqrt(moved);
        /* mu is optimal for scores that differ by rho * step, which bounds its error in value over the box */
        if (p.rho * t->dual * sqrt((double)g->n_var) <= 1e-9 * worth) break;
        /* a step is at least as large as its own error */
        if (t->dual <= given->tol_dual + 30.0 * o.tol_primal) {
            if (p.rho <= p.least) break;
            next = p.least; /* a fixed point for the smallest score too is final */
        }
        if (passes >= given->max_iter) {
            status = FG_MAX_ITER;
            break;
        }
        t->warm = 1;
        next = next < p.exact ? p.exact : next;
        /* near ties of scores need a small rho */
        if (next < 1e-10 * (worth > p.smallest ? worth : p.smallest)) next = p.rho;
        if (next < p.rho) fg_proximal_rescale(g, t, &p, next);
    }
    t->n_iter = passes;
    t->n_newton = newton;
    memcpy(t->eta, t->eta0, (size_t)g->n_var * sizeof(double));
    memcpy(t->add, t->add0, (size_t)g->n_add * sizeof(double));
    return t->status = status;
}

/* LP-MAP of factors with an oracle that share no variable: the best structure of each. */
static int fg_map_separate(const fg_plan *g, fg_state *t) {
    t->n_iter = 1;
    t->n_newton = 0;
    if (!t->warm) memset(t->l, 0, (size_t)g->n_slot * sizeof(double));
    for (sk_size j = 0; j < g->n_var; j++) t->mu[j] = t->eta[j] > 0.0;
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *f = g->spec + i;
        fg_active *active = t->active + i;
        double *u = t->v + f->slot, *x = t->x + f->slot, *zeros = t->work + f->d, best;
        int status;
        if (fg_stopped(t->watch, f->d * (f->rows + f->columns))) return t->status = FG_INTERRUPTED;
        for (sk_size k = 0; k < f->d; k++) u[k] = t->eta[g->var[f->slot + k]];
        active->m = active->by_constraints = active->refused = 0;
        active->shift = 0.0;
        if ((status = fg_call_oracle(f, active, u, t->add + f->add, t->work + 2 * f->d, &best))) return t->status = status;
        memset(zeros, 0, (size_t)f->d * sizeof(double));
        fg_factor_row(f, active, g->w + f->slot, zeros);
        active->p[0] = 1.0;
        active->m = active->solved = 1;
        memset(x, 0, (size_t)f->d * sizeof(double));
        fg_add_parts(f, active, 0, 1.0, x, NULL);
    }
    fg_mean(g, t->x, t->mu);
    t->primal = t->dual = t->residual = 0.0;
    return t->status = FG_CONVERGED;
}

static int fg_run(const fg_plan *g, fg_state *t, const fg_options *o) {
    t->calls = o->max_iter < PTRDIFF_MAX / o->inner_iter ? o->max_iter * o->inner_iter : PTRDIFF_MAX;
    /* added by derivatives of the last solution */
    t->whole = 0;
    for (sk_size i = 0; i < g->n_struct; i++) {
        t->active[i].calls = 0;
        t->active[i].m -= t->active[i].extra;
        t->active[i].extra = 0;
        fg_span_release(t->active[i].span);
        t->active[i].span = NULL;
    }
    if (!o->exact) return fg_solve(g, t, o, o->step_size);
    if (!o->quadratic) {
        const int is_closed = g->n_pair + g->n_linear + g->n_orout > 0;
        return g->is_separate && !is_closed ? fg_map_separate(g, t) : fg_map(g, t, o);
    }
    /* the distance to the multipliers grows with the scores */
    return fg_solve(g, t, o, o->step_size * (o->adaptive ? fmin(FG_MAX_FIRST_FACTOR, fmax(1.0, fg_strength(g, t))) : 1.0));
}

/* One thread's share of the `total` graphs of a call. The calling thread checks for signals until the others are done. */
static void fg_work(const fg_plan **g, fg_state **t, const fg_options *o, sk_size total, fg_call *call, int is_caller) {
    fg_watch watch = {call, is_caller, 0, 0.0, 0};
    sk_size i;
    while ((i = atomic_fetch_add_explicit(&call->next, 1, memory_order_relaxed)) < total) {
        t[i]->watch = &watch;
        /* a failed oracle ends all graphs: the call raises its error */
        if (fg_run(g[i], t[i], o) == FG_ORACLE_FAILED) fg_stop(call);
        t[i]->watch = NULL;
        atomic_fetch_add_explicit(&call->done, 1, memory_order_relaxed);
    }
    if (!is_caller) return;
    watch.due = fg_seconds() + FG_POLL_SECONDS;
    for (sk_size turn = 0; atomic_load_explicit(&call->done, memory_order_relaxed) < total && !fg_is_stopped(call); turn++) {
        if (turn % 64 == 0) fg_poll(&watch);
        if (turn > 10000) fg_pause(); /* do not sleep during the first moments */
    }
}

#endif
