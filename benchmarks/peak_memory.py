"""Peak memory of fits to large sparse data, in units of the bytes of X.

    python benchmarks/peak_memory.py
    python benchmarks/peak_memory.py --sets rcv1_binary --only L1LogisticOBA,LassoOBA --markdown table.md

METHOD. Each fit has a process of its own (Linux). X is CSR of float64 values and int32 indices, y has two
classes; settings are the defaults but for what the rows name. The high-water mark of the resident set is
reset just before the fit, and the resident set at that moment is subtracted. The figure is this peak over the
bytes of data, indices and indptr of X. X itself, which no fit copies on the way in, is not counted: with it
the figures are 1 larger. One small fit goes before, for what imports and first calls take. A fit is ended
after --max-time seconds (its max_time), when its memory has long been allocated.

The data folder is --data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _common
import _data

SETS = ("rcv1_binary", "newsgroups_bigrams")


def status(key):
    """A size from /proc/self/status in bytes."""
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(key + ":"):
                return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}: this measurement needs Linux")


def fits(max_time):
    """{name: (title, function of X, y and the largest useful penalty that gives an estimator)}."""
    import sparsekit as sk

    limit = dict(max_time=max_time)
    return {
        "L1LogisticOBA": lambda lam: sk.L1LogisticOBA(**limit),
        "L1LogisticOBA weak": lambda lam: sk.L1LogisticOBA(C=100.0, **limit),
        "L1LogisticOBA strong": lambda lam: sk.L1LogisticOBA(C=10.0 / lam, **limit),
        "L1LogisticOBA lbfgs": lambda lam: sk.L1LogisticOBA(hessian="lbfgs", **limit),
        "L1LogisticOBA threads": lambda lam: sk.L1LogisticOBA(n_jobs=2, **limit),
        "L1LogisticOBACV": lambda lam: sk.L1LogisticOBACV(cv=3, Cs=10, **limit),
        "LassoOBA": lambda lam: sk.LassoOBA(alpha=1e-4, **limit),
        "BoundedRegressor": lambda lam: sk.BoundedRegressor("squared", alpha=1e-4, bounds=(0, None), **limit),
        "BoundedClassifier": lambda lam: sk.BoundedClassifier(bounds=(0, None), **limit),
        "BoundedClassifier hinge": lambda lam: sk.BoundedClassifier("hinge", **limit),
        "SoftmaxClassifier": lambda lam: sk.SoftmaxClassifier(**limit),
        "SparsemaxClassifier": lambda lam: sk.SparsemaxClassifier(**limit),
        "SoftmaxClassifierCV": lambda lam: sk.SoftmaxClassifierCV(alphas=[1e-2, 1e-4], cv=3, **limit),
        "SparsemaxClassifierCV": lambda lam: sk.SparsemaxClassifierCV(alphas=[1e-2, 1e-4], cv=3, **limit),
        "ExtremeSoftmaxSGD": lambda lam: sk.ExtremeSoftmaxSGD(max_iter=5, **limit),
    }


def size_of(X):
    """Bytes of a compressed matrix."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def child(folder, name, key, max_time):
    """Fit once and print the numbers as JSON."""
    warnings.simplefilter("ignore")  # a fit may end at max_time
    X, y = load(folder, name)
    lam = float(abs(X.T @ (y - y.mean())).max()) / 2
    make = fits(max_time)[key]
    small = X[:200].tocsr()
    make(lam).fit(small, y[:200])
    del small
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # or else the fit could reuse pages that loading left behind
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    before, start = status("VmRSS"), time.perf_counter()
    make(lam).fit(X, y)
    seconds = time.perf_counter() - start
    extra = status("VmHWM") - before
    print(
        json.dumps({"extra": extra, "X": size_of(X), "seconds": seconds, "shape": X.shape, "nnz": int(X.nnz)})
    )


def load(folder, name):
    """X in CSR, float64 and int32, and y, -1 or 1."""
    problem = _data.problem(folder, name)
    X = problem.X
    X.indices, X.indptr = X.indices.astype("i4"), X.indptr.astype("i4")
    return X, problem.y


def main(argv=None):
    """Measure, print, write the table."""
    parser = _common.make_parser(__doc__)
    split = lambda text: [part.strip() for part in text.split(",")]  # noqa: E731
    parser.add_argument("--data", metavar="DIR", help="folder of the .npz files")
    parser.add_argument(
        "--sets", type=split, default=list(SETS), help=f"data sets (default: {','.join(SETS)})"
    )
    parser.add_argument("--only", type=split, help="fits by name (default: all)")
    parser.add_argument("--max-time", type=float, default=30.0, help="max_time of a fit (default: 30 s)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    folder = _data.data_folder(args.data)
    if args.child:
        child(folder, *args.child, args.max_time)
        return 0
    names, failed, rows = args.only or list(fits(args.max_time)), False, []
    for key in names:
        row = [key]
        for name in args.sets:
            command = [sys.executable, str(Path(__file__).resolve()), "--data", str(folder)]
            command += ["--max-time", str(args.max_time), "--child", name, key]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                failed = True
                row += ["failed", ""]
                print(f"{name} {key}: failed: {done.stderr.strip()[-500:]}", flush=True)
                continue
            got = json.loads(done.stdout.splitlines()[-1])
            row += [f"{got['extra'] / got['X']:.2f}", f"{got['seconds']:.1f}"]
            print(
                f"{name} {key}: {got['extra'] / 2**20:.1f} MiB on top of X = {got['extra'] / got['X']:.2f} "
                f"times X ({got['X'] / 2**20:.1f} MiB), {got['seconds']:.1f} s",
                flush=True,
            )
        rows.append(row)
        titles = [title for name in args.sets for title in (name, "s")]
        lines = ["# Peak memory of a fit beyond X, over the bytes of X", "", *_common.environment([])]
        lines += _common.markdown_table(["fit", *titles], rows)
        _common.write_markdown(args.markdown, lines)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
