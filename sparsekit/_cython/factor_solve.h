/* Forward: ADMM (Algorithm 1), then Newton's method on the dual; LP-MAP by proximal points.
 *
 * With l = delta lambda (the sign of line 11), x the factors' answers to scores v and mu the means of the copies,
 * an iteration is
 *     v = (eta + l + gamma mu) / (1 + gamma),   mu = mean x,   l += gamma (mu - x),
 * and in between only z = l - gamma x is kept. The dual of (10) is smooth: its gradient at l is mu - x for the
 * answers x to v = eta + l (gamma = 0), and vanishes only at the solution. The answers are piecewise linear with the
 * local Jacobians J, orthogonal projections in the inner product of fg_dot, so Newton's method ends exactly. */
#ifndef SPARSEKIT_FACTOR_SOLVE_H
#define SPARSEKIT_FACTOR_SOLVE_H

#include "factor_passes.h"

/* residual at which Newton's method is tried; iterations between changes of the step size, and the largest change */
#ifndef FG_NEAR
#define FG_NEAR 0.05
#define FG_ADAPT 5
#define FG_MOST 4.0
/* times so much the first step is longer at most: longer ones cost digits */
#define FG_STRONG 1e5
#endif

/* One iteration of Algorithm 1. `relaxation` mixes the answers with the last mu (Boyd et al., 2011, 3.4.3). */
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
    /* another pass, which mu that still moves makes superfluous */
    *primal = *dual < enough ? fg_residual(g, t->mu, t->x) : INFINITY;
    for (sk_size j = 0; j < g->n_var; j++) t->mu[j] = relax * t->mu[j] + (1.0 - relax) * t->old[j];
    return status;
}

/* mu and l become what the iteration starts from */
static void fg_admm_begin(const fg_plan *g, fg_state *t) {
    memcpy(t->old, t->mu, (size_t)g->n_var * sizeof(double));
    for (sk_size s = 0; s < g->n_slot; s++) {
        t->x[s] = t->mu[g->var[s]];
        t->z[s] = t->l[s] - t->gamma * t->x[s];
    }
}

static void fg_admm_end(const fg_plan *g, fg_state *t, double relax) {
    for (sk_size s = 0; s < g->n_slot; s++) {
        sk_size j = g->var[s];
        t->l[s] = t->z[s] + t->gamma * (relax * (t->old[j] - t->x[s]) + t->mu[j]);
    }
}

SK_MULTI(void, fg_dual_scores,
         (const fg_plan *g, fg_state *t, double step),
         (g, t, step)) {
    const int32_t *restrict var = g->var;
    const double *restrict eta = t->eta, *restrict l = t->l, *restrict d = t->s;
    double *restrict v = t->v;
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) v[s] = eta[var[s]] + l[s] + step * d[s];
}

/* s = (r - nu - J (r - nu)) / eps + J (r - nu) / (1 + eps), of r in v and J r in z, less its means */
SK_MULTI(void, fg_newton_step,
         (const fg_plan *g, const double *restrict v, const double *restrict z, double eps,
          double *restrict mean, double *restrict d),
         (g, v, z, eps, mean, d)) {
    const int32_t *restrict var = g->var;
    const double inner = 1.0 / eps, along = 1.0 / (1.0 + eps);
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) d[s] = (v[s] - z[s]) * inner + z[s] * along;
    fg_mean(g, d, mean);
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) d[s] -= mean[var[s]];
}

/* answers, means and residual at l + step s; the dual's slope along s */
static int fg_dual_at(const fg_plan *g, fg_state *t, double step, double *slope) {
    int status;
    fg_dual_scores(g, t, step);
    t->n_iter++;
    status = fg_answer(g, t, t->v, 1.0, FG_ROUNDS, t->x, 1);
    if (status && !fg_is_limit(status)) return status;
    fg_mean(g, t->x, t->mu);
    t->residual = fg_residual(g, t->mu, t->x);
    *slope = fg_dot(g, t->s, t->x);
    return status;
}

/* Newton's method on the dual from l, until the residual is `tol`. (P J P + eps) s = mu - x on what has mean 0, P
 * taking off means: with nu from the n_var equations ((1 + eps) I - B) nu = -mean J r, s = (J + eps)^-1 (r - nu),
 * where (J + eps)^-1 = (I - J) / eps + J / (1 + eps) as J is a projection. Where J is 0 answers are at their bounds,
 * and a small eps moves l far enough to free them. Returns whether it converged; l is then the solution's, else the
 * best that was met. */
static int fg_newton(const fg_plan *g, fg_state *t, double tol, sk_size most, int *status) {
    const sk_size n = g->n_slot;
    double slope, *nu = t->cg + 3 * g->n_var, *right = nu + g->n_var, last;
    double size = 1.0;
    int slow = 0;
    for (sk_size s = 0; s < n; s++) {
        double eta = fabs(t->eta[g->var[s]]), l = fabs(t->l[s]);
        if (!(t->x[s] > 0.0 && t->x[s] < 1.0)) continue;
        size = eta > size ? eta : size;
        size = l > size ? l : size;
    }
    /* rounding of what answers are made of */
    size *= 64.0 * DBL_EPSILON * sqrt((double)n);
    tol = tol > size ? tol : size;
    memset(t->s, 0, (size_t)n * sizeof(double));
    if ((*status = fg_dual_at(g, t, 0.0, &slope))) return 0;
    for (sk_size it = 0; it < 50 && t->n_iter < most; it++) {
        double eps, start, step = 1.0, lo = 0.0, hi = 0.0, at_lo, at_hi = 0.0;
        int found = 0;
        if (t->residual <= tol) return 1;
        if (fg_late(t->watch)) return 0;
        last = t->residual;
        eps = last > 1e-2 ? 1e-2 : (last < 1e-4 ? 1e-4 : last);
        fg_disagreement(g, t->mu, t->x, t->v);
        fg_jacobian(g, t, t->v, t->z);
        memset(right, 0, (size_t)g->n_var * sizeof(double));
        fg_mean(g, t->z, right);
        for (sk_size j = 0; j < g->n_var; j++) right[j] = -right[j];
        fg_cg(g, t, eps, right, 1e-2 * eps * last, nu, t->z, t->s);
        for (sk_size j = 0; j < g->n_var; j++) right[j] = t->mu[j] - nu[j];
        fg_disagreement(g, right, t->x, t->v);
        fg_jacobian(g, t, t->v, t->z);
        fg_newton_step(g, t->v, t->z, eps, right, t->s);
        fg_disagreement(g, t->mu, t->x, t->v);
        start = at_lo = -fg_dot(g, t->s, t->v);
        t->n_newton++;
        if (!(start < 0.0)) return 0;
        /* the slope rises along the way and is 0 at the best step: secants in a bracket */
        for (int trial = 0; trial < 12; trial++) {
            double next;
            if (t->n_iter >= most) return 0;
            if ((*status = fg_dual_at(g, t, step, &slope))) return 0;
            if (fabs(slope) <= -0.9 * start || t->residual <= tol) {
                found = 1;
                break;
            }
            if (slope > 0.0) hi = step, at_hi = slope;
            else lo = step, at_lo = slope;
            if (hi == 0.0) step *= 4.0;
            else {
                next = lo - at_lo * (hi - lo) / (at_hi - at_lo);
                step = next > lo + 0.05 * (hi - lo) ? next : lo + 0.05 * (hi - lo);
                step = step < hi - 0.05 * (hi - lo) ? step : hi - 0.05 * (hi - lo);
            }
        }
        if (!found) {
            if (t->n_iter >= most) return 0;
            if ((*status = fg_dual_at(g, t, 0.0, &slope))) return 0;
            return t->residual <= tol;
        }
        for (sk_size s = 0; s < n; s++) t->l[s] += step * t->s[s];
        slow = t->residual > 0.5 * last ? slow + 1 : 0;
        if (slow == 4) return 0;
    }
    return t->residual <= tol;
}

/* first: gamma where nothing is known */
static int fg_solve(const fg_plan *g, fg_state *t, const fg_options *o, double first) {
    double primal = 1.0, moved = 1.0, enough = FG_NEAR, gamma_next, longest;
    sk_size check = 50, adapt = FG_ADAPT, flows = 0, before = 0;
    int status = 0, due, stale = 1; /* stale: v is not the iteration's */
    for (sk_size i = 0; i < g->n_pair; i++) {
        t->c[i] = t->add[g->pair_add[i]];
        t->q[i] = 1.0 / (g->deg[i] + g->deg[g->n_pair + i]);
    }
    t->n_iter = t->n_newton = 0;
    t->residual = INFINITY;
    if (!t->warm || !o->adaptive || t->status != FG_CONVERGED) t->gamma = t->warm ? o->step_size : first;
    if (!t->warm) {
        memset(t->l, 0, (size_t)g->n_slot * sizeof(double));
        memset(t->tau, 0, (size_t)(g->n_linear + g->n_orout) * sizeof(double));
        for (sk_size j = 0; j < g->n_var; j++) t->mu[j] = fg_clip(t->eta[j]);
    }
    for (sk_size j = 0; j < g->n_var; j++)
        if (g->var_start[j] == g->var_start[j + 1])
            t->mu[j] = t->old[j] = o->quadratic ? fg_clip(t->eta[j]) : t->eta[j] > 0.0;
    if (g->n_slot == 0) {
        t->primal = t->dual = t->residual = 0.0;
        return t->status = FG_CONVERGED;
    }
    if (o->quadratic && g->is_separate) { /* no factors share a variable: their answers are the solution */
        for (sk_size s = 0; s < g->n_slot; s++) t->v[s] = t->eta[g->var[s]];
        t->status = FG_MAX_ITER;
        while (t->status == FG_MAX_ITER && t->n_iter < o->max_iter) {
            t->n_iter++;
            status = fg_answer(g, t, t->v, 1.0, o->exact ? FG_ROUNDS : o->inner_iter, t->x, 1);
            if (status) {
                t->status = status;
                if (fg_is_limit(status)) break;
                return status;
            }
            t->status = FG_CONVERGED;
            for (sk_size i = 0; i < g->n_struct; i++)
                if (!t->active[i].solved) t->status = FG_MAX_ITER;
        }
        fg_mean(g, t->x, t->mu);
        t->dual = t->residual = 0.0;
        t->primal = t->status == FG_CONVERGED ? 0.0 : INFINITY; /* how much is missing is not known */
        if (t->status == FG_CONVERGED) fg_snap(g, t);
        return t->status;
    }
    longest = fmax(fmax(1e3 * o->step_size, first), 0.1 * fg_largest_score(g, t));
    t->gamma = fmin(t->gamma, longest); /* a warm start's may be that of larger scores */
    fg_admm_begin(g, t);
    for (;;) {
        if (fg_has_flow(g, t)) flows += t->n_iter - before;
        before = t->n_iter;
        if (t->n_iter >= o->max_iter || flows >= o->max_flows) {
            t->status = FG_MAX_ITER;
            break;
        }
        if (fg_late(t->watch)) {
            t->status = FG_MAX_TIME;
            break;
        }
        due = t->n_iter + 1 >= check || t->n_iter + 1 >= adapt || t->n_iter + 1 >= o->max_iter || !o->exact;
        status = fg_admm_step(g, t, o, &primal, &moved, due ? INFINITY : enough);
        if (status && !fg_is_limit(status)) return t->status = status;
        t->n_iter++;
        stale = 0;
        t->primal = primal;
        t->dual = t->gamma * moved;
        if (status) {
            t->status = status;
            break;
        }
        if (!o->exact) {
            if (primal <= o->tol_primal && moved <= o->tol_dual) {
                t->status = FG_CONVERGED;
                break;
            }
        } else if (primal + moved < enough && t->n_iter < o->max_iter) {
            fg_admm_end(g, t, o->relaxation);
            if (fg_newton(g, t, o->tol_primal, o->max_iter, &status)) {
                t->primal = t->residual;
                t->dual = 0.0;
                fg_snap(g, t);
                return t->status = FG_CONVERGED;
            }
            if (status) { /* answers that are not the best ones disagree by no known amount */
                t->primal = t->dual = INFINITY;
                return t->status = status;
            }
            enough = 0.1 * (primal + moved);
            fg_admm_begin(g, t);
            stale = 1;
            continue;
        }
        if (t->n_iter >= check) {
            check = 2 * t->n_iter;
            fg_mean(g, t->x, t->h);
            fg_disagreement(g, t->h, t->x, t->e); /* which holds nothing until the end */
            /* a direction as small as this is rounding */
            if (primal > 1e-7 && fg_is_infeasible(g, t, t->e)) return t->status = FG_INFEASIBLE;
        }
        if (o->adaptive && t->n_iter >= adapt) {
            adapt = t->n_iter + (t->n_iter < 40 ? FG_ADAPT : t->n_iter / 4);
            gamma_next = sqrt(primal / (t->dual + 1e-300));
            if (gamma_next > 1.5 || gamma_next < 0.67) {
                gamma_next = gamma_next > FG_MOST ? FG_MOST : (gamma_next < 1.0 / FG_MOST ? 1.0 / FG_MOST : gamma_next);
                gamma_next *= t->gamma;
                /* where there is no solution the disagreement never ends, and no step is large enough */
                if (gamma_next > longest) gamma_next = longest;
                if (gamma_next < 1e-3 * o->step_size) gamma_next = 1e-3 * o->step_size;
                fg_admm_end(g, t, o->relaxation);
                t->gamma = gamma_next;
                fg_admm_begin(g, t);
            }
        }
    }
    /* the answers' Jacobians, where the last iteration left them */
    fg_admm_end(g, t, o->relaxation);
    if (stale)
        for (sk_size s = 0; s < g->n_slot; s++) {
            sk_size j = g->var[s];
            t->v[s] = (t->eta[j] + t->l[s] + t->gamma * t->mu[j]) / (o->quadratic + t->gamma);
        }
    status = fg_answer(g, t, t->v, 1.0 / (o->quadratic + t->gamma), o->inner_iter, t->x, 1);
    fg_mean(g, t->x, t->mu); /* without relaxation, which leaves the box */
    t->primal = fg_residual(g, t->mu, t->x);
    return status && !fg_is_limit(status) ? (t->status = status) : t->status;
}

/* LP-MAP by proximal points: each mu is the LP-SparseMAP solution for the scores eta / rho + the mu before, and once mu
 * stays it solves the linear program. The number of steps is finite; rho falls from step to step, so that small scores
 * beside large ones have their turn. Every step starts from the multipliers of the last one. */
static int fg_map(const fg_plan *g, fg_state *t, const fg_options *given) {
    fg_options o = *given;
    double size = 0.0, most = 0.0, smallest = DBL_MAX, rho, least;
    sk_size passes = 0, newton = 0, n = 0;
    int status;
    o.quadratic = 1;
    for (sk_size j = 0; j < g->n_var; j++) {
        double score = t->off[j] ? 0.0 : fabs(t->eta[j]);
        size += score;
        most = score > most ? score : most;
        smallest = score > 0.0 && score < smallest ? score : smallest;
    }
    for (sk_size k = 0; k < g->n_add; k++) {
        double score = t->off_add[k] ? 0.0 : fabs(t->add[k]);
        size += score;
        most = score > most ? score : most;
        smallest = score > 0.0 && score < smallest ? score : smallest;
    }
    n = g->n_var + g->n_add;
    rho = size > 0.0 ? 0.2 * size / (double)n : 1.0;
    if (size == 0.0) smallest = 1.0; /* nothing to tell apart, but what is forbidden still weighs against rho */
    least = 0.5 * smallest > 1e-13 * most ? 0.5 * smallest : 1e-13 * most;
    rho = rho < least ? least : rho;
    t->gamma = o.step_size; /* the last solve's may be that of strong scores: here they are in units of rho */
    memcpy(t->eta0, t->eta, (size_t)g->n_var * sizeof(double));
    memcpy(t->add0, t->add, (size_t)g->n_add * sizeof(double));
    if (!t->warm) memset(t->mu, 0, (size_t)g->n_var * sizeof(double));
    for (;;) {
        double moved = 0.0, next = 0.25 * rho, worth = 0.0;
        memcpy(t->h0, t->mu, (size_t)g->n_var * sizeof(double));
        for (sk_size j = 0; j < g->n_var; j++) {
            t->eta[j] = t->eta0[j] / rho + t->mu[j];
            /* alone: on or off at once */
            if (g->var_start[j] == g->var_start[j + 1]) t->eta[j] = t->h0[j] = t->eta0[j] > 0.0;
        }
        for (sk_size k = 0; k < g->n_add; k++)
            t->add[k] = t->add0[k] / rho;
        o.max_iter = given->max_iter - passes;
        /* scores that are large beside rho leave fewer digits for the marginals */
        o.tol_primal = given->tol_primal * (1e-3 * most / rho > 1.0 ? 1e-3 * most / rho : 1.0);
        if (o.tol_primal > 1e-7 && given->tol_primal < 1e-7) o.tol_primal = 1e-7;
        status = fg_solve(g, t, &o, o.step_size);
        passes += t->n_iter;
        newton += t->n_newton;
        if (status || size == 0.0) break; /* of scores that are all 0 every mu is best */
        for (sk_size j = 0; j < g->n_var; j++) {
            double d = t->mu[j] - t->h0[j];
            moved += d * d;
            if (!t->off[j]) worth += fabs(t->eta0[j] * t->mu[j]);
        }
        t->dual = sqrt(moved);
        /* mu is best for scores that differ by rho times the step: it lacks no more than that over the box */
        if (rho * t->dual * sqrt((double)g->n_var) <= 1e-9 * worth) break;
        /* a step moves no less than its own error */
        if (t->dual <= given->tol_dual + 30.0 * o.tol_primal) {
            if (rho <= least) break;
            next = least; /* where it stays for the smallest score as well, it stays for good */
        }
        if (passes >= given->max_iter) {
            status = FG_MAX_ITER;
            break;
        }
        t->warm = 1;
        /* near ties of scores take a rho as near to 0 */
        if (next < 1e-10 * (worth > smallest ? worth : smallest)) next = rho;
        if (next < rho) { /* multipliers are in units of rho */
            for (sk_size s = 0; s < g->n_slot; s++) t->l[s] *= rho / next;
            for (sk_size i = 0; i < g->n_linear + g->n_orout; i++) t->tau[i] *= rho / next;
            rho = next;
        }
    }
    t->n_iter = passes;
    t->n_newton = newton;
    memcpy(t->eta, t->eta0, (size_t)g->n_var * sizeof(double));
    memcpy(t->add, t->add0, (size_t)g->n_add * sizeof(double));
    return t->status = status;
}

static int fg_run(const fg_plan *g, fg_state *t, const fg_options *o) {
    t->calls = o->max_iter < PTRDIFF_MAX / o->inner_iter ? o->max_iter * o->inner_iter : PTRDIFF_MAX;
    /* what derivatives have added to the last solution */
    t->whole = 0;
    for (sk_size i = 0; i < g->n_struct; i++) {
        t->active[i].calls = 0;
        t->active[i].m -= t->active[i].extra;
        t->active[i].extra = 0;
        fg_span_release(t->active[i].span);
        t->active[i].span = NULL;
    }
    if (!o->exact) return fg_solve(g, t, o, o->step_size);
    if (!o->quadratic) return fg_map(g, t, o);
    /* multipliers have as far to go as scores are large */
    return fg_solve(g, t, o, o->step_size * (o->adaptive ? fmin(FG_STRONG, fmax(1.0, fg_strength(g, t))) : 1.0));
}

/* What one of the threads of a call does of `total` graphs. The one that made the call goes on looking at the
 * interpreter until the others are done. */
static void fg_work(const fg_plan **g, fg_state **t, const fg_options *o, sk_size total, fg_call *call, int is_caller) {
    fg_watch watch = {call, is_caller, 0, 0.0, 0};
    sk_size i, mine = 0;
    for (;;) {
#ifdef _OPENMP
#pragma omp critical(fg_next)
#endif
        {
            call->done += mine;
            i = call->next++;
        }
        mine = 1;
        if (i >= total) break;
        t[i]->watch = &watch;
        /* an oracle that failed ends them all: its error is what the call raises */
        if (fg_run(g[i], t[i], o) == FG_ORACLE_FAILED) call->stop = 1;
        t[i]->watch = NULL;
    }
    if (!is_caller || call->done >= total || call->stop) return;
    watch.due = fg_seconds() + FG_LOOK_SECONDS;
    for (sk_size turn = 0; call->done < total && !call->stop; turn++) {
        if (turn % 64 == 0) fg_look(&watch);
        if (turn > 10000) fg_pause(); /* the first moments are too short to sleep in */
    }
}

#endif
