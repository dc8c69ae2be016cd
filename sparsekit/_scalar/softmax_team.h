/* Softmax over a label and sampled classes: gradients along the row by each method, and implicit steps.
 *
 * A team of threads shares the classes: of a GPU a block or a warp, of a processor one thread. Entry 0 is the label's.
 * C has sk_exp_any and simd.h before this header, CUDA has sk::team. */
#ifndef SPARSEKIT_SOFTMAX_TEAM_H
#define SPARSEKIT_SOFTMAX_TEAM_H

#include "numbers.h"
#include "omega.h"

#ifdef SK_INLINE
typedef int sk_team;
#define SK_EACH(j, from, to) for (sk_int j = from; j < to; j++)
#define SK_TEAM_SUM(x) ((void)t, (x))
#define SK_TEAM_MAX(x) ((void)t, (x))
#define SK_EXP sk_exp_any
#else
typedef sk::team sk_team;
#define SK_EACH(j, from, to) for (sk_int j = (from) + t.rank(); j < to; j += t.size())
#define SK_TEAM_SUM(x) t.sum(x)
#define SK_TEAM_MAX(x) t.max(x)
#define SK_EXP exp
#define SK_SIMD
#define SK_SIMD_WITH(...)
#define SK_SIMD_MAX(...)
#endif

/* last step of Newton's method; its error is the square */
#define SK_LAST_SAFE_STEP 1e-6

typedef struct {
    sk_int method, n_negatives, n_classes;
    const double *log_noise; /* of the classes, or NULL: uniform */
} sk_method;

/* log(1 + the sum of exp(f[j] - f[0]) over the negatives with r[j] > 0) */
SK_BOTH double sk_log_sum(sk_team t, sk_int n, const double *f, const double *r) {
    double high = 0.0, sum = 0.0;
    SK_SIMD_MAX(reduction(max : high))
    SK_EACH(j, 1, n + 1) high = r[j] > 0.0 && f[j] - f[0] > high ? f[j] - f[0] : high;
    high = SK_TEAM_MAX(high);
    SK_SIMD_WITH(reduction(+ : sum))
    SK_EACH(j, 1, n + 1) sum += r[j] > 0.0 ? SK_EXP(f[j] - f[0] - high) : 0.0;
    return high + log(exp(-high) + SK_TEAM_SUM(sum));
}

/* The first u of a row, from its drawn classes: log K where all scores are equal. */
SK_BOTH double sk_first_u(sk_team t, sk_int n, const double *f, const double *r) {
    double high = 0.0, total = 0.0;
    SK_EACH(j, 1, n + 1) high = f[j] - f[0] > high ? f[j] - f[0] : high;
    high = SK_TEAM_MAX(high);
    SK_EACH(j, 1, n + 1) total += r[j] * exp(f[j] - f[0] - high);
    return high + log(exp(-high) + SK_TEAM_SUM(total));
}

/* Gradient along x: g[j] of class k[j], j = 1 .. n, and as the result that of the label, from the scores f; may change
 * u. Entries with r = 0 are none, and have the label's score. k is read by NCE alone. */
SK_BOTH double sk_method_slopes(sk_team t, sk_method M, sk_int n, double eta, const sk_int *k, const double *f,
                                const double *r, double *g, double *u_) {
    double fy = f[0], total = 0.0;
    if (M.method == SK_OVE) {
        SK_SIMD_WITH(reduction(+ : total))
        SK_EACH(j, 1, n + 1) {
            g[j] = r[j] / (1.0 + SK_EXP(fy - f[j]));
            total += g[j];
        }
        return -SK_TEAM_SUM(total);
    }
    if (M.method == SK_IS) {
        double high = 0.0, by;
        SK_SIMD_MAX(reduction(max : high))
        SK_EACH(j, 1, n + 1) high = r[j] > 0.0 && f[j] - fy > high ? f[j] - fy : high;
        high = SK_TEAM_MAX(high);
        SK_SIMD_WITH(reduction(+ : total))
        SK_EACH(j, 1, n + 1) {
            g[j] = r[j] * SK_EXP(f[j] - fy - high);
            total += g[j];
        }
        total = SK_TEAM_SUM(total);
        by = 1.0 / (total + exp(-high));
        SK_EACH(j, 1, n + 1) g[j] *= by;
        return -total * by;
    }
    if (M.method == SK_NCE) {
        double log_m = log((double)M.n_negatives), uniform = -log((double)M.n_classes);
        SK_SIMD
        SK_EACH(j, 1, n + 1) {
            double z = f[j] - log_m - (M.log_noise ? M.log_noise[k[j]] : uniform);
            g[j] = 1.0 / (1.0 + SK_EXP(-z));
        }
        return -1.0 / (1.0 + SK_EXP(fy - log_m - (M.log_noise ? M.log_noise[k[0]] : uniform)));
    }
    double u = *u_; /* eq. (7) */
    if (M.method == SK_UMAX) {
        double bound = sk_log_sum(t, n, f, r);
        if (u < bound - SK_UMAX_DELTA) u = bound;
    }
    SK_SIMD_WITH(reduction(+ : total))
    SK_EACH(j, 1, n + 1) {
        g[j] = r[j] * SK_EXP(f[j] - fy - u);
        total += g[j];
    }
    total = SK_TEAM_SUM(total);
    u -= eta * (1.0 - exp(-u) - total);
    /* the optimal u is not negative */
    *u_ = M.method == SK_UMAX && u < 0.0 ? 0.0 : u;
    return -total;
}

/* An implicit step with m negatives (equations: _cython/extreme/implicit.h): the unknown is u. With
 * q_k = s rho_k eta r_k exp(z_k) and t(u) = s rho_y c(u) + u, b_k(u) = lambert(q_k exp(-t(u))) / (s rho_k), and
 * h(u) = c(u) - sum_k b_k(u) increases in u. z (m) is overwritten by b, q (m) is workspace; r and rho may differ from
 * negative to negative. Returns c. */
SK_BOTH double sk_implicit_many_safe(sk_team t, sk_int m, double *z, const double *r, const double *rho, double *q,
                                     double eta, double s, double rho_y, double u_old, double *u_new) {
    /* the root is not negative where u_old is not */
    double high_z = -INFINITY, u = u_old, low = u_old >= 0.0 ? 0.0 : -INFINITY, high = INFINITY, c = 0.0;
    SK_EACH(k, 0, m) high_z = z[k] > high_z ? z[k] : high_z;
    high_z = SK_TEAM_MAX(high_z);
    SK_EACH(k, 0, m) q[k] = s * rho[k] * eta * r[k] * exp(z[k] - high_z);
    for (int i = 0; i < SK_ROOT_STEPS; i++) {
        double P = exp(-u), total = 0.0, slope = 0.0, shift, F, g, g1, reach, step;
        c = u - u_old + eta * (1.0 - P);
        shift = high_z - s * rho_y * c - u;
        F = exp(shift);
        SK_EACH(k, 0, m) {
            double a = shift < 600.0 ? sk_lambert(q[k] * F) : sk_omega(shift + log(q[k]));
            z[k] = a / (s * rho[k]);
            total += z[k];
            slope += z[k] / (1.0 + a);
        }
        total = SK_TEAM_SUM(total);
        slope = SK_TEAM_SUM(slope);
        g = c - total;
        if (g > 0.0) high = u;
        else low = u;
        g1 = 1.0 + eta * P, reach = s * rho_y * g1 + 1.0; /* dc/du, and minus d(shift)/du */
        step = -g / (g1 + slope * reach);
        if (fabs(step) * reach < SK_LAST_SAFE_STEP || i == SK_ROOT_STEPS - 1) {
            /* b to first order in the last step: the error is its square */
            u += step;
            c = 0.0;
            SK_EACH(k, 0, m) {
                z[k] *= 1.0 - step * reach / (1.0 + s * rho[k] * z[k]);
                c += z[k];
            }
            c = SK_TEAM_SUM(c);
            break;
        }
        if (!(u + step > low && u + step < high)) {
            if (low > -INFINITY && high < INFINITY) step = 0.5 * (low + high) - u;
            else step = g > 0.0 ? -1.0 - fabs(u) : 1.0 + fabs(u);
        }
        u += step;
    }
    *u_new = u;
    return c;
}

#endif
