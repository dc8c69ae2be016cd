/* Solves of a factor graph around one run of ADMM and Newton's method: the first step size, marginals at their bounds,
 * and LP-MAP by proximal points. For one thread of a processor, or for the threads of a GPU's block. All
 * threads hold the same fg_report and take the same branches.
 *
 * The including file has closed.h, and the types fg_plan, fg_state, fg_options and fg_report. It defines:
 * FG_SHARED, what functions begin with; FG_TEAM and FG_SAME_TEAM, a parameter and an argument with a comma behind it,
 * or nothing; FG_SHARE(j, n), a loop over a thread's share; FG_TEAM_SUM and FG_TEAM_MOST over the threads, which wait
 * for each other; FG_TEAM_WAIT, their barrier; FG_SOLVE(g, t, o, first, r), a run, with gamma = first at a cold start.
 */
#ifndef SPARSEKIT_GRAPH_SOLVE_H
#define SPARSEKIT_GRAPH_SOLVE_H

/* residual at which Newton's method is tried; iterations between changes of the step size; its largest change */
#define FG_NEWTON_RESIDUAL 0.05
#define FG_ADAPT_INTERVAL 5
#define FG_MAX_STEP_FACTOR 4.0
/* largest factor of the first step for strong scores: longer steps cost digits */
#define FG_MAX_FIRST_FACTOR 1e5
/* largest distance from a bound at which a marginal is set to it */
#define FG_BOUND_TOLERANCE 1e-9
/* LP-MAP: largest residual of an answer at a small rho; above it rounding dominates */
#define FG_SPOILT_RESIDUAL 1e-7

/* The largest finite score, which bounds the distance to the multipliers. */
FG_SHARED double fg_largest_score(FG_TEAM const fg_plan *g, const fg_state *t) {
    double most = 0.0;
    FG_SHARE(j, g->n_var) if (!t->off[j]) most = fmax(most, fabs(t->eta[j]));
    FG_SHARE(k, g->n_add) if (!t->off_add[k]) most = fmax(most, fabs(t->add[k]));
    return FG_TEAM_MOST(most);
}

/* Root mean square, over the variables, of their scores and those of their pairs. */
FG_SHARED double fg_strength(FG_TEAM const fg_plan *g, const fg_state *t) {
    const double most = fg_largest_score(FG_SAME_TEAM g, t), by = most > 0.0 ? 1.0 / most : 0.0;
    double total = 0.0;
    FG_SHARE(j, g->n_var) total += t->off[j] ? 0.0 : by * t->eta[j] * (by * t->eta[j]);
    FG_SHARE(i, g->n_pair) {
        const double c = t->off_add[g->pair_add[i]] ? 0.0 : by * t->add[g->pair_add[i]];
        total += 2.0 * c * c;
    }
    return most * sqrt(FG_TEAM_SUM(total) / (double)(g->n_var > 0 ? g->n_var : 1));
}

/* Sets the initial point of a run; first: gamma of a cold start. */
FG_SHARED void fg_start_solve(const fg_plan *g, const fg_state *t, const fg_options *o, double first, fg_report *r) {
    FG_SHARE(i, g->n_pair) t->c[i] = t->add[g->pair_add[i]];
    r->n_iter = r->n_newton = 0;
    r->residual = INFINITY;
    if (!r->warm || !o->adaptive || r->status != FG_CONVERGED) r->gamma = r->warm ? o->step_size : first;
    if (!r->warm) {
        FG_SHARE(s, g->n_slot) t->l[s] = 0.0;
        FG_SHARE(i, g->n_linear + g->n_orout) t->tau[i] = 0.0;
    }
    FG_SHARE(j, g->n_var) {
        const double eta = t->eta[j];
        if (g->var_start[j] == g->var_start[j + 1]) t->mu[j] = t->old[j] = o->quadratic ? fg_clip(eta) : eta > 0.0;
        else if (!r->warm) t->mu[j] = fg_clip(eta);
    }
    FG_TEAM_WAIT;
}

/* Begins to iterate at mu and l. */
FG_SHARED void fg_admm_begin(const fg_plan *g, const fg_state *t, double gamma) {
    FG_SHARE(j, g->n_var) t->old[j] = t->mu[j];
    FG_SHARE(s, g->n_slot) {
        t->x[s] = t->mu[g->var[s]];
        t->z[s] = t->l[s] - gamma * t->x[s];
    }
}

/* l becomes that of the last iteration. */
FG_SHARED void fg_admm_end(const fg_plan *g, const fg_state *t, double gamma, double relax) {
    FG_SHARE(s, g->n_slot) {
        const fg_count j = (fg_count)g->var[s];
        t->l[s] = t->z[s] + gamma * (relax * (t->old[j] - t->x[s]) + t->mu[j]);
    }
    FG_TEAM_WAIT;
}

/* Adapts gamma to the ratio of the residuals, between `least` and `longest`: without a solution the primal residual
 * stays, and gamma would grow forever. 0: it stays. */
FG_SHARED double fg_adapted_step(double gamma, double primal, double dual, double least, double longest) {
    const double by = sqrt(primal / (dual + 1e-300));
    if (by <= 1.5 && by >= 0.67) return 0.0;
    return fmax(fmin(gamma * fmax(fmin(by, FG_MAX_STEP_FACTOR), 1.0 / FG_MAX_STEP_FACTOR), longest), least);
}

/* Sets mu to a bound if one of its copies is there, or if mu is within the residual of it. Its copies agree to
 * rounding. */
FG_SHARED void fg_snap_to_bounds(const fg_plan *g, const fg_state *t, double residual) {
    const double near = residual < 1e-10 ? 30.0 * residual + 1e-13 : FG_BOUND_TOLERANCE;
    FG_SHARE(j, g->n_var) {
        double mu = t->mu[j];
        if (fabs(mu) < near) mu = 0.0;
        if (fabs(mu - 1.0) < near) mu = 1.0;
        for (fg_count k = (fg_count)g->var_start[j]; k < g->var_start[j + 1]; k++) {
            const double x = t->x[g->var_slot[k]];
            if (x == 0.0 && fabs(mu) < FG_BOUND_TOLERANCE) mu = 0.0;
            if (x == 1.0 && fabs(mu - 1.0) < FG_BOUND_TOLERANCE) mu = 1.0;
        }
        t->mu[j] = mu;
    }
    FG_TEAM_WAIT;
}

/* Rescales the multipliers, which are in units of rho. */
FG_SHARED void fg_proximal_rescale(const fg_plan *g, const fg_state *t, double by) {
    FG_SHARE(s, g->n_slot) t->l[s] *= by;
    FG_SHARE(i, g->n_linear + g->n_orout) t->tau[i] *= by;
}

/* Saves the scores of LP-MAP and sets its initial mu. Returns the scores' sum; the largest, and the smallest not 0. */
FG_SHARED double fg_begin_map(FG_TEAM const fg_plan *g, const fg_state *t, int is_warm, double *largest,
                              double *smallest) {
    double size = 0.0, most = 0.0, least = FG_HUGE;
    FG_SHARE(k, g->n_var + g->n_add) {
        const fg_count i = k - (fg_count)g->n_var;
        const int is_own = k < g->n_var;
        const double score = is_own ? (t->off[k] ? 0.0 : fabs(t->eta[k])) : (t->off_add[i] ? 0.0 : fabs(t->add[i]));
        size += score;
        most = fmax(most, score);
        least = score > 0.0 ? fmin(least, score) : least;
        if (is_own) {
            t->eta0[k] = t->eta[k];
            if (!is_warm) t->mu[k] = 0.0;
        } else
            t->add0[i] = t->add[i];
    }
    size = FG_TEAM_SUM(size);
    *largest = FG_TEAM_MOST(most);
    *smallest = -FG_TEAM_MOST(-least);
    return size;
}

/* LP-SparseMAP, or AD3, by one run. LP-MAP by proximal points: each mu is the LP-SparseMAP solution for the scores
 * eta / rho + the previous mu. A fixed point solves the linear program. The number of steps is finite. rho decreases
 * from step to step, to resolve small scores next to large ones. Every step starts from the multipliers of the last
 * one. */
FG_SHARED int fg_solve_any(FG_TEAM const fg_plan *g, const fg_state *t, const fg_options *given, fg_report *r) {
    const int is_map = given->exact && !given->quadratic, scales = given->exact && given->quadratic && given->adaptive;
    const double strength = scales ? fg_strength(FG_SAME_TEAM g, t) : 1.0;
    /* the distance to the multipliers grows with the scores */
    const double gamma = given->step_size * fmin(FG_MAX_FIRST_FACTOR, fmax(1.0, strength));
    double size = 0.0, most = 0.0, smallest = 1.0; /* of the scores: their sum, the largest, the smallest not 0 */
    double rho, begin, least, exact = 0.0; /* rho at first, where it resolves the smallest score, where it has digits */
    long long passes = 0, newton = 0;
    fg_options o = *given;
    int status;
    if (is_map) {
        o.quadratic = 1;
        r->gamma = o.step_size; /* the last solve's scores may have been large; here they are in units of rho */
    }
    if (is_map) size = fg_begin_map(FG_SAME_TEAM g, t, r->warm, &most, &smallest);
    if (!(size > 0.0)) smallest = 1.0; /* no scores to resolve, but forbidden variables still compare with rho */
    least = fmax(0.5 * smallest, 1e-13 * most);
    rho = begin = fmax(size > 0.0 ? 0.2 * size / (double)(g->n_var + g->n_add) : 1.0, least);
    for (;;) {
        double moved = 0.0, worth = 0.0, next = 0.25 * rho;
        if (is_map) {
            FG_SHARE(j, g->n_var) {
                t->h0[j] = t->mu[j];
                t->eta[j] = t->eta0[j] / rho + t->mu[j];
                /* in no factor: on or off at once */
                if (g->var_start[j] == g->var_start[j + 1]) t->eta[j] = t->h0[j] = t->eta0[j] > 0.0;
            }
            FG_SHARE(k, g->n_add) t->add[k] = t->add0[k] / rho;
            o.max_iter = given->max_iter - passes;
            /* scores that are large relative to rho leave fewer digits for the marginals */
            o.tol_primal = given->tol_primal * fmax(1e-3 * most / rho, 1.0);
            if (given->tol_primal < FG_SPOILT_RESIDUAL) o.tol_primal = fmin(o.tol_primal, FG_SPOILT_RESIDUAL);
        }
        FG_TEAM_WAIT;
        status = FG_SOLVE(g, t, o, gamma, r);
        if (!is_map) return status;
        passes += r->n_iter;
        newton += r->n_newton;
        if (status || size == 0.0) break; /* if all scores are 0, every mu is optimal */
        if (r->residual > fmax(o.tol_primal, FG_SPOILT_RESIDUAL) && rho < begin && passes < given->max_iter) {
            /* rounding dominates at so small a rho: go back to the last mu and a larger rho */
            FG_SHARE(j, g->n_var) t->mu[j] = t->h0[j];
            exact = fmin(4.0 * rho, begin);
            least = fmax(least, exact);
            fg_proximal_rescale(g, t, rho / exact);
            rho = exact;
            FG_TEAM_WAIT;
            continue;
        }
        FG_SHARE(j, g->n_var) {
            const double d = t->mu[j] - t->h0[j];
            moved += d * d;
            if (!t->off[j]) worth += fabs(t->eta0[j] * t->mu[j]);
        }
        worth = FG_TEAM_SUM(worth);
        r->dual = sqrt(FG_TEAM_SUM(moved));
        /* mu is optimal for scores that differ by rho * step, which bounds its error in value over the box */
        if (rho * r->dual * sqrt((double)g->n_var) <= 1e-9 * worth) break;
        /* a step is at least as large as its own error */
        if (r->dual <= given->tol_dual + 30.0 * o.tol_primal) {
            if (rho <= least) break;
            next = least; /* a fixed point for the smallest score too is final */
        }
        if (passes >= given->max_iter) {
            status = FG_MAX_ITER;
            break;
        }
        r->warm = 1;
        next = fmax(next, exact);
        /* near ties of scores need a small rho */
        if (next < 1e-10 * fmax(worth, smallest)) next = rho;
        if (next < rho) {
            fg_proximal_rescale(g, t, rho / next);
            rho = next;
        }
        FG_TEAM_WAIT;
    }
    r->n_iter = passes;
    r->n_newton = newton;
    FG_TEAM_WAIT;
    FG_SHARE(j, g->n_var) t->eta[j] = t->eta0[j];
    FG_SHARE(k, g->n_add) t->add[k] = t->add0[k];
    FG_TEAM_WAIT;
    return r->status = status;
}

#endif
