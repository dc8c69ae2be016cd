/* Matchings of weak scores, whose mixtures have a structure for almost each variable: the polytope's own constraints
 * in place of structures. Each of the fewer ("rows", R) has one partner, each of the others ("columns", C) at most one,
 * or one where there are as many; no mixture of matchings is more than that (Birkhoff, von Neumann).
 *
 * With d = 1 / w, x_ij = max(0, v_ij - d_ij (a_i + b_j)). For given a the best b is a projection of each column on its
 * simplex, and the dual that is left is convex and smooth in a, with the gradient 1 - sum_j x_ij and the generalised
 * Hessian S = sum over free entries of d_ij e_i e_i' less, of a column that is full, its vector of d times itself over
 * their sum: Newton's method ends exactly on the right piece. S is a Laplacian of the rows. */
#ifndef SPARSEKIT_FACTOR_MATCHING_H
#define SPARSEKIT_FACTOR_MATCHING_H

#include "factor_active.h"

#define FG_POTENTIAL_STEPS 100
#define FG_POTENTIAL_TRIALS 50
/* of a row's diagonal in S: less is rounding, and the row's part of the graph of free entries is closed */
#define FG_CLOSED 1e-10
/* what a column may lack of 1 and be full */
#define FG_FULL 1e-9

struct fg_potentials {
    sk_size R, C;
    int equal, factored;
    int whole;                      /* whether columns that are full with a multiplier of 0 count as such */
    double near;                    /* an entry not above this is 0 */
    double *a, *step, *g, *q, *row; /* (R): potentials, a direction, gradient, workspace */
    double *tau, *mass;             /* (C): of columns: potentials, sums of d over free entries where full, else 0 */
    double *v, *d, *x, *u;          /* (C, R), u (R) */
    double *S;                      /* (R, R), its lower triangle: S, then its factor */
    double *line;                   /* (3, C) */
};

static fg_potentials *fg_make_potentials(const fg_spec *f, const double *w) {
    const sk_size R = f->rows < f->columns ? f->rows : f->columns, C = f->d / R;
    fg_potentials *t = malloc(sizeof *t);
    double *at;
    if (t == NULL) return NULL;
    at = t->a = calloc((size_t)(6 * R + 5 * C + 3 * R * C + R * R), sizeof(double));
    if (at == NULL) {
        free(t);
        return NULL;
    }
    t->R = R, t->C = C, t->equal = R == C;
    at += R;
    t->step = at, at += R;
    t->g = at, at += R;
    t->q = at, at += R;
    t->row = at, at += R;
    t->u = at, at += R;
    t->tau = at, at += C;
    t->mass = at, at += C;
    t->v = at, at += R * C;
    t->d = at, at += R * C;
    t->x = at, at += R * C;
    t->S = at, at += R * R;
    t->line = at;
    for (sk_size j = 0; j < C; j++)
        for (sk_size i = 0; i < R; i++) t->d[j * R + i] = 1.0 / w[f->rows > f->columns ? j * R + i : i * C + j];
    return t;
}

static void fg_free_potentials(fg_potentials *t) {
    if (t != NULL) free(t->a);
    free(t);
}

/* x = max(0, v - tau d), its sum, and that of d where it is positive */
SK_MULTI(void, fg_column_sweep,
         (sk_size n, const double *restrict v, const double *restrict d, double tau, double *restrict x, double *sum,
          double *slope),
         (n, v, d, tau, x, sum, slope)) {
    double s = 0.0, q = 0.0;
    SK_SIMD_WITH(reduction(+ : s, q)) for (sk_size i = 0; i < n; i++) {
        double y = v[i] - tau * d[i];
        q += y > 0.0 ? d[i] : 0.0;
        y = y > 0.0 ? y : 0.0;
        x[i] = y;
        s += y;
    }
    *sum = s;
    *slope = q;
}

/* The tau at which x sums to 1 (0 where it sums to less already and may): the sum is convex in tau, so that Newton's
 * method comes from the left after one step, and ends on the right piece. */
static double fg_column(sk_size n, const double *v, const double *d, int equal, double tau, double *x) {
    double sum, slope;
    if (!equal) {
        fg_column_sweep(n, v, d, 0.0, x, &sum, &slope);
        if (sum <= 1.0) return 0.0;
    }
    for (int round = 0; round < 100; round++) {
        double next;
        fg_column_sweep(n, v, d, tau, x, &sum, &slope);
        if (fabs(sum - 1.0) <= 2.0 * DBL_EPSILON) return tau;
        if (slope > 0.0) {
            next = tau + (sum - 1.0) / slope;
            if (round > 0 && next <= tau) return tau;
        } else {
            next = -DBL_MAX;
            for (sk_size i = 0; i < n; i++) next = (v[i] - 1.0) / d[i] > next ? (v[i] - 1.0) / d[i] : next;
        }
        tau = next;
    }
    fg_column_sweep(n, v, d, tau, x, &sum, &slope);
    return tau;
}

/* a start: each row by itself, so that what its scores have in common costs no steps and no digits */
static void fg_potentials_start(fg_potentials *t) {
    const sk_size R = t->R, C = t->C;
    double *v = t->line, *d = v + C;
    for (sk_size i = 0; i < R; i++) {
        for (sk_size j = 0; j < C; j++) v[j] = t->v[j * R + i], d[j] = t->d[j * R + i];
        t->a[i] = fg_column(C, v, d, 1, 0.0, d + C);
    }
}

/* answers at a + step times the direction; the slope of the dual along it. Returns the largest row's miss. */
static double fg_potentials_at(fg_potentials *t, double step, double *slope) {
    const sk_size R = t->R;
    double worst = 0.0;
    for (sk_size i = 0; i < R; i++) t->row[i] = t->a[i] + step * t->step[i], t->g[i] = 1.0;
    for (sk_size j = 0; j < t->C; j++) {
        double *x = t->x + j * R;
        const double *v = t->v + j * R, *d = t->d + j * R;
        for (sk_size i = 0; i < R; i++) t->u[i] = v[i] - t->row[i] * d[i];
        t->tau[j] = fg_column(R, t->u, d, t->equal, t->tau[j], x);
        for (sk_size i = 0; i < R; i++) t->g[i] -= x[i];
    }
    *slope = 0.0;
    for (sk_size i = 0; i < R; i++) {
        *slope += t->step[i] * t->g[i];
        worst = fabs(t->g[i]) > worst ? fabs(t->g[i]) : worst;
    }
    return worst;
}

/* to[0 .. n) -= s q[0 .. n), and the product of two rows */
SK_MULTI(void, fg_row_less,
         (sk_size n, double s, const double *restrict q, double *restrict to),
         (n, s, q, to)) {
    SK_SIMD for (sk_size i = 0; i < n; i++) to[i] -= s * q[i];
}

/* Cholesky factor of S + ridge in S's lower triangle; a row whose pivot is rounding becomes 0, with a diagonal of 0 */
static void fg_factor_rows(fg_potentials *t, double ridge) {
    const sk_size R = t->R;
    double *S = t->S;
    memset(S, 0, (size_t)(R * R) * sizeof(double));
    for (sk_size j = 0; j < t->C; j++) {
        const double *x = t->x + j * R, *d = t->d + j * R;
        double mass = 0.0, sum = 0.0;
        for (sk_size i = 0; i < R; i++) {
            sum += x[i];
            t->q[i] = x[i] > t->near ? d[i] : 0.0;
            mass += t->q[i];
            S[i * R + i] += t->q[i];
        }
        t->mass[j] = t->equal || t->tau[j] > 0.0 || (t->whole && sum > 1.0 - FG_FULL) ? mass : 0.0;
        if (!(t->mass[j] > 0.0)) continue;
        for (sk_size i = 0; i < R; i++)
            if (t->q[i] != 0.0) fg_row_less(i + 1, t->q[i] / mass, t->q, S + i * R);
    }
    for (sk_size i = 0; i < R; i++) t->q[i] = 0.0;
    for (sk_size j = 0; j < t->C; j++)
        for (sk_size i = 0; i < R; i++) t->q[i] += t->x[j * R + i] > t->near ? t->d[j * R + i] : 0.0;
    for (sk_size i = 0; i < R; i++) {
        double *row = S + i * R, pivot = row[i] + ridge;
        for (sk_size k = 0; k < i; k++) {
            const double *other = S + k * R;
            row[k] = other[k] > 0.0 ? (row[k] - fg_line_dot(k, row, other)) / other[k] : 0.0;
            pivot -= row[k] * row[k];
        }
        row[i] = pivot > FG_CLOSED * t->q[i] ? sqrt(pivot) : 0.0;
    }
}

/* r becomes a solution of S x = r, r in the range of S */
static void fg_solve_rows(const fg_potentials *t, double *r) {
    const sk_size R = t->R;
    for (sk_size i = 0; i < R; i++) {
        const double *row = t->S + i * R;
        r[i] = row[i] > 0.0 ? (r[i] - fg_line_dot(i, row, r)) / row[i] : 0.0;
    }
    for (sk_size i = R - 1; i >= 0; i--) {
        const double *row = t->S + i * R;
        r[i] = row[i] > 0.0 ? r[i] / row[i] : 0.0;
        if (r[i] != 0.0) fg_row_less(i, r[i], row, r);
    }
}

/* Newton's method on the dual; whether it came to the solution */
static int fg_potentials_newton(fg_potentials *t, fg_watch *watch) {
    const sk_size R = t->R, C = t->C;
    double slope, miss, last = DBL_MAX, tol = 0.0;
    int slow = 0;
    memset(t->step, 0, (size_t)R * sizeof(double));
    t->factored = t->whole = 0;
    miss = fg_potentials_at(t, 0.0, &slope);
    for (int it = 0; it < FG_POTENTIAL_STEPS; it++) {
        double size = 1.0, start, step = 1.0, lo = 0.0, hi = 0.0, at_lo, at_hi = 0.0, ridge;
        int found = 0;
        for (sk_size i = 0; i < R; i++) size = fabs(t->a[i]) > size ? fabs(t->a[i]) : size;
        for (sk_size j = 0; j < C; j++) size = fabs(t->tau[j]) > size ? fabs(t->tau[j]) : size;
        tol = 64.0 * DBL_EPSILON * size;
        t->near = 1e-14 * size;
        slow = miss > 0.5 * last ? slow + 1 : 0;
        /* rounding: what is missing is less than answers show */
        if (miss <= tol || (miss <= 100.0 * tol && slow > 1)) return 1;
        if (fg_stopped(watch, 8 * R * C) || fg_late(watch)) return 0;
        last = miss;
        /* rows without a free entry are moved by their gradients */
        ridge = miss > 1.0 ? 1e-2 : (miss < 1e-7 ? 1e-9 : 1e-2 * miss);
        fg_factor_rows(t, ridge);
        for (sk_size i = 0; i < R; i++) t->step[i] = -t->g[i];
        fg_solve_rows(t, t->step);
        start = at_lo = 0.0;
        for (sk_size i = 0; i < R; i++) start += t->step[i] * t->g[i];
        at_lo = start;
        if (!(start < 0.0)) return 0;
        if (fg_stopped(watch, R * R * C / 2)) return 0;
        /* the slope rises along the way: secants in a bracket */
        for (int trial = 0; trial < FG_POTENTIAL_TRIALS; trial++) {
            double next;
            miss = fg_potentials_at(t, step, &slope);
            if (fabs(slope) <= -0.9 * start || miss <= tol) {
                found = 1;
                break;
            }
            if (slope > 0.0) hi = step, at_hi = slope;
            else lo = step, at_lo = slope;
            if (hi == 0.0) {
                step *= 4.0;
                continue;
            }
            next = lo - at_lo * (hi - lo) / (at_hi - at_lo);
            step = next > lo + 0.05 * (hi - lo) ? next : lo + 0.05 * (hi - lo);
            step = step < hi - 0.05 * (hi - lo) ? step : hi - 0.05 * (hi - lo);
        }
        if (!found) return 0;
        for (sk_size i = 0; i < R; i++) t->a[i] += step * t->step[i];
    }
    return 0;
}

/* x for the scores v of a factor; whether it was found */
static int fg_potentials_solve(const fg_spec *f, fg_potentials *t, const double *v, int is_new, double *x,
                               fg_watch *watch) {
    const int turned = f->rows > f->columns;
    for (sk_size j = 0; j < t->C; j++)
        for (sk_size i = 0; i < t->R; i++) t->v[j * t->R + i] = v[turned ? j * t->R + i : i * t->C + j];
    if (is_new) fg_potentials_start(t);
    if (!fg_potentials_newton(t, watch)) return 0;
    for (sk_size j = 0; j < t->C; j++)
        for (sk_size i = 0; i < t->R; i++) {
            double y = t->x[j * t->R + i];
            x[turned ? j * t->R + i : i * t->C + j] = y > t->near ? y : 0.0;
        }
    return 1;
}

/* the Jacobian becomes that of the smallest face that the answer lies in: factor_face.h */
static void fg_potentials_complete(fg_potentials *t) {
    t->whole = 1;
    t->factored = 0;
}

/* y = J u of a matching by potentials: the projection on what leaves rows and full columns as they are */
static void fg_potentials_jvp(const fg_spec *f, fg_potentials *t, const double *u, double *y) {
    const sk_size R = t->R, C = t->C;
    const int turned = f->rows > f->columns;
    double *alpha = t->row;
    if (!t->factored) fg_factor_rows(t, 0.0);
    t->factored = 1;
    memset(alpha, 0, (size_t)R * sizeof(double));
    for (int pass = 0; pass < 3; pass++) {
        /* b, then y and what rows miss, for alpha so far: the second pass refines the first, the last one writes */
        memset(t->g, 0, (size_t)R * sizeof(double));
        for (sk_size j = 0; j < C; j++) {
            const double *x = t->x + j * R, *d = t->d + j * R;
            double b = 0.0;
            for (sk_size i = 0; i < R; i++) {
                sk_size s = turned ? j * R + i : i * C + j;
                y[s] = x[i] > t->near ? u[s] - alpha[i] * d[i] : 0.0;
                b += y[s];
            }
            b = t->mass[j] > 0.0 ? b / t->mass[j] : 0.0;
            for (sk_size i = 0; i < R; i++) {
                sk_size s = turned ? j * R + i : i * C + j;
                if (x[i] > t->near) y[s] -= b * d[i];
                t->g[i] += y[s];
            }
        }
        if (pass == 2) break;
        fg_solve_rows(t, t->g);
        for (sk_size i = 0; i < R; i++) alpha[i] += t->g[i];
    }
}

#endif
