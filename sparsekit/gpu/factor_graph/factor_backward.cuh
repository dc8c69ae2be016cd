// Derivatives of the marginals: the limit of Algorithm 2, by conjugate gradients. The GPU version of
// _cython/factor_graph/factor_backward.h.
#ifndef SK_FACTOR_BACKWARD_CUH
#define SK_FACTOR_BACKWARD_CUH

#include "factor_graph/factor_face.cuh"

namespace factors {

// d (n_var) becomes J' d = J d: the projection on the directions that all factors leave as they are.
// d - (I - B)^+ (I - B) d by conjugate gradients. Ends with a barrier.
static __device__ __forceinline__ void project(Team& team, const Plan& g, const State& t, double* d) {
    double *right = t.cg + 3 * g.n_var, *y = right + g.n_var, size = 0.0;
    product(g, t, d, nullptr, t.z);
    __syncthreads();
    if (g.is_separate) { // B is the projection itself
        SK_SHARE(j, g.n_var) if (is_alone(g, j) && !FG_FREE(t.mu[j])) d[j] = 0.0;
        mean(g, t.z, [&](int j, double b) { d[j] = b; });
        __syncthreads();
        return;
    }
    SK_SHARE(j, g.n_var) {
        size += d[j] * d[j];
        if (is_alone(g, j)) right[j] = 0.0;
    }
    mean(g, t.z, [&](int j, double b) { right[j] = d[j] - b; });
    size = team.sum(size);
    conjugate_gradients(team, g, t, 0.0, right, 1e-14 * sqrt(size), y);
    SK_SHARE(j, g.n_var) d[j] = is_alone(g, j) && !FG_FREE(t.mu[j]) ? 0.0 : d[j] - y[j];
    __syncthreads();
}

// gradients of <d, mu>: to_eta (n_var) starts as d, to_add (n_add)
static __device__ __forceinline__ void vjp(Team& team, const Plan& g, const State& t, double* to_eta, double* to_add) {
    complete_all(g, t);
    project(team, g, t, to_eta);
    SK_SHARE(i, g.n_pair) {
        const int o = g.n_pair + i;
        to_add[g.pair_add[i]] = t.n1[i] * g.w[i] * to_eta[g.var[i]] + t.n2[i] * g.w[o] * to_eta[g.var[o]];
    }
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
    project(team, g, t, out);
}

}  // namespace factors
#endif
