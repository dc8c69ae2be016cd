"""The multinomial L1 model and ranking on a GPU: kernels against their floors, fits against the CPU's.

    python benchmarks/gpu_multinomial.py --n-threads 2 --markdown gpu_multinomial.md

A kernel's floor is the time of reading and writing what it must once, at a copy's bandwidth.
"""

from __future__ import annotations

import sys

import _common
import _gpu
from gpu_softmax import problem

from sparsekit import L1LogisticOBA

# rows, columns, classes, and entries of a row (0: dense)
SIZES = [
    (1_000, 50, 10, 0), (100_000, 200, 10, 0), (1_000_000, 500, 10, 0),
    (1_000, 2_000, 10, 30), (20_000, 200_000, 20, 200), (500_000, 100_000, 20, 80),
]  # fmt: skip
# rows, classes and scores wanted
RANKED = [(1024, 1000, 5), (1024, 65_536, 1), (1024, 65_536, 5), (1024, 65_536, 100), (32, 1_000_000, 5)]


def operator(cupy, X, K):
    """The Hessian's operator at equal probabilities on all variables, and a vector for it."""
    from sparsekit.gpu.shared import _class_operators, _sparse

    n, p = X.shape
    P = cupy.full((n, K), 1.0 / K, dtype=cupy.float32)
    P[:, 0] = 0.0
    m = (p + 1) * K
    shared = (
        P,
        cupy.zeros(n, cupy.int32),
        cupy.ones(n, cupy.float32),
        cupy.arange(m),
        cupy.ones(m),
        True,
        1e-9,
    )
    if hasattr(X, "nnz"):
        rows = X.indptr.astype(cupy.int64), X.indices, X.data
        columns = _sparse.transpose(*rows, p)
        return _class_operators.ClassRowOperator(rows, columns, p, *shared), m
    return _class_operators.ClassDenseOperator(X, *shared), m


def products(cupy, bandwidth, args):
    """Rows of the first table: H v."""
    for n, p, K, entries in SIZES:
        X = _gpu.to_device(cupy, problem(n, p, K, entries)[0])
        made, m = operator(cupy, X, K)
        count = _gpu.sets_beyond_cache(cupy, 16 * m)
        inputs = [(cupy.random.standard_normal(m), cupy.empty(m)) for _ in range(count)]
        t = _gpu.seconds(cupy, made.product, inputs)
        # X twice, probabilities once, the scores' curvature to memory and back, v and out
        data = 2 * 8 * X.nnz if entries else 2 * 4 * n * p
        what = f"{type(made).__name__}, {n} x {p}, K = {K}"
        yield _gpu.row(what, t, data + 12 * n * K + 16 * m, bandwidth)


def rankings(cupy, bandwidth, args):
    """Rows of the second table: the highest scores of rows and their normaliser; and by CuPy."""
    from sparsekit.gpu.extreme import _ranking

    def known(n, k):
        best, codes = cupy.full((n, k), -cupy.inf, cupy.float32), cupy.full((n, k), 2**62)
        high, total = cupy.full(n, -cupy.inf), cupy.zeros(n)
        return best, codes, high, total, cupy.empty(0, cupy.int64), cupy.empty(0)

    def plain(scores, k):
        cupy.argpartition(scores, -k, axis=1)
        cupy.exp(scores - scores.max(axis=1)[:, None]).sum(axis=1)

    for n, m, k in RANKED:
        count = _gpu.sets_beyond_cache(cupy, 4 * n * m)
        scores = [cupy.random.random((n, m), dtype=cupy.float32) for _ in range(count)]
        t = _gpu.seconds(cupy, _ranking.rank_scores, [(s, 0, *known(n, k)) for s in scores])
        yield _gpu.row(f"rank_scores, {n} x {m}, k = {k}", t, 4 * n * m, bandwidth)
        t = _gpu.seconds(cupy, plain, [(s, k) for s in scores], repeats=5)
        yield _gpu.row(f"argpartition, exp, sum, {n} x {m}, k = {k}", t, 4 * n * m, bandwidth)


def fits(cupy, bandwidth, args):
    """Rows of the third table."""
    for n, p, K, entries in SIZES:
        X, y = problem(n, p, K, entries)
        options = dict(C=args.C, tol=args.tol, max_time=args.max_time)
        device = _gpu.to_device(cupy, X), cupy.asarray(y)
        slow, here, fast, there = _gpu.fit_twice(cupy, L1LogisticOBA, options, (X, y), device, args)
        cells = [f"{n} x {p}, K = {K}" + (f", {entries} a row" if entries else "")]
        cells += [f"{1e3 * slow:.1f} ms", f"{1e3 * fast:.1f} ms", f"{slow / fast:.2f}"]
        cells += [
            f"{here.n_iter_[0]}",
            f"{there.n_iter_[0]}",
            f"{abs(there.objective_ / here.objective_ - 1.0):.1e}",
        ]
        yield cells


def main():
    parser = _common.make_parser(__doc__)
    _gpu.add_fits(parser)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-4)
    titles = ["fit", "CPU", "GPU", "CPU / GPU", "steps", "steps there", "objective's difference"]
    tables = [(_gpu.KERNELS, products), (_gpu.KERNELS, rankings), (titles, fits)]
    return _gpu.report("The multinomial L1 model", parser.parse_args(), tables)


if __name__ == "__main__":
    sys.exit(main())
