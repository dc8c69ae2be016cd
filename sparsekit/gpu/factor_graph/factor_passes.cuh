// Passes over all factors of a graph by the threads of a block: their answers, and products with their Jacobians. The
// GPU version of _cython/factor_graph/factor_passes.h. No pass begins with a barrier; each says whether it ends with one.
#ifndef SK_FACTOR_PASSES_CUH
#define SK_FACTOR_PASSES_CUH

#include "factor_graph/factor_graph.cuh"
#include "factor_graph/factor_closed.cuh"

namespace factors {

// Where a factor's scores come from: computed by the thread that needs them, and kept in v.
struct Scores {
    enum { GATHER, DUAL, GIVEN, KEPT } kind;
    double step, inv;

    __device__ __forceinline__ double operator()(const Plan& g, const State& t, int s) const {
        double v;
        if (kind == KEPT) return t.v[s];
        const int j = g.var[s];
        if (kind == GATHER) { // an iteration's: z = l - gamma x moves with the last answers
            const double z = t.z[s] + step * (t.old[j] - t.x[s]);
            t.z[s] = z;
            v = t.h[j] + z * inv;
        } else if (kind == DUAL)
            v = t.eta[j] + t.l[s] + step * t.s[s];
        else
            v = t.eta[j];
        t.v[s] = v;
        return v;
    }
};

static __device__ __forceinline__ void answer_closed(const Plan& g, const State& t, const Scores& scores, bool jacobian) {
    const Lanes lanes = {g.lanes};
    const int team = threadIdx.x / g.lanes, teams = blockDim.x / g.lanes;
    for (int i = team; i < g.n_linear + g.n_orout; i += teams) {
        const bool line = i < g.n_linear;
        const int* start = line ? g.linear + i : g.orout + (i - g.n_linear);
        const int lo = start[0], d = start[1] - lo;
        const double* v = t.v + lo;
        double *x = t.x + lo, *f = jacobian ? t.f + lo : nullptr, *e = t.e + lo, *coef = t.coef + g.n_pair + i;
        bool constrained = true;
        SK_LANES(k, d) scores(g, t, lo + k);
        if (!line) {
            double* y = t.y + (lo - 2 * g.n_pair);
            constrained = fg_orout(lanes, d, v, g.w + lo, g.negated + lo, x, y, f, e, coef);
            v = y;
        }
        if (constrained)
            fg_linear(lanes, d, v, g.a + lo, g.ad + lo, line ? g.relation[i] : FG_EQUAL, line ? g.bound[i] : 0.0,
                      t.tau + i, x, f, e, coef);
        if (!line) fg_turn_back(lanes, d, g.negated + lo, x, jacobian ? e : nullptr);
    }
}

// All factors' answers x to their scores and inv times their additional ones. A barrier is due before x is read.
static __device__ __forceinline__ void answer(const Plan& g, const State& t, const Scores& scores, double inv,
                                           bool jacobian) {
    const int np = g.n_pair;
    SK_SHARE(i, np) {
        const int o = np + i;
        const bool not1 = g.negated[i], not2 = g.negated[o];
        double v1 = scores(g, t, i), v2 = scores(g, t, o);
        sk_pair_slopes j;
        if (not1) v1 = 1.0 - v1;
        if (not2) v2 = 1.0 - v2;
        pair(v1, v2, g.deg[i], g.deg[o], g.q[i], t.c[i] * inv, jacobian ? &j : nullptr);
        t.x[i] = not1 ? 1.0 - v1 : v1;
        t.x[o] = not2 ? 1.0 - v2 : v2;
        if (jacobian) {
            t.f[i] = j.f1;
            t.f[o] = j.f2;
            t.e[i] = not1 ? -j.e1 : j.e1;
            t.e[o] = not2 ? -j.e2 : j.e2;
            t.coef[i] = j.coef;
            t.n1[i] = not1 ? -j.n1 : j.n1;
            t.n2[i] = not2 ? -j.n2 : j.n2;
        }
    }
    answer_closed(g, t, scores, jacobian);
}

static __device__ __forceinline__ void product_closed(const Plan& g, const State& t, const double* in, const double* less,
                                                   double* y) {
    const Lanes lanes = {g.lanes};
    const int team = threadIdx.x / g.lanes, teams = blockDim.x / g.lanes;
    for (int i = team; i < g.n_linear + g.n_orout; i += teams) {
        const int* start = i < g.n_linear ? g.linear + i : g.orout + (i - g.n_linear);
        const int lo = start[0], hi = start[1];
        double dot = 0.0;
        for (int s = lo + lanes.lane(); s < hi; s += lanes.width) {
            const double u = in[g.var[s]] - (less == nullptr ? 0.0 : less[s]);
            y[s] = u;
            dot += g.w[s] * t.e[s] * u;
        }
        dot = lanes.sum(dot) * t.coef[g.n_pair + i];
        for (int s = lo + lanes.lane(); s < hi; s += lanes.width) y[s] = t.f[s] * y[s] + t.e[s] * dot;
    }
}

// y = J u over the slots, u = copies of `in` (n_var), less `less` (n_slot) if that is given. A barrier is due before y
// is read.
static __device__ __forceinline__ void product(const Plan& g, const State& t, const double* in, const double* less,
                                            double* y) {
    const int np = g.n_pair;
    SK_SHARE(i, np) {
        const int o = np + i;
        double u1 = in[g.var[i]], u2 = in[g.var[o]];
        if (less != nullptr) u1 -= less[i], u2 -= less[o];
        const double dot = t.coef[i] * (g.w[i] * t.e[i] * u1 + g.w[o] * t.e[o] * u2);
        y[i] = t.f[i] * u1 + t.e[i] * dot;
        y[o] = t.f[o] * u2 + t.e[o] * dot;
    }
    product_closed(g, t, in, less, y);
}

static __device__ __forceinline__ double support_closed(const Plan& g, const double* rho) {
    const Lanes lanes = {g.lanes};
    const int team = threadIdx.x / g.lanes, teams = blockDim.x / g.lanes;
    double total = 0.0;
    for (int i = team; i < g.n_linear + g.n_orout; i += teams) {
        const bool line = i < g.n_linear;
        const int* start = line ? g.linear + i : g.orout + (i - g.n_linear);
        const int lo = start[0], d = start[1] - lo;
        total += line ? fg_linear_support(lanes, d, rho + lo, g.a + lo, g.relation[i], g.bound[i])
                      : fg_orout_support(lanes, d, rho + lo, g.negated + lo);
    }
    return lanes.lane() == 0 ? total : 0.0;
}

typedef Plan fg_plan;
typedef State fg_state;

#define FG_SHARED static __device__ __forceinline__
#define FG_TEAM Team& team,
#define FG_SAME_TEAM team,
#define FG_SHARE SK_SHARE
#define FG_TEAM_SUM(x) team.sum(x)
#define FG_TEAM_SUMS(a, b) team.sum(a, b)
#define FG_TEAM_MOST(x) team.most(x)
#define FG_TEAM_WAIT __syncthreads()
#define FG_TEAM_ENDS(g, t) false
#define FG_MULTIPLY(g, t, in, y) (product(*g, *t, in, nullptr, y), __syncthreads())
#define FG_MEAN(g, x, out) (mean(*g, x, [&](int variable, double by) { out[variable] = by; }), __syncthreads())
#define FG_SUPPORTS(g, t, rho, size) support_closed(*g, rho)

#include "graph_passes.h"

}  // namespace factors
#endif
