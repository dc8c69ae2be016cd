// The face that a factor's answer lies in, where scores tie: Jacobians become those of the smallest faces. The GPU
// version of _cython/factor_graph/factor_face.h, whose comments say why. A second call changes nothing.
#ifndef SK_FACTOR_FACE_CUH
#define SK_FACTOR_FACE_CUH

#include "factor_graph/factor_passes.cuh"

namespace factors {

static __device__ __forceinline__ void complete_pair(const Plan& g, const State& t, int i) {
    const int o = g.n_pair + i;
    const bool turn = t.c[i] < 0.0;
    const double a = g.negated[i] ? 1.0 - t.x[i] : t.x[i], b = g.negated[o] ? 1.0 - t.x[o] : t.x[o];
    const double way_a = g.negated[i] ? -1.0 : 1.0, way_b = g.negated[o] ? -1.0 : 1.0;
    if (t.c[i] != 0.0 && FG_INSIDE(a) && fabs(a - (turn ? 1.0 - b : b)) <= FG_TIED) {
        const double share = g.deg[i] * g.deg[o] * g.q[i];
        t.f[i] = t.f[o] = 0.0;
        t.e[i] = way_a;
        t.e[o] = turn ? -way_b : way_b;
        t.coef[i] = share;
        t.n1[i] = turn ? 0.0 : way_a * share;
        t.n2[i] = turn ? 0.0 : way_b * share;
        return;
    }
    if (!FG_INSIDE(a)) t.f[i] = t.n1[i] = t.coef[i] = 0.0;
    if (!FG_INSIDE(b)) t.f[o] = t.n2[i] = t.coef[i] = 0.0;
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
        if (line) fg_complete_linear(lanes, d, t.x + lo, g.a + lo, g.ad + lo, g.bound[i], f, e, coef);
        else fg_complete_orout(lanes, d, t.x + lo, g.a + lo, g.ad + lo, g.w + lo, g.negated + lo,
                            t.y + (lo - 2 * g.n_pair), f, e, coef);
    }
    __syncthreads();
}

}  // namespace factors
#endif
