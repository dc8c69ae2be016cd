"""LP-SparseMAP on a GPU: kernels against those of the CPU and exact solutions, graphs given CuPy scores."""

from dataclasses import asdict

import numpy as np
import pytest
import reference_lp_graphs as graphs
import reference_lp_sparsemap as ref
from both_sides import Both
from reference_factor_graph import LOGICAL, build, random_graph

import sparsekit as sk
from sparsekit._factor_graph.solver.layout import GraphOptions
from sparsekit._solver.outcome import INFEASIBLE
from sparsekit.gpu.factor_graph import _factor_graph as on_gpu

CLOSED = [*LOGICAL, "budget", "knapsack", "pair"]
REPORTED = ("status", "n_iter", "n_newton")


def graph_with(kind, seed):
    """A random graph that has this kind and others, over few variables that they share."""
    rng = np.random.default_rng(seed)
    eta, factors = graphs.random_graph(rng, 6, 5, kinds=["pair", "or", "knapsack"], feasible=True)
    _, more = graphs.random_graph(rng, 6, 2, kinds=[kind], feasible=True)
    return build(eta, [*factors, *more])[0]


@pytest.mark.parametrize("kind", CLOSED)
def test_kernels_like_those_of_the_cpu(cupy, kind):
    passes, newton = 0, 0
    for seed in (1, 2):
        both = Both(cupy, graph_with(kind, seed), 3).draw(seed)
        newton += both.solve().compare(passes=30)["n_newton"].sum()
        both.compare_derivatives(seed)
        report = both.solve(exact=False, max_iter=12, step_size=0.5).compare()
        both.compare_derivatives(seed)
        passes += report["n_iter"].sum()
        both.solve(quadratic=False, tol_primal=1e-9).compare(atol=1e-7, passes=30)
    assert passes > 12 and newton > 0


@pytest.mark.parametrize("kind", CLOSED)
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_derivatives_at_tied_scores(cupy, kind, levels, monkeypatch):
    """All-zero scores, and scores of few values, alone and with other factors."""
    if levels == 2:  # derivatives work at the state itself
        monkeypatch.setattr(on_gpu, "shared_bytes", lambda: 0)
    rng = np.random.default_rng(levels)
    for kinds, n in (([kind], 2), ([kind, "pair"], 4)):
        _, factors = graphs.random_graph(rng, 6, n, kinds=kinds, feasible=True)
        both = Both(cupy, build(np.zeros(6), factors)[0], 4).tie(n, levels).solve()
        both.compare(passes=30)
        for seed in (0, 1):  # what the first leaves is a start for none
            both.compare_derivatives(seed)


@pytest.mark.parametrize(
    "options",
    [
        {"exact": False, "adaptive": False, "relaxation": 1.0, "max_iter": 7},
        {"exact": False, "quadratic": False, "max_iter": 300},
        {"exact": True, "adaptive": False, "relaxation": 1.8, "step_size": 0.2},
        {"exact": True, "max_iter": 9},
    ],
)
def test_options_and_warm_starts(cupy, options):
    both = Both(cupy, graph_with("xor", 3), 3).draw(3)
    both.solve(**options).compare(passes=30 if options["exact"] else 0)
    first = both.gpu.report()["n_iter"].get()
    # from the same scores, and from others
    both.solve(warm=True, **options).compare(atol=1e-7, passes=30)
    assert (both.gpu.report()["n_iter"].get() <= first + 2).all()
    eta = np.linspace(-1, 1, 3 * both.layout.n_variables).reshape(3, -1)
    both.set_scores(eta, np.zeros((3, both.layout.n_additional)))
    both.solve(warm=True, **options).compare(atol=1e-7, passes=30)


@pytest.mark.parametrize("seed", range(4))
def test_marginals_are_the_exact_ones(cupy, seed):
    eta, factors = random_graph(seed, kinds=CLOSED, n_variables=7)
    graph = build(eta, factors)[0]
    found = graph.solve_batch(cupy.asarray(np.stack([eta, -eta, 2 * eta])))
    assert found.success.get().all()
    for row, scale in zip(found.x.get(), (1, -1, 2)):
        np.testing.assert_allclose(row, ref.solve_exact(scale * eta, factors)[0], rtol=0, atol=1e-7)


def long_graph(rows=3, columns=30):
    """Factors of many variables, at which warps work, and several warps' slots."""
    graph = sk.FactorGraph()
    u, out = graph.variable((rows, columns)), graph.variable((rows,))
    graph.add(sk.Budget(u, 4))
    graph.add(sk.OrOut([*(u[i] for i in range(1)), out[:1]]))
    graph.add(sk.AndOut([u[1, 3:], out[1:2]]))
    graph.add(sk.Knapsack(u.ravel(), np.linspace(0.5, 2.0, rows * columns), 7.0))
    graph.add(sk.Pair(u[:2].T, np.linspace(-1, 1, columns), negated=[True, False]))
    return graph


def test_factors_of_many_variables(cupy):
    both = Both(cupy, long_graph(), 3)
    assert on_gpu.count_threads(both.gpu.plan.n_slot) > 32
    assert both.gpu.plan.arrays[0].get()[7] == 32
    both.draw(0).solve().compare(passes=30)
    both.compare_derivatives(0)
    both.solve(quadratic=False, tol_primal=1e-9).compare(atol=1e-7, passes=30)
    both.solve(exact=False, max_iter=20).compare()


def test_states_in_global_memory_give_the_same_bits(cupy, monkeypatch):
    both = Both(cupy, graph_with("or_out", 4), 3).draw(4)
    assert both.gpu.plan.n_shared == both.gpu.plan.stride
    both.solve()
    mu, l = both.gpu.marginals().get(), both.gpu._part("l")[1].get()
    monkeypatch.setattr(on_gpu, "shared_bytes", lambda: 0)
    assert both.gpu.plan.n_shared == 0
    both.solve().compare(passes=30)
    both.compare_derivatives(4)
    np.testing.assert_array_equal(both.gpu.marginals().get(), mu)
    np.testing.assert_array_equal(both.gpu._part("l")[1].get(), l)


@pytest.mark.parametrize("graph", [graph_with("knapsack", 5), long_graph(2, 26)], ids=["short", "long"])
def test_order_of_threads_is_of_no_account(cupy, graph):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a device takes its own order; the emulation is needed to choose one")
    found = []
    try:
        for seed in (0, 1, 2, 7):
            cupy.emulation.seed(seed)
            both = Both(cupy, graph, 2).draw(5).solve()
            d, e = both.gpu.block * 0 + 1.0, cupy.ones((2, both.layout.n_additional))
            moved = both.gpu.jvp(cupy.ascontiguousarray(d[:, : both.layout.n_variables]), e)
            found.append([both.gpu.marginals().get(), both.gpu._part("l")[0].get(), moved.get()])
    finally:
        cupy.emulation.seed(0)
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


def infeasible():
    graph = sk.FactorGraph()
    u = graph.variable((5,))
    graph.add(sk.Xor(u[:3]))
    graph.add(sk.Or(u[1:4]))
    graph.add(sk.Budget(u[2:], 1))
    graph.add(sk.OrOut(u[[0, 1, 4]]))
    graph.add(sk.Pair(u[[3, 0]], -0.5, negated=[True, False]))
    return graph


def test_what_is_forbidden(cupy):
    graph = infeasible()
    low = -np.inf
    scores = np.array(
        [
            [0.2, 0.4, 0.1, 0.3, 0.5],
            [low, 0.4, 0.1, 0.3, 0.5],
            [low, low, low, 0.3, 0.5],
            [0.1, low, low, low, 0.5],
        ]
    )
    cpu, gpu = graph.solve_batch(scores), graph.solve_batch(cupy.asarray(scores))
    assert set(cpu.status) == {0, INFEASIBLE}
    np.testing.assert_array_equal(gpu.status.get(), cpu.status)
    np.testing.assert_allclose(gpu.nit.get(), cpu.nit, rtol=0, atol=30)
    np.testing.assert_allclose(gpu.x.get(), cpu.x, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="no assignment"):
        gpu.vjp(cupy.ones((4, 5)))


def test_factors_in_conflict_are_found_infeasible(cupy):
    """The proof by a separating direction, with every kind of factor in it."""
    for long in (4, 40):
        graph = sk.FactorGraph()
        u = graph.variable((long,))
        graph.add(sk.Budget(u, long // 2, exactly=True))
        graph.add(sk.Knapsack(u, np.ones(long), long // 2 - 0.5))
        graph.add(sk.OrOut(u))
        graph.add(sk.Pair(u[:2], 0.5, negated=[True, False]))
        both = Both(cupy, graph, 2).draw(1).solve(step_size=0.5)
        assert (both.cpu.report()["status"] == INFEASIBLE).all()
        for name in REPORTED:
            np.testing.assert_array_equal(both.gpu.report()[name].get(), both.cpu.report()[name])


def matching(cupy=None):
    graph = sk.FactorGraph()
    scores = np.random.default_rng(0).normal(size=(4, 4))
    u = graph.variable(scores if cupy is None else cupy.asarray(scores))
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    pair = sk.Pair([u[0, 0], u[1, 1]], 0.4)
    graph.add(pair)
    return graph, u, pair


def test_a_graph_with_scores_on_the_device(cupy):
    (cpu, v, its_pair), (gpu, u, pair) = matching(), matching(cupy)
    ours, theirs = gpu.solve(), cpu.solve()
    assert isinstance(ours.x, cupy.ndarray) and ours.success is True and isinstance(ours.optimality, float)
    np.testing.assert_allclose(ours[u].get(), theirs[v], atol=1e-12)
    np.testing.assert_allclose(ours[pair].get(), theirs[its_pair], atol=1e-12)
    np.testing.assert_allclose(ours.local(pair)["x"].get(), theirs.local(its_pair)["x"], atol=1e-12)
    assert ours.fun == pytest.approx(theirs.fun, abs=1e-12)
    d = np.arange(16.0).reshape(4, 4)
    got, wanted = gpu.vjp({u: cupy.asarray(d)}), cpu.vjp({v: d})
    assert isinstance(got[u], cupy.ndarray)
    np.testing.assert_allclose(got[u].get(), wanted[v], atol=1e-10)
    np.testing.assert_allclose(got[pair].get(), wanted[its_pair], atol=1e-10)
    np.testing.assert_allclose(ours.jvp(cupy.asarray(d.ravel())).get(), theirs.jvp(d.ravel()), atol=1e-10)
    np.testing.assert_allclose(gpu.map(warm_start=True).x.get(), cpu.map(warm_start=True).x, atol=1e-8)
    # what another GPU's plan left behind is no start
    warm, plans = gpu.solve(), gpu._layout._plans.made
    (device,) = plans.keys() - {None}  # which is main memory
    plans[device + 1] = plans.pop(device)
    assert gpu.solve(warm_start=True)._run is not warm._run
    several = sk.lp_sparsemap([gpu, matching(cupy)[0]])
    np.testing.assert_allclose(several[1].x.get(), theirs.x, atol=1e-12)


def test_batches(cupy):
    graph, u, pair = matching()
    rng = np.random.default_rng(1)
    eta, add = rng.normal(size=(5, 16)), rng.normal(size=(5, 1))
    cpu, gpu = graph.solve_batch(eta, add), sk.lp_sparsemap(graph, cupy.asarray(eta), cupy.asarray(add))
    assert isinstance(gpu.x, cupy.ndarray) and gpu.x.dtype == np.float64
    np.testing.assert_allclose(gpu[u].get(), cpu[u], atol=1e-12)
    np.testing.assert_allclose(gpu[pair].get(), cpu[pair], atol=1e-12)
    d = rng.normal(size=(5, 16))
    ours, theirs = gpu.vjp(cupy.asarray(d)), cpu.vjp(d)
    np.testing.assert_allclose(ours[u].get(), theirs[u], atol=1e-10)
    np.testing.assert_allclose(ours[pair].get(), theirs[pair], atol=1e-10)
    np.testing.assert_allclose(gpu.jvp(cupy.asarray(d), cupy.asarray(add)).get(), cpu.jvp(d, add), atol=1e-10)
    # the factors' own additional scores; float32 in, float32 out; the plan is made once
    single = graph.solve_batch(cupy.asarray(eta, dtype=np.float32).reshape(5, 4, 4))
    assert single.x.dtype == np.float32 and single._run.states.plan is gpu._run.states.plan
    np.testing.assert_allclose(single.x.get(), graph.solve_batch(eta).x, atol=1e-5)
    assert graph.solve_batch(cupy.zeros((0, 16))).x.shape == (0, 16)


def test_one_launch_a_solve(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the emulation counts launches")
    both = Both(cupy, graph_with("xor", 3), 3).draw(3)
    both.solve()
    before = dict(cupy.emulation.counts)
    on_gpu.solve([both.gpu], asdict(GraphOptions()), False)
    assert cupy.emulation.counts["launches"] == before["launches"] + 1
    assert cupy.emulation.counts["syncs"] == before["syncs"]


def test_variables_in_no_factor(cupy):
    graph = sk.FactorGraph()
    u = graph.variable((4,))
    eta = np.array([[-1.0, 0.3, 0.6, 1.5], [0.2, 0.8, 2.0, 0.5]])
    np.testing.assert_allclose(graph.solve_batch(cupy.asarray(eta)).x.get(), np.clip(eta, 0, 1))
    alone = sk.FactorGraph()
    alone.variable(cupy.asarray(eta[0]))
    for exact in (True, False):
        np.testing.assert_array_equal(alone.map(exact=exact).x.get(), eta[0] > 0)
    graph.add(sk.Xor(u[:2]))
    graph.add(sk.Or(u[1:3]))
    cpu, gpu = graph.solve_batch(eta), graph.solve_batch(cupy.asarray(eta))
    np.testing.assert_allclose(gpu.x.get(), cpu.x, atol=1e-12)
    d = np.ones((2, 4))
    np.testing.assert_allclose(gpu.vjp(cupy.asarray(d)).scores.get(), cpu.vjp(d).scores, atol=1e-12)


def test_mixtures_are_refused(cupy):
    graph, _, _ = matching()
    eta = np.zeros((2, 16))
    with pytest.raises(TypeError, match=r"cupy\.asarray\(additional_scores\)"):
        graph.solve_batch(cupy.asarray(eta), np.zeros((2, 1)))
    with pytest.raises(TypeError, match="direction is on the GPU"):
        graph.solve_batch(eta).vjp(cupy.asarray(eta))
    there, _, _ = matching(cupy)
    with pytest.raises(TypeError, match=r"cupy\.asarray\(scores\)"):
        there.variable([0.5])
    with pytest.raises(TypeError, match=r"graphs\[1\] is on the GPU"):
        sk.lp_sparsemap([graph, there])


@pytest.mark.parametrize(
    "factor",
    [
        lambda u: sk.Dense([u[:2], u[2:]], np.zeros((2, 2))),
        lambda u: sk.Sequence(u.reshape(2, 2)),
        lambda u: sk.Matching(u.reshape(2, 2)),
        lambda u: sk.Factor(u),
    ],
)
def test_factors_with_an_oracle_are_refused(cupy, factor):
    graph = sk.FactorGraph()
    graph.add(factor(graph.variable((4,))))
    with pytest.raises(TypeError, match=r"(Dense|Sequence|Matching|Factor).*cupy\.asnumpy"):
        graph.solve_batch(cupy.zeros((1, 4)))


def test_a_kernel_reads_no_clock(cupy):
    graph = sk.FactorGraph()
    graph.add(sk.Xor(graph.variable((3,))))
    with pytest.raises(ValueError, match="max_time is for graphs in main memory"):
        graph.solve_batch(cupy.zeros((2, 3)), max_time=1.0)
    assert (cupy.asnumpy(graph.solve_batch(cupy.zeros((2, 3)), max_time=None).status) == 0).all()
