// Local problems with a closed form, and their Jacobians f + e coef (w e)'. They are pairs (Proposition 10), a box cut
// by one linear constraint (D.1.3), and OrOut (D.2.6). The GPU version of _cython/factor_graph/factor_closed.h. One
// thread works at a pair, one thread or a warp at the others.
#ifndef SK_FACTOR_CLOSED_CUH
#define SK_FACTOR_CLOSED_CUH

#include "factor_graph/factor_graph.cuh"
#include "pair.h"

namespace factors {

static __device__ __forceinline__ bool is_free(double x) { return FG_FREE(x); }

// The threads that share a factor: one, or a warp.
struct Lanes {
    int width;

    __device__ __forceinline__ int lane() const { return width == 1 ? 0 : (int)(threadIdx.x % SK_WARP); }
    __device__ __forceinline__ double sum(double x) const { return width == 1 ? x : sk::warp_sum(x); }
    __device__ __forceinline__ double most(double x) const { return width == 1 ? x : sk::warp_max(x); }
    __device__ __forceinline__ double least(double x) const { return width == 1 ? x : -sk::warp_max(-x); }
    // what the lane that has entry k holds
    __device__ __forceinline__ double of(double x, int k) const {
        return width == 1 ? x : __shfl_sync(SK_WHOLE_WARP, x, k % SK_WARP);
    }
    __device__ __forceinline__ void meet() const {
        if (width > 1) __syncwarp();
    }
};

#define SK_LANES(k, d) _Pragma("unroll 1") for (int k = lanes.lane(); k < (d); k += lanes.width)

struct PairJacobian {
    double f1, f2, e1, e2, coef, n1, n2;
};

// v1 and v2 become the answers
static __device__ __forceinline__ void pair(double& v1, double& v2, double d1, double d2, double q, double score,
                                            PairJacobian* j) {
    const double old1 = v1, old2 = v2;
    sk_pair(old1, old2, d1, d2, q, score, &v1, &v2);
    if (j == nullptr) return;
    sk_pair_jacobian(old1, old2, d1, d2, q, score, &j->f1, &j->f2, &j->e1, &j->e2, &j->coef, &j->n1, &j->n2);
}

// a.x of x = clip(v + tau ad), and its slope in tau
static __device__ __forceinline__ void sweep(Lanes lanes, int d, const double* v, const double* a, const double* ad, double tau,
                                             double* x, double& sum, double& slope) {
    double s = 0.0, q = 0.0;
    SK_LANES(k, d) {
        const double y = v[k] + tau * ad[k];
        q += y > 0.0 && y < 1.0 ? a[k] * ad[k] : 0.0;
        x[k] = clip(y);
        s += a[k] * x[k];
    }
    sum = lanes.sum(s);
    slope = lanes.sum(q);
}

// distance in tau from here to where the next variable leaves its bound, upwards (way 1) or downwards (-1)
static __device__ __forceinline__ double next_bend(Lanes lanes, int d, const double* v, const double* ad, double tau, int way) {
    double best = MOST_DOUBLE;
    SK_LANES(k, d) {
        const double rate = way * ad[k], y = v[k] + tau * ad[k];
        double t = MOST_DOUBLE;
        if (rate > 0.0 && y <= 0.0) t = -y / rate;
        else if (rate < 0.0 && y >= 1.0) t = (1.0 - y) / rate;
        best = t < best ? t : best;
    }
    return lanes.least(best);
}

// Projection on the box cut by a.x <=, = or >= b: x = clip(v + tau ad). a.x increases with tau, and equals b at the
// solution. tau is 0 if that satisfies an inequality. Newton's method in a bracket, from the last tau.
static __device__ __forceinline__ void linear(Lanes lanes, int d, const double* v, const double* a, const double* ad, int relation,
                                           double b, double* tau, double* x, double* f, double* e, double* coef) {
    double t = *tau, lo = -MOST_DOUBLE, hi = MOST_DOUBLE, sum, slope;
    const double scale = fabs(b) + 1.0;
    bool free_of_it = false;
    for (int round = 0; round < 200; round++) {
        double miss, next;
        sweep(lanes, d, v, a, ad, t, x, sum, slope);
        miss = sum - b;
        if (t == 0.0 && relation * miss >= 0.0 && relation != FG_EQUAL) {
            free_of_it = true;
            break;
        }
        if (fabs(miss) <= 2e-16 * scale) break;
        if (miss > 0.0) hi = t;
        else lo = t;
        if (slope > 0.0) next = t - miss / slope;
        else {
            double bend = next_bend(lanes, d, v, ad, t, miss > 0.0 ? -1 : 1);
            if (bend == MOST_DOUBLE) break; // all are at their bounds: b is the most or the least there is
            bend += 1e-6 + 8.0 * EPSILON * (fabs(t) + bend);
            next = miss > 0.0 ? t - bend : t + bend;
        }
        if (relation * next < 0.0) next = 0.0; // the sign that the multiplier of an inequality has
        if (!(next > lo && next < hi)) {
            const double middle = 0.5 * (lo + hi);
            if (lo == -MOST_DOUBLE || hi == MOST_DOUBLE || !(middle > lo && middle < hi)) break;
            next = middle;
        }
        if (next == t) break;
        t = next;
    }
    lanes.meet();
    if (lanes.lane() == 0) *tau = t;
    if (f == nullptr) return;
    slope = 0.0;
    SK_LANES(k, d) {
        f[k] = is_free(x[k]) ? 1.0 : 0.0;
        e[k] = f[k] * ad[k];
        slope += f[k] * a[k] * ad[k];
    }
    slope = lanes.sum(slope);
    if (lanes.lane() == 0) *coef = free_of_it || !(slope > 0.0) ? 0.0 : -1.0 / slope;
}

// OrOut: last = OR of the others, y = v with what is negated turned. Where the answer is that the others sum to the last
// it is for `linear` to find, with y for v, and true is returned.
static __device__ __forceinline__ bool orout(Lanes lanes, int d, const double* v, const double* w, const int* negated, double* x,
                                             double* y, double* f, double* e, double* coef) {
    double most = 0.0, total = 0.0, last = 0.0, level = 0.0, out;
    bool is_level = false;
    SK_LANES(k, d) {
        y[k] = negated[k] ? 1.0 - v[k] : v[k];
        x[k] = clip(y[k]);
        if (k == d - 1) last = y[k];
        else {
            total += x[k];
            most = x[k] > most ? x[k] : most;
        }
    }
    last = lanes.of(last, d - 1);
    total = lanes.sum(total);
    most = lanes.most(most);
    out = clip(last);
    if (most > out) {
        // Proposition 8: tau = weighted mean of the last and of those above it. It rises from the last one's score as
        // members join, so what is above it once stays in.
        is_level = true;
        level = last;
        for (int round = 0; round <= d; round++) {
            double s = 0.0, q = 0.0;
            SK_LANES(k, d) if (k == d - 1 || y[k] > level) s += w[k] * y[k], q += w[k];
            const double next = lanes.sum(s) / lanes.sum(q);
            if (!(next > level)) break;
            level = next;
        }
        total = 0.0;
        out = clip(level);
        SK_LANES(k, d) {
            x[k] = clip(k == d - 1 || y[k] > level ? level : y[k]);
            if (k < d - 1) total += x[k];
        }
        total = lanes.sum(total);
    }
    if (total < out) return true;
    if (f == nullptr) return false;
    double weight = 0.0;
    SK_LANES(k, d) {
        const bool member = is_level && (k == d - 1 || y[k] > level);
        f[k] = !member && is_free(x[k]) ? 1.0 : 0.0;
        e[k] = member && is_free(level) ? 1.0 : 0.0;
        weight += e[k] * w[k];
    }
    weight = lanes.sum(weight);
    if (lanes.lane() == 0) *coef = weight > 0.0 ? 1.0 / weight : 0.0;
    return false;
}

// Largest rho.x over the box cut by a.x <=, = or >= b, by its dual. That is the minimum of t b + sum max(0, rho - t a)
// over t with the constraint's sign. The function is convex with kinks at rho / a. Each lane evaluates its own kinks.
static __device__ __forceinline__ double linear_support(Lanes lanes, int d, const double* rho, const double* a, int relation,
                                                        double b) {
    double best = MOST_DOUBLE;
    for (int i = lanes.lane(); i <= d; i += lanes.width) {
        const double t = i == d ? 0.0 : (a[i] != 0.0 ? rho[i] / a[i] : 0.0);
        if (relation * t > 0.0) continue;
        double value = t * b;
        for (int k = 0; k < d; k++) value += rho[k] - t * a[k] > 0.0 ? rho[k] - t * a[k] : 0.0;
        best = value < best ? value : best;
    }
    return lanes.least(best);
}

static __device__ __forceinline__ double orout_support(Lanes lanes, int d, const double* rho, const int* negated) {
    double fixed = 0.0, inputs = 0.0, largest = -MOST_DOUBLE, last = 0.0;
    SK_LANES(k, d) {
        const double r = negated[k] ? -rho[k] : rho[k];
        fixed += negated[k] ? rho[k] : 0.0;
        if (k == d - 1) last = r;
        else {
            inputs += r > 0.0 ? r : 0.0;
            largest = r > largest ? r : largest;
        }
    }
    last = lanes.of(last, d - 1);
    inputs = lanes.sum(inputs);
    largest = lanes.most(largest);
    const double on = last + (largest > 0.0 ? inputs : largest);
    return lanes.sum(fixed) + (on > 0.0 ? on : 0.0);
}

}  // namespace factors
#endif
