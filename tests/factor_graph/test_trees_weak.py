"""Nonprojective trees of weak scores, which are solved by the sets of words that arcs must enter: against
enumeration of the sets, of the trees, and against the active set on trees."""

import itertools

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from reference_factor_graph import build
from reference_ties import jacobian_at_ties
from tree_oracle import TreeOracle

from sparsekit import Budget, DepTree, FactorGraph, Pair
from sparsekit._cython.factor_graph._structures import sets_that_lack, tree
from sparsekit._factor_graph.factors.mixture import trees

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


def entered(x):
    """Sets of words, (k, n), and the arcs that enter each, (k, n * n)."""
    n = len(x)
    sets = np.array(list(itertools.product([False, True], repeat=n)))[1:]
    arcs = sets[:, :, None] & (~sets[:, None, :] | np.eye(n, dtype=bool))
    return sets, arcs.reshape(len(sets), -1)


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
        _, arcs = entered(x)
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
def test_against_enumeration_of_trees(single_root):
    used = 0
    for seed, scale in enumerate([0.02, 0.2, 0.3]):
        rng = np.random.default_rng(seed)
        eta = scale * rng.standard_normal(16)
        factors = [ref.make_factor("dep_tree", np.arange(16), n=4, projective=False, single_root=single_root)]
        mu, J = jacobian_at_ties(eta, factors)
        solution = build(eta, factors)[0].solve()
        used += has_no_structures(solution)
        np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-9)
        d = rng.standard_normal(16)
        np.testing.assert_allclose(solution.vjp(d).scores, J @ d, rtol=0, atol=1e-8)
    assert used >= 1


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
        sets, arcs = entered(x)
        mass = arcs @ x.ravel()
        found = sets_that_lack(x, 1e-9)
        assert (len(found) > 0) == (mass.min() < 1 - 1e-9)
        for words in found:
            assert mass[(sets == words).all(axis=1)][0] < 1 - 1e-9


@pytest.mark.parametrize("single_root", SINGLE)
def test_the_mixture_is_one_of_trees(single_root):
    for n, scale in [(4, 0.1), (9, 0.0), (12, 1e-3), (12, 0.3), (12, 1.0)]:
        _, u, solution = solved(some_scores(n, scale, 0), single_root)
        for found in (solution.local(solution._graph.factors[0]), None):
            if found is None:
                weights, structures = trees(solution[u], single_root)
            else:
                weights, structures = found["weights"], found["structures"]
                assert found["additional"].shape == (len(weights), 0)
            tables = structures.reshape(-1, n, n)
            np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-12)
            assert (weights > 0).all() and len(weights) <= n * n
            assert set(np.unique(tables)) == {0.0, 1.0} and (tables.sum(axis=2) == 1).all()
            for table in tables:
                assert len(sets_that_lack(table, 0.5)) == 0
                assert not single_root or np.trace(table) == 1
            np.testing.assert_allclose(np.tensordot(weights, tables, 1), solution[u], atol=1e-8)


def coupled(graph, u, kind, rng):
    n = len(u)
    if kind == "budgets":
        for h in range(n):
            graph.add(Budget(u[[m for m in range(n) if m != h], h], 1))
    else:
        for m in range(0, n - 1, 2):
            graph.add(Pair(u[[m, m + 1], [m + 1, m]], 0.3 * rng.standard_normal()))


@pytest.mark.parametrize("single_root", SINGLE)
@pytest.mark.parametrize("kind", ["budgets", "pairs"])
@pytest.mark.parametrize("scale", [0.0, 1e-2, 0.3])
def test_beside_other_factors(scale, kind, single_root):
    scores = some_scores(9, scale, 0)
    got = []
    for by_oracle in (False, True):
        graph = FactorGraph()
        u = graph.variable(scores)
        graph.add(TreeOracle(u, False, single_root) if by_oracle else DepTree(u, single_root=single_root))
        coupled(graph, u, kind, np.random.default_rng(1))
        solution = graph.solve(max_iter=20000)
        assert solution.success and (by_oracle or not scale or has_no_structures(solution))
        got.append((solution, solution.vjp(np.arange(81.0)).scores))
    np.testing.assert_allclose(got[0][0].x, got[1][0].x, rtol=0, atol=1e-8)
    np.testing.assert_allclose(got[0][1], got[1][1], rtol=0, atol=1e-5)


def test_two_trees_that_share_arcs():
    scores = some_scores(12, 0.02, 0)
    got = []
    for by_oracle in (False, True):
        graph = FactorGraph()
        u = graph.variable(scores)
        for part in (u[:8, :8], u[4:, 4:]):
            graph.add(TreeOracle(part, False) if by_oracle else DepTree(part))
        solution = graph.solve(max_iter=20000)
        assert solution.success
        got.append(solution.x)
    np.testing.assert_allclose(*got, rtol=0, atol=1e-8)


@pytest.mark.parametrize("single_root", SINGLE)
def test_forbidden_arcs(single_root):
    rng = np.random.default_rng(6)
    for _ in range(4):
        scores = 0.01 * rng.standard_normal((12, 12))
        scores[rng.random((12, 12)) < 0.4] = -np.inf
        scores[0, 0] = 0.0
        scores[np.arange(1, 12), np.arange(11)] = 0.0  # so that there is a tree
        _, u, solution = solved(scores, single_root)
        x = solution[u]
        assert has_no_structures(solution) and (x[np.isinf(scores)] == 0).all()
        assert len(sets_that_lack(x, 1e-11)) == 0
        allowed = np.where(np.isinf(scores), -1e3, scores)
        assert abs(gain(allowed, x, single_root)) < 1e-10


def test_words_that_no_allowed_arc_enters_have_no_tree():
    scores = np.full((12, 12), 0.01)
    scores[:3, 3:] = -np.inf
    scores[:3, :3] -= np.diag(np.full(3, np.inf))
    graph = FactorGraph()
    graph.add(DepTree(graph.variable(scores)))
    assert graph.solve().status == 10


def test_scores_of_very_different_sizes():
    rng = np.random.default_rng(7)
    for single_root in SINGLE:
        for _ in range(5):
            scores = 10.0 ** rng.uniform(-6, 3, (14, 14)) * rng.choice([-1, 1], (14, 14))
            _, u, solution = solved(scores, single_root)
            assert len(sets_that_lack(solution[u], 1e-10)) == 0
            assert abs(gain(scores, solution[u], single_root)) < 1e-12 * abs(scores).sum()


def test_what_rows_have_in_common_changes_nothing():
    scores = some_scores(14, 0.01, 0)
    common = 1e6 * np.random.default_rng(8).standard_normal((14, 1))
    moved = scores + common
    _, _, first = solved(moved - common, False)  # what rounding left of them
    _, u, second = solved(moved, False)
    np.testing.assert_allclose(second[u].sum(axis=1), 1.0, rtol=0, atol=1e-13)
    assert has_no_structures(first) and has_no_structures(second)
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-9)


def test_a_graph_that_is_solved_again_and_again():
    graph = FactorGraph()
    u = graph.variable((14, 14))
    graph.add(DepTree(u))
    coupled(graph, u, "budgets", None)
    for scale in [1e-3, 1e-2, 1.0, 30.0, 0.1, 1e-4, 0.0]:
        scores = some_scores(14, scale, 0)
        graph.set_scores(u, scores)
        again = graph.solve(warm_start=True)
        fresh = FactorGraph()
        u_too = fresh.variable(scores)
        fresh.add(DepTree(u_too))
        coupled(fresh, u_too, "budgets", None)
        cold = fresh.solve()
        assert again.success and cold.success
        np.testing.assert_allclose(again.x, cold.x, rtol=0, atol=1e-8)
        d = np.arange(196.0)
        np.testing.assert_allclose(again.vjp(d).scores, cold.vjp(d).scores, rtol=0, atol=1e-6)
