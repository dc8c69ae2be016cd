"""Sparsemax and softmax regression on a GPU: kernels against their floors, fits against the CPU's.

    python benchmarks/gpu_softmax.py --n-threads 2 --markdown gpu_softmax.md

A kernel's floor is the time of reading and writing what it must once, at a copy's bandwidth. A fit is timed
from arrays on the device to coefficients there. The GPU pays from the size at which the ratio stays above 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings

import _common
import _gpu
import numpy as np
import scipy.sparse as sp

from sparsekit import SoftmaxClassifier, SparsemaxClassifier

# rows, columns, classes, and entries of a row (0: dense)
SIZES = [
    (1_000, 50, 10, 0), (10_000, 100, 10, 0), (100_000, 200, 10, 0), (300_000, 1_000, 20, 0),
    (1_000, 2_000, 10, 30), (20_000, 20_000, 20, 60), (200_000, 50_000, 20, 80), (1_000_000, 100_000, 50, 80),
]  # fmt: skip


def problem(n, p, K, entries, seed=0):
    """X in main memory, float32, and classes that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((p, K), dtype=np.float32)
    if entries:
        # columns as uneven as those of words
        columns = (p * rng.random((n, entries)) ** 3).astype(np.int32)
        values = rng.random((n, entries), dtype=np.float32)
        X = sp.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, n * entries + 1, entries)), (n, p))
        X.sum_duplicates()
    else:
        X = rng.standard_normal((n, p), dtype=np.float32)
    Z = X @ W
    return X, np.argmax(Z / Z.std() + rng.gumbel(size=(n, K)), axis=1)


def to_device(cupy, X):
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix(X) if sp.issparse(X) else cupy.asarray(X)


def kernels(cupy, sizes, bandwidth):
    """Rows of the first table: products and losses of the larger problems."""
    from sparsekit.gpu.shared import _curvature, _multinomial, _sparse

    table = []
    for n, p, K, entries in (size for size in sizes if size[3]):
        A = to_device(cupy, problem(n, p, K, entries)[0])
        nnz, indptr = A.nnz, A.indptr.astype(np.int64)
        columns = _sparse.transpose(indptr, A.indices, A.data, p)
        what = f"{n} x {p}, K = {K}"
        count = _gpu.sets_beyond_cache(cupy, 4 * n * K)
        S = [cupy.random.random((n, K), dtype=np.float32) for _ in range(count)]
        V = [cupy.random.random((p, K), dtype=np.float32) for _ in range(count)]
        rows = [(indptr, A.indices, A.data, v, s) for v, s in zip(V, S)]
        turned = [(*columns, s, v) for v, s in zip(V, S)]
        nbytes = 8 * nnz + 4 * K * (n + p)
        for name, call, inputs, size in (
            ("product32", _curvature.product32, rows, n),
            ("product32, transposed", _curvature.product32, turned, p),
            ("cupyx, X V", lambda _a, _b, _c, v, _s, A=A: A @ v, rows, n),
        ):
            t = _gpu.seconds(cupy, call, inputs)
            table.append(_gpu.row(f"{name}, {what}", t, nbytes + 8 * size, bandwidth))
        Z, U = cupy.random.random((n, K)), cupy.empty((n, K))
        codes, s = cupy.zeros(n, np.int32), cupy.full(n, 1.0 / n)
        t = _gpu.seconds(cupy, _multinomial.value_and_derivative, [(Z, codes, s, U)])
        table.append(_gpu.row(f"value_and_derivative, {what}", t, 16 * n * K, bandwidth))
        top, weight = codes, s.astype(np.float32)
        args = [(s1, s2, top, weight, None, None) for s1, s2 in zip(S, S[::-1])]
        t = _gpu.seconds(cupy, _curvature.curve_scores, args)
        table.append(_gpu.row(f"curve_scores, {what}", t, 12 * n * K, bandwidth))
    return table


def fit_seconds(cupy, model, X, y, repeats):
    """Median seconds of fits, and the fitted model."""
    times = []
    while len(times) <= repeats and sum(times) < 60.0:
        start = time.perf_counter()
        model.fit(X, y)
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times), model  # the first one compiles kernels and fills caches


def cuml_seconds(cupy, X, y, args):
    """Time of cuML's logistic regression with the same penalty, which leaves the intercepts free."""
    try:
        from cuml.linear_model import LogisticRegression
    except ImportError:
        return "-"
    model = LogisticRegression(C=1.0 / (args.alpha * X.shape[0]), tol=args.tol, max_iter=1000)
    return f"{1e3 * fit_seconds(cupy, model, X, y, args.repeats)[0]:.1f} ms"


def fits(cupy, sizes, args):
    """Rows of the second table."""
    table = []
    for n, p, K, entries in sizes:
        X, y = problem(n, p, K, entries)
        device, labels = to_device(cupy, X), cupy.asarray(y)
        for cls in (SoftmaxClassifier, SparsemaxClassifier):
            options = dict(alpha=args.alpha, tol=args.tol, max_time=args.max_time)
            slow, here = fit_seconds(cupy, cls(n_jobs=args.n_threads, **options), X, y, args.repeats)
            fast, there = fit_seconds(cupy, cls(**options), device, labels, args.repeats)
            cells = [f"{cls.__name__}, {n} x {p}, K = {K}" + (f", {entries} a row" if entries else "")]
            cells += [f"{1e3 * slow:.1f} ms", f"{1e3 * fast:.1f} ms", f"{slow / fast:.2f}"]
            cells += [f"{here.n_iter_[0]}", f"{there.n_iter_[0]}"]
            cells += [f"{abs(there.objective_ / here.objective_ - 1.0):.1e}"]
            cells += [cuml_seconds(cupy, device, labels, args) if cls is SoftmaxClassifier else ""]
            table.append(cells)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--n-threads", type=int, default=2, help="threads of the CPU's fits")
    add("--alpha", type=float, default=1e-5)
    add("--tol", type=float, default=1e-4)
    add("--max-time", type=float, default=120.0)
    add("--repeats", type=int, default=3)
    add("--markdown")
    args = parser.parse_args()
    args.command = " ".join(["python benchmarks/gpu_softmax.py", *sys.argv[1:]])
    cupy = _gpu.device_or_exit()
    warnings.simplefilter("ignore")
    bandwidth = _gpu.copy_bandwidth(cupy)
    titles = ["kernel", "time", "floor", "reached", "of the copy"]
    lines = ["# Softmax regression on a GPU", "", *_common.environment(args, ()), _gpu.describe(cupy)]
    lines += [f"A copy moves {bandwidth / 1e9:.0f} GB/s.", ""]
    lines += _common.markdown_table(titles, kernels(cupy, SIZES, bandwidth))
    titles = ["fit", "CPU", "GPU", "CPU / GPU", "steps", "steps there", "objective's difference", "cuML"]
    lines += ["", *_common.markdown_table(titles, fits(cupy, SIZES, args))]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
