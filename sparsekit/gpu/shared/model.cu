#include "shared/common.cuh"

namespace model {

static __device__ __forceinline__ double median(double a, double b, double c) {
    if (a > b) {
        const double t = a;
        a = b;
        b = t;
    }
    if (b > c) b = c > a ? c : a;
    return b;
}

static __device__ __forceinline__ double positive(double h) { return h > 0.0 ? h : 1.0; }

// The penalty below zero: l1 as well, or where ``one_sided`` is not 0 infinite, if the variable has a penalty.
static __device__ __forceinline__ double below(double l1, long long one_sided) {
    return one_sided && l1 > 0.0 ? (double)INFINITY : l1;
}

// whether a variable of this kind moves: free (1) or leaving zero (2)
static __device__ __forceinline__ bool moves(signed char kind) { return kind == 1 || kind == 2; }

// the largest of 0 and of column c of parts (blocks, k), the same in every thread
static __device__ __forceinline__ double max_parts(const double* parts, long long blocks, long long k,
                                                   long long c, double* buffer) {
    double most = 0.0;
    for (long long b = threadIdx.x; b < blocks; b += blockDim.x)
        most = parts[b * k + c] > most ? parts[b * k + c] : most;
    return sk::block_max(most, buffer);
}

}  // namespace model

// The point x = x0 + step with H step = hp: its gradient, the model's value there, and the faces of
// eqs. (2.4)-(2.7). part (blocks, 3): residual, variables that move, value of q.
extern "C" __global__ void sk_model_evaluate(const double* __restrict__ x, const double* __restrict__ step,
                                           const double* __restrict__ hp, const double* __restrict__ x0,
                                           const double* __restrict__ g0, const double* __restrict__ l1,
                                           long long one_sided, long long m, double* __restrict__ grad,
                                           double* __restrict__ pg,
                                           signed char* __restrict__ kind, double* part) {
    __shared__ double buffer[33];
    double worst = 0.0, n_free = 0.0, q = 0.0;
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid()) {
        const double g = g0[j] + hp[j], up = g + l1[j], down = g - model::below(l1[j], one_sided);
        q += step[j] * (g0[j] + 0.5 * hp[j]) + l1[j] * (fabs(x[j]) - fabs(x0[j]));
        double slope = 0.0, r = 0.0;
        signed char what = 0;
        if (x[j] != 0.0) {
            slope = x[j] > 0.0 ? up : down;
            what = 1;
            r = fabs(model::median(down, x[j], up));
        } else if (up < 0.0) {
            slope = up;
            what = 2;
            r = -up;
        } else if (down > 0.0) {
            slope = down;
            what = 2;
            r = down;
        }
        grad[j] = g;
        pg[j] = slope;
        kind[j] = what;
        n_free += what ? 1.0 : 0.0;
        if (r > worst) worst = r;
    }
    worst = sk::block_max(worst, buffer);
    n_free = sk::block_sum(n_free, buffer);
    q = sk::block_sum(q, buffer);
    if (threadIdx.x == 0) {
        double* out = part + 3 * (long long)blockIdx.x;
        out[0] = worst;
        out[1] = n_free;
        out[2] = q;
    }
}

// A round of the corrective cycle: eq. (2.11) for U. If ``fix`` is not 0, members of F that would leave the orthant are
// fixed at zero. part (blocks, 3): variables dropped or fixed, variables fixed, variables that still move.
extern "C" __global__ void sk_model_correct(const double* __restrict__ x, const double* __restrict__ pg,
                                            long long fix, long long m, double* __restrict__ d,
                                            signed char* __restrict__ kind, double* part) {
    __shared__ double buffer[33];
    double n_bad = 0.0, n_fixed = 0.0, n_left = 0.0;
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid()) {
        if (kind[j] == 2 && !(d[j] * pg[j] < 0.0)) {
            kind[j] = 0;
            d[j] = 0.0;
            n_bad += 1.0;
        } else if (fix && kind[j] == 1 && (x[j] + d[j]) * x[j] < 0.0) {
            kind[j] = 3;
            d[j] = -x[j];
            n_bad += 1.0;
            n_fixed += 1.0;
        }
        if (model::moves(kind[j])) n_left += 1.0;
    }
    n_bad = sk::block_sum(n_bad, buffer);
    n_fixed = sk::block_sum(n_fixed, buffer);
    n_left = sk::block_sum(n_left, buffer);
    if (threadIdx.x == 0) {
        double* out = part + 3 * (long long)blockIdx.x;
        out[0] = n_bad;
        out[1] = n_fixed;
        out[2] = n_left;
    }
}

// trial = x + alpha d in the orthant of eqs. (2.12)-(2.13), step = trial - x0
extern "C" __global__ void sk_model_trial(const double* __restrict__ x, const double* __restrict__ d,
                                          const double* __restrict__ x0, const signed char* __restrict__ kind,
                                          double alpha, long long m, double* __restrict__ trial,
                                          double* __restrict__ step) {
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid()) {
        double s = x[j] + alpha * d[j];
        if (kind[j] == 1 && s * x[j] < 0.0) s = 0.0;
        trial[j] = s;
        step[j] = s - x0[j];
    }
}

// The conjugate gradient method on the face of ``kind`` for H d = -pg, preconditioned by the diagonal.
// state: rz, bound, done, steps. A launch of many blocks sums parts of the launch before in every block.

// part (blocks, 3): r.z, max |r|, max |pg|
extern "C" __global__ void sk_model_cg_start(const double* __restrict__ pg, const double* __restrict__ hd,
                                       const signed char* __restrict__ kind,
                                       const double* __restrict__ diagonal, long long warm, long long m,
                                       double* __restrict__ r, double* __restrict__ p, double* part) {
    __shared__ double buffer[33];
    double rz = 0.0, worst = 0.0, bound = 0.0;
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid()) {
        double rj = 0.0, pj = 0.0;
        if (model::moves(kind[j])) {
            rj = -pg[j] - (warm ? hd[j] : 0.0);
            pj = rj / model::positive(diagonal[j]);
            rz += rj * pj;
            worst = fabs(rj) > worst ? fabs(rj) : worst;
            bound = fabs(pg[j]) > bound ? fabs(pg[j]) : bound;
        }
        r[j] = rj;
        p[j] = pj;
    }
    rz = sk::block_sum(rz, buffer);
    worst = sk::block_max(worst, buffer);
    bound = sk::block_max(bound, buffer);
    if (threadIdx.x == 0) {
        double* out = part + 3 * (long long)blockIdx.x;
        out[0] = rz;
        out[1] = worst;
        out[2] = bound;
    }
}

extern "C" __global__ void sk_model_cg_open(const double* part, long long blocks, double tol, double* state) {
    __shared__ double buffer[33];
    const double rz = sk::sum_parts(part, blocks, buffer, 3, 0);
    const double worst = model::max_parts(part, blocks, 3, 1, buffer);
    const double bound = tol * model::max_parts(part, blocks, 3, 2, buffer);
    if (threadIdx.x == 0) {
        state[0] = rz;
        state[1] = bound;
        state[2] = worst <= bound ? 1.0 : 0.0;
        state[3] = 0.0;
    }
}

// d and r move along p; part (blocks, 2): r.z, max |r|
extern "C" __global__ void sk_model_cg_move(const double* __restrict__ p, const double* __restrict__ hp,
                                      const signed char* __restrict__ kind, const double* __restrict__ diagonal,
                                      const double* state, const double* curve, long long warm,
                                      long long m, double* __restrict__ d, double* __restrict__ r, double* part) {
    __shared__ double buffer[33];
    const double php = *curve;
    const bool done = state[2] != 0.0, bad = !(php > 0.0);
    const double alpha = bad ? 0.0 : state[0] / php;
    double rz = 0.0, worst = 0.0;
    if (!done) {
        for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid()) {
            if (!model::moves(kind[j])) continue;
            if (bad) {
                // singular, or not positive definite by rounding: keep d, or take one scaled gradient step if there is none
                if (state[3] == 0.0 && !warm) d[j] = p[j];
                continue;
            }
            const double rj = r[j] - alpha * hp[j];
            d[j] += alpha * p[j];
            r[j] = rj;
            worst = fabs(rj) > worst ? fabs(rj) : worst;
            rz += rj * rj / model::positive(diagonal[j]);
        }
    }
    rz = sk::block_sum(rz, buffer);
    worst = sk::block_max(worst, buffer);
    if (threadIdx.x == 0) {
        part[2 * (long long)blockIdx.x] = rz;
        part[2 * (long long)blockIdx.x + 1] = worst;
    }
}

// the next p; block 0 writes the next state
extern "C" __global__ void sk_model_cg_turn(const double* __restrict__ r, const signed char* __restrict__ kind,
                                      const double* __restrict__ diagonal, const double* state,
                                      const double* curve, const double* moved, long long blocks, long long m,
                                      double* __restrict__ p, double* next) {
    __shared__ double buffer[33];
    const double php = *curve;
    const double rz = sk::sum_parts(moved, blocks, buffer, 2, 0);
    const double worst = model::max_parts(moved, blocks, 2, 1, buffer);
    const bool before = state[2] != 0.0, done = before || !(php > 0.0) || worst <= state[1];
    const double beta = rz / state[0];
    if (!done)
        for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid())
            if (model::moves(kind[j])) p[j] = r[j] / model::positive(diagonal[j]) + beta * p[j];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        next[0] = before ? state[0] : rz;
        next[1] = state[1];
        next[2] = done ? 1.0 : 0.0;
        next[3] = before ? state[3] : state[3] + 1.0;
    }
}
