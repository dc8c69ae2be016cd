"""Sparsemax and softmax regression on a GPU: kernels against their floors, fits against the CPU's.

    python benchmarks/gpu_softmax.py --n-threads 2 --markdown gpu_softmax.md

A kernel's floor is the time of reading and writing what it must once, at a copy's bandwidth. A fit is timed
from arrays on the device to coefficients there. The GPU pays from the size at which the ratio stays above 1.
"""

from __future__ import annotations

import sys

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


def kernels(cupy, bandwidth, args):
    """Rows of the first table: products and losses of the larger problems."""
    from sparsekit.gpu.shared import _curvature, _multinomial, _sparse

    for n, p, K, entries in (size for size in SIZES if size[3]):
        A = _gpu.to_device(cupy, problem(n, p, K, entries)[0])
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
            yield _gpu.row(f"{name}, {what}", t, nbytes + 8 * size, bandwidth)
        Z, U = cupy.random.random((n, K)), cupy.empty((n, K))
        codes, s = cupy.zeros(n, np.int32), cupy.full(n, 1.0 / n)
        t = _gpu.seconds(cupy, _multinomial.value_and_derivative, [(Z, codes, s, U)])
        yield _gpu.row(f"value_and_derivative, {what}", t, 16 * n * K, bandwidth)
        top, weight = codes, s.astype(np.float32)
        args = [(s1, s2, top, weight, None) for s1, s2 in zip(S, S[::-1])]
        t = _gpu.seconds(cupy, _curvature.curve_scores, args)
        yield _gpu.row(f"curve_scores, {what}", t, 12 * n * K, bandwidth)


def cuml_seconds(cupy, X, y, args):
    """Time of cuML's logistic regression with the same penalty, which leaves the intercepts free."""
    try:
        from cuml.linear_model import LogisticRegression
    except ImportError:
        return "-"
    model = LogisticRegression(C=1.0 / (args.alpha * X.shape[0]), tol=args.tol, max_iter=1000)
    return f"{1e3 * _gpu.median_seconds(cupy, lambda: model.fit(X, y), args.repeats)[0]:.1f} ms"


def fits(cupy, bandwidth, args):
    """Rows of the second table."""
    for n, p, K, entries in SIZES:
        X, y = problem(n, p, K, entries)
        device, labels = _gpu.to_device(cupy, X), cupy.asarray(y)
        for cls in (SoftmaxClassifier, SparsemaxClassifier):
            options = dict(alpha=args.alpha, tol=args.tol, max_time=args.max_time)
            slow, here, fast, there = _gpu.fit_twice(cupy, cls, options, (X, y), (device, labels), args)
            cells = [f"{cls.__name__}, {n} x {p}, K = {K}" + (f", {entries} a row" if entries else "")]
            cells += [f"{1e3 * slow:.1f} ms", f"{1e3 * fast:.1f} ms", f"{slow / fast:.2f}"]
            cells += [f"{here.n_iter_[0]}", f"{there.n_iter_[0]}"]
            cells += [f"{abs(there.objective_ / here.objective_ - 1.0):.1e}"]
            cells += [cuml_seconds(cupy, device, labels, args) if cls is SoftmaxClassifier else ""]
            yield cells


def main():
    parser = _common.make_parser(__doc__)
    _gpu.add_fits(parser)
    parser.add_argument("--alpha", type=float, default=1e-5)
    parser.add_argument("--tol", type=float, default=1e-4)
    titles = ["fit", "CPU", "GPU", "CPU / GPU", "steps", "steps there", "objective's difference", "cuML"]
    tables = [(_gpu.KERNELS, kernels), (titles, fits)]
    return _gpu.report("Softmax regression", parser.parse_args(), tables)


if __name__ == "__main__":
    sys.exit(main())
