// What the steps of softmax with very many classes share, whatever the layout of the weights. It holds the changes of
// the scores by each method. The rules are those of _cython/extreme/softmax_rules.h.
#include "draws.h"
#include "extreme/implicit.cuh"
#include "numbers.h"
#ifndef SK_SOFTMAX_RULES_CUH
#define SK_SOFTMAX_RULES_CUH

namespace sk_softmax {

using sk_implicit::team;

constexpr double BEYOND = 1e300;  // a magnitude not below this is treated as not finite

struct rule {
    long long method, n_negatives, n_classes;
    double eta, ridge;
    const double* log_noise;  // (n_classes), or NULL: uniform
    const double* beta;       // (n_classes), or NULL: no ridge
};

// shrinkage of class k by the ridge, in a step of length eta
static __device__ __forceinline__ double shrink(const rule& R, long long k, double eta) {
    return R.beta ? 1.0 / (1.0 + eta * R.ridge * R.beta[k]) : 1.0;
}

// log(1 + the sum of exp(f[j] - from) over the negatives with r[j] > 0)
static __device__ __forceinline__ double log_sum(team t, long long n, const double* f, const double* r,
                                                 double from) {
    double high = 0.0, sum = 0.0;
    for (long long j = 1 + t.rank(); j <= n; j += t.size())
        high = r[j] > 0.0 && f[j] - from > high ? f[j] - from : high;
    high = t.max(high);
    for (long long j = 1 + t.rank(); j <= n; j += t.size())
        sum += r[j] > 0.0 ? exp(f[j] - from - high) : 0.0;
    return high + log(exp(-high) + t.sum(sum));
}

// Initial u, estimated from the drawn classes: log K where all scores are equal. Entries that are no negative have r =
// 0 and the label's score, so no product 0 * inf occurs.
static __device__ __forceinline__ double first_u(team t, long long n, const double* f, const double* r) {
    double high = 0.0, total = 0.0;
    for (long long j = 1 + t.rank(); j <= n; j += t.size()) high = f[j] - f[0] > high ? f[j] - f[0] : high;
    high = t.max(high);
    for (long long j = 1 + t.rank(); j <= n; j += t.size()) total += r[j] * exp(f[j] - f[0] - high);
    return high + log(exp(-high) + t.sum(total));
}

// Gradient along x: g[j] of class k[j], j = 1 .. n, and as *own that of the label, from the scores f; may
// change u. Every thread writes its own g.
static __device__ void slopes(team t, const rule& R, long long n, double eta, const long long* k,
                              const double* f, const double* r, double* g, double* own, double* u_) {
    double fy = f[0], total = 0.0;
    const long long first = 1 + t.rank(), by = t.size();
    if (R.method == SK_OVE) {
        for (long long j = first; j <= n; j += by) {
            g[j] = r[j] / (1.0 + exp(fy - f[j]));
            total += g[j];
        }
        *own = -t.sum(total);
        return;
    }
    if (R.method == SK_IS) {
        double high = 0.0;
        for (long long j = first; j <= n; j += by)
            high = r[j] > 0.0 && f[j] - fy > high ? f[j] - fy : high;
        high = t.max(high);
        for (long long j = first; j <= n; j += by) {
            g[j] = r[j] * exp(f[j] - fy - high);
            total += g[j];
        }
        total = t.sum(total);
        double all = total + exp(-high);
        for (long long j = first; j <= n; j += by) g[j] /= all;
        *own = -total / all;
        return;
    }
    if (R.method == SK_NCE) {
        double log_m = log((double)R.n_negatives), uniform = -log((double)R.n_classes);
        double x = fy - log_m - (R.log_noise ? R.log_noise[k[0]] : uniform);
        for (long long j = first; j <= n; j += by) {
            double z = f[j] - log_m - (R.log_noise ? R.log_noise[k[j]] : uniform);
            g[j] = 1.0 / (1.0 + exp(-z));
        }
        *own = -1.0 / (1.0 + exp(x));
        return;
    }
    double u = *u_;  // eq. (7)
    if (R.method == SK_UMAX) {
        double bound = log_sum(t, n, f, r, fy);
        if (u < bound - SK_UMAX_DELTA) u = bound;
    }
    for (long long j = first; j <= n; j += by) {
        g[j] = r[j] * exp(f[j] - fy - u);
        total += g[j];
    }
    total = t.sum(total);
    *own = -total;
    u -= eta * (1.0 - exp(-u) - total);
    // the optimal u is not negative
    *u_ = R.method == SK_UMAX && u < 0.0 ? 0.0 : u;
}

// The step of one row from the scores f of its classes k; entry 0 is the label's. eta is divided by the batch's size
// already; rho and q are workspace. Writes the changes of the classes (before the shrinkage) to g: each thread its own
// entries, and the first thread g[0]; u in all threads.
static __device__ void solve(team t, const rule& R, long long n, const long long* k, const double* f,
                             const double* r, double* g, double* rho, double* q, double s, double eta,
                             double* u) {
    double own = 0.0;
    if (*u != *u) *u = first_u(t, n, f, r);  // NaN: the row's first step
    if (R.method != SK_IMPLICIT) {
        slopes(t, R, n, eta, k, f, r, g, &own, u);
        for (long long j = 1 + t.rank(); j <= n; j += t.size()) g[j] *= -eta;
        if (t.rank() == 0) g[0] = -eta * own;
        return;
    }
    double old = *u, ry = shrink(R, k[0], eta);
    for (long long j = 1 + t.rank(); j <= n; j += t.size()) {
        rho[j] = shrink(R, k[j], eta);
        g[j] = rho[j] * f[j] - ry * f[0];
    }
    if (n == 1) {
        double rk = shrink(R, k[1], eta);
        own = sk_implicit_one(rk * f[1] - ry * f[0], log(r[1]), eta, s * (rk + ry), old, u);
        if (t.rank() == 0) g[1] = own;
    } else {
        own = sk_implicit::many(t, n, g + 1, r + 1, rho + 1, q + 1, eta, s, ry, old, u);
    }
    for (long long j = 1 + t.rank(); j <= n; j += t.size()) g[j] = -g[j];
    if (t.rank() == 0) g[0] = own;
}

}  // namespace sk_softmax
#endif
