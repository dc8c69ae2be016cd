// Any solve of a graph; LP-MAP by proximal points. The GPU version of _cython/factor_graph/factor_map.h.
#ifndef SK_FACTOR_MAP_CUH
#define SK_FACTOR_MAP_CUH

#include "factor_graph/factor_solve.cuh"

namespace factors {

// times so much the first step is longer at most: longer ones cost digits
static constexpr double STRONG = 1e5;
// LP-MAP: disagreement beyond which rounding has spoilt an answer to scores in units of a small rho
static constexpr double BLURRED = 1e-7;

// mean square root, over the variables, of what scores meet there: its own, and those of its pairs
static __device__ __forceinline__ double strength(Team& team, const Plan& g, const State& t) {
    const double most = largest_score(team, g, t), by = most > 0.0 ? 1.0 / most : 0.0;
    double total = 0.0;
    SK_SHARE(j, g.n_var) if (!is_off(t.off, j)) total += by * t.eta[j] * (by * t.eta[j]);
    SK_SHARE(i, g.n_pair) {
        const double c = is_off(t.off_add, g.pair_add[i]) ? 0.0 : by * t.add[g.pair_add[i]];
        total += 2.0 * c * c;
    }
    return most * sqrt(team.sum(total) / (double)(g.n_var > 0 ? g.n_var : 1));
}

// LP-SparseMAP and AD3 by one solve, LP-MAP by proximal points: see factor_map.h
static __device__ __forceinline__ int solve(Team& team, const Plan& g, const State& t, const Options& given,
                                            Report& report) {
    const bool is_map = given.exact && !given.quadratic;
    Options o = given;
    double size = 0.0, none = 0.0, most = 0.0, smallest = -MOST_DOUBLE, rho, least, start, exact = 0.0;
    long long passes = 0, steps = 0;
    int status;
    if (is_map) {
        o.quadratic = 1;
        report.gamma = o.step_size; // the last solve's may be that of strong scores: here they are in units of rho
    }
    for (int k = threadIdx.x; is_map && k < g.n_var + g.n_add; k += blockDim.x) {
        const int i = k - g.n_var;
        const double score = k < g.n_var ? (is_off(t.off, k) ? 0.0 : fabs(t.eta[k])) : (is_off(t.off_add, i) ? 0.0 : fabs(t.add[i]));
        size += score;
        most = score > most ? score : most;
        smallest = score > 0.0 && -score > smallest ? -score : smallest;
        if (k < g.n_var) {
            t.eta0[k] = t.eta[k];
            if (!report.warm) t.mu[k] = 0.0;
        } else
            t.add0[i] = t.add[i];
    }
    team.sum(size, none);
    most = team.most(most);
    smallest = -team.most(smallest);
    if (!(size > 0.0)) smallest = 1.0; // nothing to tell apart, but what is forbidden still weighs against rho
    rho = size > 0.0 ? 0.2 * size / (double)(g.n_var + g.n_add) : 1.0;
    least = 0.5 * smallest > 1e-13 * most ? 0.5 * smallest : 1e-13 * most;
    rho = start = rho < least ? least : rho;
    // multipliers have as far to go as scores are large
    const bool scaled = !is_map && given.exact && given.adaptive;
    const double first = o.step_size * (scaled ? fmin(STRONG, fmax(1.0, strength(team, g, t))) : 1.0);
    for (;;) {
        double moved = 0.0, worth = 0.0, next = 0.25 * rho;
        if (is_map) SK_SHARE(j, g.n_var) {
            t.h0[j] = t.mu[j];
            t.eta[j] = t.eta0[j] / rho + t.mu[j];
            if (is_alone(g, j)) t.eta[j] = t.h0[j] = t.eta0[j] > 0.0; // on or off at once
        }
        if (is_map) {
            SK_SHARE(k, g.n_add) t.add[k] = t.add0[k] / rho;
            o.max_iter = given.max_iter - passes;
            // scores that are large relative to rho leave fewer digits for the marginals
            o.tol_primal = given.tol_primal * (1e-3 * most / rho > 1.0 ? 1e-3 * most / rho : 1.0);
            if (o.tol_primal > 1e-7 && given.tol_primal < 1e-7) o.tol_primal = 1e-7;
        }
        __syncthreads();
        status = solve_once(team, g, t, o, first, report);
        if (!is_map) return status;
        passes += report.n_iter;
        steps += report.n_newton;
        if (status || size == 0.0) break; // of scores that are all 0 every mu is best
        if (report.residual > fmax(o.tol_primal, BLURRED) && rho < start && passes < given.max_iter) {
            // rounding of scores in units of so small a rho is no solution: back to the last mu and a larger one
            exact = fmin(4.0 * rho, start);
            least = fmax(least, exact);
            SK_SHARE(j, g.n_var) t.mu[j] = t.h0[j];
            SK_SHARE(s, g.n_slot) t.l[s] *= rho / exact;
            SK_SHARE(i, g.n_linear + g.n_orout) t.tau[i] *= rho / exact;
            rho = exact;
            __syncthreads();
            continue;
        }
        SK_SHARE(j, g.n_var) {
            const double d = t.mu[j] - t.h0[j];
            moved += d * d;
            if (!is_off(t.off, j)) worth += fabs(t.eta0[j] * t.mu[j]);
        }
        team.sum(moved, worth);
        report.dual = sqrt(moved);
        // mu is best for scores that differ by rho times the step: it lacks no more than that over the box
        if (rho * report.dual * sqrt((double)g.n_var) <= 1e-9 * worth) break;
        // a step moves no less than its own error
        if (report.dual <= given.tol_dual + 30.0 * o.tol_primal) {
            if (rho <= least) break;
            next = least; // where it stays for the smallest score as well, it stays for good
        }
        if (passes >= given.max_iter) {
            status = FG_MAX_ITER;
            break;
        }
        report.warm = 1;
        next = next < exact ? exact : next;
        // near ties of scores take a rho as near to 0
        if (next < 1e-10 * (worth > smallest ? worth : smallest)) next = rho;
        if (next < rho) { // multipliers are in units of rho
            SK_SHARE(s, g.n_slot) t.l[s] *= rho / next;
            SK_SHARE(i, g.n_linear + g.n_orout) t.tau[i] *= rho / next;
            rho = next;
        }
        __syncthreads();
    }
    report.n_iter = passes;
    report.n_newton = steps;
    __syncthreads();
    SK_SHARE(j, g.n_var) t.eta[j] = t.eta0[j];
    SK_SHARE(k, g.n_add) t.add[k] = t.add0[k];
    __syncthreads();
    return report.status = status;
}

}  // namespace factors
#endif
