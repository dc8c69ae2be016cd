/* Matchings of weak scores. Their mixtures have a structure for almost each variable, so the constraints of the
 * polytope replace structures. The smaller side is called rows (R), the other columns (C). A row has one partner; a
 * column has at most one, or exactly one if R = C. These constraints describe all mixtures of matchings (Birkhoff, von
 * Neumann).
 *
 * With d = 1 / w, x_ij = max(0, v_ij - d_ij (a_i + b_j)). For given a the best b projects each column on its simplex.
 * The remaining dual is convex and smooth in a, with the gradient 1 - sum_j x_ij. Its generalised Hessian S is the sum
 * of d_ij e_i e_i' over free entries, minus d_j d_j' / sum(d_j) for every full column. S is a Laplacian of the rows.
 * Newton's method ends exactly, since the dual is piecewise quadratic. */
#ifndef SPARSEKIT_FACTOR_MATCHING_H
#define SPARSEKIT_FACTOR_MATCHING_H

#include "factor_graph/factor_graph.h"
#include "factor_graph/factor_newton.h"
#include "factor_graph/factor_simplex.h"
#include "factor_graph/factor_span.h"

#define FG_POTENTIAL_STEPS 100
#define FG_POTENTIAL_TRIALS 50

struct fg_potentials {
    sk_size R, C;
    int equal;
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

/* Initial potentials: each row alone, since a constant in its scores would cost steps and digits. */
static void fg_potentials_start(fg_potentials *t) {
    const sk_size R = t->R, C = t->C;
    double *v = t->line, *d = v + C;
    for (sk_size i = 0; i < R; i++) {
        for (sk_size j = 0; j < C; j++) v[j] = t->v[j * R + i], d[j] = t->d[j * R + i];
        t->a[i] = fg_project_simplex(C, v, d, 1, 0.0, d + C);
    }
}

/* Evaluates x at a + step * direction; returns the largest error of a row's sum. */
static double fg_potentials_at(void *problem, double step, double *slope) {
    fg_potentials *t = problem;
    const sk_size R = t->R;
    double worst = 0.0;
    for (sk_size i = 0; i < R; i++) t->row[i] = t->a[i] + step * t->step[i], t->g[i] = 1.0;
    for (sk_size j = 0; j < t->C; j++) {
        double *x = t->x + j * R;
        const double *v = t->v + j * R, *d = t->d + j * R;
        for (sk_size i = 0; i < R; i++) t->u[i] = v[i] - t->row[i] * d[i];
        t->tau[j] = fg_project_simplex(R, t->u, d, t->equal, t->tau[j], x);
        for (sk_size i = 0; i < R; i++) t->g[i] -= x[i];
    }
    *slope = 0.0;
    for (sk_size i = 0; i < R; i++) {
        *slope += t->step[i] * t->g[i];
        worst = fabs(t->g[i]) > worst ? fabs(t->g[i]) : worst;
    }
    return worst;
}

/* S + ridge, factorised */
static void fg_factor_rows(fg_potentials *t, double ridge) {
    const sk_size R = t->R;
    double *S = t->S;
    memset(S, 0, (size_t)(R * R) * sizeof(double));
    for (sk_size j = 0; j < t->C; j++) {
        const double *x = t->x + j * R, *d = t->d + j * R;
        double mass = 0.0;
        for (sk_size i = 0; i < R; i++) {
            t->q[i] = x[i] > t->near ? d[i] : 0.0;
            mass += t->q[i];
            S[i * R + i] += t->q[i];
        }
        t->mass[j] = t->equal || t->tau[j] > 0.0 ? mass : 0.0;
        if (!(t->mass[j] > 0.0)) continue;
        for (sk_size i = 0; i < R; i++)
            if (t->q[i] != 0.0) fg_subtract_row(i + 1, t->q[i] / mass, t->q, S + i * R);
    }
    for (sk_size i = 0; i < R; i++) t->q[i] = 0.0;
    for (sk_size j = 0; j < t->C; j++)
        for (sk_size i = 0; i < R; i++) t->q[i] += t->x[j * R + i] > t->near ? t->d[j * R + i] : 0.0;
    fg_factor_hessian(R, R, ridge, t->q, S);
}

/* Largest error of a row's sum, and the size of its rounding. */
static double fg_potentials_miss(void *problem, double *rounding) {
    fg_potentials *t = problem;
    double size = 1.0, miss = 0.0;
    for (sk_size i = 0; i < t->R; i++) size = fabs(t->a[i]) > size ? fabs(t->a[i]) : size;
    for (sk_size j = 0; j < t->C; j++) size = fabs(t->tau[j]) > size ? fabs(t->tau[j]) : size;
    for (sk_size i = 0; i < t->R; i++) miss = fabs(t->g[i]) > miss ? fabs(t->g[i]) : miss;
    *rounding = 64.0 * DBL_EPSILON * size;
    t->near = 1e-14 * size;
    return miss;
}

/* The Newton direction, in `step`, and its slope. The ridge moves rows without a free entry by their gradients. */
static double fg_potentials_direction(void *problem, double ridge, double *most, fg_watch *watch) {
    fg_potentials *t = problem;
    double slope = 0.0;
    (void)most, (void)watch;
    fg_factor_rows(t, ridge);
    for (sk_size i = 0; i < t->R; i++) t->step[i] = -t->g[i];
    fg_solve_hessian(t->R, t->R, t->S, t->step);
    for (sk_size i = 0; i < t->R; i++) slope += t->step[i] * t->g[i];
    return slope;
}

static void fg_potentials_move(void *problem, double step) {
    fg_potentials *t = problem;
    for (sk_size i = 0; i < t->R; i++) t->a[i] += step * t->step[i];
}

/* Newton's method on the dual; whether it converged. */
static int fg_potentials_newton(fg_potentials *t, fg_watch *watch) {
    static const fg_smooth_dual dual = {fg_potentials_miss, fg_potentials_direction, fg_potentials_at,
                                        fg_potentials_move, 1e-2, FG_POTENTIAL_TRIALS};
    int steps = FG_POTENTIAL_STEPS;
    double slope;
    memset(t->step, 0, (size_t)t->R * sizeof(double));
    fg_potentials_at(t, 0.0, &slope);
    return fg_minimize_dual(&dual, t, &steps, t->R * t->C * (8 + t->R / 2), watch) >= 0.0;
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

/* Equations of the smallest face around the answer: rows and full columns, of the entries in use. Columns come first,
 * since the matrix of theirs is diagonal. */
static int fg_potentials_equations(const fg_spec *f, const fg_potentials *t, fg_rows *a) {
    const sk_size R = t->R, C = t->C;
    const int turned = f->rows > f->columns;
    double *sums = t->line;
    if (!fg_rows_begin(a, C + R, R * C, 2 * R * C)) return 0;
    for (sk_size j = 0; j < C; j++) {
        sums[j] = 0.0;
        for (sk_size i = 0; i < R; i++) sums[j] += t->x[j * R + i];
    }
    for (sk_size s = 0; s < R * C; s++) {
        const sk_size j = turned ? s / R : s % C, i = turned ? s % R : s / C;
        if (t->x[j * R + i] > t->near) {
            if (sums[j] > 1.0 - FG_SUM_TOLERANCE) fg_rows_enter(a, j, 1.0);
            fg_rows_enter(a, C + i, 1.0);
        }
        fg_rows_next(a);
    }
    return 1;
}

#endif
