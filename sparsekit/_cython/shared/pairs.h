/* Passes over the pairs of L-BFGS, W (n, c). Row i holds entry i of all s and then of all y, in adjacent
 * cache lines. A pass can therefore read the rows of the free variables only. */
#ifndef SPARSEKIT_PAIRS_H
#define SPARSEKIT_PAIRS_H

#include "shared/kernels.h"

/* rows whose products are summed before they go to the totals: keeps the sums of long columns exact */
#define SK_ROWS_AT_ONCE 256

/* s = x_new - x and y = g_new - g, times of_s and of_y, into columns a and b of W */
SK_MULTI(void, sk_pairs_put,
         (sk_size n, sk_size c, double *restrict W, sk_size a, sk_size b, const double *restrict x,
          const double *restrict x_new, const double *restrict g, const double *restrict g_new, double of_s,
          double of_y),
         (n, c, W, a, b, x, x_new, g, g_new, of_s, of_y)) {
    for (sk_size i = 0; i < n; i++) {
        W[i * c + a] = of_s * (x_new[i] - x[i]);
        W[i * c + b] = of_y * (g_new[i] - g[i]);
    }
}

/* on (2, c) += the products of the free rows with their columns a and b, off (2, c) += those of the others */
SK_MULTI(void, sk_pairs_products,
         (sk_size n, sk_size c, const double *restrict W, sk_size a, sk_size b,
          const unsigned char *restrict free, double *restrict on, double *restrict off,
          double *restrict buffer),
         (n, c, W, a, b, free, on, off, buffer)) {
    for (sk_size lo = 0; lo < n; lo += SK_ROWS_AT_ONCE) {
        sk_size hi = n - lo < SK_ROWS_AT_ONCE ? n : lo + SK_ROWS_AT_ONCE;
        memset(buffer, 0, sizeof(double) * (size_t)(4 * c));
        for (sk_size i = lo; i < hi; i++) {
            const double *restrict w = W + i * c;
            double *restrict t = buffer + (free[i] ? 0 : 2 * c), s = w[a], y = w[b];
            SK_SIMD
            for (sk_size j = 0; j < c; j++) {
                t[j] += s * w[j];
                t[c + j] += y * w[j];
            }
        }
        for (sk_size j = 0; j < 2 * c; j++) {
            on[j] += buffer[j];
            off[j] += buffer[2 * c + j];
        }
    }
}

/* out (c) = W_F^T g_F */
SK_MULTI(void, sk_pairs_times,
         (sk_size n, sk_size c, const double *restrict W, const unsigned char *restrict free,
          const double *restrict g, double *restrict out, double *restrict buffer),
         (n, c, W, free, g, out, buffer)) {
    memset(out, 0, sizeof(double) * (size_t)c);
    for (sk_size lo = 0; lo < n; lo += SK_ROWS_AT_ONCE) {
        sk_size hi = n - lo < SK_ROWS_AT_ONCE ? n : lo + SK_ROWS_AT_ONCE;
        memset(buffer, 0, sizeof(double) * (size_t)c);
        for (sk_size i = lo; i < hi; i++) {
            const double *restrict w = W + i * c;
            double t = g[i];
            if (!free[i]) continue;
            SK_SIMD
            for (sk_size j = 0; j < c; j++) buffer[j] += t * w[j];
        }
        for (sk_size j = 0; j < c; j++) out[j] += buffer[j];
    }
}

/* p_i = -(g_i + w_i . v) / theta on the free rows, 0 elsewhere */
SK_MULTI(void, sk_pairs_direction,
         (sk_size n, sk_size c, const double *restrict W, const unsigned char *restrict free,
          const double *restrict g, const double *restrict v, double theta, double *restrict p),
         (n, c, W, free, g, v, theta, p)) {
    double scale = -1.0 / theta;
    for (sk_size i = 0; i < n; i++) {
        const double *restrict w = W + i * c;
        double t = g[i];
        if (!free[i]) {
            p[i] = 0.0;
            continue;
        }
        SK_SIMD_WITH(reduction(+ : t))
        for (sk_size j = 0; j < c; j++) t += w[j] * v[j];
        p[i] = scale * t;
    }
}

/* G (c, c) += sign * the sum of w w^T over the given rows; the lower triangle */
SK_MULTI(void, sk_pairs_gram,
         (sk_size c, const double *restrict W, const int64_t *restrict rows, sk_size n_rows, double sign,
          double *restrict G),
         (c, W, rows, n_rows, sign, G)) {
    for (sk_size l = 0; l < n_rows; l++) {
        const double *restrict w = W + rows[l] * c;
        for (sk_size j = 0; j < c; j++) {
            double t = sign * w[j];
            SK_SIMD
            for (sk_size k = 0; k <= j; k++) G[j * c + k] += t * w[k];
        }
    }
}

/* Variables at a bound that p would leave (step 8 of Algorithm 3): written to rows and taken from free; returns
 * their number. */
static sk_size sk_correct(sk_size n, const double *restrict x, const double *restrict p, const double *restrict l,
                          const double *restrict u, unsigned char *restrict free, int64_t *restrict rows) {
    sk_size count = 0;
    for (sk_size i = 0; i < n; i++)
        if (free[i] && ((x[i] <= l[i] && p[i] < 0.0) || (x[i] >= u[i] && p[i] > 0.0))) {
            free[i] = 0;
            rows[count++] = i;
        }
    return count;
}

/* s.y, s.s and y.y of the next pair */
SK_MULTI(void, sk_pair_norms,
         (sk_size n, const double *restrict x, const double *restrict x_new, const double *restrict g,
          const double *restrict g_new, double *restrict out),
         (n, x, x_new, g, g_new, out)) {
    double sy = 0.0, ss = 0.0, yy = 0.0;
    SK_SIMD_WITH(reduction(+ : sy, ss, yy))
    for (sk_size i = 0; i < n; i++) {
        double s = x_new[i] - x[i], y = g_new[i] - g[i];
        sy += s * y;
        ss += s * s;
        yy += y * y;
    }
    out[0] = sy;
    out[1] = ss;
    out[2] = yy;
}
#endif
