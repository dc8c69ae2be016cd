"""L1 logistic regression from strong to very weak penalties against LIBLINEAR, C from 1e-3 to 1e4.

    python benchmarks/weak_penalties.py --csv all.csv          # generated sets, and real ones if there
    python benchmarks/weak_penalties.py --sets one_hot_1000,a9a --C 1,100 --intercept none --peers skglm,blitz
    python benchmarks/weak_penalties.py --from a.csv,b.csv --plot time.png    # time against C

METHOD. LIBLINEAR is scikit-learn's LogisticRegression(solver="liblinear") with an L1 penalty, at its defaults
(tol 1e-4, max_iter 100); ours is L1LogisticOBA at its defaults. Both in one process on one thread, in turn,
medians of --repeats runs (short fits: up to 7). The times are of whole calls of fit on float64, CSR or
C-ordered. Objectives are computed here in float64 for all. The gap is (F - F*) / F*, where F* is the lowest
objective found. A reference of ours at tol 1e-11 is among them; its duality gap is the column "certified".
"by its bound" is what the default fit's own dual_gap_ says.

"ours to that gap" is the time until an iterate of ours is as close to its optimum as LIBLINEAR's answer is to
its own. A callback stores the iterates; its time is subtracted. A gap below 1e-10 counts as 1e-10. If the
default tol stops earlier, one of the runs with tol times 1e-2, 1e-4 and 1e-6 is timed. The same holds for
"ours to 1e-6". A LIBLINEAR that took longer than --max-time is not run at weaker penalties of that set.

Intercepts: "none"; "penalised", as LIBLINEAR's, ours with a column of ones: the same problem; "free", both at
their defaults. The last are two problems, so each is compared with its own optimum. The column
liblinear_gap_of_free_problem has the cost of LIBLINEAR's penalty on the intercept. Peers (--peers, default
all that are installed, but for saga) run on our problem in their own processes. They go from loose to tight
tolerances, for --peer-time seconds in all. Theirs is the time of the loosest fit within 1e-6.

Sets: the solver's defaults were chosen on "tuning"; "check" are the others. Means are given for both. Only
those of "check" say what to expect elsewhere. Generated sets have fixed seeds; the real ones are read from
--data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout, where there is one.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
import _data
import _weak_data
import _weak_report
from _weak_cells import GAP, measure
from _weak_fits import FREE, INTERCEPTS, NONE, Case

from sparsekit._compare import peers
from sparsekit._compare.engine import Bench, BenchOptions

DEFAULT_C = tuple(float(f"{c:.3g}") for c in np.logspace(-3, 4, 15))
# saga is thousands of times slower here, and would get all of --peer-time in every cell
LEFT_OUT = ("sparsekit", "liblinear", "saga")


def _split(kind):
    return lambda text: [kind(part) for part in text.split(",") if part.strip()]


def parse(argv=None):
    """Command line."""
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add(
        "--sets",
        type=_split(str),
        metavar="A,B,...",
        help=f"of {','.join(_weak_data.NAMES)} (default: all there are)",
    )
    add("--role", choices=(_weak_data.TUNING, _weak_data.CHECK), help="only the sets of this role")
    add("--data", metavar="DIR", help="folder of the real sets")
    add(
        "--C",
        type=_split(float),
        default=list(DEFAULT_C),
        metavar="C,...",
        help="default: 15 from 1e-3 to 1e4",
    )
    add("--intercept", type=_split(str), default=[NONE, FREE], metavar="A,...",
        help=f"of {','.join(INTERCEPTS)} (default: none,free)")  # fmt: skip
    add(
        "--peers",
        type=_split(str),
        metavar="A,...",
        help="other solvers by key, or none (default: all but saga)",
    )
    add(
        "--peer-time",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds for one of them in one cell (default: 5)",
    )
    add("--repeats", type=int, default=3, metavar="N", help="least number of runs (default: 3)")
    add(
        "--max-time", type=float, default=30.0, metavar="S", help="seconds of a fit, see METHOD (default: 30)"
    )
    parser.add_argument(
        "--reference-time",
        type=float,
        metavar="S",
        help="seconds of the fit that finds the optimum (default: ten times --max-time)",
    )
    add("--csv", metavar="FILE", help="write all numbers, after every set and kind of intercept")
    add("--from", dest="sources", type=_split(str), metavar="CSV,...",
        help="measure nothing: tables and --plot of what was written, all files together")  # fmt: skip
    add("--plot", metavar="FILE", help="time against C, a panel for a set")
    args = parser.parse_args(argv)
    for option, values, known in (
        ("sets", args.sets or (), _weak_data.NAMES),
        ("intercept", args.intercept, INTERCEPTS),
        ("peers", args.peers or (), [s.key for s in peers.all_solvers()] + ["none"]),
    ):
        unknown = [value for value in values if value not in known]
        if unknown:
            parser.error(f"--{option}: unknown {unknown[0]!r}; known are {', '.join(known)}")
    return args


def chosen_sets(args):
    """Names of the sets, and the folder of the real ones; all that are there if none is named."""
    names, folder = args.sets or list(_weak_data.NAMES), None
    if any(name not in _weak_data.GENERATED for name in names):
        try:
            folder = _data.data_folder(args.data)
        except SystemExit as error:
            if args.sets:
                raise
            print(f"Generated sets only: {error}")
            names = list(_weak_data.GENERATED)
    if not args.sets and folder is not None:
        names = [n for n in names if n in _weak_data.GENERATED or (folder / f"{n}.npz").is_file()]
    return [n for n in names if args.role in (None, _weak_data.role(n))], folder


def chosen_peers(args):
    """Solvers against LIBLINEAR and ours that are asked for and installed; says once which are not."""
    if args.peers == ["none"]:
        return []
    wanted = [s for s in peers.all_solvers() if s.key not in LEFT_OUT[:2]]
    wanted = [s for s in wanted if s.key not in LEFT_OUT] if args.peers is None else wanted
    wanted = [s for s in wanted if args.peers is None or s.key in args.peers]
    absent = [f"{s.title} ({s.missing()})" for s in wanted if s.missing()]
    if absent:
        print("Left out: " + "; ".join(absent))
    return [s for s in wanted if not s.missing()]


def cells(args):
    """Measure and print a row for each cell; the rows."""
    options = BenchOptions(gaps=(GAP,), stop_gap=GAP, max_time=args.peer_time)
    with Bench(chosen_peers(args), options) as bench:
        return _cells(args, bench)


def _cells(args, bench):
    names, folder = chosen_sets(args)
    rows = []
    for name in names:
        X, y = _weak_data.load(name, folder)
        for intercept in args.intercept:
            case, slow = Case(name, X, y, intercept), False
            print("\n" + _weak_report.heading(case), flush=True)
            for C in sorted(args.C):
                row = measure(
                    case,
                    C,
                    repeats=args.repeats,
                    max_time=args.max_time,
                    reference_time=args.reference_time,
                    bench=bench if bench.solvers else None,
                    skip_liblinear=slow,
                )
                slow |= row.get("liblinear_seconds", 0.0) > args.max_time
                rows.append(row)
                print(_weak_report.line(row), flush=True)
            write(args.csv, rows)
    return rows


def write(path, rows):
    """The rows as CSV: empty where nothing was measured, inf where a solver did not get there."""
    if not path:
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)


def read(path):
    """The rows of such a file."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = [{k: v for k, v in row.items() if v != ""} for row in csv.DictReader(stream)]
    return [{k: _number(v) for k, v in row.items()} for row in rows]


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def main(argv=None):
    """Run what was asked for."""
    args = parse(argv)
    rows = [row for path in args.sources for row in read(path)] if args.sources else cells(args)
    measured = {*LEFT_OUT[:2], *(name.removesuffix("_seconds") for row in rows for name in row)}
    used = [s for s in peers.all_solvers() if s.key in measured]
    # what was read was measured elsewhere or with other versions, which its own tables name
    made = [f"Of {', '.join(args.sources)}.", ""] if args.sources else _common.environment(used)
    lines = ["# From strong to very weak penalties", "", *made]
    lines += _weak_report.tables(rows)
    print("\n" + "\n".join(_weak_report.means(rows)))
    _common.write_markdown(args.markdown, lines)
    if args.plot:
        _weak_report.plot(rows, args.plot, args.sets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
