#include "shared/common.cuh"

namespace sparse {

// part of a line's product that one of ``width`` neighbouring threads computes; two sums, so that loads overlap
static __device__ __forceinline__ double dot(const index_t* __restrict__ indices, const real* __restrict__ data,
                                             const double* __restrict__ v, long long start, long long stop,
                                             long long first, long long width) {
    double a = 0.0, b = 0.0;
    long long k = start + first;
    for (; k + width < stop; k += 2 * width) {
        a += (double)data[k] * v[indices[k]];
        b += (double)data[k + width] * v[indices[k + width]];
    }
    if (k < stop) a += (double)data[k] * v[indices[k]];
    return a + b;
}

}  // namespace sparse

// out[j] = sum_k X[j, k] t[k] for the n lines j of a compressed matrix; ``width`` threads (1 .. 32) a line. The
// first n_long blocks take one line of ``longs`` (more entries than ``limit``) each.
extern "C" __global__ void sk_lines_product(const long long* __restrict__ indptr,
                                            const index_t* __restrict__ indices, const real* __restrict__ data,
                                            const double* __restrict__ t, const long long* __restrict__ longs,
                                            long long n_long, long long limit, long long width, long long n,
                                            double* __restrict__ out) {
    __shared__ double buffer[33];
    if (blockIdx.x < n_long) {
        const long long line = longs[blockIdx.x];
        double total = sparse::dot(indices, data, t, indptr[line], indptr[line + 1], threadIdx.x, blockDim.x);
        total = sk::block_sum(total, buffer);
        if (threadIdx.x == 0) out[line] = total;
        return;
    }
    const long long lane = threadIdx.x % SK_WARP, each = SK_WARP / width;
    const long long warps = ((long long)gridDim.x - n_long) * (blockDim.x / SK_WARP);
    long long warp = ((long long)blockIdx.x - n_long) * (blockDim.x / SK_WARP) + threadIdx.x / SK_WARP;
    for (; warp * each < n; warp += warps) {
        const long long line = warp * each + lane / width;
        double total = 0.0;
        bool mine = false;
        if (line < n) {
            const long long start = indptr[line], stop = indptr[line + 1];
            mine = stop - start <= limit;
            if (mine) total = sparse::dot(indices, data, t, start, stop, lane % width, width);
        }
        for (int step = (int)width / 2; step > 0; step >>= 1)
            total += __shfl_xor_sync(SK_WHOLE_WARP, total, step);
        if (mine && lane % width == 0) out[line] = total;
    }
}
