/* Nonprojective trees of weak scores. Their mixtures have a structure for almost each variable, so the constraints of
 * the polytope replace structures. They describe all mixtures of arborescences (Edmonds, 1967): each word has one head,
 * and arcs enter every set of words at least once. With a single root they enter the set of all words exactly once.
 *
 * With multipliers y >= 0 of sets, each row is a projection on a simplex: x_i = max(0, v_i + d_i (sums of y - tau_i)),
 * d = 1 / w. The dual is concave and smooth in y, with the gradient 1 - x(entering arcs). Few sets are tight unless
 * scores are strong. Newton's method solves for the known sets; maximum flows then find violated ones, until none is. */
#ifndef SPARSEKIT_FACTOR_CUTS_H
#define SPARSEKIT_FACTOR_CUTS_H

#include "factor_graph/factor_cut_sets.h"

#define FG_CUT_STEPS 60
#define FG_CUT_TRIALS 40
#define FG_CUT_ROUNDS 100

/* Largest entry of the projected gradient at y; `rounding`: the scale of its rounding errors. */
static double fg_cuts_miss(void *problem, double *rounding) {
    fg_cuts *t = problem;
    double miss = 0.0, size = 1.0;
    for (sk_size i = 0; i < t->n; i++) size = fabs(t->tau[i]) > size ? fabs(t->tau[i]) : size;
    for (sk_size k = 0; k < t->m; k++) {
        double g = fg_cut_is_held(t, k) ? fabs(t->g[k]) : t->g[k];
        miss = g > miss ? g : miss;
        size = fabs(t->y[k]) > size ? fabs(t->y[k]) : size;
    }
    *rounding = 64.0 * DBL_EPSILON * size;
    t->near = 1e-14 * size;
    return miss;
}

/* step (n_in) maximises the dual's quadratic model minus `ridge` step^2 / 2 subject to y + step >= 0. Sets that would
 * fall below 0 are fixed there and freed if their gradient is positive, until none changes. */
static void fg_cuts_step(fg_cuts *t, double ridge) {
    const sk_size K = t->n_in;
    double *z = t->to;
    t->n_on = 0;
    for (sk_size r = 0; r < K; r++) t->step[r] = 0.0, t->on[t->n_on++] = r;
    for (int round = 0; round < FG_CUT_ROUNDS; round++) {
        sk_size kept = 0, at = 0;
        int moved = 0;
        fg_factor_cuts(t, ridge);
        for (sk_size a = 0; a < t->n_on; a++) {
            const double *row = t->S + t->on[a] * t->size;
            sk_size next = 0;
            z[a] = t->g[t->in[t->on[a]]];
            for (sk_size r = 0; r < K; r++) {
                if (next < t->n_on && t->on[next] == r) next++;
                else z[a] += row[r] * t->y[t->in[r]];
            }
        }
        fg_solve_hessian(t->n_on, t->size, t->L, z);
        for (sk_size r = 0; r < K; r++) {
            if (at < t->n_on && t->on[at] == r) t->step[r] = z[at++];
            else t->step[r] = -t->y[t->in[r]];
        }
        at = 0;
        for (sk_size r = 0; r < K; r++) {
            const sk_size k = t->in[r];
            const int is_on = at < t->n_on && t->on[at] == r;
            at += is_on;
            if (is_on && !(t->one && k == 0) && t->y[k] + t->step[r] < 0.0) moved = 1;
            else if (is_on) t->keep[kept++] = r;
            else {
                double gain = t->g[k] - ridge * t->step[r];
                for (sk_size c = 0; c < K; c++) gain -= t->S[r * t->size + c] * t->step[c];
                if (gain > 0.0 && round < FG_CUT_ROUNDS / 2) t->keep[kept++] = r, moved = 1;
            }
        }
        if (!moved) return;
        memcpy(t->on, t->keep, (size_t)kept * sizeof(sk_size));
        t->n_on = kept;
    }
}

/* whether the multiplier of a set may not fall below 0 */
SK_INLINE int fg_cut_is_bounded(const fg_cuts *t, sk_size k) { return !t->one || k > 0; }

/* Evaluates x at y + length * direction, in `to`. fg_line_search minimises, so the slope's sign is changed. The residual
 * comes from fg_cuts_miss. */
static double fg_cuts_trial(void *problem, double length, double *slope) {
    fg_cuts *t = problem;
    for (sk_size k = 0; k < t->m; k++) {
        t->to[k] = t->y[k] + length * t->step[k];
        if (t->to[k] < 1e-15 * fabs(t->y[k]) && fg_cut_is_bounded(t, k)) t->to[k] = 0.0;
    }
    fg_cuts_at(t, t->to);
    *slope = 0.0;
    for (sk_size k = 0; k < t->m; k++) *slope -= t->step[k] * t->g[k];
    return DBL_MAX;
}

/* The Newton direction, in `step`, for sets with a multiplier or a positive gradient. Returns its slope, negative.
 * most: the longest step with all multipliers >= 0. */
static double fg_cuts_direction(void *problem, double ridge, double *most, fg_watch *watch) {
    fg_cuts *t = problem;
    double slope = 0.0;
    (void)watch;
    t->n_in = 0;
    for (sk_size k = 0; k < t->m; k++)
        if (fg_cut_is_held(t, k) || t->g[k] > 0.0) t->in[t->n_in++] = k;
    if (!fg_grow_factor(t, t->n_in)) return 0.0;
    fg_cuts_hessian(t);
    fg_cuts_step(t, ridge);
    memcpy(t->to, t->step, (size_t)t->n_in * sizeof(double));
    memset(t->step, 0, (size_t)t->m * sizeof(double));
    for (sk_size r = 0; r < t->n_in; r++) {
        const sk_size k = t->in[r];
        t->step[k] = t->to[r];
        slope -= t->step[k] * t->g[k];
        if (t->step[k] < 0.0 && fg_cut_is_bounded(t, k) && t->y[k] < -*most * t->step[k]) *most = -t->y[k] / t->step[k];
    }
    return slope;
}

/* y becomes what the last evaluation left in `to`. */
static void fg_cuts_move(void *problem, double step) {
    fg_cuts *t = problem;
    double *swap = t->y;
    (void)step;
    t->y = t->to;
    t->to = swap;
}

/* Newton's method on the dual for the known sets, with y >= 0; whether it converged. `tol`: the largest residual. */
static int fg_cuts_newton(fg_cuts *t, double *tol, fg_watch *watch) {
    static const fg_smooth_dual dual = {fg_cuts_miss, fg_cuts_direction, fg_cuts_trial, fg_cuts_move, 1e-2,
                                        FG_CUT_TRIALS};
    int steps = FG_CUT_STEPS;
    double miss, rounding;
    fg_cuts_at(t, t->y);
    miss = fg_minimize_dual(&dual, t, &steps, (4 + t->m) * t->n * t->n, watch);
    if (miss < 0.0) return 0;
    fg_cuts_miss(t, &rounding);
    *tol = miss > rounding ? miss : rounding;
    return 1;
}

/* Removes sets without multipliers. The dual has risen since they were added, so this cannot cycle. */
static void fg_drop_cuts(fg_cuts *t) {
    const sk_size n = t->n;
    sk_size kept = t->one;
    for (sk_size k = kept; k < t->m; k++) {
        if (!(t->y[k] > 0.0)) continue;
        t->y[kept] = t->y[k];
        memmove(t->out + kept++ * n, t->out + k * n, (size_t)n * sizeof(double));
    }
    t->m = kept;
}

/* Whether set m equals one of the first `before`. */
static int fg_cut_is_known(const fg_cuts *t, sk_size before) {
    for (sk_size k = 0; k < before; k++)
        if (!memcmp(t->out + k * t->n, t->out + t->m * t->n, (size_t)t->n * sizeof(double))) return 1;
    return 0;
}

/* Adds the violated sets; returns their number, -1 if a flow failed. */
static sk_size fg_cuts_find(fg_cuts *t, double tol, fg_watch *watch) {
    const sk_size n = t->n;
    sk_size before, to;
    double lacks;
    if (t->m > 3 * n) fg_drop_cuts(t);
    if (!fg_grow_cuts(t, t->m + n)) return -1;
    before = t->m;
    sk_cuts_begin(&t->flow, t->x);
    while ((to = sk_cuts_next(&t->flow, t->x, &lacks)) >= 0) {
        double *out = t->out + t->m * n, enters = 0.0;
        if (fg_stopped(watch, 2 * n * n)) return -1;
        if (!(lacks > tol)) continue;
        for (sk_size i = 0; i < n; i++) out[i] = t->flow.seen[i] ? 0.0 : 1.0;
        for (sk_size i = 0; i < n; i++)
            if (out[i] == 0.0) enters += fg_line_dot(n, t->x + i * n, out) + t->x[i * n + i];
        if (!(enters < 1.0 - 0.5 * tol)) return -1;
        if (fg_cut_is_known(t, before)) return -1; /* Newton did not satisfy it */
        t->y[t->m++] = 0.0;
    }
    return t->m - before;
}

/* x for the scores v (n, n); whether it was found */
static int fg_cuts_solve(fg_cuts *t, const double *v, fg_watch *watch) {
    const sk_size n = t->n;
    double tol;
    for (sk_size i = 0; i < n; i++) { /* a constant in a row's scores would cost digits */
        double top = -DBL_MAX;
        for (sk_size j = 0; j < n; j++) top = v[i * n + j] / t->d[i * n + j] > top ? v[i * n + j] / t->d[i * n + j] : top;
        for (sk_size j = 0; j < n; j++) t->v[i * n + j] = v[i * n + j] - top * t->d[i * n + j];
    }
    for (int round = 0; round < FG_CUT_ROUNDS; round++) {
        sk_size found;
        if (!fg_cuts_newton(t, &tol, watch)) return 0;
        for (sk_size i = 0; i < n * n; i++) t->x[i] = t->x[i] > t->near ? t->x[i] : 0.0;
        if (fg_late(watch)) return 0;
        found = fg_cuts_find(t, 4.0 * tol + 1e-13 * (double)n, watch);
        if (found <= 0) return found == 0;
    }
    return 0;
}

/* Adds the sets that the smallest face around the answer has: all sets that are entered exactly once. The smallest
 * tight sets with a word and one of its heads span the others: cuts are modular on sets that meet. Maximum flows to the
 * word find them. */
static int fg_cuts_complete(fg_cuts *t, fg_watch *watch) {
    const sk_size n = t->n;
    fg_drop_cuts(t);
    for (sk_size i = 0; i < n; i++) {
        sk_cuts_begin(&t->flow, t->x);
        sk_cuts_max_flow(&t->flow, t->x, i);
        sk_cuts_reach(&t->flow, FG_SUM_TOLERANCE);
        if (fg_stopped(watch, 2 * n * n)) return FG_INTERRUPTED;
        for (sk_size j = 0; j < n; j++) {
            double *out;
            if (j == i || !(t->x[i * n + j] > 0.0) || t->flow.source[j]) continue;
            if (!fg_grow_cuts(t, t->m + 1)) return FG_NO_MEMORY;
            sk_cuts_closure(&t->flow, i, j, FG_SUM_TOLERANCE);
            sk_cuts_merge_alike(&t->flow, j, FG_SUM_TOLERANCE);
            out = t->out + t->m * n;
            for (sk_size k = 0; k < n; k++) out[k] = t->flow.seen[k] ? 0.0 : 1.0;
            if (!fg_cut_is_known(t, t->m)) t->y[t->m++] = 0.0;
        }
    }
    return 0;
}

/* Whether the arc to `word` from `head`, which is the word itself for the root, enters a set. */
SK_INLINE int fg_enters(const double *out, sk_size word, sk_size head) {
    return out[word] == 0.0 && (head == word || out[head] != 0.0);
}

/* Equations of one head a word, and of sets: those with a multiplier, or all if `whole`. */
static int fg_cuts_equations(const fg_cuts *t, int whole, fg_rows *a) {
    const sk_size n = t->n;
    sk_size n_entry = n * n;
    for (sk_size i = 0; i < n * n; i++)
        for (sk_size k = 0; k < t->m; k++) n_entry += t->x[i] > 0.0 && fg_enters(t->out + k * n, i / n, i % n);
    if (!fg_rows_begin(a, n + t->m, n * n, n_entry)) return 0;
    for (sk_size i = 0; i < n * n; i++) {
        if (t->x[i] > 0.0) fg_rows_enter(a, i / n, 1.0);
        for (sk_size k = 0; t->x[i] > 0.0 && k < t->m; k++)
            if ((whole || fg_cut_is_held(t, k)) && fg_enters(t->out + k * n, i / n, i % n)) fg_rows_enter(a, n + k, 1.0);
        fg_rows_next(a);
    }
    return 1;
}

#endif
