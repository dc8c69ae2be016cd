"""Every adapter of the comparison states the same problem, and its knob makes the answer more accurate."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from compare_problems import GAP, climb, make_problem

from sparsekit import L1LogisticOBA
from sparsekit._compare import peers, report
from sparsekit._compare.engine import Bench, BenchOptions


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "free intercept"])
@pytest.mark.parametrize("ratio", [0.1, 1e-4])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("first_label", [1.0, -1.0])
@pytest.mark.parametrize("solver", peers.all_solvers(), ids=lambda s: s.key)
def test_the_knob_leads_from_rough_to_accurate_on_the_stated_problem(
    solver, first_label, kind, ratio, fit_intercept
):
    """The objective is ours in every case, the intercept free or none; F* is certified by a dual point."""
    if solver.missing():
        pytest.skip(f"{solver.title}: {solver.missing()}")
    problem = make_problem(kind, fit_intercept, first_label=first_label)
    if solver.refuses(problem):
        assert fit_intercept and not solver.can_free_intercept
        assert solver.key != "liblinear" or "intercept" in solver.refuses(problem)
        return
    C = 1 / (ratio * problem.lambda_max)
    exact = L1LogisticOBA(C=C, fit_intercept=fit_intercept, tol=1e-11).fit(problem.X, problem.y)
    best = problem.objective(exact.coef_[0], exact.intercept_[0], C)
    assert exact.dual_gap_ <= 1e-8 * exact.objective_
    gaps = climb(solver, problem, C, best)
    assert gaps[0] > 100 * GAP, gaps  # the loosest does not do all of the work
    assert gaps[-1] == min(gaps)


def test_blitz_gets_the_summed_penalty_and_arrays_that_it_can_read(monkeypatch):
    import ctypes

    seen = {}

    class Problem:
        def __init__(self, X, y):
            array, pointer = wrapper.data_as(X, ctypes.POINTER(ctypes.c_double))
            seen.update(array=array, X=X, first=pointer[0])

        def solve(self, penalty):
            seen["penalty"] = penalty
            return SimpleNamespace(x=np.arange(3.0), intercept=0.25, _num_iterations=4)

    fake, wrapper = ModuleType("blitzl1"), ModuleType("blitzl1._blitzl1")
    fake._blitzl1, fake.LogRegProblem = wrapper, Problem
    fake.set_tolerance = lambda tol: seen.update(tol=tol)
    fake.set_use_intercept = lambda use: seen.update(intercept=use)
    monkeypatch.setitem(sys.modules, "blitzl1", fake)
    monkeypatch.setitem(sys.modules, "blitzl1._blitzl1", wrapper)
    problem, solver = make_problem("dense", True, n=50, p=3), peers.Blitz()
    fit = solver.fit(*solver.data(problem), 4.0, 1e-5, 100, fit_intercept=True)
    assert (seen["penalty"], seen["tol"], seen["intercept"], fit.intercept) == (0.25, 1e-5, True, 0.25)
    assert seen["array"] is seen["X"] and seen["first"] == problem.X[0, 0]
    indices, pointer = wrapper.data_as(np.arange(5), ctypes.POINTER(ctypes.c_int32))
    assert indices.dtype == np.int32 and pointer[4] == 4


class Slow(peers.Liblinear):
    """Not accurate enough, and its second fit would take too long."""

    key, title = "slow", "Slow"
    ladder = (10.0, 1.0, 1e-9)

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        import time

        if X.shape[0] == 120:
            time.sleep(0.2)
        return super().fit(X, y, C, tol, max_iter)


def test_who_ran_into_the_limit_is_said():
    problem = make_problem("dense", False)
    bench = Bench([peers.Sparsekit(), Slow()], BenchOptions(max_time=0.3), isolate=False)
    cell = bench.measure(problem, 1 / (0.01 * problem.lambda_max))
    assert cell.track("slow").stopped == "out of time" and cell.max_time == 0.3
    text = report.table(cell, (1e-3, 1e-6))
    assert "stopped by the limit of 0.3 s for a solver: Slow" in text
    # a limit that came after the gap kept nobody from it
    assert cell.out_of_time(1e6) == []


def test_a_minimum_that_is_known_needs_no_reference():
    problem = make_problem("dense", True)  # with an intercept nothing is certified
    C = 1 / (0.01 * problem.lambda_max)
    exact = L1LogisticOBA(C=C, tol=1e-11).fit(problem.X, problem.y)
    best = problem.objective(exact.coef_[0], exact.intercept_[0], C)
    said = []
    bench = Bench([peers.Sparsekit()], BenchOptions(stop_gap=1e-3), said.append, isolate=False)
    cell = bench.measure(problem, C, known=best)
    assert cell.best_objective <= best * (1 + 1e-12) and not any("reference" in text for text in said)
    track = cell.track("sparsekit")
    assert track.stopped == "reached" and len(track.rungs) < len(track.solver.ladder)
