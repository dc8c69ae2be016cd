#include "common.cuh"

#ifndef SK_OUT
#define SK_OUT float
#endif

namespace sparse {

// modes of a product: X, |X|, X squared
static __device__ __forceinline__ double entry(double x, long long mode) {
    return mode == 0 ? x : mode == 1 ? fabs(x) : x * x;
}

// part of a line's product that one of ``width`` neighbouring threads adds up; two sums, so that a load
// need not wait for the one before
static __device__ __forceinline__ double dot(const index_t* __restrict__ indices, const real* __restrict__ data,
                                             const double* __restrict__ v, long long start, long long stop,
                                             long long first, long long width, long long mode) {
    double a = 0.0, b = 0.0;
    long long k = start + first;
    for (; k + width < stop; k += 2 * width) {
        a += entry((double)data[k], mode) * v[indices[k]];
        b += entry((double)data[k + width], mode) * v[indices[k + width]];
    }
    if (k < stop) a += entry((double)data[k], mode) * v[indices[k]];
    return a + b;
}

static __device__ __forceinline__ double group_sum(double x, long long width) {
    for (int step = (int)width / 2; step > 0; step >>= 1) x += __shfl_xor_sync(SK_WHOLE_WARP, x, step);
    return x;
}

}  // namespace sparse

// out[i] = sum_k X[i, k] v[k] for the lines i of a compressed matrix, ``width`` threads (1 .. 32) a line.
// The first n_long blocks take a line of ``longs`` each, which the others leave out (more than ``limit``).
extern "C" __global__ void sk_csr_matvec(const index_t* __restrict__ indptr, const index_t* __restrict__ indices,
                                         const real* __restrict__ data, const double* __restrict__ v,
                                         const long long* __restrict__ longs, long long n_long, long long limit,
                                         long long width, long long mode, long long n, double* __restrict__ out) {
    __shared__ double room[33];
    if (blockIdx.x < n_long) {
        const long long i = longs[blockIdx.x];
        double total =
            sparse::dot(indices, data, v, indptr[i], indptr[i + 1], threadIdx.x, blockDim.x, mode);
        total = sk::block_sum(total, room);
        if (threadIdx.x == 0) out[i] = total;
        return;
    }
    const long long lane = threadIdx.x % SK_WARP, each = SK_WARP / width;
    const long long warps = ((long long)gridDim.x - n_long) * (blockDim.x / SK_WARP);
    long long warp = ((long long)blockIdx.x - n_long) * (blockDim.x / SK_WARP) + threadIdx.x / SK_WARP;
    for (; warp * each < n; warp += warps) {
        const long long i = warp * each + lane / width;
        double total = 0.0;
        bool mine = false;
        if (i < n) {
            const long long start = indptr[i], stop = indptr[i + 1];
            mine = stop - start <= limit;
            if (mine) total = sparse::dot(indices, data, v, start, stop, lane % width, width, mode);
        }
        total = sparse::group_sum(total, width);
        if (mine && lane % width == 0) out[i] = total;
    }
}

// counts[i] = entries of row i whose column has a place >= 0; a warp a row
extern "C" __global__ void sk_csr_select_count(const index_t* __restrict__ indptr,
                                               const index_t* __restrict__ indices,
                                               const int* __restrict__ position, long long n,
                                               long long* __restrict__ counts) {
    const int lane = threadIdx.x % SK_WARP;
    const long long warps = sk::threads_of_grid() / SK_WARP;
    for (long long i = sk::thread_of_grid() / SK_WARP; i < n; i += warps) {
        long long total = 0;
        for (long long k = (long long)indptr[i] + lane; k < (long long)indptr[i + 1]; k += SK_WARP)
            total += position[indices[k]] >= 0;
        total = sk::warp_sum(total);
        if (lane == 0) counts[i] = total;
    }
}

// The chosen entries in the order of the row, from out_indptr[i] on
extern "C" __global__ void sk_csr_select_fill(const index_t* __restrict__ indptr,
                                              const index_t* __restrict__ indices, const real* __restrict__ data,
                                              const int* __restrict__ position, long long n,
                                              const long long* __restrict__ out_indptr,
                                              int* __restrict__ out_indices, SK_OUT* __restrict__ out_data) {
    const int lane = threadIdx.x % SK_WARP;
    const long long warps = sk::threads_of_grid() / SK_WARP;
    for (long long i = sk::thread_of_grid() / SK_WARP; i < n; i += warps) {
        long long at = out_indptr[i];
        const long long start = indptr[i], stop = indptr[i + 1];
        for (long long k = start; k < stop; k += SK_WARP) {
            int place = -1;
            if (k + lane < stop) place = position[indices[k + lane]];
            const unsigned kept = __ballot_sync(SK_WHOLE_WARP, place >= 0);
            if (place >= 0) {
                const long long to = at + __popc(kept & ((1u << lane) - 1u));
                out_indices[to] = place;
                out_data[to] = (SK_OUT)data[k + lane];
            }
            at += __popc(kept);
        }
    }
}
