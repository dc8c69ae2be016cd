/* Steps in a box: bound and free variables, and the feasible part of a direction. */
#ifndef SPARSEKIT_BOX_H
#define SPARSEKIT_BOX_H
#include "shared/kernels.h"

/* B(g) of (3.4) and its complement: free[i] = 1 where variable i is not bound; returns how many are free */
SK_MULTI(sk_size, sk_free_variables,
         (sk_size n, const double *restrict x, const double *restrict g, const double *restrict l,
          const double *restrict u, unsigned char *restrict free),
         (n, x, g, l, u, free)) {
    sk_size count = 0;
    for (sk_size i = 0; i < n; i++) {
        unsigned char bound = (x[i] <= l[i] && g[i] >= 0.0) || (x[i] >= u[i] && g[i] <= 0.0);
        free[i] = !bound;
        count += !bound;
    }
    return count;
}

/* T(x, p) of (3.3) into out; returns its slope g . T(x, p) */
SK_MULTI(double, sk_feasible_part,
         (sk_size n, const double *restrict x, const double *restrict p, const double *restrict g,
          const double *restrict l, const double *restrict u, double *restrict out),
         (n, x, p, g, l, u, out)) {
    double slope = 0.0;
    SK_SIMD_WITH(reduction(+ : slope))
    for (sk_size i = 0; i < n; i++) {
        double t = (x[i] <= l[i] && p[i] < 0.0) || (x[i] >= u[i] && p[i] > 0.0) ? 0.0 : p[i];
        out[i] = t;
        slope += g[i] * t;
    }
    return slope;
}

/* g . T(x, p) alone */
SK_MULTI(double, sk_feasible_slope,
         (sk_size n, const double *restrict x, const double *restrict p, const double *restrict g,
          const double *restrict l, const double *restrict u),
         (n, x, p, g, l, u)) {
    double slope = 0.0;
    SK_SIMD_WITH(reduction(+ : slope))
    for (sk_size i = 0; i < n; i++)
        slope += (x[i] <= l[i] && p[i] < 0.0) || (x[i] >= u[i] && p[i] > 0.0) ? 0.0 : g[i] * p[i];
    return slope;
}

/* max_i |T(x, -g)_i|: zero at a stationary point */
SK_MULTI(double, sk_optimality,
         (sk_size n, const double *restrict x, const double *restrict g, const double *restrict l,
          const double *restrict u),
         (n, x, g, l, u)) {
    double most = 0.0;
    SK_SIMD_MAX(reduction(max : most))
    for (sk_size i = 0; i < n; i++) {
        double t = (x[i] <= l[i] && g[i] > 0.0) || (x[i] >= u[i] && g[i] < 0.0) ? 0.0 : fabs(g[i]);
        most = t > most ? t : most;
    }
    return most;
}

/* P(x + alpha p) into out */
SK_MULTI(void, sk_trial_point,
         (sk_size n, const double *restrict x, const double *restrict p, double alpha,
          const double *restrict l, const double *restrict u, double *restrict out),
         (n, x, p, alpha, l, u, out)) {
    SK_SIMD
    for (sk_size i = 0; i < n; i++) {
        double t = x[i] + alpha * p[i];
        t = t < l[i] ? l[i] : t;
        out[i] = t > u[i] ? u[i] : t;
    }
}

/* the largest alpha that moves some variable before it reaches its bound (step 2 of Algorithm 4); p = T(x, p) */
SK_MULTI(double, sk_longest_step,
         (sk_size n, const double *restrict x, const double *restrict p, const double *restrict l,
          const double *restrict u),
         (n, x, p, l, u)) {
    double most = 0.0;
    SK_SIMD_MAX(reduction(max : most))
    for (sk_size i = 0; i < n; i++) {
        double gap = p[i] > 0.0 ? u[i] - x[i] : x[i] - l[i];
        double t = p[i] != 0.0 ? gap / fabs(p[i]) : 0.0;
        most = t > most ? t : most;
    }
    return most;
}
#endif
