"""What all solvers share: statuses, limits, callbacks, histories."""

import re

import numpy as np
import pytest

from sparsekit._extreme.solver.state import METHODS
from sparsekit._factor_graph.factors import factors
from sparsekit._solver import outcome
from sparsekit._solver.outcome import History, Limits, Stop

STATUSES = {name: value for name, value in vars(outcome).items() if name.isupper() and isinstance(value, int)}


def test_each_status_has_a_number_of_its_own():
    assert sorted(STATUSES.values()) == list(range(len(STATUSES)))
    assert outcome.CONVERGED == 0 and all(value in STATUSES.values() for value in outcome.SUCCESSES)


def test_kernels_use_the_same_numbers(checkout):
    text = (checkout / "sparsekit" / "_scalar" / "numbers.h").read_text(encoding="utf-8")
    found = {name: int(value) for name, value in re.findall(r"\bFG_([A-Z_]+) = (-?\d+)", text)}
    assert {"CONVERGED", "MAX_ITER", "INFEASIBLE"} <= found.keys()
    for name in found.keys() & STATUSES.keys():
        assert found[name] == STATUSES[name], name
    # failures that no result shows
    assert found["NO_MEMORY"] >= 100
    for name in ("AT_MOST", "EQUAL", "AT_LEAST"):
        assert found[name] == getattr(factors, name)
    methods = re.search(r"enum \{ (SK_IMPLICIT[\w, ]*) \}", text)[1].split(", ")
    assert {name[3:].lower(): k for k, name in enumerate(methods)} == dict(METHODS)


def test_messages():
    found = outcome.messages("all is well", ", gtol or ftol", unbounded="It falls without bound.")
    assert found[outcome.CONVERGED] == "Converged: all is well."
    assert found[outcome.MAX_FUN] == "Stopped after max_fun evaluations; raise max_fun, gtol or ftol."
    assert found[outcome.UNBOUNDED] == "It falls without bound." and outcome.DIVERGED not in found
    with pytest.raises(KeyError):
        outcome.messages("", no_such_status="")


def test_limits():
    assert Limits().reached(10**9, 10**9) is None
    assert Limits(max_iter=3).reached(2) is None and Limits(max_iter=3).reached(3) == outcome.MAX_ITER
    assert Limits(max_fun=3).reached(nfev=3) == outcome.MAX_FUN and Limits(max_fun=3).reached(5) is None
    assert Limits(max_time=0.0).reached() == outcome.MAX_TIME
    past = Limits(max_time=60.0, start=Limits().start - 61.0)
    assert past.seconds >= 61.0 and past.reached() == outcome.MAX_TIME
    # iterations are named before seconds: they are the same on every machine
    assert Limits(max_iter=0, max_time=0.0).reached(0) == outcome.MAX_ITER


def test_callbacks_stop_by_a_true_value_or_by_an_exception():
    def raises(report):
        raise StopIteration

    assert outcome.wants_to_stop(lambda report: report == 7, 7) is True
    assert outcome.wants_to_stop(lambda report: None, 7) is False
    assert outcome.wants_to_stop(raises, 7) is True
    with pytest.raises(ZeroDivisionError):
        outcome.wants_to_stop(lambda report: 1 / 0, 7)
    assert Stop(outcome.MAX_FUN).status == outcome.MAX_FUN


def test_history():
    history = History(("time", "fun"))
    assert history and {name: len(column) for name, column in history.columns().items()} == {
        "time": 0,
        "fun": 0,
    }
    history.add(0.5, 3.0)
    history.add(1.0, 2.0)
    np.testing.assert_array_equal(history.columns()["fun"], [3.0, 2.0])
    none = History(("time",), keep=False)
    none.add(1.0)
    assert not none and none.columns() is None
