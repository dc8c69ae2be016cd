/* The Wright omega function, and the implicit step with one negative that it solves (equations: _cython/extreme/implicit.h). */
#ifndef SPARSEKIT_OMEGA_H
#define SPARSEKIT_OMEGA_H

#include "host_device.h"

/* a Householder step of third order below this leaves its cube, which is no longer of interest */
#define SK_STEP_TOL 2e-4
#define SK_ROOT_STEPS 80

/* The Wright omega function of log(w): a with a exp(a) = w, for w >= 0 (inf and NaN pass). */
SK_BOTH double sk_lambert(double w) {
    double a;
    if (w < 0.01) /* the series; the first term left out is below 2e-14 w */
        return w * (1.0 + w * (-1.0 + w * (1.5 + w * (-8.0 / 3.0 + w * (125.0 / 24.0 + w * (-54.0 / 5.0
               + w * (16807.0 / 720.0 - w * (16384.0 / 315.0))))))));
    if (w < 3.0) { /* a Pade approximant of the same series */
        a = w * (1.0 + w * (4.0 / 3.0)) / (1.0 + w * (7.0 / 3.0 + w * (5.0 / 6.0)));
    } else {
        double l = log(w), ll = log(l > 1.0 ? l : 1.0);
        a = l - ll + ll / l;
        if (!(a < 1e300)) return a;
    }
    for (int i = 0; i < 2; i++) { /* Fritsch, Shafer and Crowley (1973): fourth order */
        double r = log(w / a) - a, q = 2.0 * (1.0 + a) * (1.0 + a + r * (2.0 / 3.0));
        a *= 1.0 + r / (1.0 + a) * (q - r) / (q - 2.0 * r);
    }
    return a;
}

/* omega(x) where exp(x) may overflow */
SK_BOTH double sk_omega(double x) {
    double a;
    if (x < 600.0) return sk_lambert(exp(x));
    a = x - log(x);
    for (int i = 0; i < 2; i++) {
        double r = x - log(a) - a, q = 2.0 * (1.0 + a) * (1.0 + a + r * (2.0 / 3.0));
        a *= 1.0 + r / (1.0 + a) * (q - r) / (q - 2.0 * r);
    }
    return a;
}

/* One negative: the unknown is v = log(b / eta), and u(v) = z + log r - v - sigma eta exp(v) with
 * sigma = s (rho_k + rho_y). G(v) = u(v) - u_old + eta (1 - exp(-u(v)) - exp(v)) is concave and decreasing. Newton's
 * steps from the right of the root stay there, and a step from the left ends right of it. Long steps are cut at a bound
 * where both exponentials are moderate. No logarithm where the step is small, two exponentials an evaluation, one or
 * two evaluations a step. */
SK_BOTH double sk_implicit_one(double z, double log_r, double eta, double sigma, double u_old,
                                 double *u_new) {
    double top = z + log_r, v = top - u_old, high = INFINITY, u = u_old;
    double reach = sigma * eta, E = 0.0, w;
    w = v < 600.0 ? reach * (E = exp(v)) : INFINITY;
    if (w > 0.25) { /* not small: start from the exact b for the old u */
        v -= w < 1e250 ? sk_lambert(w) : sk_omega(v + log(reach));
        E = exp(v);
    }
    if (v > 0.0) { /* eta exp(v) = u - u_old + eta (1 - exp(-u)), and u <= log(1 + r exp(z)) */
        double most = (top > 0.0 ? top : 0.0) + log1p(exp(-fabs(top))) - u_old;
        high = log1p((most > 0.0 ? most : 0.0) / eta);
        if (v > high) E = exp(v = high);
    }
    for (int i = 0; i < SK_ROOT_STEPS; i++) {
        double P, g, g1, g2, ratio, step;
        w = reach * E;
        u = top - v - w;
        P = exp(-u);
        g = u - u_old + eta * (1.0 - P - E);
        /* derivatives by v: u' = -1 - w, u'' = -w, P' = -u' P */
        g1 = -(1.0 + w) * (1.0 + eta * P) - eta * E;
        g2 = -w * (1.0 + eta * P) - eta * (1.0 + w) * (1.0 + w) * P - eta * E;
        ratio = g / g1;
        step = -ratio / (1.0 - 0.5 * ratio * g2 / g1); /* Halley */
        if (fabs(step) * (1.0 + w) < SK_STEP_TOL && P < 1e100) { /* beyond, g2 may overflow */
            /* the last step is small: its exponential comes from the series */
            double b = E * (1.0 + step * (1.0 + step * (0.5 + step * (1.0 / 6.0))));
            *u_new = top - v - step - reach * b;
            return eta * b;
        }
        if (!(fabs(step) * (1.0 + w) < 1.0)) {
            double zero = top - sk_omega(top + log(reach)); /* u(zero) = 0, and the optimal u >= 0 */
            step = g < 0.0 ? -ratio : step;
            if (!(fabs(step) < 1e300)) step = 0.0;
            high = zero < high ? zero : high;
            if (g > 0.0 && !(v + step < high && step > 0.0)) step = high - v;
        }
        v += step;
        E = exp(v);
    }
    *u_new = u;
    return eta * E;
}

#endif
