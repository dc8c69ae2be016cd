#include "common.cuh"

// t_i = d_i (sum_k X[i, k] v[k] + v[m] of the intercept) for model rows, ``width`` threads (1 .. 32) a row;
// part (blocks,) gets the sum of t over a block's rows.
extern "C" __global__ void sk_model_rows_product(const long long* __restrict__ indptr, const int* __restrict__ col,
                                                 const float* __restrict__ val, const double* __restrict__ d,
                                                 const double* __restrict__ v, long long n, long long m,
                                                 long long intercept, long long width, double* __restrict__ t,
                                                 double* part) {
    __shared__ double room[33];
    const long long lane = threadIdx.x % SK_WARP, each = SK_WARP / width;
    const long long warps = sk::threads_of_grid() / SK_WARP;
    const double v0 = intercept ? v[m] : 0.0;
    double sum = 0.0;
    for (long long warp = sk::thread_of_grid() / SK_WARP; warp * each < n; warp += warps) {
        const long long i = warp * each + lane / width;
        double a = 0.0, b = 0.0;
        if (i < n) {
            const long long stop = indptr[i + 1];
            long long k = indptr[i] + lane % width;
            for (; k + width < stop; k += 2 * width) {
                a += val[k] * v[col[k]];
                b += val[k + width] * v[col[k + width]];
            }
            if (k < stop) a += val[k] * v[col[k]];
        }
        a += b;
        for (int step = (int)width / 2; step > 0; step >>= 1) a += __shfl_xor_sync(SK_WHOLE_WARP, a, step);
        if (i < n && lane % width == 0) {
            a = d[i] * (a + v0);
            t[i] = a;
            sum += a;
        }
    }
    sum = sk::block_sum(sum, room);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
