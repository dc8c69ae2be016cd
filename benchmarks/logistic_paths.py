"""L1 paths to equal accuracy: l1_logistic_path and lasso_path against what `sparsekit compare --path` runs.

    pip install pybiglasso adelie python-glmnet glmnet-rs skglm celer
    python benchmarks/logistic_paths.py                                    # dense cells, 100 penalties
    python benchmarks/logistic_paths.py --sets text_2k,one_hot_1000,a9a    # generated and real sets
    python benchmarks/logistic_paths.py --sets 5000x1000:0.5 --penalties 20 --markdown paths.md
    python benchmarks/logistic_paths.py --lasso                            # the labels as numbers

METHOD. One process, one thread, processor time. Penalties decrease from the largest one, which is left out,
to --end times it. Dense columns are standardised, with a free intercept. Sparse sets have no intercept, which
most solvers lack. Each solver is run at tighter and tighter settings. It is timed when all objectives along
the path exceed ours at a tight tolerance by at most --accuracy, relatively. "default" is ours at
its default tolerance. Real sets lie in --data DIR.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
import _weak_data
from scipy import sparse
from threadpoolctl import threadpool_limits

from sparsekit import l1_logistic_path, lasso_path
from sparsekit._compare import paths
from sparsekit._compare.problem import Problem

SHAPES = {"5000x1000": (5000, 1000, 1e-3), "1000x8000": (1000, 8000, 1e-2), "200000x50": (200_000, 50, 1e-3)}
DENSE = [f"{shape}:{correlation}" for shape in SHAPES for correlation in (0.0, 0.5, 0.9)]
DEFAULT_PEERS = ("pybiglasso", "adelie", "glmnet", "glmnet-rs", "liblinear", "skglm", "celer", "lasso")
COLUMNS = ("data", "default, s", "ours, s", "peer", "its s", "its excess", "times as fast", "remark")


def make_data(n, p, correlation, seed=0):
    """Standardised columns with a common part, and labels (-1, 1) of a twentieth of them and noise."""
    rng = np.random.default_rng([n, p, int(10 * correlation), seed])
    X = np.sqrt(1 - correlation) * rng.standard_normal((n, p))
    X += np.sqrt(correlation) * rng.standard_normal((n, 1))
    coef = np.zeros(p)
    coef[rng.choice(p, max(p // 20, 5), replace=False)] = rng.standard_normal(max(p // 20, 5))
    scores = X @ coef
    y = np.where(scores + scores.std() * rng.standard_normal(n) > 0, 1.0, -1.0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def make_problem(name, folder, seed, family="binomial"):
    """The problem of a name, and the weakest penalty as a part of the largest."""
    shape, _, correlation = name.partition(":")
    if shape in SHAPES:
        n, p, end = SHAPES[shape]
        X, y = make_data(n, p, float(correlation or 0.0), seed)
        return Problem(name, X, y, fit_intercept=True, family=family), end
    X, y = _weak_data.load(name, folder)
    return Problem(name, X, y, fit_intercept=not sparse.issparse(X), family=family), 1e-3


def rows_of(problem, end, args):
    """The rows of one problem, one a peer."""
    chosen = (*args.peers, "sparsekit")
    solvers = [one for one in paths.all_path_solvers(problem.family) if one.key in chosen]
    Cs = 1.0 / (problem.lambda_max * np.geomspace(1.0, end, args.penalties + 1)[1:])
    begin = time.process_time()
    if args.lasso:
        alphas = [problem.alpha(C) for C in Cs]
        lasso_path(problem.X, problem.y, alphas=alphas, fit_intercept=problem.fit_intercept)
    else:
        l1_logistic_path(problem.X, problem.y, Cs=Cs, fit_intercept=problem.fit_intercept)
    default = time.process_time() - begin
    own = None
    for run in paths.compare_paths(
        problem, solvers, args.penalties, end, accuracy=args.accuracy, max_time=args.max_time
    ):
        own = own or run
        if run is not own:
            times = "" if run.failure or own.failure else f"{run.seconds / own.seconds:.2f}"
            yield (
                problem.name, f"{default:.2f}", f"{own.seconds:.2f}", run.solver, f"{run.seconds:.2f}",
                f"{run.excess:.0e}", times, run.failure,
            )  # fmt: skip


def main(argv=None):
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = [*DENSE, *_weak_data.NAMES]
    add("--sets", type=lambda text: text.split(","), default=DENSE, help=f"of {', '.join(names)}")
    add("--peers", type=lambda text: text.split(","), default=DEFAULT_PEERS, help="keys of solvers")
    add("--lasso", action="store_true", help="least squares with the labels as numbers")
    add("--penalties", type=int, default=100, help="default: 100")
    add("--end", type=float, default=None, help="of the largest penalty; by default that of the set")
    add("--accuracy", type=float, default=paths.ACCURACY, help="largest relative excess (default: 1e-5)")
    add("--max-time", type=float, default=60.0, help="seconds after which a peer gets no tighter setting")
    add("--data", metavar="DIR", help="folder of the .npz files")
    add("--seed", type=int, default=0)
    add("--markdown", type=Path, help="write the table")
    args = parser.parse_args(argv)
    rows = []
    with threadpool_limits(1):
        for name in args.sets:
            family = "gaussian" if args.lasso else "binomial"
            problem, end = make_problem(name, args.data, args.seed, family)
            for row in rows_of(problem, args.end or end, args):
                print(" | ".join(row), flush=True)
                rows.append(row)
    _common.write_markdown(args.markdown, _common.markdown_table(COLUMNS, rows))


if __name__ == "__main__":
    main()
