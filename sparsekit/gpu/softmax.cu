#include "common.cuh"
#include "rows.cuh"
// Softmax of rows, with the same reads and writes as sparsemax's kernels: one pass over memory where a row fits
// the registers of a warp or a block. For comparison; accurate like a plain float implementation.

// blocks of 512 threads that shall fit on a multiprocessor: one computes while another reads and writes
#define SK_SOFTMAX_BLOCKS (sizeof(real) == 4 ? 2 : 1)

// Rows of up to 1024 entries: LANES lanes hold one.
extern "C" __global__ void __launch_bounds__(128)
    sk_softmax_warp(const real* z, long long z_step, real* p, long long p_step, long long n, long long K_) {
    const int lane = threadIdx.x % LANES;
    const long long row = sk::thread_of_grid() / LANES;
    const int K = row < n ? (int)K_ : 0;  // lanes without a row go along: their warp waits for them
    real x[EACH], total = 0;
    rows::load(z + row * z_step, K, lane, LANES, -(real)INFINITY, x);
    real high = x[0];
#pragma unroll
    for (int e = 1; e < EACH; ++e) high = x[e] > high ? x[e] : high;
    high = rows::max<LANES>(high);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        x[e] = exp(x[e] - high);
        total += x[e];
    }
    total = real(1) / rows::sum<LANES>(total);
#pragma unroll
    for (int e = 0; e < EACH; ++e) x[e] *= total;
    rows::store(p + row * p_step, K, lane, LANES, x);
}

// A block a row.
extern "C" __global__ void __launch_bounds__(512, SK_SOFTMAX_BLOCKS)
    sk_softmax_block(const real* z, long long z_step, real* p, long long p_step, long long K_) {
    __shared__ real tops[32], sums[32];
    const long long row = blockIdx.x;
    const int K = (int)K_, lane = threadIdx.x, lanes = blockDim.x;
    real x[EACH], total = 0;
    rows::load(z + row * z_step, K, lane, lanes, -(real)INFINITY, x);
    real high = x[0];
#pragma unroll
    for (int e = 1; e < EACH; ++e) high = x[e] > high ? x[e] : high;
    high = rows::block_max(high, tops);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        x[e] = exp(x[e] - high);
        total += x[e];
    }
    total = real(1) / rows::block_sum(total, sums);
#pragma unroll
    for (int e = 0; e < EACH; ++e) x[e] *= total;
    rows::store(p + row * p_step, K, lane, lanes, x);
}

// Longer rows: a block reads one twice.
extern "C" __global__ void __launch_bounds__(512, SK_SOFTMAX_BLOCKS)
    sk_softmax_long(const real* z, long long z_step, real* p, long long p_step, long long K) {
    __shared__ real tops[32], sums[32];
    z += blockIdx.x * z_step;
    p += blockIdx.x * p_step;
    real high = -(real)INFINITY, total = 0;
    for (long long k = threadIdx.x; k < K; k += blockDim.x) {
        const real x = z[k];
        if (x > high) {
            total = total * exp(high - x) + real(1);
            high = x;
        } else if (x != -(real)INFINITY) {
            total += exp(x - high);
        }
    }
    const real top = rows::block_max(high, tops);
    total = rows::block_sum(high == -(real)INFINITY ? real(0) : total * exp(high - top), sums);
    for (long long k = threadIdx.x; k < K; k += blockDim.x) p[k] = exp(z[k] - top) / total;
}
