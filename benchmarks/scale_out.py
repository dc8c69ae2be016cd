"""L1 logistic regression on blocks of rows: rounds, bytes, seconds a pass, and what clusters make of it.

    python benchmarks/scale_out.py                                   # a generated set of a million rows
    python benchmarks/scale_out.py --data rcv1_binary --copies 84 --markdown benchmarks/results/scale_out.md

METHOD. A set is repeated --copies times; a block is one copy. Each task reads it from a file in the operating
system's cache, as data larger than the memory would be read. In turn on one machine, by one method:

- one process: LocalBlocks over the same blocks, one thread that computes and one that reads;
- one worker and two workers of dask.distributed, processes of one thread each.

A round is one call of map_reduce. "Pass" is the median of five rounds of the gradient at the solution, blocks
read; "held" the same of blocks in the workers' memory (X.persist()). An efficiency is the rate of two
workers over twice that of one: reading and held. Bytes are those of what tasks got as a message and of what
the rounds gave. The fit is at --ratio times lambda_max, to a relative gap of 1e-6 (tol 1e-7). Peers run on
the two workers' processors, at their defaults otherwise: dask-ml's ADMM on the same collection, and pyspark's
OWL-QN (local[2], elasticNetParam = 1, standardization off). "objective" is relative to the lowest found.
"Scheduler": rounds of tasks that do nothing, on one process with as many threads as a cluster would have.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common

from sparsekit import L1LogisticOBA
from sparsekit._l1.losses.block_loss import LossOfBlocks, as_message, gradient_of_block
from sparsekit._row_blocks import dask_blocks
from sparsekit._row_blocks.blocks import LocalBlocks

# passes, of which the median counts
REPEATS = 5
# relative gap of ours
GAP_TOL = 1e-7


def base_set(name, seed=0):
    """X (CSR) and y in -1, +1 of one copy."""
    if name == "generated":
        rng = np.random.default_rng(seed)
        X = sp.random(20000, 30000, 2.5e-3, format="csr", random_state=rng, data_rvs=lambda k: rng.random(k))
        w = np.where(rng.random(30000) < 0.01, rng.normal(size=30000), 0.0)
        z = X @ w
        return X, np.where(z + 0.1 * rng.normal(size=len(z)) > np.median(z), 1.0, -1.0)
    import _weak_data

    X, y = _weak_data.load(name, Path(os.environ["SPARSEKIT_DATA"]))
    return sp.csr_matrix(X), y


class Copies:
    """A source whose blocks are one matrix on disk."""

    def __init__(self, file, shape, copies):
        self.file, self.n_blocks = file, copies
        self.shape, self.starts = (shape[0] * copies, shape[1]), np.arange(copies + 1) * shape[0]

    def block(self, i):
        return read(self.file)


class HeldCopies(Copies):
    """The same of a matrix in memory."""

    def block(self, i):
        return self.file


def read(file):
    """The matrix of a copy."""
    return sp.load_npz(file)


def as_dask(file, shape, copies, y):
    """The same as a Dask array, and its targets."""
    from dask import array, delayed

    one, meta = delayed(read), sp.csr_matrix((0, 0))
    X = array.concatenate([
        array.from_delayed(one(file, dask_key_name=f"read-{i}"), shape=shape, dtype=np.float64, meta=meta)
        for i in range(copies)
    ])  # fmt: skip
    target = delayed(np.asarray)
    rows = [array.from_delayed(target(y), shape=y.shape, dtype=y.dtype) for _ in range(copies)]
    return X, array.concatenate(rows)


class Traffic:
    """Counts what rounds send and get, by pickling it once more."""

    def __init__(self):
        self.rounds = self.sent = self.received = 0
        self._reduce = dask_blocks.DaskBlocks.map_reduce

    def __enter__(self):
        def counted(blocks, kernel, *arguments):
            found = self._reduce(blocks, kernel, *arguments)
            self.rounds += 1
            self.sent += len(pickle.dumps((kernel, arguments), protocol=5))
            self.received += len(pickle.dumps(found, protocol=5))
            return found

        dask_blocks.DaskBlocks.map_reduce = counted
        return self

    def __exit__(self, *_):
        dask_blocks.DaskBlocks.map_reduce = self._reduce


def median_pass(blocks, spec, x):
    """Seconds of a round of the gradient."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        blocks.map_reduce(gradient_of_block, spec, None, as_message(x), None)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def peak(client=None):
    """Largest resident memory in GiB, of this process or of each worker."""

    def here():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    return here() if client is None else max(client.run(here).values())


def variables(model):
    return np.append(model.coef_.ravel(), model.intercept_)


def objective(X, y, copies, C, coef, intercept):
    """Ours, with the intercept free: sum |w| + C sum log(1 + exp(-y z)) over all copies."""
    z = X @ np.ravel(coef) + float(np.ravel(intercept)[0])
    return float(np.abs(coef).sum() + C * copies * np.logaddexp(0.0, -y * z).sum())


def measure(args, X, y, file, C):
    """Rows of the table, and the objectives by name."""
    from distributed import Client, LocalCluster, wait

    rows, found = [], {}
    spec = LossOfBlocks(True, np.array([-1.0, 1.0]))
    model = L1LogisticOBA(C=C, tol=GAP_TOL)
    source = Copies(file, X.shape, args.copies)
    begin = time.perf_counter()
    model.fit(source, np.tile(y, args.copies))
    seconds = time.perf_counter() - begin
    x = variables(model)
    one = median_pass(LocalBlocks(source, np.tile(y, args.copies)), spec, x)
    most = peak()
    held = median_pass(LocalBlocks(HeldCopies(X, X.shape, args.copies), np.tile(y, args.copies)), spec, x)
    rows.append(["one process", 1, model.n_rounds_, seconds, one, held, *4 * (np.nan,), most])
    found["one process"] = objective(X, y, args.copies, C, model.coef_, model.intercept_)
    passes, holds = {}, {}
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            dX, dy = as_dask(file, X.shape, args.copies, y)
            with Traffic() as traffic:
                begin = time.perf_counter()
                model = L1LogisticOBA(C=C, tol=GAP_TOL).fit(dX, dy)
                seconds = time.perf_counter() - begin
            passes[workers] = median_pass(dask_blocks.DaskBlocks(dX, dy), spec, x)
            most = peak(client)
            kept = client.persist([dX, dy])
            wait(kept)
            holds[workers] = median_pass(dask_blocks.DaskBlocks(*kept), spec, x)
            del kept
            ideal = [times[1] / (workers * times[workers]) for times in (passes, holds)]
            name = f"{workers} worker{'s' * (workers > 1)}"
            rows.append([
                name, workers, traffic.rounds, seconds, passes[workers], holds[workers], *ideal,
                traffic.sent / 2**20, traffic.received / 2**20, most,
            ])  # fmt: skip
            found[name] = objective(X, y, args.copies, C, model.coef_, model.intercept_)
            if workers == 2:
                peer = dask_ml(dX, dy, C)
                if peer is not None:
                    seconds, coef, intercept = peer
                    rows.append(["dask-ml, ADMM", 2, np.nan, seconds, *7 * (np.nan,)])
                    found["dask-ml, ADMM"] = objective(X, y, args.copies, C, coef, intercept)
    peer = spark(X, y, args.copies, C)
    if peer is not None:
        seconds, coef, intercept, iterations = peer
        rows.append(["pyspark, OWL-QN", 2, iterations, seconds, *7 * (np.nan,)])
        found["pyspark, OWL-QN"] = objective(X, y, args.copies, C, coef, intercept)
    return rows, found


def dask_ml(X, y, C):
    """Seconds, coefficients and intercept of dask-ml's default solver; None where it is not installed."""
    try:
        from dask_ml.linear_model import LogisticRegression
    except ImportError as error:
        print(f"dask-ml is left out: {error}", file=sys.stderr)
        return None
    model = LogisticRegression(penalty="l1", C=C)
    begin = time.perf_counter()
    try:
        model.fit(X, (y > 0).astype(np.int64))
    except Exception as error:  # a peer's own failure is a finding
        print(f"dask-ml fails: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    return time.perf_counter() - begin, model.coef_, model.intercept_


def spark(X, y, copies, C):
    """Seconds, coefficients, intercept and iterations of pyspark; None where it is not installed."""
    try:
        from pyspark.ml.classification import LogisticRegression
        from pyspark.ml.linalg import SparseVector
        from pyspark.sql import SparkSession
    except ImportError as error:
        print(f"pyspark is left out: {error}", file=sys.stderr)
        return None
    session = (
        SparkSession.builder.master("local[2]").config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false").getOrCreate()
    )  # fmt: skip
    session.sparkContext.setLogLevel("ERROR")
    X = sp.csr_matrix(X)
    p = X.shape[1]
    rows = [
        (float(t > 0), SparseVector(p, X.indices[a:b].tolist(), X.data[a:b].tolist()))
        for t, a, b in zip(y, X.indptr[:-1], X.indptr[1:])
    ]
    one = session.createDataFrame(rows, ["label", "features"]).repartition(2).cache()
    one.count()
    data = one
    for _ in range(int(np.log2(copies))):
        data = data.union(data)
    data = data.coalesce(4).cache()
    n = data.count()
    # its loss is a mean over the rows
    model = LogisticRegression(
        regParam=1.0 / (C * n), elasticNetParam=1.0, standardization=False, maxIter=1000
    )
    begin = time.perf_counter()
    fitted = model.fit(data)
    seconds = time.perf_counter() - begin
    iterations = fitted.summary.totalIterations
    coef, intercept = fitted.coefficients.toArray(), fitted.intercept
    session.stop()
    return seconds * copies / (n / X.shape[0]), coef, intercept, iterations


def _nothing(block):
    return 0.0


def scheduling(n_workers):
    """Seconds of a round of tasks that do nothing, for a cluster of so many workers."""
    from dask import array
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=n_workers, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        blocks = dask_blocks.DaskBlocks(array.zeros((2 * n_workers, 1), chunks=(1, 1)))
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            blocks.map_reduce(_nothing)
            times.append(time.perf_counter() - begin)
    return float(np.median(times))


def extrapolate(passes, rows, nonzeros, p, rounds, by_workers):
    """Rows of the worked table: seconds a round at 10^9 rows x 50 non-zeros, by what they are made of."""
    rate = passes / (rows * nonzeros)  # of one worker's thread, reading included
    found = []
    for workers, schedule in by_workers.items():
        compute = rate * 1e9 * 50 / (8 * workers)
        # sums of p doubles go up a tree of pairs, one level after another, at 1 GB a second
        network = np.ceil(np.log2(2 * workers)) * 8.0 * p / 1e9
        total = compute + schedule + network
        parts = {"computing": compute, "the scheduler": schedule, "the network": network}
        found.append([
            workers, f"{compute:.2f}", f"{schedule:.2f}", f"{network:.3f}", f"{total:.2f}",
            f"{rounds * total / 60:.1f}", max(parts, key=parts.get),
        ])  # fmt: skip
    return found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="generated")
    parser.add_argument("--copies", type=int, default=50)
    parser.add_argument("--ratio", type=float, default=0.01, help="lambda over lambda_max")
    parser.add_argument("--workers", default="8,64,512", help="simulated clusters")
    parser.add_argument("--markdown")
    args = parser.parse_args(argv)
    X, y = base_set(args.data)
    C = 1.0 / (args.ratio * 0.5 * args.copies * float(np.abs(X.T @ (y - y.mean())).max()))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "copy.npz")
        sp.save_npz(file, X, compressed=False)
        rows, found = measure(args, X, y, file, C)
    lowest = min(found.values())

    def shown(value):
        return "" if isinstance(value, float) and np.isnan(value) else f"{value:.3g}"

    table = [
        [row[0], *(shown(v) for v in row[1:]), f"{(found[row[0]] - lowest) / lowest:.1e}"] for row in rows
    ]
    columns = (
        "", "processes", "rounds", "fit, s", "pass, s", "held, s", "efficiency", "held", "sent, MiB",
        "received, MiB", "peak of a process, GiB", "objective",
    )  # fmt: skip
    lines = [
        "# Data in blocks of rows", "", *_common.environment([]),
        f"{args.data}, {args.copies} times: {X.shape[0] * args.copies} rows, {X.shape[1]} columns, "
        f"{X.nnz * args.copies} non-zeros; lambda = {args.ratio:g} lambda_max.", "",
        *_common.markdown_table(columns, table),
    ]  # fmt: skip
    schedules = {int(k): scheduling(int(k)) for k in args.workers.split(",")}
    worker = next(row for row in rows if row[0] == "1 worker")
    worked = extrapolate(
        worker[4], X.shape[0] * args.copies, X.nnz / X.shape[0], X.shape[1], worker[2], schedules
    )
    lines += [
        "## A round at 10^9 rows of 50 non-zeros", "",
        "Computed from the figures above. A round is a pass of one thread and a measured round of empty "
        "tasks. Its sums have one number a column, at 1 GB a second. Workers have 8 cores.",
        "",
        *_common.markdown_table(
            ("workers", "computing, s", "scheduler, s", "network, s", "round, s", "fit, minutes", "most is"),
            worked,
        ),
    ]  # fmt: skip
    _common.write_markdown(args.markdown, lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
