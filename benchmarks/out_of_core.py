"""A fit to a folder on disk that is larger than the memory it may take.

    python benchmarks/out_of_core.py --write --gib 20 FOLDER     # once
    SPARSEKIT_MEMORY=1 python benchmarks/out_of_core.py FOLDER

METHOD. Rows of 100 numbers in 10^5 columns, the first ones more frequent, are written in chunks of 2 * 10^5
rows. Writing stops when they take this many GiB as CSR. A process of its own then opens the folder, fits
L1LogisticOBA, and prints the time, the passes, the certificate and its largest resident memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp

from sparsekit import L1LogisticOBA
from sparsekit.datasets import open_csr, write_csr

# rows of a block
ROWS = 200_000
# entries of a row
ENTRIES = 100
COLUMNS = 100_000
# bytes of an entry and its index
ENTRY_BYTES = 12


def chunks(gib):
    """CSR matrices and their labels, of so many GiB in all."""
    rng, total = np.random.default_rng(0), 0
    w = np.where(rng.random(COLUMNS) < 0.002, rng.normal(size=COLUMNS), 0.0)
    cut = np.arange(0, ROWS * ENTRIES + 1, ENTRIES, dtype=np.int32)
    while total < gib * 2**30:
        at = np.minimum((COLUMNS * rng.random((ROWS, ENTRIES)) ** 1.5).astype(np.int32), COLUMNS - 1)
        at.sort(axis=1)
        X = sp.csr_matrix((rng.random(ROWS * ENTRIES), at.ravel(), cut), shape=(ROWS, COLUMNS))
        X.sum_duplicates()
        total += X.nnz * ENTRY_BYTES
        yield X, np.where(X @ w + 0.5 * rng.normal(size=ROWS) > 0, 1.0, -1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--gib", type=float, default=20.0)
    parser.add_argument("--C", type=float, default=5e-4)
    args = parser.parse_args()
    begin = time.perf_counter()
    if args.write:
        print(write_csr(args.folder, chunks(args.gib)), f"in {time.perf_counter() - begin:.0f} s")
        return
    X = open_csr(args.folder)
    model = L1LogisticOBA(C=args.C).fit(X, X.y)
    seconds, peak = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{X}\n{seconds:.0f} s, {model.n_rounds_} passes, relative gap "
        f"{model.dual_gap_ / model.objective_:.1e}, {int((model.coef_ != 0).sum())} coefficients, at "
        f"most {peak:.2f} GiB resident"
    )


if __name__ == "__main__":
    main()
