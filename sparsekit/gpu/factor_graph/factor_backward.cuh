// Derivatives of the marginals: the limit of Algorithm 2, by conjugate gradients. The GPU version of
// _cython/factor_graph/factor_backward.h.
#ifndef SK_FACTOR_BACKWARD_CUH
#define SK_FACTOR_BACKWARD_CUH

#include "factor_graph/factor_face.cuh"

namespace factors {

// gradients of <d, mu>: to_eta (n_var) starts as d, to_add (n_add)
static __device__ __forceinline__ void vjp(Team& team, const Plan& g, const State& t, double* to_eta, double* to_add) {
    complete_all(g, t);
    fg_project_direction(team, &g, &t, to_eta);
    fg_vjp_pairs(&g, &t, to_eta, to_add);
}

// mu moves by out (n_var) as the scores move by d_eta (n_var) and d_add (n_add)
static __device__ __forceinline__ void jvp(Team& team, const Plan& g, const State& t, const double* d_eta,
                                           const double* d_add, double* out) {
    complete_all(g, t);
    SK_SHARE(s, g.n_slot) {
        const int i = s < g.n_pair ? s : s - g.n_pair;
        t.z[s] = s < 2 * g.n_pair ? (s < g.n_pair ? t.n1[i] : t.n2[i]) * d_add[g.pair_add[i]] : 0.0;
    }
    SK_SHARE(j, g.n_var) if (is_alone(g, j)) out[j] = d_eta[j];
    __syncthreads();
    mean(g, t.z, [&](int j, double b) { out[j] = d_eta[j] + b; });
    __syncthreads();
    fg_project_direction(team, &g, &t, out);
}

}  // namespace factors
#endif
