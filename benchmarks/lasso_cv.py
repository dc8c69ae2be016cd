"""Choosing alpha of the Lasso and of the elastic net by cross-validation, against scikit-learn and celer.

    python benchmarks/lasso_cv.py                                  # all sets; real ones where they are
    python benchmarks/lasso_cv.py --sets diabetes,tall --n-jobs 2 --markdown lasso_cv.md

METHOD. Each runs in turn in its own process, at its defaults: 100 values of alpha down to 0.001 of the
largest, 5 folds. Times are medians of --repeats runs of the whole call (one if a run takes over 5 s). A peer
that takes longer than --limit seconds a run is stopped and marked by ">". scikit-learn's are LassoCV and
ElasticNetCV. celer's LassoCV does not start under scikit-learn 1.9 (it hands on n_alphas). Its steps are
therefore done here: celer_path with its defaults on the centred training part of each fold, and the errors.
The last fit is left out. "mse" is the least mean error over the folds that each finds. Sets called "check"
are made here and are not to be tuned on.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
from _data import data_folder, read, tf_idf
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNetCV, LassoCV
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from sparsekit import LassoOBACV
from sparsekit._compare.peers import Sparsekit

N_ALPHAS = 100
FOLDS = 5
# smallest alpha of a path, relative to the largest
EPS = 1e-3


def correlated(n, p, rho, seed):
    """Columns in a chain of correlation rho, a target of every 15th."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(p)
    w[::15] = rng.standard_normal(len(w[::15]))
    return X, X @ w + 2.0 * rng.standard_normal(n)


def made_text(n, p, length, seed):
    """Words by Zipf's law, as tf-idf, and a target of 60 of them."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, p + 1)
    words = rng.choice(p, size=n * length, p=share / share.sum())
    counts = sp.csr_matrix((np.ones(n * length), (np.repeat(np.arange(n), length), words)), shape=(n, p))
    X = tf_idf(counts)
    w = np.zeros(p)
    w[rng.choice(p // 10, size=60, replace=False)] = rng.standard_normal(60)
    z = X @ w
    return X, z + 0.5 * z.std() * rng.standard_normal(n)


def factors(n, p, k, seed):
    """Columns that share k factors, a target of ten of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) + rng.standard_normal((n, p))
    return X, X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(n)


def counts(n, p, seed):
    """Sparse counts, a target of twenty of them."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=0.05, rng=rng, data_sampler=lambda size: 1.0 + rng.poisson(1.0, size))
    return sp.csr_matrix(X), X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(n)


def leukemia(folder):
    """The 38 rows of its training part."""
    data = read(folder, "leukemia")
    return data["X_train"], data["y_train"].astype(float)


def news(folder):
    """1000 rows of newsgroups_bigrams as tf-idf, terms of five rows and more; the target is the group."""
    data = read(folder, "newsgroups_bigrams")
    rows = np.random.default_rng(0).permutation(data["X_train"].shape[0])[:1000]
    X = data["X_train"][rows]
    X = tf_idf(X[:, np.diff(X.tocsc().indptr) >= 5])
    return X, data["group"][rows].astype(float)


REAL, TUNING, CHECK = "real", "tuning", "check"
SETS = {
    "diabetes": (REAL, lambda _: load_diabetes(return_X_y=True)),
    "leukemia": (REAL, leukemia),
    "news": (REAL, news),
    "made_text": (TUNING, lambda _: made_text(1500, 30000, 150, 0)),
    "tall": (TUNING, lambda _: correlated(20000, 300, 0.9, 1)),
    "factors": (CHECK, lambda _: factors(150, 4000, 8, 11)),
    "counts": (CHECK, lambda _: counts(4000, 150, 12)),
}


def celer_cv(X, y, l1_ratio, n_jobs):
    """What celer's LassoCV does, but for the last fit."""
    from celer.homotopy import celer_path

    alphas, errors = None, []
    for train, test in KFold(FOLDS).split(X):
        mean, A = y[train].mean(), X[train]
        if sp.issparse(A):
            A = A.tocsc()
            offset = np.asarray(A.mean(axis=0)).ravel()
            how = dict(X_offset=offset, X_scale=np.ones(A.shape[1]))
        else:
            offset, how = A.mean(axis=0), {}
            A = np.asfortranarray(A - offset)
        if alphas is None:
            top = np.abs(X.T @ (y - y.mean()) - 0.0).max() / len(y) / l1_ratio
            alphas = np.geomspace(top, EPS * top, N_ALPHAS)
        coefs = celer_path(
            A,
            y[train] - mean,
            "lasso",
            alphas=alphas,
            l1_ratio=l1_ratio,
            max_iter=100,
            tol=1e-4,
            prune=True,
            **how,
        )[1]
        errors.append(((X[test] @ coefs + (mean - offset @ coefs) - y[test][:, None]) ** 2).mean(axis=0))
    return float(np.mean(errors, axis=0).min())


def sklearn_cv(X, y, l1_ratio, n_jobs):
    """scikit-learn's, at its defaults."""
    if l1_ratio == 1.0:
        model = LassoCV(alphas=N_ALPHAS, n_jobs=n_jobs)
    else:
        model = ElasticNetCV(alphas=N_ALPHAS, l1_ratio=l1_ratio, n_jobs=n_jobs)
    return float(model.fit(X, y).mse_path_.mean(axis=-1).min())


def ours(X, y, l1_ratio, n_jobs):
    """This package's, at its defaults."""
    return float(LassoOBACV(l1_ratio=l1_ratio, n_jobs=n_jobs).fit(X, y).mse_path_.mean(axis=-1).min())


PEERS = {"ours": ours, "scikit-learn": sklearn_cv, "celer": celer_cv}


def _child(name, set_name, folder, l1_ratio, n_jobs, repeats, clock, pipe):
    now = time.process_time if clock == "cpu" else time.perf_counter
    with threadpool_limits(n_jobs), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = SETS[set_name][1](folder)
        run, times = PEERS[name], []
        # compiled when first called
        small = load_diabetes(return_X_y=True)
        run(*small, l1_ratio, n_jobs)
        pipe.send("ready")
        for _ in range(repeats):
            begin = now()
            found = run(X, y, l1_ratio, n_jobs)
            times.append(now() - begin)
            if times[-1] > 5:
                break
        pipe.send((float(np.median(times)), found))


def timed(name, set_name, folder, l1_ratio, args):
    """Median time and what was found, or None where it took too long."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(
        target=_child, args=(name, set_name, folder, l1_ratio, args.n_jobs, args.repeats, args.clock, there)
    )
    child.start()
    try:
        if not here.poll(300) or here.recv() != "ready":
            raise SystemExit(f"{name} did not start")
        return here.recv() if here.poll(args.limit * args.repeats) else None
    finally:
        child.kill()
        child.join()


def main(argv=None):
    """Measure and print."""
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add("--sets", default=",".join(SETS), metavar="A,B,...", help=f"of {','.join(SETS)}")
    add("--peers", default="scikit-learn,celer", metavar="A,B", help="(default: both)")
    add("--l1-ratio", default="1,0.5", metavar="R,...", help="(default: 1,0.5)")
    add("--repeats", type=int, default=3, metavar="N", help="runs; the median counts (default: 3)")
    add("--n-jobs", type=int, default=1, metavar="N", help="folds at once (default: 1)")
    add("--clock", choices=("wall", "cpu"), default="wall", help="cpu: processor time (default: wall)")
    add("--limit", type=float, default=60.0, metavar="S", help="seconds of a run (default: 60)")
    add("--data", metavar="DIR", help="folder of the real sets")
    args = parser.parse_args(argv)
    os.environ.update(OMP_NUM_THREADS=str(args.n_jobs), OPENBLAS_NUM_THREADS=str(args.n_jobs))
    peers = ["ours", *(peer for peer in args.peers.split(",") if peer)]
    rows, logs = [], {peer: [] for peer in peers[1:]}
    for set_name in args.sets.split(","):
        if set_name not in SETS:
            parser.error(f"--sets: unknown {set_name!r}; known are {','.join(SETS)}")
        role = SETS[set_name][0]
        folder = data_folder(args.data) if role == REAL and set_name != "diabetes" else None
        for ratio in (float(r) for r in args.l1_ratio.split(",")):
            found = {peer: timed(peer, set_name, folder, ratio, args) for peer in peers}
            row = [f"{set_name} ({role})", f"{ratio:g}"]
            for peer in peers:
                row.append(f"{found[peer][0]:.3g}" if found[peer] else f"> {args.limit:g}")
            for peer in peers[1:]:
                slow = found[peer][0] if found[peer] else args.limit
                ratio_of = slow / found["ours"][0] if found["ours"] else float("nan")
                logs[peer].append(ratio_of)
                row.append(("" if found[peer] else "> ") + f"{ratio_of:.3g}")
            row.append(" ".join(f"{found[peer][1]:.6g}" if found[peer] else "-" for peer in peers))
            rows.append(row)
            print(" | ".join(row), flush=True)
    lines = ["# Choosing alpha, at the defaults", "", *_common.environment([Sparsekit()])]
    columns = [
        "data",
        "l1_ratio",
        *(f"{peer}, s" for peer in peers),
        *(f"{p} / ours" for p in peers[1:]),
        "mse",
    ]
    lines += _common.markdown_table(columns, rows)
    for peer, ratios in logs.items():
        mean = np.exp(np.mean(np.log(ratios)))
        lines.append(
            f"{peer}: {mean:.3g} times our time in the geometric mean, {min(ratios):.3g} at the least."
        )
    print("\n" + "\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
