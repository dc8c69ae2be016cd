/* Local problems with a closed form: pairs (Proposition 10), a box cut by one linear constraint (D.1.3), OrOut
 * (D.2.6). If f is not NULL the Jacobian is written as well, as f + e coef (w e)'. */
#ifndef SPARSEKIT_FACTOR_CLOSED_H
#define SPARSEKIT_FACTOR_CLOSED_H

#include "factor_graph/factor_graph.h"
#include "pair.h"

/* Proposition 10 with c = score * inv */
SK_MULTI(void, fg_pairs,
         (sk_size n, const double *restrict v1, const double *restrict v2, const double *restrict d1,
          const double *restrict d2, const double *restrict q, const double *restrict c, double inv,
          double *restrict x1, double *restrict x2),
         (n, v1, v2, d1, d2, q, c, inv, x1, x2)) {
    SK_SIMD for (sk_size i = 0; i < n; i++)
        sk_pair(v1[i], v2[i], d1[i], d2[i], q[i], c[i] * inv, &x1[i], &x2[i]);
}

/* its Jacobian at the same point; v, d, f, e and slope (2 n): of all first variables, then of all second ones */
SK_MULTI(void, fg_pairs_jacobian,
         (sk_size n, const double *restrict v, const double *restrict d, const double *restrict q,
          const double *restrict c, double inv, double *restrict f, double *restrict e, double *restrict coef,
          double *restrict slope),
         (n, v, d, q, c, inv, f, e, coef, slope)) {
    SK_SIMD for (sk_size i = 0; i < n; i++)
        sk_pair_jacobian(v[i], v[n + i], d[i], d[n + i], q[i], c[i] * inv, &f[i], &f[n + i], &e[i], &e[n + i],
                         &coef[i], &slope[i], &slope[n + i]);
}

/* y = (f + e coef (w e)') u of pairs, and of a factor with d slots */
SK_MULTI(void, fg_pairs_product,
         (sk_size n, const double *restrict f, const double *restrict e, const double *restrict w,
          const double *restrict coef, const double *restrict u, double *restrict y),
         (n, f, e, w, coef, u, y)) {
    SK_SIMD for (sk_size i = 0; i < n; i++) {
        double dot = coef[i] * (w[i] * e[i] * u[i] + w[n + i] * e[n + i] * u[n + i]);
        y[i] = f[i] * u[i] + e[i] * dot;
        y[n + i] = f[n + i] * u[n + i] + e[n + i] * dot;
    }
}

SK_MULTI(void, fg_factor_product,
         (sk_size d, const double *restrict f, const double *restrict e, const double *restrict w, double coef,
          const double *restrict u, double *restrict y),
         (d, f, e, w, coef, u, y)) {
    double dot = 0.0;
    SK_SIMD_WITH(reduction(+ : dot)) for (sk_size s = 0; s < d; s++) dot += w[s] * e[s] * u[s];
    dot *= coef;
    SK_SIMD for (sk_size s = 0; s < d; s++) y[s] = f[s] * u[s] + e[s] * dot;
}

/* a.x of x = clip(v + tau ad), and its slope in tau */
SK_MULTI(void, fg_sweep,
         (sk_size d, const double *restrict v, const double *restrict a, const double *restrict ad, double tau,
          double *restrict x, double *sum, double *slope),
         (d, v, a, ad, tau, x, sum, slope)) {
    double s = 0.0, q = 0.0;
    SK_SIMD_WITH(reduction(+ : s, q)) for (sk_size k = 0; k < d; k++) {
        double y = v[k] + tau * ad[k];
        q += y > 0.0 && y < 1.0 ? a[k] * ad[k] : 0.0;
        y = y < 0.0 ? 0.0 : y;
        y = y > 1.0 ? 1.0 : y;
        x[k] = y;
        s += a[k] * y;
    }
    *sum = s;
    *slope = q;
}

/* distance in tau from here to where the next variable leaves its bound, upwards (way 1) or downwards (-1) */
static double fg_next_bend(sk_size d, const double *v, const double *ad, double tau, int way) {
    double best = DBL_MAX;
    for (sk_size k = 0; k < d; k++) {
        double rate = way * ad[k], y = v[k] + tau * ad[k], t;
        if (rate > 0.0 && y <= 0.0) t = -y / rate;
        else if (rate < 0.0 && y >= 1.0) t = (1.0 - y) / rate;
        else continue;
        if (t < best) best = t;
    }
    return best;
}

/* Projection on the box cut by a.x <=, = or >= b: x = clip(v + tau ad). a.x rises with tau; tau solves a.x = b, and is
 * 0 for an inactive inequality. Newton's method in a bracket, from the last tau: a.x is
 * piecewise linear, so the step out of the right piece is exact. */
static void fg_linear(sk_size d, const double *v, const double *a, const double *ad, int relation, double b,
                      double *tau, double *x, double *f, double *e, double *coef) {
    double t = *tau, lo = -DBL_MAX, hi = DBL_MAX, sum, slope, scale = fabs(b) + 1.0;
    int free_of_it = 0;
    for (int round = 0; round < 200; round++) {
        double miss, next;
        fg_sweep(d, v, a, ad, t, x, &sum, &slope);
        miss = sum - b;
        if (t == 0.0 && relation * miss >= 0.0 && relation != FG_EQUAL) {
            free_of_it = 1;
            break;
        }
        if (fabs(miss) <= 2e-16 * scale) break;
        if (miss > 0.0) hi = t;
        else lo = t;
        if (slope > 0.0) next = t - miss / slope;
        else {
            double bend = fg_next_bend(d, v, ad, t, miss > 0.0 ? -1 : 1);
            if (bend == DBL_MAX) break; /* all are at their bounds: a.x is at its maximum or minimum */
            bend += 1e-6 + 8.0 * DBL_EPSILON * (fabs(t) + bend);
            next = miss > 0.0 ? t - bend : t + bend;
        }
        /* the sign that the multiplier of an inequality has */
        if (relation * next < 0.0) next = 0.0;
        if (!(next > lo && next < hi)) {
            if (lo == -DBL_MAX || hi == DBL_MAX || !(0.5 * (lo + hi) > lo && 0.5 * (lo + hi) < hi)) break;
            next = 0.5 * (lo + hi);
        }
        if (next == t) break;
        t = next;
    }
    *tau = t;
    if (f == NULL) return;
    slope = 0.0;
    for (sk_size k = 0; k < d; k++) {
        f[k] = FG_FREE(x[k]);
        e[k] = f[k] * ad[k];
        slope += f[k] * a[k] * ad[k];
    }
    *coef = free_of_it || !(slope > 0.0) ? 0.0 : -1.0 / slope;
}

/* OrOut: last = OR of the others. y: d doubles of workspace. */
static void fg_orout(sk_size d, const double *v, const double *a, const double *ad, const double *w,
                     const int32_t *negated, double *tau, double *x, double *y, double *f, double *e, double *coef) {
    double most = 0.0, total = 0.0, out, level = 0.0;
    int branch = 1;
    for (sk_size k = 0; k < d; k++) y[k] = negated[k] ? 1.0 - v[k] : v[k];
    for (sk_size k = 0; k < d; k++) x[k] = fg_clip(y[k]);
    for (sk_size k = 0; k < d - 1; k++) {
        total += x[k];
        most = x[k] > most ? x[k] : most;
    }
    out = x[d - 1];
    if (most > out) {
        /* Proposition 8: tau = weighted mean of the last score and those above it. It only rises as members join, so a
         * member stays one. */
        double up = w[d - 1] * y[d - 1], weight = w[d - 1], next;
        branch = 2;
        level = y[d - 1];
        for (sk_size round = 0; round <= d; round++) {
            double s = up, q = weight;
            for (sk_size k = 0; k < d - 1; k++)
                if (y[k] > level) s += w[k] * y[k], q += w[k];
            next = s / q;
            if (!(next > level)) break;
            level = next;
        }
        total = 0.0;
        for (sk_size k = 0; k < d - 1; k++) {
            x[k] = fg_clip(y[k] > level ? level : y[k]);
            total += x[k];
        }
        out = x[d - 1] = fg_clip(level);
    }
    if (total < out) {
        branch = 3; /* the others sum to the last */
        fg_linear(d, y, a, ad, FG_EQUAL, 0.0, tau, x, f, e, coef);
    }
    if (f != NULL && branch < 3) {
        double weight = 0.0;
        for (sk_size k = 0; k < d; k++) {
            int member = branch == 2 && (k == d - 1 || y[k] > level);
            f[k] = member ? 0.0 : FG_FREE(x[k]);
            e[k] = member && FG_FREE(level);
            weight += e[k] * w[k];
        }
        *coef = weight > 0.0 ? 1.0 / weight : 0.0;
    }
    for (sk_size k = 0; k < d; k++)
        if (negated[k]) {
            x[k] = 1.0 - x[k];
            if (e != NULL) e[k] = -e[k];
        }
}

/* Maximum of rho.x over the box cut by a.x <=, = or >= b. Its dual minimises t b + sum max(0, rho - t a) over t with
 * the constraint's sign. That function is convex, with breakpoints at rho / a. */
static double fg_linear_support(sk_size d, const double *rho, const double *a, int relation, double b) {
    double best = DBL_MAX;
    for (sk_size i = 0; i <= d; i++) {
        double t = i == d ? 0.0 : (a[i] != 0.0 ? rho[i] / a[i] : 0.0), value;
        if (relation * t > 0.0) continue;
        value = t * b;
        for (sk_size k = 0; k < d; k++) value += rho[k] - t * a[k] > 0.0 ? rho[k] - t * a[k] : 0.0;
        if (value < best) best = value;
    }
    return best;
}

static double fg_orout_support(sk_size d, const double *rho, const int32_t *negated) {
    double fixed = 0.0, inputs = 0.0, largest = -DBL_MAX, last = 0.0, on;
    for (sk_size k = 0; k < d; k++) {
        double r = negated[k] ? -rho[k] : rho[k];
        fixed += negated[k] ? rho[k] : 0.0;
        if (k == d - 1) last = r;
        else {
            inputs += r > 0.0 ? r : 0.0;
            largest = r > largest ? r : largest;
        }
    }
    on = last + (largest > 0.0 ? inputs : largest);
    return fixed + (on > 0.0 ? on : 0.0);
}

#endif
