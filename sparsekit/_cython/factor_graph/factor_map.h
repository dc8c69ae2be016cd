/* LP-MAP by one call of each oracle, and runs of many graphs by the threads of a call. */
#ifndef SPARSEKIT_FACTOR_MAP_H
#define SPARSEKIT_FACTOR_MAP_H

#include "factor_graph/factor_solve.h"

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
    t->n_flows = 0;
    for (sk_size i = 0; i < g->n_struct; i++) {
        t->active[i].calls = 0;
        t->active[i].m -= t->active[i].extra;
        t->active[i].extra = 0;
        fg_span_release(t->active[i].span);
        t->active[i].span = NULL;
    }
    if (o->exact && !o->quadratic && g->is_separate && g->n_pair + g->n_linear + g->n_orout == 0)
        return fg_map_separate(g, t);
    return fg_solve_any(g, t, o, t);
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
