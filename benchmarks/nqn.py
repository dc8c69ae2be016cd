"""NQN on the 250 nonsmooth instances of its paper, against SciPy's L-BFGS-B; and on smooth problems.

    python benchmarks/nqn.py --n 100                 # Table 3.3 and the profiles, Figures 3.6 to 3.8
    python benchmarks/nqn.py --n 100 --variants      # Figure 3.4: the four choices of the active set
    python benchmarks/nqn.py --active-sets FILE      # Figures 3.2 and 3.3: what the four hold
    python benchmarks/nqn.py --smooth                # evaluations and seconds an iteration on smooth problems

Needs SciPy only. f* of an instance is the best value that any of the compared methods found from that start
(3.25); each has 100 n evaluations.
"""

from __future__ import annotations

import sys
import time

import _common
import numpy as np
from joblib import Parallel, delayed
from scipy import optimize

from sparsekit import minimize_nqn
from sparsekit._bounded.solver.nqn import ACTIVE_SETS, NQNOptions, minimize
from sparsekit.optimize import nonsmooth_problems

TOLERANCES = (1e-2, 1e-4, 1e-6)
ENDLESS = 10**9


class Budget(Exception):
    """All evaluations, or all the time, are spent."""


class Watched:
    """A problem's function that counts evaluations, and stores each improvement as (evaluations, f)."""

    def __init__(self, problem, budget, max_time=np.inf):
        self.problem, self.budget = problem, budget
        self.end = time.perf_counter() + max_time
        self.count, self.best, self.points = 0, np.inf, []

    def __call__(self, x):
        if self.count >= self.budget or time.perf_counter() > self.end:
            raise Budget
        self.count += 1
        f, g = self.problem.fun_and_jac(x)
        if f < self.best:
            self.best = f
            self.points.append((self.count, f))
        return f, g


def nqn(fun, x0, lower, upper, **options):
    opts = NQNOptions(gtol=0.0, ftol=-1.0, max_iter=ENDLESS, **options)
    return minimize(fun, x0, lower, upper, opts).status


def lbfgsb(fun, x0, lower, upper):
    options = dict(maxcor=20, ftol=0, gtol=0, maxfun=ENDLESS, maxiter=ENDLESS)
    bounds = optimize.Bounds(lower, upper)
    return optimize.minimize(fun, x0, jac=True, bounds=bounds, method="L-BFGS-B", options=options).status


METHODS = {
    "NQN": (nqn, {}),
    "L-BFGS-B (SciPy)": (lbfgsb, {}),
}
RULES = dict(initial_scale="gradient", longer=np.inf, interpolate=False)  # of the thesis
THESIS = {"NQN as in the thesis": (nqn, RULES)}
VARIANTS = {name: (nqn, dict(active_set=name)) for name in ACTIVE_SETS}


def run_instance(n, which, number, method, options, max_time=np.inf):
    """(f0, improvements, evaluations, whether the budget was spent) of one method on one instance."""
    problem = nonsmooth_problems(n)[which]
    lower, upper = (np.asarray(side, dtype=float) for side in (problem.bounds.lb, problem.bounds.ub))
    x0 = np.clip(problem.starts(number + 1)[number], lower, upper)
    fun, spent = Watched(problem, 100 * n, max_time), False
    try:
        with np.errstate(all="ignore"):
            method(fun, x0, lower, upper, **options)
    except Budget:
        spent = True
    return fun.points[0][1], np.array(fun.points), fun.count, spent


def run_all(methods, n, starts, n_jobs, max_time=np.inf):
    """{method: {(problem, start): run}}."""
    names = [p.name for p in nonsmooth_problems(n)]
    results = {}
    for label, (method, options) in methods.items():
        start = time.perf_counter()
        keys = [(i, j) for i in range(len(names)) for j in range(starts)]
        runs = Parallel(n_jobs=n_jobs)(
            delayed(run_instance)(n, i, j, method, options, max_time) for i, j in keys
        )
        results[label] = {(names[i], j): run for (i, j), run in zip(keys, runs)}
        print(f"n = {n}: {label}, {time.perf_counter() - start:.0f} s", flush=True)
    return results


def evaluations_to(run, best, tol):
    """Evaluations until (3.25) holds, or inf."""
    first, points, _, _ = run
    if not first > best:
        return 1.0
    reached = np.flatnonzero(points[:, 1] - best < tol * (first - best))
    return float(points[reached[0], 0]) if len(reached) else np.inf


def judge(results, tol):
    """{method: array of evaluations}, in the order of the instances."""
    keys = list(next(iter(results.values())))
    best = {k: min(runs[k][1][-1, 1] for runs in results.values()) for k in keys}
    return {m: np.array([evaluations_to(runs[k], best[k], tol) for k in keys]) for m, runs in results.items()}


def table(results, n):
    """Rows of Table 3.3: OK, MAX (budget spent), OTHER, and the median evaluations."""
    rows = []
    for tol in TOLERANCES:
        evaluations = judge(results, tol)
        for label, runs in results.items():
            ok = np.isfinite(evaluations[label])
            spent = np.array([run[3] for run in runs.values()])
            missed = {}
            for (name, _), good in zip(runs, ok):
                missed[name] = missed.get(name, 0) + (not good)
            worst = ", ".join(f"{k} {v}" for k, v in sorted(missed.items(), key=lambda kv: -kv[1]) if v)
            rows.append([
                f"{n}, {tol:g}", label, int(ok.sum()), int((~ok & spent).sum()), int((~ok & ~spent).sum()),
                f"{np.median(evaluations[label]):.0f}", worst or "-",
            ])  # fmt: skip
    columns = ["n, tolerance", "method", "OK", "MAX", "OTHER", "median evaluations", "missed"]
    return columns, rows


def profiles(results_by_n, path):
    """Dolan-More profiles of the evaluations: share of the instances within a factor of the best method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shape = len(results_by_n), len(TOLERANCES)
    figure, axes = plt.subplots(
        *shape, figsize=(3.4 * shape[1], 2.9 * shape[0]), squeeze=False, sharex=True, sharey=True,
        layout="constrained",
    )  # fmt: skip
    for row, (n, results) in zip(axes, results_by_n.items()):
        for axis, tol in zip(row, TOLERANCES):
            evaluations = judge(results, tol)
            fewest = np.min(list(evaluations.values()), axis=0)
            for name, needed in evaluations.items():
                # what is not solved lies to the right of the picture
                ratios = np.full(len(needed), float(ENDLESS))
                np.divide(needed, fewest, out=ratios, where=np.isfinite(needed))
                axis.ecdf(ratios, label=name)
            axis.set(title=f"n = {n}, tolerance {tol:g}", xlabel="evaluations / the fewest")
            axis.set(xscale="log", xlim=(0.95, 1e3))
            axis.set_ylabel("share of the instances")
            axis.label_outer()
    axes[0, -1].legend(fontsize=7, loc="lower right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def myopic(coupled):
    """(3.23) or (3.24) with the 1/2 of (3.6), without which the solution is at no kink."""

    def fun(x):
        g = np.zeros_like(x)
        a, b, da, db = (x[:-1], x[1:], g[:-1], g[1:]) if coupled else (x[::2], x[1::2], g[::2], g[1::2])
        r, sign = a + 0.1 * b, np.sign(a - b)
        da += sign + r
        db += 0.1 * r - sign
        return float(np.abs(a - b).sum() + 0.5 * (r @ r)), g

    return fun


def active_sets(path, rules, n=100, max_iter=200):
    """Figures 3.2 and 3.3: how many variables the four variants hold, and f, against the iterations."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(13, 5.4), sharex=True, sharey="row", layout="constrained")
    for row, name in zip(axes, ("Myopic_Decoupled", "Myopic_Coupled")):
        problem = next(p for p in nonsmooth_problems(n) if p.name == name)
        fun = myopic(name == "Myopic_Coupled")
        lower, upper = (np.asarray(side, dtype=float) for side in (problem.bounds.lb, problem.bounds.ub))
        x0 = np.clip(problem.starts(1)[0], lower, upper)
        runs = {}
        for variant in ACTIVE_SETS:
            opts = NQNOptions(gtol=0.0, ftol=-1.0, max_iter=max_iter, active_set=variant, **rules)
            runs[variant] = minimize(fun, x0, lower, upper, opts, history=True)
        least, first = min(run.fun for run in runs.values()), fun(x0)[0]
        for axis, (variant, run) in zip(row, runs.items()):
            lines = run.history
            print(
                f"{name}, {variant}: held at the end {[line['n_held'] for line in lines[-5:]]}, corrections "
                f"{run.n_corrections}, evaluations {run.nfev}, above the least {run.fun - least:.1e}",
                flush=True,
            )
            axis.plot([line["n_predicted"] for line in lines], "C3", lw=1, label="held before corrections")
            if variant.startswith("corrected"):
                axis.plot([line["n_held"] for line in lines], "C3--", lw=1, label="held after corrections")
            axis.set(title=f"{name},\n{variant}", xlabel="iteration")
            right = axis.twinx()
            gaps = np.array([(line["f"] - least) / (first - least) for line in lines])
            right.semilogy(np.maximum(gaps, 1e-12), "C0:", label="f above the least, relative (right scale)")
            right.set_ylim(1e-12, 2)
            right.tick_params(labelright=axis is row[-1])
        row[0].set_ylabel("variables held")
        right.set_ylabel("f above the least, relative")
    handles = [*axes[0, 2].get_lines(), *right.get_lines()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def rosenbrock(x):
    """The extended Rosenbrock function of pairs (odd, even)."""
    a, b = x[::2], x[1::2]
    r, g = b - a * a, np.empty_like(x)
    g[::2], g[1::2] = -400 * a * r - 2 * (1 - a), 200 * r
    return float(100 * (r @ r) + (1 - a) @ (1 - a)), g


def tridiagonal(x):
    """x'Ax / 2 - sum x, A with 2 on the diagonal and -1 next to it."""
    g = 2 * x
    g[1:] -= x[:-1]
    g[:-1] -= x[1:]
    return float(0.5 * (x @ g) - x.sum()), g - 1.0


def logistic(n, rows, seed=0):
    """L2-regularised logistic loss of sparse random rows."""
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    A = sp.random_array((rows, n), density=20 / n, rng=rng, format="csr")
    T = A.T.tocsr()
    y = np.where(A @ rng.standard_normal(n) + 0.3 * rng.standard_normal(rows) > 0, 1.0, -1.0)

    def fun(w):
        z = y * (A @ w)
        p = 1 / (1 + np.exp(z))
        return float(np.logaddexp(0, -z).sum() + 5e-3 * (w @ w)), -(T @ (y * p)) + 1e-2 * w

    return fun


def smooth(sizes=(10**4, 10**5, 10**6), max_iter=60):
    """Evaluations to one accuracy, and seconds an iteration less those of the function."""
    rows = []
    for n in sizes:
        cases = [
            ("Rosenbrock", rosenbrock, np.tile([-1.2, 1.0], n // 2), (-5.0, 5.0)),
            ("Rosenbrock, a <= 0.8", rosenbrock, np.tile([-1.2, 0.5], n // 2), (-2.0, 0.8)),
            ("tridiagonal, x <= 20", tridiagonal, np.zeros(n), (0.0, 20.0)),
            ("logistic, w >= 0", logistic(n, n // 2), np.zeros(n), (0.0, np.inf)),
            ("logistic, -0.5 .. 0.5", logistic(n, n // 2), np.zeros(n), (-0.5, 0.5)),
        ]
        for name, fun, x0, (low, high) in cases:
            bounds, figures = optimize.Bounds(np.full(n, low), np.full(n, high)), []
            start = time.perf_counter()
            for _ in range(3):
                fun(x0)
            own = (time.perf_counter() - start) / 3
            for which in ("ours", "theirs"):
                start = time.perf_counter()
                if which == "ours":
                    result = minimize_nqn(
                        fun, x0, jac=True, bounds=bounds, gtol=1e-5, ftol=-1, max_iter=max_iter
                    )
                else:
                    result = optimize.minimize(
                        fun, x0, jac=True, bounds=bounds, method="L-BFGS-B",
                        options=dict(maxcor=20, gtol=1e-5, ftol=0, maxiter=max_iter),
                    )  # fmt: skip
                spent = time.perf_counter() - start
                figures += [result.fun, result.nfev, 1e3 * (spent - own * result.nfev) / max(1, result.nit)]
            rows.append([
                f"{name}, n = {n:.0e}", f"{figures[0]:.8g}", f"{figures[3]:.8g}", figures[1], figures[4],
                f"{figures[2]:.2f}", f"{figures[5]:.2f}", f"{figures[2] / figures[5]:.2f}",
            ])  # fmt: skip
            print(rows[-1], flush=True)
    return [
        "problem", "f, NQN", "f, L-BFGS-B", "evaluations, NQN", "L-BFGS-B", "ms an iteration, NQN",
        "L-BFGS-B", "ratio",
    ], rows  # fmt: skip


def main(argv=None):
    parser = _common.make_parser(__doc__)
    parser.add_argument("--n", default="100", help="numbers of variables (default: 100)")
    parser.add_argument("--starts", type=int, default=10, help="starts of each problem (default: 10)")
    parser.add_argument(
        "--max-time", type=float, default=np.inf, help="seconds for each run (default: no limit)"
    )
    parser.add_argument("--variants", action="store_true", help="compare the choices of the active set")
    parser.add_argument("--active-sets", metavar="FILE", help="only make the picture of Figures 3.2 and 3.3")
    parser.add_argument("--thesis", action="store_true", help="compare with the rules of the thesis too")
    parser.add_argument("--smooth", action="store_true", help="smooth problems instead")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes; counts do not depend on it")
    parser.add_argument("--plot", metavar="FILE", help="picture of the profiles")
    args = parser.parse_args(argv)
    if args.active_sets:
        active_sets(args.active_sets, RULES if args.thesis else {})
        return 0
    lines = [*_common.environment([])]
    if args.smooth:
        lines += _common.markdown_table(*smooth())
    else:
        results = {}
        for n in (int(n) for n in args.n.split(",")):
            methods = VARIANTS if args.variants else {**METHODS, **(THESIS if args.thesis else {})}
            results[n] = run_all(methods, n, args.starts, args.n_jobs, args.max_time)
            lines += _common.markdown_table(*table(results[n], n))
        if args.plot:
            profiles(results, args.plot)
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
