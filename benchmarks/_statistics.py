"""Statistics of OBA on the benchmark's problems: tables 2.2 and 2.3 of the thesis, and figure 2.1."""

from __future__ import annotations

import _common
import _data
import numpy as np
from scipy import sparse

from sparsekit._compare import json_output, peers, plot, report
from sparsekit._compare.engine import Bench, BenchOptions

DEFAULT_RATIOS = (0.01,)
LIBLINEAR_TOL = 1e-3  # Section 2.4.2
TOLERANCES = tuple(10.0 ** (-k / 4) for k in range(4, 40))


def diagonal_dominance(X):
    """D(H) = max_i ||H_i||_2 / max_i |H_ii| of eq. (2.16) for H = X^T X / 4, the Hessian at w = 0.

    ||H_i|| <= ||x_i|| sigma_max(X) / 4, so columns are visited by falling norm until no other can win.
    """
    n, p = X.shape
    X = sparse.csc_matrix(X) if sparse.issparse(X) else np.asfortranarray(X)
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() if sparse.issparse(X) else (X**2).sum(axis=0)
    rows = sparse.csr_matrix(X) if sparse.issparse(X) else X
    if min(n, p) > 2:
        start = np.random.default_rng(0).standard_normal(min(n, p))
        sigma = sparse.linalg.svds(rows, k=1, return_singular_vectors=False, v0=start)[0] * (1 + 1e-6)
    else:
        sigma = float(np.sqrt(squares.sum()))
    best = 0.0
    order = np.argsort(-squares)
    for begin in range(0, p, 256):
        block = order[begin : begin + 256]
        if np.sqrt(squares[block[0]]) * sigma <= best:
            break
        columns = X[:, block].toarray() if sparse.issparse(X) else X[:, block]
        best = max(best, float(np.linalg.norm(rows.T @ columns, axis=0).max()))
    return best / float(squares.max())


def corrections(problem, lam):
    """OBA to the accuracy that LIBLINEAR reaches at tolerance 1e-3, and both solutions' sparsity.

    Returns
    -------
    result : OptimizeResult
    zeros_ours, zeros_liblinear : float
        Percentage of coefficients that are zero.
    """
    from sparsekit import minimize_oba
    from sparsekit._l1.losses.losses import LogisticLoss

    solver = peers.Liblinear()
    fit = solver.fit(solver.design(problem), problem, 1.0 / lam, LIBLINEAR_TOL)
    target = lam * problem.objective(fit.coef, 0.0, 1.0 / lam)
    loss = LogisticLoss(_data.by_rows(problem), problem.y)
    for tol in TOLERANCES:
        result = minimize_oba(loss, lam, tol=tol, max_iter=1000)
        if result.fun <= target or result.status != 0:
            break
    zeros = [100.0 * float(np.mean(w == 0)) for w in (result.x, fit.coef)]
    return result, *zeros


def run(args):
    """Print the tables; with --plot also measure and draw the curves."""
    ratios = args.lambda_ratio or DEFAULT_RATIOS
    used = _common.solvers(args, default=["liblinear"])
    table, dominance, results, n_ista, n_outer = [], [], [], 0, 0
    for name in args.sets:
        problem = _data.problem(args.folder, name)
        dominance.append([name, f"{diagonal_dominance(problem.X):.2f}"])
        print(f"{name}: D(H(0)) = {dominance[-1][1]}", flush=True)
        for ratio in ratios:
            result, ours, theirs = corrections(problem, ratio * problem.lambda_max)
            counts = np.asarray(result.n_corrections)
            q = np.quantile(counts, (0.25, 0.5, 0.75)) if counts.size else np.full(3, np.nan)
            n_ista += result.n_ista
            n_outer += result.nit
            row = [f"{name} {ratio:g}", result.nit, *(f"{v:g}" for v in q), int(counts.max(initial=0))]
            table.append([*row, f"{theirs:.2f}", f"{ours:.2f}", result.n_ista])
            print(
                f"{name} {ratio:g}: loops {row[2:]}, zeros LIBLINEAR {theirs:.2f} % OBA {ours:.2f} %, "
                f"ISTA {result.n_ista} of {result.nit} iterations, status {result.status}",
                flush=True,
            )
            entry = {"data": name, "ratio": ratio, "n_corrections": counts.tolist(), "n_ista": result.n_ista}
            entry |= {"status": result.status, "zeros_ours": ours, "zeros_liblinear": theirs}
            results.append(entry | {"dominance": float(dominance[-1][1])})
    print(f"ISTA fallbacks: {n_ista} in {n_outer} outer iterations")
    columns = ["data, lambda / lambda_max", "iterations", "Q25", "Q50", "Q75", "maximum"]
    columns += ["LIBLINEAR zeros, %", "OBA zeros, %", "ISTA fallbacks"]
    lines = ["# Corrective loops and sparsity (Table 2.2)", "", *_common.environment(used)]
    lines += _common.markdown_table(columns, table)
    lines += [f"ISTA fallbacks: {n_ista} in {n_outer} outer iterations.", ""]
    lines += ["# Diagonal dominance of the Hessian at zero, eq. (2.16) (Table 2.3)", ""]
    lines += _common.markdown_table(["data", "D"], dominance)
    _common.write_markdown(args.markdown, lines)
    if args.json:
        json_output.write_json(args.json, {"command": _common.command(), "results": results})
    return _figure(args, used, ratios) if args.plot else 0


def _figure(args, used, ratios):
    cells = []
    with Bench(
        used, BenchOptions(stop_gap=1e-9, max_time=args.max_time), report.Progress(len(args.sets))
    ) as bench:
        for name in args.sets:
            problem = _data.problem(args.folder, name)
            cells += [bench.measure(problem, 1.0 / (r * problem.lambda_max), args.n_jobs[0]) for r in ratios]
            bench.progress.done += 1
    plot.plot(cells, args.plot)
    return 0
