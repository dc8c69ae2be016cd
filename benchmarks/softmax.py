"""SoftmaxClassifier against scikit-learn's LogisticRegression at equal objective.

    python benchmarks/softmax.py --n-threads 2 --markdown softmax.md

Objective: sum_i CE_i / n + ||W||^2 / (2 C n), intercepts free, float64. Every solver runs at tighter and
tighter tolerances, as long as the last run took less than ``--max-time``. A figure is the time of its fastest
run whose objective is within the gap of the lowest found by any solver. Sparsemax regression has its own
column, and its own lowest objective.
"""

from __future__ import annotations

import signal
import sys
import time
import warnings

import _common
import _data
import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from sparsekit import SoftmaxClassifier, SparsemaxClassifier

GAPS = (1e-2, 1e-3, 1e-4, 1e-6)
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(2, 17))


class Late(Exception):
    """A run that took too long."""


def _alarm(*_):
    raise Late


def data(folder, name):
    """X and classes; mnist scaled to [0, 1]."""
    d = _data.read(folder, name)
    X, y = d["X_train"], d["y_train"]
    return (X / 255.0 if name == "mnist" else X), np.unique(y, return_inverse=True)[1]


def objective(X, y, coef, intercept, C):
    Z = X @ coef.T + intercept
    n = len(y)
    return float(np.mean(logsumexp(Z, axis=1) - Z[np.arange(n), y]) + np.sum(coef**2) / (2 * C * n))


def ladder(fit, value, max_time, repeats):
    """(seconds, objective) of a run at each tolerance."""
    found = []
    for tol in TOLERANCES:
        times = []
        signal.alarm(int(max_time) + 1)
        try:
            for _ in range(repeats):
                start = time.perf_counter()
                model = fit(tol)
                times.append(time.perf_counter() - start)
                if times[0] > max_time / 10:
                    break
        except Late:
            break
        finally:
            signal.alarm(0)
        found.append((float(np.median(times)), value(model)))
        if times[0] > max_time or (len(found) > 1 and abs(found[-1][1] - found[-2][1]) < 1e-9 * found[-1][1]):
            break
    return found


def reached(track, best, gap):
    times = [t for t, f in track if f <= best * (1 + gap)]
    return min(times) if times else None


def main():
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add("--data", help="folder of the data sets")
    add("--sets", nargs="+", default=["mnist", "sector", "news20"])
    add("--C", nargs="+", type=float, default=[0.01, 1.0])
    add("--n-threads", type=int, default=2)
    add("--max-time", type=float, default=60.0)
    add("--repeats", type=int, default=3)
    add("--solvers", nargs="+", default=["lbfgs", "newton-cg", "newton-cholesky"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    folder = _data.data_folder(args.data)
    rows = []
    for name in args.sets:
        X, y = data(folder, name)
        n = len(y)
        for C in args.C:

            def ours(tol, cls=SoftmaxClassifier, C=C, X=X, y=y, n=n):
                return cls(
                    alpha=1 / (C * n), penalize_intercept=False, tol=tol, n_jobs=args.n_threads,
                    max_iter=1000, max_time=args.max_time,
                ).fit(X, y)  # fmt: skip

            def value(model, C=C, X=X, y=y):
                return objective(X, y, model.coef_, model.intercept_, C)

            tracks = {"SoftmaxClassifier": ladder(ours, value, args.max_time, args.repeats)}
            with threadpool_limits(args.n_threads):
                for solver in args.solvers:
                    if solver == "newton-cholesky" and X.shape[1] * (y.max() + 1) > 20000:
                        tracks[solver] = []  # its Hessian alone would take more than 3 GB
                        continue

                    def theirs(tol, solver=solver, C=C, X=X, y=y):
                        return LogisticRegression(C=C, solver=solver, tol=tol, max_iter=100000).fit(X, y)

                    tracks[solver] = ladder(theirs, value, args.max_time, args.repeats)
            best = min(f for track in tracks.values() for _, f in track)
            sparse = ladder(
                lambda tol: ours(tol, SparsemaxClassifier),
                lambda m: m.objective_,
                args.max_time,
                args.repeats,
            )
            lowest = min(f for _, f in sparse)
            for gap in GAPS:
                times = {s: reached(track, best, gap) for s, track in tracks.items()}
                mine = times["SoftmaxClassifier"]
                peers = [t for s, t in times.items() if s != "SoftmaxClassifier" and t is not None]
                ratio = (
                    f"{min(peers) / mine:.2f}"
                    if peers and mine
                    else (f"> {args.max_time / mine:.3g}" if mine else "-")
                )
                cells = [f"{t:.3g}" if t else "-" for t in (*times.values(), reached(sparse, lowest, gap))]
                rows.append([f"{name}, C = {C:g}", f"{gap:.0e}", *cells, ratio])
                print(*rows[-1], flush=True)
    titles = [
        "data",
        "gap",
        "SoftmaxClassifier, s",
        *(f"{s}, s" for s in args.solvers),
        "SparsemaxClassifier, s",
    ]
    table = _common.markdown_table([*titles, "fastest of scikit-learn / SoftmaxClassifier"], rows)
    text = ["# Softmax regression: seconds to a relative gap", "", *_common.environment(()), *table]
    _common.write_markdown(args.markdown, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
