"""LP-SparseMAP forward: against enumeration with an exact QP, and between graphs of one polytope."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_factor_graph import EXAMPLES, build, example, random_graph

import sparsekit as sk

seeds = st.integers(0, 2**32 - 1)
NAMES = list(EXAMPLES)


def assert_solved(solution, mu, atol=1e-8):
    assert solution.status == 0 and solution.success, solution.message
    np.testing.assert_allclose(solution.x, mu, rtol=0, atol=atol)


# One factor


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_factor_alone_and_twice_and_as_a_users(name, integer):
    """SparseMAP; the second copy of the factor must change nothing, but makes its variables shared."""
    rng = np.random.default_rng(NAMES.index(name))
    for scale in (0.3, 1.0, 5.0):
        eta, f = example(name, rng, scale, integer)
        mu, (p,) = ref.solve_exact(eta, [f])
        value = f.scores @ f.N @ p
        half = ref.Factor(f.kind, f.params, f.negated, f.variables, f.M, f.N, f.scores / 2)
        for factors in ([f], [half, half]):
            for generic in (False, True, [True, False][: len(factors)]):
                graph, u, made = build(eta, factors, generic)
                solution = graph.solve()
                assert_solved(solution, mu)
                np.testing.assert_array_equal(solution[u], solution.x)
                got = sum(g.scores @ np.ravel(solution[h]) for g, h in zip(factors, made))
                assert abs(got - value) < 1e-8
                assert abs(solution.fun - ref.objective(eta, [f], mu, [p])) < 1e-8 * (1 + abs(eta).sum())


@pytest.mark.parametrize("name", NAMES)
def test_local_problem(name):
    """One iteration of Algorithm 1 solves each factor's problem, whose variables have different degrees."""
    rng = np.random.default_rng(NAMES.index(name))
    for seed in range(3):
        eta, f = example(name, rng, 2.0)
        others = [ref.make_factor("pair", f.variables[:2], [0.0])] * seed
        degree = np.where(np.isin(f.variables, f.variables[:2]), 1 + seed, 1)
        for generic in (False, True):
            graph, _, made = build(eta, [f, *others], [generic] + [False] * seed)
            # a Pair that has no score leaves its variables alone, but counts in their degrees
            gamma = 0.7
            solution = graph.solve(exact=False, max_iter=1, step_size=gamma, adaptive=False, inner_iter=500)
            v = (eta + gamma * np.clip(eta, 0, 1))[f.variables] / (1 + gamma)
            if seed == 0:
                v = eta[f.variables]  # no variable is shared: the solution itself
            x, _ = ref.local_exact(v, 1 / degree, f.scores / (1 + gamma if seed else 1), f.M, f.N)
            np.testing.assert_allclose(solution.local(made[0])["x"].ravel(), x, rtol=0, atol=1e-10)


@given(seeds)
@settings(max_examples=40)
def test_xor_is_sparsemax(seed):
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(3, int(rng.integers(1, 40)))) * rng.choice([0.01, 1, 100])
    graph = sk.FactorGraph()
    u = graph.variable(eta)
    graph.add(sk.Xor(u))
    np.testing.assert_allclose(graph.solve()[u], sk.sparsemax(eta), rtol=0, atol=1e-11 * (1 + abs(eta).max()))


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e15])
def test_large_scores(size):
    """The answer depends on differences alone, whatever the scores' size."""
    eta = np.array([size, size, 0.0, -size])
    graph, u, _ = build(eta, [ref.make_factor("xor", range(4))])
    np.testing.assert_allclose(graph.solve()[u], [0.5, 0.5, 0, 0], rtol=0, atol=1e-9)
    graph, u, _ = build(-eta, [ref.make_factor("budget", range(4), budget=3, exactly=True)])
    np.testing.assert_allclose(graph.solve()[u], [0.5, 0.5, 1, 1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [-1e6, -1e8, -1e10, 1e8, 1e10])
def test_large_scores_shared(size):
    """Rows of a matching: what all of their scores have in common has no part in the solution."""
    eta = np.random.default_rng(0).integers(-20, 21, size=(4, 4)) / 16.0  # sums without rounding
    factors = [ref.make_factor("xor", row) for row in np.arange(16).reshape(4, 4)]
    factors += [ref.make_factor("xor", row) for row in np.arange(16).reshape(4, 4).T]
    mu, _ = ref.solve_exact(eta.ravel(), factors)
    assert_solved(build((eta + size).ravel(), factors)[0].solve(), mu, 1e-13 * abs(size))
    assert 0.01 < np.sort(mu)[-5] < 0.99


# Factors that describe one polytope


def solved(eta, add):
    graph = sk.FactorGraph()
    u = graph.variable(eta)
    for factor in add(u):
        graph.add(factor)
    solution = graph.solve()
    assert solution.status == 0
    return solution[u], solution.fun


def test_equal_polytopes():
    rng = np.random.default_rng(1)
    table, chain = rng.normal(size=(8, 10)), rng.normal(size=(12, 4))
    step = rng.normal(size=(11, 4, 4))
    flat, costs = rng.normal(size=9), np.ones(9)
    pair, score = np.array([0.3, 0.1]), np.array([0.2, 0.1])
    flips = rng.integers(2, size=(4, 9)).astype(bool)

    def two_valued(u):  # the indicators of "off" of Dense: no part in the score
        return [sk.Pair([u[0], u[1]], score[0]), sk.Pair([u[1], u[0]], score[1])]

    for eta, first, second in [
        (table.T, lambda u: [sk.Matching(u)], lambda u: [sk.Matching(u.T)]),
        (chain, lambda u: [sk.Sequence(u, step)],
         lambda u: [sk.Dense([u[t], u[t + 1]], step[t]) for t in range(11)]),
        (chain, lambda u: [sk.Sequence(u, step[0])], lambda u: [sk.Sequence(u, np.repeat(step[:1], 11, 0))]),
        (flat, lambda u: [sk.Budget(u, 3)], lambda u: [sk.Knapsack(u, 2 * costs, 6.0)]),
        (flat, lambda u: [sk.Imply(u)], lambda u: [sk.Or(u, negated=np.arange(9) < 8)]),
        (flat, lambda u: [sk.AndOut(u, negated=flips[0])], lambda u: [sk.OrOut(u, negated=~flips[0])]),
        (flat, lambda u: [sk.Or(u, negated=flips[1])], lambda u: [sk.Budget(u, 8, negated=~flips[1])]),
        (flat, lambda u: [sk.XorOut(u)], lambda u: [sk.Xor(u, negated=np.arange(9) == 8)]),
        (flat, lambda u: [sk.Xor(u)], lambda u: [sk.Dense([u])]),
        (pair, two_valued, lambda u: [sk.Pair(u, score[:2].sum())]),
    ]:  # fmt: skip
        (x, value), (y, other) = solved(eta, first), solved(eta, second)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9)
        assert abs(value - other) < 1e-9 or first is two_valued
        assert np.any((x > 1e-3) & (x < 1 - 1e-3))


def test_rows_are_factors():
    rng = np.random.default_rng(2)
    eta, flips = rng.normal(size=(5, 2)), rng.integers(2, size=(5, 2)).astype(bool)
    score, budgets = rng.normal(size=5), np.array([0, 1, 2, 1, 0])
    costs = rng.uniform(size=(5, 2))
    for at_once, one in [
        (lambda u: sk.Pair(u, score, negated=flips), lambda u, i: sk.Pair(u, score[i], negated=flips[i])),
        (lambda u: sk.Budget(u, budgets), lambda u, i: sk.Budget(u, int(budgets[i]))),
        (lambda u: sk.Knapsack(u, costs, score**2), lambda u, i: sk.Knapsack(u, costs[i], score[i] ** 2)),
        (lambda u: sk.OrOut(u, negated=flips[0]), lambda u, i: sk.OrOut(u, negated=flips[0])),
        (sk.AtMostOne, lambda u, i: sk.AtMostOne(u)),
    ]:
        whole = solved(eta, lambda u, f=at_once: [f(u), sk.Or(u.T)])
        rows = solved(eta, lambda u, f=one: [*(f(u[i], i) for i in range(5)), sk.Or(u[:, 0]), sk.Or(u[:, 1])])
        np.testing.assert_allclose(whole[0], rows[0], rtol=0, atol=1e-9)
        assert abs(whole[1] - rows[1]) < 1e-9


# Mixed graphs


@given(seeds)
@settings(max_examples=100)
def test_random_graphs(seed):
    eta, factors = random_graph(seed)
    mu, ps = ref.solve_exact(eta, factors)
    generic = np.random.default_rng(seed).integers(4, size=len(factors)) == 0
    graph, _, made = build(eta, factors, generic)
    solution = graph.solve()
    assert_solved(solution, mu)
    # what is off is 0 and not nearly so: the sparsity that users count
    near = (abs(solution.x) < 1e-9) | (abs(solution.x - 1) < 1e-9)
    assert np.isin(solution.x[near], [0.0, 1.0]).all()
    scale = 1 + abs(eta).sum()
    assert abs(solution.fun - ref.objective(eta, factors, mu, ps)) < 1e-8 * scale
    for f, h, p in zip(factors, made, ps):
        local = solution.local(h)
        np.testing.assert_allclose(local["x"].ravel(), mu[f.variables], rtol=0, atol=1e-8)
        if "weights" in local:
            assert local["weights"].min() >= 0 and abs(local["weights"].sum() - 1) < 1e-12
            np.testing.assert_allclose(local["weights"] @ local["structures"], local["x"].ravel(), atol=1e-12)
        assert abs(f.scores @ np.ravel(solution[h]) - f.scores @ f.N @ p) < 1e-7 * scale


def test_variables_in_no_factor_are_clipped():
    graph = sk.FactorGraph()
    free, u = graph.variable([-1.0, 0.25, 1.0, 7.0]), graph.variable([0.5, 0.5])
    lone = sk.FactorGraph()
    alone = lone.variable([[0.5, -np.inf], [0.0, 2.0]])
    np.testing.assert_array_equal(lone.solve()[alone], [[0.5, 0], [0, 1]])
    for factor in (sk.Xor(u), sk.AtMostOne(u)):
        graph.add(factor)
        solution = graph.solve()
        np.testing.assert_array_equal(solution[free], [0, 0.25, 1, 1])
        np.testing.assert_allclose(solution[u], 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_float32(seed):
    eta, factors = random_graph(3 * seed + 1, scale=1.0)
    eta = eta.astype(np.float32)
    for f in factors:
        f.scores = f.scores.astype(np.float32).astype(float)
    mu, ps = ref.solve_exact(eta.astype(float), factors)
    graph, u, _ = build(eta, factors)
    solution = graph.solve()
    assert solution.x.dtype == solution[u].dtype == solution.additional.dtype == np.float32
    assert_solved(solution, mu, 1e-7)
    assert abs(solution.fun - ref.objective(eta.astype(float), factors, mu, ps)) < 1e-5
    batch = graph.solve_batch(eta[None])
    gradient, moved = batch.vjp(eta[None]).scores, batch.jvp(eta[None])
    assert batch.x.dtype == gradient.dtype == moved.dtype == np.float32
    np.testing.assert_array_equal(batch.x[0], solution.x)
    expected = ref.vjp_exact(eta, factors, eta)[0]
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(moved[0], expected, rtol=1e-5, atol=1e-5)
