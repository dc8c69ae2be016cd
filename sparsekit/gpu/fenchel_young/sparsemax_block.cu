#include "shared/common.cuh"
#include "fenchel_young/sparsemax_block.cuh"
// Rows that a block holds in the registers of its threads.

// blocks of 512 threads that must fit on a multiprocessor: while one computes, another one reads and writes
#define SK_BLOCKS (sizeof(real) == 4 && !TARGETS ? 2 : 1)

extern "C" __global__ void __launch_bounds__(512, SK_BLOCKS)
    sk_sparsemax_block(const real* z, long long z_step, const real* q, long long q_step, const long long* y, real* p,
                       long long p_step, double* tau, long long* size, double* loss, int* wrong, long long wanted_,
                       long long n, long long K_) {
    using namespace sparsemax;
    __shared__ Workspace work;
    const int K = (int)K_, wanted = (int)wanted_, lane = threadIdx.x, lanes = blockDim.x;
    const long long row = blockIdx.x;
    real x[EACH], t, rest;
    bool odd;
    rows::load(z + row * z_step, K, lane, lanes, -(real)INFINITY, x);
    real high = solve_block(x, work, odd, t, rest);
    if (odd) {
        double bad, infinite;
        count_special_block(x, work, bad, infinite);
        share_special(x, bad > 0.0, infinite);
        if (bad > 0.0) high = (real)NAN;
    }

    Sums sums = {0.0, 0.0, 0.0, 0.0};
    const bool coded = TARGETS && wanted & CODE;
    int count = finish(x, q + row * q_step, coded ? y[row] : -1, wanted, odd, K, lane, lanes, t, rest, sums);
    if (wanted & PROBABILITIES) rows::store(p + row * p_step, K, lane, lanes, x);
    if (wanted & SIZE) count = rows::block_sum(count, work.counts);
    if (TARGETS) sum_block(sums, work, wanted & DISTRIBUTION);
    if (threadIdx.x == 0) {
        if (wanted & THRESHOLD) tau[row] = (double)high + ((double)t + (double)rest);
        if (wanted & SIZE) size[row] = count;
        if (TARGETS && wanted & LOSS) loss[row] = loss_of(sums);
        if (TARGETS && wanted & DISTRIBUTION && is_wrong(sums)) wrong[0] = 1;
    }
}
