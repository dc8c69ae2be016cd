/* A sequence's flow: an interior-point method (Mehrotra, 1992). It takes a dozen
 * factorisations at all scales of scores. It stops when, for each transition, it is clear which of slack and weight is
 * 0. */
#ifndef SPARSEKIT_FACTOR_BARRIER_H
#define SPARSEKIT_FACTOR_BARRIER_H

#include "factor_graph/factor_chain.h"

#define FG_BARRIER_STEPS 60

/* Scores, and tags that are never on. g = W (v - x) at the solution differs from W v by at most w. A sequence whose
 * score is below the best by more than the sum of w is therefore in no mixture. Forbidden tags and transitions are left
 * out so: their huge scores would cost the others their digits. */
static void fg_flow_begin(fg_flow *t, const double *v, const double *w, const double *c) {
    const sk_size T = t->T, K = t->K, n = T * K;
    double *ahead = t->A, *back = t->B, *u = t->x, best, margin = 0.0, bound; /* (T, K) at most: T > 1 */
    for (sk_size p = 0; p < T; p++) {
        double most = 0.0;
        for (sk_size k = p * K; k < (p + 1) * K; k++) most = w[k] > most ? w[k] : most;
        margin += most;
    }
    for (sk_size i = 0; i < n; i++) u[i] = w[i] * v[i];
    best = fg_best_with(T, K, u, c, ahead, back);
    bound = best - margin - 1e-9 * (1.0 + fabs(best));
    /* A constant added to the scores of all tags of a position, or of all transitions, changes nothing. With sum 1 at
     * each position, weak scores have potentials of their own size, and these keep their digits. */
    for (sk_size p = 0; p < T; p++) {
        double sum = 0.0, total = 0.0;
        for (sk_size i = p * K; i < (p + 1) * K; i++) {
            const int on = ahead[i] + back[i] >= bound;
            t->iw[i] = on ? 1.0 / w[i] : 0.0;
            sum += on ? v[i] : 0.0;
            total += t->iw[i];
        }
        for (sk_size i = p * K; i < (p + 1) * K; i++)
            t->v[i] = t->iw[i] > 0.0 ? v[i] - t->iw[i] * (sum - 1.0) / total : 0.0;
    }
    t->n_arc = 0;
    for (sk_size p = 0; p < T - 1; p++) {
        const sk_size e = p * K * K;
        double top = -INFINITY;
        for (sk_size k = e; k < e + K * K; k++) {
            const sk_size to = (p + 1) * K + k % K;
            const int on = ahead[k / K] + c[k] + u[to] + back[to] >= bound;
            t->c[k] = on ? c[k] : -INFINITY;
            t->n_arc += on;
            top = on && c[k] > top ? c[k] : top;
        }
        for (sk_size k = e; k < e + K * K; k++) t->c[k] -= top;
    }
}

/* Change of a transition's weight E under the barrier -mu log z as its slack moves by dz. The slack is z = -(c + a_i +
 * b_j), and Q = 1 / z. second: the second-order term of Mehrotra's corrector, the E z that the predictor leaves. The
 * predictor's own change is -E (1 + Q dz), so its right-hand side has no sums of E. */
SK_INLINE double fg_arc_change(double E, double Q, double dz, double second, double mu) {
    return (mu + second) * Q - E - E * Q * dz;
}

SK_INLINE double fg_arc_second(double E, double Q, double straight) { return E * (1.0 + Q * straight) * straight; }

/* Q, D = E Q and its sums; subtracts the sums of E from ra, rb; returns the sum of E z */
SK_MULTI(double, fg_barrier_fill,
         (sk_size K, const double *restrict c, const double *restrict a, const double *restrict b,
          const double *restrict E, double *restrict Q, double *restrict D, double *restrict R, double *restrict C,
          double *restrict ra, double *restrict rb),
         (K, c, a, b, E, Q, D, R, C, ra, rb)) {
    double all = 0.0;
    for (sk_size j = 0; j < K; j++) C[j] = 0.0;
    for (sk_size i = 0; i < K; i++) {
        double sum = 0.0, flow = 0.0;
        SK_SIMD_WITH(reduction(+ : sum, flow, all)) for (sk_size j = 0; j < K; j++) {
            const double z = -(c[i * K + j] + a[i] + b[j]), w = E[i * K + j], q = 1.0 / z, d = w * q;
            Q[i * K + j] = q;
            D[i * K + j] = d;
            C[j] += d;
            rb[j] -= w;
            sum += d;
            flow += w;
            all += w > 0.0 ? w * z : 0.0;
        }
        R[i] = sum;
        ra[i] -= flow;
    }
    return all;
}

/* Predictor step in direction da, db. most: the largest relative fall of a slack or a weight. Returns the coefficient
 * of the squared step in the sum of E z. */
SK_MULTI(double, fg_barrier_predictor,
         (sk_size K, const double *restrict Q, const double *restrict E, const double *restrict da,
          const double *restrict db, double *most),
         (K, Q, E, da, db, most)) {
    double top = *most, sum = 0.0;
    for (sk_size i = 0; i < K; i++)
        SK_SIMD_MAX(reduction(max : top) reduction(+ : sum))
        for (sk_size j = 0; j < K; j++) {
            const double dz = -(da[i] + db[j]), by = Q[i * K + j] * dz, w = E[i * K + j];
            const double shrinks = w > 0.0 ? 1.0 + by : 0.0;
            top = -by > top ? -by : top;
            top = shrinks > top ? shrinks : top;
            sum += w * dz * (1.0 + by);
        }
    *most = top;
    return sum;
}

/* ra, rb -= sums of the weights' changes at fixed potentials */
SK_MULTI(void, fg_barrier_subtract_changes,
         (sk_size K, const double *restrict Q, const double *restrict E, double mu, const double *restrict ta,
          const double *restrict tb, double *restrict ra, double *restrict rb),
         (K, Q, E, mu, ta, tb, ra, rb)) {
    for (sk_size i = 0; i < K; i++) {
        double sum = 0.0;
        SK_SIMD_WITH(reduction(+ : sum)) for (sk_size j = 0; j < K; j++) {
            const double q = Q[i * K + j], w = E[i * K + j];
            const double by = fg_arc_change(w, q, 0.0, fg_arc_second(w, q, -(ta[i] + tb[j])), mu);
            rb[j] -= by;
            sum += by;
        }
        ra[i] -= sum;
    }
}

/* the largest relative fall of a slack, and of a weight, in direction da, db */
SK_MULTI(double, fg_barrier_largest_fall,
         (sk_size K, const double *restrict Q, const double *restrict E, double mu, const double *restrict ta,
          const double *restrict tb, const double *restrict da, const double *restrict db, double most),
         (K, Q, E, mu, ta, tb, da, db, most)) {
    for (sk_size i = 0; i < K; i++)
        SK_SIMD_MAX(reduction(max : most))
        for (sk_size j = 0; j < K; j++) {
            const double q = Q[i * K + j], w = E[i * K + j], dz = -(da[i] + db[j]), straight = -(ta[i] + tb[j]);
            const double falls = -dz * q, second = (1.0 + q * straight) * straight;
            const double shrinks = w > 0.0 ? 1.0 + q * (dz - second - mu / w) : 0.0;
            most = falls > most ? falls : most;
            most = shrinks > most ? shrinks : most;
        }
    return most;
}

/* E after a step */
SK_MULTI(void, fg_barrier_step,
         (sk_size K, const double *restrict Q, double *restrict E, double mu, const double *restrict ta,
          const double *restrict tb, const double *restrict da, const double *restrict db, double step),
         (K, Q, E, mu, ta, tb, da, db, step)) {
    for (sk_size i = 0; i < K; i++)
        SK_SIMD for (sk_size j = 0; j < K; j++) {
            const double q = Q[i * K + j], w = E[i * K + j];
            const double second = fg_arc_second(w, q, -(ta[i] + tb[j]));
            E[i * K + j] = w + step * fg_arc_change(w, q, -(da[i] + db[j]), second, mu);
        }
}

/* Weights, and potentials in `a` and `b` with slacks well above 0; returns the largest spread of a position's scores. */
static double fg_barrier_start(fg_flow *t) {
    const sk_size K = t->K, KK = K * K, m = (t->T - 1) * K;
    double spread = 0.0, least_v = INFINITY, most_v = -INFINITY, delta;
    for (sk_size i = 0; i < t->T * K; i++)
        if (t->iw[i] > 0.0) {
            least_v = t->v[i] < least_v ? t->v[i] : least_v;
            most_v = t->v[i] > most_v ? t->v[i] : most_v;
        }
    for (sk_size p = 0; p < t->T - 1; p++) {
        double least = INFINITY, most = -INFINITY;
        for (sk_size i = p * KK; i < (p + 1) * KK; i++) {
            if (t->c[i] == -INFINITY) {
                t->E[i] = 0.0;
                continue;
            }
            t->E[i] = 1.0 / (double)KK;
            least = t->c[i] < least ? t->c[i] : least;
            most = t->c[i] > most ? t->c[i] : most;
        }
        spread = most - least > spread ? most - least : spread;
    }
    delta = 0.5 * (spread + most_v - least_v);
    delta = delta > 1.0 / (double)K ? delta : 1.0 / (double)K;
    for (sk_size i = 0; i < m; i++) t->a[i] = -delta, t->b[i] = 0.0;
    return spread;
}

/* Answers, gradients in ra and rb, and the matrix; returns the mean of E z. miss: the largest error of a sum. */
static double fg_barrier_evaluate(fg_flow *t, double *miss) {
    const sk_size K = t->K, KK = K * K, m = (t->T - 1) * K;
    double mu = 0.0;
    fg_chain_answer(t);
    for (sk_size i = 0; i < m; i++) t->ra[i] = t->ta[i] = t->x[i], t->rb[i] = t->tb[i] = t->x[i + K];
    for (sk_size p = 0; p < t->T - 1; p++) {
        const sk_size i = p * K, e = p * KK;
        mu += fg_barrier_fill(K, t->c + e, t->a + i, t->b + i, t->E + e, t->Q + e, t->Y + e, t->R + i, t->C + i,
                              t->ra + i, t->rb + i);
    }
    *miss = 0.0;
    for (sk_size i = 0; i < m; i++) {
        *miss = fabs(t->ra[i]) > *miss ? fabs(t->ra[i]) : *miss;
        *miss = fabs(t->rb[i]) > *miss ? fabs(t->rb[i]) : *miss;
    }
    return mu / (double)t->n_arc;
}

/* The predictor's direction, to a barrier of 0, in ta and tb; returns the barrier for the corrector. */
static double fg_barrier_predict(fg_flow *t, double mu) {
    const sk_size K = t->K, KK = K * K;
    double most = 1e-300, square = 0.0, step, after;
    fg_chain_solve(t, t->ta, t->tb);
    for (sk_size p = 0; p < t->T - 1; p++) {
        const sk_size i = p * K, e = p * KK;
        square += fg_barrier_predictor(K, t->Q + e, t->E + e, t->ta + i, t->tb + i, &most);
    }
    step = most > 1.0 ? 1.0 / most : 1.0;
    after = (1.0 - step) * mu - step * step * square / (double)t->n_arc;
    return after > 0.0 ? mu * pow(after / mu, 3.0) : 0.0;
}

/* The corrector's direction in da and db, for the barrier `aim`, and a step along it; returns the step. */
static double fg_barrier_correct(fg_flow *t, double aim) {
    const sk_size K = t->K, KK = K * K, m = (t->T - 1) * K;
    double most = 1e-300, step;
    memcpy(t->da, t->ra, (size_t)m * sizeof(double));
    memcpy(t->db, t->rb, (size_t)m * sizeof(double));
    for (sk_size p = 0; p < t->T - 1; p++) {
        const sk_size i = p * K, e = p * KK;
        fg_barrier_subtract_changes(K, t->Q + e, t->E + e, aim, t->ta + i, t->tb + i, t->da + i, t->db + i);
    }
    fg_chain_solve(t, t->da, t->db);
    for (sk_size p = 0; p < t->T - 1; p++) {
        const sk_size i = p * K, e = p * KK;
        most = fg_barrier_largest_fall(K, t->Q + e, t->E + e, aim, t->ta + i, t->tb + i, t->da + i, t->db + i, most);
    }
    step = most > 0.99 ? 0.99 / most : 1.0;
    for (sk_size p = 0; p < t->T - 1; p++) {
        const sk_size i = p * K, e = p * KK;
        fg_barrier_step(K, t->Q + e, t->E + e, aim, t->ta + i, t->tb + i, t->da + i, t->db + i, step);
    }
    for (sk_size i = 0; i < m; i++) t->a[i] += step * t->da[i], t->b[i] += step * t->db[i];
    return step;
}

/* The interior-point method. It stops when, for each transition, it is clear which of slack and weight is 0. */
static int fg_flow_barrier(fg_flow *t, fg_watch *watch) {
    const sk_size K = t->K, m = (t->T - 1) * K;
    const double spread = fg_barrier_start(t);
    double gap = INFINITY, step = 0.0;
    int is_feasible = 0;
    for (int it = 0; it < FG_BARRIER_STEPS; it++) {
        double miss, size = 0.0;
        const double mu = fg_barrier_evaluate(t, &miss);
        /* a slack was rounding */
        if (!(mu > 0.0)) {
            for (sk_size i = 0; i < m; i++) t->a[i] -= step * t->da[i], t->b[i] -= step * t->db[i];
            return gap < INFINITY;
        }
        for (sk_size i = 0; i < m; i++) {
            size = fabs(t->a[i]) > size ? fabs(t->a[i]) : size;
            size = fabs(t->b[i]) > size ? fabs(t->b[i]) : size;
        }
        size = 1e-11 * size > 1e-9 * spread ? 1e-11 * size : 1e-9 * spread;
        is_feasible |= miss < 1e-8; /* rounding may increase the error of the sums again */
        if (is_feasible && (mu <= size / (double)(K * K) || mu > 0.95 * gap)) return 1;
        gap = mu;
        if (!fg_chain_factor(t, 0.0, 1e-15, watch)) return 0;
        step = fg_barrier_correct(t, fg_barrier_predict(t, mu));
    }
    return 1;
}

#endif
