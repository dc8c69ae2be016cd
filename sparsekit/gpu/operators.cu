#include "common.cuh"

// out = (G + ridge diag) v for a symmetric G (m, m); a warp a row
extern "C" __global__ void sk_gram_product(const double* __restrict__ G, const double* __restrict__ v,
                                           const double* __restrict__ diagonal, double ridge, long long m,
                                           double* __restrict__ out) {
    const int lane = threadIdx.x % SK_WARP;
    const long long warps = sk::threads_of_grid() / SK_WARP;
    for (long long i = sk::thread_of_grid() / SK_WARP; i < m; i += warps) {
        const double* row = G + i * m;
        double total = 0.0;
        for (long long j = lane; j < m; j += SK_WARP) total += row[j] * v[j];
        total = sk::warp_sum(total);
        if (lane == 0) out[i] = total + ridge * diagonal[i] * v[i];
    }
}

// G on the face of the variables that move (kind 1, 2), with the ridge; the identity elsewhere
extern "C" __global__ void sk_face_matrix(const double* __restrict__ G, const double* __restrict__ diagonal,
                                          const signed char* __restrict__ kind, double ridge, long long m,
                                          double* __restrict__ out) {
    for (long long e = sk::thread_of_grid(); e < m * m; e += sk::threads_of_grid()) {
        const long long i = e / m, j = e % m;
        const bool both = (kind[i] == 1 || kind[i] == 2) && (kind[j] == 1 || kind[j] == 2);
        double x = both ? G[e] : (i == j ? 1.0 : 0.0);
        if (i == j && both) x += ridge * diagonal[i];
        out[e] = x;
    }
}

// out = func's product, given in out, plus the ridge
extern "C" __global__ void sk_add_ridge(const double* __restrict__ v, const double* __restrict__ diagonal,
                                        double ridge, long long m, double* __restrict__ out) {
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid())
        out[j] += ridge * diagonal[j] * v[j];
}
