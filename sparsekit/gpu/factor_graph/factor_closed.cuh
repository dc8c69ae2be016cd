// Local problems with a closed form: one thread works at a pair (pair.h), one thread or a warp at the others (closed.h).
// The GPU version of _cython/factor_graph/factor_closed.h.
#ifndef SK_FACTOR_CLOSED_CUH
#define SK_FACTOR_CLOSED_CUH

#include "factor_graph/factor_graph.cuh"

namespace factors {

// The threads that share a factor: one, or a warp.
struct Lanes {
    int width;

    __device__ __forceinline__ int lane() const { return width == 1 ? 0 : (int)(threadIdx.x % SK_WARP); }
    __device__ __forceinline__ double sum(double x) const { return width == 1 ? x : sk::warp_sum(x); }
    __device__ __forceinline__ double most(double x) const { return width == 1 ? x : sk::warp_max(x); }
    __device__ __forceinline__ double least(double x) const { return width == 1 ? x : -sk::warp_max(-x); }
    // what the lane that has entry k holds
    __device__ __forceinline__ double of(double x, int k) const {
        return width == 1 ? x : __shfl_sync(SK_WHOLE_WARP, x, k % SK_WARP);
    }
    __device__ __forceinline__ void meet() const {
        if (width > 1) __syncwarp();
    }
};

#define SK_LANES(k, d) _Pragma("unroll 1") for (int k = lanes.lane(); k < (d); k += lanes.width)

// v1 and v2 become the answers
static __device__ __forceinline__ void pair(double& v1, double& v2, double d1, double d2, double q, double score,
                                            sk_pair_slopes* j) {
    const double old1 = v1, old2 = v2;
    sk_pair(old1, old2, d1, d2, q, score, &v1, &v2);
    if (j != nullptr) *j = sk_pair_jacobian(old1, old2, d1, d2, q, score);
}

// a.x of x = clip(v + tau ad), and its slope in tau
static __device__ __forceinline__ void fg_sweep(Lanes lanes, int d, const double* v, const double* a, const double* ad,
                                                double tau, double* x, double* sum, double* slope) {
    double s = 0.0, q = 0.0;
    SK_LANES(k, d) {
        const double y = v[k] + tau * ad[k];
        q += y > 0.0 && y < 1.0 ? a[k] * ad[k] : 0.0;
        x[k] = fg_clip(y);
        s += a[k] * x[k];
    }
    *sum = lanes.sum(s);
    *slope = lanes.sum(q);
}

#define FG_CLOSED static __device__ __forceinline__
#define FG_LANES Lanes lanes,
#define FG_SAME_LANES lanes,
#define FG_EACH SK_LANES
#define FG_SUM(x) lanes.sum(x)
#define FG_MOST(x) lanes.most(x)
#define FG_LEAST(x) lanes.least(x)
#define FG_OF(x, k) lanes.of(x, k)
#define FG_ONE_LANE (lanes.lane() == 0)
#define FG_MEET lanes.meet()
typedef int fg_count;

#include "closed.h"

}  // namespace factors
#endif
