"""L1 logistic regression on a GPU: fits against two CPU threads and cuML's, passes against floors.

    python benchmarks/gpu_l1_logistic.py                        # rcv1_binary, newsgroups_bigrams, synthetic
    python benchmarks/gpu_l1_logistic.py --sets synthetic --rows 100000

The data folder is --data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout. X is on the device
before the clock starts; what a fit makes of it (its columns, for a sparse X) is in its time. cuML gets
looser and looser tolerances as long as its objective is at most 1e-4 above that of this package.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _data
import _gpu

from sparsekit.optimize import LogisticLoss, minimize_oba

CUML_ABOVE = 1e-4


def parse(argv=None):
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--sets", default="rcv1_binary,newsgroups_bigrams,synthetic")
    add("--shares", default="0.1,0.01", help="lambda / lambda_max")
    add("--rows", type=int, default=1_000_000, help="of the synthetic problem")
    add("--columns", type=int, default=2000)
    add("--repeats", type=int, default=5)
    add("--data", metavar="DIR")
    add("--no-cpu", action="store_true")
    return parser.parse_args(argv)


def read(cupy, args, name):
    """X on the device and labels -1, +1 there."""
    if name == "synthetic":
        rng = cupy.random.RandomState(0)
        X = cupy.empty((args.rows, args.columns), dtype=np.float32)
        for lo in range(0, args.rows, 65536):  # drawn by parts of the rows, on the device
            X[lo : lo + 65536] = rng.standard_normal(X[lo : lo + 65536].shape, dtype=np.float32)
        w = rng.standard_normal(args.columns) * (rng.random_sample(args.columns) < 0.05)
        z = X @ w.astype(np.float32) + 2.0 * rng.standard_normal(args.rows, dtype=np.float32)
        return X, cupy.where(z > 0, 1.0, -1.0)
    problem = _data.problem(_data.data_folder(args.data), name)
    return _gpu.to_device(cupy, sparse.csr_matrix(problem.X)), cupy.asarray(problem.y)


def median_fit(cupy, make, l1, repeats):
    """Median seconds of loss and fit, and the last result."""

    def run():
        loss = make()
        return minimize_oba(loss, loss.l1_vector(l1))

    return _gpu.median_seconds(cupy, run, repeats)


def cuml_fit(cupy, X, y, l1, best):
    """(seconds, objective / best - 1) of cuML's loosest fit that is good enough; None without cuML."""
    try:
        from cuml.linear_model import LogisticRegression
    except ImportError as error:
        return print(f"    cuML: left out ({error})")
    good = None
    for tol in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        model = LogisticRegression(penalty="l1", C=1.0 / l1, fit_intercept=False, tol=tol, max_iter=10000)
        start = time.perf_counter()
        model.fit(X, (y > 0).astype(X.dtype))
        cupy.cuda.Device().synchronize()
        took = time.perf_counter() - start
        coef = cupy.asarray(model.coef_).reshape(-1).astype(np.float64)
        above = (LogisticLoss(X, y).value(coef) + l1 * float(abs(coef).sum())) / best - 1.0
        if above > CUML_ABOVE:
            return good or (took, above)
        good = took, above
    return good


def entries_and_bytes(X):
    """Stored entries of X and what one pass over them reads."""
    if hasattr(X, "nnz"):
        return X.nnz, X.nnz * (X.dtype.itemsize + X.indices.dtype.itemsize)
    return X.size, X.nbytes


def passes(cupy, X, y, bandwidth):
    """Print the times of the passes over X that a fit is made of, with bytes and floors."""
    design = LogisticLoss(X, y).design
    (n, p), (items, nbytes) = X.shape, entries_and_bytes(X)
    ws, us = [cupy.random.random(p) for _ in range(4)], [cupy.random.random(n) for _ in range(4)]
    print(f"  pass over X: {nbytes / 1e6:.1f} MB, {2e-6 * items:.1f} Mflop")
    for name, call, inputs in (("X w", design.matvec, ws), ("X^T u", design.rmatvec, us)):
        took = _gpu.seconds(cupy, call, [(v,) for v in inputs])
        print("   ", *_gpu.row(name, took, nbytes + 8 * (n + p), bandwidth), sep="  ")
    operator, _ = design.model(cupy.arange(min(p, 2048)), us[0], False, 0.0)
    vs = [cupy.random.random(operator.size) for _ in range(4)]
    took = _gpu.seconds(cupy, operator.matvec, [(v,) for v in vs])
    print(f"    Hessian product, {operator.size} columns ({type(operator).__name__}): {1e6 * took:.1f} us")


def compare(who, seconds, took, above):
    print(f"    {who}: {1e3 * seconds:.1f} ms ({seconds / took:.1f} times), objective {above:+.1e}")


def fits(cupy, args, X, y, host, l1, bandwidth):
    """Print the time of one fit, its floor, and those of the peers."""
    took, found = median_fit(cupy, lambda: LogisticLoss(X, y), l1, args.repeats)
    floor = found.n_data_passes * entries_and_bytes(X)[1] / bandwidth
    print(
        f"  lambda {l1:.3g}: {1e3 * took:.1f} ms, {found.nit} iterations, {found.n_products} products, "
        f"{int((found.x != 0).sum())} coefficients, gap {found.dual_gap / found.fun:.1e}; floor of its "
        f"{found.n_data_passes:.1f} passes {1e3 * floor:.2f} ms"
    )
    if host is not None:
        repeats = 3 if hasattr(X, "nnz") else 0
        slow, same = median_fit(cupy, lambda: LogisticLoss(*host, n_threads=2), l1, repeats)
        compare("two CPU threads", slow, took, same.fun / found.fun - 1)
    peer = cuml_fit(cupy, X, y, l1, found.fun)
    if peer is not None:
        compare("cuML", peer[0], took, peer[1])


def main(argv=None):
    args = parse(argv)
    cupy = _gpu.device_or_exit()
    bandwidth = _gpu.copy_bandwidth(cupy)
    print(_gpu.describe(cupy), f"copies {bandwidth / 1e9:.0f} GB/s")
    for name in args.sets.split(","):
        X, y = read(cupy, args, name)
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, {X.dtype}")
        passes(cupy, X, y, bandwidth)
        largest = float(abs(LogisticLoss(X, y).gradient(cupy.zeros(X.shape[1]))).max())
        host = None if args.no_cpu else (X.get(), y.get())
        for share in map(float, args.shares.split(",")):
            fits(cupy, args, X, y, host, share * largest, bandwidth)


if __name__ == "__main__":
    main()
