#include "common.cuh"

namespace glm {

struct Logistic {
    static __device__ __forceinline__ double value(double z, double y) {
        const double t = y * z;
        return log1p(exp(-fabs(t))) + (t < 0.0 ? -t : 0.0);
    }
    // u and d get what the row's weight multiplies
    static __device__ __forceinline__ double all(double z, double y, double* u, double* d) {
        const double t = y * z, e = exp(-fabs(t)), inv = 1.0 / (1.0 + e);
        *u = -y * (t < 0.0 ? inv : e * inv);
        *d = e * inv * inv;
        return log1p(e) + (t < 0.0 ? -t : 0.0);
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
    // -log Phi(t) and ratio = phi(t) / Phi(t); see the CPU's kernel for the tail
    static __device__ __forceinline__ double parts(double t, double* ratio) {
        const double root = 0.70710678118654752440;  // sqrt(1/2)
        if (t > -6.0) {
            const double cdf = 0.5 * erfc(-t * root);
            *ratio = 0.39894228040143267794 * exp(-0.5 * t * t) / cdf;
            return t > 5.0 ? -log1p(-0.5 * erfc(t * root)) : -log(cdf);
        }
        const double a = -t;
        double frac = a;
        for (int k = 40; k > 0; k--) frac = a + k / frac;
        *ratio = frac;
        return 0.5 * a * a + log(frac) + 0.91893853320467274178;  // log(2 pi) / 2
    }
    static __device__ __forceinline__ double value(double z, double y) {
        double ratio;
        return parts(y * z, &ratio);
    }
    static __device__ __forceinline__ double all(double z, double y, double* u, double* d) {
        double ratio;
        const double t = y * z, loss = parts(t, &ratio);
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

extern "C" __global__ void sk_axpy_rows(const double* __restrict__ z, double step, const double* __restrict__ dz,
                                        long long n, double* __restrict__ out) {
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) out[i] = z[i] + step * dz[i];
}
