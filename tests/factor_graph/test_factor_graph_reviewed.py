"""What reviews of factor graphs found: certificates with forbidden variables, stops at any pass, threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference_factor_graph import Enumerated, build, random_graph

import sparsekit as sk
from sparsekit._factor_graph import plan
from sparsekit._solver.outcome import INFEASIBLE


def test_forbidden_values_with_huge_scores():
    """A loss that is large for one kind of score is negligible relative to the other kind."""
    graph = sk.FactorGraph()
    u = graph.variable([1e6, 1e6])
    graph.add(sk.Pair(u, -np.inf))
    solution = graph.solve()
    assert solution.status == 0 and solution.x.sum() <= 1 + 1e-9
    graph = sk.FactorGraph()
    u = graph.variable([-np.inf, 0.3])
    graph.add(sk.Pair(u, 1e6))
    np.testing.assert_allclose(graph.solve()[u], [0.0, 0.3])


@pytest.mark.parametrize("seed", [8, 9, 11])
def test_any_number_of_passes_leaves_marginals_of_one_iteration(seed):
    """max_iter in the midst of Newton's method: mu is a mean of answers, and optimality is theirs."""
    eta, factors = random_graph(seed)
    graph, _, made = build(eta, factors)
    whole = graph.solve()
    for most in range(1, whole.nit):
        solution = graph.solve(max_iter=most)
        if solution.status != 1:
            continue
        copies = [(h.index.ravel(), solution.local(h)["x"].ravel()) for h in made]
        total, count = np.zeros(len(eta)), np.zeros(len(eta))
        for index, x in copies:
            total[index] += x
            count[index] += 1
        covered = count > 0
        np.testing.assert_allclose(solution.x[covered], (total / np.maximum(count, 1))[covered], atol=1e-12)
        squares = sum((((x - solution.x[index]) ** 2) / count[index]).sum() for index, x in copies)
        assert abs(solution.optimality - np.sqrt(squares)) < 1e-9


def test_threads_may_share_a_solution():
    rng = np.random.default_rng(0)
    graph = sk.FactorGraph()
    u = graph.variable(rng.normal(size=40))
    graph.add(sk.Pair(u[np.column_stack(np.triu_indices(40, 1))], 0.05 * rng.normal(size=780)))
    solution = graph.solve()
    directions = rng.normal(size=(60, 40))
    expected = [solution.vjp(d).scores for d in directions]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda d: solution.vjp(d).scores, directions))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("exact", [True, False])
def test_map_of_scores_that_are_all_zero_leaves_off_what_is_forbidden(exact):
    """There is no smallest score to go by, and -inf weighs all the same."""
    graph = sk.FactorGraph()
    u = graph.variable([-np.inf, 0.0, 0.0, 0.0])
    graph.add(sk.Xor(u[:2]))
    graph.add(sk.Sequence(u.reshape(2, 2), [[0.0, 0.0], [0.0, -np.inf]]))
    graph.add(sk.Pair(u[1:3], 0.0))
    solution = graph.map(exact=exact)
    assert solution.status == 0 and solution.fun == 0.0
    np.testing.assert_allclose(solution[u], [0.0, 1.0, 1.0, 0.0], atol=1e-6)


def test_map_of_scores_that_are_all_zero_needs_one_step():
    """Every assignment is best: the second step of these crept for 8000 passes."""
    graph = sk.FactorGraph()
    u = graph.variable((6,))
    structures = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]], dtype=float)
    graph.add(sk.Knapsack(u[[5, 1, 4, 2]], [0.0, 1.0, 50.0, 0.01], 0.5, negated=np.ones(4, dtype=bool)))
    graph.add(sk.Dense([u[[3, 0]]]))
    graph.add(Enumerated(u[[3, 4, 2, 0]], structures.T, np.zeros((0, 3))))
    assert graph.map().nit == graph.solve(tol_primal=1e-9).nit


@pytest.mark.parametrize("what", ["map", "solve"])
def test_what_costs_nothing_is_not_forced_off_by_an_empty_budget(what, monkeypatch):
    """Forced variables are taken out before coupled logic goes to a general solver."""
    monkeypatch.setattr(plan, "first_passes", lambda *args: 1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph = sk.FactorGraph()
        u = graph.variable(rng.normal(size=8))
        graph.add(sk.Knapsack(u[:5], rng.choice([0.0, 1.0, 2.0], 5), 0.0))
        graph.add(sk.AtMostOne(u[3:]))
        graph.add(sk.Or(u[[0, 3, 6, 7]]))
        graph.add(sk.Imply(u[[1, 2, 6]]))
        found = getattr(graph, what)()
        with monkeypatch.context() as passes:
            passes.setattr(plan, "has_rows", lambda layout: False)
            by_passes = getattr(graph, what)()
        assert found.status == by_passes.status == 0
        np.testing.assert_allclose(found.fun, by_passes.fun, atol=1e-9)


def test_scores_of_a_million():
    """Multipliers have to go as far as scores, in max_iter passes; so has a proof of infeasibility."""
    graph = sk.FactorGraph()
    u = graph.variable([-2e6, 0.0, 1e6, -1e6])
    graph.add(sk.AtMostOne(u[[1, 3, 2]]))
    graph.add(sk.Sequence(u[[3, 2, 1, 0]].reshape(2, 2), [[1e6, 1e6], [-1e6, -1e6]]))
    solution = graph.solve()
    assert solution.status == 0
    np.testing.assert_allclose(solution[u], [1.0, 0.0, 0.5, 0.5], atol=1e-6)
    graph = sk.FactorGraph()
    u = graph.variable([464046.4, 304603.4, -129237.8, -1774277.4])
    graph.add(sk.AtMostOne(u[[2, 3, 1, 0]]))
    graph.add(sk.Dense([u[[0, 1, 3]], u[[2]]], [[-214274.0], [1790229.0], [374121.0]]))
    assert graph.solve().status == INFEASIBLE


@pytest.mark.parametrize("cost", [10.0, 2000.0, 9000.0])
def test_a_forbidden_variable_of_a_large_cost_is_off(cost):
    """x <= cost m, where m must be off and x would rather be on."""
    for how in ("solve", "map"):
        graph = sk.FactorGraph()
        u = graph.variable(np.array([1.0, -np.inf]))
        graph.add(sk.Knapsack(u, [1.0, cost], cost, negated=[False, True]))
        found = getattr(graph, how)()
        assert found.success
        np.testing.assert_allclose(found[u], [0.0, 0.0], atol=1e-8)
