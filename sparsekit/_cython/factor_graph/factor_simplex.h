/* Projection on a simplex in the norm of 1 / d: x = max(0, v - tau d), where tau makes it sum to 1. */
#ifndef SPARSEKIT_FACTOR_SIMPLEX_H
#define SPARSEKIT_FACTOR_SIMPLEX_H

#include <float.h>

#include "shared/simd.h"

/* largest rounding error of a sum of 1 */
#define FG_SUM_TOLERANCE 1e-9

/* x = max(0, v - tau d), its sum, and that of d where it is positive */
SK_MULTI(void, fg_simplex_sum,
         (sk_size n, const double *restrict v, const double *restrict d, double tau, double *restrict x, double *sum,
          double *slope),
         (n, v, d, tau, x, sum, slope)) {
    double s = 0.0, q = 0.0;
    SK_SIMD_WITH(reduction(+ : s, q)) for (sk_size i = 0; i < n; i++) {
        double y = v[i] - tau * d[i];
        q += y > 0.0 ? d[i] : 0.0;
        y = y > 0.0 ? y : 0.0;
        x[i] = y;
        s += y;
    }
    *sum = s;
    *slope = q;
}

/* The tau at which x sums to 1, or 0 if `equal` is 0 and the sum is less. The sum is convex in tau, so Newton's method
 * converges from the left after one step, and ends exactly. */
static double fg_project_simplex(sk_size n, const double *v, const double *d, int equal, double tau, double *x) {
    double sum, slope;
    if (!equal) {
        fg_simplex_sum(n, v, d, 0.0, x, &sum, &slope);
        if (sum <= 1.0) return 0.0;
    }
    for (int round = 0; round < 100; round++) {
        double next;
        fg_simplex_sum(n, v, d, tau, x, &sum, &slope);
        if (fabs(sum - 1.0) <= 2.0 * DBL_EPSILON) return tau;
        if (slope > 0.0) {
            next = tau + (sum - 1.0) / slope;
            if (round > 0 && next <= tau) return tau;
        } else {
            next = -DBL_MAX;
            for (sk_size i = 0; i < n; i++) next = (v[i] - 1.0) / d[i] > next ? (v[i] - 1.0) / d[i] : next;
        }
        tau = next;
    }
    fg_simplex_sum(n, v, d, tau, x, &sum, &slope);
    return tau;
}

#endif
