"""Matchings of weak scores, which are solved by potentials of their rows: against enumeration, and
against logic factors on rows and columns, whose polytope is the same."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from reference_factor_graph import build
from reference_ties import jacobian_at_ties

from sparsekit import AtMostOne, Budget, FactorGraph, Matching, Xor

SHAPES = [(20, 20), (12, 25), (25, 12)]


def matching(graph, u):
    graph.add(Matching(u))


def logic(graph, u):
    m, n = u.shape
    for rows, fewer in ((u, m <= n), (u.T, n <= m)):
        graph.add((Xor if fewer else AtMostOne)(rows))


def solved(scores, how, budgets=(), **options):
    graph = FactorGraph()
    u = graph.variable(scores)
    how(graph, u)
    for part, limit in budgets:
        graph.add(Budget(u[part], limit))
    solution = graph.solve(**options)
    assert solution.success, solution.message
    return graph, u, solution


def has_no_structures(solution):
    return len(solution._run.states.structures(0, 0)[0]) == 0


def compare(scores, budgets=(), gradients=True, seed=0):
    _, u, got = solved(scores, matching, budgets)
    _, w, expected = solved(scores, logic, budgets, max_iter=20000)
    np.testing.assert_allclose(got[u], expected[w], rtol=0, atol=1e-8)
    d = np.random.default_rng(seed).standard_normal(scores.shape)
    if gradients:
        np.testing.assert_allclose(got.vjp({u: d})[u], expected.vjp({w: d})[w], rtol=0, atol=1e-8)
        np.testing.assert_allclose(got.jvp(d.ravel()), expected.jvp(d.ravel()), rtol=0, atol=1e-8)
    return got


@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_as_logic_on_rows_and_columns(shape, scale):
    rng = np.random.default_rng(1)
    scores = scale * rng.standard_normal(shape)
    for given in (scores, np.maximum(scores, 0), scale * np.round(rng.standard_normal(shape))):
        assert has_no_structures(compare(given))


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1e4])
def test_where_structures_take_over(scale):
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        compare(scale * rng.standard_normal(shape))


@pytest.mark.parametrize("shape", [(5, 5), (4, 5), (5, 4)])
def test_against_enumeration(shape):
    m, n = shape
    used = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        eta = [0.02, 0.2, 0.0, 0.3][seed] * rng.standard_normal(m * n)
        if seed == 3:
            eta = np.maximum(eta, 0)
        factors = [ref.make_factor("matching", np.arange(m * n), m=m, n=n)]
        mu, J = jacobian_at_ties(eta, factors)
        solution = build(eta, factors)[0].solve()
        used += has_no_structures(solution)
        np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-9)
        d = rng.standard_normal(m * n)
        np.testing.assert_allclose(solution.vjp(d).scores, J @ d, rtol=0, atol=1e-8)
    assert used >= 1


@pytest.mark.parametrize("shape", SHAPES)
def test_the_mixture_is_one_of_matchings(shape):
    rng = np.random.default_rng(3)
    graph, u, solution = solved(0.05 * rng.standard_normal(shape), matching)
    assert has_no_structures(solution)
    found = solution.local(graph.factors[0])
    weights, tables = found["weights"], found["structures"].reshape(-1, *shape)
    assert (weights > 0).all() and len(weights) <= np.prod(shape)
    assert found["additional"].shape == (len(weights), 0)
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-12)
    assert set(np.unique(tables)) == {0.0, 1.0}
    assert (tables.sum(axis=1) <= 1).all() and (tables.sum(axis=2) <= 1).all()
    assert (tables.sum(axis=(1, 2)) == min(shape)).all()
    np.testing.assert_allclose(np.tensordot(weights, tables, 1), solution[u], atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.3])
def test_beside_other_factors(shape, scale):
    rng = np.random.default_rng(4)
    scores = scale * rng.standard_normal(shape)
    scores[:3, :3] += 0.2
    half = np.s_[: shape[0] // 2, : shape[1] // 2]
    compare(scores, [(half, 2), (np.s_[-3:, :4], 1)])


def test_two_matchings_that_share_variables():
    rng = np.random.default_rng(5)
    scores = 0.02 * rng.standard_normal((18, 24))
    graphs = []
    for how in (matching, logic):
        graph = FactorGraph()
        u = graph.variable(scores)
        how(graph, u[:, :18])
        how(graph, u[:, 6:])
        solution = graph.solve(max_iter=20000)
        assert solution.success
        graphs.append((solution[u], solution.vjp({u: scores})[u]))
    for got, expected in zip(*graphs):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)


def test_forbidden_pairs():
    rng = np.random.default_rng(6)
    for shape in SHAPES:
        scores = 0.01 * rng.standard_normal(shape)
        scores[rng.random(shape) < 0.3] = -np.inf
        got = compare(scores)
        assert (got.x[np.isinf(scores).ravel()] == 0).all()


def test_scores_of_very_different_sizes():
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        compare(10.0 ** rng.uniform(-6, 3, shape) * rng.choice([-1, 1], shape), gradients=False)


@pytest.mark.parametrize("shape", [(20, 20), (12, 25)])
def test_what_rows_have_in_common_changes_nothing(shape):
    rng = np.random.default_rng(8)
    scores = 0.01 * rng.standard_normal(shape)
    common = 1e6 * rng.standard_normal((shape[0], 1))
    moved = scores + common
    _, _, first = solved(moved - common, matching)  # what rounding left of them
    _, _, second = solved(moved, matching)
    assert has_no_structures(first) and has_no_structures(second)
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-8)
