// Steps with whole blocks of negatives: W (n_features, stride) lies feature by feature, 16 classes side
// by side.
//
// Rounds have the two phases of extreme.cu. First a block of threads a row computes the row's changes. Then a block of
// threads for each block of classes applies its changes in the order of the rows. So nothing is added atomically.
#include "extreme/softmax_rules.cuh"

namespace sk_class_blocks {

using sk_softmax::rule;

constexpr int SIZE = 16;
constexpr long long ROW_OF = 2, WEIGHT = 4, U = 8, BIAS = 16, SCALE = 32, BETA = 64, LOG_NOISE = 128,
                    NOISE = 256, VALUE = 512, SPARSE = 1;

// Numbers of a call, in the order of _class_blocks.py. ``parts`` rows a round; each has ``most`` slots for blocks, and
// one more for its label.
struct numbers {
    long long flags, width, n_classes, begin, n, parts, method, stride, n_blocks, n_head, n_drawn;
    long long first;
    double eta, ridge;

    __device__ __forceinline__ numbers(const long long* a, const double* b)
        : flags(a[0]), width(a[1]), n_classes(a[2]), begin(a[3]), n(a[4]), parts(a[5]), method(a[6]),
          stride(a[7]), n_blocks(a[8]), n_head(a[9]), n_drawn(a[10]), first(a[11]), eta(b[0]),
          ridge(b[1]) {}

    template <typename T>
    __device__ __forceinline__ T* if_has(long long flag, T* array) const {
        return flags & flag ? array : nullptr;
    }
    __device__ __forceinline__ long long most() const {
        return n_head + n_drawn < n_blocks ? n_head + n_drawn : n_blocks;
    }
    // index in the order of a part's row in a round, or -1 after its last
    __device__ __forceinline__ long long at(long long part, long long round) const {
        long long i = n * part / parts + round;
        return i < n * (part + 1) / parts ? begin + i : -1;
    }
};

// Blocks of a step into b, with one over the expected number of each into w, by one thread; as in
// _cython/extreme/class_blocks.h, draw for draw.
static __device__ long long draw(const numbers& N, unsigned long long* state, const double* p,
                                 const double* keep,
                                 const long long* alias, long long* b, double* w) {
    long long n = 0, rest = N.n_blocks - N.n_head, head = N.n_drawn >= rest ? N.n_blocks : N.n_head;
    for (; n < head; n++) {
        b[n] = n;
        w[n] = 1.0;
    }
    if (head == N.n_blocks) return n;
    for (long long i = 0; i < N.n_drawn; i++) {
        // also drawn with a noise distribution, which replaces it: the generator's states then agree with the CPU's
        long long j = N.n_head + sk_below(state, rest), l = head;
        double weight = (double)rest / (double)N.n_drawn;
        if (p) {
            j = sk_below(state, N.n_blocks);
            if (!(sk_unit(state) < keep[j])) j = alias[j];
            weight = 1.0 / ((double)N.n_drawn * p[j]);
        }
        if (!p || N.method != SK_NCE) {
            while (l < n && b[l] != j) l++;
            if (l < n) {
                if (p) w[l] += weight;
                else i--;  // uniform ones are distinct
                continue;
            }
        }
        b[n] = j;
        w[n++] = weight;
    }
    return n;
}

struct problem {
    numbers N;
    rule R;
    const real* data;
    const index_t *col, *start;
    const long long *order, *row_of, *y;
    const double* weight;
    double* u;
    real *W, *bias;
    double* scale;
    const long long *blocks, *keys, *count;
    const double* weights;
    double* doubles;
    long long* codes;
    double* values;
    unsigned long long* bad;

    __device__ __forceinline__ const real* row(long long e, const index_t** c, long long* len) const {
        const long long i = row_of ? row_of[e] : e;
        *c = start ? col + start[i] : nullptr;
        *len = start ? (long long)(start[i + 1] - start[i]) : N.width;
        return data + (start ? (long long)start[i] : i * N.width);
    }
    __device__ __forceinline__ double scale_of(long long k) const { return scale ? scale[k] : 1.0; }
    // length of each of f, g, r, rho, q in a row's workspace
    __device__ __forceinline__ long long height() const { return N.most() * SIZE + 1; }
};

// The change of one row. Its workspace holds f, g, r, rho, q (height) and the step length; codes holds its columns.
static __device__ void row_changes(const problem& P, long long round, long long part, long long rounds,
                                   double* shared) {
    const numbers& N = P.N;
    const long long at = N.at(part, round), local = (round - N.first) * N.parts + part, height = P.height();
    if (at < 0) return;
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
    const int half = lane / SIZE, t = lane % SIZE;
    const long long e = P.order[at], y = P.y[e], count = P.count[local], n = count * SIZE, most = N.most();
    const index_t* c;
    long long len;
    const real* x = P.row(e, &c, &len);
    double *f = P.doubles + part * (5 * height + 1), *g = f + height, *r = g + height, *rho = r + height;
    long long* k = P.codes + part * height;
    double s = 0.0, own = 0.0;
    // every warp computes the label's score: cheaper than waiting for one
    for (long long i = lane; i < len; i += SK_WARP) {
        s += (double)x[i] * (double)x[i];
        own += (double)x[i] * (double)P.W[(c ? (long long)c[i] : i) * N.stride + y];
    }
    s = sk::warp_sum(s) + (P.bias ? 1.0 : 0.0);
    own = (sk::warp_sum(own) + (P.bias ? (double)P.bias[y] : 0.0)) * P.scale_of(y);
    if (threadIdx.x == 0) {
        f[0] = own;
        k[0] = y;
        r[0] = 0.0;
    }
    for (long long j = warp; j < count; j += warps) {
        const long long column = P.blocks[local * most + j] * SIZE + t, to = 1 + j * SIZE + t;
        double sum = 0.0;
        for (long long i = half; i < len; i += 2)
            sum += (double)x[i] * (double)P.W[(c ? (long long)c[i] : i) * N.stride + column];
        sum += __shfl_xor_sync(SK_WHOLE_WARP, sum, SIZE);
        if (half) continue;
        // A column that is no negative gets the label's score and weight 0. With NCE padding has infinite noise
        // instead, and the label may be one of its own negatives.
        const bool nce = N.method == SK_NCE;
        const bool none = column >= N.n_classes || (column == y && !nce);
        f[to] = none ? own : (sum + (P.bias ? (double)P.bias[column] : 0.0)) * P.scale_of(column);
        r[to] = none ? 0.0 : P.weights[local * most + j];
        k[to] = column >= N.n_classes && !nce ? y : column;
    }
    __syncthreads();
    const double eta = N.eta * (P.weight ? P.weight[e] : 1.0);
    double u = P.u ? P.u[e] : 0.0;
    // a row of zeros changes no weight, but u still has its equation
    const double loss = sk_softmax::solve({shared}, P.R, n, k, f, r, g, rho, rho + height,
                                          s > 0.0 ? s : 1e-300, eta, &u);
    if (threadIdx.x == 0) {
        f[5 * height] = eta;
        if (P.u) P.u[e] = u;
        if ((N.flags & VALUE) && round % SK_VALUE_EVERY == 0) {
            P.values[local] = loss;
            P.values[rounds * N.parts + local] = 1.0;
        }
        if (!(fabs(g[0]) < sk_softmax::BEYOND) || !(fabs(u) < sk_softmax::BEYOND))
            atomicMin(P.bad, (unsigned long long)(round * N.n + at - N.begin));
    }
}

// All changes of the block of classes at index ``at`` of the sorted keys, if that is its first key.
static __device__ void block_moves(const problem& P, long long round, long long at) {
    const numbers& N = P.N;
    const long long most = N.most(), size = N.parts * (most + 1), local = round - N.first;
    const long long base = local * (N.n_blocks + 1), height = P.height();
    const long long* keys = P.keys + local * size;
    const long long block = keys[at] / size - base;
    if (block >= N.n_blocks || (at > 0 && keys[at - 1] / size - base == block)) return;
    const long long t = threadIdx.x % SIZE, from = threadIdx.x / SIZE, by = blockDim.x / SIZE;
    const long long column = block * SIZE + t;
    // every thread has bias and scale of its column; those with from == 0 write them
    real bias = P.bias ? P.bias[column] : real(0);
    double scale = P.scale_of(column);
    while (at < size && keys[at] / size - base == block) {
        const long long part = keys[at] % size / (most + 1), e = P.order[N.at(part, round)], y = P.y[e];
        const double *f = P.doubles + part * (5 * height + 1), *g = f + height, eta = f[5 * height];
        const index_t* c;
        long long len, slot, end = at;
        const real* x = P.row(e, &c, &len);
        double shrink = 1.0;
        // apply a row's changes, the label's last, before any of its shrinkages
        for (; end < size && keys[end] / size == keys[at] / size; end++) {
            if (keys[end] % size / (most + 1) != part) break;
            slot = keys[end] % size % (most + 1);
            const bool label = slot == most;
            const real a = (real)((label ? (column == y ? g[0] : 0.0) : g[1 + slot * SIZE + t]) / scale);
            if (P.bias && (!label || column == y)) bias += a;
            if (!label || column == y)
                for (long long i = from; i < len; i += by)
                    P.W[(c ? (long long)c[i] : i) * N.stride + column] += x[i] * a;
            if (column < N.n_classes && label == (column == y))
                shrink *= sk_softmax::shrink(P.R, column, eta);
            __syncthreads();
        }
        at = end;
        if (!P.scale) continue;
        scale *= shrink;
        const bool low = !(scale > SK_RESCALE);
        if (low) {
            for (long long i = from; i < N.width; i += by) P.W[i * N.stride + column] *= (real)scale;
            bias *= (real)scale;
            scale = 1.0;
        }
        __syncthreads();
    }
    if (from != 0) return;
    if (P.bias) P.bias[column] = bias;
    if (P.scale) P.scale[column] = scale;
}

}  // namespace sk_class_blocks

// Draw the blocks of the rounds from ``first`` on, a thread a part, and write their keys. Sorted keys are in the order
// of round, block, part and slot; the label's slot is the last.
extern "C" __global__ void sk_blocks_draw(const long long* order, const long long* y, const double* p,
                                          const double* keep, const long long* alias,
                                          unsigned long long* states, long long* blocks, double* weights,
                                          long long* count, long long* keys,
                                          const long long* whole, const double* parts, long long rounds) {
    const sk_class_blocks::numbers N(whole, parts);
    const long long most = N.most(), size = N.parts * (most + 1);
    const double* noise = N.if_has(sk_class_blocks::NOISE, p);
    for (long long part = sk::thread_of_grid(); part < N.parts; part += sk::threads_of_grid()) {
        unsigned long long state = states[part];
        for (long long round = N.first; round < N.first + rounds; round++) {
            const long long at = N.at(part, round), local = (round - N.first) * N.parts + part;
            const long long n = at < 0 ? 0 : sk_class_blocks::draw(N, &state, noise, keep, alias,
                                                                   blocks + local * most,
                                                                   weights + local * most);
            count[local] = n;
            for (long long j = 0; j <= most; j++) {
                long long block = N.n_blocks;
                if (j < n) block = blocks[local * most + j];
                else if (j == most && at >= 0) block = y[order[at]] / sk_class_blocks::SIZE;
                keys[local * (most + 1) + j] =
                    ((round - N.first) * (N.n_blocks + 1) + block) * size + part * (most + 1) + j;
            }
        }
        states[part] = state;
    }
}

// Phase 0: the rows' changes in a round, a block of threads a row. Phase 1: the classes' changes, a block of threads a key.
extern "C" __global__ void sk_blocks_steps(
    const real* data, const index_t* col, const index_t* start, const long long* order,
    const long long* row_of,
    const long long* y, const double* weight, double* u, real* W, real* bias, double* scale,
    const double* beta,
    const double* log_noise, const long long* blocks, const double* weights, const long long* count,
    const long long* keys, double* doubles, long long* codes, double* values, unsigned long long* bad,
    const long long* whole, const double* parts, long long phase, long long round,
    long long rounds_drawn) {
    using namespace sk_class_blocks;
    __shared__ double shared[33];
    const numbers N(whole, parts);
    const problem P = {N,
                       {N.method, N.most() * SIZE, N.n_classes, N.eta, N.ridge,
                        N.if_has(LOG_NOISE, log_noise), N.if_has(BETA, beta)},
                       data, col, N.if_has(SPARSE, start), order, N.if_has(ROW_OF, row_of), y,
                       N.if_has(WEIGHT, weight), N.if_has(U, u), W, N.if_has(BIAS, bias),
                       N.if_has(SCALE, scale),
                       blocks, keys, count, weights, doubles, codes, values, bad};
    // nothing moves any more once a step was not finite
    if (phase == 0) row_changes(P, round, blockIdx.x, rounds_drawn, shared);
    else if (*bad == ~0ull) block_moves(P, round, blockIdx.x);
}
