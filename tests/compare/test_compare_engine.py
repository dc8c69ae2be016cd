"""The comparison's measurement of solvers, and the files that it writes."""

import importlib
import json
import math
import sys
import textwrap
import threading

import numpy as np
import pytest
from compare_problems import make_problem

from sparsekit._compare import json_output, peers, report
from sparsekit._compare.cells import Cell, Rung, Track
from sparsekit._compare.engine import Bench, BenchOptions
from sparsekit._compare.worker import Isolated


class Fake(peers.Solver):
    """Moves from zero to the optimum as its tolerance falls."""

    key, title, package = "fake", "Fake", "sparsekit"
    ladder = (1.0, 0.1, 0.01, 1e-3, 1e-4)

    def fit(self, X, problem, C, tol, n_threads=1):
        best = peers.Liblinear().fit(X, problem, C, 1e-10)
        return peers.Fit(best.coef * (1 - tol), 0.0, 1)


class Raising(Fake):
    key, title = "raising", "Raising"

    def fit(self, X, problem, C, tol, n_threads=1):
        raise ZeroDivisionError("no luck")


class NotFinite(Fake):
    key, title = "nan", "NotFinite"

    def fit(self, X, problem, C, tol, n_threads=1):
        return peers.Fit(np.full(X.shape[1], np.nan), 0.0, 1)


class Absent(Fake):
    key, title, package = "absent", "Absent", "no-such-distribution"


class Interrupting(Fake):
    key, title = "interrupting", "Interrupting"

    def fit(self, X, problem, C, tol, n_threads=1):
        if tol < 0.1 and X.shape[0] == 80:
            raise KeyboardInterrupt
        return super().fit(X, problem, C, tol)


def measure(solvers, **options):
    problem = make_problem(n=80, p=12)
    problem.X_test, problem.y_test = problem.X[:20], problem.y[:20]
    bench = Bench(solvers, BenchOptions(**{"stop_gap": 1e-12, **options}))
    return bench.measure(problem, 1 / (0.1 * problem.lambda_max))


def test_measured_gaps_and_times(one_process):
    cell = measure([Fake(), peers.Liblinear()])
    track = cell.track("fake")
    gaps = [cell.gap(r.objective) for r in track.rungs]
    assert [r.tol for r in track.rungs] == list(Fake.ladder)
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 1e-6 < gaps[0]
    assert track.stopped == "out of rungs"
    assert cell.certified_gap < 1e-6
    # the time to a gap is the least median among the rungs within it
    within = [r for r in track.rungs if cell.gap(r.objective) <= 1e-3]
    assert 0 < len(within) < len(track.rungs)
    assert cell.time_to(track, 1e-3) == min(r.median for r in within)
    assert cell.time_to(track, 1e-30) == math.inf
    # short fits that decide a time are repeated, and no more than the limit; rough ones decide none
    fine = [r for r in track.rungs if cell.gap(r.objective) <= 1e-6]
    fastest = [min(rungs, key=lambda r: r.median) for rungs in (within, fine)]
    assert all(2 <= len(r.times) <= BenchOptions.max_repeats for r in fastest if r.median < 0.05)
    assert all(len(r.times) == 1 for r, gap in zip(track.rungs, gaps) if gap > 1e-3)


def test_climbing_stops_at_the_gap(one_process):
    cell = measure([Fake(), peers.Liblinear()], stop_gap=1e-3)
    assert cell.track("fake").stopped == "reached"
    assert len(cell.track("fake").rungs) < len(Fake.ladder)


def test_a_solver_is_not_its_own_reference(one_process):
    """With an intercept there is no certificate here; being the best of one must not end the climb."""
    problem = make_problem(n=80, p=12, fit_intercept=True)
    cell = Bench([Fake()], BenchOptions(stop_gap=1e-3)).measure(problem, 1.0)
    assert math.isnan(cell.certified_gap)
    assert [r.tol for r in cell.track("fake").rungs] == list(Fake.ladder)


def test_a_failing_solver_is_a_line_in_the_table(one_process):
    cell = measure([Fake(), Raising(), NotFinite(), Absent()])
    text = report.table(cell, (1e-3, 1e-6))
    assert "failed: ZeroDivisionError: no luck" in text
    assert "failed: returned a solution that is not finite" in text
    assert "Absent" not in text  # said once, at the end
    cell.left_out += [(peers.Liblinear(), "has no intercept"), (peers.Celer(), "has no intercept")]
    assert report.left_out_line([cell, cell], [Fake(), Absent()]) == (
        "Left out: LIBLINEAR (scikit-learn), celer (has no intercept); Absent (not installed: pip install "
        "no-such-distribution)"
    )
    assert report.left_out_line([], [Fake()]) is None
    assert cell.track("fake").rungs


def test_interruption_keeps_what_was_measured(one_process):
    cell = measure([Interrupting()])
    assert cell.interrupted
    assert [r.tol for r in cell.track("interrupting").rungs] == [1.0, 0.1]
    assert "interrupted" in report.table(cell, (1e-3,))


MISBEHAVING = """
import os, time
from sparsekit._compare import peers

class Endless(peers.Solver):
    key, title, package = "endless", "Endless", "sparsekit"
    ladder = (1.0, 0.5)
    def fit(self, X, problem, C, tol, n_threads=1):
        print("solvers may print")
        if X.shape[0] == 80:
            time.sleep(60)
        return peers.Fit(0 * X[0], 0.0, 1)

class Crashing(Endless):
    key, title = "crashing", "Crashing"
    def fit(self, X, problem, C, tol, n_threads=1):
        if X.shape[0] == 80:
            os._exit(7)
        return peers.Fit(0 * X[0], 0.0, 1)
"""


@pytest.fixture
def misbehaving(tmp_path, monkeypatch):
    (tmp_path / "misbehaving_solvers.py").write_text(textwrap.dedent(MISBEHAVING))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield importlib.import_module("misbehaving_solvers")
    del sys.modules["misbehaving_solvers"]


@pytest.mark.thorough
def test_processes_that_hang_or_die(misbehaving):
    before = threading.active_count()
    problem = make_problem(n=80, p=12)
    options = BenchOptions(max_time=1.0, stop_gap=1e-3)
    solvers = [misbehaving.Endless(), misbehaving.Crashing(), peers.Liblinear()]
    with Bench(solvers, options) as bench:
        for ratio in (0.1, 0.05):  # the second cell needs new processes
            cell = bench.measure(problem, 1 / (ratio * problem.lambda_max))
            endless, crashing, liblinear = cell.tracks
            assert endless.stopped == "cut off" and endless.longest == pytest.approx(1.0)
            assert "exit status 7" in crashing.failure
            assert liblinear.stopped == "reached"
            assert "no fit done in 1 s" in report.table(cell, (1e-3,))
    assert threading.active_count() == before


def test_isolated_and_local_fits_agree():
    problem = make_problem("sparse", n=80, p=12)
    C = 1 / (0.1 * problem.lambda_max)
    runner = Isolated(peers.Liblinear())
    try:
        runner.load(problem)
        out = runner.fit(C, 1e-8, 1, 60.0)
    finally:
        runner.close()
    local = peers.Liblinear().fit(problem.X, problem, C, 1e-8)
    np.testing.assert_array_equal(out.fit.coef, local.coef)
    assert not out.error and not out.cut_off and out.seconds > 0


def made_up_cell(times):
    """A cell in which solver k has one rung of that time at gap 0, or none within any gap if negative."""
    problem = make_problem(n=80, p=12)
    cell = Cell(problem, 1.0, 1, best_objective=100.0)
    for key, seconds in times.items():
        solver = next(s for s in peers.all_solvers() if s.key == key)
        objective = 100.0 if seconds > 0 else 150.0
        cell.tracks.append(Track(solver, rungs=[Rung(0.1, [abs(seconds)], objective, 3, 5, [])]))
    return cell


def test_ratios_and_bounds():
    cell = made_up_cell({"sparsekit": 2.0, "liblinear": 6.0, "skglm": 5.0, "celer": -9.0})
    assert report.ratio(cell, 1e-3, "liblinear") == (3.0, "", "liblinear")
    assert report.ratio(cell, 1e-3) == (2.5, "", "skglm")
    assert report.ratio(cell, 1e-3, "celer") == (4.5, ">", "celer")
    cell = made_up_cell({"sparsekit": -2.0, "liblinear": 6.0})
    assert report.ratio(cell, 1e-3) == (3.0, "<", "liblinear")
    cells = [made_up_cell({"sparsekit": 1.0, "liblinear": t}) for t in (2.0, 8.0, 0.5)]
    gap, name, mean, n, bounded, slower = report.geometric_means(cells, [1e-3])[0]
    assert (gap, name, n, bounded, slower) == (1e-3, "LIBLINEAR", 3, 0, 1)
    assert mean == pytest.approx(2.0)
    cells[0].interrupted = True
    assert [row[3] for row in report.geometric_means(cells, [1e-3])] == [2, 2]


def test_json_is_strict(tmp_path):
    cell = made_up_cell({"sparsekit": 1.0, "liblinear": -2.0})
    path = tmp_path / "out.json"
    for track in cell.tracks:
        track.best_fit = peers.Fit(np.zeros(12), 0.0, 1)
    json_output.write_json(path, json_output.as_dict([cell], [], {"gaps": (1e-3,)}))
    content = json.loads(
        path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
    )
    assert content["cells"][0]["tracks"][1]["times"]["1e-03"] is None
    assert content["cells"][0]["tracks"][0]["times"]["1e-03"] == 1.0


def test_a_table_fits_its_width():
    """Of 80 columns with the longest names."""
    cell = made_up_cell({"sparsekit": 1.234e-4, "liblinear": 1234.0, "saga": -5.0})
    for track in cell.tracks:
        track.best_fit = peers.Fit(np.zeros(12), 0.0, 1)
        track.rungs[0].nnz = 123456
    cell.tracks.append(Track(peers.Celer(), failure="ValueError: " + "no luck " * 20))
    cell.problem.name = "a data set with a long name"
    text = report.table(cell, (1e-3, 1e-6), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("luck") == 20
    assert all(word in text for word in ("L1LogisticOBA", "  liblinear", "0.000123", "123456", "1234"))
    lines = report.fold("Left out: " + "a solver; " * 20, 60).splitlines()
    assert max(map(len, lines)) <= 60 and all(line.startswith("    ") for line in lines[1:])
