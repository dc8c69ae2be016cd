#include "common.cuh"

namespace row_losses {

// h of r = c (z - t) by its conjugate eps |a| + delta/2 (a - prev)^2 on lo <= a <= hi; see the CPU's header.
// ``inverse`` is 1 / delta, or very large where delta is 0.
struct Piecewise {
    double lo, hi, eps, delta, inverse;

    __device__ __forceinline__ double dual(double r, double prev, bool* inside) const {
        double v = prev + r * inverse;
        const double kept = fabs(v) - eps * inverse;
        // fabs and copysign would turn a NaN predictor into a number; comparisons that fail leave it
        if (eps != 0.0) v = kept <= 0.0 ? 0.0 : copysign(kept, v);
        *inside = v > lo && v < hi && (eps == 0.0 || v != 0.0);
        return v < lo ? lo : (v > hi ? hi : v);
    }
};

}  // namespace row_losses

extern "C" __global__ void sk_piecewise_all(const double* __restrict__ z, const double* __restrict__ t,
                                            const double* __restrict__ c, long long has_signs,
                                            const double* __restrict__ s, const double* __restrict__ prev,
                                            long long has_centre, double lo, double hi, double eps, double delta,
                                            double inverse, long long n, double* __restrict__ u,
                                            double* __restrict__ dual, double* __restrict__ d, double* part) {
    __shared__ double room[33];
    const row_losses::Piecewise h = {lo, hi, eps, delta, inverse};
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double sign = has_signs ? c[i] : 1.0, centre = has_centre ? prev[i] : 0.0;
        const double weight = s[i], r = sign * (z[i] - t[i]);
        bool inside;
        const double a = h.dual(r, centre, &inside), move = a - centre;
        total += weight * (a * r - eps * fabs(a) - 0.5 * delta * move * move);
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
    const row_losses::Piecewise h = {lo, hi, eps, delta, inverse};
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double sign = has_signs ? c[i] : 1.0, r = sign * (z[i] + step * dz[i] - t[i]);
        bool inside;
        total += s[i] * sign * h.dual(r, has_centre ? prev[i] : 0.0, &inside) * dz[i];
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

extern "C" __global__ void sk_log_loss_all(const double* __restrict__ z, const double* __restrict__ c,
                                           const double* __restrict__ s, long long n, double* __restrict__ u,
                                           double* __restrict__ dual, double* __restrict__ d, double* part) {
    __shared__ double room[33];
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double m = c[i] * z[i], e = exp(-fabs(m)), q = 1.0 / (1.0 + e);
        const double a = -(m > 0.0 ? e * q : q);
        total += s[i] * ((m < 0.0 ? -m : 0.0) + log1p(e));
        dual[i] = a;
        u[i] = s[i] * c[i] * a;
        d[i] = s[i] * e * q * q;
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}

extern "C" __global__ void sk_log_loss_along(const double* __restrict__ z, const double* __restrict__ dz, double step,
                                             const double* __restrict__ c, const double* __restrict__ s, long long n,
                                             double* part) {
    __shared__ double room[33];
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double m = c[i] * (z[i] + step * dz[i]), e = exp(-fabs(m)), q = 1.0 / (1.0 + e);
        total -= s[i] * c[i] * (m > 0.0 ? e * q : q) * dz[i];
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}
