#include "common.cuh"

// Columns of part (blocks, k): sums, or largest values where bit c of ``maxima`` is set. One block.
extern "C" __global__ void sk_reduce_parts(const double* part, long long blocks, long long k, long long maxima,
                                           double* out) {
    __shared__ double room[33];
    for (long long c = 0; c < k; c++) {
        const bool largest = (maxima >> c) & 1;
        double total = largest ? -INFINITY : 0.0;
        for (long long b = threadIdx.x; b < blocks; b += blockDim.x) {
            const double x = part[b * k + c];
            total = largest ? (x > total ? x : total) : total + x;
        }
        total = largest ? sk::block_max(total, room) : sk::block_sum(total, room);
        if (threadIdx.x == 0) out[c] = total;
    }
}
