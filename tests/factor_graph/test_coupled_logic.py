"""Coupled logic factors, where passes stall: solutions against rows that the package does not know."""

import time

import numpy as np
import pytest
import reference_lp_sparsemap as ref
import scipy.sparse as sp
from coupled import Rows, random_graph
from reference_factor_graph import build

import sparsekit as sk
from sparsekit._factor_graph import plan
from sparsekit._factor_graph.solver import finish, interior_point, linear_program
from sparsekit._factor_graph.solver.layout import check_options
from sparsekit._factor_graph.solver.polytope import Polytope
from sparsekit._factor_graph.solver.presolve import presolve

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
    assert max(passes) > plan.MAX_PASSES
    graph = random_graph(0, *SIZES[2])[0]
    assert graph.map().nit > plan.first_passes(graph._plan(), check_options({}, False))


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


@pytest.mark.parametrize("seed", range(6))
def test_forbidden(seed):
    """Scores of -inf are variables that are 0: the same solution, and the same proof."""
    graph, u, scores, factors = random_graph(seed, 60, 70, 1.0, 0.3)
    solution, found, rows = graph.solve(), graph.map(), Rows(scores, factors)
    assert solution.status == 0 and found.status == 0
    off = scores == -np.inf
    assert off.any() and not solution[u][off].any() and not found[u][off].any()
    assert rows.stationarity(solution[u]) < 1e-8
    z = rows.complete(found[u])
    assert rows.violation(z) < 1e-8
    assert abs(rows.linear @ z - rows.best()) < 1e-8 * np.abs(rows.linear).sum()


def test_forbidden_graphs_are_finished():
    """Passes alone do not end all of those; a direction moves nothing that is forbidden."""
    rng, checked = np.random.default_rng(0), 0
    for seed in range(2):
        graph, u, scores, _ = random_graph(seed, 120, 150, 1.0, 0.3)
        solution = graph.solve()
        assert solution.status == 0
        checked += solution.nit > plan.MAX_PASSES
        gradient = solution.vjp({u: rng.normal(size=len(scores))})[u]
        assert np.abs(gradient[scores == -np.inf]).max() < 1e-10
    assert checked


def test_weak_with_strong_scores():
    """They leave an interior point too few digits: the active set is corrected at the end."""
    corrected = interior_point._corrected
    saved = []

    def spy(scores, p, best, *args):
        point = corrected(scores, p, best, *args)
        saved.append(best.residual > 1e-9 > point.residual)
        return point

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interior_point, "_corrected", spy)
        for seed, n in ((5, 150), (1, 100)):
            rng = np.random.default_rng(seed)
            _, _, scores, factors = random_graph(seed, n, n)
            scores *= rng.choice([1e-3, 1e3], n)
            for f in factors:
                f.scores = f.scores * rng.choice([1e-3, 1e3])
            graph, u, _ = build(scores, factors)
            solution = graph.solve()
            assert solution.status == 0
            assert Rows(scores, factors).stationarity(solution[u]) < 1e-8
    assert any(saved)


def test_linear_programs_without_the_private_module(monkeypatch):
    """`milp` finds what HiGHS finds where it is asked directly, where SciPy has it in another module."""
    if linear_program._core() is None:
        pytest.skip("SciPy has HiGHS in another module")
    graphs = [random_graph(seed, 60, 80)[0] for seed in range(3)]
    chain = sk.FactorGraph()
    v = chain.variable(np.random.default_rng(0).normal(size=1502))
    chain.add(sk.Imply(v[np.stack([np.arange(1501), np.arange(1, 1502)], axis=1)]))
    graphs.append(chain)
    found = [graph.map().fun for graph in graphs]
    monkeypatch.setattr(linear_program, "_core", lambda: None)
    np.testing.assert_allclose([graph.map().fun for graph in graphs], found, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_derivatives(scale):
    """Where the first passes did not end, the kernels' Jacobian is that of the solution."""
    rng = np.random.default_rng(1)
    checked = 0
    for seed in range(2):
        graph, u, scores, factors = random_graph(seed, 200, 250, scale)
        solution = graph.solve()
        if solution.nit <= plan.MAX_PASSES:
            continue
        to, step = rng.normal(size=len(scores)), rng.normal(size=len(scores))
        slope = solution.vjp({u: to})[u] @ step
        h = 1e-5 * scale**0.5
        ends = [build(scores + side * h * step, factors) for side in (1, -1)]
        high, low = (to @ g.solve()[v] for g, v, _ in ends)
        np.testing.assert_allclose(slope, (high - low) / (2 * h), atol=1e-5)
        checked += 1
    assert checked


@pytest.mark.parametrize("seed", range(4))
def test_infeasible(seed):
    _, _, scores, factors = random_graph(seed, 40, 40)
    graph, u, _ = build(scores, factors)
    graph.add(sk.Xor(u[:5]))
    graph.add(sk.Budget(u[:5], 2, negated=np.ones(5, dtype=bool)))  # at least three
    assert graph.solve().status == 10
    assert graph.map().status == 10


@pytest.mark.parametrize("scale", SCALES)
def test_chain_of_implications(scale):
    rng = np.random.default_rng(0)
    n = 301
    scores = rng.normal(size=n) * scale
    graph, u, _ = build(scores, [ref.make_factor("imply", [k, k + 1]) for k in range(n - 1)])
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


def test_limits():
    """Passes, Newton steps and simplex iterations count, and a time in the past leaves nothing to do."""
    graph, _, _, _ = random_graph(1, 200, 250)
    short = plan.first_passes(graph._plan(), check_options({}, False))
    for solve, first in ((graph.solve, plan.MAX_PASSES), (graph.map, short)):
        solution = solve(max_iter=first + 1)
        assert solution.nit <= first + 1 and solution.status in (0, 1)
    layout, off = graph._plan(), np.zeros(200, dtype=bool)
    pairs = graph.additional_scores
    given = layout, graph.scores, pairs, off, np.zeros(len(pairs), dtype=bool), 100
    assert finish.marginals(*given, time.perf_counter() - 1.0) is None
    assert finish.assignment(*given[:-1], 10**4, time.perf_counter() - 1.0) is None


@pytest.mark.parametrize(
    ("row", "right", "n_upper", "most", "possible"),
    [
        ([1.0, 1.0], -1.0, 1, [np.inf], False),
        ([1.0, 1.0], -1.0, 1, [0.5], True),  # it may be exceeded, for a price
        ([-1.0, 1.0], -2.0, 1, [np.inf], False),
        ([1.0, 1.0], 3.0, 0, [], False),
        ([1.0, 1.0], -1.0, 0, [], False),
        ([1.0, 1.0], 2.0, 0, [], True),
        ([1.0, 1.0], 2.0, 1, [np.inf], True),
    ],
)
def test_presolve_of_one_row(row, right, n_upper, most, possible):
    """A row out of reach leaves no solution, and one that cannot be exceeded is not kept."""
    zeros, ones = np.zeros(2), np.ones(2)
    rows = sp.csr_array([row])
    entries = np.zeros(2, dtype=int), np.arange(2), np.array(row)
    p = Polytope(rows, np.array([right]), n_upper, np.array(most), zeros, ones, zeros, ones, entries, zeros)
    reduced = presolve(p)
    assert (reduced is not None) == possible
    if possible:
        assert reduced.kept.any() == (right < 0)


@pytest.mark.parametrize("seed", [16, 45, 59, 90])
def test_map_of_scores_that_nearly_tie(seed):
    """Proximal steps for scores of 1e-7 and pairs of 1e-3: rounding is no solution, up to 2.7 % short."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 25))
    scores = 1e-7 * rng.normal(size=n)
    factors = [
        ref.make_factor("pair", rng.choice(n, 2, replace=False), [1e-3 * rng.normal()]) for _ in range(3 * n)
    ]
    graph = build(scores, factors)[0]
    found, best = graph.map(), Rows(scores, factors).best()
    assert found.status == 0 and found.optimality < 1e-6
    assert found.fun > best - 1e-5 * abs(best)


def test_status_says_what_ended_a_solve(monkeypatch):
    """By name, also where a general solver found nothing."""
    easy, hard = random_graph(0, 6, 4)[0], random_graph(1, 200, 250)[0]
    assert easy.solve().solver == easy.map().solver == "ADMM"
    assert hard.solve().solver == "interior point" and hard.map().solver == "HiGHS"
    assert hard.solve_batch(np.stack([hard.scores, np.zeros(200)])).solver[0] == "interior point"
    monkeypatch.setattr(finish, "marginals", lambda *args: None)
    assert hard.solve(max_iter=501).solver == "ADMM after interior point"


@pytest.mark.parametrize("score", [-1e10, 1e10])
def test_map_of_other_variables_where_a_forced_one_has_a_huge_score(score):
    rng = np.random.default_rng(0)
    graph = sk.FactorGraph()
    u = graph.variable(np.append(score, rng.normal(size=199)))
    if score < 0:
        graph.add(sk.Xor(u[:1]))
    else:
        graph.add(sk.Budget(u[:1], 0))
    for _ in range(250):
        graph.add(sk.AtMostOne(u[rng.choice(np.arange(1, 200), 3, replace=False)]))
    huge = graph.map()
    graph.set_scores(u, np.append(0.0, graph.scores[1:]))
    known = graph.map()
    assert huge.success and known.success
    np.testing.assert_array_equal(huge[u], known[u])
