/* What matchings and nonprojective trees have as blocks and constraints (factor_multipliers.h).
 *
 * A block of a matching belongs to a member of the larger side; each member of the smaller side has one partner. Blocks
 * sum to 1 if the sides are equal. These constraints describe all mixtures of matchings (Birkhoff, von Neumann).
 *
 * A block of a tree belongs to a word, which has one head. Arcs enter every set of words at least once, with a single
 * root the set of all words exactly once. These constraints describe all mixtures of arborescences (Edmonds, 1967). Few
 * sets are tight unless scores are strong. Newton's method solves for the known sets; maximum flows then find violated
 * ones, until none is. */
#ifndef SPARSEKIT_FACTOR_BLOCKS_H
#define SPARSEKIT_FACTOR_BLOCKS_H

#include "factor_graph/factor_multipliers.h"
#include "factor_graph/factor_span.h"

#define FG_CUT_ROUNDS 100

/* Whether a factor's rows and columns are exchanged in its blocks, so that the smaller side has constraints. */
SK_INLINE int fg_is_turned(const fg_spec *f) { return f->rows < f->columns; }

/* to (columns, rows) = from (rows, columns)' */
static void fg_turn(sk_size rows, sk_size columns, const double *from, double *to) {
    for (sk_size j = 0; j < columns; j++)
        for (sk_size i = 0; i < rows; i++) to[j * rows + i] = from[i * columns + j];
}

/* to (n, width): a factor's variables in blocks */
static void fg_to_blocks(const fg_spec *f, const double *from, double *to) {
    if (fg_is_turned(f)) fg_turn(f->rows, f->columns, from, to);
    else memcpy(to, from, (size_t)f->d * sizeof(double));
}

/* Appends the constraint of a set of words, with a multiplier of 0, unless it is one of the first `known`. Returns
 * whether it was appended, -1: no memory. */
static int fg_add_set(fg_multipliers *t, const unsigned char *words, sk_size known) {
    const sk_size n = t->n;
    sk_size begin, end;
    if (!fg_begin_constraint(t, n * n)) return -1;
    begin = end = t->start[t->m];
    for (sk_size i = 0; i < n; i++)
        for (sk_size j = 0; words[i] && j < n; j++) /* the arc to a word from itself is that from the root */
            if (j == i || !words[j]) t->entry[end++] = (int32_t)(i * n + j);
    for (sk_size k = 0; k < known; k++) {
        const int32_t *other = t->entry + t->start[k];
        const sk_size size = t->start[k + 1] - t->start[k];
        if (size == end - begin && !memcmp(other, t->entry + begin, (size_t)size * sizeof(int32_t))) return 0;
    }
    t->y[t->m] = 0.0;
    t->start[++t->m] = end;
    return 1;
}

static fg_multipliers *fg_make_multipliers(const fg_spec *f, const double *w) {
    const int is_tree = f->kind == FG_TREE;
    const sk_size d = f->d, n = fg_is_turned(f) ? f->columns : f->rows;
    const sk_size width = d / n, extra = is_tree ? sk_cuts_buffer_size(n) : width + sk_matching_buffer_size(width, n);
    fg_multipliers *t = calloc(1, sizeof *t);
    double *at;
    int ready;
    if (t == NULL) return NULL;
    at = t->v = calloc((size_t)(5 * d + 1 + n + extra), sizeof(double));
    ready = at != NULL && fg_grow_constraints(t, n + 8);
    if (ready) {
        t->n = n, t->width = width, t->equal = n * n == d;
        t->v = sk_take(&at, d);
        t->d = sk_take(&at, d);
        t->x = sk_take(&at, d);
        t->u = sk_take(&at, d);
        t->first = sk_take_indices(&at, d + 1);
        t->tau = sk_take(&at, n);
        fg_to_blocks(f, w, t->d);
        for (sk_size e = 0; e < d; e++) t->d[e] = 1.0 / t->d[e];
        t->by_place = !is_tree;
        t->n_equal = is_tree ? f->flag : t->width;
        t->m = is_tree ? 0 : t->width;
    }
    if (ready && !is_tree) {
        t->partner = sk_take_indices(&at, width);
        t->matching = at;
    }
    if (ready && is_tree) {
        sk_cuts_take(&t->flow, n, at);
        memset(t->flow.seen, 1, (size_t)n);
        if (t->n_equal) ready = fg_add_set(t, t->flow.seen, 0) > 0;
    }
    if (ready) return t;
    fg_free_multipliers(t);
    return NULL;
}

/* Initial multipliers of a matching: the prices of the best one. Rows' and columns' constants are in them, which would
 * cost many steps. */
static void fg_start_multipliers(fg_multipliers *t) {
    const sk_size n = t->n, K = t->width;
    double *scores = t->u;
    for (sk_size i = 0; i < n; i++)
        for (sk_size k = 0; k < K; k++) scores[k * n + i] = t->v[i * K + k] / t->d[i * K + k];
    sk_matching(K, n, scores, t->partner, t->matching);
    for (sk_size k = 0; k < K; k++) {
        const double y = t->matching[t->partner[k]] - scores[k * n + t->partner[k]];
        t->y[k] = fabs(y) < INFINITY ? y : 0.0; /* no partner may be allowed */
    }
    memcpy(t->tau, t->matching, (size_t)n * sizeof(double)); /* which begins with the prices */
}

/* Removes sets without multipliers. The dual has risen since they were added, so this cannot cycle. */
static void fg_drop_sets(fg_multipliers *t) {
    sk_size kept = t->n_equal;
    for (sk_size k = kept; k < t->m; k++) {
        const sk_size begin = t->start[k], size = t->start[k + 1] - begin;
        if (!(t->y[k] > 0.0)) continue;
        memmove(t->entry + t->start[kept], t->entry + begin, (size_t)size * sizeof(int32_t));
        t->y[kept] = t->y[k];
        t->start[kept + 1] = t->start[kept] + size;
        kept++;
    }
    t->m = kept;
}

/* Adds the violated sets; returns their number, -1 if a flow failed. */
static sk_size fg_find_sets(fg_multipliers *t, double tol, fg_watch *watch) {
    const sk_size n = t->n;
    sk_size before, to;
    double lacks;
    if (t->m > 3 * n) fg_drop_sets(t);
    before = t->m;
    sk_cuts_begin(&t->flow, t->x);
    while ((to = sk_cuts_next(&t->flow, t->x, &lacks)) >= 0) {
        double enters = 0.0;
        if (fg_stopped(watch, 2 * n * n)) return -1;
        if (!(lacks > tol)) continue;
        if (fg_add_set(t, t->flow.seen, before) <= 0) return -1; /* Newton did not satisfy it */
        for (sk_size l = t->start[t->m - 1]; l < t->start[t->m]; l++) enters += t->x[t->entry[l]];
        if (!(enters < 1.0 - 0.5 * tol)) return -1;
    }
    return t->m - before;
}

/* Adds the sets that the smallest face around the answer has: all sets that are entered exactly once. The smallest
 * tight sets with a word and one of its heads span the others: cuts are modular on sets that meet. Maximum flows to the
 * word find them. */
static int fg_complete_sets(fg_multipliers *t, fg_watch *watch) {
    const sk_size n = t->n;
    fg_drop_sets(t);
    for (sk_size i = 0; i < n; i++) {
        sk_cuts_begin(&t->flow, t->x);
        sk_cuts_max_flow(&t->flow, t->x, i);
        sk_cuts_reach(&t->flow, FG_SUM_TOLERANCE);
        if (fg_stopped(watch, 2 * n * n)) return FG_INTERRUPTED;
        for (sk_size j = 0; j < n; j++) {
            if (j == i || !(t->x[i * n + j] > 0.0) || t->flow.source[j]) continue;
            sk_cuts_closure(&t->flow, i, j, FG_SUM_TOLERANCE);
            sk_cuts_merge_alike(&t->flow, j, FG_SUM_TOLERANCE);
            if (fg_add_set(t, t->flow.seen, t->m) < 0) return FG_NO_MEMORY;
        }
    }
    return 0;
}

/* x (d) for the scores v; whether it was found. is_new: the last answer was not the multipliers'. */
static int fg_solve_multipliers(const fg_spec *f, fg_multipliers *t, const double *v, int is_new, double *x,
                                fg_watch *watch) {
    const sk_size width = t->width;
    double tol;
    fg_to_blocks(f, v, t->v);
    for (sk_size i = 0; f->kind == FG_TREE && i < t->n; i++) { /* a constant in a block's scores would cost digits */
        double *u = t->v + i * width, *d = t->d + i * width, top = -DBL_MAX;
        for (sk_size j = 0; j < width; j++) top = u[j] / d[j] > top ? u[j] / d[j] : top;
        for (sk_size j = 0; j < width; j++) u[j] -= top * d[j];
    }
    if (is_new && f->kind == FG_MATCHING) fg_start_multipliers(t);
    for (int round = 0; round < FG_CUT_ROUNDS; round++) {
        sk_size found = 0;
        if (!fg_multipliers_newton(t, &tol, watch)) return 0;
        for (sk_size e = 0; e < f->d; e++) t->x[e] = t->x[e] > t->near ? t->x[e] : 0.0;
        if (f->kind == FG_TREE) {
            if (fg_late(watch)) return 0;
            found = fg_find_sets(t, 4.0 * tol + 1e-13 * (double)t->n, watch);
        }
        if (found > 0) continue;
        if (fg_is_turned(f)) fg_turn(f->columns, f->rows, t->x, x);
        else memcpy(x, t->x, (size_t)f->d * sizeof(double));
        return found == 0;
    }
    return 0;
}

/* Equations of the answer's face, of the entries in use: full blocks, and constraints with a multiplier, or all if
 * `whole`. Blocks come first, since the matrix of theirs is diagonal. */
static int fg_multipliers_equations(const fg_spec *f, fg_multipliers *t, int whole, fg_rows *a) {
    const sk_size n = t->n, width = t->width;
    double *sums = t->u;
    fg_index_constraints(t);
    if (!fg_rows_begin(a, n + t->m, f->d, f->d + (t->by_place ? f->d : t->start[t->m]))) return 0;
    for (sk_size i = 0; i < n; i++) {
        sums[i] = 0.0;
        for (sk_size j = 0; j < width; j++) sums[i] += t->x[i * width + j];
    }
    for (sk_size s = 0; s < f->d; s++) {
        const sk_size e = fg_is_turned(f) ? s % n * width + s / n : s;
        if (t->x[e] > 0.0 && sums[e / width] > 1.0 - FG_SUM_TOLERANCE) fg_rows_enter(a, e / width, 1.0);
        if (t->x[e] > 0.0 && t->by_place) fg_rows_enter(a, n + e % width, 1.0);
        for (sk_size l = t->first[e]; t->x[e] > 0.0 && l < t->first[e + 1]; l++)
            if (whole || fg_is_held(t, t->y, t->by[l])) fg_rows_enter(a, n + t->by[l], 1.0);
        fg_rows_next(a);
    }
    return 1;
}

#endif
