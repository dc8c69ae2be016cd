// Rows, weights and moves of softmax with very many classes: what the kernels of extreme.cu work on.
#include "extreme/softmax_rules.cuh"
#ifndef SK_EXTREME_CUH
#define SK_EXTREME_CUH

// whether the rows of a batch step together, as an implicit step of several rows does
#ifndef SK_EXTREME_JOINT
#define SK_EXTREME_JOINT 0
#endif

namespace sk_extreme {

constexpr bool JOINT = SK_EXTREME_JOINT;

// which of the arrays are there
constexpr long long SPARSE = 1, ROW_OF = 2, WEIGHT = 4, U = 8, BIAS = 16, SCALE = 32, SQUARE = 64, BETA = 128,
                    SUM = 256, TAU = 512, LOG_NOISE = 1024, CLASSES = 2048, NOISE = 4096, VALUE = 8192;

// Numbers of a call, in the order of _extreme/estimators/classifier.py. In a round each of ``parts`` ranges of the order takes its
// next batch of ``batch_size`` rows. A unit draws classes of its own: a row, or where it is JOINT a batch; it
// has ``stride`` places for them. The arrays of drawn classes begin with round ``first``.
struct numbers {
    long long flags, width, n_classes, shift, begin, n, parts, batch_size, method, raman, n_negatives,
        stride, units, average_from, steps_before, first;
    double eta, ridge, delta, u_bound, w_bound;

    __device__ __forceinline__ numbers(const long long* a, const double* b)
        : flags(a[0]), width(a[1]), n_classes(a[2]), shift(a[3]), begin(a[4]), n(a[5]), parts(a[6]),
          batch_size(a[7]), method(a[8]), raman(a[9]), n_negatives(a[10]), stride(a[11]), units(a[12]),
          average_from(a[13]), steps_before(a[14]), first(a[15]), eta(b[0]), ridge(b[1]),
          delta(b[2]), u_bound(b[3]), w_bound(b[4]) {}

    __device__ __forceinline__ bool has(long long flag) const { return flags & flag; }
    template <typename T>
    __device__ __forceinline__ T* if_has(long long flag, T* array) const {
        return flags & flag ? array : nullptr;
    }
    // place in the order, from ``begin`` on, at which a part starts
    __device__ __forceinline__ long long bound(long long part) const {
        long long batches = (n + batch_size - 1) / batch_size, at = batch_size * (batches * part / parts);
        return at < n ? at : n;
    }
    // the batch of a part in a round: where it starts and its number of rows, none after the part's end
    __device__ __forceinline__ long long batch(long long part, long long round, long long* at) const {
        long long from = bound(part) + round * batch_size, size = bound(part + 1) - from;
        *at = begin + from;
        return size < 0 ? 0 : size < batch_size ? size : batch_size;
    }
    __device__ __forceinline__ long long units_of_part() const { return JOINT ? 1 : batch_size; }
    // number of the first of a unit's places among the drawn classes
    __device__ __forceinline__ long long places(long long round, long long unit) const {
        return ((round - first) * units + unit) * stride;
    }
};

struct row {
    const real* x;
    const index_t* col;  // NULL: dense
    long long len;
};

struct rows {
    const real* data;
    const index_t *col, *start;  // start NULL: dense
    long long width;
    const long long *of, *y;
    const double* weight;
    double* u;

    __device__ __forceinline__ row at(long long e) const {
        long long i = of ? of[e] : e;
        if (!start) return {data + i * width, nullptr, width};
        return {data + start[i], col + start[i], (long long)(start[i + 1] - start[i])};
    }
};

// The model: W (n_classes, n_features) or hashed, and what is lazy about it; see _cython/extreme/extreme.h.
struct table {
    long long n_features;
    int shift;  // 0: not hashed
    real *W, *bias;
    double *scale, *square;
    real *sum, *sum_bias;
    double* tau;
    long long* last;

    // where a hashed weight is, and whether its sign is changed: collisions cancel on average
    __device__ __forceinline__ long long place(unsigned long long key, long long j, bool* minus) const {
        const unsigned long long h = sk_hash(key, (unsigned long long)j);
        *minus = !((h >> (shift - 1)) & 1);
        return (long long)(h >> shift);
    }
    // this thread's share, of ``by`` threads, of the sum over a row
    __device__ __forceinline__ double dot(row R, long long k, long long from, long long by) const {
        double sum_ = 0.0;
        if (!shift) {
            const real* w = W + k * n_features;
            if (!R.col)
                for (long long i = from; i < R.len; i += by) sum_ += (double)R.x[i] * (double)w[i];
            else
                for (long long i = from; i < R.len; i += by) sum_ += (double)R.x[i] * (double)w[R.col[i]];
            return sum_;
        }
        const unsigned long long key = sk_class_key(k);
        for (long long i = from; i < R.len; i += by) {
            bool minus;
            const double w = (double)W[place(key, R.col ? (long long)R.col[i] : i, &minus)];
            sum_ += minus ? -w * (double)R.x[i] : w * (double)R.x[i];
        }
        return sum_;
    }
    // c times a row to the weights of class k in ``to``, by a block
    __device__ __forceinline__ void add(real* to, row R, long long k, real c) const {
        if (!shift) {
            real* w = to + k * n_features;
            if (!R.col)
                for (long long i = threadIdx.x; i < R.len; i += blockDim.x) w[i] += c * R.x[i];
            else
                for (long long i = threadIdx.x; i < R.len; i += blockDim.x) w[R.col[i]] += c * R.x[i];
            return;
        }
        const unsigned long long key = sk_class_key(k);
        for (long long i = threadIdx.x; i < R.len; i += blockDim.x) {
            bool minus;
            const long long j = place(key, R.col ? (long long)R.col[i] : i, &minus);
            atomicAdd(to + j, minus ? -c * R.x[i] : c * R.x[i]);  // other classes and entries may meet here
        }
    }
};

// score of a class, over a warp
static __device__ __forceinline__ double score(const table& T, row R, long long k) {
    double f = sk::warp_sum(T.dot(R, k, threadIdx.x % SK_WARP, SK_WARP));
    if (T.bias) f += (double)T.bias[k];
    return T.scale ? f * T.scale[k] : f;
}

static __device__ __forceinline__ double squared_norm(row R) {
    double s = 0.0;
    for (long long i = threadIdx.x % SK_WARP; i < R.len; i += SK_WARP) s += (double)R.x[i] * (double)R.x[i];
    return sk::warp_sum(s);
}

// x_a . x_b over a warp, of sorted rows or dense ones
static __device__ __forceinline__ double rows_dot(row A, row B) {
    double s = 0.0;
    for (long long i = threadIdx.x % SK_WARP; i < A.len; i += SK_WARP) {
        long long j = i;
        if (A.col) {
            long long low = 0, high = B.len;
            while (low < high) {
                long long middle = (low + high) / 2;
                if (B.col[middle] < A.col[i]) low = middle + 1;
                else high = middle;
            }
            if (low == B.len || B.col[low] != A.col[i]) continue;
            j = low;
        }
        s += (double)A.x[i] * (double)B.x[j];
    }
    return sk::warp_sum(s);
}

// What a block keeps of the class whose changes it makes, all threads the same.
struct klass {
    long long k, last;
    double scale, tau, square;
    real bias, sum_bias;

    __device__ __forceinline__ klass(const table& T, long long k_)
        : k(k_), last(T.tau ? T.last[k_] : 0), scale(T.scale ? T.scale[k_] : 1.0),
          tau(T.tau ? T.tau[k_] : 0.0),
          square(T.square ? T.square[k_] : 0.0), bias(T.bias ? T.bias[k_] : real(0)),
          sum_bias(T.sum && T.bias ? T.sum_bias[k_] : real(0)) {}

    __device__ __forceinline__ void write(const table& T) const {
        if (T.bias) T.bias[k] = bias;
        if (T.sum && T.bias) T.sum_bias[k] = sum_bias;
        if (T.scale) T.scale[k] = scale;
        if (T.square) T.square[k] = square;
        if (T.tau) {
            T.tau[k] = tau;
            T.last[k] = last;
        }
    }
};

// W_k becomes shrink (W_k + c x), s = ||x||^2; step number t counts from 1. All threads of the block.
static __device__ void move(const table& T, const numbers& N, klass& C, row R, double s, double c,
                            double shrink,
                            long long t, double* room) {
    double f = 0.0, tau = 0.0;
    real step = (real)(c / C.scale);
    if (T.square)
        f = (sk::block_sum(T.dot(R, C.k, threadIdx.x, blockDim.x), room) + (double)C.bias) * C.scale;
    if (T.sum) {
        long long from = N.average_from, done = t - 1 > from ? t - 1 : from;
        if (T.tau) {
            long long last = C.last > from ? C.last : from;
            if (done > last) C.tau += C.scale * (double)(done - last);
            C.last = done;
            tau = C.tau;
        } else {
            tau = (double)(done - from);
        }
    }
    T.add(T.W, R, C.k, step);
    if (T.sum) T.add(T.sum, R, C.k, (real)(tau * step));
    if (T.bias) {
        C.bias += step;
        if (T.sum) C.sum_bias += (real)(tau * step);
    }
    if (T.scale) {
        if (T.square) {  // the norm follows without a look at W_k
            double square = shrink * shrink * (C.square + 2.0 * c * f + c * c * s);
            if (square > N.w_bound * N.w_bound) {
                shrink *= N.w_bound / sqrt(square);
                square = N.w_bound * N.w_bound;
            }
            C.square = square > 0.0 ? square : 0.0;
        }
        C.scale *= shrink;
        if (!(C.scale > (T.sum ? (sizeof(real) == 8 ? 1e-3 : 0.1) : SK_RESCALE))) {
            // once in many steps of a class; an average cancels digits as the scale falls
            real by = (real)C.scale, seen = (real)C.tau;
            __syncthreads();  // an entry may have been another thread's
            for (long long i = threadIdx.x; i < T.n_features; i += blockDim.x) {
                long long j = C.k * T.n_features + i;
                if (T.sum) T.sum[j] -= seen * T.W[j];
                T.W[j] *= by;
            }
            if (T.bias) {
                if (T.sum) C.sum_bias -= seen * C.bias;
                C.bias *= by;
            }
            C.tau = 0.0;
            C.scale = 1.0;
        }
    }
    __syncthreads();
}

}  // namespace sk_extreme
#endif
