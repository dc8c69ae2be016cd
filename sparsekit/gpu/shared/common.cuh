// What every kernel file of this folder begins with: types, dynamic shared memory, sums in a fixed order.
#ifndef SK_COMMON_CUH
#define SK_COMMON_CUH

#ifdef __CUDACC_RTC__  // NVRTC has no system headers
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#endif

#ifndef REAL
#define REAL float
#endif
#ifndef INDEX
#define INDEX int
#endif
typedef REAL real;
typedef INDEX index_t;

#ifndef SK_EMULATED  // the emulation on the CPU has its own
#define SK_DYNAMIC_SHARED(type, name)                                   \
    extern __shared__ __align__(16) unsigned char sk_dynamic_shared[];  \
    type* name = reinterpret_cast<type*>(sk_dynamic_shared)
#endif

#define SK_WHOLE_WARP 0xffffffffu
#define SK_WARP 32

namespace sk {

static __device__ __forceinline__ long long thread_of_grid() {
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ long long threads_of_grid() { return (long long)gridDim.x * blockDim.x; }

// Sum and largest value over the lanes of a warp, the same bits in each; the whole warp must call them.
template <typename T>
static __device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int step = SK_WARP / 2; step > 0; step >>= 1) x += __shfl_xor_sync(SK_WHOLE_WARP, x, step);
    return x;
}

template <typename T>
static __device__ __forceinline__ T warp_max(T x) {
#pragma unroll
    for (int step = SK_WARP / 2; step > 0; step >>= 1) {
        const T other = __shfl_xor_sync(SK_WHOLE_WARP, x, step);
        x = other > x ? other : x;
    }
    return x;
}

// Sum over a one-dimensional block of whole warps, the same bits in every thread. ``buffer`` holds 33 values in shared
// memory and may be used again at once. All threads must call it.
template <typename T>
static __device__ __forceinline__ T block_sum(T x, T* buffer) {
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP;
    x = warp_sum(x);
    if (lane == 0) buffer[warp] = x;
    __syncthreads();
    if (warp == 0) {
        T y = lane < (int)(blockDim.x / SK_WARP) ? buffer[lane] : T(0);
        y = warp_sum(y);
        if (lane == 0) buffer[32] = y;
    }
    __syncthreads();
    x = buffer[32];
    __syncthreads();
    return x;
}

// Largest value over a block, as above.
template <typename T>
static __device__ __forceinline__ T block_max(T x, T* buffer) {
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP;
    x = warp_max(x);
    if (lane == 0) buffer[warp] = x;
    __syncthreads();
    if (warp == 0) {
        T y = lane < (int)(blockDim.x / SK_WARP) ? buffer[lane] : x;
        y = warp_max(y);
        if (lane == 0) buffer[32] = y;
    }
    __syncthreads();
    x = buffer[32];
    __syncthreads();
    return x;
}

// All threads of a block, or, without ``buffer`` (33 doubles of shared memory), those of one warp: its first, or in a
// block of (32, rows) that of a row.
struct team {
    double* buffer;
    __device__ __forceinline__ long long rank() const { return threadIdx.x; }
    __device__ __forceinline__ long long size() const { return buffer ? (long long)blockDim.x : SK_WARP; }
    __device__ __forceinline__ double sum(double x) const {
        return buffer ? block_sum(x, buffer) : warp_sum(x);
    }
    __device__ __forceinline__ double max(double x) const {
        return buffer ? block_max(x, buffer) : warp_max(x);
    }
};

// Column c of parts (blocks, k), which an earlier kernel left, summed; the same bits in every thread.
static __device__ __forceinline__ double sum_parts(const double* __restrict__ parts, long long blocks, double* buffer,
                                                   long long k = 1, long long c = 0) {
    double total = 0.0;
    for (long long b = threadIdx.x; b < blocks; b += blockDim.x) total += parts[b * k + c];
    return block_sum(total, buffer);
}

}  // namespace sk
#endif
