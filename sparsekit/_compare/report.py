"""What the comparison prints: progress, tables and summary."""

from __future__ import annotations

import math
import os
import platform
import sys
import textwrap

from . import show_versions

OURS = "sparsekit"
TIMES = "t(g) is the median time in seconds to a relative gap (F - F*) / F* of g"


class Progress:
    """A line on stderr that says what is done and rewrites itself; nothing if that is no terminal.

    Parameters
    ----------
    total : int
        Number of cells.
    """

    def __init__(self, total):
        self.total, self.done, self.cell = total, 0, ""

    def __call__(self, text=""):
        """Show what is being done now."""
        self._show(f"{self.done}/{self.total} {self.cell} {text}"[:110].rstrip())

    def clear(self):
        """Wipe the line, so that results can be printed."""
        self._show("")

    def _show(self, line):
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)  # erases the line before


def machine():
    """Processor, number of CPUs this process may use, load and interpreter; no host name."""
    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            cpu = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), cpu)
    except OSError:
        pass  # not Linux: the name that platform gives has to do
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    return {"cpu": cpu, "n_cpus": usable, "load": load, "python": platform.python_version()}


def versions(solvers):
    """Version of every installed distribution that takes part, and of the array libraries."""
    return show_versions.versions(sorted({s.package for s in solvers} | {"numpy", "scipy", "numba"}))


def header(solvers, problem, times=TIMES):
    """First lines of the output: problem (one of those compared), machine, versions."""
    here = machine()
    load = "" if here["load"] is None else f", load {here['load'][0]:.2f}"
    installed = ", ".join(f"{k} {v}" for k, v in versions(solvers).items() if v)
    predictor = "z_i = x_i.w" + (" + b, b not penalised" if problem.fit_intercept else "")
    lines = [
        f"Problem: minimise {problem.formula}, {predictor}; float64",
        f"Machine: {here['cpu']}, {here['n_cpus']} CPUs{load}; Python {here['python']}",
        f"Versions: {installed}",
        f"Times: {times}",
    ]
    if not problem.fit_intercept:
        lines.append(
            "No intercept: this is the problem that every solver can state (LIBLINEAR and celer have no "
            "unpenalised intercept); --intercept adds one."
            if problem.has_classes
            else "No intercept, neither here nor in other solvers; --intercept adds one."
        )
    return "\n".join(lines)


def data_line(problem):
    """Name and shape of a problem's data, and what a reader of the results must know about it."""
    return f"Data: {'; '.join([_shape(problem), *problem.notes])}"


def _shape(problem):
    n, p = problem.X.shape
    kind = f"sparse, {problem.X.nnz} stored" if problem.is_sparse else "dense"
    return f"{problem.name} ({n} x {p}, {kind})"


def left_out_line(cells, solvers):
    """Who was not measured and why, one line, or None where all were."""
    reasons: dict[str, list[str]] = {}
    refused = {solver.key: (solver, reason) for cell in cells for solver, reason in cell.left_out}
    for solver, reason in refused.values():
        reasons.setdefault(reason, []).append(solver.title)
    absent = [s for s in solvers if s.missing() is not None]
    if absent:
        command = f"not installed: pip install {', '.join(dict.fromkeys(s.package for s in absent))}"
        reasons[command] = [s.title for s in absent]
    listed = [f"{', '.join(titles)} ({reason})" for reason, titles in reasons.items()]
    return f"Left out: {'; '.join(listed)}" if listed else None


def fold(text, width):
    """Text whose lines are no longer than the width, None for any; what continues a line is indented."""
    if width is None:
        return text
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.splitlines():
        wrapper.subsequent_indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines.append(wrapper.fill(line))
    return "\n".join(lines)


def seconds(value):
    """Seconds with three significant digits."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def time_cell(cell, track, gap):
    """Time to a gap as text; "> t" where no fit got there, t being the longest one tried."""
    value = cell.time_to(track, gap)
    if math.isfinite(value) or cell.interrupted:  # a solver that was interrupted was not given its time
        return seconds(value)
    return "-" if math.isnan(track.longest) else f"> {seconds(track.longest)}"


def cell_title(cell):
    """Name, shape and position of one cell."""
    problem = cell.problem
    ratio = 1.0 / (cell.C * problem.lambda_max)
    threads = f"{cell.n_threads} thread" + ("s" if cell.n_threads > 1 else "")
    name, value = problem.strength(cell.C)
    penalty = f"{name} = {value:.6g} (lambda = {ratio:.3g} lambda_max)"
    return f"{_shape(problem)}, {penalty}, {threads}"


def table(cell, gaps, width=None):
    """One cell as text: a line for each solver that solves the problem, then notes folded to the width."""
    lines = _aligned(*_columns(cell, gaps))
    notes = [
        f"  note: {track.solver.title} failed on the way: {track.failure}"
        for track in cell.tracks
        if track.failure and track.best is not None
    ]
    if math.isfinite(cell.best_objective):
        certified = f", certified to {max(cell.certified_gap, 0):.0e} by its duality gap"
        notes.append(
            f"  best objective {cell.best_objective:.10g}"
            + ("" if math.isnan(cell.certified_gap) else certified)
        )
    late = cell.out_of_time(min(gaps))
    if late:
        titles = ", ".join(track.solver.title for track in late)
        notes.append(f"  stopped by the limit of {seconds(cell.max_time)} s for a solver: {titles}")
    if cell.interrupted:
        notes.append("  interrupted: what is shown was measured before")
    return "\n".join(fold(text, width) for text in [cell_title(cell), lines, *notes])


def _columns(cell, gaps):
    """Names of a table's columns, and its rows; solvers with long titles are called as by --peers."""
    rows = []
    for track in cell.tracks:
        title = track.solver.key if "(" in track.solver.title else track.solver.title
        best = track.best
        if best is None:
            rows.append([title, _why_no_fit(track)])
            continue
        rows.append(
            [
                title,
                f"{cell.gap(best.objective):.1e}",
                *(time_cell(cell, track, g) for g in gaps),
                str(best.nnz),
                *map(_number, cell.scores(track).values()),
            ]
        )
    times = [f"t({g:.0e})" for g in gaps]
    return ["solver", "gap", *times, "nonzeros", *cell.problem.scores.values()], rows


def _why_no_fit(track):
    if track.failure:
        return f"failed: {track.failure}"
    if not math.isnan(track.cut_off):
        return f"no fit done in {seconds(track.cut_off)} s"
    return "not run"


def _number(value):
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"


def _aligned(columns, rows):
    """Columns aligned by width; a row with two fields is a name and a remark that spans the rest."""
    full = [r for r in rows if len(r) == len(columns)]
    widths = [max(len(r[i]) for r in [columns, *full]) for i in range(len(columns))]
    widths[0] = max([widths[0], *(len(r[0]) for r in rows)])
    lines = []
    for row in [columns, *rows]:
        cells = [row[0].ljust(widths[0])]
        if len(row) == len(columns):
            cells += [text.rjust(w) for text, w in zip(row[1:], widths[1:])]
        else:
            cells.append(row[1])
        lines.append("  " + "  ".join(cells).rstrip())
    lines.insert(1, "  " + "-" * (len(lines[0]) - 2))
    return "\n".join(lines)


def ratio(cell, gap, rival=None):
    """How many times faster this package is in one cell.

    Parameters
    ----------
    cell : Cell
    gap : float
    rival : str, optional
        Key of the other solver; by default the fastest of all others.

    Returns
    -------
    value : float
        Rival's time divided by ours; nan if either did not run.
    bound : {"", ">", "<"}
        Whether it is a bound only, because the rival (">") or this package ("<") did not get there.
    key : str or None
        The rival.
    """
    ours = cell.track(OURS)
    others = [t for t in cell.tracks if t.solver.key != OURS and rival in (None, t.solver.key)]
    others = [t for t in others if not math.isnan(t.longest)]
    if ours is None or math.isnan(ours.longest) or not others:
        return float("nan"), "", None
    # where no other solver reached it, the shortest bound is the one that is safe to claim
    best = min(others, key=lambda t: (cell.time_to(t, gap), t.longest))
    theirs, mine = cell.time_to(best, gap), cell.time_to(ours, gap)
    bound = ""
    if not math.isfinite(theirs):
        theirs, bound = best.longest, ">"
    if not math.isfinite(mine):
        if bound:
            return float("nan"), "", best.solver.key
        mine, bound = ours.longest, "<"
    return theirs / mine, bound, best.solver.key


def geometric_means(cells, gaps):
    """Rows (gap, rival, mean ratio, number of cells, cells where a bound was used, slower cells).

    Cells that were interrupted do not count.
    """
    rows = []
    baseline = cells[0].problem.baseline
    for gap in gaps:
        for rival, name in (baseline, (None, "fastest peer")):
            found = [ratio(cell, gap, rival) for cell in cells if not cell.interrupted]
            values = [(v, b) for v, b, _ in found if math.isfinite(v) and v > 0]
            mean = math.exp(sum(math.log(v) for v, _ in values) / len(values)) if values else float("nan")
            bounded = sum(1 for _, b in values if b)
            slower = sum(1 for v, _ in values if v < 1)
            rows.append((gap, name, mean, len(values), bounded, slower))
    return rows


def summary(cells, gaps):
    """Last lines: what the times leave out, and how many times faster than LIBLINEAR and the fastest peer."""
    first_fits = {}
    for track in (t for cell in cells for t in cell.tracks if t.solver.compiles and t.rungs):
        title = track.solver.title
        first_fits[title] = max(first_fits.get(title, 0.0), track.first_fit)
    lines = [
        f"{title}: first fit {value:.2g} s (imports, compilation), on a few rows; the times do not count that"
        for title, value in first_fits.items()
    ]
    ours = cells[0].problem.ours
    for gap, name, mean, n, bounded, slower in geometric_means(cells, gaps):
        if not n:
            lines.append(f"Relative gap {gap:.0e}: no cell where {ours} and {name} can be compared")
            continue
        text = f"Relative gap {gap:.0e}: {ours} is {mean:.3g} times as fast as {name}"
        text += f" (geometric mean of {n} cell{'s' if n > 1 else ''}"
        text += f", slower in {slower}" if slower else ""
        text += f", {bounded} of them bounds because one solver did not get there" if bounded else ""
        lines.append(text + ")")
    return "\n".join(lines)
