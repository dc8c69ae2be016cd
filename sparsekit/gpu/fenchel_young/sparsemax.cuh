// Sparsemax of a row that threads hold in registers: its threshold without a sort, and what follows from it.
//
// The threshold tau solves sum_j max(z_j - tau, 0) = 1. The sum is convex, so Newton's method from any lower bound
// rises to tau and ends exactly when the support no longer changes (Michelot 1986). Entries are taken relative to the
// row's maximum, and tau is t + rest, two numbers: rest is the rounding error of t. A step is computed from the sum's
// excess over 1, whose terms are few digits long near the end. So the probabilities (z_j - t) - rest sum to one up to
// the rounding of each. Many equal scores that hardly exceed tau stay members, also in single precision.
#include "fenchel_young/rows.cuh"
#ifndef SK_SPARSEMAX_CUH
#define SK_SPARSEMAX_CUH

#ifndef TARGETS
#define TARGETS 0
#endif

namespace sparsemax {

// bits of ``wanted``
enum { PROBABILITIES = 1, THRESHOLD = 2, SIZE = 4, MINUS = 8, DISTRIBUTION = 16, CODE = 32, LOSS = 64 };

// More than rounding can add to a lower bound on tau. A bound from the maxima of 32 lanes errs by at most 16 units of
// rounding, one from a part of a row by less. A unit is 6e-8 in float and 1.1e-16 in double.
static __device__ __forceinline__ real slack() { return sizeof(real) == 4 ? real(4e-6) : real(1e-14); }
// how far from 1 the sum of a target distribution may lie
static __device__ __forceinline__ double sum_tolerance() { return sizeof(real) == 4 ? 1e-4 : 1e-6; }

// A step may be rounded badly: the next one corrects it.
static __device__ __forceinline__ real quotient(real a, real b) {
#ifndef SK_EMULATED
    if (sizeof(real) == 4) return __fdividef((float)a, (float)b);
#endif
    return a / b;
}

// Newton's method.
struct Search {
    real t, rest, members;
    bool done;
    __device__ __forceinline__ Search(real bound) : t(bound), rest(0), members(0), done(false) {}
    // One step from the number of entries above t + rest and the sum of their distances to t. A row that is done
    // keeps its result, so that the rows of a warp need not end together.
    template <typename T>
    __device__ __forceinline__ void step(T over, T count_) {
        const real count = real(count_);
        const real by = quotient(real((over - T(1)) - count_ * T(rest)), count);
        const real rise = rest + by, next = t + rise;
        const bool moves = !done;
        done = done || count == members || !(by > real(0));
        members = count;
        rest = moves ? rise - (next - t) : rest;  // exact, as rise is smaller than t
        t = moves ? next : t;
    }
};

// Steps for L lanes with N values each, all lanes of the warp together.
template <int L, int N>
static __device__ __forceinline__ void search(const real (&x)[N], Search& s, int passes) {
    for (int pass = 0; pass < passes; ++pass) {
        real over = 0, count = 0;
#pragma unroll
        for (int e = 0; e < N; ++e) {
            const real d = x[e] - s.t;
            if (d > s.rest) {
                over += d;
                count += real(1);
            }
        }
        s.step(sk::lanes_sum<L>(over), sk::lanes_sum<L>(count));
        if (__all_sync(SK_WHOLE_WARP, s.done)) break;
    }
}

// Lower bound on tau from the largest value of each of L lanes, relative to the row's: a subset has a lower threshold.
template <int L>
static __device__ __forceinline__ real bound(real own, int passes) {
    const real one[1] = {own};
    Search s(real(-1));
    search<L>(one, s, passes);
    return s.t - slack() > real(-1) ? s.t - slack() : real(-1);
}

static __device__ __forceinline__ int count_above(const real (&x)[EACH], real t) {
    int count = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) count += x[e] > t;
    return count;
}

static __device__ __forceinline__ void list_above(const real (&x)[EACH], real t, real* keep) {
    int n = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e)
        if (x[e] > t) keep[n++] = x[e];
}

// Largest entry of a thread, +inf where one of them is NaN: both kinds of row are special.
static __device__ __forceinline__ real highest(const real (&x)[EACH]) {
    real high = x[0];
    bool bad = false;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        high = x[e] > high ? x[e] : high;
        bad |= x[e] != x[e];
    }
    return bad ? real(INFINITY) : high;
}

static __device__ __forceinline__ bool is_special(real high) { return !(high - high == real(0)); }

// What counts in a special row: its NaN and +inf.
static __device__ __forceinline__ void count_special(const real (&x)[EACH], int& bad, int& infinite) {
    bad = infinite = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        bad += x[e] != x[e];
        infinite += x[e] == real(INFINITY);
    }
}

// Probabilities of a special row instead of its entries: NaN, equal shares of +inf, or 0.
static __device__ __forceinline__ void share_special(real (&x)[EACH], bool bad, double infinite) {
    const real share = real(1.0 / infinite);
#pragma unroll
    for (int e = 0; e < EACH; ++e) x[e] = bad ? real(NAN) : x[e] == real(INFINITY) ? share : real(0);
}

// from an entry relative to the maximum; NaN stays
static __device__ __forceinline__ real probability(real d, real t, real rest) {
    const real share = (d - t) - rest;
    return share <= real(0) ? real(0) : share;
}

// Sums over entries that the loss of a row is made of.
struct Sums {
    double square, far, total, negative;
};

// Adds an entry with probability p and target q; gap is how far it lies below tau.
static __device__ __forceinline__ void add(Sums& s, real p, real q, double gap) {
    const double w = (double)p - (double)q;
    s.square += w * w;
    if (q > real(0) && gap > 0.0) s.far += (double)q * gap;
    s.total += (double)q;
    if (q < real(0)) s.negative += 1.0;
}

// 1/2 |p - q|^2 + sum_j q_j max(tau - z_j, 0): no term is negative, none cancels
static __device__ __forceinline__ double loss_of(const Sums& s) { return 0.5 * s.square + s.far; }

static __device__ __forceinline__ bool is_wrong(const Sums& s) {
    return !(fabs(s.total - 1.0) <= sum_tolerance()) || s.negative > 0.0;
}

// The row's probabilities, or p - q, instead of x, which is relative to the maximum; in a special row x
// holds the probabilities already. Beyond the row's end both are 0. Returns how many are not zero.
static __device__ __forceinline__ int finish(real (&x)[EACH], const real* q, long long y, int wanted, bool odd, int K,
                                             int lane, int lanes, real t, real rest, Sums& sums) {
    int size = 0;
#pragma unroll
    for (int c = 0; c < EACH / WIDE; ++c) {
        const int k = rows::index_of(c * WIDE, lane, lanes);
        rows::Pack target;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) target.at[i] = k + i == y ? real(1) : real(0);
        if (TARGETS && wanted & DISTRIBUTION && k < K) target = *reinterpret_cast<const rows::Pack*>(q + k);
#pragma unroll
        for (int i = 0; i < WIDE; ++i) {
            real& own = x[c * WIDE + i];
            const real p = odd ? own : probability(own, t, rest);
            size += p > real(0);
            if (TARGETS) {
                // a special row's entries lie inside its support or infinitely far away
                const double gap = odd ? (p == real(0) ? INFINITY : 0.0) : ((double)t - (double)own) + (double)rest;
                add(sums, p, target.at[i], gap);
            }
            own = TARGETS && wanted & MINUS ? p - target.at[i] : p;
        }
    }
    return size;
}

}  // namespace sparsemax
#endif
