"""Projective trees of weak scores, whose mixtures have so many trees that these enter several at once.

Against the same trees one after another, as a user's oracle gives them, and against differences.
"""

import numpy as np
import pytest
from tree_oracle import TreeOracle

from sparsekit import Budget, DepTree, FactorGraph
from sparsekit._cython.factor_graph._structures import tree

SINGLE = [False, True]
MANY = 64  # trees from which on several enter at once


def normal(n, scale, seed=0):
    return scale * np.random.default_rng([n, seed]).standard_normal((n, n))


def solved(scores, single_root=False, one_by_one=False, budget=None, **options):
    graph = FactorGraph()
    u = graph.variable(scores)
    tree = (
        TreeOracle(u, True, single_root)
        if one_by_one
        else DepTree(u, projective=True, single_root=single_root)
    )
    graph.add(tree)
    if budget is not None:
        graph.add(Budget(u[:, 0], budget))
    return graph, u, graph.solve(**options)


def n_trees(solution):
    return len(solution._run.states.structures(0, 0)[0])


@pytest.mark.parametrize("single_root", SINGLE)
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 0.1])
def test_as_trees_that_enter_one_by_one(scale, single_root):
    scores = normal(16, scale)
    _, u, solution = solved(scores, single_root)
    _, _, other = solved(scores, single_root, one_by_one=True)
    x = solution[u]
    assert solution.success and other.success
    assert scale == 0.0 or n_trees(solution) > MANY
    np.testing.assert_allclose(solution.x, other.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=0, atol=1e-13)
    assert not single_root or abs(np.trace(x) - 1) < 1e-13
    # no tree is worth more where the scores less x count
    left = scores - x
    assert tree(left, True, single_root)[0] - (left * x).sum() < 1e-12


def test_the_mixture_is_one_of_projective_trees():
    graph, u, solution = solved(normal(14, 1e-2))
    found = solution.local(graph.factors[0])
    weights, tables = found["weights"], found["structures"].reshape(-1, 14, 14)
    assert len(weights) > MANY and (weights > 0).all()
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.tensordot(weights, tables, 1), solution[u], rtol=0, atol=1e-12)
    for table in tables:
        assert (table.sum(axis=1) == 1).all()
        assert tree(table, True, False)[0] == 14.0  # the best tree by its own arcs is itself


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


def test_again_from_trees_that_are_in_use():
    graph, u, _ = solved(normal(14, 1e-2))
    for scale, seed in [(1e-2, 1), (1.0, 2), (1e-3, 3), (100.0, 4), (0.05, 5)]:
        scores = normal(14, scale, seed)
        graph.set_scores(u, scores)
        again = graph.solve(warm_start=True)
        _, _, cold = solved(scores)
        assert again.success and cold.success
        np.testing.assert_allclose(again.x, cold.x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("most", [1, 70, 71, 90, 137])
def test_calls_of_the_oracle_are_counted_where_many_enter_at_once(most):
    _, u, solution = solved(normal(16, 1e-3), max_iter=1, inner_iter=most, exact=False)
    assert not solution.success
    assert n_trees(solution) <= most + 1
    np.testing.assert_allclose(solution[u].sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_large_scores_beside_weak_ones():
    for seed in range(3):
        scores = normal(16, 1e-3, seed)
        scores[9, 3] = scores[12, 3] = 1e6
        _, u, solution = solved(scores)
        left = scores - solution[u]
        gain = tree(left, True, False)[0] - (left * solution[u]).sum()
        assert solution.success and solution[u][9, 3] == 1.0
        assert gain < 1e-12 * abs(scores).sum()
