#include "shared/common.cuh"
#include "factor_graph/factor_backward.cuh"

// Kernels of gpu/factor_graph/_factor_graph.py: a block a graph. While a block works, its state is in shared memory if
// it fits (n_shared doubles, else 0). Between launches it is in global memory.

namespace factors {

// what a kernel's block works at, in shared memory
struct Work {
    Plan plan;
    State state;
    double team[128];
};

static __device__ __forceinline__ void open(Work& work, const long long* counts, const int* ints, const double* reals,
                                            double* states, long long stride, const unsigned char* off, double* buffer,
                                            long long n_shared) {
    double* own = states + blockIdx.x * stride;
    if (threadIdx.x == 0) {
        read_counts(work.plan, counts);
        assign_buffers(work.plan, ints, reals);
        assign_buffers(work.state, work.plan, n_shared ? buffer : own);
        work.state.off = off + (long long)blockIdx.x * (work.plan.n_var + work.plan.n_add);
        work.state.off_add = work.state.off + work.plan.n_var;
    }
    for (long long i = threadIdx.x; i < n_shared; i += blockDim.x) buffer[i] = own[i];
    __syncthreads();
}

static __device__ __forceinline__ void close(double* states, long long stride, const double* buffer, long long n_shared) {
    double* own = states + blockIdx.x * stride;
    __syncthreads();
    for (long long i = threadIdx.x; i < n_shared; i += blockDim.x) own[i] = buffer[i];
}

}  // namespace factors

// counts (8), ints, reals: the plan. states (n, stride), off (n, n_var + n_add). whole (n, 3): status, n_iter,
// n_newton. levels (n, 4): primal, dual, step size, residual. flags (5): warm, max_iter, adaptive, exact, quadratic.
// limits (4): step_size, relaxation, tol_primal, tol_dual.
extern "C" __global__ void __launch_bounds__(256, 1)
    sk_factor_graph_solve(const long long* __restrict__ counts, const int* __restrict__ ints,
                          const double* __restrict__ reals, double* states, long long stride,
                          const unsigned char* __restrict__ off, long long* whole, double* levels, long long n_shared,
                          const long long* __restrict__ flags, const double* __restrict__ limits) {
    __shared__ factors::Work work;
    SK_DYNAMIC_SHARED(double, buffer);
    const long long i = blockIdx.x;
    const factors::Options options = {flags[1], limits[0], limits[1], limits[2], limits[3],
                                      (int)flags[2], (int)flags[3], (int)flags[4]};
    factors::Team team = {work.team, 0};
    factors::Report report = {levels[4 * i + 2], levels[4 * i], levels[4 * i + 1], levels[4 * i + 3],
                              whole[3 * i + 1], whole[3 * i + 2], (int)whole[3 * i], (int)flags[0]};
    factors::open(work, counts, ints, reals, states, stride, off, buffer, n_shared);
    factors::fg_solve_any(team, &work.plan, &work.state, &options, &report);
    factors::close(states, stride, buffer, n_shared);
    if (threadIdx.x == 0) {
        whole[3 * i] = report.status;
        whole[3 * i + 1] = report.n_iter;
        whole[3 * i + 2] = report.n_newton;
        levels[4 * i] = report.primal;
        levels[4 * i + 1] = report.dual;
        levels[4 * i + 2] = report.gamma;
        levels[4 * i + 3] = report.residual;
    }
}

// to_eta (n, n_var) holds directions d and becomes the gradients of <d, mu>; so does to_add (n, n_add).
extern "C" __global__ void __launch_bounds__(256, 1)
    sk_factor_graph_vjp(const long long* __restrict__ counts, const int* __restrict__ ints,
                        const double* __restrict__ reals, double* states, long long stride,
                        const unsigned char* __restrict__ off, double* to_eta, double* to_add,
                        long long n_shared) {
    __shared__ factors::Work work;
    SK_DYNAMIC_SHARED(double, buffer);
    const long long i = blockIdx.x;
    factors::Team team = {work.team, 0};
    factors::open(work, counts, ints, reals, states, stride, off, buffer, n_shared);
    factors::vjp(team, work.plan, work.state, to_eta + i * work.plan.n_var, to_add + i * work.plan.n_add);
}

// out (n, n_var): how mu moves with the scores
extern "C" __global__ void __launch_bounds__(256, 1)
    sk_factor_graph_jvp(const long long* __restrict__ counts, const int* __restrict__ ints,
                        const double* __restrict__ reals, double* states, long long stride,
                        const unsigned char* __restrict__ off, const double* __restrict__ d_eta,
                        const double* __restrict__ d_add, double* out, long long n_shared) {
    __shared__ factors::Work work;
    SK_DYNAMIC_SHARED(double, buffer);
    const long long i = blockIdx.x;
    factors::Team team = {work.team, 0};
    factors::open(work, counts, ints, reals, states, stride, off, buffer, n_shared);
    factors::jvp(team, work.plan, work.state, d_eta + i * work.plan.n_var, d_add + i * work.plan.n_add,
                 out + i * work.plan.n_var);
}
