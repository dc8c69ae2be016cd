"""The benchmarks take from the package what it has; running them takes minutes, data and peers."""

import ast
import csv
import importlib
import math
import sys
from importlib.util import find_spec

import pytest
from children import run_limited
from sklearn.datasets import make_classification

from sparsekit._compare import json_output, report
from sparsekit._compare.engine import Bench, BenchOptions
from sparsekit._compare.peers import all_solvers
from sparsekit._compare.problem import Problem


def imported_names(path):
    """(module, name) of every ``from sparsekit... import ...`` of a file, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sparsekit":
            yield from ((node.module, alias.name) for alias in node.names)


def test_what_benchmarks_import_exists(checkout):
    found = {
        (path.name, *pair) for path in (checkout / "benchmarks").glob("*.py") for pair in imported_names(path)
    }
    assert len(found) > 20
    left_out = {entry for entry in found if entry[1] == "sparsekit.torch" and not find_spec("torch")}
    for file, module, name in sorted(found - left_out):
        home = importlib.import_module(module)
        is_module = hasattr(home, "__path__") and find_spec(f"{module}.{name}")
        assert hasattr(home, name) or is_module, f"benchmarks/{file}: {module} has no {name}"
    if left_out:
        pytest.skip(
            f"{len(left_out)} imports of sparsekit.torch need PyTorch, which is not installed; others exist"
        )


@pytest.mark.thorough
def test_weak_penalties_on_a_small_set(checkout, tmp_path):
    """Each kind of intercept, from a penalty that selects nothing to a weak one; times are not checked."""
    path = tmp_path / "rows.csv"
    script = checkout / "benchmarks" / "weak_penalties.py"
    argv = [
        script,
        "--sets",
        "text_2k",
        "--C",
        "100,0.01",
        "--intercept",
        "none,free,penalised",
        "--repeats",
        "1",
    ]
    done = run_limited([sys.executable, *argv, "--peers", "none", "--csv", path], timeout=200)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["intercept"] for row in rows] == ["none", "none", "free", "free", "penalised", "penalised"]
    assert [float(row["C"]) for row in rows] == [0.01, 100] * 3
    for row in rows:
        assert (row["data"], row["role"]) == ("text_2k", "tuning")
        assert 0 <= float(row["certified"]) < 1e-3
        assert float(row["ours_dual_gap"]) >= float(row["ours_gap"]) - 1e-9  # the bound holds
        assert 0 <= float(row["ours_gap"]) < 1e-3 and 0 <= float(row["liblinear_gap"]) < 1e-2
        for name in ("ours_seconds", "ours_to_gap_seconds", "ours_to_liblinear_seconds", "liblinear_seconds"):
            assert 0 < float(row[name]) < math.inf, name
        # LIBLINEAR has the lower value on its own problem only
        assert (row["liblinear_gap_of_free_problem"] != "") == (row["intercept"] == "free")
    assert "geometric mean of 2 cells" in done.stdout
    # the same from two files, as of two runs
    text = path.read_text(encoding="utf-8").splitlines(keepends=True)
    parts = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for part, lines in zip(parts, (text[1:3], text[3:])):
        part.write_text(text[0] + "".join(lines), encoding="utf-8")
    again = run_limited([sys.executable, script, "--from", ",".join(map(str, parts))], timeout=200)
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() == done.stdout[done.stdout.index("- tuning sets") :].strip()


def test_cells_measured_in_pieces_make_one_table(checkout, tmp_path):
    X, y = make_classification(n_samples=80, n_features=10, random_state=0)
    problem = Problem("small", X, 2.0 * y - 1)
    solvers = [solver for solver in all_solvers() if solver.key in ("sparsekit", "liblinear")]
    options, cells, paths = BenchOptions(max_time=5.0), [], []
    with Bench(solvers, options, isolate=False) as bench:
        for C in (0.1, 1.0):
            cells.append(bench.measure(problem, C))
            paths.append(tmp_path / f"{C}.json")
            content = json_output.as_dict(
                cells[-1:], solvers, {"gaps": options.gaps, "command": f"the one of {C}"}
            )
            json_output.write_json(paths[-1], content)
    markdown = tmp_path / "all.md"
    argv = [checkout / "benchmarks" / "l1_logistic.py", "--from", ",".join(map(str, paths))]
    done = run_limited([sys.executable, *argv, "--markdown", markdown], timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == report.summary(cells, options.gaps).strip()
    text = markdown.read_text(encoding="utf-8")
    assert "`the one of 0.1`" in text and "`the one of 1.0`" in text
    for cell in cells:
        times = [report.time_cell(cell, track, 1e-6) for track in cell.tracks]
        share = 1 / (cell.C * problem.lambda_max)
        assert f"| small {share:.3g} | {times[0]} | {times[1]} |" in text
