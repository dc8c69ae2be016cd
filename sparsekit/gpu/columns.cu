#include "common.cuh"

namespace columns {

static __device__ __forceinline__ double dot(const index_t* __restrict__ row, const real* __restrict__ val,
                                             const double* __restrict__ t, long long start, long long stop,
                                             long long first, long long width, long long square) {
    double a = 0.0, b = 0.0;
    long long k = start + first;
    for (; k + width < stop; k += 2 * width) {
        const double x = val[k], y = val[k + width];
        a += (square ? x * x : x) * t[row[k]];
        b += (square ? y * y : y) * t[row[k + width]];
    }
    if (k < stop) {
        const double x = val[k];
        a += (square ? x * x : x) * t[row[k]];
    }
    return a + b;
}

}  // namespace columns

// out = A^T t plus ridge * diagonal * v, A = X[:, cols] or [X[:, cols], 1], by columns of a store; squares of
// the entries where ``square``. ``sums`` (n_sums,) adds up to the sum of t. The first n_long blocks take one
// long column of the store each, where ``position`` says that it is one of cols; the block after them the
// intercept; the others ``width`` threads a column.
extern "C" __global__ void sk_columns_product(
    const index_t* __restrict__ cut, const index_t* __restrict__ row, const real* __restrict__ val,
    const int* __restrict__ cols, const int* __restrict__ position, const long long* __restrict__ longs,
    long long n_long, long long limit, long long width, const double* __restrict__ t, const double* sums,
    long long n_sums, long long m, long long intercept, long long square, double ridge,
    const double* __restrict__ diagonal, const double* __restrict__ v, double* __restrict__ out) {
    __shared__ double room[33];
    const long long ahead = n_long + (intercept ? 1 : 0);
    if (blockIdx.x < ahead) {
        const bool last = blockIdx.x == n_long;
        const long long column = last ? 0 : longs[blockIdx.x];
        const long long j = last ? m : position[column];
        if (j < 0) return;  // the whole block
        double total = 0.0;
        if (last)
            for (long long b = threadIdx.x; b < n_sums; b += blockDim.x) total += sums[b];
        else
            total = columns::dot(row, val, t, cut[column], cut[column + 1], threadIdx.x, blockDim.x, square);
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
            const long long start = cut[cols[j]], stop = cut[cols[j] + 1];
            mine = stop - start <= limit;
            if (mine) total = columns::dot(row, val, t, start, stop, lane % width, width, square);
        }
        for (int step = (int)width / 2; step > 0; step >>= 1)
            total += __shfl_xor_sync(SK_WHOLE_WARP, total, step);
        if (mine && lane % width == 0) out[j] = ridge != 0.0 ? total + ridge * diagonal[j] * v[j] : total;
    }
}
