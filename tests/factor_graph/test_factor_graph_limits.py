"""Limits of a solve hold, inside a factor's own problem too, and the status says which one ended it."""

import numpy as np
import pytest

from sparsekit import AtMostOne, Budget, DepTree, Factor, FactorGraph, Matching, Sequence, Xor, lp_sparsemap

WEAK = 1e-2


def weak(name, rng, graph, *, n=14):
    """Variables of a factor with scores so weak that a mixture of very many structures is best."""
    u = graph.variable(WEAK * rng.standard_normal((n, n)))
    graph.add(
        {
            "matching": Matching,
            "sequence": lambda u: Sequence(u, WEAK * rng.standard_normal((n, n))),
            "tree": DepTree,
            "projective": lambda u: DepTree(u, projective=True),
            "single_root": lambda u: DepTree(u, single_root=True),
        }[name](u)
    )
    return u


@pytest.fixture
def rng():
    return np.random.default_rng(0)


NAMES = ["matching", "sequence", "tree", "projective", "single_root"]


class Counted(Factor):
    """The simplex, which counts how often it is asked."""

    calls = 0

    def maximize(self, scores, additional_scores):
        self.calls += 1
        return np.eye(len(scores))[np.argmax(scores)]


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("limits", [dict(max_iter=1, inner_iter=3), dict(max_iter=7, inner_iter=2)])
def test_an_oracle_is_called_so_often_and_no_more(limits, coupled):
    graph = FactorGraph()
    u = graph.variable(np.linspace(0.0, 0.01, 60))
    factor = Counted(u)
    graph.add(factor)
    if coupled:
        graph.add(Budget(u[:20], 1))
    solution = graph.solve(**limits)
    assert solution.status == 1 and not solution.success
    assert solution.nit <= limits["max_iter"]
    assert factor.calls <= limits["max_iter"] * limits["inner_iter"] + 1  # one for the first answer
    np.testing.assert_allclose(solution.local(factor)["x"].sum(), 1.0, atol=1e-12)


def test_one_call_leaves_no_bound(rng):
    graph = FactorGraph()
    weak("tree", rng, graph)
    short = graph.solve(exact=False, max_iter=1, inner_iter=1)
    assert short.status == 1 and short.optimality == np.inf


def test_all_the_calls_that_are_allowed_are_made():
    graph = FactorGraph()
    factor = Counted(graph.variable(np.linspace(0.0, 0.01, 60)))
    graph.add(factor)
    assert graph.solve(max_iter=7, inner_iter=10).success and 60 <= factor.calls <= 71


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_time_ends_a_solve_with_what_it_has(name, coupled, rng):
    """No clock is asserted: time is up at the first reading."""
    graph = FactorGraph()
    u = weak(name, rng, graph, n=30)
    if coupled:
        for j in range(30):
            graph.add(Budget(u[:, j], 2))
    solution = graph.solve(max_time=1e-9)
    assert solution.status == 2 and not solution.success and "max_time" in solution.message
    assert solution.nit <= 200
    x = solution[u]
    assert np.isfinite(x).all() and solution.optimality > 1e-6
    if not coupled:
        np.testing.assert_allclose(x.sum(axis=1), 1.0, atol=1e-12)


def test_time_is_shared_by_the_graphs_of_a_call(rng):
    graph = FactorGraph()
    weak("tree", rng, graph, n=30)
    scores = WEAK * rng.standard_normal((6, 900))
    for n_jobs in (1, 2):
        assert (lp_sparsemap(graph, scores, max_time=1e-9, n_jobs=n_jobs).status == 2).all()
    assert graph.map(max_time=1e9).success


@pytest.mark.parametrize("value", [0, -1.0, np.nan, "1", True])
def test_a_wrong_time_is_named(value):
    graph = FactorGraph()
    graph.add(Budget(graph.variable((3,)), 1))
    with pytest.raises(ValueError, match="max_time must be None or a number > 0"):
        graph.solve(max_time=value)
    assert graph.solve(max_time=None).success and graph.solve(max_time=10).success


def test_newtons_line_search_obeys_max_iter():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph = FactorGraph()
        u = graph.variable(rng.standard_normal((5, 5)))
        graph.add(Matching(u))
        for j in range(5):
            graph.add(Budget(u[:, j], 1))
            graph.add(Budget(u[j, ::2], 1))
        for most in (1, 2, 5, 8, 13):
            assert graph.solve(max_iter=most).nit <= most


@pytest.mark.parametrize("mask", [-1e4, -1e7, -1e9, -1e12, -1e15])
def test_low_finite_scores_act_as_infinite_ones(mask, rng):
    def graph(scores, forbidden, value):
        graph = FactorGraph()
        u = graph.variable(np.where(forbidden, value, scores))
        graph.add(Xor(u))
        graph.add(AtMostOne(u.T))
        return graph

    for _ in range(3):
        scores, forbidden = rng.standard_normal((6, 6)), rng.random((6, 6)) < 0.3
        forbidden[np.arange(6), rng.permutation(6)] = False
        for method in ("map", "solve"):
            found, expected = (
                getattr(graph(scores, forbidden, value), method)() for value in (mask, -np.inf)
            )
            assert found.success
            np.testing.assert_allclose(found.x, expected.x, atol=1e-8)
    one = FactorGraph()
    one.add(AtMostOne(one.variable([0.3, 0.1, mask])))
    np.testing.assert_array_equal(one.map().x, [1.0, 0.0, 0.0])


def test_low_finite_scores_of_several_sizes_are_on_where_they_must_be():
    graph = FactorGraph()
    u, v = graph.variable([-1e4, -1e9, -1e14]), graph.variable([0.3, 0.1, -1e12])
    graph.add(Xor(u))
    graph.add(Xor(v))
    np.testing.assert_array_equal(graph.map().x, [1, 0, 0, 1, 0, 0])
    # a graph of a batch changes no other
    batch = graph.solve_batch([[-1e4, -1e9, -1e14, 0.3, 0.1, -1e12], [0.3, 0.1, -1e9, 0.3, 0.1, -1e9]])
    assert batch.success.all()
    np.testing.assert_allclose(batch.x[:, 3:], [[0.6, 0.4, 0.0]] * 2, atol=1e-9)
    np.testing.assert_allclose(batch.x[:, :3], [[1, 0, 0], [0.6, 0.4, 0.0]], atol=1e-9)
    # what -inf forbids stays infeasible
    graph.set_scores(u, [-np.inf] * 3)
    assert not graph.map().success
