/* Sequences of weak scores. Their mixtures have a structure for almost each variable, so flows through a layered graph
 * replace structures. The weight E_ij of a transition flows from one tag to the next; such flows are exactly the
 * mixtures of sequences. With potentials a and b, x = v - (a_t + b_t-1) / w. Optimal are E >= 0 with row sums x_t and
 * column sums x_t+1, and c + a_i + b_j <= 0, with equality where E_ij > 0.
 *
 * Without an initial point, an interior-point method comes first (factor_barrier.h). The proximal point method then
 * ends exactly (Rockafellar, 1976; Li, Sun, Toh, 2018): E = max(0, E + (c + a_i + b_j) / eps), each point by Newton's
 * method on the potentials. If the last scores were near, it starts from their potentials. */
#ifndef SPARSEKIT_FACTOR_FLOW_H
#define SPARSEKIT_FACTOR_FLOW_H

#include "factor_graph/factor_active.h"
#include "factor_graph/factor_barrier.h"
#include "factor_graph/factor_equations.h"
#include "factor_graph/factor_newton.h"
#include "factor_graph/factor_simplex.h"

/* largest numbers of factorisations for proximal points: from the last solution (a new start takes a dozen), and in
 * all. Scores of 1e-7 to 1e-12 take up to 173, a tie each. */
#define FG_WARM_STEPS 12
#define FG_PROXIMAL_STEPS 320
/* smallest eps, relative to potentials */
#define FG_MIN_EPS 1e-3
/* largest reduced cost of a transition in use at which stalled proximal points are accepted */
#define FG_DUAL_TOLERANCE 1e-11
/* largest number of stalls by near ties */
#define FG_ABSORPTIONS 8
/* largest weight that counts as rounding */
#define FG_NO_FLOW 1e-12

/* Sums ra, rb of the rows and columns of the proximal point max(0, E + (c + a_i + b_j) / eps); D = 1 / eps where that
 * is positive, and its sums */
SK_MULTI(void, fg_proximal_fill,
         (sk_size K, const double *restrict c, const double *restrict a, const double *restrict b,
          const double *restrict E, double inverse, double *restrict ra, double *restrict rb, double *restrict D,
          double *restrict R, double *restrict C),
         (K, c, a, b, E, inverse, ra, rb, D, R, C)) {
    for (sk_size j = 0; j < K; j++) rb[j] = C[j] = 0.0;
    for (sk_size i = 0; i < K; i++) {
        double sum = 0.0, slopes = 0.0;
        SK_SIMD_WITH(reduction(+ : sum, slopes)) for (sk_size j = 0; j < K; j++) {
            const double z = E[i * K + j] + inverse * (c[i * K + j] + a[i] + b[j]);
            const double y = z > 0.0 ? z : 0.0, d = z > 0.0 ? inverse : 0.0;
            D[i * K + j] = d;
            C[j] += d;
            rb[j] += y;
            slopes += d;
            sum += y;
        }
        R[i] = slopes;
        ra[i] = sum;
    }
}

/* E becomes the proximal point; returns the largest |c + a_i + b_j| among transitions with weight */
SK_MULTI(double, fg_proximal_move,
         (sk_size K, const double *restrict c, const double *restrict a, const double *restrict b,
          double *restrict E, double inverse),
         (K, c, a, b, E, inverse)) {
    double most = 0.0;
    for (sk_size i = 0; i < K; i++)
        SK_SIMD_MAX(reduction(max : most))
        for (sk_size j = 0; j < K; j++) {
            const double z = c[i * K + j] + a[i] + b[j];
            double y = E[i * K + j] + inverse * z, miss = fabs(y > 0.0 ? z : 0.0);
            y = y > 0.0 ? y : 0.0;
            most = miss > most ? miss : most;
            E[i * K + j] = y;
        }
    return most;
}

/* Moves the potentials to a step and computes the gradients and the Hessian's D; returns the largest error of a sum. */
static double fg_proximal_at(void *problem, double step, double *slope) {
    fg_flow *t = problem;
    const sk_size T = t->T, K = t->K, KK = K * K, m = (T - 1) * K;
    const double by = step - t->moved;
    double worst = 0.0;
    if (by != 0.0)
        for (sk_size i = 0; i < m; i++) t->a[i] += by * t->da[i], t->b[i] += by * t->db[i];
    t->moved = step;
    fg_chain_answer(t);
    *slope = 0.0;
    for (sk_size p = 0; p < T - 1; p++) {
        const sk_size s = p * K, e = p * KK;
        fg_proximal_fill(K, t->c + e, t->a + s, t->b + s, t->E + e, 1.0 / t->eps, t->ra + s, t->rb + s, t->Y + e,
                         t->R + s, t->C + s);
        for (sk_size i = s; i < s + K; i++) {
            t->ra[i] = t->x[i] - t->ra[i];
            t->rb[i] = t->x[i + K] - t->rb[i];
            *slope -= t->ra[i] * t->da[i] + t->rb[i] * t->db[i];
            worst = fabs(t->ra[i]) > worst ? fabs(t->ra[i]) : worst;
            worst = fabs(t->rb[i]) > worst ? fabs(t->rb[i]) : worst;
        }
    }
    return worst;
}

/* The Newton direction in da, db, and its slope, negative; 0 where there is none. */
static double fg_proximal_direction(fg_flow *t, double miss, fg_watch *watch) {
    const sk_size m = (t->T - 1) * t->K;
    double start = 0.0;
    if (!fg_chain_factor(t, fg_ridge(1e-3, miss), 1e-12, watch)) return 0.0;
    memcpy(t->da, t->ra, (size_t)m * sizeof(double));
    memcpy(t->db, t->rb, (size_t)m * sizeof(double));
    fg_chain_solve(t, t->da, t->db);
    for (sk_size i = 0; i < m; i++) start -= t->ra[i] * t->da[i] + t->rb[i] * t->db[i];
    t->moved = 0.0;
    return start;
}

/* Rounding error of the sums for scores and potentials of these sizes. */
static double fg_proximal_tolerance(const fg_flow *t, double size, double potentials) {
    return 8.0 * DBL_EPSILON * (1.0 + size + potentials / t->eps);
}

/* Adds the potentials to v and c and resets them to 0: sequences keep their scores, and reduced costs near 0 keep all
 * digits. */
static void fg_absorb_potentials(fg_flow *t) {
    const sk_size K = t->K, m = (t->T - 1) * K;
    for (sk_size i = 0; i < m; i++) {
        t->v[i] -= t->iw[i] * t->a[i];
        t->v[i + K] -= t->iw[i + K] * t->b[i];
        for (sk_size j = 0; j < K; j++) t->c[i * K + j] += t->a[i] + t->b[i / K * K + j];
    }
    for (sk_size i = 0; i < m; i++) {
        t->a0[i] += t->a[i], t->b0[i] += t->b[i];
        t->a[i] = t->b[i] = 0.0;
    }
}

/* Iterates proximal points to a fixed point; whether it is reached within `most` factorisations. */
static int fg_flow_proximal(fg_flow *t, int most, fg_watch *watch) {
    const sk_size T = t->T, K = t->K, KK = K * K, m = (T - 1) * K;
    const fg_progress begin = FG_PROGRESS_BEGIN;
    fg_progress progress = begin;
    double size = 0.0, potentials, tol, start, step, miss, change = INFINITY;
    int steps = 0;
    for (sk_size i = 0; i < T * K; i++) size = fabs(t->v[i]) > size ? fabs(t->v[i]) : size;
    for (sk_size i = 0; i < m; i++) {
        size = fabs(t->a[i]) > size ? fabs(t->a[i]) : size;
        size = fabs(t->b[i]) > size ? fabs(t->b[i]) : size;
    }
    if (!(size < DBL_MAX)) return 0;
    potentials = size;
    tol = fg_proximal_tolerance(t, size, potentials);
    memset(t->da, 0, (size_t)m * sizeof(double));
    memset(t->db, 0, (size_t)m * sizeof(double));
    t->moved = 0.0;
    miss = fg_proximal_at(t, 0.0, &start);
    /* points that need no factorisation may be many */
    for (int rounds = 0; rounds < 20 * most; rounds++) {
        if (fg_stopped(watch, T * KK) || fg_late(watch)) return 0;
        if (fg_is_rounding(&progress, miss, tol)) {
            const double before = change, least = FG_MIN_EPS * size;
            change = 0.0;
            for (sk_size p = 0; p < T - 1; p++) {
                double by = fg_proximal_move(K, t->c + p * KK, t->a + p * K, t->b + p * K, t->E + p * KK, 1.0 / t->eps);
                change = by > change ? by : change;
            }
            if (change <= 1e-12 * (size < 1.0 ? size : 1.0) + 128.0 * DBL_EPSILON * size) return 1;
            if (change > 0.9 * before && (t->absorbed || t->eps <= least || change < 1e-9 * (1.0 + size))) {
                /* stalled by near ties: weights change by change / eps a point */
                if (change <= FG_DUAL_TOLERANCE) return 1;
                if (t->absorbed == FG_ABSORPTIONS) return 0;
                if (t->absorbed++ == 0) t->eps0 = t->eps;
                fg_absorb_potentials(t);
                potentials = t->eps = 100.0 * change;
                change = INFINITY;
            } else /* decrease eps as long as sums keep their digits */
                t->eps = 0.1 * t->eps > least ? 0.1 * t->eps : (t->eps < least ? t->eps : least);
            tol = fg_proximal_tolerance(t, size, potentials);
            miss = fg_proximal_at(t, t->moved, &start);
            progress = begin;
            if (miss <= tol) continue;
            progress.last = miss;
        }
        if (steps++ == most) return 0;
        start = fg_proximal_direction(t, miss, watch);
        if (!(start < 0.0)) return 0;
        if (!fg_line_search(t, fg_proximal_at, start, tol, DBL_MAX, 40, &step, &miss)) return 0;
    }
    return 0;
}

/* Sets eps to the ratio of slacks to weights, and no smaller than the digits of the sums allow. Weights are at most 1:
 * with a smaller eps for weaker scores, Newton's method passes a tie in each step. */
static void fg_flow_scale(fg_flow *t) {
    double slack = 0.0, size = 1.0;
    const sk_size K = t->K, m = (t->T - 1) * K;
    for (sk_size i = 0; i < m; i++) {
        size = fabs(t->a[i]) > size ? fabs(t->a[i]) : size;
        size = fabs(t->b[i]) > size ? fabs(t->b[i]) : size;
        for (sk_size j = 0; j < K; j++) {
            const double z = t->c[i * K + j] + t->a[i] + t->b[i / K * K + j];
            slack -= z > -INFINITY ? z : 0.0;
        }
    }
    slack *= 3.0 / (double)t->n_arc;
    t->eps = slack > 0.01 * size ? slack : 0.01 * size;
}

/* Solves for x and E at v, w, c, from the last solution or `afresh`; whether it succeeded. */
static int fg_flow_solve(fg_flow *t, const double *v, const double *w, const double *c, int afresh, fg_watch *watch) {
    const sk_size T = t->T, K = t->K, KK = K * K;
    int found;
    if (T == 1) {
        for (sk_size k = 0; k < K; k++) t->v[k] = v[k], t->iw[k] = 1.0 / w[k];
        fg_project_simplex(K, t->v, t->iw, 1, 0.0, t->x);
        return 1;
    }
    fg_flow_begin(t, v, w, c);
    if (afresh) {
        if (!fg_flow_barrier(t, watch)) return 0;
        fg_flow_scale(t);
    }
    t->absorbed = 0;
    memset(t->a0, 0, (size_t)(2 * (T - 1) * K) * sizeof(double));
    found = fg_flow_proximal(t, afresh ? FG_PROXIMAL_STEPS : FG_WARM_STEPS, watch);
    for (sk_size i = 0; i < (T - 1) * K; i++) t->a[i] += t->a0[i], t->b[i] += t->b0[i];
    if (t->absorbed) t->eps = t->eps0;
    if (!found) return 0;
    memset(t->x, 0, (size_t)(T * K) * sizeof(double));
    for (sk_size p = 0; p < T - 1; p++)
        for (sk_size i = 0; i < KK; i++) {
            double *E = t->E + p * KK + i;
            if (*E < FG_NO_FLOW) *E = 0.0;
            t->x[p * K + i / K] += *E;
            if (p == T - 2) t->x[(T - 1) * K + i % K] += *E;
        }
    return 1;
}

/* Whether the flow for v, w, c was found, from the last one or `afresh`; x (d). */
static int fg_flow_answer(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c, int afresh,
                          double *x, fg_watch *watch) {
    t->calls++;
    if (!fg_flow_solve(t->flow, v, w, c, afresh, watch)) return 0;
    memcpy(x, t->flow->x, (size_t)f->d * sizeof(double));
    return 1;
}

/* Work on structures, in units of t->spent, after which a flow takes over. It is half of the flow's own work (measured
 * for 5 to 100 tags), since the number of structures is not known in advance. Evidence: sequences of 10 to 200 words,
 * scores of 0.01 to 10. A quarter takes 1.05 times as long, up to 4 times; an eighth takes 1.15 times. */
static double fg_flow_work(const fg_spec *f) {
    const double T = (double)f->rows, K = (double)f->columns;
    return 4e4 + 2.0 * (T - 1.0) * K * K * (90.0 + K);
}

/* Equations of the face of the transitions in use or, if `whole`, of the tied ones, which span the smallest face. */
static int fg_flow_equations(const fg_spec *f, const fg_active *t, int whole, fg_span *s) {
    const fg_flow *flow = t->flow;
    const sk_size n = f->d;
    double *x = malloc((size_t)(2 * n + 1) * sizeof(double)), *g = x + n, level = 0.0;
    int ready = x != NULL;
    for (sk_size i = 0; ready && i < n; i++) {
        x[i] = flow->x[i] > FG_NO_WEIGHT ? flow->x[i] : 0.0;
        g[i] = flow->iw[i] > 0.0 ? (flow->v[i] - flow->x[i]) / flow->iw[i] : 0.0;
        level += flow->x[i] * g[i];
    }
    for (sk_size i = 0; i < f->n_add; i++) level += flow->E[i] > 0.0 ? flow->E[i] * flow->c[i] : 0.0;
    ready = ready && fg_span_sequence(f, t, x, g, flow->c, whole ? FG_TIED_SCORE * (1.0 + fabs(level)) : -1.0, s);
    free(x);
    return ready;
}

#endif
