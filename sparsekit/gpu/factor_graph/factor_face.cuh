// The face that a factor's answer lies in, where scores tie: Jacobians become those of the smallest faces. The GPU
// version of _cython/factor_graph/factor_face.h, whose comments say why. A second call changes nothing.
#ifndef SK_FACTOR_FACE_CUH
#define SK_FACTOR_FACE_CUH

#include "factor_graph/factor_passes.cuh"

namespace factors {

// differences that are rounding, of answers and of scores; weights that are none; structures that depend on others
static constexpr double TIED = 1e-9, TIED_SCORE = 3e-9, NO_WEIGHT = 1e-10, DEPENDENT = 1e-9;

static __device__ __forceinline__ bool is_inside(double x) { return x > TIED && x < 1.0 - TIED; }

static __device__ __forceinline__ void complete_linear(Lanes lanes, int d, const double* x, const double* a,
                                                       const double* ad, double b, double* f, double* e, double* coef) {
    double miss = 0.0, size = 0.0, slope = 0.0;
    SK_LANES(k, d) {
        miss += a[k] * x[k];
        size += fabs(a[k] * x[k]);
        f[k] = is_inside(x[k]) ? 1.0 : 0.0;
        e[k] = f[k] * ad[k];
        slope += f[k] * a[k] * ad[k];
    }
    miss = lanes.sum(miss) - b;
    size = lanes.sum(size) + fabs(b) + 1.0;
    slope = lanes.sum(slope);
    if (lanes.lane() == 0) *coef = (fabs(miss) <= TIED * size || *coef != 0.0) && slope > 0.0 ? -1.0 / slope : 0.0;
}

// y: what is negated turned
static __device__ __forceinline__ void complete_orout(Lanes lanes, int d, const double* x, const double* a,
                                                      const double* ad, const double* w, const int* negated, double* y,
                                                      double* f, double* e, double* coef) {
    double total = 0.0, weight = 0.0, out = 0.0;
    SK_LANES(k, d) {
        y[k] = negated[k] ? 1.0 - x[k] : x[k];
        if (k == d - 1) out = y[k];
        else total += y[k];
    }
    out = lanes.of(out, d - 1);
    total = lanes.sum(total);
    if (lanes.lane() == 0) *coef = 0.0;
    if (fabs(total - out) <= TIED * (1.0 + total)) complete_linear(lanes, d, y, a, ad, 0.0, f, e, coef);
    else {
        SK_LANES(k, d) {
            e[k] = is_inside(out) && fabs(y[k] - out) <= TIED ? 1.0 : 0.0;
            f[k] = e[k] == 0.0 && is_inside(y[k]) ? 1.0 : 0.0;
            weight += e[k] * w[k];
        }
        weight = lanes.sum(weight);
        if (lanes.lane() == 0) *coef = weight > 0.0 ? 1.0 / weight : 0.0;
    }
    SK_LANES(k, d) if (negated[k]) e[k] = -e[k];
}

static __device__ __forceinline__ void complete_pair(const Plan& g, const State& t, int i) {
    const int o = g.n_pair + i;
    const bool turn = t.c[i] < 0.0;
    const double a = g.negated[i] ? 1.0 - t.x[i] : t.x[i], b = g.negated[o] ? 1.0 - t.x[o] : t.x[o];
    const double way_a = g.negated[i] ? -1.0 : 1.0, way_b = g.negated[o] ? -1.0 : 1.0;
    if (t.c[i] != 0.0 && is_inside(a) && fabs(a - (turn ? 1.0 - b : b)) <= TIED) {
        const double share = g.deg[i] * g.deg[o] * g.q[i];
        t.f[i] = t.f[o] = 0.0;
        t.e[i] = way_a;
        t.e[o] = turn ? -way_b : way_b;
        t.coef[i] = share;
        t.n1[i] = turn ? 0.0 : way_a * share;
        t.n2[i] = turn ? 0.0 : way_b * share;
        return;
    }
    if (!is_inside(a)) t.f[i] = t.n1[i] = t.coef[i] = 0.0;
    if (!is_inside(b)) t.f[o] = t.n2[i] = t.coef[i] = 0.0;
}


// All factors' Jacobians become those of their smallest faces. Ends with a barrier.
static __device__ __forceinline__ void complete_all(const Plan& g, const State& t) {
    const Lanes lanes = {g.lanes};
    const int team = threadIdx.x / g.lanes, teams = blockDim.x / g.lanes;
    SK_SHARE(i, g.n_pair) complete_pair(g, t, i);
    for (int i = team; i < g.n_linear + g.n_orout; i += teams) {
        const bool line = i < g.n_linear;
        const int* start = line ? g.linear + i : g.orout + (i - g.n_linear);
        const int lo = start[0], d = start[1] - lo;
        double *f = t.f + lo, *e = t.e + lo, *coef = t.coef + g.n_pair + i;
        if (line) complete_linear(lanes, d, t.x + lo, g.a + lo, g.ad + lo, g.bound[i], f, e, coef);
        else complete_orout(lanes, d, t.x + lo, g.a + lo, g.ad + lo, g.w + lo, g.negated + lo,
                            t.y + (lo - 2 * g.n_pair), f, e, coef);
    }
    __syncthreads();
}

}  // namespace factors
#endif
