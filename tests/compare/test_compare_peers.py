"""Every adapter of the comparison states the same problem, and its tolerance leads to accurate answers."""

import itertools
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from compare_problems import GAP, climb, exact_fit, make_family_problem, make_problem

from sparsekit._compare import peers, report
from sparsekit._compare.engine import Bench, BenchOptions
from sparsekit._compare.options import FAMILIES


def cases():
    """(solver, problem, part of the largest penalty) for the solvers of each kind of problem."""
    for kind, fit_intercept in itertools.product(("dense", "sparse"), (False, True)):
        for solver, ratio, first in itertools.product(peers.all_solvers(), (0.1, 1e-4), (1.0, -1.0)):
            yield solver, make_problem(kind, fit_intercept, first_label=first), ratio
        for solver, ratio in itertools.product(peers.all_solvers("gaussian"), (0.1, 1e-3)):
            yield solver, make_problem(kind, fit_intercept, model="lasso"), ratio
    for family, solver in ((name, one) for name in FAMILIES for one in peers.all_solvers(name)):
        for kind, fit_intercept, l1_ratio, ratio in (
            ("dense", True, 1.0, 0.1), ("sparse", False, 0.0, 0.1), ("dense", False, 0.5, 1e-2),
            ("sparse", True, 0.0, 1e-2), ("dense", True, 0.0, 0.1),
        ):  # fmt: skip
            yield solver, make_family_problem(family, kind, fit_intercept, l1_ratio), ratio


def may_refuse(solver, problem):
    """Whether the documented limits of a solver exclude the problem."""
    if problem.family in FAMILIES:
        needs_more = problem.l1_ratio > 0 or problem.family == "negative-binomial"
        return solver.key.startswith("sklearn") and needs_more
    if problem.family == "gaussian":
        return problem.is_sparse and solver.key == "lasso-gram"
    return problem.fit_intercept and not solver.can_free_intercept


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("solver, problem, ratio", list(cases()), ids=lambda value: getattr(value, "key", ""))
def test_the_tolerance_leads_from_rough_to_accurate_on_the_stated_problem(solver, problem, ratio):
    """The objective is ours in every case, the intercept free or none; F* is certified by a dual point."""
    if solver.missing():
        pytest.skip(f"{solver.title}: {solver.missing()}")
    if solver.refuses(problem):
        assert may_refuse(solver, problem)
        assert solver.key != "liblinear" or "intercept" in solver.refuses(problem)
        return
    C = 1 / (ratio * problem.lambda_max)
    exact = exact_fit(problem, C)
    best = problem.objective(np.ravel(exact.coef_), np.ravel(exact.intercept_)[0], C)
    if problem.family == "gaussian":
        assert best == pytest.approx(exact.objective_, rel=1e-12)
        climb(solver, problem, C, best)
        return
    assert exact.dual_gap_ <= 1e-8 * exact.objective_
    gaps = climb(solver, problem, C, best)
    # the loosest does not do all of the work, but Newton's last step may by chance
    assert gaps[0] > 100 * GAP or solver.key == "sklearn-newton", gaps
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
    fit = solver.fit(solver.design(problem), problem, 4.0, 1e-5)
    assert (seen["penalty"], seen["tol"], seen["intercept"], fit.intercept) == (0.25, 1e-5, True, 0.25)
    assert seen["array"] is seen["X"] and seen["first"] == problem.X[0, 0]
    indices, pointer = wrapper.data_as(np.arange(5), ctypes.POINTER(ctypes.c_int32))
    assert indices.dtype == np.int32 and pointer[4] == 4


class Slow(peers.Liblinear):
    """Not accurate enough, and its second fit would take too long."""

    key, title = "slow", "Slow"
    ladder = (10.0, 1.0, 1e-9)

    def fit(self, X, problem, C, tol, n_threads=1):
        import time

        if X.shape[0] == 120:
            time.sleep(0.2)
        return super().fit(X, problem, C, tol)


def test_who_ran_into_the_limit_is_said(one_process):
    problem = make_problem("dense", False)
    bench = Bench([peers.Sparsekit(), Slow()], BenchOptions(max_time=0.3))
    cell = bench.measure(problem, 1 / (0.01 * problem.lambda_max))
    assert cell.track("slow").stopped == "out of time" and cell.max_time == 0.3
    text = report.table(cell, (1e-3, 1e-6))
    assert "stopped by the limit of 0.3 s for a solver: Slow" in text
    # a limit that came after the gap kept nobody from it
    assert cell.out_of_time(1e6) == []


def test_a_minimum_that_is_known_needs_no_reference(one_process):
    problem = make_problem("dense", True)  # with an intercept nothing is certified
    C = 1 / (0.01 * problem.lambda_max)
    exact = exact_fit(problem, C)
    best = problem.objective(exact.coef_[0], exact.intercept_[0], C)
    said = []
    bench = Bench([peers.Sparsekit()], BenchOptions(stop_gap=1e-3), said.append)
    cell = bench.measure(problem, C, known=best)
    assert cell.best_objective <= best * (1 + 1e-12) and not any("reference" in text for text in said)
    track = cell.track("sparsekit")
    assert track.stopped == "reached" and len(track.rungs) < len(track.solver.ladder)
