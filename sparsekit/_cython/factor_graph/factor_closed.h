/* Local problems with a closed form, by one thread: loops over pairs, and over the entries of a linear constraint, for
 * the formulas of pair.h and closed.h. */
#ifndef SPARSEKIT_FACTOR_CLOSED_H
#define SPARSEKIT_FACTOR_CLOSED_H

#include "factor_graph/factor_graph.h"

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
    SK_SIMD for (sk_size i = 0; i < n; i++) {
        sk_pair_slopes s = sk_pair_jacobian(v[i], v[n + i], d[i], d[n + i], q[i], c[i] * inv);
        f[i] = s.f1;
        f[n + i] = s.f2;
        e[i] = s.e1;
        e[n + i] = s.e2;
        coef[i] = s.coef;
        slope[i] = s.n1;
        slope[n + i] = s.n2;
    }
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

#define FG_CLOSED static
#define FG_LANES
#define FG_SAME_LANES
#define FG_EACH(k, d) for (sk_size k = 0; k < (d); k++)
#define FG_SUM(x) (x)
#define FG_MOST(x) (x)
#define FG_LEAST(x) (x)
#define FG_OF(x, k) (x)
#define FG_ONE_LANE 1
#define FG_MEET
typedef sk_size fg_count;

#include "closed.h"

#endif
