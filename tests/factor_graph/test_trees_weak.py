"""Nonprojective trees of weak scores, which are solved by the sets of words that arcs must enter.

They are compared with enumeration of the sets. `test_weak_structures` has the same trees one after another.
"""

import numpy as np
import pytest
from structure_oracles import entered

from sparsekit import DepTree, FactorGraph
from sparsekit._cython.factor_graph._structures import sets_that_lack, tree

SINGLE = [False, True]


def solved(scores, single_root, **options):
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(DepTree(u, single_root=single_root))
    solution = graph.solve(**options)
    assert solution.success, solution.message
    return graph, u, solution


def has_no_structures(solution):
    return len(solution._run.states.structures(0, 0)[0]) == 0


def gain(scores, x, single_root):
    """What the best tree is worth more than x where the scores less x count: 0 for the projection."""
    left = np.ascontiguousarray(scores - x)
    return tree(left, False, single_root)[0] - (left * x).sum()


def some_scores(n, scale, seed):
    rng = np.random.default_rng([n, seed])
    scores = scale * rng.standard_normal((n, n))
    if seed == 1:
        return np.maximum(scores, 0)
    if seed == 2:
        return scale * np.round(rng.standard_normal((n, n)))
    if seed == 3:
        return scores + 0.3 * np.eye(n)  # nearly all words on the root
    return scores


@pytest.mark.parametrize("single_root", SINGLE)
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 0.1, 0.3, 0.6])
def test_projections_and_their_derivatives_by_all_sets(scale, single_root):
    used = 0
    for seed in range(4):
        scores = some_scores(8, scale, seed)
        _, u, solution = solved(scores, single_root)
        x = solution[u]
        used += has_no_structures(solution)
        _, arcs = entered(8)
        mass = arcs @ x.ravel()
        np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert (x >= 0).all() and mass.min() > 1 - 1e-12
        assert not single_root or abs(np.trace(x) - 1) < 1e-12
        assert abs(gain(scores, x, single_root)) < 1e-12
        # what all words' heads and all bound sets leave free, among the arcs in use
        A = np.vstack([np.kron(np.eye(8), np.ones(8)), arcs[mass < 1 + 1e-9]]) * (x.ravel() > 0)
        d = np.random.default_rng(seed).standard_normal(64)
        inside = d * (x.ravel() > 0)
        expected = inside - np.linalg.pinv(A) @ (A @ inside)
        np.testing.assert_allclose(solution.vjp(d).scores, expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(solution.jvp(d), expected, rtol=0, atol=1e-8)
    assert used >= (2 if 0 < scale < 0.3 else 0)  # tied scores mix a tree a word


@pytest.mark.parametrize("single_root", SINGLE)
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 2.0, 4.0, 30.0, 1e4])
def test_larger_trees_at_all_scales(scale, single_root):
    for seed in range(3):
        scores = some_scores(30, scale, seed)
        _, u, solution = solved(scores, single_root)
        x, tol = solution[u], 1e-11 + 1e-15 * scale
        np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=0, atol=tol)
        assert (x >= 0).all() and len(sets_that_lack(x, 10 * tol)) == 0
        assert not single_root or abs(np.trace(x) - 1) < tol
        assert abs(gain(scores, x, single_root)) < 1e-12 * (1 + abs(scores).sum())


def test_sets_that_lack_are_found():
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = rng.dirichlet(np.full(7, 0.3), size=7)
        sets, arcs = entered(7)
        mass = arcs @ x.ravel()
        found = sets_that_lack(x, 1e-9)
        assert (len(found) > 0) == (mass.min() < 1 - 1e-9)
        for words in found:
            assert mass[(sets == words).all(axis=1)][0] < 1 - 1e-9


def test_words_that_no_allowed_arc_enters_have_no_tree():
    scores = np.full((12, 12), 0.01)
    scores[:3, 3:] = -np.inf
    scores[:3, :3] -= np.diag(np.full(3, np.inf))
    graph = FactorGraph()
    graph.add(DepTree(graph.variable(scores)))
    assert graph.solve().status == 10
