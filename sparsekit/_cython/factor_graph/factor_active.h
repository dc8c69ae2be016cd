/* SparseMAP of a factor with a MAP oracle, and its Jacobian: the active-set method (Nocedal and Wright, 16.5; Niculae
 * et al., 2018). K = M' W M + shift 1 1' on the structures in use. The shift changes nothing where the weights sum to
 * 1. It makes K regular if the structures are affinely independent. A structure that depends on the others replaces one
 * of them at once, since the objective is linear along that direction. Structures, weights and the factor persist
 * between calls. */
#ifndef SPARSEKIT_FACTOR_ACTIVE_H
#define SPARSEKIT_FACTOR_ACTIVE_H

#include "factor_graph/factor_graph.h"
#include "factor_graph/factor_oracles.h"
#include "factor_graph/factor_span.h"
#include "factor_graph/factor_triangle.h"

/* largest squared distance to the span of the others, relative to the structure's squared norm, that counts as
 * dependent */
#define FG_DEPENDENT 1e-9
/* largest difference of two scores that counts as rounding, relative to the scores */
#define FG_SCORE_ROUNDING (16.0 * DBL_EPSILON)
/* largest residual of a product with the Jacobian that counts as rounding, relative to the differences of scores. With
 * 1e-13 some derivatives of trees are wrong by 1e-5. Refining each product, tables take 1.3 times as long. */
#define FG_JACOBIAN_ROUNDING 1e-15
/* number of structures up to which a pass over L costs less than the rest of a step */
#define FG_SMALL_FACTOR 64

/* Grows the buffers by one structure; whether that succeeded. */
static int fg_grow(const fg_spec *f, fg_active *t) {
    sk_size m = t->m, size = t->size, more;
    double *L, *old = t->p;
    if (m < size) return 1;
    more = size ? 2 * size : 8;
    if (f->kind == FG_CUSTOM) {
        double *value = realloc(t->value, (size_t)(more * (f->d + f->n_add)) * sizeof(double));
        if (value == NULL) return 0;
        t->value = value;
    } else {
        int32_t *on = realloc(t->on, (size_t)(more * f->n_on) * sizeof(int32_t)), *bonus;
        if (on == NULL) return 0;
        t->on = on;
        bonus = realloc(t->bonus, (size_t)(more * f->n_bonus + 1) * sizeof(int32_t));
        if (bonus == NULL) return 0;
        t->bonus = bonus;
    }
    /* one block: p, ones, target, load, unit, turn, L */
    L = malloc((size_t)(more * (more + 7)) * sizeof(double));
    if (L == NULL) return 0;
    memset(L, 0, (size_t)(5 * more) * sizeof(double));
    for (sk_size i = 0; i < m; i++) {
        L[i] = t->p[i];
        L[more + i] = t->ones[i]; /* derivatives read it, even if the last structure does not enter */
        L[3 * more + i] = t->load[i];
        L[4 * more + i] = t->unit[i];
        memcpy(L + 7 * more + i * more, t->L + i * size, (size_t)m * sizeof(double));
    }
    t->p = L;
    t->ones = L + more;
    t->target = L + 2 * more;
    t->load = L + 3 * more;
    t->unit = L + 4 * more;
    t->turn = L + 5 * more;
    t->L = L + 7 * more;
    t->size = more;
    free(old);
    return 1;
}

static void fg_release(fg_active *t) {
    free(t->on);
    free(t->bonus);
    free(t->value);
    free(t->p);
    fg_span_release(t->span);
}

/* x = L^-1 x, and x = L^-T x */
SK_INLINE void fg_forward(const fg_active *t, sk_size m, double *x) { fg_lower_forward(m, t->size, t->L, 1, x); }

SK_INLINE void fg_backward(const fg_active *t, sk_size m, double *x) { fg_lower_back(m, t->size, t->L, x); }

/* x = Q x: K^-1 x on what sums to 0 (eq. 38, where the shift drops out) */
static double fg_project(const fg_active *t, double *x) {
    double total = 0.0, ones = 0.0;
    fg_forward(t, t->m, x);
    fg_backward(t, t->m, x);
    for (sk_size k = 0; k < t->m; k++) total += x[k], ones += t->ones[k];
    for (sk_size k = 0; k < t->m; k++) x[k] -= total / ones * t->ones[k];
    return total / ones;
}

static void fg_set_ones(fg_active *t) {
    for (sk_size k = 0; k < t->m; k++) t->ones[k] = 1.0;
    fg_forward(t, t->m, t->ones);
    fg_backward(t, t->m, t->ones);
}

/* Removes structure `gone`. */
static void fg_remove_structure(const fg_spec *f, fg_active *t, sk_size gone) {
    sk_size m = t->m;
    memmove(t->p + gone, t->p + gone + 1, (size_t)(m - 1 - gone) * sizeof(double));
    if (f->kind == FG_CUSTOM) {
        sk_size n = f->d + f->n_add;
        memmove(t->value + gone * n, t->value + (gone + 1) * n, (size_t)((m - 1 - gone) * n) * sizeof(double));
    } else {
        memmove(t->on + gone * f->n_on, t->on + (gone + 1) * f->n_on,
                (size_t)((m - 1 - gone) * f->n_on) * sizeof(int32_t));
        memmove(t->bonus + gone * f->n_bonus, t->bonus + (gone + 1) * f->n_bonus,
                (size_t)((m - 1 - gone) * f->n_bonus) * sizeof(int32_t));
    }
    fg_lower_remove_row(m, t->size, t->L, gone, t->load, t->unit, t->turn);
    t->m = m - 1;
}

/* Writes row `index` of K, up to the diagonal, over that of L; returns the diagonal entry. wu: d zeros. */
static double fg_gram_row(const fg_spec *f, fg_active *t, sk_size index, const double *w, double *wu) {
    double *row = t->L + index * t->size, own;
    fg_add_parts(f, t, index, 1.0, wu, NULL);
    for (sk_size i = 0; i < f->d; i++) wu[i] *= w[i];
    own = fg_of_parts(f, t, index, wu, NULL);
    if (t->shift == 0.0) t->shift = own > 0.0 ? own : 1.0;
    for (sk_size k = 0; k < index; k++) row[k] = fg_of_parts(f, t, k, wu, NULL) + t->shift;
    memset(wu, 0, (size_t)f->d * sizeof(double));
    return own + t->shift;
}

/* Computes the pivot of row `index` of L from its other entries; returns its square relative to K's diagonal. */
static double fg_pivot(fg_active *t, sk_size index, double own) {
    double *row = t->L + index * t->size;
    const double pivot = own - fg_line_dot(index, row, row);
    row[index] = sqrt(pivot > 0.0 ? pivot : 0.0);
    return pivot / own;
}

/* Computes the row of L for structure m; returns the pivot's square relative to K's diagonal. wu: d zeros. */
static double fg_factor_row(const fg_spec *f, fg_active *t, const double *w, double *wu) {
    const double own = fg_gram_row(f, t, t->m, w, wu);
    fg_forward(t, t->m, t->L + t->m * t->size);
    return fg_pivot(t, t->m, own);
}

/* Whether structure m equals one before it. */
static int fg_is_in_use(const fg_spec *f, const fg_active *t) {
    for (sk_size k = 0; k < t->m; k++) {
        int same;
        if (f->kind == FG_CUSTOM) {
            sk_size n = f->d + f->n_add;
            same = !memcmp(t->value + k * n, t->value + t->m * n, (size_t)n * sizeof(double));
        } else
            same = !memcmp(t->on + k * f->n_on, t->on + t->m * f->n_on, (size_t)f->n_on * sizeof(int32_t)) &&
                   !memcmp(t->bonus + k * f->n_bonus, t->bonus + t->m * f->n_bonus,
                           (size_t)f->n_bonus * sizeof(int32_t));
        if (same) return 1;
    }
    return 0;
}

/* Writes the best structure for scores u, c at index m and its score to `best`; returns a status. */
static int fg_call_oracle(const fg_spec *f, fg_active *t, const double *u, const double *c, double *work, double *best) {
    if (!fg_grow(f, t)) return FG_NO_MEMORY;
    t->calls++;
    if (f->kind == FG_CUSTOM) {
        if (fg_custom(f->object, f->d, f->n_add, u, c, t->value + t->m * (f->d + f->n_add))) return FG_ORACLE_FAILED;
    } else
        fg_maximize(f, u, c, t->on + t->m * f->n_on, t->bonus + t->m * f->n_bonus, work);
    *best = fg_of_parts(f, t, t->m, u, c);
    return 0;
}

/* Recomputes load = L^-1 scores and unit = L^-1 1; wv (d): w times v. */
static void fg_refresh(const fg_spec *f, fg_active *t, const double *wv, const double *c) {
    for (sk_size k = 0; k < t->m; k++) t->load[k] = fg_of_parts(f, t, k, wv, c), t->unit[k] = 1.0;
    fg_forward(t, t->m, t->load);
    fg_forward(t, t->m, t->unit);
}

/* Adds structure m, whose row of L is computed, with weight p. */
static void fg_add_structure(const fg_spec *f, fg_active *t, double p, const double *wv, const double *c) {
    const sk_size m = t->m;
    const double *row = t->L + m * t->size;
    t->load[m] = (fg_of_parts(f, t, m, wv, c) - fg_line_dot(m, row, t->load)) / row[m];
    t->unit[m] = (1.0 - fg_line_dot(m, row, t->unit)) / row[m];
    t->p[m] = p;
    t->m++;
}

/* target = K^-1 (scores - level), with sum 1; returns the level. `exact` adds one step of iterative refinement, three
 * passes over L in all. x, u (d) are workspace. */
static double fg_solve_weights(const fg_spec *f, fg_active *t, int exact, const double *v, const double *w, const double *c,
                        double *x, double *u) {
    const sk_size m = t->m;
    const double ones = fg_line_dot(m, t->unit, t->unit);
    double level = (fg_line_dot(m, t->unit, t->load) - 1.0) / ones, *r = t->ones, total = 0.0, more;
    for (sk_size k = 0; k < m; k++) t->target[k] = t->load[k] - level * t->unit[k];
    fg_backward(t, m, t->target);
    level += t->shift;
    if (!exact) return level;
    memset(x, 0, (size_t)f->d * sizeof(double));
    for (sk_size k = 0; k < m; k++) fg_add_parts(f, t, k, t->target[k], x, NULL), total += t->target[k];
    for (sk_size i = 0; i < f->d; i++) u[i] = w[i] * (v[i] - x[i]);
    for (sk_size k = 0; k < m; k++) r[k] = fg_of_parts(f, t, k, u, c) - level;
    fg_forward(t, m, r);
    more = (fg_line_dot(m, t->unit, r) - (1.0 - total)) / ones;
    for (sk_size k = 0; k < m; k++) r[k] -= more * t->unit[k];
    fg_backward(t, m, r);
    for (sk_size k = 0; k < m; k++) t->target[k] += r[k];
    return level + more;
}

/* Minimises the loss over weights of sum 1. Structures whose weight reaches 0 are removed. Of several new ones without
 * weight the last leaves first: the first one lowers the loss. */
static double fg_minimize_weights(const fg_spec *f, fg_active *t, int exact, const double *v, const double *w, const double *c,
                       double *x, double *u, fg_watch *watch) {
    for (;;) {
        sk_size gone = -1, m = t->m;
        const double level = fg_solve_weights(f, t, exact, v, w, c, x, u);
        double step = 1.0;
        t->spent += (double)(m * (f->n_on + 2 * m));
        for (sk_size k = 0; k < m; k++)
            if (t->target[k] <= 0.0) {
                double s = t->p[k] > 0.0 ? t->p[k] / (t->p[k] - t->target[k]) : 0.0;
                if (gone < 0 || s <= step) gone = k, step = s;
            }
        if (gone < 0 || m == 1) {
            for (sk_size k = 0; k < m; k++) t->p[k] = m == 1 ? 1.0 : t->target[k];
            return level;
        }
        for (sk_size k = 0; k < m; k++) t->p[k] += step * (t->target[k] - t->p[k]);
        fg_remove_structure(f, t, gone);
        /* the weights are valid here, so the loop may stop */
        if (fg_stopped(watch, t->m * (f->n_on + 4 * t->m)) || fg_late(watch)) return level;
    }
}

/* Calls the oracle for more structures, up to `most` with structure m, which scores `best`. Each is best after a step
 * of Frank and Wolfe's method from x, of score `level`, to the one before it. x and u are workspace; along: d zeros. */
static int fg_call_oracle_ahead(const fg_spec *f, fg_active *t, sk_size most, double level, double best,
                                const double *w, const double *c, double *x, double *u, double *along, double *work,
                                sk_size *count) {
    const sk_size m = t->m, d = f->d;
    int status = 0;
    while (*count < most && best > level) {
        double curvature = 0.0, step;
        for (sk_size i = 0; i < d; i++) along[i] = -x[i];
        fg_add_parts(f, t, t->m, 1.0, along, NULL);
        for (sk_size i = 0; i < d; i++) curvature += w[i] * along[i] * along[i];
        step = best - level < curvature ? (best - level) / curvature : 1.0;
        for (sk_size i = 0; i < d; i++) x[i] += step * along[i], u[i] -= step * w[i] * along[i];
        level = fg_of_parts(f, t, t->m++, u, c); /* that of x as well, where the step ends */
        if ((status = fg_call_oracle(f, t, u, c, work, &best)) || fg_is_in_use(f, t)) break;
        ++*count;
    }
    t->m = m;
    memset(along, 0, (size_t)d * sizeof(double));
    return status;
}

/* x (d) becomes the solution for v, w (d), c (n_add), after at most `rounds` calls of the oracle */
static int fg_active_solve(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                           sk_size rounds, double *x, double *work, fg_watch *watch) {
    double *u = work, *wu = work + f->d, *wv = work + 2 * f->d, best;
    int status = 0, lost = 0, exact = t->m < FG_SMALL_FACTOR;
    /* estimated work of an oracle call; too small for the largest factors only */
    const sk_size effort = f->d * (f->rows + f->columns);
    t->solved = 0;
    work += 3 * f->d;
    for (sk_size i = 0; i < f->d; i++) wv[i] = w[i] * v[i];
    memset(wu, 0, (size_t)f->d * sizeof(double));
    if (t->m == 0) {
        if ((status = fg_call_oracle(f, t, wv, c, work, &best))) return status;
        t->shift = 0.0;
        fg_factor_row(f, t, w, wu);
        t->p[0] = 1.0;
        t->m = 1;
    }
    fg_refresh(f, t, wv, c);
    for (sk_size round = 0; round <= rounds; round++) {
        const double level = fg_minimize_weights(f, t, exact, v, w, c, x, u, watch);
        const sk_size first = t->m, calls = t->calls;
        double size = (double)f->n_on, miss;
        sk_size count = 1, most = exact ? 1 : first / FG_SMALL_FACTOR;
        memset(x, 0, (size_t)f->d * sizeof(double));
        for (sk_size k = 0; k < t->m; k++) fg_add_parts(f, t, k, t->p[k], x, NULL);
        if (fg_stopped(watch, effort + t->m * (f->d + t->m))) {
            status = FG_INTERRUPTED;
            break;
        }
        if (round == rounds || lost || fg_late(watch) || (t->most > 0.0 && t->spent > t->most)) break;
        for (sk_size i = 0; i < f->d; i++) u[i] = w[i] * (v[i] - x[i]);
        if ((status = fg_call_oracle(f, t, u, c, work, &best))) break;
        /* scale of rounding errors in the scores, which are sums of n_on parts */
        size += fabs(level) + fabs(best);
        if (!(best > level + FG_SCORE_ROUNDING * size) || fg_is_in_use(f, t)) {
            t->solved = exact;
            if (exact) break;
            exact = 1;
            continue;
        }
        most = most < rounds - round ? most : rounds - round;
        if ((status = fg_call_oracle_ahead(f, t, most, level, best, w, c, x, u, wu, work, &count))) break;
        round += t->calls - calls - 1;
        t->spent += 0.25 * (double)((t->calls - calls) * f->d * f->columns);
        for (sk_size k = first; k < first + count; k++) t->target[k] = fg_gram_row(f, t, k, w, wu);
        fg_lower_forward(first, t->size, t->L, count, t->L + first * t->size);
        miss = fg_pivot(t, first, t->target[first]);
        if (miss <= FG_DEPENDENT) {
            double *along = t->target, step = DBL_MAX;
            sk_size gone = -1, m = t->m;
            memcpy(along, t->L + m * t->size, (size_t)m * sizeof(double));
            fg_backward(t, m, along);
            for (sk_size k = 0; k < m; k++)
                if (along[k] > 1e-12 && t->p[k] < step * along[k]) gone = k, step = t->p[k] / along[k];
            if ((lost = gone < 0)) continue;
            for (sk_size k = 0; k < m; k++) t->p[k] -= step * along[k];
            t->p[m] = step;
            t->m = m + 1; /* its row of L is invalid, but is shifted with the others */
            fg_remove_structure(f, t, gone);
            t->m = m - 1;
            if (fg_factor_row(f, t, w, wu) > 0.01 * FG_DEPENDENT) fg_add_structure(f, t, t->p[m - 1], wv, c);
            else { /* nearly dependent on the rest as well: leave it out */
                for (sk_size k = 0; k < m - 1; k++) t->p[k] /= 1.0 - step;
                lost = 1;
            }
        } else
            fg_add_structure(f, t, 0.0, wv, c);
        for (sk_size k = 1; k < count && miss > FG_DEPENDENT; k++) {
            double *row = t->L + t->m * t->size;
            for (sk_size j = first; j < t->m; j++)
                row[j] = (row[j] - fg_line_dot(j, row, t->L + j * t->size)) / t->L[j * t->size + j];
            miss = fg_pivot(t, t->m, t->target[t->m]);
            if (miss > FG_DEPENDENT) fg_add_structure(f, t, 0.0, wv, c);
        }
        /* updates of L lose digits, which the last steps need */
        exact = t->m < FG_SMALL_FACTOR || miss <= FG_DEPENDENT || best - level < 1e-8 * size;
    }
    fg_set_ones(t); /* derivatives read it */
    return status;
}

/* x = J (v, c), and c = J_N' W x: eq. (39). c may be NULL where there is none. */
static void fg_active_jvp(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                          double *x, double *work) {
    double *wv = work, first = 0.0;
    if (t->span != NULL) {
        fg_span_jvp(f, t->span, v, w, c, x);
        return;
    }
    memset(x, 0, (size_t)f->d * sizeof(double));
    for (int refined = 0; refined < 2; refined++) { /* K may have a large condition number */
        for (sk_size i = 0; i < f->d; i++) wv[i] = w[i] * ((v == NULL ? 0.0 : v[i]) - x[i]);
        double low = INFINITY, high = -INFINITY;
        for (sk_size k = 0; k < t->m; k++) {
            t->target[k] = fg_of_parts(f, t, k, wv, c);
            low = t->target[k] < low ? t->target[k] : low;
            high = t->target[k] > high ? t->target[k] : high;
        }
        if (!(high - low > FG_JACOBIAN_ROUNDING * first)) break; /* the projection of a constant is 0 */
        first = high - low;
        fg_project(t, t->target);
        for (sk_size k = 0; k < t->m; k++) fg_add_parts(f, t, k, t->target[k], x, NULL);
    }
}

static void fg_active_vjp(const fg_spec *f, fg_active *t, const double *x, const double *w, double *c, double *work) {
    double *wx = work;
    if (t->span != NULL) {
        fg_span_vjp(f, t->span, x, c);
        return;
    }
    for (sk_size i = 0; i < f->d; i++) wx[i] = w[i] * x[i];
    for (sk_size k = 0; k < t->m; k++) t->target[k] = fg_of_parts(f, t, k, wx, NULL);
    fg_project(t, t->target);
    memset(c, 0, (size_t)f->n_add * sizeof(double));
    for (sk_size k = 0; k < t->m; k++) fg_add_parts(f, t, k, t->target[k], NULL, c);
}

#endif
