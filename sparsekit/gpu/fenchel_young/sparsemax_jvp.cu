#include "shared/common.cuh"
#include "fenchel_young/rows.cuh"
// s (v - mean of v over s), s the support of p: the Jacobian of sparsemax times v. v is read near the support
// only, and a row's entries stay in registers until its mean is known. ``out`` may be v.

// blocks of 512 threads that must fit on a multiprocessor: one computes while another reads and writes
#define SK_JVP_BLOCKS (sizeof(real) == 4 ? 2 : 1)

namespace sparsemax_jvp {

// This thread's entries of v in the support, 0 elsewhere; bit e of the result: whether entry e is in it.
static __device__ __forceinline__ unsigned gather(const real* p, const real* v, int K, int lane, int lanes,
                                                  real (&x)[EACH], double& sum) {
    unsigned members = 0;
    rows::load(p, K, lane, lanes, real(0), x);
#pragma unroll
    for (int e = 0; e < EACH; ++e)
        if (x[e] != real(0)) members |= 1u << e;
    sum = 0.0;
#pragma unroll
    for (int c = 0; c < EACH / WIDE; ++c) {
        rows::Pack pack;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) pack.at[i] = 0;
        const unsigned own = members >> c * WIDE & ((1u << WIDE) - 1);
        if (own) pack = *reinterpret_cast<const rows::Pack*>(v + rows::index_of(c * WIDE, lane, lanes));
#pragma unroll
        for (int i = 0; i < WIDE; ++i) {
            x[c * WIDE + i] = own >> i & 1 ? pack.at[i] : real(0);
            sum += (double)x[c * WIDE + i];
        }
    }
    return members;
}

static __device__ __forceinline__ void subtract_mean(real (&x)[EACH], unsigned members, real mean) {
#pragma unroll
    for (int e = 0; e < EACH; ++e) x[e] = members >> e & 1 ? x[e] - mean : real(0);
}

}  // namespace sparsemax_jvp

// Rows of up to 1024 entries: LANES lanes hold one.
extern "C" __global__ void __launch_bounds__(128)
    sk_sparsemax_jvp_warp(const real* p, long long p_step, const real* v, long long v_step, real* out,
                          long long out_step, long long n, long long K_) {
    const int lane = threadIdx.x % LANES;
    const long long row = sk::thread_of_grid() / LANES;
    const int K = row < n ? (int)K_ : 0;  // lanes without a row take part: their warp waits for them
    real x[EACH];
    double sum;
    const unsigned members = sparsemax_jvp::gather(p + row * p_step, v + row * v_step, K, lane, LANES, x, sum);
    sum = sk::lanes_sum<LANES>(sum);
    const int count = sk::lanes_sum<LANES>(__popc(members));
    sparsemax_jvp::subtract_mean(x, members, real(sum / (double)count));
    rows::store(out + row * out_step, K, lane, LANES, x);
}

// A block a row.
extern "C" __global__ void __launch_bounds__(512, SK_JVP_BLOCKS)
    sk_sparsemax_jvp_block(const real* p, long long p_step, const real* v, long long v_step, real* out,
                           long long out_step, long long K_) {
    __shared__ double sums[32];
    __shared__ int counts[32];
    const long long row = blockIdx.x;
    const int K = (int)K_, lane = threadIdx.x, lanes = blockDim.x;
    real x[EACH];
    double sum;
    const unsigned members = sparsemax_jvp::gather(p + row * p_step, v + row * v_step, K, lane, lanes, x, sum);
    sum = rows::block_sum(sum, sums);
    const int count = rows::block_sum(__popc(members), counts);
    sparsemax_jvp::subtract_mean(x, members, real(sum / (double)count));
    rows::store(out + row * out_step, K, lane, lanes, x);
}

// Longer rows, block (part, row): first the parts' sums and counts (2 values each) ...
extern "C" __global__ void __launch_bounds__(512, SK_JVP_BLOCKS)
    sk_sparsemax_jvp_parts(const real* p, long long p_step, const real* v, long long v_step, double* parts, long long K,
                           long long chunk) {
    __shared__ double buffer[2][32];
    const long long row = blockIdx.y, cell = row * gridDim.x + blockIdx.x, start = blockIdx.x * chunk;
    const int size = (int)(K - start < chunk ? K - start : chunk), lane = threadIdx.x, lanes = blockDim.x;
    real x[EACH];
    double sum;
    const unsigned members =
        sparsemax_jvp::gather(p + row * p_step + start, v + row * v_step + start, size, lane, lanes, x, sum);
    sum = rows::block_sum(sum, buffer[0]);
    const double count = rows::block_sum((double)__popc(members), buffer[1]);
    if (threadIdx.x == 0) {
        parts[2 * cell] = sum;
        parts[2 * cell + 1] = count;
    }
}

// ... then the products.
extern "C" __global__ void __launch_bounds__(512, SK_JVP_BLOCKS)
    sk_sparsemax_jvp_spread(const real* p, long long p_step, const real* v, long long v_step, real* out,
                            long long out_step, const double* parts, long long K, long long chunk) {
    __shared__ double buffer[2][32];
    const long long row = blockIdx.y, start = blockIdx.x * chunk;
    const int size = (int)(K - start < chunk ? K - start : chunk), lane = threadIdx.x, lanes = blockDim.x;
    double sum = 0.0, count = 0.0, own;
    for (long long b = row * gridDim.x + threadIdx.x; b < (row + 1) * gridDim.x; b += blockDim.x) {
        sum += parts[2 * b];
        count += parts[2 * b + 1];
    }
    sum = rows::block_sum(sum, buffer[0]);
    count = rows::block_sum(count, buffer[1]);
    real x[EACH];
    const unsigned members =
        sparsemax_jvp::gather(p + row * p_step + start, v + row * v_step + start, size, lane, lanes, x, own);
    sparsemax_jvp::subtract_mean(x, members, real(sum / count));
    rows::store(out + row * out_step + start, size, lane, lanes, x);
}
