/* Losses of one linear predictor a row, with what Newton's method and the dual need. */
#ifndef SPARSEKIT_ROW_LOSSES_H
#define SPARSEKIT_ROW_LOSSES_H

#include "shared/kernels.h"

/* sum_i s_i h(c_i (z_i - t_i)); dual gets a (n), u gets s c a, d the second derivative s / delta or 0.
 * c (ones) and prev (zeros) may be NULL. */
SK_MULTI(double, sk_piecewise_all,
         (const double *restrict z, const double *restrict t, const double *restrict c,
          const double *restrict s, const double *restrict prev, sk_piecewise h, double *restrict u,
          double *restrict dual, double *restrict d, sk_size n),
         (z, t, c, s, prev, h, u, dual, d, n)) {
    double total = 0.0;
    for (sk_size i = 0; i < n; i++) {
        double sign = c == NULL ? 1.0 : c[i], a;
        int inside;
        total += s[i] * sk_piecewise_row(sign * (z[i] - t[i]), prev == NULL ? 0.0 : prev[i], &h, &a, &inside);
        dual[i] = a;
        u[i] = s[i] * sign * a;
        d[i] = inside ? s[i] * h.inverse : 0.0;
    }
    return total;
}

/* the derivative of the same along z + step dz */
SK_MULTI(double, sk_piecewise_along,
         (const double *restrict z, const double *restrict dz, double step, const double *restrict t,
          const double *restrict c, const double *restrict s, const double *restrict prev, sk_piecewise h,
          sk_size n),
         (z, dz, step, t, c, s, prev, h, n)) {
    double total = 0.0;
    for (sk_size i = 0; i < n; i++) {
        double sign = c == NULL ? 1.0 : c[i];
        int inside;
        double r = sign * (z[i] + step * dz[i] - t[i]);
        total += s[i] * sign * sk_dual_of(r, prev == NULL ? 0.0 : prev[i], &h, &inside) * dz[i];
    }
    return total;
}

/* log(1 + exp(-r)), r = c (z - t), the same three: dual is -sigma(-r), d = s sigma (1 - sigma) */
SK_MULTI(double, sk_log_loss_all,
         (const double *restrict z, const double *restrict t, const double *restrict c, const double *restrict s,
          double *restrict u, double *restrict dual, double *restrict d, sk_size n),
         (z, t, c, s, u, dual, d, n)) {
    double total = 0.0;
    SK_SIMD_WITH(reduction(+ : total))
    for (sk_size i = 0; i < n; i++) {
        double miss;
        total += s[i] * sk_logistic(c[i] * (z[i] - t[i]), s[i], &miss, &d[i]);
        dual[i] = -miss;
        u[i] = s[i] * c[i] * -miss;
    }
    return total;
}

SK_MULTI(double, sk_log_loss_along,
         (const double *restrict z, const double *restrict dz, double step, const double *restrict t,
          const double *restrict c, const double *restrict s, sk_size n),
         (z, dz, step, t, c, s, n)) {
    double total = 0.0;
    SK_SIMD_WITH(reduction(+ : total))
    for (sk_size i = 0; i < n; i++) {
        total -= s[i] * c[i] * sk_miss(c[i] * (z[i] + step * dz[i] - t[i])) * dz[i];
    }
    return total;
}

#endif
