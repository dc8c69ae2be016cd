#include "shared/common.cuh"
#include "fenchel_young/sparsemax.cuh"
// Rows of up to 1024 entries: LANES lanes hold one, a warp 32 / LANES of them.

#define SK_KEPT 64

extern "C" __global__ void __launch_bounds__(128)
    sk_sparsemax_warp(const real* z, long long z_step, const real* q, long long q_step, const long long* y, real* p,
                      long long p_step, double* tau, long long* size, double* loss, int* wrong, long long wanted_,
                      long long n, long long K_) {
    using namespace sparsemax;
    const int lane = threadIdx.x % LANES, wanted = (int)wanted_;
    const long long row = sk::thread_of_grid() / LANES;
    const int K = row < n ? (int)K_ : 0;  // lanes without a row take part: their warp waits for them
    real x[EACH];
    rows::load(z + row * z_step, K, lane, LANES, -(real)INFINITY, x);
    const real own = highest(x);
    real high = sk::lanes_max<LANES>(own);
    const bool odd = is_special(high);
    if (!odd)
#pragma unroll
        for (int e = 0; e < EACH; ++e) x[e] -= high;

    Search found(LANES >= 8 ? bound<LANES>(own - high, 3) : real(-1));
#if LANES == 32 && EACH >= 16
    // few entries are above the bound: one or two a lane cost a fraction of EACH
    __shared__ real kept[128 / SK_WARP * SK_KEPT];
    real* keep = kept + threadIdx.x / SK_WARP * SK_KEPT;
    int above;
    const int before = rows::sum_before(odd ? 0 : count_above(x, found.t), lane, above);
    if (above <= SK_KEPT) {
        if (above) list_above(x, found.t, keep + before);
        __syncwarp();
        const real two[2] = {lane < above ? keep[lane] : -(real)INFINITY,
                             lane + SK_WARP < above ? keep[lane + SK_WARP] : -(real)INFINITY};
        search<LANES>(two, found, 100);
    } else
#endif
        search<LANES>(x, found, 100);

    if (__any_sync(SK_WHOLE_WARP, odd)) {
        int bad, infinite;
        count_special(x, bad, infinite);
        bad = sk::lanes_sum<LANES>(bad);
        infinite = sk::lanes_sum<LANES>(infinite);
        if (odd) {
            share_special(x, bad > 0, infinite);
            if (bad) high = (real)NAN;
            found.t = found.rest = 0;
        }
    }

    Sums sums = {0.0, 0.0, 0.0, 0.0};
    const bool coded = TARGETS && row < n && wanted & CODE;
    int count = finish(x, q + row * q_step, coded ? y[row] : -1, wanted, odd, K, lane, LANES, found.t, found.rest, sums);
    if (wanted & PROBABILITIES) rows::store(p + row * p_step, K, lane, LANES, x);
    if (wanted & SIZE) count = sk::lanes_sum<LANES>(count);
    if (TARGETS) {
        sums.square = sk::lanes_sum<LANES>(sums.square);
        sums.far = sk::lanes_sum<LANES>(sums.far);
    }
    if (TARGETS && wanted & DISTRIBUTION) {
        sums.total = sk::lanes_sum<LANES>(sums.total);
        sums.negative = sk::lanes_sum<LANES>(sums.negative);
    }
    if (row < n && lane == 0) {
        if (wanted & THRESHOLD) tau[row] = (double)high + ((double)found.t + (double)found.rest);
        if (wanted & SIZE) size[row] = count;
        if (TARGETS && wanted & LOSS) loss[row] = loss_of(sums);
        if (TARGETS && wanted & DISTRIBUTION && is_wrong(sums)) wrong[0] = 1;
    }
}
