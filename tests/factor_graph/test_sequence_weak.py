"""Sequences of weak scores, which are solved as flows: by their own conditions, and against differences."""

import numpy as np
from structure_oracles import ChainOracle

from sparsekit import FactorGraph, Sequence, sparsemax


def normal(shape, scale):
    rng, (T, K) = np.random.default_rng(0), shape
    return scale * rng.standard_normal(shape), scale * rng.standard_normal((T - 1, K, K))


def solved(scores, transitions):
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(Sequence(u, transitions))
    solution = graph.solve()
    assert solution.success, solution.message
    assert len(solution._run.states.structures(0, 0)[0]) == 0
    return graph, u, solution


def test_many_positions_as_a_flow_is_best_by_its_own_conditions():
    u, c = normal((60, 12), 0.02)
    graph, view, found = solved(u, c)
    x, flow = found[view], found[graph.factors[0]]
    assert (x >= 0).all() and (flow >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=0, atol=1e-11)
    np.testing.assert_allclose(flow.sum(axis=2), x[:-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(flow.sum(axis=1), x[1:], rtol=0, atol=1e-11)
    # no sequence is better than those in use, for scores less the marginals
    on, arcs = ChainOracle.maximize(None, u - x, c)
    best = ((u - x) * on).sum() + (c * arcs).sum()
    assert best - ((u - x) * x).sum() - (c * flow).sum() < 1e-11


def test_derivatives_are_those_of_differences():
    u, c = normal((12, 6), 0.05)
    graph, v, found = solved(u, c)
    rng = np.random.default_rng(1)
    d, e, f = rng.standard_normal(u.shape), rng.standard_normal(u.shape), rng.standard_normal(c.shape)
    step = 1e-7
    ahead, back = (solved(u + s * e, c + s * f)[2].x.reshape(u.shape) for s in (step, -step))
    gradients = found.vjp({v: d})
    expected = (d * (ahead - back)).sum() / (2 * step)
    slope = (gradients[v] * e).sum() + (gradients[graph.factors[0]] * f).sum()
    assert abs(slope - expected) < 1e-4
    expected = (ahead - back).ravel() / (2 * step)
    np.testing.assert_allclose(found.jvp(e.ravel(), f.ravel()), expected, rtol=0, atol=1e-4)


def test_one_position():
    scores = 1e-4 * np.random.default_rng(7).standard_normal((1, 400))
    graph, u, found = solved(scores, np.zeros((0, 400, 400)))
    np.testing.assert_allclose(found[u], sparsemax(scores), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.vjp({u: scores})[u], scores - scores.mean(), rtol=0, atol=1e-12)
    assert len(found.local(graph.factors[0])["weights"]) == 400


def test_time_is_kept():
    u, c = normal((300, 40), 1e-3)
    graph = FactorGraph()
    graph.add(Sequence(graph.variable(u), c))
    solution = graph.solve(max_time=0.05)
    assert solution.status == 2 and np.isfinite(solution.x).all()
