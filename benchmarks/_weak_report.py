"""Tables, means and picture of ``weak_penalties.py``."""

from __future__ import annotations

import math

import _common
import numpy as np
from _weak_cells import GAP, fastest, ratios
from scipy import sparse

COLUMNS = (
    "C", "lambda / lambda_max", "LIBLINEAR, s", "its gap", "ours to that gap, s", "ratio", "ours, s",
    "its gap", "by its bound", "ratio", "ours to 1e-6, s", "fastest peer to 1e-6, s", "ratio", "certified",
)  # fmt: skip
PANELS = 5


def heading(case):
    """Name and shape of a set, the kind of intercept, and the columns."""
    n, p = case.X.shape
    kind = f"sparse, {case.X.nnz} stored" if sparse.issparse(case.X) else "dense"
    return f"{case.name} ({n} x {p}, {kind}), intercept: {case.intercept}\n  " + " | ".join(COLUMNS)


def _text(value, digits=3):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return "not reached" if value == math.inf else f"{value:.{digits}g}"


def cells_of(row):
    """The row's fields as text."""
    ratio, (key, seconds) = ratios(row), fastest(row)
    warned = " (stopped)" if str(row.get("liblinear_warned")) == "True" else ""
    mine = " (stopped)" if str(row.get("ours_warned")) == "True" else ""
    return [
        f"{row['C']:g}",
        f"{row['lambda_ratio']:.1e}",
        _text(row.get("liblinear_seconds")),
        _gap(row.get("liblinear_gap")) + warned,
        _text(row.get("ours_to_liblinear_seconds")),
        _text(ratio["to its gap"]),
        _text(row["ours_seconds"]),
        _gap(row["ours_gap"]) + mine,
        _gap(row["ours_dual_gap"]),
        _text(ratio["default"]),
        _text(row["ours_to_gap_seconds"]),
        "-" if key is None else f"{_text(seconds)} {key}",
        _text(ratio["peer"]),
        _gap(row.get("certified")),
    ]


def _gap(value):
    return "-" if value is None or math.isnan(value) else f"{value:.0e}"


def line(row):
    """One cell for the terminal."""
    return "  " + " | ".join(cells_of(row))


def groups(rows, *names):
    """Rows by the values of these columns, in the order of their appearance."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def tables(rows):
    """Markdown: the means, then a table for each set and kind of intercept."""
    lines = [*means(rows), "", "(stopped): ended with a ConvergenceWarning.", ""]
    for (name, intercept), mine in groups(rows, "data", "intercept").items():
        lines += [f"## {name} ({mine[0]['role']}), intercept: {intercept}", ""]
        lines += _common.markdown_table(COLUMNS, [cells_of(row) for row in mine])
    return lines


def means(rows):
    """Geometric means of the ratios by role and kind of intercept, and in how many cells ours is slower.

    A cell counts where both times are known: not where LIBLINEAR was not run or no peer got there.
    """
    lines = []
    for (role, intercept), mine in groups(rows, "role", "intercept").items():
        where = f"- {role} sets, intercept {intercept}:"
        found = [ratios(row) for row in mine]
        for key, title in (
            ("default", "LIBLINEAR's time / ours, both at their defaults"),
            ("to its gap", "LIBLINEAR's time / ours to the same gap"),
            ("peer", f"fastest other peer's time / ours, both to {GAP:g}"),
        ):
            values = [f[key] for f in found if np.isfinite(f[key])]
            if values:
                mean, slower = np.exp(np.mean(np.log(values))), sum(v < 1 for v in values)
                span = f"{len(values)} cells, from {min(values):.3g} to {max(values):.3g}"
                lines.append(
                    f"{where} {title}: {mean:.3g} (geometric mean of {span}; ours slower in {slower})"
                )
        # the accuracy at the defaults, with its time
        gaps = [f"ours {max(row['ours_gap'] for row in mine):.0e}"]
        theirs = [row["liblinear_gap"] for row in mine if "liblinear_gap" in row]
        gaps += [f"LIBLINEAR {max(theirs):.0e}"] if theirs else []
        lines.append(f"{where} largest gap at the defaults: {', '.join(gaps)}")
        missed = sum(row["ours_to_gap_seconds"] == math.inf for row in mine)
        if missed:
            lines.append(f"{where} ours did not get to {GAP:g} in {missed} cells")
    return lines


def figure_of(n_panels):
    """A figure of panels in a row (more where there are many), and the panels' axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_rows = math.ceil(n_panels / PANELS)
    n_columns = math.ceil(n_panels / n_rows)
    figure = Figure(figsize=(3.4 * n_columns, 3.2 * n_rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False).ravel()


def finish(figure, axes, n_panels, lines, path):
    """Hide empty panels, add the legend, write."""
    from matplotlib.ticker import NullFormatter

    for ax in axes[:n_panels]:
        ax.grid(True, which="major", alpha=0.3)
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            if np.ptp(np.log10(limits)) > 0.8:
                axis.set_minor_formatter(NullFormatter())  # labels between decades would overlap
    for ax in axes[n_panels:]:
        ax.set_visible(False)
    n_columns = min(len(lines), max(2, n_panels - 1))
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=n_columns, fontsize=9)
    figure.savefig(path, dpi=130)


def plot(rows, path, names=None):
    """Times at the defaults, and of ours to LIBLINEAR's gap, against C, log-log: a panel a set."""
    there = list(dict.fromkeys(row["data"] for row in rows))
    names = [n for n in names or there[:PANELS] if n in there]
    intercepts = list(dict.fromkeys(row["intercept"] for row in rows))
    figure, axes = figure_of(len(names))
    lines = {}
    for ax, name in zip(axes, names):
        for intercept, style in zip(intercepts, ("-", "--", ":")):
            mine = [row for row in rows if row["data"] == name and row["intercept"] == intercept]
            for key, title, color, width in (
                ("ours_seconds", "L1LogisticOBA, certified", "C0", 2.2),
                ("ours_to_liblinear_seconds", "L1LogisticOBA to LIBLINEAR's gap", "C2", 1.4),
                ("liblinear_seconds", "LIBLINEAR", "C1", 1.4),
            ):
                points = [(row["C"], row[key]) for row in mine if key in row]
                if points:
                    label = f"{title}, intercept: {intercept}"
                    (lines[label],) = ax.loglog(
                        *zip(*points), style, color=color, linewidth=width, marker="o", markersize=3
                    )
        ax.set_title(
            f"{name} ({mine[0]['n_samples']:.0f} x {mine[0]['n_features']:.0f})" if mine else name, fontsize=9
        )
        ax.set_xlabel("C")
    axes[0].set_ylabel("time of a fit at the defaults (s)")
    finish(figure, axes, len(names), lines, path)
