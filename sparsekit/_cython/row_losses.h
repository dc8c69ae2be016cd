/* Losses of one linear predictor a row, with what Newton's method and the dual need. */
#ifndef SPARSEKIT_ROW_LOSSES_H
#define SPARSEKIT_ROW_LOSSES_H

#include "kernels.h"

/* A loss h(r) of r = c (z - t), convex and piecewise linear or quadratic, is given by its conjugate
 *   h*(a) = eps |a| + delta/2 a^2 on lo <= a <= hi.
 * Instead of h the functions take its envelope around ``prev``, whose conjugate has delta/2 (a - prev)^2 in the
 * place of delta/2 a^2; its derivative is a = clip(soft(prev + r/delta, eps/delta), lo, hi). delta = 0 is h itself,
 * the limit of a division by a very small delta. */
typedef struct {
    double lo, hi, eps, delta, inverse;
} sk_piecewise;

SK_INLINE double sk_dual_of(double r, double prev, const sk_piecewise *h, int *inside) {
    double v = prev + r * h->inverse;
    double kept = fabs(v) - h->eps * h->inverse;
    /* fabs and copysign would turn a NaN predictor into a number; comparisons that fail leave it */
    v = h->eps == 0.0 ? v : (kept <= 0.0 ? 0.0 : copysign(kept, v));
    *inside = v > h->lo && v < h->hi && (h->eps == 0.0 || v != 0.0);
    return v < h->lo ? h->lo : (v > h->hi ? h->hi : v);
}

SK_INLINE double sk_piecewise_row(double r, double prev, const sk_piecewise *h, double *dual, int *inside) {
    double a = sk_dual_of(r, prev, h, inside), move = a - prev;
    *dual = a;
    return a * r - h->eps * fabs(a) - 0.5 * h->delta * move * move;
}

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

/* log(1 + exp(-c z)), the same three: dual is -sigma(-c z), d = s sigma (1 - sigma) */
SK_MULTI(double, sk_log_loss_all,
         (const double *restrict z, const double *restrict c, const double *restrict s, double *restrict u,
          double *restrict dual, double *restrict d, sk_size n),
         (z, c, s, u, dual, d, n)) {
    double total = 0.0;
    SK_SIMD_WITH(reduction(+ : total))
    for (sk_size i = 0; i < n; i++) {
        double m = c[i] * z[i], e = sk_exp_neg(-fabs(m)), q = 1.0 / (1.0 + e);
        double a = -(m > 0.0 ? e * q : q);
        total += s[i] * ((m < 0.0 ? -m : 0.0) + sk_log1p_unit(e));
        dual[i] = a;
        u[i] = s[i] * c[i] * a;
        d[i] = s[i] * e * q * q;
    }
    return total;
}

SK_MULTI(double, sk_log_loss_along,
         (const double *restrict z, const double *restrict dz, double step, const double *restrict c,
          const double *restrict s, sk_size n),
         (z, dz, step, c, s, n)) {
    double total = 0.0;
    SK_SIMD_WITH(reduction(+ : total))
    for (sk_size i = 0; i < n; i++) {
        double m = c[i] * (z[i] + step * dz[i]), e = sk_exp_neg(-fabs(m)), q = 1.0 / (1.0 + e);
        total -= s[i] * c[i] * (m > 0.0 ? e * q : q) * dz[i];
    }
    return total;
}

#endif
