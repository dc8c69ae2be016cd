// The face that a factor's answer lies in, where scores tie: Jacobians become those of the smallest faces. The GPU
// version of _cython/factor_graph/factor_face.h, whose comments say why. A second call changes nothing.
#ifndef SK_FACTOR_FACE_CUH
#define SK_FACTOR_FACE_CUH

#include "factor_graph/factor_solve.cuh"

namespace factors {

// All factors' Jacobians become those of their smallest faces. Ends with a barrier.
static __device__ __forceinline__ void complete_all(const Plan& g, const State& t) {
    const Lanes lanes = {g.lanes};
    const int team = threadIdx.x / g.lanes, teams = blockDim.x / g.lanes;
    fg_complete_pairs(&g, &t);
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
