/* Derivatives of the marginals: the limit of Algorithm 2, by conjugate gradients; and marginals of the additional
 * scores. */
#ifndef SPARSEKIT_FACTOR_BACKWARD_H
#define SPARSEKIT_FACTOR_BACKWARD_H

#include "factor_graph/factor_face.h"

/* gradients of <d, mu>: to_eta (n_var) starts as d, to_add (n_add). Whether it failed, as fg_answer says it. */
static int fg_vjp(const fg_plan *g, fg_state *t, double *to_eta, double *to_add) {
    int status = fg_complete_all(g, t);
    if (status) return status;
    fg_project_direction(g, t, to_eta);
    fg_vjp_pairs(g, t, to_eta, to_add);
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        if (p->n_add == 0) continue;
        for (sk_size k = 0; k < p->d; k++) t->s[k] = to_eta[g->var[p->slot + k]];
        fg_active_vjp(p, t->active + i, t->s, g->w + p->slot, to_add + p->add, t->work);
    }
    return fg_stopped(t->watch, 0) ? FG_INTERRUPTED : 0;
}

/* mu moves by out (n_var) as the scores move by d_eta (n_var) and d_add (n_add) */
static int fg_jvp(const fg_plan *g, fg_state *t, const double *d_eta, const double *d_add, double *out) {
    const sk_size np = g->n_pair;
    int status = fg_complete_all(g, t);
    if (status) return status;
    memset(t->z, 0, (size_t)g->n_slot * sizeof(double));
    for (sk_size i = 0; i < np; i++) {
        double c = d_add[g->pair_add[i]];
        t->z[i] = t->n1[i] * c;
        t->z[np + i] = t->n2[i] * c;
    }
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        if (p->n_add)
            fg_active_jvp(p, t->active + i, NULL, g->w + p->slot, d_add + p->add, t->z + p->slot, t->work);
    }
    memset(out, 0, (size_t)g->n_var * sizeof(double));
    fg_mean(g, t->z, out);
    for (sk_size j = 0; j < g->n_var; j++) out[j] += d_eta[j];
    fg_project_direction(g, t, out);
    return fg_stopped(t->watch, 0) ? FG_INTERRUPTED : 0;
}

/* One of the two for a thread of a call: fg_vjp where there is no d_eta, else fg_jvp. */
static int fg_differentiate(const fg_plan *g, fg_state *t, const double *d_eta, const double *d_add, double *to,
                            double *to_add, fg_call *call, int is_caller) {
    fg_watch watch = {call, is_caller, 0, 0.0, 0};
    int status;
    t->watch = &watch;
    status = d_eta == NULL ? fg_vjp(g, t, to, to_add) : fg_jvp(g, t, d_eta, d_add, to);
    t->watch = NULL;
    if (status) fg_stop(call);
    return status;
}

/* N p of all factors (n_add) */
static void fg_additionals(const fg_plan *g, fg_state *t, double *out) {
    for (sk_size s = 0; s < 2 * g->n_pair; s++) t->z[s] = t->mu[g->var[s]];
    for (sk_size i = 0; i < g->n_flip; i++) t->z[g->flip[i]] = 1.0 - t->z[g->flip[i]];
    for (sk_size i = 0; i < g->n_pair; i++) out[g->pair_add[i]] = sk_pair_both(t->z[i], t->z[g->n_pair + i], t->c[i]);
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        if (t->active[i].by_constraints && p->n_add) {
            memcpy(out + p->add, t->active[i].flow->E, (size_t)p->n_add * sizeof(double));
            continue;
        }
        for (sk_size k = 0; k < p->n_add; k++) out[p->add + k] = 0.0;
        for (sk_size k = 0; k < t->active[i].m; k++) fg_add_parts(p, t->active + i, k, t->active[i].p[k], NULL, out + p->add);
    }
}

#endif
