"""Coupled logic factors, where passes stall: solutions against rows that the package does not know."""

import time

import numpy as np
import pytest
from coupled import Rows, build, random_graph

import sparsekit as sk
from sparsekit._factor_graph import finish, interior_point
from sparsekit._factor_graph.polytope import polytope_of
from sparsekit._factor_graph.presolve import postsolve, presolve

SIZES = [(40, 40), (50, 60), (60, 60), (60, 80)]
SCALES = [1e-3, 1.0, 1e5]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n, m", SIZES)
def test_marginals(n, m, scale):
    for seed in range(3):
        graph, u, scores, factors = random_graph(seed, n, m, scale)
        solution = graph.solve()
        assert solution.status == 0, solution.message
        assert Rows(scores, factors).stationarity(solution[u]) < 1e-8 + 1e-12 * scale
        assert solution.optimality < 1e-8 * max(1.0, scale)


def test_such_graphs_are_finished():
    """The first passes leave some of those above open: else they would show nothing."""
    passes = [random_graph(seed, *SIZES[1], 1e5)[0].solve().nit for seed in range(3)]
    assert max(passes) > finish.FIRST
    assert max(random_graph(seed, *SIZES[2])[0].map().nit for seed in range(3)) > finish.FIRST_MAP


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n, m", SIZES)
def test_linear_programs(n, m, scale):
    for seed in range(3):
        graph, u, scores, factors = random_graph(seed, n, m, scale)
        solution, rows = graph.map(), Rows(scores, factors)
        z = rows.complete(solution[u])
        assert solution.status == 0, solution.message
        assert rows.violation(z) < 1e-8
        best = rows.best()
        assert abs(rows.linear @ z - best) < 1e-8 * np.abs(rows.linear).sum()
        assert abs(solution.fun - best) < 1e-8 * np.abs(rows.linear).sum()


def test_more_factors_than_variables():
    graph, _, _, _ = random_graph(0, 200, 250)
    assert graph.solve().status == 0 and graph.map().status == 0


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_derivatives(scale):
    """Where the first passes did not end, the kernels' Jacobian is that of the solution."""
    rng = np.random.default_rng(1)
    checked = 0
    for seed in range(2):
        graph, u, scores, factors = random_graph(seed, 200, 250, scale)
        solution = graph.solve()
        if solution.nit <= finish.FIRST:
            continue
        to, step = rng.normal(size=len(scores)), rng.normal(size=len(scores))
        slope = solution.vjp({u: to})[u] @ step
        h = 1e-5 * scale**0.5
        ends = [build(scores + side * h * step, factors) for side in (1, -1)]
        high, low = (to @ g.solve()[v] for g, v in ends)
        np.testing.assert_allclose(slope, (high - low) / (2 * h), atol=1e-5)
        checked += 1
    assert checked


@pytest.mark.parametrize("seed", range(4))
def test_infeasible(seed):
    _, _, scores, factors = random_graph(seed, 40, 40)
    graph, u = build(scores, factors)
    graph.add(sk.Xor(u[:5]))
    graph.add(sk.Budget(u[:5], 2, negated=np.ones(5, dtype=bool)))  # at least three
    assert graph.solve().status == 10
    assert graph.map().status == 10


@pytest.mark.parametrize("scale", SCALES)
def test_chain_of_implications(scale):
    rng = np.random.default_rng(0)
    n = 301
    scores = rng.normal(size=n) * scale
    factors = [("imply", np.array([k, k + 1]), np.zeros(2, dtype=bool), ()) for k in range(n - 1)]
    graph, u = build(scores, factors)
    solution = graph.solve()
    assert solution.status == 0
    # isotonic regression: means of pools, cut off
    pools = []
    for score in scores:
        pools.append([score, 1])
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] > pools[-1][0] * pools[-2][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    exact = np.clip(np.repeat([total / count for total, count in pools], [count for _, count in pools]), 0, 1)
    np.testing.assert_allclose(solution[u], exact, atol=1e-8)
    best = max(scores[k:].sum() for k in range(n + 1))
    found = graph.map()
    assert found.status == 0
    np.testing.assert_allclose(found.fun, best, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_assignment(scale):
    from scipy.optimize import linear_sum_assignment

    scores = np.random.default_rng(3).normal(size=(30, 30)) * scale
    graph = sk.FactorGraph()
    u = graph.variable(scores)
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    row, column = linear_sum_assignment(-scores)
    found, marginals = graph.map(), graph.solve()
    assert found.status == 0 and marginals.status == 0
    np.testing.assert_allclose(found[u][row, column], 1.0)
    np.testing.assert_allclose(found[u].sum(), 30.0)
    if scale > 1:  # the gap to the second best outweighs the quadratic term
        np.testing.assert_allclose(marginals[u], found[u], atol=1e-8)


def test_limits():
    """Passes, Newton steps and simplex iterations count, and a time in the past leaves nothing to do."""
    graph, _, _, _ = random_graph(1, 200, 250)
    for solve, first in ((graph.solve, finish.FIRST), (graph.map, finish.FIRST_MAP)):
        solution = solve(max_iter=first + 1)
        assert solution.nit <= first + 1 and solution.status in (0, 1)
        assert solve(max_time=1e-3).status == 2
    layout, off = graph._plan(), np.zeros(200, dtype=bool)
    pairs = graph.additional_scores
    given = layout, graph.scores, pairs, off, np.zeros(len(pairs), dtype=bool), 100
    assert finish.marginals(*given, time.perf_counter() - 1.0) is None
    assert finish.assignment(*given[:-1], 10**4, time.perf_counter() - 1.0) is None


def test_presolve_keeps_the_optimality_conditions():
    """Multipliers of the rows that forced variables belong to the solution of the whole problem."""
    forced = 0
    for seed in range(4):
        graph, _, scores, _ = random_graph(seed, 60, 80)
        pairs = graph.additional_scores
        p = polytope_of(graph._plan(), pairs, np.zeros(60, dtype=bool), np.zeros(len(pairs), dtype=bool))
        reduced, target = presolve(p), scores + p.linear
        forced += len(reduced.forcing)
        point = interior_point.project(target[reduced.free], reduced.inner)
        x, y = postsolve(target, p, reduced, point.x, point.y)
        assert interior_point.residual(target, p, x, y, 1.0) < 1e-9
    assert forced > 10
