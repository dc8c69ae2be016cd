#include "shared/common.cuh"
#include "factor_graph/label_graph.cuh"

// smallest length of a linear factor or an OrOut at which a warp works
#define SK_WARP_FROM 24

// Kernels of gpu/factor_graph/_label_graph.py.

// mu (n, K) of scores eta (n, K), statuses and passes (n). Blocks get rows from the counter `next` (1, zero at first)
// until there are none. A row's workspace is in shared memory (n_shared doubles) if it fits, else in the block's part
// of `spare` (n_blocks, n_spare). pair_slot is (n_blocks, n_pairs).
extern "C" __global__ void __launch_bounds__(256, 1)
    sk_label_graph_marginals(const long long* __restrict__ counts, const int* __restrict__ ints,
                             const double* __restrict__ reals, const int* __restrict__ start,
                             const int* __restrict__ other, const int* __restrict__ pair,
                             const double* __restrict__ plus, const double* __restrict__ minus,
                             const double* __restrict__ gain, const double* __restrict__ loss,
                             const double* __restrict__ eta, long long n, double* mu, int* statuses, long long* passes,
                             int* next, double* spare, long long n_spare, int* pair_slot, long long n_pairs,
                             long long n_row, long long n_shared, long long max_iter, double step_size, double relaxation,
                             double tol_primal, double tol_dual, long long adaptive, long long exact,
                             long long quadratic, long long inner_iter) {
    __shared__ factors::Plan plan;
    __shared__ factors::State state;
    __shared__ labels::Labels g;
    __shared__ labels::Row row;
    __shared__ double sums[128];
    __shared__ int taken;
    SK_DYNAMIC_SHARED(double, buffer);
    const factors::Options options = {max_iter, inner_iter, step_size, relaxation, tol_primal, tol_dual,
                                      (int)adaptive, (int)exact, (int)quadratic};
    factors::Team team = {sums, 0};
    double* own = spare + blockIdx.x * n_spare;
    // what a row's labels take (n_row), and then the graph of those left
    const bool is_row_shared = n_row <= n_shared;
    double* left = buffer + (is_row_shared ? n_row : 0);
    const long long n_left = n_shared - (is_row_shared ? n_row : 0);
    if (threadIdx.x == 0) {
        labels::assign_buffers(g, counts, ints, reals);
        g.start = start;
        g.other = other;
        g.pair = pair;
        g.plus = plus;
        g.minus = minus;
        g.gain = gain;
        g.loss = loss;
        labels::assign_buffers(row, g, is_row_shared ? buffer : own);
        row.pair_slot = pair_slot + blockIdx.x * n_pairs;
    }
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        __syncthreads();
        const long long i = taken, K = g.n_labels;
        if (i >= n) break;
        int n_var, n_pair, n_linear = 0, n_slot = 0;
        factors::Report report = {0.0, 0.0, 0.0, 0.0, 0, 0, FG_CONVERGED, 0};
        labels::decide(team, g, row, eta + i * K, options.quadratic ? 1.0 : 0.0);
        labels::number(team, g, row, mu + i * K, n_var, n_pair);
        if (n_var > 0) {
            labels::count_entries(team, g, row, n_linear, n_slot);
            const int closed = n_linear + g.n_orout, in_orout = g.orout[g.n_orout] - g.orout[0];
            n_slot += in_orout;
            const int lanes = closed && n_slot >= SK_WARP_FROM * closed ? SK_WARP : 1;
            n_slot += 2 * n_pair;
            const factors::Plan counted = {n_var, n_slot, n_pair, n_pair, n_linear, g.n_orout, 0, lanes};
            factors::State sized;
            const long long n_state = factors::assign_buffers(sized, counted, buffer), n_reals = 4LL * n_slot + n_pair + n_linear;
            const long long n_ints = 3LL * n_slot + n_var + n_pair + 2 * n_linear + g.n_orout + 3;
            double* at = n_state + n_reals + (n_ints + 1) / 2 <= n_left ? left : own + (is_row_shared ? 0 : n_row);
            double* its_reals = at + n_state;
            int* its_ints = reinterpret_cast<int*>(its_reals + n_reals);
            if (threadIdx.x == 0) {
                plan = counted;
                factors::assign_buffers(plan, its_ints, its_reals);
                factors::assign_buffers(state, plan, at);
                state.off = state.off_add = nullptr;
            }
            __syncthreads();
            labels::build(team, g, row, plan, its_ints, its_reals, state);
            factors::solve(team, plan, state, options, report);
            SK_SHARE(j, g.n_labels) if (row.decided[j] > 0) mu[i * K + j] = factors::clip(state.mu[row.decided[j] - 1]);
        }
        if (threadIdx.x == 0) {
            statuses[i] = report.status;
            passes[i] = report.n_iter;
        }
        __syncthreads();
    }
}

// parts (gridDim.y, 2, n_pairs): over this part's rows, sums of weight times min(mu_j, mu_k) and max(0, mu_j + mu_k - 1)
extern "C" __global__ void sk_label_graph_pair_sums(const double* __restrict__ mu, const double* __restrict__ weight,
                                                    long long n, long long n_labels, const int* __restrict__ first,
                                                    const int* __restrict__ second, long long n_pairs, double* parts) {
    const long long p = sk::thread_of_grid(), part = blockIdx.y, rows = (n + gridDim.y - 1) / gridDim.y;
    if (p >= n_pairs) return;
    const long long begin = part * rows, end = begin + rows < n ? begin + rows : n;
    double high = 0.0, low = 0.0;
    for (long long i = begin; i < end; i++) {
        const double a = mu[i * n_labels + first[p]], b = mu[i * n_labels + second[p]];
        high += weight[i] * (a < b ? a : b);
        if (a + b > 1.0) low += weight[i] * (a + b - 1.0);
    }
    parts[2 * part * n_pairs + p] = high;
    parts[(2 * part + 1) * n_pairs + p] = low;
}
