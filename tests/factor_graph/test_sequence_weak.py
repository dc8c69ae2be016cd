"""Sequences of weak scores, which are solved as flows: against the same factor as a user's, which has an
oracle only, and by their own conditions."""

import numpy as np
import pytest

from sparsekit import Budget, Factor, FactorGraph, Pair, Sequence, sparsemax

WEAK = [0.0, 1e-4, 1e-2, 0.1]
SHAPES = [(12, 5), (8, 8), (4, 14)]


class Chain(Factor):
    """What Sequence is, by the best sequence alone."""

    def __init__(self, variables, transitions):
        super().__init__(variables, transitions)

    def maximize(self, scores, additional):
        T, K = scores.shape
        best, back = scores[0], []
        for t in range(1, T):
            total = best[:, None] + additional[t - 1]
            back.append(total.argmax(axis=0))
            best = total.max(axis=0) + scores[t]
        tags = [int(best.argmax())]
        for last in reversed(back):
            tags.append(int(last[tags[-1]]))
        tags = tags[::-1]
        on, arcs = np.zeros((T, K)), np.zeros((T - 1, K, K))
        on[np.arange(T), tags] = 1
        arcs[np.arange(T - 1), tags[:-1], tags[1:]] = 1
        return on, arcs


def solved(scores, transitions, how=Sequence, budgets=(), pairs=(), **options):
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(how(u, transitions))
    for part, limit in budgets:
        graph.add(Budget(u[part], limit))
    for a, b, score in pairs:
        graph.add(Pair([u[a], u[b]], score))
    solution = graph.solve(**options)
    assert solution.success, solution.message
    return graph, u, solution


def has_no_structures(solution, factor=0):
    return len(solution._run.states.structures(0, factor)[0]) == 0


def is_flow(solution, graph, tol=1e-11):
    """Whether the transitions' marginals flow through the tags'."""
    factor = graph.factors[0]
    x = solution.local(factor)["x"]
    flow = solution[factor]
    assert (x >= 0).all() and (flow >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=0, atol=tol)
    np.testing.assert_allclose(flow.sum(axis=2), x[:-1], rtol=0, atol=tol)
    np.testing.assert_allclose(flow.sum(axis=1), x[1:], rtol=0, atol=tol)


def compare(scores, transitions, at_ties=False, seed=0, tol=1e-8, **rest):
    graph, u, got = solved(scores, transitions, **rest)
    _, w, expected = solved(scores, transitions, Chain, max_iter=20000, inner_iter=1000, **rest)
    np.testing.assert_allclose(got[u], expected[w], rtol=0, atol=1e-8)
    np.testing.assert_allclose(got.fun, expected.fun, rtol=1e-9, atol=1e-9)
    is_flow(got, graph)
    rng = np.random.default_rng(seed)
    d, e = rng.standard_normal(scores.shape), rng.standard_normal(transitions.shape).ravel()
    a, b = got.vjp({u: d}), expected.vjp({w: d})
    np.testing.assert_allclose(a[u], b[w], rtol=0, atol=tol)
    if not at_ties:  # else the transitions' derivatives are one choice of many
        first = slice(0, transitions.size)
        np.testing.assert_allclose(a.additional_scores[first], b.additional_scores[first], rtol=0, atol=tol)
        more = np.zeros(len(a.additional_scores) - len(e))
        moves = [s.jvp(d.ravel(), np.append(e, more)) for s in (got, expected)]
        np.testing.assert_allclose(*moves, rtol=0, atol=tol)
    return got


def normal(shape, scale, seed=0):
    rng = np.random.default_rng(seed)
    T, K = shape
    return scale * rng.standard_normal(shape), scale * rng.standard_normal((T - 1, K, K))


@pytest.mark.parametrize("scale", WEAK)
@pytest.mark.parametrize("shape", SHAPES)
def test_as_a_factor_with_an_oracle_only(shape, scale):
    u, c = normal(shape, scale)
    assert has_no_structures(compare(u, c, at_ties=scale == 0)) or scale in (0, 0.1)


@pytest.mark.parametrize("scale", [1e-3, 0.05])
def test_where_scores_tie(scale):
    used = 0
    for seed in range(3):
        u, c = normal((12, 6), scale, seed)
        used += has_no_structures(compare(np.maximum(u, 0), np.maximum(c, 0), at_ties=True))
        rounded = scale * np.round(u / scale), scale * np.round(c / scale)
        used += has_no_structures(compare(*rounded, at_ties=True))
        used += has_no_structures(compare(u, 0 * c, at_ties=True))
        used += has_no_structures(compare(0 * u, c))
    assert used >= 9


@pytest.mark.parametrize("scale", [1.0, 10.0, 1e4])
def test_where_structures_are_few(scale):
    u, c = normal((9, 5), scale)
    assert not has_no_structures(compare(u, c))


def test_many_positions_as_a_flow_is_best_by_its_own_conditions():
    u, c = normal((60, 12), 0.02)
    graph, _, got = solved(u, c)
    assert has_no_structures(got)
    is_flow(got, graph)
    x, flow = got.x.reshape(u.shape), got[graph.factors[0]]
    # no sequence is better than those in use, for scores less the marginals
    on, arcs = Chain.maximize(None, u - x, c)
    best = ((u - x) * on).sum() + (c * arcs).sum()
    assert best - ((u - x) * x).sum() - (c * flow).sum() < 1e-11


def test_derivatives_are_those_of_differences():
    u, c = normal((12, 6), 0.05)
    graph, v, got = solved(u, c)
    assert has_no_structures(got)
    rng = np.random.default_rng(1)
    d, e, f = rng.standard_normal(u.shape), rng.standard_normal(u.shape), rng.standard_normal(c.shape)
    step = 1e-7
    ahead, back = (solved(u + s * e, c + s * f)[2].x.reshape(u.shape) for s in (step, -step))
    grads = got.vjp({v: d})
    expected = (d * (ahead - back)).sum() / (2 * step)
    assert abs((grads[v] * e).sum() + (grads[graph.factors[0]] * f).sum() - expected) < 1e-4
    expected = (ahead - back).ravel() / (2 * step)
    np.testing.assert_allclose(got.jvp(e.ravel(), f.ravel()), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_mixture_is_one_of_sequences(shape):
    graph, u, solution = solved(*normal(shape, 0.02))
    assert has_no_structures(solution)
    found = solution.local(graph.factors[0])
    weights, tables = found["weights"], found["structures"].reshape(-1, *shape)
    flow = solution[graph.factors[0]]
    assert (weights > 0).all() and len(weights) <= flow.size
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-12)
    assert set(np.unique(tables)) == {0.0, 1.0} and (tables.sum(axis=2) == 1).all()
    np.testing.assert_allclose(np.tensordot(weights, tables, 1), solution[u], atol=1e-7)
    np.testing.assert_allclose(weights @ found["additional"], flow.ravel(), atol=1e-7)
    steps = tables[:, :-1, :, None] * tables[:, 1:, None, :]
    np.testing.assert_array_equal(found["additional"].reshape(steps.shape), steps)


@pytest.mark.parametrize("scale", [1e-3, 0.05])
def test_beside_other_factors(scale):
    u, c = normal((14, 7), scale)
    u[:, 0] += 0.3
    rest = dict(budgets=[(np.s_[:, 0], 2), (np.s_[3:6, 1:3], 1)], pairs=[((0, 1), (8, 1), 0.1)])
    # derivatives by many structures keep four to six digits, which depends on the processor
    got = compare(u, c, tol=1e-4, **rest)
    assert has_no_structures(got)
    # what they are a projection of
    d = np.random.default_rng(5).standard_normal(u.size)
    once = got.vjp(d).scores
    np.testing.assert_allclose(got.vjp(once).scores, once, rtol=0, atol=1e-10)
    # and differences, which symmetry makes the same, so short that no face is left
    step = 1e-7 * d.reshape(u.shape)
    (_, v, more), (_, w, less) = solved(u + step, c, **rest), solved(u - step, c, **rest)
    np.testing.assert_allclose((more[v] - less[w]).ravel() / 2e-7, once, rtol=0, atol=1e-4)


def test_two_sequences_that_share_variables():
    u, c = normal((9, 5), 0.02)
    _, d = normal((5, 9), 0.02, 1)
    results = []
    for how in (Sequence, Chain):
        graph = FactorGraph()
        v = graph.variable(u)
        graph.add(how(v, c))
        graph.add(how(v[::2], d[:4, :5, :5]))
        solution = graph.solve(max_iter=20000, inner_iter=1000)
        assert solution.success
        results.append((solution[v], solution.vjp({v: u})[v]))
    for got, expected in zip(*results):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 0.1])
def test_forbidden_tags_and_transitions(scale):
    rng = np.random.default_rng(6)
    u, c = normal((12, 6), scale)
    u[rng.random(u.shape) < 0.2], c[rng.random(c.shape) < 0.4] = -np.inf, -np.inf
    # the first tag is always allowed
    u[:, 0], c[:, 0, 0] = 0.0, 0.0
    got = compare(u, c)
    assert has_no_structures(got)
    assert (got.x[np.isinf(u).ravel()] == 0).all() and (got.additional[np.isinf(c).ravel()] == 0).all()


def test_one_position():
    scores = 1e-4 * np.random.default_rng(7).standard_normal((1, 400))
    graph, u, got = solved(scores, np.zeros((0, 400, 400)))
    assert has_no_structures(got)
    np.testing.assert_allclose(got[u], sparsemax(scores), rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.vjp({u: scores})[u], scores - scores.mean(), rtol=0, atol=1e-12)
    assert len(graph.factors) == 1 and len(got.local(graph.factors[0])["weights"]) == 400


def test_what_positions_have_in_common_changes_nothing():
    u, c = normal((9, 5), 0.01)
    common = 1e6 * np.random.default_rng(8).standard_normal((9, 1))
    moved = u + common
    first = solved(moved - common, c)[2]  # what rounding left of them
    second = solved(moved, c)[2]
    assert has_no_structures(first) and has_no_structures(second)
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-8)


def test_solved_again_from_the_last_solution():
    u, c = normal((12, 6), 0.02)
    graph, v, got = solved(u, c)
    assert has_no_structures(got)
    rng = np.random.default_rng(9)
    for scale in (1e-4, 0.02, 3.0):
        scores = (scale if scale > 1 else 1.0) * u + scale * rng.standard_normal(u.shape)
        graph.set_scores(v, scores)
        again = graph.solve(warm_start=True)
        assert again.success
        np.testing.assert_allclose(again[v], solved(scores, c)[2].x.reshape(u.shape), rtol=0, atol=1e-9)


def test_time_is_kept():
    u, c = normal((300, 40), 1e-3)
    graph = FactorGraph()
    graph.add(Sequence(graph.variable(u), c))
    solution = graph.solve(max_time=0.05)
    assert solution.status == 2 and np.isfinite(solution.x).all()
