/* Losses of one row: logistic, and those that are given by a piecewise quadratic conjugate. */
#ifndef SPARSEKIT_LOSSES_H
#define SPARSEKIT_LOSSES_H

#include "host_device.h"

/* C has faster ones (kernels.h) for exp(x), x <= 0, and log(1 + e), 0 <= e <= 1 */
#ifndef SK_EXP_NEG
#define SK_EXP_NEG exp
#define SK_LOG1P_UNIT log1p
#endif

/* log(1 + exp(-t)); miss is the logistic function of -t, curvature that of weight s */
SK_BOTH double sk_logistic(double t, double s, double *miss, double *curvature) {
    double e = SK_EXP_NEG(-fabs(t)), inv = 1.0 / (1.0 + e);
    *miss = t < 0.0 ? inv : e * inv;
    *curvature = s * e * inv * inv;
    return (t < 0.0 ? -t : 0.0) + SK_LOG1P_UNIT(e);
}

/* the same without derivatives */
SK_BOTH double sk_logistic_of(double t) { return (t < 0.0 ? -t : 0.0) + SK_LOG1P_UNIT(SK_EXP_NEG(-fabs(t))); }

/* the logistic function of -t */
SK_BOTH double sk_miss(double t) {
    double e = SK_EXP_NEG(-fabs(t)), inv = 1.0 / (1.0 + e);
    return t < 0.0 ? inv : e * inv;
}

/* A convex, piecewise linear or quadratic loss h(r), r = c (z - t), is given by its conjugate. h*(a) = eps |a| +
 * delta/2 a^2 on lo <= a <= hi. Instead of h the functions use its envelope around ``prev``, whose conjugate has
 * delta/2 (a - prev)^2 instead of delta/2 a^2. Its derivative is a = clip(soft(prev + r/delta, eps/delta), lo, hi).
 * delta = 0 is h itself, the limit of a division by a very small delta. */
typedef struct {
    double lo, hi, eps, delta, inverse;
} sk_piecewise;

SK_BOTH double sk_dual_of(double r, double prev, const sk_piecewise *h, int *inside) {
    double v = prev + r * h->inverse;
    double kept = fabs(v) - h->eps * h->inverse;
    /* fabs and copysign would turn a NaN predictor into a number; comparisons that fail leave it */
    v = h->eps == 0.0 ? v : (kept <= 0.0 ? 0.0 : copysign(kept, v));
    *inside = v > h->lo && v < h->hi && (h->eps == 0.0 || v != 0.0);
    return v < h->lo ? h->lo : (v > h->hi ? h->hi : v);
}

SK_BOTH double sk_piecewise_row(double r, double prev, const sk_piecewise *h, double *dual, int *inside) {
    double a = sk_dual_of(r, prev, h, inside), move = a - prev;
    *dual = a;
    return a * r - h->eps * fabs(a) - 0.5 * h->delta * move * move;
}

#endif
