#include "common.cuh"
#include "losses.h"

extern "C" __global__ void sk_piecewise_all(const double* __restrict__ z, const double* __restrict__ t,
                                            const double* __restrict__ c, long long has_signs,
                                            const double* __restrict__ s, const double* __restrict__ prev,
                                            long long has_centre, double lo, double hi, double eps, double delta,
                                            double inverse, long long n, double* __restrict__ u,
                                            double* __restrict__ dual, double* __restrict__ d, double* part) {
    __shared__ double room[33];
    const sk_piecewise h = {lo, hi, eps, delta, inverse};
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double sign = has_signs ? c[i] : 1.0, centre = has_centre ? prev[i] : 0.0;
        const double weight = s[i], r = sign * (z[i] - t[i]);
        int inside;
        double a;
        total += weight * sk_piecewise_row(r, centre, &h, &a, &inside);
        dual[i] = a;
        u[i] = weight * sign * a;
        d[i] = inside ? weight * inverse : 0.0;
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

extern "C" __global__ void sk_piecewise_along(const double* __restrict__ z, const double* __restrict__ dz, double step,
                                              const double* __restrict__ t, const double* __restrict__ c,
                                              long long has_signs, const double* __restrict__ s,
                                              const double* __restrict__ prev, long long has_centre, double lo,
                                              double hi, double eps, double delta, double inverse, long long n,
                                              double* part) {
    __shared__ double room[33];
    const sk_piecewise h = {lo, hi, eps, delta, inverse};
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double sign = has_signs ? c[i] : 1.0, r = sign * (z[i] + step * dz[i] - t[i]);
        int inside;
        total += s[i] * sign * sk_dual_of(r, has_centre ? prev[i] : 0.0, &h, &inside) * dz[i];
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

extern "C" __global__ void sk_log_loss_all(const double* __restrict__ z, const double* __restrict__ t,
                                           const double* __restrict__ c, const double* __restrict__ s, long long n, double* __restrict__ u,
                                           double* __restrict__ dual, double* __restrict__ d, double* part) {
    __shared__ double room[33];
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        double miss;
        total += s[i] * sk_logistic(c[i] * (z[i] - t[i]), s[i], &miss, &d[i]);
        dual[i] = -miss;
        u[i] = s[i] * c[i] * -miss;
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

extern "C" __global__ void sk_log_loss_along(const double* __restrict__ z, const double* __restrict__ dz, double step,
                                             const double* __restrict__ t, const double* __restrict__ c,
                                             const double* __restrict__ s, long long n, double* part) {
    __shared__ double room[33];
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        total -= s[i] * c[i] * sk_miss(c[i] * (z[i] + step * dz[i] - t[i])) * dz[i];
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}
