/* Implicit steps of the double-sum softmax (Fagan and Iyengar, eq. (9)) for one row x.
 *
 * The step minimises the following sum over u, w_y and the m sampled w_k.
 *
 *     eta (u + exp(-u) + sum_k r_k exp(x.(w_k - w_y) - u)) + ridge
 *     + (u - u_old)^2 / 2 + ||w_y - old||^2 / 2 + sum_k ||w_k - old||^2 / 2
 *
 * Here r_k is the inverse probability of a negative. The solution is w_k = rho_k (old - b_k x) and w_y = rho_y (old +
 * c x). rho is the ridge's shrinkage. c and b_k solve two equations.
 *
 *     c = sum_k b_k = u - u_old + eta (1 - exp(-u))                        (stationary in u)
 *     b_k = eta r_k exp(z_k - s rho_k b_k - s rho_y c - u),                (stationary in w_k)
 *
 * Here z_k is the shrunk old x.(w_k - w_y) and s = ||x||^2. One unknown is left. All numbers are doubles. The relative
 * error of a step is about 1e-9, tested against mpmath. */
#ifndef SPARSEKIT_IMPLICIT_H
#define SPARSEKIT_IMPLICIT_H

#include "shared/kernels.h"
#include "omega.h"

/* largest last step of Newton's method: its square is the remaining error, for which the b's are corrected */
#define SK_LAST_STEP 3e-5

/* exp(x) for any x, to about 1e-15; without branches */
SK_INLINE double sk_exp_any(double x) {
    const double magic = 6755399441055744.0;
    double clamped = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    double t = clamped * 1.4426950408889634074 + magic, k = t - magic, scale, p;
    double r = (clamped - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double q = r * r, r4 = q * q;
    int64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (int64_t)((uint64_t)(bits + 1023) << 52);
    memcpy(&scale, &bits, sizeof scale);
    /* the Taylor polynomial in two halves, with shorter dependency chains than Horner's scheme */
    p = (1.0 + r) + q * (0.5 + r * (1.0 / 6.0)) +
        r4 * ((1.0 / 24.0 + r * (1.0 / 120.0)) + q * (1.0 / 720.0 + r * (1.0 / 5040.0)) +
              r4 * ((1.0 / 40320.0 + r * (1.0 / 362880.0)) + q * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))));
    return p * scale;
}

#include "softmax_team.h" /* which has exponentials by sk_exp_any */

/* log(x) of a positive normal number to 1e-4 */
SK_INLINE double sk_log_approx(double x) {
    uint64_t bits, exponent;
    double m, e;
    memcpy(&bits, &x, sizeof bits);
    exponent = (bits >> 52) | 0x4330000000000000ull; /* 2^52 plus the exponent */
    bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    memcpy(&m, &bits, sizeof m);
    memcpy(&e, &exponent, sizeof e);
    e -= 4503599627370496.0 + 1023.0;
    return e * 0.69314718055994531 - 1.7417939 +
           m * (2.8212026 + m * (-1.4699568 + m * (0.44717955 - m * 0.056570851)));
}

/* a exp(a) = w roughly: to a few per cent */
SK_INLINE double sk_lambert_approx(double w) {
    double pade = w * (1.0 + w * (4.0 / 3.0)) / (1.0 + w * (7.0 / 3.0 + w * (5.0 / 6.0)));
    double l = sk_log_approx(w > 3.0 ? w : 3.0), ll = sk_log_approx(l);
    return w > 3.0 ? l - ll + ll / l : pade;
}

#define SK_LANES_AT_ONCE 4
/* a last step below this leaves its cube, about 1e-9 */
#define SK_LANE_TOL 2e-3

/* Implicit steps with one negative for n <= SK_LANES_AT_ONCE rows that share no class, in vector registers. The initial
 * point comes from two asymptotic solutions; two steps of Halley's method follow, without a branch. Rows that have not
 * converged (at most one in twenty) go to sk_implicit_one. A row's result does not depend on the others. sigma becomes
 * b; u is overwritten. */
SK_MULTI(void, sk_implicit_rows,
         (sk_size n, const double *restrict z_, const double *restrict log_r_, const double *restrict eta_,
          double *restrict sigma_, double *restrict u_),
         (n, z_, log_r_, eta_, sigma_, u_)) {
    double z[SK_LANES_AT_ONCE], log_r[SK_LANES_AT_ONCE], eta[SK_LANES_AT_ONCE], sigma[SK_LANES_AT_ONCE];
    double old[SK_LANES_AT_ONCE], b[SK_LANES_AT_ONCE], new_u[SK_LANES_AT_ONCE], left[SK_LANES_AT_ONCE];
    for (int i = 0; i < SK_LANES_AT_ONCE; i++) {
        sk_size from = i < n ? i : 0;
        z[i] = z_[from];
        log_r[i] = log_r_[from];
        eta[i] = eta_[from];
        sigma[i] = sigma_[from];
        old[i] = u_[from];
    }
    SK_SIMD
    for (int i = 0; i < SK_LANES_AT_ONCE; i++) {
        double top = z[i] + log_r[i], reach = sigma[i] * eta[i], P = sk_exp_any(-old[i]), v, d, E, w, u, step = 0.0;
        /* u = old gives b, which moves u, which gives v */
        d = sk_lambert_approx(reach * sk_exp_any(top - old[i])) / sigma[i];
        d = (d - eta[i] * (1.0 - P)) / (1.0 + eta[i] * P);
        d = d < 0.0 ? -sk_log_approx(1.0 - d) : d;
        u = old[i] + d > 0.0 ? old[i] + d : 0.0;
        v = top - u;
        v -= sk_lambert_approx(reach * sk_exp_any(v));
        E = w = 0.0;
        for (int round = 0; round < 2; round++) {
            double g, g1, g2, ratio;
            v += step;
            E = sk_exp_any(v);
            w = reach * E;
            u = top - v - w;
            P = sk_exp_any(-u);
            g = u - old[i] + eta[i] * (1.0 - P - E);
            g1 = -(1.0 + w) * (1.0 + eta[i] * P) - eta[i] * E;
            g2 = -w * (1.0 + eta[i] * P) - eta[i] * (1.0 + w) * (1.0 + w) * P - eta[i] * E;
            ratio = g / g1;
            step = -ratio / (1.0 - 0.5 * ratio * g2 / g1);
        }
        left[i] = fabs(step) * (1.0 + w);
        E *= 1.0 + step * (1.0 + step * (0.5 + step * (1.0 / 6.0)));
        b[i] = eta[i] * E;
        new_u[i] = top - v - step - reach * E;
    }
    for (sk_size i = 0; i < n; i++) {
        /* if exp(-u) overflows, a step may seem small; the root is not negative */
        if (left[i] < SK_LANE_TOL && new_u[i] >= 0.0) u_[i] = new_u[i];
        else b[i] = sk_implicit_one(z[i], log_r[i], eta[i], sigma[i], old[i], &u_[i]);
        sigma_[i] = b[i];
    }
}

/* a step of Halley's method towards a exp(a) = w */
SK_INLINE double sk_lambert_step(double a, double w) {
    double e = w * sk_exp_any(-a), by = 1.0 / (1.0 + e), ratio = (a - e) * by;
    return a - ratio / (1.0 + 0.5 * ratio * e * by);
}

/* As sk_implicit_many_safe for ordinary numbers, four negatives side by side in vector registers. Each round moves u by
 * Newton's method and every a_k = s rho_k b_k by the same step to first order and then by Halley's. Returns whether it
 * converged. */
SK_MULTI(int, sk_implicit_many_fast,
         (sk_size m, double *restrict z, const double *restrict r, const double *restrict rho,
          double *restrict buffer, double eta, double s, double rho_y, double u_old, double *u_new, double *c_new),
         (m, z, r, rho, buffer, eta, s, rho_y, u_old, u_new, c_new)) {
    double *restrict q = buffer, *restrict a = buffer + m + 3, *restrict inverse = buffer + 2 * (m + 3);
    double high = -INFINITY, u = u_old, fall = 0.0;
    sk_size full = (m + 3) / 4 * 4;
    for (sk_size k = 0; k < m; k++) high = z[k] > high ? z[k] : high;
    for (sk_size k = 0; k < full; k++) { /* what is beyond m adds nothing */
        a[k] = k < m ? z[k] - high : 0.0;
        inverse[k] = k < m ? 1.0 / (s * rho[k]) : 0.0;
        q[k] = k < m ? s * rho[k] * eta * r[k] : 0.0;
    }
    SK_SIMD_WITH(simdlen(4))
    for (sk_size k = 0; k < full; k++) q[k] *= sk_exp_any(a[k]);
    for (int i = 0; i < 8; i++) {
        double P = exp(-u), c = u - u_old + eta * (1.0 - P), g1 = 1.0 + eta * P;
        double reach = s * rho_y * g1 + 1.0; /* how fast t moves with u */
        double F = exp(high - s * rho_y * c - u), total = 0.0, slope = 0.0, step;
        if (!(F < 1e200)) return 0;
        if (i == 0) {
            SK_SIMD_WITH(simdlen(4))
            for (sk_size k = 0; k < full; k++) a[k] = sk_lambert_approx(q[k] * F);
            fall = 0.0;
        }
        SK_SIMD_WITH(simdlen(4) reduction(+ : total, slope))
        for (sk_size k = 0; k < full; k++) {
            double moved = sk_lambert_step(a[k] + a[k] * fall / (1.0 + a[k]), q[k] * F), b = moved * inverse[k];
            a[k] = moved;
            total += b;
            slope += b / (1.0 + moved);
        }
        step = (total - c) / (g1 + slope * reach);
        if (fabs(step) * reach < SK_LAST_STEP && i > 0) {
            double f = -step * reach, sum = 0.0;
            u += step;
            for (sk_size k = 0; k < m; k++) { /* b to second order in the last step */
                double by = 1.0 / (1.0 + a[k]), d = f * by;
                z[k] = a[k] * inverse[k] * (1.0 + d * (1.0 + 0.5 * d * by));
                sum += z[k];
            }
            *u_new = u;
            *c_new = sum;
            return u >= 0.0 && sum < 1e300;
        }
        if (i == 0 && step < 0.0) step = -log1p(-step); /* exp(-u) bends it */
        if (!(u + step > 0.0)) step = -0.5 * u;
        fall = -step * reach;
        fall = fall > 1.0 ? 1.0 : fall < -0.5 ? -0.5 : fall;
        u += step;
    }
    return 0;
}

/* m negatives; z is overwritten by b, buffer has 3 (m + 3) numbers. Returns c. */
static double sk_implicit_many(sk_size m, double *restrict z, const double *restrict r,
                               const double *restrict rho, double *restrict buffer, double eta, double s,
                               double rho_y, double u_old, double *u_new) {
    double c;
    if (s > 1e-100 && m > 0 && sk_implicit_many_fast(m, z, r, rho, buffer, eta, s, rho_y, u_old, u_new, &c)) return c;
    return sk_implicit_many_safe(0, m, z, r, rho, buffer, eta, s, rho_y, u_old, u_new);
}
#endif
