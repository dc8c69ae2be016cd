"""The numbers of the statuses, which all solvers share."""

import re

from sparsekit._extreme.solver.state import METHODS
from sparsekit._factor_graph.factors.factors import Relation
from sparsekit._solver import outcome

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
    for relation in Relation:
        assert found[relation.name] == relation
    methods = re.search(r"enum \{ (SK_IMPLICIT[\w, ]*) \}", text)[1].split(", ")
    assert {name[3:].lower(): k for k, name in enumerate(methods)} == dict(METHODS)
