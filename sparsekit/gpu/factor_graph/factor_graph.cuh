// An LP-SparseMAP problem in device memory, and how the threads of a block share the work. The GPU version of
// _cython/factor_graph/factor_graph.h, with the same slots, coordinates and names. A block works at one graph. Every
// thread runs the same control flow on the same numbers, and the threads share the entries of arrays.
#ifndef SK_FACTOR_GRAPH_CUH
#define SK_FACTOR_GRAPH_CUH

#include "shared/common.cuh"
#include "numbers.h"
#include "pair.h"

namespace factors {

// of variables in slots; pairs first (all first variables, then all second ones), then linear factors, then OrOut
struct Plan {
    int n_var, n_slot, n_add, n_pair, n_linear, n_orout;
    int is_separate;           // no variable is in two factors
    int lanes;                 // threads that share a linear factor or an OrOut: 1 or 32
    const int* var;            // (n_slot)
    const int* var_start;      // (n_var + 1): slots of a variable are var_slot[start .. next)
    const int* var_slot;       // (n_slot)
    const int* pair_add;       // (n_pair)
    const int* linear;         // (n_linear + 1): slots
    const int* relation;       // (n_linear)
    const int* orout;          // (n_orout + 1): slots
    const int* negated;        // (n_slot), for pairs and OrOut
    const double *deg, *w;     // (n_slot): degree of the slot's variable, and its inverse
    const double *a, *ad;      // (n_slot): coefficients of linear factors and of OrOut, times deg
    const double* q;           // (n_pair): 1 / sum of the degrees
    const double* bound;       // (n_linear)
};

// arrays of a plan whose counts are known, one after the other
static __device__ __forceinline__ void assign_buffers(Plan& g, const int* ints, const double* reals) {
    const int ns = g.n_slot, np = g.n_pair;
    g.var = ints, ints += ns;
    g.var_start = ints, ints += g.n_var + 1;
    g.var_slot = ints, ints += ns;
    g.pair_add = ints, ints += np;
    g.linear = ints, ints += g.n_linear + 1;
    g.relation = ints, ints += g.n_linear;
    g.orout = ints, ints += g.n_orout + 1;
    g.negated = ints;
    g.deg = reals, reals += ns;
    g.w = reals, reals += ns;
    g.a = reals, reals += ns;
    g.ad = reals, reals += ns;
    g.q = reals, reals += np;
    g.bound = reals;
}

static __device__ __forceinline__ void read_counts(Plan& g, const long long* counts) {
    g.n_var = (int)counts[0];
    g.n_slot = (int)counts[1];
    g.n_add = (int)counts[2];
    g.n_pair = (int)counts[3];
    g.n_linear = (int)counts[4];
    g.n_orout = (int)counts[5];
    g.is_separate = (int)counts[6];
    g.lanes = (int)counts[7];
}

struct State {
    double *eta, *mu, *add;           // (n_var), add (n_add)
    double *x, *l;                    // (n_slot): answers, multipliers
    double *f, *e;                    // (n_slot): local Jacobians f + e coef (w e)'
    double *c, *n1, *n2;              // (n_pair): scores, d x / d c
    double *coef, *tau;               // a factor; tau not of pairs: thresholds, for the next solve
    double *old, *h, *eta0, *h0, *add0;
    double *z, *v, *s;                // (n_slot)
    double *cg;                       // (5 n_var)
    double *y;                        // (slots of OrOut)
    const unsigned char *off, *off_add; // what -inf forbids
};

// arrays of a state, one after the other; what outlasts a solve comes first (_factor_graph.py: the first eight)
static __device__ __forceinline__ long long assign_buffers(State& t, const Plan& g, double* at) {
    const long long nv = g.n_var, ns = g.n_slot, np = g.n_pair, no = g.n_linear + g.n_orout;
    double* begin = at;
    t.eta = at, at += nv;
    t.mu = at, at += nv;
    t.add = at, at += g.n_add;
    t.x = at, at += ns;
    t.l = at, at += ns;
    t.f = at, at += ns;
    t.e = at, at += ns;
    t.c = at, at += np;
    t.n1 = at, at += np;
    t.n2 = at, at += np;
    t.coef = at, at += np + no;
    t.tau = at, at += no;
    t.old = at, at += nv;
    t.h = at, at += nv;
    t.eta0 = at, at += nv;
    t.h0 = at, at += nv;
    t.add0 = at, at += g.n_add;
    t.z = at, at += ns;
    t.v = at, at += ns;
    t.s = at, at += ns;
    t.cg = at, at += 5 * nv;
    t.y = at, at += ns - 2 * np; // of all other factors, so that it needs no lookup
    return at - begin;
}

struct Options {
    long long max_iter;
    double step_size, relaxation, tol_primal, tol_dual;
    int adaptive, exact, quadratic;
};

// what a solve says of itself; every thread has it
struct Report {
    double gamma, primal, dual, residual;
    long long n_iter, n_newton;
    int status, warm;
};

// The threads of a block: sums of one number a thread, the same bits in all of them. Each call is a barrier as well.
// Two buffers alternate, so one barrier a call is enough: no thread writes to a buffer before all have read it.
struct Team {
    double* buffer;    // 128 doubles of shared memory
    int turn;

    __device__ __forceinline__ double* next() {
        turn ^= 64;
        return buffer + turn;
    }
    __device__ __forceinline__ void sum(double& a, double& b) {
        double* at = next();
        const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
        a = sk::warp_sum(a);
        b = sk::warp_sum(b);
        if (lane == 0) at[warp] = a, at[32 + warp] = b;
        __syncthreads();
        a = b = 0.0;
#pragma unroll 1
        for (int i = 0; i < warps; i++) a += at[i], b += at[32 + i];
    }
    __device__ __forceinline__ double sum(double a) {
        double* at = next();
        const int warps = blockDim.x / SK_WARP;
        a = sk::warp_sum(a);
        if (threadIdx.x % SK_WARP == 0) at[threadIdx.x / SK_WARP] = a;
        __syncthreads();
        a = 0.0;
#pragma unroll 1
        for (int i = 0; i < warps; i++) a += at[i];
        return a;
    }
    __device__ __forceinline__ double most(double a) {
        double* at = next();
        const int warps = blockDim.x / SK_WARP;
        a = sk::warp_max(a);
        if (threadIdx.x % SK_WARP == 0) at[threadIdx.x / SK_WARP] = a;
        __syncthreads();
        a = at[0];
#pragma unroll 1
        for (int i = 1; i < warps; i++) a = at[i] > a ? at[i] : a;
        return a;
    }
};

#define SK_SHARE(i, n) _Pragma("unroll 1") for (int i = threadIdx.x; i < (n); i += blockDim.x)


static __device__ __forceinline__ bool is_alone(const Plan& g, int j) { return g.var_start[j] == g.var_start[j + 1]; }

// each(j, mean of variable j's copies in x), by one thread, for every variable in a factor. Where variables are fewer
// than threads, several threads of a warp sum one's copies.
template <class Each>
static __device__ __forceinline__ void mean(const Plan& g, const double* x, Each each) {
    int width = 1;
    while (width < SK_WARP && 2 * width * g.n_var <= (int)blockDim.x && 2 * width * g.n_var <= g.n_slot) width *= 2;
    const int at_once = blockDim.x / width, part = threadIdx.x % width;
    for (int first = 0; first < g.n_var; first += at_once) {
        const int j = first + threadIdx.x / width;
        int lo = 0, hi = 0;
        double t = 0.0;
        if (j < g.n_var) lo = g.var_start[j], hi = g.var_start[j + 1];
        _Pragma("unroll 1") for (int k = lo + part; k < hi; k += width) t += x[g.var_slot[k]];
        for (int step = width / 2; step > 0; step /= 2) t += __shfl_xor_sync(SK_WHOLE_WARP, t, step);
        if (part == 0 && lo < hi) each(j, t / (double)(hi - lo));
    }
}

// this thread's part of the sum of w (mu - x)^2 over the slots
static __device__ __forceinline__ double residual_part(const Plan& g, const double* mu, const double* x) {
    double t = 0.0;
    SK_SHARE(s, g.n_slot) {
        const double r = mu[g.var[s]] - x[s];
        t += g.w[s] * r * r;
    }
    return t;
}

// this thread's part of the inner product in which local Jacobians are symmetric
static __device__ __forceinline__ double dot_part(const Plan& g, const double* a, const double* b) {
    double t = 0.0;
    SK_SHARE(s, g.n_slot) t += g.w[s] * a[s] * b[s];
    return t;
}

}  // namespace factors
#endif
