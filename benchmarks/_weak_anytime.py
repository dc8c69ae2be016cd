"""How low is the objective after so many seconds? Ours by its iterates, LIBLINEAR by runs at several
tolerances.

LIBLINEAR shows no iterates: each tolerance is a whole fit. Its curve is therefore that of the best choice of
a tolerance in advance. Ours is the iterates of two fits, at the default tolerance and at one a ten-thousandth
of it; the lower of both at each moment.
"""

from __future__ import annotations

import _common
import numpy as np
from _weak_data import load, role
from _weak_fits import NONE, Case, liblinear, median, oba
from _weak_report import figure_of, finish

from sparsekit import L1LogisticOBA
from sparsekit._compare.peers import Liblinear, Sparsekit

GAPS = tuple(10.0**-k for k in range(1, 9))
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(1, 15))
# of LIBLINEAR
MAX_ITER = 10000
# second tolerance of ours, in units of the default
TIGHT = 1e-4
PLOT_FLOOR = 1e-9


def curves(case, C, repeats, max_time):
    """{solver: [(seconds, gap)]}, the gap falling."""
    case.refer(C, 10 * max_time)
    default = L1LogisticOBA().tol
    mine = {tol: [] for tol in (default, TIGHT * default)}
    theirs = {tol: [] for tol in TOLERANCES}
    for _ in range(repeats):
        for tol, runs in mine.items():
            runs.append(oba(case.ours, C, watch=True, tol=tol, max_time=max_time))
            case.lower(case.ours, C, min(value for _, value in runs[-1].steps))
        for tol, runs in theirs.items():
            # the time grows with the accuracy: beyond the limit no tighter one is tried
            if any(r.seconds > max_time for t, rs in theirs.items() if t > tol for r in rs):
                break
            runs.append(liblinear(case, C, tol=tol, max_iter=MAX_ITER))
    ours = [
        (median(steps[k][0] for steps in runs), runs[0][k][1])
        for runs in ([run.steps for run in rs] for rs in mine.values())
        for k in range(min(map(len, runs)))
    ]
    other = [(median(r.seconds for r in runs), runs[-1].objective) for runs in theirs.values() if runs]
    return {
        "ours": _falling(case, case.ours, C, ours),
        "liblinear": _falling(case, case.liblinears, C, other),
    }


def _falling(case, problem, C, points):
    found, lowest = [], np.inf
    for seconds, objective in sorted(points):
        gap = case.gap(problem, C, objective)
        if gap < lowest:
            lowest = gap
            found.append((seconds, gap))
    return found


def first(curve, gap):
    """Seconds until the gap; inf if never."""
    return next((seconds for seconds, value in curve if value <= gap), np.inf)


def anytime(args, names, folder):
    """Measure, print a table for each set, kind of intercept and C, and draw."""
    used = [Liblinear(), Sparsekit()]
    lines, drawn = ["# The lowest objective by time", "", *_common.environment(args, used)], []
    for name in names:
        X, y = load(name, folder)
        for intercept in args.intercept:
            case = Case(name, X, y, intercept)
            for C in sorted(args.C):
                found = curves(case, C, args.repeats, args.max_time)
                rows = []
                for gap in GAPS:
                    ours, theirs = (first(found[key], gap) for key in ("ours", "liblinear"))
                    known = np.isfinite(ours) and np.isfinite(theirs)
                    rows.append(
                        [
                            f"{gap:.0e}",
                            f"{ours:.3g}",
                            f"{theirs:.3g}",
                            f"{theirs / ours:.3g}" if known else "-",
                        ]
                    )
                title = f"{name} ({role(name)}), intercept: {intercept}, C = {C:g}"
                table = [
                    f"## {title}",
                    "",
                    *_common.markdown_table(["gap", "ours, s", "LIBLINEAR, s", "ratio"], rows),
                ]
                lines += table
                drawn.append((f"{name}, C = {C:g}" + ("" if intercept == NONE else f", {intercept}"), found))
                print("\n".join(table), flush=True)
                _common.write_markdown(args.markdown, lines)
                if args.plot:
                    _plot(drawn, args.plot)


def _plot(drawn, path):
    figure, axes = figure_of(len(drawn))
    lines = {}
    for ax, (title, found) in zip(axes, drawn):
        for key, label, color, width in (
            ("ours", "L1LogisticOBA", "C0", 2.2),
            ("liblinear", "LIBLINEAR", "C1", 1.4),
        ):
            seconds, gaps = np.array(found[key]).T
            # the answer of a moment holds until there is a better one
            (lines[label],) = ax.loglog(
                seconds, np.maximum(gaps, PLOT_FLOOR), color=color, linewidth=width, marker="o", markersize=3,
                drawstyle="steps-post",
            )  # fmt: skip
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("time (s)")
    axes[0].set_ylabel("relative gap (F - F*) / F*")
    finish(figure, axes, len(drawn), lines, path)
