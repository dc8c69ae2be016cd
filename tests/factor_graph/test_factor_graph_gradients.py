"""Derivatives of LP-SparseMAP: against the exact QP's, and against finite differences of the forward."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_factor_graph import EXAMPLES, Enumerated, as_factor, build, example, forbid, random_graph

import sparsekit as sk

seeds = st.integers(0, 2**32 - 1)
NAMES = list(EXAMPLES)


def assert_gradients(gradients, made, exact, atol=1e-7):
    for_eta, for_factors = exact
    np.testing.assert_allclose(gradients.scores, for_eta, rtol=0, atol=atol)
    for h, expected in zip(made, for_factors):
        np.testing.assert_allclose(np.ravel(gradients[h]), expected, rtol=0, atol=atol)


def with_company(name, rng, scale):
    """An example, with a Knapsack and a Pair over some of its variables."""
    eta, f = example(name, rng, scale)
    some = np.append(f.variables[:3], np.setdiff1d(np.arange(len(eta)), f.variables))
    knapsack = ref.make_factor("knapsack", some, costs=np.ones(len(some)), budget=0.7 * len(some))
    pair = ref.make_factor("pair", [f.variables[0], f.variables[-1]], rng.normal(size=1))
    factors = [f, knapsack, pair]
    return (eta, factors) if ref.solve_exact(eta, factors)[0] is not None else (eta, [f, pair])


@pytest.mark.parametrize("company", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("name", NAMES)
def test_vjp_of_every_factor(name, company):
    rng = np.random.default_rng(NAMES.index(name))
    moved = 0.0
    for scale in (0.2, 0.5, 1.0):
        if company:
            eta, factors = with_company(name, rng, scale)
        else:
            eta, f = example(name, rng, scale)
            factors = [f]
        d = rng.normal(size=len(eta))
        exact = ref.vjp_exact(eta, factors, d)
        for generic in (False, True, [True, False, False][: len(factors)]):
            graph, _, made = build(eta, factors, generic)
            assert_gradients(graph.solve().vjp(d), made, exact)
            moved = max(moved, abs(exact[0][factors[0].variables]).max())
    assert moved > 0.03 or name in ("budget-none", "budget-all")  # nothing can move in these two, alone


@given(seeds)
@settings(max_examples=70)
def test_vjp_of_random_graphs(seed):
    eta, factors = random_graph(seed, integer=False, most=8)
    rng = np.random.default_rng(seed)
    d = rng.normal(size=len(eta))
    graph, _, made = build(eta, factors, rng.integers(4, size=len(factors)) == 0)
    solution = graph.solve()
    gradients = solution.vjp(d)
    assert_gradients(gradients, made, ref.vjp_exact(eta, factors, d))
    # jvp is the transpose, and a second evaluation finds the same
    a, b = rng.normal(size=len(eta)), rng.normal(size=graph.n_additional)
    there = gradients.scores @ a + gradients.additional_scores @ b
    assert abs(there - d @ solution.jvp(a, b)) < 1e-8 * (1 + abs(b).sum())
    np.testing.assert_array_equal(solution.vjp(d).scores, gradients.scores)
    np.testing.assert_array_equal(graph.vjp(d).scores, gradients.scores)
    # and where Algorithm 1 has converged, they are the same
    solution = graph.solve(
        exact=False, adaptive=False, relaxation=1.0, max_iter=50_000, tol_primal=1e-10, tol_dual=1e-10
    )
    if solution.status == 0:
        np.testing.assert_allclose(solution.vjp(d).scores, gradients.scores, rtol=0, atol=1e-6)


def test_pair_without_a_score():
    """At a score of 0 there is a kink; the slope is the one upwards."""
    rng = np.random.default_rng(1)
    for flips in ([False, False], [True, False], [True, True]):
        graph = sk.FactorGraph()
        u = graph.variable([0.3, 0.6])
        pair = sk.Pair(u, 0.0, negated=flips)
        graph.add(pair)
        d = rng.normal(size=2)
        here = graph.solve()
        got = here.vjp(d)[pair]
        graph.set_scores(pair, np.array(1e-6))
        assert abs(got - d @ (graph.solve().x - here.x) / 1e-6) < 1e-6


# The form of directions and gradients


def chain():
    rng = np.random.default_rng(2)
    graph = sk.FactorGraph()
    u, free = graph.variable(0.3 * rng.normal(size=(4, 3))), graph.variable([-0.5, 0.5, 1.5])
    tags = sk.Sequence(u, 0.3 * rng.normal(size=(3, 3)))
    graph.add(tags)
    graph.add(sk.Budget(u[:, 0], 2))
    return graph, u, free, tags


def test_variables_in_no_factor():
    graph, _, free, _ = chain()
    solution = graph.solve()
    gradients = solution.vjp(np.full(15, 2.0))
    np.testing.assert_array_equal(gradients[free], [0, 2, 0])
    np.testing.assert_array_equal(solution.jvp(np.full(15, 3.0))[free.index], [0, 3, 0])
    alone = sk.FactorGraph()
    v = alone.variable([[0.2, -1.0], [3.0, 0.9]])
    np.testing.assert_array_equal(alone.solve().vjp(np.ones(4))[v], [[1, 0], [0, 1]])


def test_directions_by_view():
    graph, u, free, tags = chain()
    solution = graph.solve()
    rng = np.random.default_rng(3)
    d, e = rng.normal(size=(4, 3)), rng.normal(size=2)
    flat = np.zeros(15)
    flat[u.index] = d
    flat[u[1:3, 0].index] += e
    flat[free.index] += 1.5
    expected = solution.vjp(flat)
    got = solution.vjp({u.T: d.T, u[1:3, 0]: e, free: 1.5})
    np.testing.assert_allclose(got.scores, expected.scores, rtol=0, atol=1e-14)
    np.testing.assert_allclose(got[tags], expected[tags], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(got[u.T], got[u].T)
    np.testing.assert_array_equal(graph.vjp({u: d})[u], solution.vjp({u: d})[u])
    assert got[u].shape == (4, 3) and got[tags].shape == (3, 3) and got.additional_scores.shape == (27,)
    np.testing.assert_allclose(got.additional_scores.reshape(3, 3, 3).sum(axis=0), got[tags], atol=1e-14)
    assert abs(got[tags]).max() > 1e-3
    given_flat = flat.copy()
    solution.vjp(flat)
    np.testing.assert_array_equal(flat, given_flat)


def test_batch():
    graph, u, _, tags = chain()
    rng = np.random.default_rng(5)
    scores, extra = 0.3 * rng.normal(size=(8, 15)), 0.3 * rng.normal(size=(8, 27))
    d, a, b = rng.normal(size=(8, 15)), rng.normal(size=(8, 15)), rng.normal(size=(8, 27))
    batch = graph.solve_batch(scores, extra)
    gradients, moved = batch.vjp(d), batch.jvp(a, b)
    np.testing.assert_array_equal(batch.vjp(d, n_jobs=2).additional_scores, gradients.additional_scores)
    np.testing.assert_array_equal(batch.jvp(a, b, n_jobs=2), moved)
    assert gradients[u].shape == (8, 4, 3) and gradients[tags].shape == (8, 3, 3)
    for i in range(8):
        one = graph.solve_batch(scores[i : i + 1], extra[i])
        np.testing.assert_array_equal(one.vjp(d[i : i + 1]).scores[0], gradients.scores[i])
        np.testing.assert_array_equal(one.vjp(d[i : i + 1])[tags][0], gradients[tags][i])
        np.testing.assert_array_equal(one.jvp(a[i : i + 1], b[i])[0], moved[i])
    inner = (gradients.scores * a).sum(axis=1) + (gradients.additional_scores * b).sum(axis=1)
    np.testing.assert_allclose(inner, (d * moved).sum(axis=1), rtol=0, atol=1e-9)
    np.testing.assert_allclose(batch.jvp(a), batch.jvp(a, np.zeros(27)), rtol=0, atol=0)


def test_users_factor_with_additional_scores():
    """Structures in the box but no 0/1 vectors, additional scores in two dimensions, variables in two."""
    rng = np.random.default_rng(6)
    M, N = np.clip(rng.normal(size=(4, 7)), 0, 1), rng.normal(size=(6, 7))
    scores = 0.3 * rng.normal(size=(2, 3))
    eta = 0.5 * rng.normal(size=4)
    described = ref.Factor("users", {}, np.zeros(4, bool), np.arange(4), M, N, scores.ravel())
    for budget in (None, 1.0):
        factors = [described]
        graph = sk.FactorGraph()
        u = graph.variable(eta.reshape(2, 2))
        users = Enumerated(u, M, N, scores)
        graph.add(users)
        if budget is not None:
            factors = [described, ref.make_factor("knapsack", range(4), costs=np.ones(4), budget=budget)]
            graph.add(as_factor(u.ravel(), factors[1]))
        mu, ps = ref.solve_exact(eta, factors)
        solution = graph.solve()
        np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-9)
        assert abs(solution.fun - ref.objective(eta, factors, mu, ps)) < 1e-9
        d = rng.normal(size=4)
        gradients = solution.vjp({u: d.reshape(2, 2)})
        assert gradients[users].shape == solution[users].shape == (2, 3)
        assert_gradients(gradients, [users], ref.vjp_exact(eta, factors, d))
        local = solution.local(users)
        assert local["x"].shape == (2, 2) and local["weights"].min() > 0
        assert abs(local["weights"].sum() - 1) < 1e-12
        # derivatives leave out structures whose weights are rounding
        np.testing.assert_allclose(local["weights"] @ local["structures"], local["x"].ravel(), atol=1e-10)
        np.testing.assert_allclose(
            local["weights"] @ local["additional"], solution[users].ravel(), atol=1e-10
        )


@given(seeds)
@settings(max_examples=40)
def test_forbidden_scores_have_no_gradient(seed):
    rng = np.random.default_rng(seed)
    eta, factors = random_graph(seed, integer=False)
    eta = np.where(rng.random(len(eta)) < 0.2, -np.inf, eta)
    for f in factors:
        f.scores = np.where(rng.random(len(f.scores)) < 0.2, -np.inf, f.scores)
    finite, allowed = forbid(eta, factors)
    if any(f.M.shape[1] == 0 for f in allowed) or ref.solve_exact(finite, allowed)[0] is None:
        return
    d = rng.normal(size=len(eta))
    graph, _, made = build(eta, factors)
    gradients = graph.solve().vjp(d)
    for_eta, for_factors = ref.vjp_exact(finite, allowed, d)
    low = np.isneginf(eta)
    np.testing.assert_allclose(gradients.scores, np.where(low, 0, for_eta), rtol=0, atol=1e-7)
    for f, h, expected in zip(factors, made, for_factors):
        low = np.isneginf(f.scores)
        np.testing.assert_allclose(np.ravel(gradients[h]), np.where(low, 0, expected), rtol=0, atol=1e-7)
