/* The linear system of a chain's potentials, block after block along it.
 *
 * Potentials a belong to the tags before a transition, b to those after it. Their matrix is the Hessian of
 *     sum_t W_t^-1 (a_t + b_t-1)^2 + sum_ij D_ij (a_i + b_j)^2.
 * The first sum is over positions, the first of them projected on sum 0; the second is over transitions.
 * Elimination from the first position to the last takes K^3 operations a transition and has no fill-in. */
#ifndef SPARSEKIT_FACTOR_CHAIN_H
#define SPARSEKIT_FACTOR_CHAIN_H

#include "factor_graph/factor_graph.h"

/* a chain's problem, its potentials, and its flow E: the weight of each transition */
struct fg_flow {
    sk_size T, K, n_arc;                /* n_arc: transitions that may be taken */
    double eps, eps0;                   /* of the proximal point method, and before potentials were absorbed */
    int absorbed;                       /* times that v and c have absorbed the potentials */
    double moved;                       /* step along da, db that a, b have made */
    double *v, *iw, *x;                 /* (T, K): scores, 1 / w, answer; both scores and 1 / w are 0 where never on */
    double *c, *E;                      /* (T - 1, K, K): scores, -inf where never taken, and weights */
    double *a, *b, *ra, *rb, *da, *db;  /* (T - 1, K): potentials, gradients, a direction */
    double *a0, *b0;                    /* (T - 1, K): potentials that v and c have absorbed */
    double *ta, *tb, *R, *C;            /* (T - 1, K): another direction; sums of D's rows and columns */
    double *A, *Y, *B, *Z, *Q;          /* (T - 1, K, K): factors; upper triangles of A and B; D comes in Y; 1 / slack */
};

static fg_flow *fg_make_flow(const fg_spec *f) {
    const sk_size T = f->rows, K = f->columns, n = T * K, m = (T - 1) * K, arcs = m * K;
    fg_flow *t = calloc(1, sizeof *t);
    double *at;
    if (t == NULL) return NULL;
    at = t->v = calloc((size_t)(3 * n + 12 * m + 7 * arcs + 1), sizeof(double));
    if (at == NULL) {
        free(t);
        return NULL;
    }
    t->T = T, t->K = K;
    at += n;
    t->iw = at, at += n;
    t->x = at, at += n;
    t->a = at, at += m;
    t->b = at, at += m;
    t->a0 = at, at += m;
    t->b0 = at, at += m;
    t->ra = at, at += m;
    t->rb = at, at += m;
    t->da = at, at += m;
    t->db = at, at += m;
    t->ta = at, at += m;
    t->tb = at, at += m;
    t->R = at, at += m;
    t->C = at, at += m;
    t->c = at, at += arcs;
    t->E = at, at += arcs;
    t->A = at, at += arcs;
    t->Y = at, at += arcs;
    t->B = at, at += arcs;
    t->Z = at, at += arcs;
    t->Q = at;
    return t;
}

static void fg_free_flow(fg_flow *t) {
    if (t != NULL) free(t->v);
    free(t);
}

/* y (n) -= sum over k < m of coef[k K] times row k of X: four rows a pass, so that y is loaded less often */
SK_INLINE void fg_subtract_rows(sk_size n, sk_size m, sk_size K, const double *coef, const double *restrict X,
                            double *restrict y) {
    sk_size k = 0;
    for (; k + 4 <= m; k += 4) {
        const double *restrict p = X + k * K, *restrict q = p + K, *restrict r = q + K, *restrict s = r + K;
        const double e = coef[k * K], g = coef[(k + 1) * K], h = coef[(k + 2) * K], i = coef[(k + 3) * K];
        SK_SIMD for (sk_size j = 0; j < n; j++) y[j] -= e * p[j] + g * q[j] + h * r[j] + i * s[j];
    }
    for (; k < m; k++) {
        const double *restrict p = X + k * K;
        const double e = coef[k * K];
        SK_SIMD for (sk_size j = 0; j < n; j++) y[j] -= e * p[j];
    }
}

/* The same for four rows of y, K apart, with adjacent coefficients: X is loaded less often too. */
SK_INLINE void fg_subtract_four_rows(sk_size n, sk_size m, sk_size K, const double *coef, const double *restrict X,
                            double *restrict y) {
    double *restrict a = y, *restrict b = y + K, *restrict c = y + 2 * K, *restrict d = y + 3 * K;
    sk_size k = 0;
    for (; k + 4 <= m; k += 4) {
        const double *restrict p = X + k * K, *restrict q = p + K, *restrict r = q + K, *restrict s = r + K;
        const double *e = coef + k * K, *f = e + K, *g = f + K, *h = g + K;
        const double e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3], f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
        const double g0 = g[0], g1 = g[1], g2 = g[2], g3 = g[3], h0 = h[0], h1 = h[1], h2 = h[2], h3 = h[3];
        SK_SIMD for (sk_size j = 0; j < n; j++) {
            const double pj = p[j], qj = q[j], rj = r[j], sj = s[j];
            a[j] -= e0 * pj + f0 * qj + g0 * rj + h0 * sj;
            b[j] -= e1 * pj + f1 * qj + g1 * rj + h1 * sj;
            c[j] -= e2 * pj + f2 * qj + g2 * rj + h2 * sj;
            d[j] -= e3 * pj + f3 * qj + g3 * rj + h3 * sj;
        }
    }
    for (; k < m; k++) {
        const double *restrict p = X + k * K, *e = coef + k * K;
        const double e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3];
        SK_SIMD for (sk_size j = 0; j < n; j++) {
            a[j] -= e0 * p[j];
            b[j] -= e1 * p[j];
            c[j] -= e2 * p[j];
            d[j] -= e3 * p[j];
        }
    }
}

/* Rows first .. first + 3 of y, or as many as there are: y -= coef' X on all columns from `from` to `to` */
SK_INLINE void fg_subtract_block(sk_size first, sk_size from, sk_size to, sk_size m, sk_size K, const double *coef,
                             const double *X, double *y) {
    if (first + 4 <= K) fg_subtract_four_rows(to - from, m, K, coef, X + from, y + from);
    else
        for (sk_size r = 0; first + r < K; r++) fg_subtract_rows(to - from, m, K, coef + r, X + from, y + r * K + from);
}

/* The upper triangle of M becomes its Cholesky factor. A pivot of at most `drop` times the diagonal is rounding: its
 * row becomes 0 and its potential stays fixed. The lower triangle is workspace. */
SK_INLINE void fg_upper(sk_size K, double drop, double *M) {
    double own[4];
    for (sk_size first = 0; first < K; first += 4) {
        const sk_size end = first + 4 < K ? first + 4 : K;
        for (sk_size i = first; i < end; i++) own[i - first] = M[i * K + i];
        fg_subtract_block(first, first, K, first, K, M + first, M, M + first * K);
        for (sk_size i = first; i < end; i++) {
            double *row = M + i * K, root;
            fg_subtract_rows(K - i, i - first, K, M + first * K + i, M + first * K + i, row + i);
            root = row[i] > drop * own[i - first] ? 1.0 / sqrt(row[i]) : 0.0;
            for (sk_size j = i; j < K; j++) row[j] *= root;
        }
    }
}

/* X (K, n) becomes U'^-1 X; lower: X's columns after the diagonal are 0 and stay so */
SK_INLINE void fg_upper_solve_rows(sk_size K, const double *U, double *X, int lower) {
    for (sk_size first = 0; first < K; first += 4) {
        const sk_size end = first + 4 < K ? first + 4 : K, n = lower ? end : K;
        fg_subtract_block(first, 0, n, first, K, U + first, X, X + first * K);
        for (sk_size i = first; i < end; i++) {
            const double pivot = U[i * K + i] > 0.0 ? 1.0 / U[i * K + i] : 0.0;
            fg_subtract_rows(n, i - first, K, U + first * K + i, X + first * K, X + i * K);
            for (sk_size j = 0; j < n; j++) X[i * K + j] *= pivot;
        }
    }
}

/* One transition: A holds the Schur complement S of all before it, and gets the next one into `next` (or NULL). */
SK_MULTI(void, fg_chain_block,
         (sk_size K, const double *R, const double *C, const double *iw, double ridge, double drop, double *A,
          double *Y, double *B, double *Z, double *next),
         (K, R, C, iw, ridge, drop, A, Y, B, Z, next)) {
    for (sk_size i = 0; i < K; i++) A[i * K + i] += R[i] + ridge;
    fg_upper(K, drop, A);
    fg_upper_solve_rows(K, A, Y, 0);
    memset(B, 0, (size_t)(K * K) * sizeof(double));
    for (sk_size i = 0; i < K; i++) B[i * K + i] = C[i] + ridge + iw[i];
    for (sk_size i = 0; i < K; i += 4) fg_subtract_block(i, i, K, K, K, Y + i, Y, B + i * K);
    /* pivots are compared with the diagonal before the subtraction */
    for (sk_size i = 0; i < K; i++)
        if (!(B[i * K + i] > drop * (C[i] + ridge + iw[i]))) B[i * K + i] = 0.0;
    fg_upper(K, drop, B);
    if (next == NULL) return;
    memset(Z, 0, (size_t)(K * K) * sizeof(double));
    for (sk_size i = 0; i < K; i++) Z[i * K + i] = iw[i];
    fg_upper_solve_rows(K, B, Z, 1);
    memset(next, 0, (size_t)(K * K) * sizeof(double));
    for (sk_size i = 0; i < K; i++) next[i * K + i] = iw[i];
    for (sk_size i = 0; i < K; i += 4) fg_subtract_block(i, i, K, K - i, K, Z + i * K + i, Z + i * K, next + i * K);
}

/* Factorises the matrix of D, which is stored in Y, and of its sums; whether it finished. */
static int fg_chain_factor(fg_flow *t, double ridge, double drop, fg_watch *watch) {
    const sk_size T = t->T, K = t->K, KK = K * K;
    double total = 0.0;
    for (sk_size i = 0; i < K; i++) total += t->iw[i];
    for (sk_size i = 0; i < K; i++) {
        for (sk_size j = 0; j < K; j++) t->A[i * K + j] = -t->iw[i] * t->iw[j] / total;
        t->A[i * K + i] += t->iw[i];
    }
    for (sk_size p = 0; p < T - 1; p++) {
        if (fg_stopped(watch, KK * K) || fg_late(watch)) return 0;
        fg_chain_block(K, t->R + p * K, t->C + p * K, t->iw + (p + 1) * K, ridge, drop, t->A + p * KK, t->Y + p * KK,
                       t->B + p * KK, t->Z + p * KK, p < T - 2 ? t->A + (p + 1) * KK : NULL);
    }
    return 1;
}

/* y += s X x, and y += s X' x, of a matrix (K, K) */
SK_MULTI(void, fg_chain_times,
         (sk_size K, double s, const double *restrict X, const double *restrict x, double *restrict y),
         (K, s, X, x, y)) {
    for (sk_size i = 0; i < K; i++) {
        const double *restrict row = X + i * K;
        double sum = 0.0;
        SK_SIMD_WITH(reduction(+ : sum)) for (sk_size j = 0; j < K; j++) sum += row[j] * x[j];
        y[i] += s * sum;
    }
}

SK_MULTI(void, fg_chain_turned,
         (sk_size K, double s, const double *restrict X, const double *restrict x, double *restrict y),
         (K, s, X, x, y)) {
    for (sk_size i = 0; i < K; i++) {
        const double *restrict row = X + i * K;
        const double by = s * x[i];
        SK_SIMD for (sk_size j = 0; j < K; j++) y[j] += by * row[j];
    }
}

/* y becomes U'^-1 y, and U^-1 y */
SK_MULTI(void, fg_upper_forward,
         (sk_size K, const double *restrict U, double *restrict y),
         (K, U, y)) {
    for (sk_size i = 0; i < K; i++) {
        const double *restrict row = U + i * K;
        const double by = y[i] = row[i] > 0.0 ? y[i] / row[i] : 0.0;
        SK_SIMD for (sk_size j = i + 1; j < K; j++) y[j] -= by * row[j];
    }
}

SK_MULTI(void, fg_upper_back,
         (sk_size K, const double *restrict U, double *restrict y),
         (K, U, y)) {
    for (sk_size i = K - 1; i >= 0; i--) {
        const double *restrict row = U + i * K;
        double sum = 0.0;
        SK_SIMD_WITH(reduction(+ : sum)) for (sk_size j = i + 1; j < K; j++) sum += row[j] * y[j];
        y[i] = row[i] > 0.0 ? (y[i] - sum) / row[i] : 0.0;
    }
}

/* ra, rb (T - 1, K) become the solution */
static void fg_chain_solve(const fg_flow *t, double *ra, double *rb) {
    const sk_size T = t->T, K = t->K, KK = K * K;
    for (sk_size p = 0; p < T - 1; p++) {
        double *a = ra + p * K, *b = rb + p * K;
        fg_upper_forward(K, t->A + p * KK, a);
        fg_chain_turned(K, -1.0, t->Y + p * KK, a, b);
        fg_upper_forward(K, t->B + p * KK, b);
        if (p < T - 2) fg_chain_turned(K, -1.0, t->Z + p * KK, b, a + K);
    }
    for (sk_size p = T - 2; p >= 0; p--) {
        double *a = ra + p * K, *b = rb + p * K;
        if (p < T - 2) fg_chain_times(K, -1.0, t->Z + p * KK, a + K, b);
        fg_upper_back(K, t->B + p * KK, b);
        fg_chain_times(K, -1.0, t->Y + p * KK, b, a);
        fg_upper_back(K, t->A + p * KK, a);
    }
}

/* The best sequences with each tag, of scores u (T, K), -inf for tags that are never on, and c (T - 1, K, K): up to the
 * tag in `ahead`, after it in `back`. Returns the best score of all. */
static double fg_best_with(sk_size T, sk_size K, const double *u, const double *c, double *ahead, double *back) {
    double best = -INFINITY;
    for (sk_size i = 0; i < T * K; i++) {
        const sk_size p = i / K;
        double most = p == 0 ? 0.0 : -INFINITY;
        for (sk_size j = (p - 1) * K; p > 0 && u[i] > -INFINITY && j < p * K; j++) {
            const double sum = ahead[j] + c[j * K + i % K];
            most = sum > most ? sum : most;
        }
        ahead[i] = most + u[i];
        best = p == T - 1 && ahead[i] > best ? ahead[i] : best;
    }
    for (sk_size i = T * K - 1; i >= 0; i--) {
        const sk_size next = (i / K + 1) * K;
        back[i] = next == T * K ? 0.0 : -INFINITY;
        for (sk_size k = 0; next < T * K && u[i] > -INFINITY && k < K; k++) {
            const double sum = c[i * K + k] + u[next + k] + back[next + k];
            back[i] = sum > back[i] ? sum : back[i];
        }
    }
    return best;
}

/* x = scores minus potentials; the first position sums to 1 */
static void fg_chain_answer(fg_flow *t) {
    const sk_size T = t->T, K = t->K;
    double sum = 0.0, total = 0.0;
    for (sk_size i = 0; i < T * K; i++) {
        double price = (i < (T - 1) * K ? t->a[i] : 0.0) + (i >= K ? t->b[i - K] : 0.0);
        t->x[i] = t->v[i] - t->iw[i] * price;
    }
    for (sk_size i = 0; i < K; i++) sum += t->x[i], total += t->iw[i];
    for (sk_size i = 0; i < K; i++) t->x[i] += t->iw[i] * ((1.0 - sum) / total);
}

#endif
