"""True multinomial L1 logistic regression with all classes, against saga, to a relative gap of 1e-4."""

from __future__ import annotations

import _common
import _data

from sparsekit._compare import json_output, report
from sparsekit._compare.engine import Bench, BenchOptions

GAPS = (1e-3, 1e-4)
RATIOS = (0.1, 0.01)


def run(args):
    """Measure and print; 1 if interrupted, else 0."""
    used = [s for s in _common.solvers(args, default=["saga"]) if s.key in (report.OURS, "saga")]
    options = BenchOptions(gaps=GAPS, stop_gap=GAPS[-1], max_time=args.max_time, repeats=args.repeats)
    cells, rows = [], []
    ratios = args.lambda_ratio or RATIOS
    progress = report.Progress(len(args.sets) * len(args.n_jobs) * len(ratios))
    print("Problem: minimise sum |W_jk| + C sum_i (log sum_k exp(z_ik) - z_i,y_i), Z = X W^T; float64")
    print("\n".join(_common.environment(used)))
    with Bench(used, options, progress) as bench:
        for name in args.sets:
            problem = _data.multinomial_problem(args.folder, name)
            print("\n" + report.data_line(problem))
            for n_threads in args.n_jobs:
                for ratio in ratios:
                    progress.cell = f"{name} {ratio:g} x{n_threads}"
                    cell = bench.measure(problem, 1.0 / (ratio * problem.lambda_max), n_threads)
                    progress.clear()
                    progress.done += 1
                    cells.append(cell)
                    print("\n" + report.table(cell, GAPS), flush=True)
                    value, bound, _ = report.ratio(cell, GAPS[-1], "saga")
                    print(f"  saga / L1LogisticOBA at gap {GAPS[-1]:.0e}: {bound}{value:.3g}")
                    times = [report.time_cell(cell, t, g) for g in GAPS for t in cell.tracks]
                    rows.append([f"{name} {ratio:g}", n_threads, *times, f"{bound}{value:.3g}"])
                    if args.json:
                        json_output.write_json(args.json, json_output.as_dict(cells, used, {"gaps": GAPS}))
                    if cell.interrupted:
                        return 1
    titles = [f"{t.solver.title}, {g:.0e}" for g in GAPS for t in cells[0].tracks]
    table = _common.markdown_table(["data, lambda / lambda_max", "n_jobs", *titles, "saga / ours"], rows)
    lines = ["# Multinomial L1 logistic regression: seconds to a relative gap", ""]
    _common.write_markdown(args.markdown, [*lines, *_common.environment(used), *table])
    return 0
