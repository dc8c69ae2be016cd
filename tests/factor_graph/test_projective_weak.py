"""Projective trees of weak scores, whose mixtures have so many trees that these enter several at once.

Against differences; `test_weak_structures` has the same trees one after another.
"""

import numpy as np
import pytest

from sparsekit import Budget, DepTree, FactorGraph
from sparsekit._cython.factor_graph._structures import tree

MANY = 64  # trees from which on several enter at once


def normal(n, scale, seed=0):
    return scale * np.random.default_rng([n, seed]).standard_normal((n, n))


def solved(scores, budget=None, **options):
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(DepTree(u, projective=True))
    if budget is not None:
        graph.add(Budget(u[:, 0], budget))
    return graph, u, graph.solve(**options)


def n_trees(solution):
    return len(solution._run.states.structures(0, 0)[0])


@pytest.mark.parametrize("budget", [None, 1])
def test_derivatives_are_those_of_differences(budget):
    scores = normal(13, 0.03)
    if budget is not None:
        scores[:, 0] += 0.1
    _, _, solution = solved(scores, budget=budget)
    assert solution.success and n_trees(solution) > MANY
    d, step = normal(13, 1.0, seed=1).ravel(), 1e-6
    ends = [solved(scores + way * step * d.reshape(13, 13), budget=budget)[2].x for way in (1, -1)]
    moved = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(solution.jvp(d), moved, rtol=0, atol=1e-6)
    np.testing.assert_allclose(solution.vjp(d).scores, moved, rtol=0, atol=1e-6)  # J is symmetric


@pytest.mark.parametrize("most", [1, 70, 71, 90, 137])
def test_calls_of_the_oracle_are_counted_where_many_enter_at_once(most):
    _, u, solution = solved(normal(16, 1e-3), max_iter=1, inner_iter=most, exact=False)
    assert not solution.success
    assert n_trees(solution) <= most + 1
    np.testing.assert_allclose(solution[u].sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_large_scores_with_weak_ones():
    for seed in range(3):
        scores = normal(16, 1e-3, seed)
        scores[9, 3] = scores[12, 3] = 1e6
        _, u, solution = solved(scores)
        left = scores - solution[u]
        gain = tree(left, True, False)[0] - (left * solution[u]).sum()
        assert solution.success and solution[u][9, 3] == 1.0
        assert gain < 1e-12 * abs(scores).sum()
