// Steps of softmax with very many classes: draws, rounds of rows that step at once, hashed scores.
//
// The classes of many rounds are drawn and sorted ahead, by round and class. A round then has two phases. First every
// unit, a row, computes its changes from the weights as they are, one block a unit. Then every class that changes gets
// its changes in the order of the units, one block a class. So no two blocks write to one number and the result does
// not depend on which is first. A hashed table is the exception: its classes share entries, and atomic additions make
// the sums.
#include "extreme/extreme.cuh"

namespace sk_extreme {

using sk_softmax::rule;
using sk_softmax::team;

constexpr long long FEW = 64;  // largest number of negatives that one warp solves alone

// What both phases of a round work on.
struct problem {
    numbers N;
    rows X;
    table T;
    rule R;
    const long long *order, *k;
    const double* r;
    const long long *count, *keys;
    double* doubles;
    unsigned long long* bad;

    __device__ __forceinline__ long long rounds_units(long long round, long long unit) const {
        return (round - N.first) * N.units + unit;
    }
    // the smallest number is reported: the first bad round, and in it the first row
    __device__ __forceinline__ void report(long long round, long long place) const {
        atomicMin(bad, (unsigned long long)(round * N.n + place - N.begin));
    }
    __device__ __forceinline__ long long unit_size() const { return 4 * N.stride + 2; }
};

// The change of one row. Its workspace holds f, g, rho, q (stride), the squared norm and the step length.
static __device__ void row_unit(const problem& P, long long round, long long unit, double* shared) {
    const numbers& N = P.N;
    long long at, b = unit % N.batch_size, size = N.batch(unit / N.batch_size, round, &at);
    if (b >= size) return;
    const int warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
    const long long e = P.order[at + b], first = N.places(round, unit),
                    n = P.count[P.rounds_units(round, unit)];
    const long long* k = P.k + first;
    const row x = P.X.at(e);
    double *f = P.doubles + unit * P.unit_size(), *norm = f + 4 * N.stride;
    const bool norms = N.method == SK_IMPLICIT;
    for (long long j = warp; j <= n + norms; j += warps) {
        double value = j <= n ? score(P.T, x, k[j]) : squared_norm(x) + (P.T.bias ? 1.0 : 0.0);
        if (threadIdx.x % SK_WARP == 0) *(j <= n ? f + j : norm) = value;
    }
    __syncthreads();
    const double share = size > 1 ? 1.0 / (double)size : 1.0;
    const double eta = N.eta * (P.X.weight ? P.X.weight[e] : 1.0) * share;
    // a row of zeros changes no entry of W, but u still has its equation
    const double s = norms && *norm > 0.0 ? *norm : 1e-300;
    const bool few = n <= FEW || blockDim.x == SK_WARP;
    if (few && warp > 0) return;
    double u = P.X.u ? P.X.u[e] : 0.0;
    double* g = f + N.stride;
    sk_softmax::solve({few ? nullptr : shared}, P.R, n, k, f, P.r + first, g, g + N.stride, g + 2 * N.stride, s, eta, &u);
    if (threadIdx.x == 0) {
        f[4 * N.stride + 1] = eta;
        if (P.X.u) P.X.u[e] = u;
        if (!(fabs(g[0]) < sk_softmax::BEYOND) || !(fabs(u) < sk_softmax::BEYOND)) P.report(round, at + b);
    }
}

// All changes of the class at index ``at`` of the sorted keys of a round, if that is its first key.
static __device__ void class_moves(const problem& P, long long round, long long at) {
    const numbers& N = P.N;
    const long long size = N.units * N.stride, local = round - N.first, base = local * (N.n_classes + 1);
    const long long* keys = P.keys + local * size;
    const long long k = keys[at] / size - base;
    if (k >= N.n_classes || (at > 0 && keys[at - 1] / size - base == k)) return;
    klass C(P.T, k);
    while (at < size && keys[at] / size - base == k) {
        const long long unit = keys[at] % size / N.stride;
        const double* f = P.doubles + unit * P.unit_size();
        long long from, b = unit % N.batch_size;
        N.batch(unit / N.batch_size, round, &from);
        const long long e = P.order[from + b];
        const long long slot = keys[at++] % size % N.stride;
        move(P.T, C, P.X.at(e), f[N.stride + slot], sk_softmax::shrink(P.R, k, f[4 * N.stride + 1]));
    }
    if (threadIdx.x == 0) C.write(P.T);
}

}  // namespace sk_extreme

// Draw the classes of the rounds ``first`` .. first + rounds, a thread a part, and write their keys. Sorted keys are in
// the order of round, class, unit and slot of the unit.
extern "C" __global__ void sk_extreme_draw(unsigned long long* states, long long* k, double* r, long long* count,
                                           long long* keys, const long long* whole, const double* parts,
                                           long long rounds) {
    const sk_extreme::numbers N(whole, parts);
    const long long *order = N.array<long long>(sk_extreme::ORDER), *y = N.array<long long>(sk_extreme::LABELS);
    const double *p = N.array<double>(sk_extreme::NOISE), *keep = N.array<double>(sk_extreme::KEEP);
    const long long* alias = N.array<long long>(sk_extreme::ALIAS);
    const long long size = N.units * N.stride, K = N.n_classes;
    for (long long part = sk::thread_of_grid(); part < N.parts; part += sk::threads_of_grid()) {
        unsigned long long state = states[part];
        for (long long round = N.first; round < N.first + rounds; round++) {
            long long at, rows_of_batch = N.batch(part, round, &at), units = N.batch_size;
            for (long long unit = part * units; unit < (part + 1) * units; unit++) {
                const long long here = N.places(round, unit), number = (round - N.first) * N.units + unit;
                const long long b = unit - part * units;
                long long n = 0;
                if (b < rows_of_batch) {
                    k[here] = y[order[at + b]];
                    r[here] = 0.0;
                    n = 1 + sk_draw_classes(N.method == SK_NCE, N.n_negatives, K, k[here], &state, p, keep, alias,
                                            k + here, r + here);
                }
                count[number] = n - 1;
                for (long long j = 0; j < N.stride; j++) {
                    const long long code = j < n ? k[here + j] : K;
                    keys[here + j] = ((round - N.first) * (K + 1) + code) * size + unit * N.stride + j;
                }
            }
        }
        states[part] = state;
    }
}

// Phase 0: the units' changes in a round, a block a unit. Phase 1: the classes' changes, a block a key.
extern "C" __global__ void sk_extreme_steps(double* u, real* W, real* bias, double* scale, double* doubles,
                                            unsigned long long* bad, const long long* whole, const double* parts,
                                            long long phase, long long round) {
    using namespace sk_extreme;
    __shared__ double shared[33];
    const numbers N(whole, parts);
    const problem P = {
        N,
        {N.array<real>(DATA), N.array<index_t>(COLUMNS), N.array<index_t>(START), N.width, N.array<long long>(ROW_OF),
         N.array<double>(WEIGHT), N.if_has(U, u)},
        {N.width, (int)N.shift, W, N.if_has(BIAS, bias), N.if_has(SCALE, scale)},
        {{N.method, N.n_negatives, N.n_classes, N.array<double>(LOG_NOISE)}, N.eta, N.ridge, N.array<double>(BETA)},
        N.array<long long>(ORDER), N.array<long long>(DRAWN), N.array<double>(INVERSE), N.array<long long>(COUNTS),
        N.array<long long>(KEYS), doubles, bad};
    // nothing moves any more once a step was not finite
    if (phase == 0) row_unit(P, round, blockIdx.x, shared);
    else if (*bad == ~0ull) class_moves(P, round, blockIdx.x);
}

// out[i, j] = score of row lo + i for classes[j], from a hashed table; a warp an entry.
// No ReductionKernel: rows of CSR have lengths of their own, and it sums along an axis.
extern "C" __global__ void sk_hashed_scores(const real* data, const index_t* col, const index_t* start,
                                            long long width, long long sparse, long long lo, long long rows,
                                            const real* W, long long shift, const long long* classes,
                                            long long n, real* out) {
    const sk_extreme::rows X = {data, col, sparse ? start : nullptr, width, nullptr, nullptr, nullptr};
    const sk_extreme::table T = {width, (int)shift, const_cast<real*>(W)};
    const long long warps = sk::threads_of_grid() / SK_WARP;
    for (long long i = sk::thread_of_grid() / SK_WARP; i < rows * n; i += warps) {
        double f = sk_extreme::score(T, X.at(lo + i / n), classes[i % n]);
        if (threadIdx.x % SK_WARP == 0) out[i] = (real)f;
    }
}
