"""L1 logistic regression on real data: this package against its peers, by time to a given accuracy.

    python benchmarks/l1_logistic.py                          # every cell: data set x lambda x threads
    python benchmarks/l1_logistic.py --sets a9a,colon --n-jobs 1 --peers liblinear,skglm
    python benchmarks/l1_logistic.py --from a.json,b.json --markdown all.md    # one table of several runs
    python benchmarks/l1_logistic.py --what multinomial       # mnist and news20 against saga
    python benchmarks/l1_logistic.py --what statistics          # tables 2.2 and 2.3 of the OBA thesis

The data folder is --data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout. --json and
--markdown write the results; both are rewritten after every cell, so an interrupted run keeps its work.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
import _data

WHAT = ("cells", "multinomial", "statistics")


def _split(kind):
    return lambda text: [kind(part) for part in text.split(",") if part.strip()]


def parse(argv=None):
    """Command line."""
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add("--what", choices=WHAT, default="cells", help="what to measure (default: cells)")
    add("--data", metavar="DIR", help="folder of the .npz files")
    add("--sets", type=_split(str), help=f"data sets, of {','.join(_data.NAMES)} (default: all)")
    add("--lambda-ratio", type=_split(float), help="lambda / lambda_max (default: 0.1,0.01,0.001)")
    add("--n-jobs", type=_split(int), default=[1, 2], help="numbers of threads (default: 1,2)")
    add("--peers", type=_split(str), help="peers by key (default: all that are installed)")
    add("--repeats", type=int, default=3, help="least number of runs of deciding fits (default: 3)")
    add("--max-time", type=float, default=30.0, help="seconds for one solver in one cell (default: 30)")
    add("--json", metavar="FILE", help="write all numbers")
    add(
        "--from",
        dest="sources",
        type=_split(str),
        metavar="JSON,...",
        help="measure nothing: tables and --plot of what --json wrote, all files together (cells)",
    )
    add("--plot", metavar="FILE", help="write the convergence curves (cells, statistics)")
    args = parser.parse_args(argv)
    if args.sources and args.what != "cells":
        parser.error("--from: for --what cells alone")
    names = _data.MULTINOMIAL_NAMES if args.what == "multinomial" else _data.NAMES
    unknown = [name for name in args.sets or () if name not in names]
    if unknown:
        parser.error(f"--sets: unknown data set {unknown[0]!r}; known are {', '.join(names)}")
    args.sets = args.sets or list(names)
    args.folder = None if args.sources else _data.data_folder(args.data)
    return args


def main(argv=None):
    """Run what was asked for."""
    args = parse(argv)
    return importlib.import_module(f"_{args.what}").run(args)


if __name__ == "__main__":
    sys.exit(main())
