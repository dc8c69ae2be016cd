#include "shared/common.cuh"
#include "losses.h"

// part (blocks,): sums of s h(r), r = c (z + step dz - t), and u = s c h'(r), dual = h'(r), d = s h''(r). With
// ``along`` instead the sums of s c h'(r) dz. h is the log loss or piecewise quadratic; ``inverse`` is 1 / delta.
extern "C" __global__ void sk_row_losses(
    long long is_logistic, long long along, const double* __restrict__ z, const double* __restrict__ dz,
    double step, const double* __restrict__ t, const double* __restrict__ c, long long has_signs,
    const double* __restrict__ s, const double* __restrict__ prev, long long has_centre, double lo, double hi,
    double eps, double delta, double inverse, long long n, double* __restrict__ u, double* __restrict__ dual,
    double* __restrict__ d, double* part) {
    __shared__ double room[33];
    const sk_piecewise h = {lo, hi, eps, delta, inverse};
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double sign = has_signs ? c[i] : 1.0, weight = s[i];
        const double r = sign * ((along ? z[i] + step * dz[i] : z[i]) - t[i]);
        double a, value, second;
        if (is_logistic) {
            value = sk_logistic(r, weight, &a, &second);
            a = -a;
        } else {
            int inside;
            value = sk_piecewise_row(r, has_centre ? prev[i] : 0.0, &h, &a, &inside);
            second = inside ? weight * inverse : 0.0;
        }
        if (along) {
            total += weight * sign * a * dz[i];
        } else {
            total += weight * value;
            dual[i] = a;
            u[i] = weight * sign * a;
            d[i] = second;
        }
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}
