#include "shared/common.cuh"
#include "losses.h"

namespace glm {

enum { LOGISTIC, SQUARED, PROBIT };

// Value of a row's loss; u and d get what the row's weight multiplies.
static __device__ __forceinline__ double row(long long loss, double z, double y, double* u, double* d) {
    if (loss == SQUARED) {
        *u = z - y;
        *d = 1.0;
        return 0.5 * (z - y) * (z - y);
    }
    const double t = y * z;
    double slope;
    if (loss == LOGISTIC) {
        const double value = sk_logistic(t, 1.0, &slope, d);
        *u = -y * slope;
        return value;
    }
    const double value = sk_probit(t, &slope);
    *u = -y * slope;
    *d = slope + t > 0.0 ? slope * (slope + t) : 0.0;
    return value;
}

}  // namespace glm

// part (blocks,): sums of the losses; u and d get derivatives in z where ``fill``.
extern "C" __global__ void sk_glm(long long loss, const double* __restrict__ z, const double* __restrict__ y,
                                  const double* __restrict__ s, long long weighted, long long fill,
                                  long long n, double* __restrict__ u, double* __restrict__ d, double* part) {
    __shared__ double room[33];
    double total = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double weight = weighted ? s[i] : 1.0;
        double ui, di;
        total += weight * glm::row(loss, z[i], y[i], &ui, &di);
        if (fill) u[i] = weight * ui, d[i] = weight * di;
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) part[blockIdx.x] = total;
}
