/* Linear chains whose transition scores are the same at all positions: forward-backward.
 *
 * Scores of a sequence are unary (T, K) and trans (K, K) [previous, next]; -inf forbids. The fast algorithm computes
 * exponentials once: U by position and E = exp(trans - top) for all sequences. It scales the forward sums of each
 * position to 1. It is used if no relevant term can underflow, which the caller decides (_tagger/losses/chains.py). The
 * other algorithm adds in logarithms.
 *
 * Rows are padded to P, a multiple of 8 numbers that are zero: one register of eight, or two of four. */
#ifndef SPARSEKIT_CHAINS_H
#define SPARSEKIT_CHAINS_H

#include "shared/structures.h"

#define SK_CHAIN_WIDTH 8

SK_INLINE sk_size sk_chain_padded(sk_size K) { return (K + SK_CHAIN_WIDTH - 1) / SK_CHAIN_WIDTH * SK_CHAIN_WIDTH; }

/* doubles that sk_chain_scaled and sk_chain_logs work in */
static sk_size sk_chain_buffer_size(sk_size T, sk_size K) { return (2 * T + 4) * sk_chain_padded(K); }

/* The largest range of the finite scores of a position; inf if one has none. */
SK_MULTI(double, sk_chain_range, (sk_size T, sk_size K, const double *restrict unary), (T, K, unary)) {
    double widest = 0.0;
    for (sk_size t = 0; t < T; t++) {
        const double *restrict u = unary + t * K;
        double low = INFINITY, high = -INFINITY;
        for (sk_size k = 0; k < K; k++) {
            double x = u[k] > -INFINITY ? u[k] : INFINITY;
            low = x < low ? x : low;
            high = u[k] > high ? u[k] : high;
        }
        if (high == -INFINITY) return INFINITY;
        widest = high - low > widest ? high - low : widest;
    }
    return widest;
}

/* Columns of x (K,) times the table (K, P) from column b on, `width` at a time, whose sums registers hold; the first
 * column that is left */
SK_INLINE sk_size sk_chain_times_by(sk_size K, sk_size P, const double *restrict x, const double *restrict table,
                                    double *restrict out, sk_size b, sk_size width) {
    for (; b + width <= P; b += width) {
        double sum[4 * SK_CHAIN_WIDTH] = {0};
        for (sk_size j = 0; j < K; j++) {
            const double a = x[j], *restrict row = table + j * P + b;
            SK_SIMD
            for (sk_size k = 0; k < width; k++) sum[k] += a * row[k];
        }
        for (sk_size k = 0; k < width; k++) out[b + k] = sum[k];
    }
    return b;
}

/* out (P,) = x (K,) times the table (K, P) */
SK_INLINE void sk_chain_times(sk_size K, sk_size P, const double *restrict x, const double *restrict table,
                              double *restrict out) {
    sk_size b = sk_chain_times_by(K, P, x, table, out, 0, 4 * SK_CHAIN_WIDTH);
    b = sk_chain_times_by(K, P, x, table, out, b, 2 * SK_CHAIN_WIDTH);
    sk_chain_times_by(K, P, x, table, out, b, SK_CHAIN_WIDTH);
}

/* log Z; marginals (T, K) times weight overwrite unary; outer (K, P) += weight a_(t-1) b_t^T, which times E are the
 * marginals of the transitions. E (K, P), turned (K, P): E and its transpose. */
SK_MULTI(double, sk_chain_scaled,
         (sk_size T, sk_size K, double *restrict unary, const double *restrict E, const double *restrict turned,
          double top, double weight, double *restrict outer, double *restrict work),
         (T, K, unary, E, turned, top, weight, outer, work)) {
    const sk_size P = sk_chain_padded(K);
    double *restrict exps = work, *restrict forward = exps + T * P;
    double *restrict beta = forward + T * P, *restrict now = beta + P, value = (double)(T - 1) * top;
    for (sk_size t = 0; t < T; t++) {
        const double *restrict u = unary + t * K;
        double *restrict e = exps + t * P, *restrict a = forward + t * P;
        const double most = sk_top(u, K);
        double sum = 0.0;
        SK_SIMD
        for (sk_size k = 0; k < K; k++) e[k] = sk_exp_neg(u[k] - most);
        for (sk_size k = K; k < P; k++) e[k] = 0.0;
        if (t == 0)
            for (sk_size k = 0; k < P; k++) a[k] = e[k];
        else {
            sk_chain_times(K, P, a - P, E, a);
            SK_SIMD
            for (sk_size k = 0; k < P; k++) a[k] *= e[k];
        }
        SK_SIMD_WITH(reduction(+ : sum))
        for (sk_size k = 0; k < P; k++) sum += a[k];
        if (sum == 0.0) { /* no sequence is allowed */
            for (sk_size k = 0; k < T * K; k++) unary[k] = 0.0;
            return -INFINITY;
        }
        value += most + log(sum);
        sum = 1.0 / sum;
        SK_SIMD
        for (sk_size k = 0; k < P; k++) {
            a[k] *= sum;
            e[k] *= sum;
        }
    }
    for (sk_size k = 0; k < P; k++) beta[k] = 1.0;
    for (sk_size t = T - 1; t >= 0; t--) {
        const double *restrict a = forward + t * P;
        double *restrict u = unary + t * K;
        SK_SIMD
        for (sk_size k = 0; k < K; k++) u[k] = weight * a[k] * beta[k];
        if (t == 0) break;
        SK_SIMD
        for (sk_size k = 0; k < P; k++) now[k] = exps[t * P + k] * beta[k];
        sk_chain_times(K, P, now, turned, beta);
        a -= P;
        for (sk_size j = 0; j < K; j++) {
            const double c = weight * a[j];
            double *restrict row = outer + j * P;
            SK_SIMD
            for (sk_size k = 0; k < P; k++) row[k] += c * now[k];
        }
    }
    return value;
}

/* terms below this are lost in rounding */
#define SK_CHAIN_LOST -60.0

/* out (K,) = row + shift + a, and its largest entry */
SK_INLINE double sk_chain_shifted(sk_size K, const double *restrict row, const double *restrict shift, double a,
                                  double *restrict out) {
    double top = -INFINITY;
    SK_SIMD_MAX(reduction(max : top))
    for (sk_size k = 0; k < K; k++) {
        out[k] = a + row[k] + shift[k];
        top = out[k] > top ? out[k] : top;
    }
    return top;
}

/* the same by logarithms, for scores of any size; pairs (K, K) += weight times the marginals of the transitions.
 * -inf where no sequence is allowed; marginals are zeros then. The backward pass distributes the marginals of a label
 * over the labels before it. Rows without relevant terms take no exponentials; with large differences of scores these
 * are most. */
SK_MULTI(double, sk_chain_logs,
         (sk_size T, sk_size K, double *restrict unary, const double *restrict trans, double weight,
          double *restrict pairs, double *restrict work),
         (T, K, unary, trans, weight, pairs, work)) {
    /* scores and forward sums are stored separately: their sum may lose the digits of the smaller one */
    double *restrict forward = work, *restrict into = forward + T * K, *restrict sums = into + T * K;
    double *restrict shift = sums + K;
    double *restrict now = shift + K, most, sum = 0.0, value;
    for (sk_size k = 0; k < K; k++) forward[k] = unary[k];
    for (sk_size t = 1; t < T; t++) {
        const double *restrict a = forward + (t - 1) * K;
        double *restrict out = forward + t * K, *restrict in = into + t * K;
        for (sk_size k = 0; k < K; k++) shift[k] = -INFINITY;
        for (sk_size j = 0; j < K; j++) {
            const double *restrict row = trans + j * K;
            SK_SIMD
            for (sk_size k = 0; k < K; k++) shift[k] = a[j] + row[k] > shift[k] ? a[j] + row[k] : shift[k];
        }
        for (sk_size k = 0; k < K; k++) {
            in[k] = shift[k];
            shift[k] = shift[k] > -INFINITY ? -shift[k] : 0.0;
            sums[k] = 0.0;
        }
        for (sk_size j = 0; j < K; j++) {
            if (sk_chain_shifted(K, trans + j * K, shift, a[j], now) < SK_CHAIN_LOST) continue;
            SK_SIMD
            for (sk_size k = 0; k < K; k++) sums[k] += sk_exp_neg(now[k]);
        }
        for (sk_size k = 0; k < K; k++) {
            in[k] = in[k] > -INFINITY ? in[k] + log(sums[k]) : -INFINITY;
            out[k] = unary[t * K + k] + in[k];
        }
    }
    const double *restrict last = forward + (T - 1) * K;
    most = sk_top(last, K);
    if (most > -INFINITY)
        for (sk_size k = 0; k < K; k++) sum += exp(last[k] - most);
    value = most > -INFINITY ? most + log(sum) : -INFINITY;
    if (!(value > -INFINITY)) {
        for (sk_size k = 0; k < T * K; k++) unary[k] = 0.0;
        return value;
    }
    for (sk_size k = 0; k < K; k++) sums[k] = weight / sum * exp(last[k] - most);
    for (sk_size t = T - 1; t > 0; t--) {
        const double *restrict a = forward + (t - 1) * K, *restrict in = into + t * K;
        double *restrict u = unary + t * K;
        for (sk_size k = 0; k < K; k++) {
            shift[k] = sums[k] > 0.0 && in[k] > -INFINITY ? -in[k] : -INFINITY;
            u[k] = sums[k];
        }
        for (sk_size j = 0; j < K; j++) {
            double *restrict own = pairs + j * K;
            sums[j] = 0.0;
            if (sk_chain_shifted(K, trans + j * K, shift, a[j], now) < SK_CHAIN_LOST) continue;
            sum = 0.0;
            SK_SIMD_WITH(reduction(+ : sum))
            for (sk_size k = 0; k < K; k++) {
                const double q = u[k] * sk_exp_neg(now[k]);
                own[k] += q;
                sum += q;
            }
            sums[j] = sum;
        }
    }
    for (sk_size k = 0; k < K; k++) unary[k] = sums[k];
    return value;
}

#endif
