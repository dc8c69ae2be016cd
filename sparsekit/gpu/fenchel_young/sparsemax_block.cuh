// The threshold of a row, or of a part of one, that a block holds in registers.
#include "fenchel_young/sparsemax.cuh"
#ifndef SK_SPARSEMAX_BLOCK_CUH
#define SK_SPARSEMAX_BLOCK_CUH

namespace sparsemax {

// most entries above the bound that one warp searches alone; the whole block searches more
#define SK_SURVIVORS 1024

struct Workspace {
    real tops[SK_WARP], kept[SK_SURVIVORS], t, rest;
    int counts[SK_WARP];
    double over[2][SK_WARP], members[2][SK_WARP], sums[4][SK_WARP];
};

// Index of this thread's first entry above t in the block's list, whose order is fixed; ``all`` gets its length.
static __device__ __forceinline__ int list_index(int count, Workspace& work, int& all) {
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
    int own;
    const int before = rows::sum_before(count, lane, own);
    if (lane == 0) work.counts[warp] = own;
    __syncthreads();
    const int first = rows::sum_before(lane < warps ? work.counts[lane] : 0, lane, all);
    __syncthreads();
    return __shfl_sync(SK_WHOLE_WARP, first, warp) + before;
}

// One warp's steps on a list in shared memory; the others wait, so its sums are of the shorter type.
static __device__ __forceinline__ void search_list(const real* kept, int n, Search& s) {
    for (int pass = 0; pass < 100 && !s.done; ++pass) {
        real over = 0, count = 0;
        for (int i = threadIdx.x % SK_WARP; i < n; i += SK_WARP) {
            const real d = kept[i] - s.t;
            if (d > s.rest) {
                over += d;
                count += real(1);
            }
        }
        s.step(sk::lanes_sum<SK_WARP>(over), sk::lanes_sum<SK_WARP>(count));
    }
}

// The block's steps on all entries.
static __device__ __forceinline__ void search_block(const real (&x)[EACH], Workspace& work, Search& s) {
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
    for (int pass = 0; pass < 100 && !s.done; ++pass) {
        real over = 0, count = 0;  // EACH entries: single precision is enough
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const real d = x[e] - s.t;
            if (d > s.rest) {
                over += d;
                count += real(1);
            }
        }
        const double o = sk::lanes_sum<SK_WARP>((double)over), c = sk::lanes_sum<SK_WARP>((double)count);
        // two buffers alternate: the other one is still being read
        if (lane == 0) work.over[pass % 2][warp] = o, work.members[pass % 2][warp] = c;
        __syncthreads();
        s.step(sk::lanes_sum<SK_WARP>(lane < warps ? work.over[pass % 2][lane] : 0.0),
               sk::lanes_sum<SK_WARP>(lane < warps ? work.members[pass % 2][lane] : 0.0));
    }
    __syncthreads();
}

// Maximum of the entries, which is returned and taken off them, and the threshold t + rest relative to it.
// Where the maximum is +-inf or an entry is NaN, ``odd`` is set and the entries stay as they are.
static __device__ __forceinline__ real solve_block(real (&x)[EACH], Workspace& work, bool& odd, real& t, real& rest) {
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
    const real high = rows::block_max(highest(x), work.tops);
    odd = is_special(high);
    t = rest = 0;
    if (odd) return high;
#pragma unroll
    for (int e = 0; e < EACH; ++e) x[e] -= high;

    const real low = bound<SK_WARP>((lane < warps ? work.tops[lane] : -(real)INFINITY) - high, 3);
    int all;
    const int count = count_above(x, low), first = list_index(count, work, all);
    if (all <= SK_SURVIVORS) {
        if (count) list_above(x, low, work.kept + first);
        __syncthreads();
        if (warp == 0) {
            Search s(low);
            search_list(work.kept, all, s);
            if (lane == 0) work.t = s.t, work.rest = s.rest;
        }
        __syncthreads();
        t = work.t, rest = work.rest;
        return high;
    }
    Search s(low);
    search_block(x, work, s);
    t = s.t, rest = s.rest;
    return high;
}

// How many NaN and +inf the block holds.
static __device__ __forceinline__ void count_special_block(const real (&x)[EACH], Workspace& work, double& bad,
                                                           double& infinite) {
    int own_bad, own_infinite;
    count_special(x, own_bad, own_infinite);
    bad = rows::block_sum((double)own_bad, work.over[0]);
    infinite = rows::block_sum((double)own_infinite, work.members[0]);
}

static __device__ __forceinline__ void sum_block(Sums& s, Workspace& work, bool distribution) {
    s.square = rows::block_sum(s.square, work.sums[0]);
    s.far = rows::block_sum(s.far, work.sums[1]);
    if (distribution) {
        s.total = rows::block_sum(s.total, work.sums[2]);
        s.negative = rows::block_sum(s.negative, work.sums[3]);
    }
}

}  // namespace sparsemax
#endif
