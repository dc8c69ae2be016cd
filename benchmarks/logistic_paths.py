"""Logistic L1 paths on dense data: l1_logistic_path beside pybiglasso and glmnet-rs, at equal accuracy.

    pip install pybiglasso glmnet-rs
    python benchmarks/logistic_paths.py                          # all cells
    python benchmarks/logistic_paths.py --cells 5000x1000 --penalties 20 --markdown paths.md

METHOD. One process, one thread, processor time, the shorter of two runs. Columns are standardised, the
intercept is free, penalties fall from the largest one to --end times it. The excess of an objective is
relative to that of l1_logistic_path at tol 1e-9. A peer is run at its default threshold, and at a tenth of
it, a hundredth, ..., until its largest excess over the path is at most --accuracy; its seconds are those of
that run. Peers that end a path early (glmnet-rs, where the deviance is explained) are measured on the
penalties that they solved.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
from threadpoolctl import threadpool_limits

from sparsekit import l1_logistic_path

SHAPES = {"5000x1000": (5000, 1000, 1e-3), "1000x8000": (1000, 8000, 1e-2), "200000x50": (200_000, 50, 1e-3)}
CORRELATIONS = (0.0, 0.5, 0.9)
THRESHOLDS = 10.0 ** -np.arange(7, 13)
REFERENCE_TOL = 1e-9
MAX_SECONDS = 60.0
COLUMNS = (
    "data",
    "ours, s",
    "excess",
    "peer",
    "its s",
    "its excess",
    "its threshold",
    "times as fast",
)


def make_data(n, p, correlation, seed=0):
    """Standardised columns with a common part, and labels of a twentieth of them and noise."""
    rng = np.random.default_rng([n, p, int(10 * correlation), seed])
    X = np.sqrt(1 - correlation) * rng.standard_normal((n, p))
    X += np.sqrt(correlation) * rng.standard_normal((n, 1))
    coef = np.zeros(p)
    coef[rng.choice(p, max(p // 20, 5), replace=False)] = rng.standard_normal(max(p // 20, 5))
    scores = X @ coef
    y = (scores + scores.std() * rng.standard_normal(n) > 0).astype(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def by_pybiglasso(X, y, lambdas, threshold):
    """Coefficients (p, k) and intercepts (k,)."""
    import pybiglasso

    found = pybiglasso.biglasso(
        X, y, lambdas=list(lambdas / len(y)), eps=threshold, n_threads=1, stop_on_saturation=False
    )
    return found.coef.toarray(), found.intercept


def by_glmnet_rs(X, y, lambdas, threshold):
    """Coefficients (p, k) and intercepts (k,)."""
    import glmnetrs

    found = glmnetrs.glmnet(
        X, y, family="binomial", lambda_=lambdas / len(y), standardize=False, thresh=threshold
    )
    return np.asarray(found.beta), np.asarray(found.a0)


PEERS = {"pybiglasso": by_pybiglasso, "glmnet-rs": by_glmnet_rs}


def objectives(X, y, lambdas, coefs, intercepts):
    """Sum of the logistic losses and the penalty at each lambda, (k,)."""
    z = (2.0 * y - 1.0)[:, None] * (X @ coefs + intercepts)
    return np.logaddexp(0.0, -z).sum(axis=0) + lambdas[: coefs.shape[1]] * np.abs(coefs).sum(axis=0)


def timed(call):
    """Processor seconds of the shorter of two calls, and the result."""
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        result = call()
        seconds.append(time.process_time() - begin)
        if seconds[0] > MAX_SECONDS / 2:
            break
    return min(seconds), result


def rows_of(name, X, y, n_penalties, end, accuracy, peers):
    """The rows of one cell, one a peer."""
    top = np.abs(X.T @ (y - y.mean())).max()
    lambdas = np.geomspace(top, end * top, n_penalties)
    least = l1_logistic_path(X, y, Cs=1.0 / lambdas, tol=REFERENCE_TOL).objectives
    seconds, path = timed(lambda: l1_logistic_path(X, y, Cs=1.0 / lambdas))
    own = (path.objectives / least - 1.0).max()
    fortran = np.asfortranarray(X)
    for peer in peers:
        PEERS[peer](fortran[:50, :20].copy(order="F"), y[:50], lambdas[:2], 1e-7)  # compiles
        for threshold in THRESHOLDS:
            took, found = timed(lambda: PEERS[peer](fortran, y, lambdas, threshold))  # noqa: B023
            excess = (objectives(X, y, lambdas, *found) / least[: found[0].shape[1]] - 1.0).max()
            if excess <= accuracy or took > MAX_SECONDS:
                break
        reached = "" if excess <= accuracy else " (not reached)"
        yield (
            name, f"{seconds:.2f}", f"{own:.0e}", peer, f"{took:.2f}", f"{excess:.0e}{reached}",
            f"{threshold:.0e}", f"{took / seconds:.2f}",
        )  # fmt: skip


def main(argv=None):
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--cells", type=lambda text: text.split(","), default=list(SHAPES), help=f"of {', '.join(SHAPES)}")
    add("--peers", type=lambda text: text.split(","), default=list(PEERS), help=f"of {', '.join(PEERS)}")
    add("--penalties", type=int, default=100, help="default: 100")
    add("--end", type=float, default=None, help="of the largest penalty; by default that of the cell")
    add("--accuracy", type=float, default=1e-5, help="largest excess of a peer (default: 1e-5)")
    add("--seed", type=int, default=0)
    add("--markdown", type=Path, help="write the table")
    args = parser.parse_args(argv)
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in args.cells:
            n, p, end = SHAPES[cell]
            for correlation in CORRELATIONS:
                X, y = make_data(n, p, correlation, args.seed)
                name = f"{n} x {p}, correlation {correlation}"
                for row in rows_of(name, X, y, args.penalties, args.end or end, args.accuracy, args.peers):
                    print(" | ".join(row), flush=True)
                    rows.append(row)
    _common.write_markdown(args.markdown, _common.markdown_table(COLUMNS, rows))


if __name__ == "__main__":
    main()
