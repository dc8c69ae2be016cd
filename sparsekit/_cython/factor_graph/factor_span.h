/* Directions within a face that is known by equations: A x = 0 for the variables inside, 0 for the others. */
#ifndef SPARSEKIT_FACTOR_SPAN_H
#define SPARSEKIT_FACTOR_SPAN_H

#include "factor_graph/factor_graph.h"
#include "factor_graph/factor_newton.h"

/* Equations by column, and the Cholesky factor of A D A' within its envelope. Dependent equations have a pivot of 0 and
 * are left out. */
typedef struct {
    sk_size n_row, n_column, n_entry;
    sk_size *start;                     /* (n_column + 1) */
    sk_size *first, *at;                /* (n_row), (n_row + 1): the envelope's columns, and where they lie */
    int32_t *row;                       /* (n_entry) */
    double *value, *L, *y;              /* (n_entry), the envelope, (n_row) */
} fg_rows;

/* Equations of the variables, and of parts with additional scores, whose sums are variables (FG_SEQUENCE). */
typedef struct fg_span {
    fg_rows on, part;
    int32_t *arc;                       /* (part.n_column): additional scores */
} fg_span;

static void fg_rows_release(fg_rows *a) {
    free(a->start);
    free(a->first);
    free(a->row);
    free(a->value);
    free(a->L);
}

static void fg_span_release(fg_span *s) {
    if (s == NULL) return;
    fg_rows_release(&s->on);
    fg_rows_release(&s->part);
    free(s->arc);
    free(s);
}

/* Allocates a matrix that fg_rows_enter fills column by column. */
static int fg_rows_begin(fg_rows *a, sk_size n_row, sk_size n_column, sk_size n_entry) {
    a->n_row = n_row;
    a->n_column = a->n_entry = 0;
    a->start = calloc((size_t)(n_column + 1), sizeof(sk_size));
    a->first = calloc((size_t)(2 * n_row + 1), sizeof(sk_size));
    a->row = calloc((size_t)(n_entry + 1), sizeof(int32_t));
    a->value = calloc((size_t)(n_entry + n_row + 1), sizeof(double));
    if (a->start == NULL || a->first == NULL || a->row == NULL || a->value == NULL) return 0;
    a->at = a->first + n_row;
    a->y = a->value + n_entry;
    return 1;
}

SK_INLINE void fg_rows_enter(fg_rows *a, sk_size row, double value) {
    a->row[a->n_entry] = (int32_t)row;
    a->value[a->n_entry++] = value;
}

SK_INLINE void fg_rows_next(fg_rows *a) { a->start[++a->n_column] = a->n_entry; }

/* A D A' and its factor; scale (n_column): D's diagonal, or NULL */
static int fg_rows_factor(fg_rows *a, const double *scale) {
    for (sk_size r = 0; r < a->n_row; r++) a->first[r] = r;
    for (sk_size j = 0; j < a->n_column; j++) {
        sk_size least = a->n_row;
        for (sk_size k = a->start[j]; k < a->start[j + 1]; k++) least = a->row[k] < least ? a->row[k] : least;
        for (sk_size k = a->start[j]; k < a->start[j + 1]; k++)
            if (least < a->first[a->row[k]]) a->first[a->row[k]] = least;
    }
    a->at[0] = 0;
    for (sk_size r = 0; r < a->n_row; r++) a->at[r + 1] = a->at[r] + r - a->first[r] + 1;
    a->L = calloc((size_t)(a->at[a->n_row] + 1), sizeof(double));
    if (a->L == NULL) return 0;
    for (sk_size j = 0; j < a->n_column; j++) {
        const double d = scale == NULL ? 1.0 : scale[j];
        for (sk_size k = a->start[j]; k < a->start[j + 1]; k++)
            for (sk_size l = a->start[j]; l < a->start[j + 1]; l++) {
                const sk_size r = a->row[k], c = a->row[l];
                if (c <= r) a->L[a->at[r] + c - a->first[r]] += d * a->value[k] * a->value[l];
            }
    }
    for (sk_size r = 0; r < a->n_row; r++) a->y[r] = a->L[a->at[r] + r - a->first[r]];
    fg_factor_hessian(a->n_row, a->first, a->at, 0.0, a->y, a->L);
    return 1;
}

/* y becomes a solution of A D A' x = y, a consistent system. */
static void fg_rows_solve(const fg_rows *a, double *y) { fg_solve_hessian(a->n_row, a->first, a->at, a->L, y); }

/* Factorises the equations with D = W^-1; whether there was memory. */
static int fg_span_ready(const fg_spec *f, const double *w, fg_span *s) {
    double *scale = malloc((size_t)(f->d + 1) * sizeof(double));
    int ready = scale != NULL;
    for (sk_size i = 0; ready && i < f->d; i++) scale[i] = 1.0 / w[i];
    ready = ready && fg_rows_factor(&s->on, scale) && (s->arc == NULL || fg_rows_factor(&s->part, NULL));
    free(scale);
    return ready;
}

/* y = A x, or x -= D A' y; columns are the entries of x in `index`, or all */
SK_INLINE double fg_rows_column(const fg_rows *a, sk_size j) {
    double s = 0.0;
    for (sk_size k = a->start[j]; k < a->start[j + 1]; k++) s += a->value[k] * a->y[a->row[k]];
    return s;
}

static void fg_rows_times(const fg_rows *a, const double *x, const int32_t *index) {
    memset(a->y, 0, (size_t)a->n_row * sizeof(double));
    for (sk_size j = 0; j < a->n_column; j++) {
        const double value = x[index == NULL ? j : index[j]];
        for (sk_size k = a->start[j]; k < a->start[j + 1]; k++) a->y[a->row[k]] += a->value[k] * value;
    }
}

/* x = J (v, c), as in fg_active_jvp. Columns of variables outside the face are empty: they stay at 0. Among parts with
 * the same sums the one of least norm counts. */
static void fg_span_jvp(const fg_spec *f, const fg_span *s, const double *v, const double *w, const double *c,
                        double *x) {
    const sk_size K = f->columns;
    for (sk_size i = 0; i < f->d; i++) x[i] = v == NULL ? 0.0 : v[i];
    if (c != NULL && s->arc != NULL) {
        fg_rows_times(&s->part, c, s->arc);
        fg_rows_solve(&s->part, s->part.y);
        for (sk_size i = 0; i < f->d; i++) {
            const sk_size t = i / K, k = i % K;
            if (t + 1 < f->rows) x[i] += s->part.y[2 * t * K + k] / w[i];
            if (t > 0) x[i] += s->part.y[(2 * t - 1) * K + k] / w[i];
        }
    }
    for (sk_size i = 0; i < f->d; i++)
        if (s->on.start[i] == s->on.start[i + 1]) x[i] = 0.0;
    fg_rows_times(&s->on, x, NULL);
    fg_rows_solve(&s->on, s->on.y);
    for (sk_size i = 0; i < f->d; i++) x[i] -= fg_rows_column(&s->on, i) / w[i];
}

/* c = derivative of the parts as the variables move by x, which is in the span */
static void fg_span_vjp(const fg_spec *f, const fg_span *s, const double *x, double *c) {
    const sk_size K = f->columns;
    memset(c, 0, (size_t)f->n_add * sizeof(double));
    if (s->arc == NULL) return;
    for (sk_size i = 0; i < f->d; i++) {
        const sk_size t = i / K, k = i % K;
        if (t + 1 < f->rows) s->part.y[2 * t * K + k] = x[i];
        if (t > 0) s->part.y[(2 * t - 1) * K + k] = x[i];
    }
    fg_rows_solve(&s->part, s->part.y);
    for (sk_size j = 0; j < s->part.n_column; j++) c[s->arc[j]] = fg_rows_column(&s->part, j);
}

#endif
