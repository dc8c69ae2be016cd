// Rows, weights and moves of softmax with very many classes: what the kernels of extreme.cu work on.
#include "extreme/softmax_rules.cuh"
#ifndef SK_EXTREME_CUH
#define SK_EXTREME_CUH

namespace sk_extreme {

// bits of ``flags``: which of the arrays that a kernel may change are there
constexpr long long U = 1, BIAS = 2, SCALE = 4;

// Where the addresses of arrays that `sk_extreme_steps` only reads stand among a call's numbers; 0: no array.
enum given { DATA = 13, COLUMNS, START, ORDER, ROW_OF, LABELS, WEIGHT, BETA, LOG_NOISE, NOISE, KEEP, ALIAS, DRAWN,
             INVERSE, COUNTS, KEYS };

// Numbers of a call, in the order of _extreme.py. In a round each of ``parts`` ranges of the
// order takes its next batch of ``batch_size`` rows. A unit is a row, which draws classes of its own and has ``stride``
// slots for them. The arrays of drawn classes begin with round ``first``.
struct numbers {
    long long flags, width, n_classes, shift, begin, n, parts, batch_size, method, n_negatives,
        stride, units, first;
    double eta, ridge;
    const long long* all;

    __device__ __forceinline__ numbers(const long long* a, const double* b)
        : flags(a[0]), width(a[1]), n_classes(a[2]), shift(a[3]), begin(a[4]), n(a[5]), parts(a[6]),
          batch_size(a[7]), method(a[8]), n_negatives(a[9]), stride(a[10]), units(a[11]), first(a[12]),
          eta(b[0]), ridge(b[1]), all(a) {}

    template <typename T>
    __device__ __forceinline__ const T* array(given at) const {
        return (const T*)all[at];
    }
    template <typename T>
    __device__ __forceinline__ T* if_has(long long flag, T* array) const {
        return flags & flag ? array : nullptr;
    }
    // index in the order, from ``begin`` on, at which a part starts
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
    // index of a unit's first slot among the drawn classes
    __device__ __forceinline__ long long places(long long round, long long unit) const {
        return ((round - first) * units + unit) * stride;
    }
};

struct row {
    const real* x;
    const index_t* col;  // NULL: dense
    long long len;
    __device__ __forceinline__ long long feature(long long i) const { return col ? (long long)col[i] : i; }
};

struct rows {
    const real* data;
    const index_t *col, *start;  // start NULL: dense
    long long width;
    const long long* of;
    const double* weight;
    double* u;

    __device__ __forceinline__ row at(long long e) const {
        long long i = of ? of[e] : e;
        if (!start) return {data + i * width, nullptr, width};
        return {data + start[i], col + start[i], (long long)(start[i + 1] - start[i])};
    }
};

// The model: W (n_classes, n_features) or hashed, bias, and lazy scales; see _cython/extreme/extreme.h.
struct table {
    long long n_features;
    int shift;  // 0: not hashed
    real *W, *bias;
    double* scale;

    // where a hashed weight is, and whether its sign is changed: collisions cancel on average
    __device__ __forceinline__ long long place(unsigned long long key, long long j, bool* minus) const {
        const unsigned long long h = sk_hash(key, (unsigned long long)j);
        *minus = !((h >> (shift - 1)) & 1);
        return (long long)(h >> shift);
    }
    // this thread's part of the sum over a row that ``by`` threads share
    __device__ __forceinline__ double dot(row R, long long k, long long from, long long by) const {
        double sum_ = 0.0;
        if (!shift) {
            const real* w = W + k * n_features;
            for (long long i = from; i < R.len; i += by) sum_ += (double)R.x[i] * (double)w[R.feature(i)];
            return sum_;
        }
        const unsigned long long key = sk_class_key(k);
        for (long long i = from; i < R.len; i += by) {
            bool minus;
            const double w = (double)W[place(key, R.feature(i), &minus)];
            sum_ += minus ? -w * (double)R.x[i] : w * (double)R.x[i];
        }
        return sum_;
    }
    // c times a row to the weights of class k, by a block
    __device__ __forceinline__ void add(row R, long long k, real c) const {
        if (!shift) {
            real* w = W + k * n_features;
            for (long long i = threadIdx.x; i < R.len; i += blockDim.x) w[R.feature(i)] += c * R.x[i];
            return;
        }
        const unsigned long long key = sk_class_key(k);
        for (long long i = threadIdx.x; i < R.len; i += blockDim.x) {
            bool minus;
            const long long j = place(key, R.feature(i), &minus);
            atomicAdd(W + j, minus ? -c * R.x[i] : c * R.x[i]);  // other classes and entries may meet here
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

// A block's copy of the class that it changes, the same in all threads.
struct klass {
    long long k;
    double scale;
    real bias;

    __device__ __forceinline__ klass(const table& T, long long k_)
        : k(k_), scale(T.scale ? T.scale[k_] : 1.0), bias(T.bias ? T.bias[k_] : real(0)) {}

    __device__ __forceinline__ void write(const table& T) const {
        if (T.bias) T.bias[k] = bias;
        if (T.scale) T.scale[k] = scale;
    }
};

// W_k becomes shrink (W_k + c x). All threads of the block.
static __device__ void move(const table& T, klass& C, row R, double c, double shrink) {
    const real step = (real)(c / C.scale);
    T.add(R, C.k, step);
    if (T.bias) C.bias += step;
    if (T.scale) {
        C.scale *= shrink;
        if (!(C.scale > SK_RESCALE)) {  // once in many steps of a class
            const real by = (real)C.scale;
            __syncthreads();  // an entry may have been another thread's
            for (long long i = threadIdx.x; i < T.n_features; i += blockDim.x)
                T.W[C.k * T.n_features + i] *= by;
            if (T.bias) C.bias *= by;
            C.scale = 1.0;
        }
    }
    __syncthreads();
}

}  // namespace sk_extreme
#endif
