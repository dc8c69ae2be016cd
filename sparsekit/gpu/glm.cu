#include "common.cuh"
#include "losses.h"

namespace glm {

struct Logistic {
    static __device__ __forceinline__ double value(double z, double y) { return sk_logistic_of(y * z); }
    // u and d get what the row's weight multiplies
    static __device__ __forceinline__ double all(double z, double y, double* u, double* d) {
        double miss;
        const double loss = sk_logistic(y * z, 1.0, &miss, d);
        *u = -y * miss;
        return loss;
    }
};

struct Squared {
    static __device__ __forceinline__ double value(double z, double y) { return 0.5 * (z - y) * (z - y); }
    static __device__ __forceinline__ double all(double z, double y, double* u, double* d) {
        *u = z - y;
        *d = 1.0;
        return 0.5 * (z - y) * (z - y);
    }
};

struct Probit {
    static __device__ __forceinline__ double value(double z, double y) {
        double ratio;
        return sk_probit(y * z, &ratio);
    }
    static __device__ __forceinline__ double all(double z, double y, double* u, double* d) {
        double ratio;
        const double t = y * z, loss = sk_probit(t, &ratio);
        *u = -y * ratio;
        *d = ratio + t > 0.0 ? ratio * (ratio + t) : 0.0;
        return loss;
    }
};

template <class Loss>
static __device__ __forceinline__ void value(const double* z, const double* y, const double* s,
                                             long long weighted, long long n, double* part, double* room) {
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid())
        total += (weighted ? s[i] : 1.0) * Loss::value(z[i], y[i]);
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

template <class Loss>
static __device__ __forceinline__ void derivatives(const double* z, const double* y, const double* s,
                                                   long long weighted, long long n, double* u, double* d,
                                                   double* part, double* room) {
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double weight = weighted ? s[i] : 1.0;
        double ui, di;
        total += weight * Loss::all(z[i], y[i], &ui, &di);
        u[i] = weight * ui;
        d[i] = weight * di;
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

}  // namespace glm

#define SK_GLM(NAME, LOSS)                                                                                \
    extern "C" __global__ void sk_##NAME##_value(const double* __restrict__ z,                            \
                                                 const double* __restrict__ y,                            \
                                                 const double* __restrict__ s, long long weighted,        \
                                                 long long n, double* part) {                             \
        __shared__ double room[33];                                                                       \
        glm::value<LOSS>(z, y, s, weighted, n, part, room);                                               \
    }                                                                                                     \
    extern "C" __global__ void sk_##NAME##_derivatives(                                                   \
        const double* __restrict__ z, const double* __restrict__ y, const double* __restrict__ s,         \
        long long weighted, long long n, double* __restrict__ u, double* __restrict__ d, double* part) {  \
        __shared__ double room[33];                                                                       \
        glm::derivatives<LOSS>(z, y, s, weighted, n, u, d, part, room);                                   \
    }

SK_GLM(logistic, glm::Logistic)
SK_GLM(squared, glm::Squared)
SK_GLM(probit, glm::Probit)
