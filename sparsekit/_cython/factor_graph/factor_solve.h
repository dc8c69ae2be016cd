/* LP-SparseMAP: ADMM (Algorithm 1), then Newton's method on the dual.
 *
 * Let l = delta lambda (the sign of line 11), x the factors' answers to scores v, and mu the means of the copies. An
 * iteration is
 *     v = (eta + l + gamma mu) / (1 + gamma),   mu = mean x,   l += gamma (mu - x),
 * Only z = l - gamma x is stored. The dual of (10) is smooth. Its gradient at l is mu - x for the answers x to v = eta
 * + l (gamma = 0), and vanishes only at the solution. The answers are piecewise linear. Their local Jacobians J are
 * orthogonal projections in the inner product of fg_dot, so Newton's method ends exactly. */
#ifndef SPARSEKIT_FACTOR_SOLVE_H
#define SPARSEKIT_FACTOR_SOLVE_H

#include "factor_graph/factor_passes.h"

typedef fg_state fg_report;
static int fg_solve(const fg_plan *g, fg_state *t, const fg_options *o, double first);

#define FG_SOLVE(g, t, o, first, r) fg_solve(g, r, &o, first)

#include "graph_solve.h"

/* One iteration of Algorithm 1. `relaxation` combines the answers with the last mu (Boyd et al., 2011, 3.4.3). */
SK_MULTI(void, fg_gather,
         (const fg_plan *g, fg_state *t, double inv, double step),
         (g, t, inv, step)) {
    const int32_t *restrict var = g->var;
    double *restrict z = t->z, *restrict v = t->v;
    const double *restrict x = t->x, *restrict old = t->old, *restrict h = t->h;
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) {
        double next = z[s] + step * (old[var[s]] - x[s]);
        z[s] = next;
        v[s] = h[var[s]] + next * inv;
    }
}

static int fg_admm_step(const fg_plan *g, fg_state *t, const fg_options *o, double *primal, double *dual,
                        double enough) {
    const double gamma = t->gamma, inv = 1.0 / (o->quadratic + gamma), relax = o->relaxation;
    double moved = 0.0;
    int status;
    for (sk_size j = 0; j < g->n_var; j++) t->h[j] = (t->eta[j] + 2.0 * gamma * t->mu[j]) * inv;
    fg_gather(g, t, inv, gamma * relax);
    status = fg_answer(g, t, t->v, inv, o->inner_iter, t->x, 0);
    if (status && !fg_is_limit(status)) return status;
    memcpy(t->old, t->mu, (size_t)g->n_var * sizeof(double));
    fg_mean(g, t->x, t->mu);
    for (sk_size j = 0; j < g->n_var; j++) {
        double d = relax * (t->mu[j] - t->old[j]);
        moved += d * d;
    }
    *dual = sqrt(moved);
    /* an extra pass, not needed while mu still moves */
    *primal = *dual < enough ? fg_residual(g, t->mu, t->x) : INFINITY;
    for (sk_size j = 0; j < g->n_var; j++) t->mu[j] = relax * t->mu[j] + (1.0 - relax) * t->old[j];
    return status;
}

SK_MULTI(void, fg_dual_scores,
         (const fg_plan *g, fg_state *t, double step),
         (g, t, step)) {
    const int32_t *restrict var = g->var;
    const double *restrict eta = t->eta, *restrict l = t->l, *restrict d = t->s;
    double *restrict v = t->v;
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) v[s] = eta[var[s]] + l[s] + step * d[s];
}

/* answers, means and residual at l + step s; the dual's slope along s */
static int fg_dual_at(const fg_plan *g, fg_state *t, double step, double *slope) {
    int status;
    fg_dual_scores(g, t, step);
    t->n_iter++;
    status = fg_answer(g, t, t->v, 1.0, FG_MAX_ORACLE_CALLS, t->x, 1);
    if (status && !fg_is_limit(status)) return status;
    fg_mean(g, t->x, t->mu);
    t->residual = fg_residual(g, t->mu, t->x);
    *slope = fg_dot(g, t->s, t->x);
    return status;
}

#define FG_MULTIPLY_LESS(g, t, in, x, y) (fg_disagreement(g, in, x, t->v), fg_jacobian(g, t, t->v, y))
#define FG_DUAL_AT(g, t, r, step, slope) fg_dual_at(g, r, step, slope)
#define FG_ALL_SOLVED(g, t) fg_all_solved(g, t)

#include "graph_newton.h"

/* No factors share a variable: their answers are the solution. */
static int fg_solve_separate(const fg_plan *g, fg_state *t, const fg_options *o) {
    for (sk_size s = 0; s < g->n_slot; s++) t->v[s] = t->eta[g->var[s]];
    t->status = FG_MAX_ITER;
    while (t->status == FG_MAX_ITER && t->n_iter < o->max_iter) {
        int status;
        t->n_iter++;
        status = fg_answer(g, t, t->v, 1.0, o->exact ? FG_MAX_ORACLE_CALLS : o->inner_iter, t->x, 1);
        if (status) {
            t->status = status;
            if (fg_is_limit(status)) break;
            return status;
        }
        t->status = fg_all_solved(g, t) ? FG_CONVERGED : FG_MAX_ITER;
    }
    fg_mean(g, t->x, t->mu);
    t->dual = t->residual = 0.0;
    t->primal = t->status == FG_CONVERGED ? 0.0 : INFINITY; /* the residual is not known */
    if (t->status == FG_CONVERGED) fg_snap_to_bounds(g, t, t->residual);
    return t->status;
}

/* Ends without a solution: recomputes mu without relaxation, which leaves the box. The Jacobians are those of the last
 * pass. is_stale: v is not the iteration's. */
static int fg_end_early(const fg_plan *g, fg_state *t, const fg_options *o, int is_stale) {
    int status;
    fg_admm_end(g, t, t->gamma, o->relaxation);
    if (is_stale)
        for (sk_size s = 0; s < g->n_slot; s++) {
            const sk_size j = g->var[s];
            t->v[s] = (t->eta[j] + t->l[s] + t->gamma * t->mu[j]) / (o->quadratic + t->gamma);
        }
    status = fg_answer(g, t, t->v, 1.0 / (o->quadratic + t->gamma), o->inner_iter, t->x, 1);
    fg_mean(g, t->x, t->mu);
    t->primal = fg_residual(g, t->mu, t->x);
    return status && !fg_is_limit(status) ? (t->status = status) : t->status;
}

/* Whether the iteration is over; t->status says how. */
static int fg_has_ended(fg_state *t, const fg_options *o) {
    if (t->n_iter >= o->max_iter || t->n_flows >= o->max_flows) t->status = FG_MAX_ITER;
    else if (fg_late(t->watch)) t->status = FG_MAX_TIME;
    else return 0;
    return 1;
}

/* Newton's method from where the iteration is. Whether the solve is over: by a solution, or because it failed. */
static int fg_try_newton(const fg_plan *g, fg_state *t, const fg_options *o) {
    int status;
    fg_admm_end(g, t, t->gamma, o->relaxation);
    if (fg_newton(g, t, t, o->tol_primal, o->max_iter, &status)) {
        t->primal = t->residual;
        t->dual = 0.0;
        t->status = FG_CONVERGED;
        fg_snap_to_bounds(g, t, t->residual);
        return 1;
    }
    if (status) { /* the residual of answers that are not optimal is not known */
        t->primal = t->dual = INFINITY;
        t->status = status;
        return 1;
    }
    fg_admm_begin(g, t, t->gamma);
    return 0;
}

static int fg_solve(const fg_plan *g, fg_state *t, const fg_options *o, double first) {
    double primal, moved, enough = FG_NEWTON_RESIDUAL, longest, gamma;
    sk_size check = 50, adapt = FG_ADAPT_INTERVAL;
    int status, is_due, is_stale = 1;
    fg_start_solve(g, t, o, first, t);
    if (g->n_slot == 0) {
        t->primal = t->dual = t->residual = 0.0;
        return t->status = FG_CONVERGED;
    }
    if (o->quadratic && g->is_separate) return fg_solve_separate(g, t, o);
    longest = fmax(fmax(1e3 * o->step_size, first), 0.1 * fg_largest_score(g, t));
    t->gamma = fmin(t->gamma, longest); /* a warm start's scores may have been larger */
    fg_admm_begin(g, t, t->gamma);
    for (;;) {
        if (fg_has_ended(t, o)) break;
        is_due = t->n_iter + 1 >= check || t->n_iter + 1 >= adapt || t->n_iter + 1 >= o->max_iter || !o->exact;
        status = fg_admm_step(g, t, o, &primal, &moved, is_due ? INFINITY : enough);
        if (status && !fg_is_limit(status)) return t->status = status;
        t->n_iter++;
        t->n_flows += fg_has_flow(g, t);
        is_stale = 0;
        t->primal = primal;
        t->dual = t->gamma * moved;
        if (status) {
            t->status = status;
            break;
        }
        if (!o->exact) {
            if (primal <= o->tol_primal && moved <= o->tol_dual && fg_all_solved(g, t)) {
                t->status = FG_CONVERGED;
                break;
            }
        } else if (primal + moved < enough && t->n_iter < o->max_iter) {
            if (fg_try_newton(g, t, o)) return t->status;
            enough = 0.1 * (primal + moved);
            is_stale = 1;
            continue;
        }
        if (t->n_iter >= check) {
            check = 2 * t->n_iter;
            fg_mean(g, t->x, t->h);
            fg_disagreement(g, t->h, t->x, t->e); /* unused until the end */
            /* a direction as small as this is rounding */
            if (primal > 1e-7 && fg_is_infeasible(g, t, t->e)) return t->status = FG_INFEASIBLE;
        }
        if (o->adaptive && t->n_iter >= adapt) {
            adapt = t->n_iter + (t->n_iter < 40 ? FG_ADAPT_INTERVAL : t->n_iter / 4);
            gamma = fg_adapted_step(t->gamma, t->primal, t->dual, 1e-3 * o->step_size, longest);
            if (gamma == 0.0) continue;
            fg_admm_end(g, t, t->gamma, o->relaxation);
            t->gamma = gamma;
            fg_admm_begin(g, t, gamma);
        }
    }
    return fg_end_early(g, t, o, is_stale);
}

#endif
