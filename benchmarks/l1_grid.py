"""A grid of L1 and elastic-net problems that freezes what a version of the package returns.

    python benchmarks/l1_grid.py --out before.jsonl        # 2,000 made problems and the sets of --data
    python benchmarks/l1_grid.py --out after.jsonl         # the same problems, another version installed
    python benchmarks/l1_grid.py --compare before.jsonl after.jsonl

Each problem is drawn from the axes in AXES by its number, so that two versions get the same data. All fits
are made by public estimators from the bare constructor, with the alpha, C or l1_ratio of the problem.

For each problem one line of JSON has:

- objective: of the returned coefficients, computed here in float64
- gap: the certificate that the estimator returned, on the same scale
- seconds: processor time, the least of --repeats fits
- peak: largest memory beyond the data, in bytes, as tracemalloc counts NumPy's arrays
- warned: the first word of each warning's category

--compare prints the ratios of time and memory by problem family and for each value of each axis, and the
worst cells. It lists every problem whose objective rose by more than tol or whose certificate was lost.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _data
from threadpoolctl import threadpool_limits

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA, LassoOBACV, l1_logistic_path, lasso_path

AXES = {
    "task": ("squares", "squares", "positive", "logistic", "logistic", "multinomial"),
    "mode": ("fit", "fit", "fit", "fit", "path", "cv"),
    "format": ("dense", "fortran", "csr", "csc"),
    "dtype": ("float64", "float64", "float32"),
    "rows_per_column": (0.05, 0.2, 0.8, 1.25, 4, 20, 100),
    "columns": (5, 20, 80, 300, 1200, 5000),
    "correlation": (0.0, 0.5, 0.9),
    "strength": (0.5, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "l1_ratio": (1.0, 1.0, 0.5, 0.0),
    "intercept": (True, True, False),
    "weights": (False, False, True),
}
# Draw the shape again where X would have more numbers: a grid of 2,000 problems must end within half an hour.
MAX_NUMBERS = 6_000_000
MIN_ROWS = 8
MAX_SECONDS = 20.0
DENSITY = 0.05
# An objective may rise by this part of itself: estimators certify 10 * tol by default.
DEFAULT_TOL = 1e-5
N_PENALTIES = 20
REAL_SETS = ("a9a", "ijcnn1", "rcv1_binary", "imdb", "madelon", "colon", "leukemia", "dorothea")
REAL_STRENGTHS = (1e-1, 1e-2, 1e-3)


def draw_cell(number):
    """The value of each axis for one problem."""
    rng = np.random.default_rng([20261126, number])
    while True:
        cell = {name: values[rng.integers(len(values))] for name, values in AXES.items()}
        cell["rows"] = int(cell["rows_per_column"] * cell["columns"])
        if cell["rows"] >= MIN_ROWS and cell["rows"] * cell["columns"] <= MAX_NUMBERS:
            return cell


def make_data(number, cell):
    """X, targets and sample weights of one problem."""
    rng = np.random.default_rng([1126, number])
    n, p = cell["rows"], cell["columns"]
    factor = rng.standard_normal((n, 1))
    X = np.sqrt(1 - cell["correlation"]) * rng.standard_normal((n, p)) + np.sqrt(cell["correlation"]) * factor
    if cell["format"] in ("csr", "csc"):
        X *= rng.random((n, p)) < max(DENSITY, 2.0 / p)
    coef = rng.standard_normal(p) * (rng.random(p) < max(0.1, 2.0 / p))
    scores = X @ coef
    scores += (scores.std() + 1e-3) * rng.standard_normal(n)
    if cell["task"] in ("squares", "positive"):
        y = scores + 1.0
    elif cell["task"] == "logistic":
        y = (scores > np.median(scores)).astype(int)
    else:
        y = np.searchsorted(np.quantile(scores, [1 / 3, 2 / 3]), scores)
    weights = rng.uniform(0.1, 2.0, n) if cell["weights"] else None
    X = X.astype(cell["dtype"])
    form = {"dense": np.ascontiguousarray, "fortran": np.asfortranarray}
    form |= {"csr": sparse.csr_array, "csc": sparse.csc_array}
    return form[cell["format"]](X), y, weights


def sizes(cell, y, weights):
    """Rows as weights of mean 1, as float64."""
    return np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)


def loss_at(cell, X, y, weights, coef, intercept):
    """Half the mean squared error, or the sum of logistic losses, in float64."""
    s = sizes(cell, y, weights)
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    scores = X.astype(np.float64) @ coef.T + np.ravel(intercept)
    if cell["task"] in ("squares", "positive"):
        return 0.5 * s @ (y - scores[:, 0]) ** 2 / s.sum()
    if coef.shape[0] == 1:
        return float(s @ np.logaddexp(0.0, np.where(y == y.max(), -1.0, 1.0) * scores[:, 0]))
    top = scores.max(axis=1)
    _, codes = np.unique(y, return_inverse=True)
    return float(
        s @ (top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - scores[np.arange(len(y)), codes])
    )


def penalty_at(cell, coef):
    """The elastic net of the coefficients, for a strength of one."""
    coef = np.asarray(coef, dtype=np.float64)
    ratio = cell["l1_ratio"]
    return ratio * np.abs(coef).sum() + 0.5 * (1 - ratio) * (coef**2).sum()


def largest_penalty(cell, X, y, weights):
    """The penalty of an L1 model from which all coefficients are zero."""
    s = sizes(cell, y, weights)
    classes = (
        [y] if cell["task"] in ("squares", "positive") else [(y == k).astype(float) for k in np.unique(y)]
    )
    largest = [np.abs(X.T.astype(np.float64) @ (s * (t - s @ t / s.sum()))).max() for t in classes]
    top = max(largest)
    return top / s.sum() if cell["task"] in ("squares", "positive") else top


def model_of(cell, lam):
    """The unfitted public estimator of one cell, and the keyword that has its penalty."""
    shared = {"l1_ratio": cell["l1_ratio"], "fit_intercept": cell["intercept"]}
    if cell["task"] in ("squares", "positive"):
        shared["positive"] = cell["task"] == "positive"
        if cell["mode"] == "cv":
            return LassoOBACV(cv=3, **shared)
        return LassoOBA(alpha=lam, **shared)
    if cell["mode"] == "cv":
        return L1LogisticOBACV(cv=3, Cs=8, **shared)
    return L1LogisticOBA(C=1 / lam, **shared)


def run(cell, X, y, weights, lam):
    """Fit one cell; what is kept of the result: objectives, gaps and penalties, one a penalty."""
    if cell["mode"] == "path":
        grid = np.geomspace(1.0, 1e-2, N_PENALTIES) * lam / cell["strength"]
        shared = {"l1_ratio": cell["l1_ratio"], "fit_intercept": cell["intercept"], "sample_weight": weights}
        if cell["task"] in ("squares", "positive"):
            path = lasso_path(X, y, alphas=grid, positive=cell["task"] == "positive", **shared)
        else:
            path = l1_logistic_path(X, y, Cs=1 / grid, **shared)
        coefs = [path.coef(k) for k in range(len(path.lambdas))]
        intercepts = [path.intercepts[..., k] for k in range(len(path.lambdas))]
        return list(zip(coefs, intercepts, path.lambdas, path.dual_gaps))
    model = model_of(cell, lam).fit(X, y, sample_weight=weights)
    if cell["mode"] == "cv":
        lam = model.alpha_ if hasattr(model, "alpha_") else 1 / np.ravel(model.C_)[0]
    return [(model.coef_, model.intercept_, lam, model.dual_gap_)]


def measure(cell, X, y, weights, repeats):
    """One line of the file."""
    lam = cell["strength"] * largest_penalty(cell, X, y, weights)
    line = {"cell": cell, "lam": lam}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds = []
        for _ in range(repeats):
            begin = time.process_time()
            found = run(cell, X, y, weights, lam)
            seconds.append(time.process_time() - begin)
            if sum(seconds) > MAX_SECONDS:
                break
    line["seconds"] = min(seconds)
    line["warned"] = sorted({one.category.__name__ for one in caught})
    line["objective"] = [
        loss_at(cell, X, y, weights, coef, intercept) + at * penalty_at(cell, coef)
        for coef, intercept, at, _ in found
    ]
    line["penalty"] = [float(at) for *_, at, _ in found]
    line["gap"] = [float(gap) for *_, gap in found]
    if seconds[0] < MAX_SECONDS / 4:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tracemalloc.start()
            run(cell, X, y, weights, lam)
            line["peak"] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return line


def cells(args):
    """Name, cell, and data of each problem that is asked for."""
    for number in range(args.first, args.first + args.problems):
        cell = draw_cell(number)
        yield f"made {number}", cell, *make_data(number, cell)
    if args.data != "none":
        folder = _data.data_folder(args.data)
        for name in REAL_SETS:
            problem = _data.problem(folder, name)
            for strength in REAL_STRENGTHS:
                for task in ("squares", "logistic"):
                    cell = dict.fromkeys(AXES, None)
                    cell |= {
                        "task": task,
                        "mode": "fit",
                        "strength": strength,
                        "l1_ratio": 1.0,
                        "weights": False,
                    }
                    cell |= {"intercept": True, "rows": problem.X.shape[0], "columns": problem.X.shape[1]}
                    yield f"{name} {task} {strength:g}", cell, problem.X, problem.y, None


def freeze(args):
    """Write the file, a line at once, so that a run that is cut keeps what it has."""
    with open(args.out, "w", encoding="utf-8") as stream, threadpool_limits(1):
        for name, cell, X, y, weights in cells(args):
            line = {"name": name, **measure(cell, X, y, weights, args.repeats)}
            print(json.dumps(line), file=stream, flush=True)


def read(path):
    """Lines of a file by name."""
    with open(path, encoding="utf-8") as stream:
        return {line["name"]: line for line in map(json.loads, stream)}


def mean(ratios):
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else float("nan")


def is_certified(line):
    """Whether each objective has a bound of ten times the default tol."""
    return all(
        gap <= 10 * DEFAULT_TOL * abs(fun) + 1e-300 for gap, fun in zip(line["gap"], line["objective"])
    )


def compare(before, after):
    """Print what changed between two files."""
    old, new = read(before), read(after)
    names = [name for name in old if name in new]
    print(f"{len(names)} problems in both files, of {len(old)} and {len(new)}")
    rows = []
    for name in names:
        a, b = old[name], new[name]
        rows.append((name, a["cell"], a["seconds"], b["seconds"], a.get("peak"), b.get("peak")))
        if a["penalty"] != b["penalty"] and not np.allclose(a["penalty"], b["penalty"], rtol=1e-6):
            print(f"other penalty: {name} {a['cell']}: {a['penalty']} -> {b['penalty']}")
            continue
        for fun, other in zip(a["objective"], b["objective"]):
            if other > fun + 10 * DEFAULT_TOL * abs(fun):
                print(f"objective rose: {name}: {fun:.9g} -> {other:.9g} (+{(other - fun) / abs(fun):.1e})")
        if is_certified(a) and not is_certified(b):
            print(f"certificate lost: {name}: gaps {max(a['gap']):.2g} -> {max(b['gap']):.2g}")
        if b["warned"] and not a["warned"]:
            print(f"now warns: {name}: {b['warned']}")
    # below 2 ms half a millisecond more counts and not the ratio
    ratios = [(row[3] + 5e-4) / (row[2] + 5e-4) if row[2] < 2e-3 else row[3] / row[2] for row in rows]
    memory = [row[5] / row[4] for row in rows if row[4] and row[5]]
    print(f"time, geometric mean {mean(ratios):.3f}; memory {mean(memory):.3f}")
    for axis in AXES:
        for value in dict.fromkeys(str(row[1][axis]) for row in rows):
            part = [ratio for row, ratio in zip(rows, ratios) if str(row[1][axis]) == value]
            print(f"  {axis:16} {value:10} {len(part):5d} {mean(part):7.3f} worst {max(part):.2f}")
    print("worst cells:")
    for ratio, row in sorted(zip(ratios, rows), key=lambda pair: -pair[0])[:25]:
        print(f"  {ratio:6.2f} {1e3 * row[2]:9.2f} -> {1e3 * row[3]:9.2f} ms  {row[0]}  {row[1]}")


def main(argv=None):
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", help="file to write, one line of JSON a problem")
    add("--problems", type=int, default=2000, help="made problems")
    add("--first", type=int, default=0, help="number of the first made problem: others are check sets")
    add("--repeats", type=int, default=3, help="fits of each problem; the shortest counts")
    add("--data", default=None, help="folder of the real sets; none: made problems alone")
    add("--compare", nargs=2, metavar=("BEFORE", "AFTER"), help="print what changed between two files")
    args = parser.parse_args(argv)
    if args.compare:
        compare(*args.compare)
    elif args.out:
        freeze(args)
    else:
        parser.error("give --out or --compare")


if __name__ == "__main__":
    main()
