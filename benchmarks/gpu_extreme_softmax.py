"""Softmax with very many classes on a GPU: steps a second against the CPU's, at an equal final log-loss.

    python benchmarks/gpu_extreme_softmax.py --n-threads 2 --markdown gpu_extreme.md

The CPU runs some epochs; the GPU runs until its log-loss is no higher. Its rows at once are as many as the
number of classes allows, or --rows-at-once. An epoch is timed from the shuffle of its rows, which the CPU
makes for both, to its end. A step's floor is the time of its memory sectors. Each weight of its classes is
read twice and written once, 32 bytes each if the row is sparse. The GPU pays from the size at which the ratio
of the times to that loss stays above 1.
"""

from __future__ import annotations

import sys
import time

import _common
import _gpu
import numpy as np
import scipy.sparse as sp

from sparsekit._extreme.estimators.scores import LinearScores, log_losses
from sparsekit._extreme.estimators.targets import ExtremeTargets, make_rows
from sparsekit._extreme.plan import rows_at_once
from sparsekit._extreme.solver.sgd import epoch, init_work
from sparsekit._extreme.solver.state import SamplingOptions, init_state, settled

# rows, features, classes, entries of a row (0: dense)
SIZES = [
    (20_000, 5_000, 100, 60), (200_000, 20_000, 1_000, 60), (500_000, 50_000, 10_000, 60),
    (1_000_000, 100_000, 10_000, 80), (200_000, 500, 1_000, 0), (500_000, 200, 100_000, 0),
]  # fmt: skip
# method, negatives, rate
METHODS = [("implicit", 5, 1.0), ("implicit", 1, 1.0), ("umax", 5, 0.1), ("ove", 5, 0.1)]
JUDGED = 4000


def problem(n, p, K, entries, seed=0):
    """Rows of norm 1, float32, about the centre of their class; entries of sparse rows lie as words' do."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    if not entries:
        X = rng.standard_normal((K, p), dtype=np.float32)[y] + rng.standard_normal((n, p), dtype=np.float32)
        return X / np.linalg.norm(X, axis=1, keepdims=True), y
    own = rng.integers(0, p, (K, entries // 2))[y]
    columns = np.sort(
        np.hstack([own, (p * rng.random((n, entries - entries // 2)) ** 3).astype(int)]), axis=1
    )
    ones = np.ones(columns.size, dtype=np.float32)
    X = sp.csr_matrix(
        (ones, columns.ravel().astype(np.int32), np.arange(0, columns.size + 1, entries)), (n, p)
    )
    X.sum_duplicates()
    return sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))), dtype=np.float32), y


class Run:
    """Epochs of one method on rows X, wherever they are."""

    def __init__(self, X, y, K, method, negatives, rate, n_threads):
        self.rng, self.X, self.K = np.random.default_rng(0), X, K
        self.rows = make_rows(X, ExtremeTargets(y, None, np.arange(K), None), "first")
        counts = np.bincount(y, minlength=K).astype(np.float64)
        self.options = SamplingOptions(
            method=method, learning_rate=rate, n_negatives=negatives,
            n_threads=n_threads or rows_at_once(counts, negatives, None, 1),
        )  # fmt: skip
        self.state = init_state(K, X.shape[1], X.dtype, self.options, like=self.rows.data)
        self.work = init_work(self.rows, K, self.options, self.rng, counts=counts)
        self.seconds, self.n_epochs, self.judged = (
            [],
            0,
            np.random.default_rng(1).permutation(len(y))[:JUDGED],
        )

    def step(self):
        rate = self.options.learning_rate * self.options.decay**self.n_epochs
        start = time.perf_counter()
        bad, _ = epoch(self.state, self.rows, self.options, self.work, rate, self.rng)
        self.seconds.append(time.perf_counter() - start)  # an epoch ends with a copy to main memory
        self.n_epochs += 1
        return bad < 0

    def loss(self):
        W, bias = settled(self.state, self.options)
        judged = np.asarray(self.judged, like=self.rows.data)
        return float(log_losses(LinearScores(W, bias), self.X[judged], self.rows.y[judged]).mean())


def costs(run, width, sparse):
    """Bytes that a step must move, at the granularity of the memory, and its floating-point operations."""
    entries = width * (1 + run.options.n_negatives)
    nbytes = 3 * entries * (32 if sparse else 4)
    return nbytes + 2 * width * (8 if sparse else 4), 4 * entries


def compare(cupy, size, method, args, bandwidth):
    """Cells of one line of the table."""
    n, p, K, entries = size
    X, y = problem(*size)
    here = Run(X, y, K, *method, args.n_threads)
    finite = all([here.step() for _ in range(args.epochs)])
    goal = here.loss() if finite else np.inf
    X = _gpu.to_device(cupy, X)
    Run(X[: 4 * K + 1000], y[: 4 * K + 1000], K, *method, args.rows_at_once).step()  # compiles the kernels
    there = Run(X, y, K, *method, args.rows_at_once)
    loss = np.inf
    while loss > goal and there.n_epochs < 3 * args.epochs and there.step():
        loss = there.loss()
    nbytes, flops = costs(here, entries or p, bool(entries))
    slow, fast = np.median(here.seconds) / n, np.median(there.seconds) / n
    reached = f"{sum(here.seconds) / sum(there.seconds):.1f}" if loss <= goal else "not reached"
    return [
        f"{method[0]}, {method[1]}", f"{n} x {p}, K = {K}" + (f", {entries} a row" if entries else ""),
        f"{there.options.n_threads}", f"{1e-6 / slow:.2f}", f"{1e-6 / fast:.2f}",
        f"{1e-6 * bandwidth / nbytes:.0f}", f"{nbytes}", f"{flops}", f"{slow / fast:.1f}",
        f"{goal:.4f}", f"{loss:.4f}", f"{here.n_epochs}, {there.n_epochs}", reached,
    ]  # fmt: skip


def rows(cupy, bandwidth, args):
    """Rows of the table."""
    for size in SIZES:
        for method in METHODS:
            yield compare(cupy, size, method, args, bandwidth)


def main():
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add("--n-threads", type=int, default=2, help="threads of the CPU's epochs")
    add("--rows-at-once", type=int, default=0, help="of the GPU's (default: as many as the classes bear)")
    add("--epochs", type=int, default=10, help="of the CPU")
    titles = ["method, negatives", "rows", "at once", "CPU, 10^6 steps/s", "GPU", "floor", "bytes a step",
              "operations", "GPU / CPU", "log-loss", "there", "epochs", "CPU / GPU to that loss"]  # fmt: skip
    title = "Softmax with very many classes"
    return _gpu.report(title, parser.parse_args(), [(titles, rows)])


if __name__ == "__main__":
    sys.exit(main())
