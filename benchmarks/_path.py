"""A path of 50 values of lambda, each to a relative gap of 1e-6.

Ours is one call of l1_logistic_path; LIBLINEAR is called once a value (it has no warm start); skglm starts
each fit from the last solution. Each competitor runs the whole path to a ladder of tolerances; its time is
that of the fastest run in which *every* value is within the gap of the lowest objective that any run found,
the run of a reference included, which is ours at a tolerance of 1e-9, not timed: its duality gaps certify the
minimum where a peer is cut off.
"""

from __future__ import annotations

import time
import warnings

import _common
import _data
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from sparsekit._compare import json_output

N_LAMBDAS, END, GAP = 50, 1e-3, 1e-6
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(4, 19))
REFERENCE_TOL = 1e-9


def ours(problem, lambdas, tol, n_threads, deadline):
    """One call; stopped by its own max_time."""
    from sparsekit import l1_logistic_path

    left = deadline - time.perf_counter()
    path = l1_logistic_path(
        problem.design("row"), problem.y, lambdas=lambdas, fit_intercept=False, tol=tol, n_jobs=n_threads,
        max_iter=1000, max_time=left,
    )  # fmt: skip
    return path.coefs if time.perf_counter() < deadline else None


def liblinear(problem, lambdas, tol, n_threads, deadline):
    """One scikit-learn fit a value of lambda."""
    from sparsekit._compare.peers import Liblinear

    solver, coefs = Liblinear(), []
    X, y = solver.data(problem)
    for value in lambdas:
        coefs.append(solver.fit(X, y, 1.0 / value, tol, 1000).coef)
        if time.perf_counter() > deadline:
            return None
    return coefs


def skglm(problem, lambdas, tol, n_threads, deadline):
    """One estimator with warm_start; tol scaled by lambda as in the single fits."""
    from skglm import SparseLogisticRegression

    X, y = problem.design("column"), problem.y
    model, coefs = SparseLogisticRegression(fit_intercept=False, warm_start=True, max_iter=1000), []
    for value in lambdas:
        model.alpha = value / len(y)
        model.tol = tol * model.alpha
        coefs.append(model.fit(X, y).coef_[0].copy())
        if time.perf_counter() > deadline:
            return None
    return coefs


SOLVERS = {"sparsekit": ours, "liblinear": liblinear, "skglm": skglm}


def _objectives(problem, lambdas, coefs):
    if sparse.issparse(coefs):
        coefs = [coefs[:, [k]].toarray().ravel() for k in range(len(lambdas))]
    elif isinstance(coefs, np.ndarray):
        coefs = list(coefs.T)
    return np.array([problem.objective(w, 0.0, 1.0 / value) for w, value in zip(coefs, lambdas)])


def grid(problem):
    """The path's penalties."""
    return np.geomspace(1.0, END, N_LAMBDAS) * problem.lambda_max


def reference(problem):
    """Objectives of an accurate path, and the largest relative gap that its dual points certify."""
    from sparsekit import l1_logistic_path

    lambdas = grid(problem)
    path = l1_logistic_path(
        problem.design("row"), problem.y, lambdas=lambdas, fit_intercept=False, tol=REFERENCE_TOL, n_jobs=2,
        max_iter=1000,
    )  # fmt: skip
    return _objectives(problem, lambdas, path.coefs), float(np.max(path.dual_gaps / path.objectives))


def measure(problem, names, n_threads, max_time, best, report_run):
    """Runs of every solver: {name: [(tol, seconds, objectives or None)]} and the lowest objectives."""
    lambdas = grid(problem)
    runs = {name: [] for name in names}
    for tol in TOLERANCES:
        for name in names:
            if runs[name] and _done(runs[name], best):
                continue
            with warnings.catch_warnings(record=True) as caught, threadpool_limits(n_threads):
                warnings.simplefilter("always")
                start = time.perf_counter()
                coefs = SOLVERS[name](problem, lambdas, tol, n_threads, start + max_time)
                seconds = time.perf_counter() - start
            values = None if coefs is None else _objectives(problem, lambdas, coefs)
            if values is not None:
                best = np.minimum(best, values)
            runs[name].append((tol, seconds, values))
            report_run(name, tol, seconds, None if values is None else gap(values, best), len(caught))
    return runs, best


def gap(values, best):
    """Largest relative gap along the path."""
    return float(np.max((values - best) / best))


def _done(runs, best):
    """Whether a solver needs no further run: cut off, or well within the gap (F* may still fall)."""
    values = runs[-1][2]
    return values is None or (gap(values, best) <= GAP / 10)


def time_to(runs, best):
    """Seconds of the fastest run within the gap; inf if none is."""
    return min((s for _, s, v in runs if v is not None and gap(v, best) <= GAP), default=float("inf"))


def run(args):
    """Measure and print; returns 0."""
    names = [n for n in SOLVERS if n == "sparsekit" or not args.peers or n in args.peers]
    used = [s for s in _common.solvers(args, default=["liblinear", "skglm"]) if s.key in names]
    rows, results = [], []
    # JIT compilation and thread pools outside of the timing
    for name in args.sets:
        problem = _data.problem(args.folder, name)
        lowest, certified = reference(problem)
        print(f"{name}: the reference is certified to a relative gap of {certified:.1e}", flush=True)
        sample = problem.sample()
        few = np.geomspace(0.9, 0.1, 5) * sample.lambda_max
        for solver in names:
            SOLVERS[solver](sample, few, 1e-4, 1, time.perf_counter() + 600)
        for n_threads in args.n_jobs:

            def show(solver, tol, seconds, value, n_warnings, where=f"{name} x{n_threads}"):
                state = "cut off" if value is None else f"gap {value:.1e}"
                print(
                    f"{where}: {solver} tol {tol:.1e}: {seconds:.3g} s, {state}, {n_warnings} warnings",
                    flush=True,
                )

            runs, best = measure(problem, names, n_threads, args.max_time, lowest, show)
            times = {s: time_to(r, best) for s, r in runs.items()}
            longest = {s: max(t for _, t, _ in r) for s, r in runs.items()}
            texts = [f"{times[s]:.3g}" if np.isfinite(times[s]) else f"> {longest[s]:.3g}" for s in names]
            ratios = [
                ("" if np.isfinite(times[s]) else ">")
                + f"{(times[s] if np.isfinite(times[s]) else longest[s]) / times['sparsekit']:.3g}"
                for s in names[1:]
            ]
            rows.append([name, n_threads, *texts, *ratios, f"{certified:.0e}"])
            print(
                f"{name}, {n_threads} threads: " + ", ".join(f"{s} {t} s" for s, t in zip(names, texts)),
                flush=True,
            )
            results.append({"data": name, "n_threads": n_threads, "times": times, "runs": _plain(runs, best)})
            columns = ["data", "n_jobs", *(f"{s}, s" for s in names)]
            columns += [*(f"{s} / ours" for s in names[1:]), "certified"]
            lines = [f"# Path of {N_LAMBDAS} values from lambda_max to {END:g} lambda_max, gap {GAP:g}", ""]
            lines += [*_common.environment(args, used), *_common.markdown_table(columns, rows)]
            _common.write_markdown(args.markdown, lines)
            if args.json:
                json_output.write_json(args.json, {"command": args.command, "results": results})
    return 0


def _plain(runs, best):
    return {
        s: [{"tol": t, "seconds": sec, "gap": None if v is None else gap(v, best)} for t, sec, v in r]
        for s, r in runs.items()
    }
