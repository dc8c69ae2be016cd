#include "shared/common.cuh"

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

// out[j] = sum_k X[j, k] t[k] + ridge diagonal[j] v[j] for the lines j of a compressed matrix, or with
// ``has_choice`` for the lines chosen[j]; ``width`` threads (1 .. 32) a line. The first n_long blocks take one
// line of ``longs`` (more entries than ``limit``) each, where ``position`` says that it is chosen. The block
// after them takes the intercept, whose line is of ones: ``sums`` (n_sums,; -1: no intercept) adds up to the
// sum of t.
extern "C" __global__ void sk_lines_product(
    const index_t* __restrict__ indptr, const index_t* __restrict__ indices, const real* __restrict__ data,
    const double* __restrict__ t, const long long* __restrict__ longs, long long n_long, long long limit,
    long long width, long long mode, const int* __restrict__ chosen, const int* __restrict__ position,
    long long has_choice, const double* sums, long long n_sums, double ridge, const double* __restrict__ diagonal,
    const double* __restrict__ v, long long m, double* __restrict__ out) {
    __shared__ double room[33];
    const long long ahead = n_long + (n_sums >= 0 ? 1 : 0);
    if (blockIdx.x < ahead) {
        const bool is_intercept = blockIdx.x == n_long;
        const long long line = is_intercept ? m : longs[blockIdx.x];
        const long long j = has_choice && !is_intercept ? position[line] : line;
        if (j < 0) return;  // the whole block
        double total = 0.0;
        if (is_intercept)
            for (long long b = threadIdx.x; b < n_sums; b += blockDim.x) total += sums[b];
        else
            total = sparse::dot(indices, data, t, indptr[line], indptr[line + 1], threadIdx.x, blockDim.x, mode);
        total = sk::block_sum(total, room);
        if (threadIdx.x == 0) out[j] = ridge != 0.0 ? total + ridge * diagonal[j] * v[j] : total;
        return;
    }
    const long long lane = threadIdx.x % SK_WARP, each = SK_WARP / width;
    const long long warps = ((long long)gridDim.x - ahead) * (blockDim.x / SK_WARP);
    long long warp = ((long long)blockIdx.x - ahead) * (blockDim.x / SK_WARP) + threadIdx.x / SK_WARP;
    for (; warp * each < m; warp += warps) {
        const long long j = warp * each + lane / width;
        double total = 0.0;
        bool mine = false;
        if (j < m) {
            const long long line = has_choice ? chosen[j] : j, start = indptr[line], stop = indptr[line + 1];
            mine = stop - start <= limit;
            if (mine) total = sparse::dot(indices, data, t, start, stop, lane % width, width, mode);
        }
        total = sparse::group_sum(total, width);
        if (mine && lane % width == 0) out[j] = ridge != 0.0 ? total + ridge * diagonal[j] * v[j] : total;
    }
}

// t_i = d_i (sum_k X[i, k] v[k] + v[m] of the intercept) for model rows, ``width`` threads (1 .. 32) a row;
// part (blocks,) gets the sum of t over a block's rows.
extern "C" __global__ void sk_model_rows_product(const long long* __restrict__ indptr,
                                                 const index_t* __restrict__ col, const real* __restrict__ val,
                                                 const double* __restrict__ d, const double* __restrict__ v,
                                                 long long n, long long m, long long intercept,
                                                 long long width, double* __restrict__ t, double* part) {
    __shared__ double room[33];
    const long long lane = threadIdx.x % SK_WARP, each = SK_WARP / width;
    const long long warps = sk::threads_of_grid() / SK_WARP;
    const double v0 = intercept ? v[m] : 0.0;
    double sum = 0.0;
    for (long long warp = sk::thread_of_grid() / SK_WARP; warp * each < n; warp += warps) {
        const long long i = warp * each + lane / width;
        double a = i < n ? sparse::dot(col, val, v, indptr[i], indptr[i + 1], lane % width, width, 0) : 0.0;
        a = sparse::group_sum(a, width);
        if (i < n && lane % width == 0) {
            a = d[i] * (a + v0);
            t[i] = a;
            sum += a;
        }
    }
    sum = sk::block_sum(sum, room);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
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
