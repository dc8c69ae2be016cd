"""Cost of a step by the numbers of classes and of rows, compared with the machine's random access."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from _extreme import Run, load

# method, rate, negatives
CASES = (
    ("ove", 1.0, 1),
    ("implicit", 1.0, 1),
    ("ove", 1.0, 5),
    ("implicit", 1.0, 5),
    ("ove", 1.0, 16),
    ("implicit", 1.0, 16),
)


def synthetic(n, K, D=1000, nonzeros=10, seed=0):
    """Rows of ``nonzeros`` random features, random labels."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.integers(0, D, size=(n, nonzeros), dtype=np.int32), axis=1)
    # equal neighbours: the next feature
    columns += (np.diff(columns, axis=1, prepend=-1) == 0).astype(np.int32)
    columns %= D
    data = np.full(n * nonzeros, 1 / np.sqrt(nonzeros), dtype=np.float32)
    indptr = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32 if n * nonzeros < 2**31 else np.int64)
    X = sp.csr_array((data, columns.ravel().astype(indptr.dtype), indptr), shape=(n, D))
    return X, rng.integers(0, K, n)


def nanoseconds(X, y, K, method, rate, negatives, n_threads, repeats=3):
    """A step of one row, the median of epochs after the first (which touches new memory)."""
    run = Run(X, y, K, method, rate, sizes=(1, negatives), n_threads=n_threads)
    run.step()
    times = []
    for _ in range(repeats):
        before = run.seconds
        run.step()
        times.append(run.seconds - before)
    return float(np.median(times)) / len(y) * 1e9


def random_access(size, count=2_000_000, seed=0):
    """Nanoseconds to read one number at a random address in ``size`` bytes, many of them under way."""
    table = np.zeros(size // 4, dtype=np.float32)
    table[::1024] = 1.0
    addresses = np.random.default_rng(seed).integers(0, len(table), count)
    out = np.empty(count, dtype=np.float32)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        np.take(table, addresses, out=out, mode="clip")
        times.append(time.perf_counter() - start)
    return min(times) / count * 1e9


def cost(args):
    """Markdown blocks: by classes, by rows, and steps a second on bibtex."""
    columns = ["", *(f"{m}, {k}" for m, _, k in CASES)]
    blocks = []
    rows = []
    for K in (10, 100, 1000, 10**4, 10**5, 10**6):
        X, y = synthetic(200_000, K)
        values = [nanoseconds(X, y, K, m, r, k, 1) for m, r, k in CASES]
        line = random_access(max(4096 * 4, 4 * K * 1000))
        lines = 2 * 10
        rows.append([f"{K:.0e} classes", *(f"{v:.0f}" for v in values), f"{lines * line:.0f}",
                     f"{values[1] / values[0]:.2f}", f"{values[3] / values[2]:.2f}"])  # fmt: skip
        print(rows[-1], flush=True)
    more = ["20 random reads", "implicit / ove, 1", "implicit / ove, 5"]
    blocks.append(
        (
            "Nanoseconds a step, 200000 rows of 10 non-zeros, 1000 features, one thread",
            [*columns, *more],
            rows,
        )
    )
    rows = []
    for n in (10**3, 10**4, 10**5, 10**6, 4 * 10**6):
        X, y = synthetic(n, 1000)
        rows.append([f"{n:.0e} rows", *(f"{nanoseconds(X, y, 1000, m, r, k, 1):.0f}" for m, r, k in CASES)])
        print(rows[-1], flush=True)
    blocks.append(("The same with 1000 classes, by rows", columns, rows))
    rows = []
    for dtype in (np.float32, np.float64):
        X, y, _, _, K = load(args.folder, "bibtex", dtype)
        X, y = sp.csr_array(sp.vstack([X] * 10, format="csr")), np.tile(y, 10)
        for n_threads in (1, 2):
            values = [
                1e3 / nanoseconds(X, y, K, m, {"ove": 0.1}.get(m, 10.0), k, n_threads, 5) for m, _, k in CASES
            ]
            rows.append([f"{np.dtype(dtype)}, {n_threads} threads", *(f"{v:.2f}" for v in values)])
            print(rows[-1], flush=True)
    blocks.append(("Million steps a second on bibtex (68 non-zeros a row)", columns, rows))
    return blocks
