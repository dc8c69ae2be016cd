// The highest scores of each row, and the logarithm of its normaliser, as its scores come by in parts.
//
// ``share`` warps look at a row, at 128 of its scores in turn; each keeps the highest it has seen and a
// running log-sum-exp a lane, and the first warp of the row puts them together in the order of the warps.
#include "common.cuh"

namespace ranking {

const long long nobody = 0x7fffffffffffffffLL;  // code of an empty place
const int each = 4;                              // scores of a lane in one turn
const int turn = each * SK_WARP;
const int tile = 64;  // the classes of a part are whole tiles

static __device__ __forceinline__ bool higher(real a, long long i, real b, long long j) {
    return a > b || (a == b && i < j);
}

// The highest 32 scores in falling order, one a lane; the first k of them are wanted.
struct Few {
    real score, low;
    long long code, low_code;
    int k;

    __device__ __forceinline__ void start(int wanted, real*, long long*) {
        k = wanted;
        score = low = -INFINITY;
        code = low_code = nobody;
    }
    __device__ __forceinline__ void insert(real s, long long c) {
        const int lane = threadIdx.x % SK_WARP;
        const int at = __popc(__ballot_sync(SK_WHOLE_WARP, higher(score, code, s, c)));
        const real before = __shfl_up_sync(SK_WHOLE_WARP, score, 1);
        const long long code_before = __shfl_up_sync(SK_WHOLE_WARP, code, 1);
        if (lane > at) score = before, code = code_before;
        if (lane == at) score = s, code = c;
        low = __shfl_sync(SK_WHOLE_WARP, score, k - 1);
        low_code = __shfl_sync(SK_WHOLE_WARP, code, k - 1);
    }
    __device__ __forceinline__ void store(real* scores, long long* codes) const {
        const int lane = threadIdx.x % SK_WARP;
        if (lane < k) scores[lane] = score, codes[lane] = code;
    }
};

// The highest k scores in falling order, in shared memory.
struct Many {
    real *scores, low;
    long long *codes, low_code;
    int k;

    __device__ __forceinline__ void start(int wanted, real* room, long long* code_room) {
        k = wanted;
        scores = room;
        codes = code_room;
        for (int j = threadIdx.x % SK_WARP; j < k; j += SK_WARP) scores[j] = -INFINITY, codes[j] = nobody;
        low = -INFINITY;
        low_code = nobody;
        __syncwarp();
    }
    __device__ __forceinline__ void insert(real s, long long c) {
        const int lane = threadIdx.x % SK_WARP;
        int at = 0, stop = k;
        while (at < stop) {
            const int middle = (at + stop) / 2;
            if (higher(scores[middle], codes[middle], s, c))
                at = middle + 1;
            else
                stop = middle;
        }
        // from the end, so that nothing is overwritten before it has been read
        for (int last = k - 1; last > at; last -= SK_WARP) {
            const int to = last - lane;
            const real moved = to > at ? scores[to - 1] : real(0);
            const long long code = to > at ? codes[to - 1] : 0;
            __syncwarp();
            if (to > at) scores[to] = moved, codes[to] = code;
            __syncwarp();
        }
        __syncwarp();
        if (lane == 0) scores[at] = s, codes[at] = c;
        __syncwarp();
        low = scores[k - 1];
        low_code = codes[k - 1];
    }
    __device__ __forceinline__ void store(real* to, long long* code_to) const {
        for (int j = threadIdx.x % SK_WARP; j < k; j += SK_WARP) to[j] = scores[j], code_to[j] = codes[j];
    }
};

// A score of each lane into the warp's list; scores that are NaN never enter.
template <class Best>
static __device__ __forceinline__ void push(Best& best, real score, long long code, bool counts) {
    unsigned left = __ballot_sync(SK_WHOLE_WARP, counts && higher(score, code, best.low, best.low_code));
    while (left) {
        const int from = __ffs(left) - 1;
        const real s = __shfl_sync(SK_WHOLE_WARP, score, from);
        const long long c = __shfl_sync(SK_WHOLE_WARP, code, from);
        left &= left - 1;
        if (higher(s, c, best.low, best.low_code)) best.insert(s, c);
    }
}

// sum exp = exp(high) total
struct Sum {
    real high;
    double total;

    __device__ __forceinline__ void start() {
        high = -INFINITY;
        total = 0.0;
    }
    __device__ __forceinline__ void add(real a) {
        if (a == real(-INFINITY)) return;
        const real e = exp(-fabs(a - high));
        if (a > high) {
            total = total * (double)e + 1.0;
            high = a;
        } else {
            total += (double)e;
        }
    }
};

static __device__ __forceinline__ double share_of(double total, double high, double top) {
    return top == -INFINITY ? total : total * exp(high - top);
}

// Scores of a dense row.
struct Stored {
    const real* row;

    __device__ __forceinline__ void load(long long t, long long end, real* out) const {
#pragma unroll
        for (int u = 0; u < each; u++) out[u] = t + u * SK_WARP < end ? row[t + u * SK_WARP] : real(0);
    }
};

// Scores of a row in CSR: its column j has the weight table[at[j] * stride + t] of class t.
struct Product {
    const real *data, *table, *bias;
    const long long *indices, *at;
    long long begin, stop, stride;

    __device__ __forceinline__ void load(long long t, long long end, real* out) const {
#pragma unroll
        for (int u = 0; u < each; u++) out[u] = t + u * SK_WARP < end ? bias[t + u * SK_WARP] : real(0);
        for (long long e = begin; e < stop; e++) {
            const real x = data[e];
            const real* w = table + at[indices[e]] * stride;
#pragma unroll
            for (int u = 0; u < each; u++)
                if (t + u * SK_WARP < end) out[u] += x * w[t + u * SK_WARP];
        }
    }
};

struct Wanted {
    real* best;
    long long* codes;
    double *high, *total, *own_score;
    long long k, own;
    bool sums;
};

// What the scores lo .. hi of a row, with codes from ``first`` on, add to what is known of it. ``room``:
// two doubles a warp, then k codes and k scores a warp. All threads of the block must call it.
template <class Best, class Scores>
static __device__ __forceinline__ void look(const Scores& scores, bool counts, long long lo, long long hi,
                                            long long first, int share, const Wanted& out, double* room) {
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, part = warp % share;
    const int warps = blockDim.x / SK_WARP;
    double *highs = room, *totals = room + warps;
    long long* codes = reinterpret_cast<long long*>(room + 2 * warps);
    real* best_room = reinterpret_cast<real*>(codes + warps * out.k);
    Best best;
    Sum sum;
    best.start((int)out.k, best_room + warp * out.k, codes + warp * out.k);
    sum.start();
    for (long long from = lo + (long long)part * turn; counts && from < hi; from += (long long)share * turn) {
        const long long t = from + lane;
        real a[each];
        scores.load(t, hi, a);
#pragma unroll
        for (int u = 0; u < each; u++) {
            const bool here = t + u * SK_WARP < hi;
            const long long code = first + t + u * SK_WARP;
            if (out.k) push(best, a[u], code, here);
            if (out.sums && here) sum.add(a[u]);
            if (here && code == out.own) *out.own_score = (double)a[u];
        }
    }
    if (out.sums) {
        const double high = (double)sk::warp_max(sum.high);
        const double total = sk::warp_sum(share_of(sum.total, (double)sum.high, high));
        if (lane == 0) highs[warp] = high, totals[warp] = total;
    }
    if (share > 1 && out.k) best.store(best_room + warp * out.k, codes + warp * out.k);
    __syncthreads();
    if (part != 0 || !counts) return;
    if (out.sums && lane == 0) {
        double high = *out.high, total;
        for (int w = 0; w < share; w++) high = highs[warp + w] > high ? highs[warp + w] : high;
        total = share_of(*out.total, *out.high, high);
        for (int w = 0; w < share; w++) total += share_of(totals[warp + w], highs[warp + w], high);
        *out.high = high;
        *out.total = total;
    }
    if (!out.k) return;
    for (int w = 0; w < share; w++) {
        const real* others = w ? best_room + (warp + w) * out.k : out.best;
        const long long* other_codes = w ? codes + (warp + w) * out.k : out.codes;
        for (long long j = 0; j < out.k; j += SK_WARP) {
            const bool here = j + lane < out.k;
            push(best, here ? others[j + lane] : real(0), here ? other_codes[j + lane] : nobody, here);
        }
    }
    best.store(out.best, out.codes);
}

static __device__ __forceinline__ Wanted wanted_of(long long i, long long at, real* best, long long* codes,
                                                   long long k, double* high, double* total, long long sums,
                                                   const long long* own, double* own_score,
                                                   long long owns, bool counts) {
    Wanted out;
    out.k = k;
    out.sums = sums != 0;
    out.best = best + at * k;
    out.codes = codes + at * k;
    out.high = sums ? high + at : high;
    out.total = sums ? total + at : total;
    out.own = owns && counts ? own[i] : -1;
    out.own_score = owns ? own_score + i : own_score;
    return out;
}

template <class Best>
static __device__ __forceinline__ void rank_stored(const real* scores, long long n, long long m, long long lo,
                                                   long long k, real* best, long long* codes, double* high,
                                                   double* total, long long sums, const long long* own,
                                                   double* own_score, long long owns, long long share,
                                                   double* room) {
    const long long rows = blockDim.x / SK_WARP / share;
    const long long i = blockIdx.x * rows + threadIdx.x / SK_WARP / share;
    const Stored row = {scores + (i < n ? i : 0) * m};
    look<Best>(row, i < n, 0, m, lo, (int)share,
               wanted_of(i, i, best, codes, k, high, total, sums, own, own_score, owns, i < n), room);
}

// Classes lo .. hi of all n_classes that are the part ``part``'s, whole tiles.
static __device__ __forceinline__ long long bound(long long part, long long parts, long long n_classes) {
    return part == parts ? n_classes : n_classes * part / parts / tile * tile;
}

static __device__ __forceinline__ Product product_of(long long i, const real* data, const long long* indices,
                                                     const long long* indptr, const real* table,
                                                     long long stride, const long long* at, const real* bias,
                                                     bool counts) {
    Product row = {data, table, bias, indices, at, 0, 0, stride};
    if (counts) row.begin = indptr[i], row.stop = indptr[i + 1];
    return row;
}

template <class Best>
static __device__ __forceinline__ void rank_product(const real* data, const long long* indices,
                                                    const long long* indptr, long long n, const real* table,
                                                    long long stride, const long long* at, const real* bias,
                                                    long long n_classes, long long begin, long long end,
                                                    long long first, long long k, real* best,
                                                    long long* codes, double* high, double* total,
                                                    long long sums, const long long* own, double* own_score,
                                                    long long owns, long long share, double* room) {
    const long long rows = blockDim.x / SK_WARP / share;
    const long long i = blockIdx.x * rows + threadIdx.x / SK_WARP / share;
    const long long part = blockIdx.y, parts = gridDim.y;
    const bool counts = i < n;
    long long lo = bound(part, parts, n_classes), hi = bound(part + 1, parts, n_classes);
    lo = (lo > begin ? lo : begin) - begin;
    hi = (hi < end ? hi : end) - begin;
    look<Best>(product_of(i, data, indices, indptr, table, stride, at, bias + begin, counts), counts, lo, hi,
               first + begin, (int)share,
               wanted_of(i, part * n + i, best, codes, k, high, total, sums, own, own_score, owns, counts),
               room);
}

}  // namespace ranking

#define SK_RANK_STORED(NAME, LIST)                                                                          \
    extern "C" __global__ void NAME(const real* __restrict__ scores, long long n, long long m,              \
                                    long long lo, long long k, real* best, long long* codes, double* high,  \
                                    double* total, long long sums, const long long* own, double* own_score, \
                                    long long owns, long long share) {                                      \
        SK_DYNAMIC_SHARED(double, room);                                                                    \
        ranking::rank_stored<ranking::LIST>(scores, n, m, lo, k, best, codes, high, total, sums, own,       \
                                            own_score, owns, share, room);                                  \
    }
SK_RANK_STORED(sk_rank_scores_few, Few)
SK_RANK_STORED(sk_rank_scores_many, Many)
#undef SK_RANK_STORED

#define SK_RANK_PRODUCT(NAME, LIST)                                                                         \
    extern "C" __global__ void NAME(                                                                        \
        const real* __restrict__ data, const long long* __restrict__ indices,                               \
        const long long* __restrict__ indptr, long long n, const real* __restrict__ table,                  \
        long long stride, const long long* __restrict__ at, const real* __restrict__ bias,                  \
        long long n_classes, long long begin, long long end, long long first, long long k, real* best,      \
        long long* codes, double* high, double* total, long long sums, const long long* own,                \
        double* own_score, long long owns, long long share) {                                               \
        SK_DYNAMIC_SHARED(double, room);                                                                    \
        ranking::rank_product<ranking::LIST>(data, indices, indptr, n, table, stride, at, bias, n_classes,  \
                                             begin, end, first, k, best, codes, high, total, sums, own,     \
                                             own_score, owns, share, room);                                 \
    }
SK_RANK_PRODUCT(sk_rank_sparse_few, Few)
SK_RANK_PRODUCT(sk_rank_sparse_many, Many)
#undef SK_RANK_PRODUCT

// out (n, m) = scores of the classes begin .. begin + m; a warp a row, 128 classes at a time.
extern "C" __global__ void sk_rank_products(const real* __restrict__ data,
                                            const long long* __restrict__ indices,
                                            const long long* __restrict__ indptr, long long n,
                                            const real* __restrict__ table, long long stride,
                                            const long long* __restrict__ at, const real* __restrict__ bias,
                                            long long m, real* __restrict__ out) {
    const long long warps = blockDim.x / SK_WARP, i = blockIdx.x * warps + threadIdx.x / SK_WARP;
    if (i >= n) return;
    const ranking::Product row =
        ranking::product_of(i, data, indices, indptr, table, stride, at, bias, true);
    for (long long t = threadIdx.x % SK_WARP; t < m; t += ranking::turn) {
        real a[ranking::each];
        row.load(t, m, a);
        for (int u = 0; u < ranking::each; u++)
            if (t + u * SK_WARP < m) out[i * m + t + u * SK_WARP] = a[u];
    }
}

#ifndef WEIGHT
#define WEIGHT float
#endif
// table (d, m) = weights (class k0 + t, columns[j]) of coef, whose strides are in elements; a block a
// tile of 32 columns and 32 classes, read along whichever of the two lies closer together.
extern "C" __global__ void sk_rank_table(const WEIGHT* __restrict__ coef, long long class_stride,
                                         long long column_stride, const long long* __restrict__ columns,
                                         long long d, long long m, real* __restrict__ table) {
    __shared__ real tile[SK_WARP][SK_WARP + 1];
    const long long j0 = (long long)blockIdx.x * SK_WARP, t0 = (long long)blockIdx.y * SK_WARP;
    const bool by_class = class_stride >= column_stride;  // a class's weights are neighbours
    for (int y = threadIdx.x / SK_WARP; y < SK_WARP; y += blockDim.x / SK_WARP) {
        const int x = threadIdx.x % SK_WARP;
        const long long t = t0 + (by_class ? y : x), j = j0 + (by_class ? x : y);
        if (t < m && j < d) {
            const real w = (real)coef[t * class_stride + columns[j] * column_stride];
            if (by_class)
                tile[x][y] = w;
            else
                table[j * m + t] = w;
        }
    }
    if (!by_class) return;
    __syncthreads();
    for (int y = threadIdx.x / SK_WARP; y < SK_WARP; y += blockDim.x / SK_WARP) {
        const long long t = t0 + threadIdx.x % SK_WARP, j = j0 + y;
        if (t < m && j < d) table[j * m + t] = tile[y][threadIdx.x % SK_WARP];
    }
}
