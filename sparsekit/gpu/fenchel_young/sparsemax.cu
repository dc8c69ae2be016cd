#include "shared/common.cuh"
// Sparsemax of rows: the threshold without a sort, what follows from it, and the product with the Jacobian.
//
// The threshold tau solves sum_j max(z_j - tau, 0) = 1. The sum is convex, so Newton's method from any lower bound
// rises to tau and ends exactly when the support no longer changes (Michelot 1986). Entries are taken relative to the
// row's maximum, and tau is t + rest, two numbers: rest is the rounding error of t. A step is computed from the sum's
// excess over 1, whose terms are few digits long near the end. So the probabilities (z_j - t) - rest sum to one up to
// the rounding of each. Many equal scores that hardly exceed tau stay members, also in single precision.
//
// A block is (threads of a row, rows). A warp works at a short row, so blockDim.x is 32; a whole block at a long one.
// Every pass reads the row again: short rows stay in the first cache.

namespace sparsemax {

// bits of ``wanted``
enum { PROBABILITIES = 1, THRESHOLD = 2, SIZE = 4, MINUS = 8, DISTRIBUTION = 16, CODE = 32, LOSS = 64 };

// Largest number of Newton steps; each but the last takes an entry out of the support.
constexpr int MAX_STEPS = 100;

// how far from 1 the sum of a target distribution may lie
static __device__ __forceinline__ double sum_tolerance() { return sizeof(real) == 4 ? 1e-4 : 1e-6; }

// A row's threshold t + rest relative to the maximum ``high``. A row with NaN or without a finite maximum is
// ``special``; its probabilities are NaN, ``share`` for each +inf, or 0.
struct Threshold {
    double high;
    real t, rest, share;
    bool special;

    // NaN stays
    __device__ __forceinline__ real probability(real z) const {
        if (special) return high != high ? (real)NAN : z == (real)INFINITY ? share : real(0);
        const real p = ((z - (real)high) - t) - rest;
        return p <= real(0) ? real(0) : p;
    }
    // how far z lies below tau; a special row's entries lie inside its support or infinitely far away
    __device__ __forceinline__ double gap(real z, real p) const {
        if (special) return p == real(0) ? INFINITY : 0.0;
        return ((double)t - (double)(z - (real)high)) + (double)rest;
    }
};

static __device__ Threshold solve(sk::team team, const real* z, long long K) {
    double high = -INFINITY, bad = 0.0, count = 0.0;
    for (long long k = team.rank(); k < K; k += team.size()) {
        if (z[k] != z[k]) bad = 1.0;
        high = (double)z[k] > high ? (double)z[k] : high;
    }
    high = team.max(high);
    if (team.max(bad) > 0.0) high = NAN;
    Threshold found = {high, 0, 0, 0, !(high - high == 0.0)};
    if (found.special) {
        for (long long k = team.rank(); k < K; k += team.size()) count += z[k] == (real)INFINITY;
        found.share = (real)(1.0 / team.sum(count));
        return found;
    }
    found.t = -1;
    double members = 0.0;
    for (int step = 0; step < MAX_STEPS; ++step) {
        double over = 0.0;
        count = 0.0;
        for (long long k = team.rank(); k < K; k += team.size()) {
            const real d = (z[k] - (real)high) - found.t;
            if (d > found.rest) {
                over += (double)d;
                count += 1.0;
            }
        }
        over = team.sum(over);
        count = team.sum(count);
        const real by = (real)(((over - 1.0) - count * (double)found.rest) / count);
        const real rise = found.rest + by, next = found.t + rise;
        found.rest = rise - (next - found.t);  // exact, as rise is smaller than t
        found.t = next;
        if (count == members || !(by > real(0))) break;
        members = count;
    }
    return found;
}

}  // namespace sparsemax

extern "C" __global__ void __launch_bounds__(1024)
    sk_sparsemax(const real* z, const real* q, const long long* y, real* p, double* tau, long long* size, double* loss,
                 int* wrong, long long wanted, long long n, long long K) {
    using namespace sparsemax;
    __shared__ double buffer[33];
    const sk::team team = {blockDim.x == SK_WARP ? nullptr : buffer};
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= n) return;  // a whole warp
    z += row * K;
    q += row * K;
    p += row * K;
    const Threshold found = solve(team, z, K);
    const long long code = wanted & CODE ? y[row] : -1;
    double count = 0.0, square = 0.0, far = 0.0, total = 0.0, negative = 0.0;
    for (long long k = team.rank(); k < K; k += team.size()) {
        const real own = z[k], share = found.probability(own);
        const real target = wanted & DISTRIBUTION ? q[k] : k == code ? real(1) : real(0);
        count += share > real(0);
        if (wanted & (DISTRIBUTION | CODE)) {
            const double w = (double)share - (double)target, gap = found.gap(own, share);
            square += w * w;
            if (target > real(0) && gap > 0.0) far += (double)target * gap;
            total += (double)target;
            if (target < real(0)) negative = 1.0;
        }
        if (wanted & PROBABILITIES) p[k] = wanted & MINUS ? share - target : share;
    }
    if (wanted & SIZE) count = team.sum(count);
    if (wanted & LOSS) {
        square = team.sum(square);
        far = team.sum(far);
    }
    if (wanted & DISTRIBUTION) {
        total = team.sum(total);
        negative = team.max(negative);
    }
    if (team.rank() != 0) return;
    if (wanted & THRESHOLD) tau[row] = found.high + ((double)found.t + (double)found.rest);
    if (wanted & SIZE) size[row] = (long long)count;
    // 1/2 |p - q|^2 + sum_j q_j max(tau - z_j, 0): no term is negative, none cancels
    if (wanted & LOSS) loss[row] = 0.5 * square + far;
    if (wanted & DISTRIBUTION && (!(fabs(total - 1.0) <= sum_tolerance()) || negative > 0.0)) wrong[0] = 1;
}

// out = s (v - mean of v over s), s the support of p; out may be v.
extern "C" __global__ void __launch_bounds__(1024)
    sk_sparsemax_jvp(const real* p, const real* v, real* out, long long n, long long K) {
    __shared__ double buffer[33];
    const sk::team team = {blockDim.x == SK_WARP ? nullptr : buffer};
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= n) return;  // a whole warp
    p += row * K;
    v += row * K;
    out += row * K;
    double sum = 0.0, count = 0.0;
    for (long long k = team.rank(); k < K; k += team.size())
        if (p[k] != real(0)) {
            sum += (double)v[k];
            count += 1.0;
        }
    sum = team.sum(sum);
    const real mean = (real)(sum / team.sum(count));
    for (long long k = team.rank(); k < K; k += team.size()) out[k] = p[k] != real(0) ? v[k] - mean : real(0);
}
