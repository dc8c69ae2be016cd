"""Inference over labels on a GPU against the CPU's and exact solutions."""

from dataclasses import asdict

import numpy as np
import pytest
from reference_lp_sparsemap import solve_exact
from test_label_loss import SHARP, USUAL, draw_scores, pair_factors, pair_value, random_labels

from sparsekit import Budget, FactorGraph, Xor
from sparsekit._arrays import thread_arguments
from sparsekit._factor_graph.labels.label_loss import Labels
from sparsekit._factor_graph.solver.layout import GraphOptions
from sparsekit.gpu.factor_graph import _label_graph


def on_both(cupy, labels, eta, plus, minus, options):
    """Marginals of the CPU and the GPU, after a comparison of the rows' exits."""
    mu, statuses = labels.marginals(eta, plus, minus, options)
    ours, exits = labels.marginals(*map(cupy.asarray, (eta, plus, minus)), options)
    assert isinstance(ours, cupy.ndarray) and isinstance(exits, cupy.ndarray)
    np.testing.assert_array_equal(exits.get(), statuses)
    return mu, ours.get()


@pytest.mark.parametrize("quadratic", [True, False], ids=["sparsemap", "map"])
@pytest.mark.parametrize("n_factors", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_marginals(cupy, seed, n_factors, quadratic):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(3, 8))
    labels, plus, minus, logic = random_labels(rng, K, n_factors, integer=seed == 0, both=seed % 2 == 1)
    eta = draw_scores(rng, 4, K, seed == 0)
    mu, found = on_both(cupy, labels, eta, plus, minus, GraphOptions(**(SHARP if quadratic else USUAL)))
    if quadratic:
        np.testing.assert_allclose(found, mu, rtol=0, atol=1e-8)
    factors = logic + pair_factors(labels, plus, minus)
    for row, one in zip(eta, found):
        if quadratic:
            np.testing.assert_allclose(one, solve_exact(row, factors)[0], rtol=0, atol=1e-7)
        else:  # several sets may be best
            value = row @ one + pair_value(labels, plus, minus, one)
            assert value == pytest.approx(solve_exact(row, factors, quad=0), abs=1e-7)


def many_labels(rng, K=80, n_factors=4):
    """Rows of which nearly all, some and no labels are decided beforehand; few pairs with a score."""
    labels, plus, minus, _ = random_labels(rng, K, n_factors, density=0.1)
    keep = rng.random(len(plus)) < 0.6
    eta = rng.normal(size=(9, K)) * np.repeat([3.0, 1.0, 0.2], 3)[:, None] - 0.2
    return labels, eta, plus * keep * 0.3, minus * keep * 0.3


# rows' labels and their graph: in shared memory, one of them, neither
@pytest.mark.parametrize("n_bytes", [48 * 1024, 8 * 500, 8])
@pytest.mark.parametrize("quadratic", [True, False], ids=["sparsemap", "map"])
def test_many_labels_wherever_they_lie(cupy, monkeypatch, n_bytes, quadratic):
    monkeypatch.setattr(_label_graph, "SHARED_ROW", n_bytes)
    given = many_labels(np.random.default_rng(5))
    labels, *arrays = given
    mu, found = on_both(cupy, labels, *arrays, GraphOptions(**(SHARP if quadratic else USUAL)))
    assert not quadratic or np.mean((mu > 0) & (mu < 1)) > 0.2
    np.testing.assert_allclose(found, mu, rtol=0, atol=1e-7)


def test_fewer_blocks_than_rows(cupy, monkeypatch):
    """A block that takes one row after the other leaves nothing behind."""
    labels, *arrays = many_labels(np.random.default_rng(6), K=20)
    options = GraphOptions(**SHARP)
    _, each = on_both(cupy, labels, *arrays, options)
    monkeypatch.setattr(_label_graph, "SPARE", 0)
    mu, found = on_both(cupy, labels, *arrays, options)
    np.testing.assert_array_equal(found, each)
    np.testing.assert_allclose(found, mu, rtol=0, atol=1e-8)


def test_long_factors(cupy):
    """Factors at which warps work."""
    graph = FactorGraph()
    labels = Labels(50, np.column_stack(np.triu_indices(50, 1))[::40], [Xor(graph.variable((50,)))])
    rng = np.random.default_rng(0)
    plus, minus = (np.maximum(sign * rng.normal(size=len(labels.pairs)), 0) for sign in (1, -1))
    mu, found = on_both(cupy, labels, 0.2 * rng.normal(size=(3, 50)), plus, minus, GraphOptions(**SHARP))
    np.testing.assert_allclose(found, mu, rtol=0, atol=1e-8)


def test_order_of_threads_is_of_no_account(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a device takes its own order; the emulation is needed to choose one")
    labels, *arrays = many_labels(np.random.default_rng(7), K=40)
    on_device, found = list(map(cupy.asarray, arrays)), []
    try:
        for seed in (0, 1, 5):
            cupy.emulation.seed(seed)
            mu, _ = labels.marginals(*on_device, GraphOptions(**SHARP))
            high, low = labels.pair_sums(mu, cupy.ones(len(mu)))
            found.append([mu.get(), high.get(), low.get()])
    finally:
        cupy.emulation.seed(0)
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [1, 7, 200])
def test_pair_sums(cupy, n):
    rng = np.random.default_rng(n)
    labels, *_ = random_labels(rng, 6)
    mu = np.clip(rng.normal(size=(n, 6)), 0, 1)
    weight = rng.random(n)
    wanted = labels.pair_sums(mu, weight)
    found = labels.pair_sums(cupy.asarray(mu), cupy.asarray(weight))
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a.get(), b, rtol=1e-13, atol=1e-15)


def test_nothing_to_do(cupy):
    labels = Labels(3, np.zeros((0, 2)))
    options = GraphOptions(**SHARP)
    none = cupy.zeros(0)
    mu, _ = labels.marginals(cupy.asarray([[0.2, -1.0, 2.0]]), none, none, options)
    np.testing.assert_array_equal(mu.get(), [[0.2, 0.0, 1.0]])
    assert labels.marginals(cupy.zeros((0, 3)), none, none, options)[0].shape == (0, 3)
    assert [len(side) for side in labels.pair_sums(mu, cupy.ones(1))] == [0, 0]


def test_infeasible_factors(cupy):
    graph = FactorGraph()
    u = graph.variable((3,))
    labels = Labels(3, [[0, 1]], [Xor(u), Budget(u, 2, exactly=True)])
    score = cupy.ones(1)
    with pytest.raises(ValueError, match="no set of labels satisfies"):
        labels.marginals(cupy.zeros((2, 3)), score, 0 * score, GraphOptions(**SHARP))


def test_one_side_for_all(cupy):
    labels = Labels(3, [[0, 1]])
    with pytest.raises(TypeError, match="Move all to one device"):
        labels.marginals(cupy.zeros((1, 3)), np.ones(1), np.zeros(1), GraphOptions(**SHARP))


def test_live_pairs_and_their_sums(cupy):
    labels, _, plus, minus = many_labels(np.random.default_rng(8), K=12, n_factors=0)
    graph = labels._graph_for(cupy.zeros(0))
    start, other, pair, gain, loss = (
        part.get() for part in graph.live(*(cupy.asarray(np.append(side, 0.0)) for side in (plus, minus)))
    )
    live = (plus > 0) | (minus > 0)
    assert 0 < live.sum() < len(live)
    for j in range(12):
        mine = np.flatnonzero((labels.pairs == j).any(axis=1))
        assert set(pair[start[j] : start[j + 1]]) == set(mine[live[mine]])
        assert set(other[start[j] : start[j + 1]]) == set(labels.pairs[mine[live[mine]]].ravel()) - {j}
        assert gain[j] == pytest.approx(plus[mine].sum()) and loss[j] == pytest.approx(minus[mine].sum())


def test_a_decided_label_decides_its_neighbours(cupy):
    """Label 0 is off by its own score; without what its pairs could give the others, they are off as well."""
    labels = Labels(3, np.array([[0, 1], [0, 2], [1, 2]]), [])
    eta, plus, minus = np.array([[-20.0, -0.2, -0.2]]), np.array([5.0, 5.0, 0.1]), np.zeros(3)
    e, p, m = (cupy.asarray(part) for part in (eta, np.append(plus, 0.0), np.append(minus, 0.0)))
    graph = labels._graph_for(e)
    start, other, pair, *sums = graph.live(p, m)
    mu = cupy.ones_like(e)
    passes = graph.marginals(e, start, other, pair, p, m, *sums, asdict(GraphOptions(**SHARP)), mu)[1]
    assert passes.get().tolist() == [0]
    assert mu.get().tolist() == [[0.0, 0.0, 0.0]]


def test_rows_that_are_decided_take_no_pass(cupy):
    """What is decided beforehand is what the CPU decides: wider bounds would only cost passes."""
    labels, eta, plus, minus = many_labels(np.random.default_rng(5), K=30, n_factors=0)
    eta[:3] = np.where(eta[:3] > 0, 1.0 + plus.sum(), -0.1)
    eta[3:6] *= 20
    options = asdict(GraphOptions(**SHARP))
    passes = []
    for move in (np.asarray, cupy.asarray):
        e, p, m = (move(part) for part in (eta, np.append(plus, 0.0), np.append(minus, 0.0)))
        graph = labels._graph_for(e)
        if move is np.asarray:
            start, other, pair = (labels._pairs[name] for name in ("start", "other", "pair"))
            sums = [np.bincount(labels.pairs.T.ravel(), np.tile(s, 2), minlength=31) for s in (plus, minus)]
        else:
            start, other, pair, *sums = graph.live(p, m)
        threads = thread_arguments(e, 1)
        passes.append(graph.marginals(e, start, other, pair, p, m, *sums, options, 0 * e, *threads)[1])
    cpu, gpu = passes[0], passes[1].get()
    assert 0 < np.count_nonzero(cpu) < len(cpu)
    np.testing.assert_array_equal(gpu > 0, cpu > 0)
    np.testing.assert_allclose(gpu, cpu, rtol=0, atol=30)
