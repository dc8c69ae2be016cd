"""Seconds in which ExtremeSoftmaxSGD and its peers reach a quality on new rows; one thread.

    python benchmarks/extreme_seconds.py --python napkinxc=venv1/bin/python pecos=venv2/bin/python \\
        fasttext=venv3/bin/python
    python benchmarks/extreme_seconds.py --sets bibtex,sector --solvers ours,HSM --limit 10
    python benchmarks/extreme_seconds.py --sets news20,graph3k,graph20k,skipgrams  # no default was chosen on

Ours is the bare constructor. Each solver runs in its own process (`_extreme_worker.py`), by the Python that
--python names for its package, or this one. The output names packages that are missing. A curve has one run
for each number of epochs, or of LIBLINEAR's iterations in each node for trees and one-vs-rest. Each run is a
whole fit with its own seconds. Only torch's full softmax is evaluated during its run. ptb is cut to its first
rows. Rows have norm 1, several labels mean the first; fastText sees which features a row has, without their
values. PyTorch belongs to this Python.

The data folder is --data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _common
import _data
import numpy as np
from _extreme import load
from _extreme_worker import SOLVERS
from extreme_defaults import load as load_made

SETS = ("bibtex", "delicious", "sector", "ptb", "fb15k")
# Sets that chose no default; see extreme_defaults.py.
MADE = ("news20", "graph3k", "graph20k", "skipgrams")
PACKAGES = {"HSM": "napkinxc", "PLT": "napkinxc", "OVR": "napkinxc"}
LEVELS = (0.5, 0.8, 0.9, 0.95, 1.0)
TEST_ROWS = 5000
# seconds above the limit for loading, or for finishing a fit and its evaluation
GRACE, NAP = 30.0, 0.1
# the same for processes that wait for others
BUSY = 20.0


def write_set(folder, name, ptb_rows, path):
    """The arrays that a worker reads; returns a line that says their shape."""
    if name in MADE:
        X, y, X_test, y_test = load_made(folder, name)
        classes, y = np.unique(y, return_inverse=True)
        keep = np.flatnonzero(np.isin(y_test, classes))
        X, X_test, K = X.astype(np.float32), X_test[keep].astype(np.float32), len(classes)
        y_test = np.searchsorted(classes, y_test[keep])
    else:
        X, y, X_test, y_test, K = load(folder, name)
    if name == "ptb":
        X, y = X[:ptb_rows], y[:ptb_rows]
        known, y = np.unique(y, return_inverse=True)
        keep = np.flatnonzero(np.isin(y_test, known))
        X_test, y_test, K = X_test[keep], np.searchsorted(known, y_test[keep]), len(known)
    if len(y_test) > TEST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(len(y_test), TEST_ROWS, replace=False))
        X_test, y_test = X_test[keep], y_test[keep]
    parts = {}
    for which, part in (("X", X), ("X_test", X_test)):
        parts |= {f"{which}_{key}": getattr(part, key) for key in ("data", "indices", "indptr")}
    np.savez(path, y=y, y_test=y_test, shape=np.array([X.shape[1], K]), **parts)
    return f"{X.shape[0]} x {X.shape[1]}, {K} classes, {len(y_test)} test rows"


def run(solver, python, path, limit, cpu_time=False):
    """Lines of the worker, and a word on what it did not do."""
    one = {f"{p}_NUM_THREADS": "1" for p in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    worker, said = Path(__file__).with_name("_extreme_worker.py"), []
    clock, patience = ("process_time", BUSY) if cpu_time else ("perf_counter", 1.0)
    with tempfile.TemporaryDirectory() as folder:
        to, errors = Path(folder) / "out.jsonl", Path(folder) / "errors"
        to.touch()
        with errors.open("w") as stream:
            process = subprocess.Popen(
                [python, str(worker), solver, str(path), str(to), str(limit), clock],
                cwd=folder, env=os.environ | one, stdout=subprocess.DEVNULL, stderr=stream,
            )  # fmt: skip
            # counted in naps, not by the clock: a machine that sleeps, or stops both processes, ends no fit
            size, naps = 0, 0
            while process.poll() is None:
                time.sleep(NAP)
                naps += 1
                if to.stat().st_size > size:
                    size, naps = to.stat().st_size, 0
                elif naps * NAP > patience * (limit + GRACE):
                    process.kill()
                    process.wait()
                    said = [f"{solver}: ended, no fit in {patience * (limit + GRACE):g} s"]
        if process.returncode and not said:
            said = [f"{solver}: ended with {process.returncode}: {errors.read_text()[-300:].strip()}"]
        found = [json.loads(line) for line in to.read_text(encoding="utf-8").splitlines()]
    notes = [f"{f['missing']}: {f['why']}" for f in found if "missing" in f]
    return [f for f in found if "seconds" in f], notes + said


def first_at(points, key, value):
    """Least seconds of a run that has at least ``value`` of ``key``."""
    return min((p["seconds"] for p in points if p[key] >= value - 1e-12), default=np.inf)


def shown(seconds):
    return "-" if not np.isfinite(seconds) else f"{seconds:.3g}"


def tables(found):
    """Ends, and seconds to each level of the best of the ends, from {label: points}."""
    # the fit as it is by default, or that went on longest
    ends = {label: _end(label, points) for label, points in found.items()}
    rows = []
    for label, points in found.items():
        end = ends[label]
        losses = [p["loss"] for p in points if p["loss"] is not None]
        rows.append([
            label, f"{end['seconds']:.3g}", f"{end['p1']:.3f}", f"{end['hits10']:.3f}",
            "-" if end["loss"] is None else f"{end['loss']:.3f}",
            *(f"{max(p[k] for p in points):.3f}" for k in ("p1", "hits10")),
            f"{min(losses):.3f}" if losses else "-",
        ])  # fmt: skip
    columns = ["", "s", "P@1", "hits@10", "log-loss", "best of its runs: P@1", "hits@10", "log-loss"]
    blocks = [("as it ends", columns, rows)]
    for key, title in (("p1", "P@1"), ("hits10", "hits@10")):
        best = max(end[key] for end in ends.values())
        rows = [
            [label, *(shown(first_at(points, key, level * best)) for level in LEVELS)]
            for label, points in found.items()
        ]
        heads = ["", *(f"{level * best:.3f} ({100 * level:g} %)" for level in LEVELS)]
        blocks.append((f"seconds to {title}", heads, rows))
    return blocks


def _end(label, points):
    """The run that stands for a solver: its defaults, the first; of torch and fastText the best P@1."""
    if label.startswith(("torch", "fastText")):
        return max(points, key=lambda p: p["p1"])
    return points[0]


def main(argv=None):
    parser = _common.make_parser(__doc__)
    parser.add_argument("--data", metavar="DIR", help="folder of the .npz files")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets (default: all)")
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="solvers (default: all)")
    parser.add_argument(
        "--python",
        nargs="*",
        default=[],
        metavar="PACKAGE=PATH",
        help="Python of napkinxc, pecos, omikuji",
    )
    parser.add_argument(
        "--limit", type=float, default=10.0,
        help="seconds of training after which a solver begins no other fit (default: 10)",
    )  # fmt: skip
    parser.add_argument("--cpu-time", action="store_true", help="processor time, for a busy machine")
    parser.add_argument("--ptb-rows", type=int, default=50000, help="rows of ptb (default: 50000)")
    args = parser.parse_args(argv)
    pythons = dict(pair.split("=", 1) for pair in args.python)
    pythons = {package: os.path.abspath(path) for package, path in pythons.items()}
    folder = _data.data_folder(args.data)
    lines = _common.environment([])
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.sets.split(","):
            path = Path(scratch) / f"{name}.npz"
            lines += [f"**{name}** ({write_set(folder, name, args.ptb_rows, path)})", ""]
            found, notes = {}, []
            for solver in args.solvers.split(","):
                python = pythons.get(PACKAGES.get(solver, solver), sys.executable)
                points, said = run(solver, python, path, args.limit, args.cpu_time)
                notes += said
                for point in points:
                    found.setdefault(point["label"], []).append(point)
                    print(name, json.dumps(point), flush=True)
                for note in said:
                    print(name, note, flush=True)
            path.unlink()
            if found:
                for title, columns, rows in tables(found):
                    lines += [f"{name}, {title}", "", *_common.markdown_table(columns, rows)]
            lines += [f"- {note}" for note in notes] + ([""] if notes else [])
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
