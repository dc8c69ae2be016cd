// What the steps of softmax with very many classes share, whatever the layout of the weights. It holds the changes of
// the scores by each method. The rules are those of _cython/extreme/softmax_rules.h.
#include "shared/common.cuh"
#include "draws.h"
#include "softmax_team.h"
#ifndef SK_SOFTMAX_RULES_CUH
#define SK_SOFTMAX_RULES_CUH

namespace sk_softmax {

using sk::team;

constexpr double BEYOND = 1e300;  // a magnitude not below this is treated as not finite

struct rule {
    sk_method method;
    double eta, ridge;
    const double* beta;  // (n_classes), or NULL: no ridge
};

// shrinkage of class k by the ridge, in a step of length eta
static __device__ __forceinline__ double shrink(const rule& R, long long k, double eta) {
    return R.beta ? 1.0 / (1.0 + eta * R.ridge * R.beta[k]) : 1.0;
}

// The step of one row from the scores f of its classes k; entry 0 is the label's. eta is divided by the batch's size
// already; rho and q are workspace. Writes the changes of the classes (before the shrinkage) to g: each thread its own
// entries, and the first thread g[0]; u in all threads.
static __device__ void solve(team t, const rule& R, long long n, const long long* k, const double* f,
                             const double* r, double* g, double* rho, double* q, double s, double eta,
                             double* u) {
    double own = 0.0;
    if (*u != *u) *u = sk_first_u(t, n, f, r);  // NaN: the row's first step
    if (R.method.method != SK_IMPLICIT) {
        own = sk_method_slopes(t, R.method, n, eta, k, f, r, g, u);
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
        own = sk_implicit_many_safe(t, n, g + 1, r + 1, rho + 1, q + 1, eta, s, ry, old, u);
    }
    for (long long j = 1 + t.rank(); j <= n; j += t.size()) g[j] = -g[j];
    if (t.rank() == 0) g[0] = own;
}

}  // namespace sk_softmax
#endif
