// A short row of a matrix in registers: LANES neighbouring threads, or a whole block, hold EACH entries each.
//
// WIDE entries are read and written at once. That is 16 bytes where the rows' addresses and lengths are multiples of 16
// bytes, else 1 entry. Either way neighbouring threads touch neighbouring memory.
#include "shared/common.cuh"
#ifndef SK_ROWS_CUH
#define SK_ROWS_CUH

#ifndef LANES
#define LANES 8
#endif
#ifndef EACH
#define EACH 8
#endif
#ifndef WIDE
#define WIDE 1
#endif

namespace rows {

struct alignas(WIDE * sizeof(real)) Pack {
    real at[WIDE];
};

// number in the row of entry e of this thread
static __device__ __forceinline__ int index_of(int e, int lane, int lanes) {
    return (e / WIDE * lanes + lane) * WIDE + e % WIDE;
}

// x: the thread's entries of a row of K, ``fill`` beyond its end
static __device__ __forceinline__ void load(const real* row, int K, int lane, int lanes, real fill, real (&x)[EACH]) {
#pragma unroll
    for (int c = 0; c < EACH / WIDE; ++c) {
        const int k = index_of(c * WIDE, lane, lanes);
        Pack pack;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) pack.at[i] = fill;
        if (k < K) pack = *reinterpret_cast<const Pack*>(row + k);
#pragma unroll
        for (int i = 0; i < WIDE; ++i) x[c * WIDE + i] = pack.at[i];
    }
}

static __device__ __forceinline__ void store(real* row, int K, int lane, int lanes, const real (&x)[EACH]) {
#pragma unroll
    for (int c = 0; c < EACH / WIDE; ++c) {
        const int k = index_of(c * WIDE, lane, lanes);
        Pack pack;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) pack.at[i] = x[c * WIDE + i];
        if (k < K) *reinterpret_cast<Pack*>(row + k) = pack;
    }
}

// Sum over the lanes before this one; ``total`` gets that over the warp.
static __device__ __forceinline__ int sum_before(int x, int lane, int& total) {
    int up_to = x;
#pragma unroll
    for (int step = 1; step < SK_WARP; step *= 2) {
        const int other = __shfl_up_sync(SK_WHOLE_WARP, up_to, step);
        if (lane >= step) up_to += other;
    }
    total = __shfl_sync(SK_WHOLE_WARP, up_to, SK_WARP - 1);
    return up_to - x;
}

// The same sums for every thread of a block of whole warps, with one barrier: ``buffer`` holds a value a warp,
// and may be written again only after a further barrier.
template <typename T>
static __device__ __forceinline__ T block_sum(T x, T* buffer) {
    const int lane = threadIdx.x % SK_WARP;
    x = sk::warp_sum(x);
    if (lane == 0) buffer[threadIdx.x / SK_WARP] = x;
    __syncthreads();
    return sk::warp_sum(lane < (int)(blockDim.x / SK_WARP) ? buffer[lane] : T(0));
}

// Largest value over a block, as above.
template <typename T>
static __device__ __forceinline__ T block_max(T x, T* buffer) {
    const int lane = threadIdx.x % SK_WARP;
    x = sk::warp_max(x);
    if (lane == 0) buffer[threadIdx.x / SK_WARP] = x;
    __syncthreads();
    return sk::warp_max(lane < (int)(blockDim.x / SK_WARP) ? buffer[lane] : x);
}

}  // namespace rows
#endif
