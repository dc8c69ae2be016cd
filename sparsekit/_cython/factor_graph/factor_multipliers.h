/* Matchings and nonprojective trees of weak scores. Their mixtures have a structure for almost each variable, so the
 * constraints of the polytope replace structures.
 *
 * Variables lie in blocks, whose sums are 1 or at most 1. Each further constraint sums variables to at least 1; the
 * first ones to exactly 1. With multipliers y of these, a block is a projection on a simplex: x = max(0, v + d (sums of
 * y - tau)), d = 1 / w. The dual is concave and smooth in y, with the gradient 1 - sums of x. Its generalised Hessian S
 * sums d over the free entries of two constraints. Each full block subtracts the product of their sums in it, divided
 * by its own sum. Newton's method ends exactly, since the dual is piecewise quadratic. */
#ifndef SPARSEKIT_FACTOR_MULTIPLIERS_H
#define SPARSEKIT_FACTOR_MULTIPLIERS_H

#include "factor_graph/factor_graph.h"
#include "factor_graph/factor_newton.h"
#include "factor_graph/factor_simplex.h"
#include "factor_graph/tree_cuts.h"

/* largest numbers of Newton steps, trials of a line search, and changes of a step's active set */
#define FG_MULTIPLIER_STEPS 100
#define FG_MULTIPLIER_TRIALS 50
#define FG_MULTIPLIER_ROUNDS 100

struct fg_multipliers {
    sk_size n, width;                /* blocks, and entries of each */
    sk_size m, n_equal, capacity;    /* constraints, those with equality, and how many fit */
    sk_size most_entry;              /* how many entries of constraints fit */
    int equal;                       /* whether blocks sum to exactly 1 */
    int by_place;                    /* whether place j of each block has constraint j alone: there are no lists */
    double near;                     /* an entry not above this is 0 */
    double *v, *d, *x, *u;           /* (n, width) */
    double *tau;                     /* (n): potentials of blocks */
    double *g, *y, *step, *to;       /* (capacity): gradient, multipliers, a direction, where it leads */
    double *own, *part;              /* (capacity): sums of d over free entries: of all, and of a block's */
    sk_size *in, *at, n_in;          /* (capacity): constraints that count; their index among these, else -1 */
    sk_size *on, *keep, n_on;        /* (capacity): indices in `in` of free constraints; workspace */
    sk_size *none, *row;             /* (capacity): zeros; where rows of L begin */
    sk_size *start, *first;          /* (capacity + 1), (n width + 1): where lists of constraints and entries begin */
    int32_t *entry, *by;             /* (most_entry): entries of each constraint, constraints of each entry */
    double *S, *L;                   /* (size, size): the Hessian of `in`, and a factor of the part `on` */
    sk_size size;
    sk_cuts flow;                    /* of trees */
    double *matching;                /* of matchings: workspace of the best one, which begins with prices (n) */
    sk_size *partner;                /* (width): of matchings, the block of each constraint in the best one */
};

static void fg_free_multipliers(fg_multipliers *t) {
    if (t != NULL) free(t->v), free(t->g), free(t->start), free(t->entry), free(t->S);
    free(t);
}

/* Allocates buffers for so many constraints; whether it succeeded. */
static int fg_grow_constraints(fg_multipliers *t, sk_size least) {
    const sk_size capacity = 2 * least;
    double *at, *g, *y;
    sk_size *start;
    if (least <= t->capacity) return 1;
    start = realloc(t->start, (size_t)(capacity + 1) * sizeof(sk_size));
    if (start == NULL) return 0;
    if (t->start == NULL) start[0] = 0;
    t->start = start;
    at = calloc((size_t)(12 * capacity), sizeof(double));
    if (at == NULL) return 0;
    g = sk_take(&at, capacity);
    y = sk_take(&at, capacity);
    if (t->m > 0) memcpy(y, t->y, (size_t)t->m * sizeof(double));
    free(t->g);
    t->capacity = capacity;
    t->g = g;
    t->y = y;
    t->step = sk_take(&at, capacity);
    t->to = sk_take(&at, capacity);
    t->own = sk_take(&at, capacity);
    t->part = sk_take(&at, capacity);
    t->in = sk_take_indices(&at, capacity);
    t->at = sk_take_indices(&at, capacity);
    t->on = sk_take_indices(&at, capacity);
    t->keep = sk_take_indices(&at, capacity);
    t->none = sk_take_indices(&at, capacity);
    t->row = sk_take_indices(&at, capacity);
    return 1;
}

/* Makes room for a constraint, whose entries begin at entry[start[m]]; whether it succeeded. */
static int fg_begin_constraint(fg_multipliers *t, sk_size n_entry) {
    int32_t *entry;
    sk_size least;
    if (!fg_grow_constraints(t, t->m + 1)) return 0;
    least = t->start[t->m] + n_entry;
    if (least <= t->most_entry) return 1;
    entry = realloc(t->entry, (size_t)(4 * least) * sizeof(int32_t));
    if (entry == NULL) return 0;
    t->entry = entry;
    t->most_entry = 2 * least;
    t->by = entry + t->most_entry;
    return 1;
}

/* Lists the constraints of each entry. */
static void fg_index_constraints(fg_multipliers *t) {
    const sk_size d = t->n * t->width, end = t->start[t->m];
    if (t->by_place) return;
    memset(t->first, 0, (size_t)(d + 1) * sizeof(sk_size));
    for (sk_size l = 0; l < end; l++) t->first[t->entry[l] + 1]++;
    for (sk_size e = 0; e < d; e++) t->first[e + 1] += t->first[e];
    for (sk_size k = 0; k < t->m; k++)
        for (sk_size l = t->start[k]; l < t->start[k + 1]; l++) t->by[t->first[t->entry[l]]++] = (int32_t)k;
    for (sk_size e = d; e > 0; e--) t->first[e] = t->first[e - 1];
    t->first[0] = 0;
}

SK_INLINE int fg_is_held(const fg_multipliers *t, const double *y, sk_size k) { return y[k] > 0.0 || k < t->n_equal; }

/* x for the multipliers y, and the gradient there */
static void fg_multipliers_at(fg_multipliers *t, const double *y) {
    const sk_size width = t->width, *first = t->first;
    const int32_t *by = t->by;
    for (sk_size k = 0; k < t->m; k++) t->g[k] = 1.0;
    for (sk_size i = 0; i < t->n; i++) {
        const sk_size at = i * width;
        for (sk_size j = 0; t->by_place && j < width; j++) t->u[at + j] = t->v[at + j] + y[j] * t->d[at + j];
        for (sk_size e = at; !t->by_place && e < at + width; e++) {
            double sum = 0.0;
            for (sk_size l = first[e]; l < first[e + 1]; l++) sum += y[by[l]];
            t->u[e] = t->v[e] + sum * t->d[e];
        }
        t->tau[i] = fg_project_simplex(width, t->u + at, t->d + at, t->equal, t->tau[i], t->x + at);
        for (sk_size j = 0; t->by_place && j < width; j++) t->g[j] -= t->x[at + j];
        for (sk_size e = at; !t->by_place && e < at + width; e++)
            for (sk_size l = first[e]; t->x[e] > 0.0 && l < first[e + 1]; l++) t->g[by[l]] -= t->x[e];
    }
}

/* Largest entry of the projected gradient at y; `rounding`: the scale of its rounding errors. */
static double fg_multipliers_miss(fg_multipliers *t, const double *y, double *rounding) {
    double miss = 0.0, size = 1.0;
    for (sk_size i = 0; i < t->n; i++) size = fabs(t->tau[i]) > size ? fabs(t->tau[i]) : size;
    for (sk_size k = 0; k < t->m; k++) {
        const double g = fg_is_held(t, y, k) ? fabs(t->g[k]) : t->g[k];
        miss = g > miss ? g : miss;
        size = fabs(y[k]) > size ? fabs(y[k]) : size;
    }
    *rounding = 64.0 * DBL_EPSILON * size;
    t->near = 1e-14 * size;
    return miss;
}

static int fg_grow_factor(fg_multipliers *t, sk_size K) {
    const int is_fixed = K == t->n_equal; /* equalities alone are factorised once: L may overwrite S */
    const sk_size size = is_fixed ? K : 2 * K;
    double *S;
    if (K <= t->size) return 1;
    S = realloc(t->S, (size_t)((is_fixed ? 1 : 2) * size * size) * sizeof(double));
    if (S == NULL) return 0;
    t->size = size;
    t->S = S;
    t->L = is_fixed ? S : S + size * size;
    return 1;
}

/* part (n_in): sums of d over a block's free entries, 0 for a constraint without curvature there. Returns the block's
 * own sum. */
static double fg_block_sums(fg_multipliers *t, sk_size i, int is_full) {
    double mass = 0.0;
    memset(t->part, 0, (size_t)t->n_in * sizeof(double));
    for (sk_size e = i * t->width; e < (i + 1) * t->width; e++) {
        if (!(t->x[e] > t->near)) continue;
        mass += t->d[e];
        if (t->by_place) t->part[e - i * t->width] = t->d[e];
        for (sk_size l = t->first[e]; l < t->first[e + 1]; l++)
            if (t->at[t->by[l]] >= 0) t->part[t->at[t->by[l]]] += t->d[e];
    }
    for (sk_size r = 0; is_full && r < t->n_in; r++)
        if (!(t->part[r] < mass)) t->part[r] = 0.0;
    return mass;
}

/* S: the Hessian for the constraints `in`; own: its diagonal without what full blocks subtract */
static void fg_multipliers_hessian(fg_multipliers *t) {
    const sk_size K = t->n_in, size = t->size;
    for (sk_size k = 0; k < t->m; k++) t->at[k] = -1;
    for (sk_size r = 0; r < K; r++) {
        t->at[t->in[r]] = r;
        t->own[r] = 0.0;
        memset(t->S + r * size, 0, (size_t)(r + 1) * sizeof(double));
    }
    for (sk_size i = 0; i < t->n; i++) {
        const int is_full = t->equal || t->tau[i] > 0.0;
        const double mass = fg_block_sums(t, i, is_full);
        for (sk_size e = i * t->width; !t->by_place && e < (i + 1) * t->width; e++) {
            if (!(t->x[e] > t->near)) continue;
            for (sk_size l = t->first[e]; l < t->first[e + 1]; l++) {
                const sk_size r = t->at[t->by[l]];
                if (r < 0 || t->part[r] == 0.0) continue;
                for (sk_size j = t->first[e]; j < l; j++) {
                    const sk_size c = t->at[t->by[j]];
                    if (c >= 0 && t->part[c] != 0.0) t->S[r * size + c] += t->d[e];
                }
            }
        }
        for (sk_size r = 0; r < K; r++) {
            if (t->part[r] == 0.0) continue;
            t->own[r] += t->part[r];
            t->S[r * size + r] += t->part[r];
            if (is_full) fg_subtract_row(r + 1, t->part[r] / mass, t->part, t->S + r * size);
        }
    }
    for (sk_size r = 0; r < K && K > t->n_equal; r++) /* fg_multipliers_step reads the upper triangle of inequalities */
        for (sk_size c = 0; c < r; c++) t->S[c * size + r] = t->S[r * size + c];
}

/* Cholesky factor of S + ridge for the constraints `on`; `to` is work */
static void fg_factor_multipliers(fg_multipliers *t, double ridge) {
    for (sk_size r = 0; r < t->n_on; r++) {
        const double *from = t->S + t->on[r] * t->size;
        for (sk_size k = 0; k <= r; k++) t->L[r * t->size + k] = from[t->on[k]];
        t->to[r] = t->own[t->on[r]];
        t->row[r] = r * t->size;
    }
    fg_factor_hessian(t->n_on, t->none, t->row, ridge, t->to, t->L);
}

/* step (n_in) maximises the dual's quadratic model minus `ridge` step^2 / 2 subject to y + step >= 0 of inequalities.
 * Those that would fall below 0 are fixed there and freed if their gradient is positive, until none changes. */
static void fg_multipliers_step(fg_multipliers *t, double ridge) {
    const sk_size K = t->n_in;
    double *z = t->to;
    t->n_on = 0;
    for (sk_size r = 0; r < K; r++) t->step[r] = 0.0, t->on[t->n_on++] = r;
    for (int round = 0; round < FG_MULTIPLIER_ROUNDS; round++) {
        sk_size kept = 0, at = 0;
        int moved = 0;
        fg_factor_multipliers(t, ridge);
        for (sk_size a = 0; a < t->n_on; a++) {
            const double *row = t->S + t->on[a] * t->size;
            sk_size next = 0;
            z[a] = t->g[t->in[t->on[a]]];
            for (sk_size r = 0; r < K; r++) {
                if (next < t->n_on && t->on[next] == r) next++;
                else z[a] += row[r] * t->y[t->in[r]];
            }
        }
        fg_solve_hessian(t->n_on, t->none, t->row, t->L, z);
        for (sk_size r = 0; r < K; r++) {
            if (at < t->n_on && t->on[at] == r) t->step[r] = z[at++];
            else t->step[r] = -t->y[t->in[r]];
        }
        at = 0;
        for (sk_size r = 0; r < K; r++) {
            const sk_size k = t->in[r];
            const int is_on = at < t->n_on && t->on[at] == r;
            at += is_on;
            if (is_on && k >= t->n_equal && t->y[k] + t->step[r] < 0.0) moved = 1;
            else if (is_on) t->keep[kept++] = r;
            else {
                double gain = t->g[k] - ridge * t->step[r];
                for (sk_size c = 0; c < K; c++) gain -= t->S[r * t->size + c] * t->step[c];
                if (gain > 0.0 && round < FG_MULTIPLIER_ROUNDS / 2) t->keep[kept++] = r, moved = 1;
            }
        }
        if (!moved) return;
        memcpy(t->on, t->keep, (size_t)kept * sizeof(sk_size));
        t->n_on = kept;
    }
}

/* Evaluates x at y + length * direction, in `to`. fg_line_search minimises, so the slope's sign is changed. */
static double fg_multipliers_trial(void *problem, double length, double *slope) {
    fg_multipliers *t = problem;
    double rounding;
    for (sk_size k = 0; k < t->m; k++) {
        t->to[k] = t->y[k] + length * t->step[k];
        if (t->to[k] < 1e-15 * fabs(t->y[k]) && k >= t->n_equal) t->to[k] = 0.0;
    }
    fg_multipliers_at(t, t->to);
    *slope = 0.0;
    for (sk_size k = 0; k < t->m; k++) *slope -= t->step[k] * t->g[k];
    return fg_multipliers_miss(t, t->to, &rounding);
}

/* The Newton direction, in `step`, for constraints with a multiplier or a positive gradient. Returns its slope,
 * negative; 0: no memory. most: the longest step with all multipliers of inequalities >= 0. */
static double fg_multipliers_direction(fg_multipliers *t, double ridge, double *most) {
    double slope = 0.0;
    t->n_in = 0;
    for (sk_size k = 0; k < t->m; k++)
        if (fg_is_held(t, t->y, k) || t->g[k] > 0.0) t->in[t->n_in++] = k;
    if (!fg_grow_factor(t, t->n_in)) return 0.0;
    fg_multipliers_hessian(t);
    fg_multipliers_step(t, ridge);
    memcpy(t->to, t->step, (size_t)t->n_in * sizeof(double));
    memset(t->step, 0, (size_t)t->m * sizeof(double));
    for (sk_size r = 0; r < t->n_in; r++) {
        const sk_size k = t->in[r];
        t->step[k] = t->to[r];
        slope -= t->step[k] * t->g[k];
        if (t->step[k] < 0.0 && k >= t->n_equal && t->y[k] < -*most * t->step[k]) *most = -t->y[k] / t->step[k];
    }
    return slope;
}

/* Newton's method on the dual for the known constraints, until the residual is rounding: at most its size, or slightly
 * above and no longer decreasing. Returns whether it converged; `tol`: the residual, at least its rounding. */
static int fg_multipliers_newton(fg_multipliers *t, double *tol, fg_watch *watch) {
    const sk_size work = (4 + t->m) * t->n * t->width;
    fg_progress progress = FG_PROGRESS_BEGIN;
    fg_index_constraints(t);
    fg_multipliers_at(t, t->y);
    for (int it = 0;; it++) {
        double rounding, most = DBL_MAX, step, slope, *swap = t->y;
        double miss = fg_multipliers_miss(t, t->y, &rounding);
        *tol = miss > rounding ? miss : rounding;
        if (fg_is_rounding(&progress, miss, rounding)) return 1;
        if (it == FG_MULTIPLIER_STEPS || fg_stopped(watch, work) || fg_late(watch)) return 0;
        slope = fg_multipliers_direction(t, fg_ridge(1e-2, miss), &most);
        if (!(slope < 0.0)) return 0;
        if (!fg_line_search(t, fg_multipliers_trial, slope, rounding, most, FG_MULTIPLIER_TRIALS, &step, &miss)) return 0;
        t->y = t->to; /* the last trial */
        t->to = swap;
    }
}

#endif
