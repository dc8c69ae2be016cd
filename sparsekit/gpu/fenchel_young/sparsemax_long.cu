#include "shared/common.cuh"
#include "fenchel_young/sparsemax_block.cuh"
// Rows too long for a block: several blocks each, in three launches.
//
// A part's own threshold is a lower bound of the row's, so what lies below it has probability 0. sk_sparsemax_parts:
// each block solves its part in registers, writes zeros, and lists the entries above its bound. sk_sparsemax_join: one
// block a row solves over the lists and writes the few probabilities. So z is read and p written once.
// sk_sparsemax_spread reads a part again if its entries did not fit its list. It reads every part again if there are
// targets or the row's maximum is not finite.

namespace sparsemax {

// what sk_sparsemax_join finds of a row
struct Found {
    double high, t, rest, infinite;
};
// no list of a part: read it again
#define SK_NO_LIST (-1)

}  // namespace sparsemax

// blocks of 512 threads that must fit on a multiprocessor: while one computes, another one reads and writes
#define SK_PART_BLOCKS (sizeof(real) == 4 ? 2 : 1)

// Block (part, row). tops, lows: the part's maximum and, relative to it, a bound on its threshold.
extern "C" __global__ void __launch_bounds__(512, SK_PART_BLOCKS)
    sk_sparsemax_parts(const real* z, long long z_step, real* p, long long p_step, real* kept, int* where, int* counts,
                       real* tops, real* lows, long long wanted, long long K, long long chunk, long long space) {
    using namespace sparsemax;
    __shared__ Workspace work;
    const long long row = blockIdx.y, cell = row * gridDim.x + blockIdx.x, start = blockIdx.x * chunk;
    const int size = (int)(K - start < chunk ? K - start : chunk), lane = threadIdx.x, lanes = blockDim.x;
    const real* from = z + row * z_step + start;
    real x[EACH], t, rest;
    bool odd;
    rows::load(from, size, lane, lanes, -(real)INFINITY, x);
    real high = solve_block(x, work, odd, t, rest);
    real low = t + rest - slack();
    int all = SK_NO_LIST;
    if (odd) {
        double bad, infinite;
        count_special_block(x, work, bad, infinite);
        if (bad > 0.0) high = (real)NAN;
        if (high < real(0)) all = 0;  // nothing but -inf
        low = -(real)INFINITY;
    } else {
        int n = list_index(count_above(x, low), work, all);
        if (all > space) all = SK_NO_LIST;
        if (all != SK_NO_LIST)
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (x[e] > low) {
                    const int k = rows::index_of(e, lane, lanes);
                    kept[cell * space + n] = from[k];
                    where[cell * space + n++] = k;
                }
    }
    if (threadIdx.x == 0) {
        counts[cell] = all;
        tops[cell] = high;
        lows[cell] = low;
    }
    if (!TARGETS && wanted & PROBABILITIES && all != SK_NO_LIST) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) x[e] = 0;
        rows::store(p + row * p_step + start, size, lane, lanes, x);
    }
}

namespace sparsemax {

// Calls use(entry relative to the maximum, part, index in the list) for the listed entries of a row. Warps read the
// lists; the block reads parts without a list. The order is fixed for each thread.
template <typename Use>
static __device__ __forceinline__ void each_left(const real* z, const real* kept, const int* counts, long long parts,
                                                 long long chunk, long long space, long long K, real high, Use use) {
    const int lane = threadIdx.x % SK_WARP;
    for (long long b = threadIdx.x / SK_WARP; b < parts; b += blockDim.x / SK_WARP)
        for (int i = lane; i < counts[b]; i += SK_WARP) use(kept[b * space + i] - high, b, i);
    for (long long b = 0; b < parts; ++b) {
        if (counts[b] != SK_NO_LIST) continue;
        const long long end = (b + 1) * chunk < K ? (b + 1) * chunk : K;
        for (long long k = b * chunk + threadIdx.x; k < end; k += blockDim.x) use(z[k] - high, b, -1);
    }
}

}  // namespace sparsemax

// A block a row. ``found`` holds 4 values a row.
extern "C" __global__ void __launch_bounds__(1024, 1)
    sk_sparsemax_join(const real* z, long long z_step, real* p, long long p_step, const real* kept, const int* where,
                      const int* counts, const real* tops, const real* lows, double* found, double* tau,
                      long long* size, long long wanted, long long K, long long parts, long long chunk,
                      long long space) {
    using namespace sparsemax;
    __shared__ double buffer[33];
    const long long row = blockIdx.x;
    z += row * z_step;
    kept += row * parts * space;
    where += row * parts * space;
    counts += row * parts;
    tops += row * parts;
    lows += row * parts;

    double top = -INFINITY, bad = 0.0;
    for (long long b = threadIdx.x; b < parts; b += blockDim.x) {
        if (tops[b] != tops[b]) bad = 1.0;
        if ((double)tops[b] > top) top = (double)tops[b];
    }
    top = sk::block_max(top, buffer);
    if (sk::block_sum(bad, buffer) > 0.0) top = NAN;
    Found all = {top, 0.0, 0.0, 0.0};
    double count = 0.0;
    if (!(top - top == 0.0)) {
        if (top > 0.0)
            for (long long k = threadIdx.x; k < K; k += blockDim.x) count += z[k] == (real)INFINITY;
        count = all.infinite = sk::block_sum(count, buffer);
    } else {
        const real high = (real)top;
        double low = -1.0;
        for (long long b = threadIdx.x; b < parts; b += blockDim.x) {
            const double own = (double)(tops[b] - high) + (double)lows[b];
            if (own > low) low = own;
        }
        Search s((real)sk::block_max(low, buffer));
        for (int pass = 0; pass < 100 && !s.done; ++pass) {
            double over = 0.0, members = 0.0;
            each_left(z, kept, counts, parts, chunk, space, K, high, [&](real x, long long, int) {
                const real d = x - s.t;
                if (d > s.rest) {
                    over += (double)d;
                    members += 1.0;
                }
            });
            over = sk::block_sum(over, buffer);
            s.step(over, sk::block_sum(members, buffer));
        }
        all.t = (double)s.t;
        all.rest = (double)s.rest;
        each_left(z, kept, counts, parts, chunk, space, K, high, [&](real x, long long b, int i) {
            const real share = probability(x, s.t, s.rest);
            count += share > real(0);
            if (!TARGETS && wanted & PROBABILITIES && i >= 0)
                p[row * p_step + b * chunk + where[b * space + i]] = share;
        });
        count = sk::block_sum(count, buffer);
    }
    if (threadIdx.x == 0) {
        found[4 * row] = all.high;
        found[4 * row + 1] = all.t;
        found[4 * row + 2] = all.rest;
        found[4 * row + 3] = all.infinite;
        if (wanted & THRESHOLD) tau[row] = all.high + (all.t + all.rest);
        if (wanted & SIZE) size[row] = (long long)count;
    }
}

// Block (part, row): probabilities of parts that were not written yet, and the parts' sums for the loss (4 each).
extern "C" __global__ void __launch_bounds__(512, 1)
    sk_sparsemax_spread(const real* z, long long z_step, const real* q, long long q_step, const long long* y, real* p,
                        long long p_step, const int* counts, const double* found, double* sums_of_parts,
                        long long wanted_, long long K, long long chunk) {
    using namespace sparsemax;
    const long long row = blockIdx.y, cell = row * gridDim.x + blockIdx.x, start = blockIdx.x * chunk;
    const int size = (int)(K - start < chunk ? K - start : chunk), lane = threadIdx.x, lanes = blockDim.x;
    const int wanted = (int)wanted_;
    const double high = found[4 * row], infinite = found[4 * row + 3];
    const bool odd = !(high - high == 0.0);
    if (!TARGETS && !odd && counts[cell] != SK_NO_LIST) return;  // the whole block
    real x[EACH];
    rows::load(z + row * z_step + start, size, lane, lanes, -(real)INFINITY, x);
    if (odd) {
        share_special(x, high != high, infinite);
    } else {
#pragma unroll
        for (int e = 0; e < EACH; ++e) x[e] -= (real)high;
    }
    Sums sums = {0.0, 0.0, 0.0, 0.0};
    long long code = -1;
    if (TARGETS && wanted & CODE && y[row] >= start && y[row] < start + size) code = y[row] - start;
    finish(x, q + row * q_step + start, code, wanted, odd, size, lane, lanes,
           (real)found[4 * row + 1], (real)found[4 * row + 2], sums);
    if (wanted & PROBABILITIES) rows::store(p + row * p_step + start, size, lane, lanes, x);
    if (TARGETS) {
        __shared__ Workspace work;
        sum_block(sums, work, true);
        if (threadIdx.x == 0) {
            sums_of_parts[4 * cell] = sums.square;
            sums_of_parts[4 * cell + 1] = sums.far;
            sums_of_parts[4 * cell + 2] = sums.total;
            sums_of_parts[4 * cell + 3] = sums.negative;
        }
    }
}

// A warp a row: the loss from the sums of its parts.
extern "C" __global__ void sk_sparsemax_total(const double* sums_of_parts, double* loss, int* wrong, long long wanted,
                                              long long n, long long parts) {
    using namespace sparsemax;
    const long long row = sk::thread_of_grid() / SK_WARP;
    const int lane = threadIdx.x % SK_WARP;
    double own[4] = {0.0, 0.0, 0.0, 0.0};
    for (long long b = lane; b < parts && row < n; b += SK_WARP)
        for (int i = 0; i < 4; ++i) own[i] += sums_of_parts[4 * (row * parts + b) + i];
    const Sums sums = {sk::warp_sum(own[0]), sk::warp_sum(own[1]), sk::warp_sum(own[2]), sk::warp_sum(own[3])};
    if (row >= n || lane) return;
    loss[row] = loss_of(sums);
    if (wanted & DISTRIBUTION && is_wrong(sums)) wrong[0] = 1;
}
