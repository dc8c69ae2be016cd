"""Poisson paths with an L1 penalty to equal accuracy: glm_path against adelie and glmnet-rs.

    pip install adelie glmnet-rs
    python benchmarks/glm_paths.py

Columns are standardised, with a free intercept. Penalties decrease from the largest one, which is left out.
Each solver is run at tighter and tighter tolerances until all objectives of the path exceed ours at a tight
tolerance by at most --accuracy, relatively; ours begin at 1e-2. "default" is ours at its default tolerance.
One thread, processor time; ">": not reached within --max-time seconds.
"""

import argparse
import time
import warnings

import _common
import adelie
import numpy as np
from glmnetrs import glmnet
from threadpoolctl import threadpool_limits

from sparsekit import glm_path

COLUMNS = ["rows x columns", "correlation", "default, s", "ours, s", "adelie", "glmnet-rs"]
# Weakest penalty, as a part of the largest.
SHAPES = {(5000, 1000): 1e-2, (1000, 8000): 3e-2, (100_000, 50): 1e-3, (2000, 200): 1e-3}


def make_data(n, p, correlation):
    """Standardised columns with a common part, and counts of a fiftieth of them."""
    rng = np.random.default_rng([n, p, int(10 * correlation)])
    X = np.sqrt(1 - correlation) * rng.standard_normal((n, p))
    X += np.sqrt(correlation) * rng.standard_normal((n, 1))
    used = rng.choice(p, max(p // 50, 5), replace=False)
    z = X[:, used] @ rng.standard_normal(len(used))
    y = rng.poisson(np.exp(0.7 * z / z.std() + 0.5)).astype(float)
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0)), y


def ours(X, y, alphas, **options):
    path = glm_path(X, y, "poisson", alphas=alphas, coefs="dense", **options)
    return path.coefs, path.intercepts


def by_adelie(X, y, alphas, tol):
    state = adelie.grpnet(
        X, adelie.glm.poisson(y), lmda_path=alphas, tol=tol, irls_tol=tol, adev_tol=1.0, ddev_tol=0.0,
        early_exit=False, n_threads=1, progress_bar=False,
    )  # fmt: skip
    return state.betas.toarray().T, state.intercepts


def by_glmnet_rs(X, y, alphas, tol):
    path = glmnet(X, y, family="poisson", lambda_=alphas, standardize=False, thresh=tol, maxit=10**6)
    return path.beta, path.a0


class Case:
    """Data and falling penalties, with the objectives of a tight tolerance."""

    def __init__(self, n, p, correlation, end, n_penalties):
        self.X, self.y = make_data(n, p, correlation)
        top = np.abs(self.X.T @ (self.y - self.y.mean())).max() / n
        self.alphas = top * np.geomspace(1.0, end, n_penalties + 1)[1:]
        self.best = self.objectives(*ours(self.X, self.y, self.alphas, tol=1e-8))

    def objectives(self, coefs, intercepts):
        Z = self.X @ coefs + intercepts
        losses = (np.exp(Z) - self.y[:, None] * Z).mean(axis=0)
        return losses + self.alphas * np.abs(coefs).sum(axis=0)

    def seconds(self, solve, **options):
        """Processor time of a path, and its worst relative excess; infinite where penalties are missing."""
        begin = time.process_time()
        coefs, intercepts = solve(self.X, self.y, self.alphas, **options)
        seconds = time.process_time() - begin
        if coefs.shape[1] != len(self.alphas):
            return seconds, np.inf
        return seconds, float(((self.objectives(coefs, intercepts) - self.best) / np.abs(self.best)).max())

    def time_to(self, accuracy, solve, tolerances, max_time=np.inf):
        """Seconds of the loosest tolerance that is accurate; inf where one before took more than max_time."""
        for tol in tolerances:
            seconds, excess = self.seconds(solve, tol=tol)
            if excess <= accuracy:
                return seconds
            if seconds > max_time:
                break
        return np.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--penalties", type=int, default=50)
    parser.add_argument("--accuracy", type=float, default=1e-5)
    parser.add_argument("--max-time", type=float, default=20.0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for (n, p), end in SHAPES.items():
        for correlation in (0.0, 0.5, 0.9):
            case = Case(n, p, correlation, end, args.penalties)
            default, _ = case.seconds(ours)
            own = case.time_to(args.accuracy, ours, 10.0 ** -np.arange(2, 9))
            row = [f"{n} x {p}", correlation, f"{default:.2f}", f"{own:.2f}"]
            for peer in (by_adelie, by_glmnet_rs):
                peer_s = case.time_to(args.accuracy, peer, 10.0 ** -np.arange(4, 13), args.max_time)
                row.append(">" if peer_s == np.inf else f"{peer_s / own:.2f}")
            rows.append(row)
            print(*row, flush=True)
    print(*_common.markdown_table(COLUMNS, rows), sep="\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
