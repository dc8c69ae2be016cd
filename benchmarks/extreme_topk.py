"""The best of very many classes: `predict_topk` of ExtremeSoftmaxSGD with and without weights in 8 bits.

    python benchmarks/extreme_topk.py                                   # 10^6 classes, 200 features: minutes
    python benchmarks/extreme_topk.py --tables gauss --nonzeros 50,200  # the adverse table alone
    python benchmarks/extreme_topk.py --classes 4096,32768 --layouts feature,class

Weights are Gaussian; those of class i (in a random order) have the size ``i ** -decay``. Times are those of
whole calls with one thread, the least of several, per row; the first call of many rows also makes the copy.
Classes and scores with and without are checked to be the same. 0.8 GB of weights a table, twice at a time.
"""

from __future__ import annotations

import argparse
import sys
import time

import _common
import numpy as np
import scipy.sparse as sp

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.solver.shortlist import shortlist_of

DECAYS = {"root": 0.5, "inverse": 1.0, "gauss": 0.0}
LAYOUTS = {"feature": "F", "class": "C"}
# number of calls of one row
SINGLE = 40
# rows of the call of many rows
BATCH = 200


def table(n_classes, n_features, decay, order, seed=0):
    """Weights (n_classes, n_features) and intercepts, float32."""
    rng = np.random.default_rng(seed)
    sizes = (1.0 + rng.permutation(n_classes)) ** -decay
    coef = np.empty((n_classes, n_features), dtype=np.float32, order=order)
    for f in range(n_features):
        coef[:, f] = rng.standard_normal(n_classes, dtype=np.float32) * sizes
    return coef, (np.log(sizes) if decay else np.zeros(n_classes)).astype(np.float32)


def rows(n, n_features, nonzeros, seed=1):
    """CSR rows of norm about 1."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.sort(rng.choice(n_features, nonzeros, replace=False)) for _ in range(n)])
    data = rng.standard_normal(n * nonzeros, dtype=np.float32) / np.float32(np.sqrt(nonzeros))
    return sp.csr_array((data, columns, np.arange(0, n * nonzeros + 1, nonzeros)), shape=(n, n_features))


def model_of(coef, intercept):
    """A model with these weights."""
    n_classes, n_features = coef.shape
    X = sp.csr_array(np.eye(2, n_features, dtype=np.float32))
    model = ExtremeSoftmaxSGD("ove", learning_rate=1.0, n_jobs=1, random_state=0)
    model.partial_fit(X, np.arange(2), classes=np.arange(n_classes))
    model.coef_, model.intercept_ = coef, intercept
    return model


def least(call, repeats):
    """Milliseconds of the fastest of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def measure(model, X, k):
    """One table row: milliseconds a row, and what the shortlist read."""
    ones = [X[i : i + 1] for i in range(SINGLE)]
    start = time.perf_counter()
    labels, scores = model.predict_topk(X, k)
    first = 1e3 * (time.perf_counter() - start) / BATCH
    model.predict_topk(X, k)  # what the first call did not pay for
    kept = shortlist_of(model.coef_, model.intercept_)
    before, n_before = kept.looked.copy(), kept.rows
    some = [least(lambda x=x: model.predict_topk(x, k), 3) for x in ones]
    many = least(lambda: model.predict_topk(X, k), 3) / BATCH
    n = max(1, kept.rows - n_before)
    looked = (kept.looked - before) / n
    all_one = np.median([least(lambda x=x: model.predict_topk(x, k, shortlist=False), 1) for x in ones[:10]])
    start = time.perf_counter()
    expected = model.predict_topk(X, k, shortlist=False)
    all_many = 1e3 * (time.perf_counter() - start) / BATCH
    assert (labels == expected[0]).all() and (scores == expected[1]).all()
    return [
        f"{all_one:.1f}", f"{np.median(some):.2f}", f"{all_many:.2f}", f"{many:.3f}", f"{first:.1f}",
        f"{looked[0]:.0f} of {kept.n_parts}", f"{looked[1]:.0f}", kept.failures,
        f"{kept.n_bytes / model.coef_.nbytes:.2f}",
    ]  # fmt: skip


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", default="1000000", help="numbers of classes (default: 1000000)")
    parser.add_argument("--features", type=int, default=200, help="features (default: 200)")
    parser.add_argument("--nonzeros", default="10,50", help="non-zeros of a row (default: 10,50)")
    parser.add_argument(
        "--tables",
        default=",".join(DECAYS),
        help="how sizes of weights fall (default: all of root, inverse, gauss)",
    )
    parser.add_argument("--layouts", default="feature", help="feature, class or both (default: feature)")
    parser.add_argument("--k", type=int, default=10, help="classes of each row (default: 10)")
    parser.add_argument("--markdown", metavar="FILE", help="write the table")
    args = parser.parse_args(argv)
    args.command = "python benchmarks/extreme_topk.py " + " ".join(sys.argv[1:] if argv is None else argv)
    lines, found = [*_common.environment(args, [])], []
    for n_classes in map(int, args.classes.split(",")):
        for layout in args.layouts.split(","):
            for name in args.tables.split(","):
                coef, intercept = table(n_classes, args.features, DECAYS[name], LAYOUTS[layout])
                for nonzeros in map(int, args.nonzeros.split(",")):
                    coef_here = coef.copy("K")  # made anew for each
                    model = model_of(coef_here, intercept)
                    row = measure(model, rows(BATCH, args.features, nonzeros), args.k)
                    found.append([f"{n_classes}, {name}, {nonzeros} non-zeros, by {layout}", *row])
                    print(found[-1], flush=True)
                    del model, coef_here
    columns = [
        "", "one row: all scores", "shortlist", f"{BATCH} rows: all scores", "shortlist", "first call",
        "parts read", "classes scored", "rows without", "bytes",
    ]  # fmt: skip
    lines += _common.markdown_table(columns, found)
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
