"""Choosing C as users do, ours against scikit-learn's LIBLINEAR, both at their defaults.

    python benchmarks/choose_C.py                               # generated sets, and real ones where they are
    python benchmarks/choose_C.py --sets text_10k,a9a --repeats 5 --markdown choose_C.md
    python benchmarks/choose_C.py --what search --sets real --rows 10000     # the data folder, large sets cut

METHOD. Each in turn in one process on one thread, medians of --repeats runs of the whole call:

- search: GridSearchCV over C = logspace(-2, 2, 9), 3 folds, refit included, of
  LogisticRegression(solver="liblinear") with an L1 penalty and of L1LogisticOBA, without and within
  shared_fits(); score is best_score_, the mean accuracy.
- cv: LogisticRegressionCV(solver="liblinear") and L1LogisticOBACV with the same nine values and folds.
- path: 50 values from lambda_max to --end times it, without an intercept. A fit of LIBLINEAR for each, and
  one call of l1_logistic_path. "largest gap" is that of the worst value to the lowest objective found, with a
  path at tol 1e-10 among them. `logistic_paths.py` has the times to one accuracy.

The intercept is fitted in the first two, as both do by default: LIBLINEAR's is penalised. Sets and
roles are those of weak_penalties.py.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
import _weak_data
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits
from weak_penalties import chosen_sets

from sparsekit import L1LogisticOBA, L1LogisticOBACV, l1_logistic_path, shared_fits
from sparsekit._compare.peers import Liblinear, Sparsekit, sklearn_l1
from sparsekit._compare.problem import Problem

CS = np.logspace(-2, 2, 9)
FOLDS = 3
# penalties of a path
N_LAMBDAS = 50
# tolerance of the reference solution
REFERENCE_TOL = 1e-10
COLUMNS = (
    "data",
    "what",
    "LIBLINEAR, s",
    "ours, s",
    "ratio",
    "score of LIBLINEAR",
    "of ours",
    "its C",
    "our C",
)
PATH_COLUMNS = ("data", "LIBLINEAR, s", "ours, s", "ratio", "largest gap of LIBLINEAR", "of ours")


def _liblinear(**settings):
    return LogisticRegression(
        solver="liblinear", random_state=0, **sklearn_l1(Liblinear().version), **settings
    )


def _liblinear_cv(folds):
    l1 = sklearn_l1(Liblinear().version)
    l1 = {"l1_ratios": (1.0,)} if "l1_ratio" in l1 else l1
    return LogisticRegressionCV(Cs=CS, cv=folds, solver="liblinear", random_state=0, **l1)


def _best_of_cv(model):
    """Best mean score and its C, from the scores of the class that scikit-learn keeps."""
    scores = model.scores_
    scores = next(iter(scores.values())) if isinstance(scores, dict) else scores
    mean = np.asarray(scores).reshape(FOLDS, -1).mean(axis=0)
    return float(mean.max()), float(np.ravel(model.C_)[0])


def searches(X, y):
    """(LIBLINEAR's call, {what: ours}) of each search, each call returning its best score and C."""
    folds = StratifiedKFold(FOLDS)

    def grid(estimator):
        found = GridSearchCV(estimator, {"C": CS}, cv=folds).fit(X, y)
        return float(found.best_score_), float(found.best_params_["C"])

    def shared_grid():
        with shared_fits():
            return grid(L1LogisticOBA())

    def ours():
        model = L1LogisticOBACV(Cs=CS, cv=folds).fit(X, y)
        return float(model.mean_score_.max()), float(model.C_)

    grids = {"GridSearchCV": lambda: grid(L1LogisticOBA()), "the same with shared_fits": shared_grid}
    yield lambda: grid(_liblinear()), grids
    yield lambda: _best_of_cv(_liblinear_cv(folds).fit(X, y)), {"its own CV": ours}


def search_rows(name, X, y, repeats):
    """Rows of the table of searches."""
    for theirs, ours in searches(X, y):
        (slow, *seconds), (its, *results) = in_turn([theirs, *ours.values()], repeats)
        for what, fast, own in zip(ours, seconds, results):
            scores, best = zip(its, own)
            times = [f"{slow:.3g}", f"{fast:.3g}", f"{slow / fast:.3g}"]
            yield [name, what, *times, *(f"{s:.5f}" for s in scores), *(f"{C:.3g}" for C in best)]


def in_turn(calls, repeats):
    """Median seconds and last result of each call."""
    seconds, results = [[] for _ in calls], [None] * len(calls)
    for _ in range(repeats):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            results[k] = call()
            seconds[k].append(time.perf_counter() - start)
    return [float(np.median(s)) for s in seconds], results


def path(name, X, y, end, repeats):
    """A row of the table of paths."""
    problem = Problem(name, X, y)
    lambdas = np.geomspace(1.0, end, N_LAMBDAS) * problem.lambda_max

    def theirs():
        return np.array([_liblinear(C=1 / v, fit_intercept=False).fit(X, y).coef_[0] for v in lambdas])

    def ours(**settings):
        found = l1_logistic_path(X, y, lambdas=lambdas, fit_intercept=False, coefs="dense", **settings)
        return found.coefs.T

    def objectives(coefs):
        return np.array([problem.objective(w, 0.0, 1.0 / v) for w, v in zip(coefs, lambdas)])

    (slow, fast), results = in_turn([theirs, ours], repeats)
    values = [objectives(coefs) for coefs in (*results, ours(tol=REFERENCE_TOL, max_iter=2000))]
    best = np.min(values, axis=0)
    gaps = [f"{np.max(value / best - 1):.0e}" for value in values[:2]]
    return [name, f"{slow:.3g}", f"{fast:.3g}", f"{slow / fast:.3g}", *gaps]


def main(argv=None):
    """Measure and print."""
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add(
        "--sets",
        type=lambda text: text.split(","),
        metavar="A,B,...",
        help=f"of {','.join(_weak_data.NAMES)}, or real: all of the data folder",
    )
    add("--rows", type=int, metavar="N", help="at most N rows of a set, drawn with a fixed seed")
    add("--role", choices=(_weak_data.TUNING, _weak_data.CHECK), help="only the sets of this role")
    add("--data", metavar="DIR", help="folder of the real sets")
    add("--repeats", type=int, default=3, metavar="N", help="runs; the median counts (default: 3)")
    add(
        "--end",
        type=float,
        default=1e-3,
        metavar="SHARE",
        help="of lambda_max at the path's end (default: 1e-3)",
    )
    add("--what", choices=("search", "path", "all"), default="all", help="(default: all)")
    args = parser.parse_args(argv)
    if args.sets == ["real"]:
        args.sets = [*_weak_data.REAL_TUNING, *_weak_data.REAL_CHECK]
    unknown = [name for name in args.sets or () if name not in _weak_data.NAMES]
    if unknown:
        parser.error(f"--sets: unknown {unknown[0]!r}; known are {', '.join(_weak_data.NAMES)}")
    names, folder = chosen_sets(args)
    rows, paths = [], []
    with threadpool_limits(1), warnings.catch_warnings():
        # LIBLINEAR says wherever it stops at its limit of iterations; the gaps show it
        warnings.simplefilter("ignore")
        for name in names:
            X, y = _weak_data.load(name, folder, args.rows)
            if args.what != "path":
                for row in search_rows(name, X, y, args.repeats):
                    rows.append(row)
                    print(" | ".join(row), flush=True)
            if args.what != "search":
                paths.append(path(name, X, y, args.end, args.repeats))
                print("path: " + " | ".join(paths[-1]), flush=True)
    lines = ["# Choosing C, at the defaults", "", *_common.environment([Liblinear(), Sparsekit()])]
    if rows:
        lines += [
            f"## {len(CS)} values from 0.01 to 100, {FOLDS} folds",
            "",
            *_common.markdown_table(COLUMNS, rows),
        ]
    if paths:
        lines += [f"## {N_LAMBDAS} values from lambda_max to {args.end:g} lambda_max", ""]
        lines += _common.markdown_table(PATH_COLUMNS, paths)
    print("\n" + "\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
