/* Newton's method on the dual of a factor graph. For one thread of a processor, or for the threads of a GPU's block.
 *
 * The including file has graph_passes.h and defines what that asks for, and: FG_MULTIPLY_LESS(g, t, in, x, y), y
 * (n_slot) = J (copies of in - x), after which all threads wait for each other; FG_DUAL_AT(g, t, r, step, slope), answers,
 * means and residual at l + step s, the dual's slope along s, and a status, 0 if there are answers;
 * FG_ALL_SOLVED(g, t), whether they are optimal. */
#ifndef SPARSEKIT_GRAPH_NEWTON_H
#define SPARSEKIT_GRAPH_NEWTON_H

#include "line_search.h"

/* largest numbers of Newton steps, and of trials of a line search */
#define FG_NEWTON_STEPS 50
#define FG_DUAL_TRIALS 12

/* Scale of rounding errors in the answers. */
FG_SHARED double fg_dual_rounding(FG_TEAM const fg_plan *g, const fg_state *t) {
    double size = 1.0;
    FG_SHARE(s, g->n_slot)
        if (t->x[s] > 0.0 && t->x[s] < 1.0) size = fmax(size, fmax(fabs(t->eta[g->var[s]]), fabs(t->l[s])));
    return 64.0 * 2.220446049250313e-16 * sqrt((double)g->n_slot) * FG_TEAM_MOST(size);
}

/* The Newton direction s, and its slope: (P J P + eps) s = mu - x, where P subtracts the means of copies. Let nu solve
 * the n_var equations ((1 + eps) I - B) nu = -mean J r. Then s = (J + eps)^-1 (r - nu), and (J + eps)^-1 = (I - J) /
 * eps + J / (1 + eps) since J is a projection. If J is 0, answers are at their bounds, and a small eps moves l far
 * enough to free them. */
FG_SHARED double fg_dual_direction(FG_TEAM const fg_plan *g, const fg_state *t, double residual) {
    double *nu = t->cg + 3 * g->n_var, *right = nu + g->n_var, slope = 0.0;
    const double eps = residual > 1e-2 ? 1e-2 : (residual < 1e-4 ? 1e-4 : residual);
    for (int solved = 0;; solved = 1) { /* with r, then with r - nu */
        FG_MULTIPLY_LESS(g, t, solved ? right : t->mu, t->x, t->z);
        if (solved) break;
        FG_MEAN(g, t->z, right);
        FG_SHARE(j, g->n_var) right[j] = -right[j];
        FG_TEAM_WAIT;
        fg_cg(FG_SAME_TEAM g, t, eps, right, 1e-2 * eps * residual, nu);
        FG_SHARE(j, g->n_var) right[j] = t->mu[j] - nu[j];
        FG_TEAM_WAIT;
    }
    FG_SHARE(s, g->n_slot) {
        const double r = right[g->var[s]] - t->x[s];
        t->s[s] = (r - t->z[s]) * (1.0 / eps) + t->z[s] * (1.0 / (1.0 + eps));
    }
    FG_TEAM_WAIT;
    FG_MEAN(g, t->s, right);
    FG_SHARE(s, g->n_slot) {
        const fg_count j = (fg_count)g->var[s];
        t->s[s] -= right[j];
        slope -= g->w[s] * t->s[s] * (t->mu[j] - t->x[s]);
    }
    return FG_TEAM_SUM(slope);
}

/* Newton's method from l, until the residual is `tol`. Returns whether it converged with optimal answers; l is then the
 * solution, else the best iterate. Every pass begins with an answer, of which a GPU so has one copy of the code. It
 * belongs to l before the first s, to the line search along s, or to the end of a search that failed. */
FG_SHARED int fg_newton(FG_TEAM const fg_plan *g, const fg_state *t, fg_report *r, double tol, long long most,
                        int *status) {
    enum { FIRST, SEARCH, LAST } phase = FIRST;
    double last = 0.0, start = 0.0, step = 0.0;
    sk_bracket bracket = {0.0, 0.0, 0.0, 0.0, 0.0};
    int slow = 0, it = 0, trial = 0;
    FG_SHARE(s, g->n_slot) t->s[s] = 0.0;
    tol = fmax(tol, fg_dual_rounding(FG_SAME_TEAM g, t)); /* after which all threads have met */
    for (;;) {
        double slope;
        if ((*status = FG_DUAL_AT(g, t, r, step, &slope))) return 0;
        if (phase == LAST) return r->residual <= tol && FG_ALL_SOLVED(g, t);
        if (phase == SEARCH) {
            if (!(fabs(slope) <= -0.9 * start || r->residual <= tol)) {
                step = sk_next_step(&bracket, step, slope, FG_HUGE);
                if (r->n_iter >= most) return 0;
                if (++trial == FG_DUAL_TRIALS) {
                    phase = LAST;
                    step = 0.0;
                }
                continue;
            }
            FG_SHARE(s, g->n_slot) t->l[s] += step * t->s[s];
            slow = r->residual > 0.5 * last ? slow + 1 : 0;
            if (slow == 4) return 0;
            it++;
        }
        if (r->residual <= tol) return FG_ALL_SOLVED(g, t);
        if (it >= FG_NEWTON_STEPS || r->n_iter >= most || FG_TEAM_ENDS(g, t)) return 0;
        phase = SEARCH;
        last = r->residual;
        start = fg_dual_direction(FG_SAME_TEAM g, t, last);
        r->n_newton++;
        if (!(start < 0.0)) return 0;
        bracket.at_lo = start;
        bracket.lo = bracket.hi = bracket.at_hi = bracket.last = 0.0;
        step = 1.0;
        trial = 0;
    }
}

#endif
