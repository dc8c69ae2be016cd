"""The multinomial L1 model and ranking on a GPU: kernels against their floors, fits against the CPU's.

    python benchmarks/gpu_multinomial.py --n-threads 2 --markdown gpu_multinomial.md

A kernel's floor is the time of reading and writing what it must once, at a copy's bandwidth.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import _common
import _gpu
from gpu_softmax import fit_seconds, problem, to_device

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
    from sparsekit.gpu.shared import _class_operators

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
        return _class_operators.ClassRowOperator(*rows, p, *shared), m
    return _class_operators.ClassDenseOperator(X, *shared), m


def products(cupy, sizes, bandwidth):
    """Rows of the first table: H v."""
    table = []
    for n, p, K, entries in sizes:
        X = to_device(cupy, problem(n, p, K, entries)[0])
        made, m = operator(cupy, X, K)
        count = _gpu.sets_beyond_cache(cupy, 16 * m)
        inputs = [(cupy.random.standard_normal(m), cupy.empty(m)) for _ in range(count)]
        t = _gpu.seconds(cupy, made.product, inputs)
        # X twice, probabilities once, the scores' curvature to memory and back, v and out
        data = 2 * 8 * X.nnz if entries else 2 * 4 * n * p
        what = f"{type(made).__name__}, {n} x {p}, K = {K}"
        table.append(_gpu.row(what, t, data + 12 * n * K + 16 * m, bandwidth))
    return table


def rankings(cupy, sizes, bandwidth):
    """Rows of the same table: the highest scores of rows and their normaliser; and by CuPy."""
    from sparsekit.gpu.extreme import _ranking

    def known(n, k):
        best, codes = cupy.full((n, k), -cupy.inf, cupy.float32), cupy.full((n, k), 2**62)
        high, total = cupy.full(n, -cupy.inf), cupy.zeros(n)
        return best, codes, high, total, cupy.empty(0, cupy.int64), cupy.empty(0)

    def plain(scores, k):
        cupy.argpartition(scores, -k, axis=1)
        cupy.exp(scores - scores.max(axis=1)[:, None]).sum(axis=1)

    table = []
    for n, m, k in sizes:
        count = _gpu.sets_beyond_cache(cupy, 4 * n * m)
        scores = [cupy.random.random((n, m), dtype=cupy.float32) for _ in range(count)]
        t = _gpu.seconds(cupy, _ranking.rank_scores, [(s, 0, *known(n, k)) for s in scores])
        table.append(_gpu.row(f"rank_scores, {n} x {m}, k = {k}", t, 4 * n * m, bandwidth))
        t = _gpu.seconds(cupy, plain, [(s, k) for s in scores], repeats=5)
        table.append(_gpu.row(f"argpartition, exp, sum, {n} x {m}, k = {k}", t, 4 * n * m, bandwidth))
    return table


def fits(cupy, sizes, args):
    """Rows of the second table."""
    table = []
    for n, p, K, entries in sizes:
        X, y = problem(n, p, K, entries)
        options = dict(C=args.C, tol=args.tol, max_time=args.max_time)
        slow, here = fit_seconds(cupy, L1LogisticOBA(n_jobs=args.n_threads, **options), X, y, args.repeats)
        device = to_device(cupy, X), cupy.asarray(y)
        fast, there = fit_seconds(cupy, L1LogisticOBA(**options), *device, args.repeats)
        cells = [f"{n} x {p}, K = {K}" + (f", {entries} a row" if entries else "")]
        cells += [f"{1e3 * slow:.1f} ms", f"{1e3 * fast:.1f} ms", f"{slow / fast:.2f}"]
        cells += [
            f"{here.n_iter_[0]}",
            f"{there.n_iter_[0]}",
            f"{abs(there.objective_ / here.objective_ - 1.0):.1e}",
        ]
        table.append(cells)
        print(*cells, sep="  ", flush=True)
    return table


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--n-threads", type=int, default=2, help="threads of the CPU's fits")
    add("--C", type=float, default=1.0)
    add("--tol", type=float, default=1e-4)
    add("--max-time", type=float, default=120.0)
    add("--repeats", type=int, default=3)
    add("--markdown")
    args = parser.parse_args()
    args.command = " ".join(["python benchmarks/gpu_multinomial.py", *sys.argv[1:]])
    cupy = _gpu.device_or_exit()
    warnings.simplefilter("ignore")
    bandwidth = _gpu.copy_bandwidth(cupy)
    lines = [
        "# The multinomial L1 model on a GPU",
        "",
        *_common.environment(args, ()),
        _gpu.describe(cupy),
        "",
    ]
    table = products(cupy, SIZES, bandwidth) + rankings(cupy, RANKED, bandwidth)
    lines += _common.markdown_table(["kernel", "time", "floor", "reached", "of the copy"], table)
    titles = ["fit", "CPU", "GPU", "CPU / GPU", "steps", "steps there", "objective's difference"]
    lines += ["", *_common.markdown_table(titles, fits(cupy, SIZES, args))]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
