"""The recipes of doc/contributing.md work as they stand."""

import re
import textwrap

import numpy as np
import pytest
from scipy import optimize

from sparsekit import FactorGraph
from sparsekit._bounded.losses.losses import LossRows, PiecewiseLoss
from sparsekit._factor_graph.factors.factors import Relation
from sparsekit._factor_graph.factors.linear_factors import Budget


@pytest.fixture(scope="module")
def page(checkout):
    return (checkout / "doc" / "contributing.md").read_text(encoding="utf-8")


def block(page, name):
    """The page's Python block that defines a class of that name."""
    found = [
        text
        for text in map(textwrap.dedent, re.findall(r"```python\n(.*?)```", page, re.DOTALL))
        if f"class {name}(" in text
    ]
    assert len(found) == 1
    return found[0]


def test_a_loss_of_the_bounded_models(page):
    line = re.search(r'`"squared_epsilon_insensitive": (dict\(.*?\)),`', page)[1]
    epsilon, y = 0.3, np.array([0.0, 1.0, -2.0, 0.5])
    four = eval(line, {"INF": np.inf, "epsilon": epsilon, "dict": dict})
    z = np.array([0.2, 3.0, -2.9, 0.0])
    loss = PiecewiseLoss(y, np.ones(4), **four)
    rows = loss.evaluate(z, LossRows.empty(4))
    assert rows.f == pytest.approx(np.sum(np.maximum(np.abs(z - y) - epsilon, 0.0) ** 2), rel=1e-12)


def test_a_factor(page):
    names = {"Budget": Budget, "Relation": Relation}
    exec(block(page, "AtLeast"), names)
    scores = np.array([0.4, -0.3, -0.8, 0.1])
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(names["AtLeast"](u, 2))
    # the projection of the scores onto the polytope
    expected = optimize.minimize(
        lambda x: 0.5 * np.sum((x - scores) ** 2),
        np.full(4, 0.5),
        jac=lambda x: x - scores,
        bounds=[(0, 1)] * 4,
        constraints={"type": "ineq", "fun": lambda x: x.sum() - 2.0},
        tol=1e-12,
    )
    np.testing.assert_allclose(graph.solve()[u], expected.x, atol=1e-6)
    assert graph.map()[u].sum() == pytest.approx(2.0)


@pytest.mark.parametrize(
    "pattern", [r"`((?:sparsekit/|_\w+/|tests/|benchmarks/|gpu/)[\w/]+\.(?:pyx?|h|cu))`"]
)
def test_files_that_documents_name_are_there(checkout, pattern):
    missing, seen = [], 0
    for path in sorted((checkout / "doc").glob("*.md")):
        for name in re.findall(pattern, path.read_text(encoding="utf-8")):
            seen += 1
            if not (checkout / name).exists() and not (checkout / "sparsekit" / name).exists():
                missing.append(f"{path.name}: {name}")
    assert not missing and seen > 50
