// LP-SparseMAP: ADMM (Algorithm 1), then Newton's method on the dual. The GPU version of
// _cython/factor_graph/factor_solve.h, whose comments say why. The steps are the same, so passes and exits are the
// same. All threads hold the same Report and take the same branches.
#ifndef SK_FACTOR_SOLVE_CUH
#define SK_FACTOR_SOLVE_CUH

#include "factor_graph/factor_passes.cuh"

namespace factors {

typedef Options fg_options;
typedef Report fg_report;

static __device__ __forceinline__ int solve_once(Team& team, const Plan& g, const State& t, const Options& o,
                                                 double first, Report& report);

#define FG_SOLVE(g, t, o, first, r) solve_once(team, *g, *t, o, first, *r)

#include "graph_solve.h"

// x of an iteration: what gather needs of the variables, h = (eta + 2 gamma mu) / (quadratic + gamma)
static __device__ __forceinline__ void set_h(const Plan& g, const State& t, const Options& o, double gamma) {
    const double inv = 1.0 / (o.quadratic + gamma);
    SK_SHARE(j, g.n_var) t.h[j] = (t.eta[j] + 2.0 * gamma * t.mu[j]) * inv;
}

// mu and l become what the iteration starts from; ends with a barrier
static __device__ __forceinline__ void admm_begin(const Plan& g, const State& t, const Options& o, double gamma) {
    __syncthreads();
    fg_admm_begin(&g, &t, gamma);
    set_h(g, t, o, gamma);
    __syncthreads();
}

// The rest of an iteration of Algorithm 1, when answers are there; ends with mu, old and h in place, behind a barrier.
static __device__ __forceinline__ void admm_update(Team& team, const Plan& g, const State& t, const Options& o,
                                                   double gamma, double& primal, double& dual, double enough) {
    const double inv = 1.0 / (o.quadratic + gamma), relax = o.relaxation;
    double moved = 0.0;
    SK_SHARE(j, g.n_var) if (is_alone(g, j)) t.old[j] = t.mu[j];
    mean(g, t.x, [&](int j, double mu) {
        const double d = relax * (mu - t.mu[j]);
        t.old[j] = t.mu[j];
        t.mu[j] = mu;
        moved += d * d;
    });
    dual = sqrt(team.sum(moved));
    // another pass, which mu that still moves makes superfluous
    primal = dual < enough ? sqrt(team.sum(residual_part(g, t.mu, t.x))) : INFINITY;
    SK_SHARE(j, g.n_var) {
        t.mu[j] = relax * t.mu[j] + (1.0 - relax) * t.old[j];
        t.h[j] = (t.eta[j] + 2.0 * gamma * t.mu[j]) * inv;
    }
    __syncthreads();
}

// answers, means and residual at l + step s; the dual's slope along s; ends with a barrier
static __device__ __forceinline__ double dual_at(Team& team, const Plan& g, const State& t, Report& report, double step) {
    const Scores scores = {Scores::DUAL, step, 1.0};
    report.n_iter++;
    answer(g, t, scores, 1.0, true);
    __syncthreads();
    mean(g, t.x, [&](int j, double mu) { t.mu[j] = mu; });
    __syncthreads();
    double square = residual_part(g, t.mu, t.x), slope = dot_part(g, t.s, t.x);
    team.sum(square, slope);
    report.residual = sqrt(square);
    return slope;
}

#define FG_MULTIPLY_LESS(g, t, in, x, y) (product(*g, *t, in, x, y), __syncthreads())
#define FG_DUAL_AT(g, t, r, step, slope) (*(slope) = dual_at(team, *g, *t, *r, step), 0)
#define FG_ALL_SOLVED(g, t) true

#include "graph_newton.h"

// first: gamma where nothing is known
static __device__ __forceinline__ int solve_once(Team& team, const Plan& g, const State& t, const Options& o,
                                              double first, Report& report) {
    double primal = 1.0, moved = 1.0, enough = FG_NEWTON_RESIDUAL;
    long long check = 50, adapt = FG_ADAPT_INTERVAL;
    bool stale = false; // v is not the iteration's
    fg_start_solve(&g, &t, &o, first, &report);
    if (g.n_slot == 0) {
        report.primal = report.dual = report.residual = 0.0;
        return report.status = FG_CONVERGED;
    }
    // no factors share a variable: their answers are the solution
    const bool is_separate = o.quadratic && g.is_separate;
    bool done = is_separate;
    // so far multipliers may have to go
    const double longest = fmax(fmax(1e3 * o.step_size, first), 0.1 * fg_largest_score(team, &g, &t));
    report.gamma = fmin(report.gamma, longest); // a warm start's may be that of larger scores
    if (!done) admm_begin(g, t, o, report.gamma);
    for (;;) {
        if (!done && report.n_iter >= o.max_iter) {
            report.status = FG_MAX_ITER;
            done = true;
        }
        // the last answers are those whose Jacobians are wanted, where the last iteration left them
        const double inv = is_separate ? 1.0 : 1.0 / (o.quadratic + report.gamma);
        if (done && !is_separate) fg_admm_end(&g, &t, report.gamma, o.relaxation);
        if (done && stale) {
            SK_SHARE(s, g.n_slot) {
                const int j = g.var[s];
                t.v[s] = (t.eta[j] + t.l[s] + report.gamma * t.mu[j]) * inv;
            }
            __syncthreads();
        }
        const Scores scores = {!done ? Scores::GATHER : (is_separate ? Scores::GIVEN : Scores::KEPT),
                               report.gamma * o.relaxation, inv};
        answer(g, t, scores, inv, done);
        __syncthreads();
        if (is_separate) {
            report.n_iter++;
            report.status = FG_CONVERGED;
        }
        if (done) break;
        const long long now = ++report.n_iter;
        const bool due = now >= check || now >= adapt || now >= o.max_iter || !o.exact;
        admm_update(team, g, t, o, report.gamma, primal, moved, due ? INFINITY : enough);
        stale = false;
        report.primal = primal;
        report.dual = report.gamma * moved;
        if (!o.exact) {
            if (primal <= o.tol_primal && moved <= o.tol_dual) {
                report.status = FG_CONVERGED;
                done = true;
                continue;
            }
        } else if (primal + moved < enough && report.n_iter < o.max_iter) {
            int failed;
            fg_admm_end(&g, &t, report.gamma, o.relaxation);
            if (fg_newton(team, &g, &t, &report, o.tol_primal, o.max_iter, &failed)) {
                report.primal = report.residual;
                report.dual = 0.0;
                fg_snap_to_bounds(&g, &t, report.residual);
                return report.status = FG_CONVERGED;
            }
            enough = 0.1 * (primal + moved);
            admm_begin(g, t, o, report.gamma);
            stale = true;
            continue;
        }
        if (now >= check) {
            check = 2 * now;
            if (primal > 1e-7) { // a direction as small as this is rounding
                mean(g, t.x, [&](int j, double mu) { t.h[j] = mu; });
                __syncthreads();
                SK_SHARE(s, g.n_slot) t.e[s] = t.h[g.var[s]] - t.x[s]; // e holds nothing until the end
                __syncthreads();
                if (fg_is_infeasible(team, &g, &t, t.e)) return report.status = FG_INFEASIBLE;
                set_h(g, t, o, report.gamma);
                __syncthreads();
            }
        }
        if (o.adaptive && now >= adapt) {
            adapt = now + (now < 40 ? FG_ADAPT_INTERVAL : now / 4);
            const double gamma = fg_adapted_step(report.gamma, primal, report.dual, 1e-3 * o.step_size, longest);
            if (gamma == 0.0) continue;
            fg_admm_end(&g, &t, report.gamma, o.relaxation);
            report.gamma = gamma;
            admm_begin(g, t, o, gamma);
        }
    }
    mean(g, t.x, [&](int j, double mu) { t.mu[j] = mu; }); // without relaxation, which leaves the box
    __syncthreads();
    if (is_separate) {
        report.dual = report.residual = 0.0;
        report.primal = 0.0;
        fg_snap_to_bounds(&g, &t, 0.0);
        return report.status;
    }
    report.primal = sqrt(team.sum(residual_part(g, t.mu, t.x)));
    return report.status;
}

}  // namespace factors
#endif
