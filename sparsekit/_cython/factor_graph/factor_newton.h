/* Newton's methods on the duals of projections: line search, ridge, stopping at rounding, and factors of singular
 * matrices. */
#ifndef SPARSEKIT_FACTOR_NEWTON_H
#define SPARSEKIT_FACTOR_NEWTON_H

#include <float.h>

#include "factor_graph/factor_triangle.h"
#include "factor_graph/factor_watch.h"
#include "line_search.h"

/* largest pivot, relative to the diagonal, that counts as rounding */
#define FG_PIVOT_TOLERANCE 1e-10

/* Evaluates a problem at a step along its direction: returns the residual. The slope increases with the step. */
typedef double (*fg_trial)(void *problem, double step, double *slope);

/* Line search: a step of at most `most` that shrinks the slope, `start` < 0 at 0, by a tenth, or the residual to `tol`.
 * Whether there is one: the longest step has a negative slope, or trials suffice. */
static int fg_line_search(void *problem, fg_trial at, double start, double tol, double most, int trials, double *step,
                          double *miss) {
    sk_bracket bracket = {0.0, 0.0, start, 0.0, 0.0};
    *step = most < 1.0 ? most : 1.0;
    for (int trial = 0; trial < trials; trial++) {
        double slope;
        *miss = at(problem, *step, &slope);
        if (fabs(slope) <= -0.9 * start || *miss <= tol) return 1;
        if (!(slope > 0.0) && bracket.hi == 0.0 && !(*step < most)) return 1;
        *step = sk_next_step(&bracket, *step, slope, most);
    }
    return 0;
}

/* Residual after the last step, and the number of successive steps that did not halve it. */
typedef struct {
    double last;
    int slow;
} fg_progress;

#define FG_PROGRESS_BEGIN {DBL_MAX, 0}

/* Whether the residual is rounding of size `tol`: at most `tol`, or slightly above and no longer decreasing. */
static int fg_is_rounding(fg_progress *p, double miss, double tol) {
    p->slow = miss > 0.5 * p->last ? p->slow + 1 : 0;
    p->last = miss;
    return miss <= tol || (miss <= 100.0 * tol && p->slow > 1);
}

/* Ridge of a Newton step: it bounds steps without curvature and vanishes with the residual. */
SK_INLINE double fg_ridge(double most, double miss) {
    return miss > 1.0 ? most : (most * miss > 1e-9 ? most * miss : 1e-9);
}

/* to[0 .. n) -= s q[0 .. n) */
SK_MULTI(void, fg_subtract_row,
         (sk_size n, double s, const double *restrict q, double *restrict to),
         (n, s, q, to)) {
    SK_SIMD for (sk_size i = 0; i < n; i++) to[i] -= s * q[i];
}

/* Cholesky factor of H + ridge in H's lower triangle, of which row i holds the columns from first[i] on, at H[at[i]]. A
 * row whose pivot is rounding of `own` depends on those before it: its diagonal becomes 0. */
static void fg_factor_hessian(sk_size n, const sk_size *first, const sk_size *at, double ridge, const double *own,
                              double *H) {
    for (sk_size i = 0; i < n; i++) {
        double *row = H + at[i] - first[i], pivot = row[i] + ridge;
        for (sk_size k = first[i]; k < i; k++) {
            const double *other = H + at[k] - first[k];
            const sk_size from = first[i] > first[k] ? first[i] : first[k];
            const double s = from < k ? row[k] - fg_line_dot(k - from, row + from, other + from) : row[k];
            row[k] = other[k] > 0.0 ? s / other[k] : 0.0;
            pivot -= row[k] * row[k];
        }
        row[i] = pivot > FG_PIVOT_TOLERANCE * own[i] ? sqrt(pivot) : 0.0;
    }
}

/* r becomes a solution of L L' x = r, a consistent system. */
static void fg_solve_hessian(sk_size n, const sk_size *first, const sk_size *at, const double *L, double *r) {
    for (sk_size i = 0; i < n; i++) {
        const double *row = L + at[i] - first[i];
        r[i] = row[i] > 0.0 ? (r[i] - fg_line_dot(i - first[i], row + first[i], r + first[i])) / row[i] : 0.0;
    }
    for (sk_size i = n - 1; i >= 0; i--) {
        const double *row = L + at[i] - first[i];
        r[i] = row[i] > 0.0 ? r[i] / row[i] : 0.0;
        if (r[i] != 0.0) fg_subtract_row(i - first[i], r[i], row + first[i], r + first[i]);
    }
}

#endif
