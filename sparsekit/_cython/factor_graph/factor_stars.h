/* Projective trees whose scores rank heads alike for all words, as when training starts from 0. With v[i, h] = a_i +
 * b_h the answer is a mixture of stars, the trees with one head for all words. x[i, h] = p_h, where p is the projection
 * of b on the simplex: every head in use is then optimal for every word.
 *
 * The smallest face around such mixtures is a flow through intervals of words. Start at a root and attach words from
 * the outside. Of the words strictly between a and b, either the first gets the head b or the last gets the head a; the
 * others remain. Each arc is one such step, so trees of the face are paths, and what enters an interval leaves it. With
 * x[modifier, head] this is:
 *     x[a, b] + x[b, a] = x[a + 1, b] + x[b - 1, a].
 * At the root r it is x[r, r] = x[n - 1, r] = x[0, r], and the roots sum to 1. These n (n + 1) / 2 equations imply one
 * head a word. */
#ifndef SPARSEKIT_FACTOR_STARS_H
#define SPARSEKIT_FACTOR_STARS_H

#include "factor_graph/factor_active.h"
#include "factor_graph/factor_equations.h"
#include "factor_graph/factor_simplex.h"

/* largest rounding error of an equation: without and with other factors that change the scores */
#define FG_STAR_TOLERANCE 1e-12
#define FG_STAR_TOLERANCE_SHARED 1e-10

/* p (n): the weights of stars, and whether their mixture is the answer. work: (n). */
static int fg_star_weights(const fg_spec *f, const double *v, const double *w, double *p, double *work) {
    const sk_size n = f->columns;
    for (sk_size h = 0; h < n; h++) work[h] = 1.0 / w[h];
    fg_project_simplex(n, v, work, 1, 0.0, p);
    for (sk_size i = 0; i < n; i++) {
        double top = -INFINITY, mean = 0.0, size = 0.0;
        for (sk_size h = 0; h < n; h++) {
            const double u = w[i * n + h] * (v[i * n + h] - p[h]);
            top = u > top ? u : top;
            mean += p[h] > 0.0 ? p[h] * u : 0.0;
            size = p[h] > 0.0 && fabs(u) > size ? fabs(u) : size;
        }
        if (!(top - mean <= 16.0 * DBL_EPSILON * size)) return 0;
    }
    return 1;
}

/* Adds the stars if their mixture is the answer; whether there was memory. work: (2 d). */
static int fg_use_stars(const fg_spec *f, fg_active *t, const double *v, const double *w, double *work) {
    const sk_size n = f->columns;
    double *p = work + f->d;
    if (!fg_star_weights(f, v, w, p, work)) return 1;
    memset(work, 0, (size_t)f->d * sizeof(double));
    t->shift = 0.0;
    for (sk_size root = 0; root < n; root++) {
        if (!(p[root] > 0.0)) continue;
        if (!fg_grow(f, t)) return 0;
        for (sk_size i = 0; i < n; i++) t->on[t->m * n + i] = (int32_t)(i * n + root);
        fg_factor_row(f, t, w, work);
        t->p[t->m++] = p[root];
    }
    return 1;
}

/* Index of the interval from a to b, b - a >= 2, of n words. Narrow ones come first, so that intervals with a common
 * arc are near each other. */
static sk_size fg_interval(sk_size n, sk_size a, sk_size b) {
    const sk_size width = b - a;
    return (width - 2) * n - (width - 2) * (width + 1) / 2 + a;
}

/* Rows and signs of the equations with the arc from h to word i; returns how many, at most 3. i == h: from the root. */
static int fg_star_equations(sk_size n, sk_size i, sk_size h, sk_size *row, double *value) {
    const sk_size inner = n > 2 ? (n - 1) * (n - 2) / 2 : 0;
    int count = 0;
    if (i == h) { /* right of the root, and left of it */
        if (i < n - 1) row[count] = inner + 2 * i, value[count++] = 1.0;
        if (i > 0) row[count] = inner + 2 * i - 1, value[count++] = 1.0;
        row[count] = inner + 2 * (n - 1), value[count++] = 1.0;
        return count;
    }
    /* into the interval between them, out of the one wider by a word */
    if (i > h + 1 || h > i + 1) row[count] = fg_interval(n, i < h ? i : h, i < h ? h : i), value[count++] = 1.0;
    value[count] = -1.0;
    if (h < i) row[count++] = i == n - 1 ? inner + 2 * h : fg_interval(n, h, i + 1);
    else row[count++] = i == 0 ? inner + 2 * h - 1 : fg_interval(n, i - 1, h);
    return count;
}

SK_INLINE sk_size fg_n_star_equations(sk_size n) { return n * (n + 1) / 2; }

/* whether x lies in the face, to `most`; sum: n (n + 1) / 2 */
static int fg_is_of_stars(const fg_spec *f, const double *x, double most, double *sum) {
    const sk_size n = f->columns, n_row = fg_n_star_equations(n);
    double miss = 0.0, value[3];
    sk_size row[3];
    memset(sum, 0, (size_t)n_row * sizeof(double));
    sum[n_row - 1] = -1.0;
    for (sk_size i = 0; i < n * n; i++) {
        const int count = x[i] > 0.0 ? fg_star_equations(n, i / n, i % n, row, value) : 0;
        for (int k = 0; k < count; k++) sum[row[k]] += value[k] * x[i];
    }
    for (sk_size r = 0; r < n_row; r++) miss = fabs(sum[r]) > miss ? fabs(sum[r]) : miss;
    return miss <= most;
}

/* The equations of the face of x, those of the arcs in use; whether there was memory. */
static int fg_span_stars(const fg_spec *f, const double *x, fg_span *s) {
    const sk_size n = f->columns;
    sk_size row[3];
    double value[3];
    if (!fg_rows_begin(&s->on, fg_n_star_equations(n), n * n, 3 * n * n)) return 0;
    for (sk_size i = 0; i < n * n; i++) {
        const int count = x[i] > FG_NO_WEIGHT ? fg_star_equations(n, i / n, i % n, row, value) : 0;
        for (int k = 0; k < count; k++) fg_rows_enter(&s->on, row[k], value[k]);
        fg_rows_next(&s->on);
    }
    return 1;
}

#endif
