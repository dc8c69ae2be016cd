"""Time to relative gaps 1e-3 and 1e-6 on every data set, lambda and number of threads."""

from __future__ import annotations

import math

import _cells_read
import _common
import _data

from sparsekit._compare import json_output, plot, report
from sparsekit._compare.engine import Bench, BenchOptions

DEFAULT_RATIOS = (0.1, 0.01, 0.001)


def run(args):
    """Measure all cells, printing each; 1 if interrupted or if L1LogisticOBA failed somewhere, else 0."""
    if args.sources:
        return _again(args)
    used = _common.solvers(args)
    ratios = args.lambda_ratio or DEFAULT_RATIOS
    options = BenchOptions(stop_gap=1e-6, max_time=args.max_time, repeats=args.repeats)
    progress = report.Progress(len(args.sets) * len(ratios) * len(args.n_jobs))
    print(report.header(used, _data.problem(args.folder, args.sets[0])))
    cells = []
    with Bench(used, options, progress) as bench:
        for name in args.sets:
            problem = _data.problem(args.folder, name)
            print("\n" + report.data_line(problem))
            for n_threads in args.n_jobs:
                for ratio in ratios:
                    progress.cell = f"{name} {ratio:g} x{n_threads}"
                    cell = bench.measure(problem, 1.0 / (ratio * problem.lambda_max), n_threads)
                    progress.clear()
                    progress.done += 1
                    cells.append(cell)
                    print("\n" + report.table(cell, options.gaps))
                    print(_ratios(cell, options.gaps), flush=True)
                    _write(args, cells, used, options)
                    if cell.interrupted:
                        return 1
    print("\n" + report.summary(cells, options.gaps))
    if args.plot:
        plot.plot(cells, args.plot)
    return int(any(t.failure for cell in cells for t in cell.tracks if t.solver.key == report.OURS))


def _again(args):
    """Tables, means and picture of what was measured before; 0."""
    read = [_cells_read.read(path) for path in args.sources]
    cells = [cell for found, _ in read for cell in found]
    used = {t.solver.key: t.solver for cell in cells for t in cell.tracks}
    made = [*(f"- {text}" for _, text in read), ""]
    gaps = BenchOptions().gaps
    _common.write_markdown(args.markdown, markdown(made, cells, list(used.values()), gaps))
    print(report.summary(cells, gaps))
    if args.plot:
        plot.plot(cells, args.plot)
    return 0


def _ratios(cell, gaps):
    lines = []
    for gap in gaps:
        parts = []
        for rival in ("liblinear", None):
            value, bound, key = report.ratio(cell, gap, rival)
            if key is not None:
                parts.append(f"{bound}{_number(value)} x {'fastest peer ' if rival is None else ''}{key}")
        lines.append(f"  speed at gap {gap:.0e}: " + (", ".join(parts) or "nothing to compare with"))
    return "\n".join(lines)


def _number(value):
    return "-" if math.isnan(value) else f"{value:.3g}"


def _write(args, cells, used, options):
    if args.json:
        settings = {"gaps": options.gaps, "max_time": options.max_time, "repeats": options.repeats}
        settings["command"] = _common.command()
        json_output.write_json(args.json, json_output.as_dict(cells, used, settings))
    if args.markdown:
        made = _common.environment(used)
        _common.write_markdown(args.markdown, markdown(made, cells, used, options.gaps))


def markdown(made, cells, used, gaps):
    """Lines: where it was made, a table for each gap and number of threads, then the geometric means."""
    lines = ["# L1 logistic regression: seconds to a relative gap", "", *made]
    lines += ["No intercept, float64. `> t`: not reached by a fit of t seconds; `-`: not run.", ""]
    keys = [s.key for s in used if any(cell.track(s.key) for cell in cells)]
    titles = {s.key: s.title for s in used}
    for n_threads in dict.fromkeys(cell.n_threads for cell in cells):
        mine = [cell for cell in cells if cell.n_threads == n_threads]
        for gap in gaps:
            lines += [f"## Gap {gap:.0e}, n_jobs = {n_threads}", ""]
            columns = [
                "data, lambda / lambda_max",
                *(titles[k] for k in keys),
                "LIBLINEAR / ours",
                "fastest / ours",
            ]
            rows = [_row(cell, keys, gap) for cell in mine]
            lines += _common.markdown_table(columns, rows)
            for g, name, mean, n, bounded, slower in report.geometric_means(mine, [gap]):
                if n:
                    lines.append(
                        f"- gap {g:.0e}: {mean:.3g} times as fast as {name} (geometric mean of {n} cells). "
                        f"Ours is slower in {slower}; in {bounded} the time is a bound."
                    )
            lines.append("")
    return lines


def _row(cell, keys, gap):
    title = f"{cell.problem.name} {1.0 / (cell.C * cell.problem.lambda_max):.3g}"
    row = [title]
    for key in keys:
        track = cell.track(key)
        ran = track is not None and (track.rungs or track.stopped == "cut off")
        row.append(report.time_cell(cell, track, gap) if ran else "-")
    for rival in ("liblinear", None):
        value, bound, _ = report.ratio(cell, gap, rival)
        row.append(bound + _number(value))
    return row
