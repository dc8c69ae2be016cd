// Rows that a group of lanes of a warp, or a whole block, works at together: sums in a fixed order.
#include "shared/common.cuh"
#ifndef SK_GROUPS_CUH
#define SK_GROUPS_CUH

#ifndef SCORE_LANES  // that share a row: a power of two up to 32, or 0 for a block
#define SCORE_LANES 32
#endif

namespace groups {

static __device__ __forceinline__ int group_size() { return SCORE_LANES ? SCORE_LANES : blockDim.x; }

// All threads of the warp, or of the block, must call these.
template <typename T>
static __device__ __forceinline__ T group_sum(T x, T* room) {
#if SCORE_LANES == 0
    return sk::block_sum(x, room);
#else
    (void)room;
    return sk::lanes_sum<SCORE_LANES>(x);
#endif
}

template <typename T>
static __device__ __forceinline__ T group_max(T x, T* room) {
#if SCORE_LANES == 0
    return sk::block_max(x, room);
#else
    (void)room;
    return sk::lanes_max<SCORE_LANES>(x);
#endif
}

}  // namespace groups
#endif
