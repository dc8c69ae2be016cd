"""The comparison's picture: convergence curves, relative gap against time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .._storage.replacing import replacing
from .report import OURS
from .solver import REFERENCE_TOL


def fault_of_name(path):
    """What is wrong with the name of a picture's file, or None; needs matplotlib."""
    from matplotlib.backend_bases import FigureCanvasBase

    suffix = Path(path).suffix
    if suffix[1:].lower() in FigureCanvasBase.filetypes:
        return None
    known = " ".join(f".{kind}" for kind in sorted(FigureCanvasBase.filetypes))
    return f"{path}: {f'unknown kind of picture {suffix}' if suffix else 'has no suffix'}; known are {known}"


def _curve(cell, track):
    """Times in increasing order and the least gap reached by then, up to where F* itself is known."""
    points = sorted((r.median, max(cell.gap(r.objective), REFERENCE_TOL)) for r in track.rungs)
    times, gaps = np.array(points).T
    gaps = np.minimum.accumulate(gaps)
    end = int(np.argmin(gaps)) + 1
    return times[:end], gaps[:end]


def _label_times(ax):
    """Labels of the time axis that do not overlap: decades, or two or three numbers where there are few."""
    from matplotlib.ticker import MaxNLocator, NullFormatter

    low, high = ax.get_xlim()
    decades = math.log10(high / low)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))

    def inside(*parts):
        ticks = [part * 10.0**power for power in powers for part in parts]
        return [tick for tick in ticks if low <= tick <= high]

    ax.xaxis.set_minor_formatter(NullFormatter())  # labels between decades would overlap
    if decades >= 1.5 and len(inside(1)) >= 2:
        return
    # 3 of each decade, or 2 and 5, are far enough apart; in a narrow range equally distant numbers are
    ticks = inside(1, 3) if decades >= 0.9 else inside(1, 2, 5)
    if len(ticks) < 2 or decades <= 0.5:
        ticks = [tick for tick in MaxNLocator(2).tick_values(low, high) if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:.6g}" for tick in ticks])


def plot(cells, path):
    """Convergence curves of every cell, relative gap against seconds, log-log; needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cells = [cell for cell in cells if any(t.rungs for t in cell.tracks)]
    n_columns = min(3, max(1, len(cells)))
    n_rows = max(1, math.ceil(len(cells) / n_columns))
    # small panels with large text: three of them are read at the width of a phone
    figure = Figure(figsize=(2.3 * n_columns, 2.5 * n_rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
    keys = list(dict.fromkeys(t.solver.key for cell in cells for t in cell.tracks if t.rungs))
    lines = {}
    for ax, cell in zip(axes, cells):
        for track in cell.tracks:
            if not track.rungs:
                continue
            k = keys.index(track.solver.key)
            times, gaps = _curve(cell, track)
            (line,) = ax.loglog(
                times,
                gaps,
                marker="os^vDPX<>"[k % 9],
                markersize=4,
                linewidth=2.2 if track.solver.key == OURS else 1.2,
                color=f"C{k % 10}",
                zorder=3 if track.solver.key == OURS else 2,
            )
            lines[track.solver.title] = line
        lambda_ratio = 1.0 / (cell.C * cell.problem.lambda_max)
        title = f"{cell.problem.name}, $\\lambda$ = {lambda_ratio:.3g} $\\lambda_{{max}}$"
        ax.set_title(title + (f", {cell.n_threads} threads" if cell.n_threads > 1 else ""), fontsize=9)
        ax.set_ylim(REFERENCE_TOL, None)
        ax.grid(True, which="major", alpha=0.3)
        _label_times(ax)
        ax.set_xlabel("seconds")
    figure.supylabel("relative gap (F - F*) / F*", fontsize="medium")
    for ax in axes[len(cells) :]:
        ax.set_visible(False)
    if lines:
        figure.legend(
            lines.values(),
            lines.keys(),
            loc="outside lower center",
            ncols=min(len(lines), 2 * n_columns - 1),
            fontsize=9,
        )
    with replacing(path) as part:
        # by the name that the user gave: a link's file may have another ending
        figure.savefig(part, dpi=250, format=Path(path).suffix[1:].lower() or None)
