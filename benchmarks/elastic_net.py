"""The elastic net and the ridge against scikit-learn, glum, celer and skglm: time to a gap of 1e-6.

    python benchmarks/elastic_net.py --kind logistic            # L1LogisticOBA, all sets that are there
    python benchmarks/elastic_net.py --kind squares --sets leukemia,correlated --ratios 0.5 --strengths 1e-2
    python benchmarks/elastic_net.py --kind paths               # 50 penalties, at the defaults of both

METHOD. Every fit runs in its own child process on one thread, is killed after --limit seconds, and is
repeated if it is short. Times are processor seconds, which other processes disturb little. Each solver's
tolerances are tried from loose to tight. The first whose objective is within 1e-6 of the lowest found is
timed --rounds times in all, the solvers in turn; the median counts. The lowest includes a fit of ours at tol
1e-11 with a certified gap. Ours has no advantage: its tolerances are tried the same way. "default" is ours as
it comes, with its true gap. "inf": not within --limit. Strengths are parts of the penalty that keeps all
coefficients at zero where l1_ratio is 1.

Sets: "tuning" ones were used when the solver was made, "check" ones not. Generated sets have fixed seeds;
real ones are read from --data DIR or $SPARSEKIT_DATA. Numbers of +1 and -1 are what least squares fits on
sets of two classes.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
import _data
import _elastic_cells as cells
import _elastic_paths
import _weak_data
from threadpoolctl import threadpool_limits

TUNING = ("leukemia", "madelon", "a9a", "rcv1_binary")
GAP = 1e-6


def correlated(seed=5, n=20000, p=100):
    """A tall table whose neighbouring columns are correlated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    w = rng.standard_normal(p) * (rng.random(p) < 0.3)
    return X, X @ w + 3.0 * rng.standard_normal(n) + 2.0


def groups(seed=6, n=300, p=4000):
    """More columns than rows: groups of ten that share a factor, for which the elastic net was made."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, p // 10))
    X = np.repeat(factors, 10, axis=1) + 0.3 * rng.standard_normal((n, p))
    return X, factors[:, :10] @ rng.standard_normal(10) + rng.standard_normal(n)


def words(seed=7):
    """Tf-idf of made-up documents."""
    return _weak_data.text(8000, 20000, 60, seed=seed)


def genes(seed=8, n=150, p=3000):
    """Few rows of many columns that follow some factors."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 25))
    X = factors @ rng.standard_normal((25, p)) * 0.3 + rng.standard_normal((n, p))
    return X, factors[:, 0] - factors[:, 1] + 0.5 * rng.standard_normal(n)


def series(seed=9, n=4000, p=300):
    """Past values of a noisy series, and what comes next."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal(n + p)
    values = np.zeros(n + p)
    for t in range(2, n + p):
        values[t] = 1.2 * values[t - 1] - 0.3 * values[t - 2] + steps[t]
    X = np.lib.stride_tricks.sliding_window_view(values, p)[:n].copy()
    return X, values[p : p + n]


def table(seed=10):
    """Categories, one-hot encoded."""
    return _weak_data.one_hot(15000, 2000, seed=seed)


LOOKED_AT = {"correlated": correlated, "groups": groups, "words": words}
MADE = {**LOOKED_AT, "genes": genes, "series": series, "table": table}
CHECK = ("genes", "series", "table")
NAMES = (*TUNING, *MADE)


def load(name, kind, folder):
    """X and targets of a set: real numbers for squares where it has them, else -1 and 1."""
    if name in MADE:
        X, y = MADE[name]()
    else:
        problem = _data.problem(folder, name)
        X, y = problem.X, problem.y
    if kind == "logistic":
        y = np.where(y > np.median(y), 1.0, -1.0) if len(np.unique(y)) > 2 else y
    if name == "madelon":  # of raw counts, which coordinate descent and saga would never finish
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.asarray(y, dtype=np.float64)


def numbers(text):
    """Floats between commas."""
    return [float(part) for part in text.split(",")]


def parse(argv=None):
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--kind", choices=("logistic", "squares", "paths"), default="logistic")
    add("--sets", type=lambda text: text.split(","), metavar="A,...", help=f"of {','.join(NAMES)}")
    add("--ratios", type=numbers, default=[0.5, 0.1, 0.0], metavar="R,...", help="l1_ratio: .5,.1,0")
    add("--strengths", type=numbers, default=[1e-1, 1e-2, 1e-3, 1e-4], metavar="S,...")
    add("--peers", type=lambda text: text.split(","), metavar="A,...", help="names of solvers, or none")
    add("--limit", type=float, default=10.0, metavar="S", help="seconds of a fit (default: 10)")
    add("--rounds", type=int, default=3, metavar="N")
    add("--data", metavar="DIR", help="folder of the real sets")
    add("--csv", metavar="FILE", help="add the numbers to this file")
    args = parser.parse_args(argv)
    unknown = set(args.sets or ()) - set(NAMES)
    if unknown:
        parser.error(f"--sets: unknown {sorted(unknown)[0]!r}")
    return args


def main(argv=None):
    """Measure and print a row for each problem."""
    args = parse(argv)
    names, folder = args.sets or list(NAMES), None
    if set(names) - set(MADE):
        folder = _data.data_folder(args.data)
    if args.kind == "paths":
        return paths(args, names, folder)
    chosen = cells.solvers(args.kind)
    for solver in chosen:
        if solver.missing:
            print(f"Left out: {solver.name}, which is not installed")
    chosen = [s for s in chosen if not s.missing]
    chosen = [s for s in chosen if args.peers is None or s.name in ("ours", *args.peers)]
    print("\n".join(_common.environment([])))
    cells.warm(chosen)
    for name in names:
        X, y = load(name, args.kind, folder)
        shape = f"{X.shape[0]} x {X.shape[1]} {'sparse' if sparse.issparse(X) else 'dense'}"
        for ratio in args.ratios:
            for strength in args.strengths:
                problem = cells.Problem(name, args.kind, X, y, strength, ratio)
                row = cells.measure(problem, chosen, gap=GAP, limit=args.limit, rounds=args.rounds)
                times = "  ".join(f"{key} {value:.4g}" for key, value in row.items())
                print(f"{name} ({shape}) ratio {ratio:g} strength {strength:g}: {times}", flush=True)
                if args.csv:
                    write(args.csv, problem, row)
    return 0


def paths(args, names, folder):
    """Print a line for each set and ratio."""
    print("\n".join(_common.environment([])))
    for name in names:
        X, y = load(name, "squares", folder)
        for ratio in args.ratios:
            if ratio > 0.0:
                with threadpool_limits(1):
                    row = _elastic_paths.measure(X, y, ratio, args.rounds)
                times = "  ".join(f"{key} {value:.3g}" for key, value in row.items())
                print(f"{name} ratio {ratio:g}: {times}", flush=True)
    return 0


def write(path, problem, row):
    """A line for each solver."""
    role = "check" if problem.name in CHECK else "tuning"
    prefix = [problem.name, role, problem.kind, problem.ratio, problem.strength, problem.certified]
    with open(path, "a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([*prefix, name, value] for name, value in row.items())


if __name__ == "__main__":
    sys.exit(main())
