"""Structures coupled with logic, where passes stall: solutions against enumeration with an exact QP."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from coupled import random_factors
from reference_factor_graph import build, forbid

import sparsekit as sk
from sparsekit._factor_graph import plan
from sparsekit._factor_graph.solver import finish
from sparsekit._factor_graph.solver.layout import GraphOptions
from sparsekit._factor_graph.solver.linear_program import best

SHORT = ("sequence", 6, 8, {"T": 3, "K": 2})
# kind, number of variables, number of additional scores and parameters of the structures of a graph
KINDS = {
    "sequence": [("sequence", 12, 27, {"T": 4, "K": 3})],
    "dense": [("dense", 9, 27, {"sizes": [3, 3, 3]})],
    "two sequences": [SHORT, SHORT],
    "matching 4 x 4": [("matching", 16, 0, {"m": 4, "n": 4})],
    "matching 3 x 5": [("matching", 15, 0, {"m": 3, "n": 5})],
    "matching 5 x 3": [("matching", 15, 0, {"m": 5, "n": 3})],
    "tree": [("dep_tree", 16, 0, {"n": 4, "projective": False, "single_root": False})],
    "single root": [("dep_tree", 16, 0, {"n": 4, "projective": False, "single_root": True})],
}


def problem(kind, seed, scale, forbidden=0.0, extra=6, m=12):
    """A graph of structures and m logic factors over their variables and `extra` others, and what it is of.

    Some assignment satisfies all; a share of what it leaves off is forbidden.
    """
    rng = np.random.default_rng(seed)
    factors, truth = [], np.zeros(0)
    for name, d, scored, params in KINDS[kind]:
        f = ref.make_factor(name, len(truth) + np.arange(d), scale * rng.normal(size=scored), **params)
        y = rng.integers(f.M.shape[1])
        f.scores[(rng.random(scored) < forbidden) & (f.N[:, y] == 0)] = -np.inf
        truth = np.r_[truth, f.M[:, y]]
        factors.append(f)
    truth = np.r_[truth, rng.random(extra) < 0.5].astype(bool)
    scores = rng.normal(size=len(truth)) * scale
    scores[~truth & (rng.random(len(truth)) < forbidden)] = -np.inf
    factors += random_factors(rng, truth, m, scale)
    graph, u, made = build(scores, factors)
    return graph, u, made[len(KINDS[kind]) - 1], scores, factors


@pytest.fixture
def at_once(monkeypatch):
    """A general solver takes over after one pass; what it finds, marginals first."""
    found = []

    def spy(solve):
        def spied(*args):
            found.append(solve(*args))
            return found[-1]

        return spied

    monkeypatch.setattr(plan, "first_passes", lambda layout, options: 1)
    for name in ("marginals", "assignment"):
        monkeypatch.setattr(finish, name, spy(getattr(finish, name)))
    return found


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_marginals(at_once, kind, scale):
    for seed in range(3):
        graph, u, _, scores, factors = problem(kind, seed, scale)
        solution = graph.solve()
        assert solution.status == 0, solution.message
        mu, _ = ref.solve_exact(scores, factors)
        np.testing.assert_allclose(solution[u], mu, rtol=0, atol=1e-7)
    # passes would have ended these graphs as well
    assert at_once and None not in at_once
    np.testing.assert_allclose(at_once[-1][0], solution[u], atol=1e-7)


@pytest.mark.parametrize("scale", [0.1, 100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_linear_programs(at_once, kind, scale):
    """The value, and structures whose mixture it is."""
    for seed in range(3):
        graph, u, factor, scores, factors = problem(kind, seed, scale)
        found = graph.map()
        assert found.status == 0, found.message
        size = np.abs(scores).sum() + sum(np.abs(f.scores).sum() for f in factors)
        assert abs(found.fun - ref.solve_exact(scores, factors, quad=0.0)) < 1e-8 * size
        assert at_once and None not in at_once
        local = found.local(factor)
        assert abs(local["weights"].sum() - 1.0) < 1e-9 and local["weights"].min() > 0
        np.testing.assert_allclose(local["x"], found[u][factor.index[0]].reshape(local["x"].shape), atol=1e-8)
        np.testing.assert_allclose(local["weights"] @ local["structures"], local["x"].ravel(), atol=1e-8)
        if factor.n_additional:
            np.testing.assert_allclose(
                local["weights"] @ local["additional"], found[factor].ravel(), atol=1e-8
            )


@pytest.mark.parametrize("kind", ["sequence", "dense"])
def test_forbidden(at_once, kind):
    for seed in range(4):
        graph, u, _, scores, factors = problem(kind, seed, 1.0, 0.2)
        off = scores == -np.inf
        solution, found = graph.solve(), graph.map()
        assert off.any() or np.isinf(graph.additional_scores).any()
        assert solution.status == 0 and found.status == 0
        assert not solution[u][off].any() and not found[u][off].any()
        finite, allowed = forbid(scores, factors)
        mu, _ = ref.solve_exact(finite, allowed)
        np.testing.assert_allclose(solution[u], mu, rtol=0, atol=1e-7)
        assert abs(found.fun - ref.solve_exact(finite, allowed, quad=0.0)) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(at_once, kind):
    """After a general solver the kernels' Jacobian is that of the solution."""
    rng = np.random.default_rng(0)
    graph, u, _, scores, _ = problem(kind, 1, 1.0)
    solution = graph.solve()
    to, step, h = rng.normal(size=len(scores)), rng.normal(size=len(scores)), 1e-6
    slope = solution.vjp({u: to})[u] @ step
    ends = []
    for side in (1, -1):
        graph.set_scores(u, scores + side * h * step)
        ends.append(to @ graph.solve()[u])
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), atol=1e-4)


def test_such_graphs_are_finished():
    """The first passes of sequences, matchings and tables leave graphs open which then converge."""
    for kind, seeds in (("sequence", 6), ("dense", 6), ("matching 4 x 4", 6)):
        solutions = [problem(kind, seed, 1e4, extra=30, m=60)[0] for seed in range(seeds)]
        first = [plan.first_passes(g._plan(), GraphOptions()) for g in solutions]
        solved = [g.solve() for g in solutions]
        assert all(s.status == 0 for s in solved)
        assert any(s.nit > least for s, least in zip(solved, first)), kind
        assert all(g.map().status == 0 for g in solutions)


def test_a_factor_that_shares_nothing_is_left_to_its_own_solver():
    graph = sk.FactorGraph()
    u = graph.variable((4, 3))
    graph.add(sk.Sequence(u))
    options = GraphOptions()
    assert plan.plan_of(graph._plan(), options).finisher is None
    graph.add(sk.Xor(u[:, 0]))
    assert plan.plan_of(graph._plan(), options).finisher == "interior point"
    assert plan.plan_of(graph._plan(), GraphOptions(quadratic=False)).finisher == "HiGHS"
    assert plan.plan_of(graph._plan(), options, on_device=True).finisher is None


def test_tables_whose_mixtures_tie(at_once):
    """Dependent rows, and columns without a square: neither shift may drown in the other."""
    rng, n, K = np.random.default_rng(3), 12, 4
    for _ in range(3):
        graph = sk.FactorGraph()
        u = graph.variable(100.0 * rng.normal(size=(n, K)))
        for k in range(n):
            graph.add(sk.Dense([u[(k + j) % n] for j in range(3)], 100.0 * rng.normal(size=(K, K, K))))
        graph.add(sk.Budget(u[:, 0], 2))
        graph.add(sk.Imply(u[np.arange(6), np.arange(6) % K]))
        solution = graph.solve()
        assert solution.status == 0
    assert None not in at_once
    np.testing.assert_allclose(at_once[-1][0], solution[u].ravel(), atol=1e-7)


def test_infeasible(at_once):
    """The logic leaves a transition alone that is forbidden."""
    graph = sk.FactorGraph()
    u = graph.variable(np.zeros((3, 2)))
    graph.add(sk.Sequence(u, [[0.0, -np.inf], [-np.inf, 0.0]]))
    graph.add(sk.Xor(u[0, :1]))
    graph.add(sk.Xor(u[1, 1:]))
    assert graph.solve().status == 10
    assert graph.map().status == 10


@pytest.mark.parametrize("scale", [10.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", ["pairs", "assignment"])
def test_strong_scores_take_few_passes(kind, scale):
    """Multipliers have as far to go as scores are large, and so have the first steps."""
    rng = np.random.default_rng(0)
    graph = sk.FactorGraph()
    if kind == "pairs":
        u = graph.variable(scale * rng.normal(size=30))
        index = np.stack(np.triu_indices(30, 1), axis=1)
        graph.add(sk.Pair(u[index], scale * rng.normal(size=len(index))))
    else:
        u = graph.variable(scale * rng.normal(size=(15, 15)))
        graph.add(sk.Xor(u))
        graph.add(sk.AtMostOne(u.T))
    solution = graph.solve()
    assert solution.status == 0 and solution.nit < 200
    # whoever names a step for Algorithm 1 alone gets it
    assert graph.solve(exact=False, adaptive=False, step_size=3.0, max_iter=5).step_size == 3.0


def sequence_with_rules(T, K, m):
    """A sequence, and m of each of two rules between its tags, which all tags 0 satisfy."""
    rng = np.random.default_rng(0)
    graph = sk.FactorGraph()
    u = graph.variable(rng.normal(size=(T, K)))
    graph.add(sk.Sequence(u, rng.normal(size=(T - 1, K, K))))
    for _ in range(m):
        index = rng.choice(T, 3, replace=False)
        graph.add(sk.Or(u[index, rng.integers(K, size=3) * (np.arange(3) > 0)]))
        graph.add(sk.AtMostOne(u[rng.choice(T, 4, replace=False), rng.integers(1, K, 4)]))
    return graph


def test_few_passes_have_flows(monkeypatch):
    graph = sequence_with_rules(40, 3, 80)
    solution = graph.solve()
    assert solution.success and solution.solver == "interior point"
    assert solution.nit < plan.MAX_PASSES
    monkeypatch.setattr(plan, "MAX_FLOWS", plan.MAX_PASSES)
    longer = graph.solve()
    assert longer.nit > plan.MAX_PASSES
    np.testing.assert_allclose(solution.x, longer.x, rtol=0, atol=1e-8)


def test_passes_before_highs():
    """As many as for marginals with few rules and with trees; with many rules a few."""

    def first(graph):
        return plan.first_passes(graph._plan(), GraphOptions(quadratic=False))

    assert first(sequence_with_rules(40, 3, 5)) == plan.MAX_PASSES
    assert first(sequence_with_rules(40, 3, 60)) == plan.RULE_WORK // 420
    assert plan.first_passes(sequence_with_rules(40, 3, 60)._plan(), GraphOptions()) == plan.MAX_PASSES
    tree, pairs = sk.FactorGraph(), sk.FactorGraph()
    u = tree.variable((9, 9))
    tree.add(sk.DepTree(u, projective=False))
    tree.add(sk.AtMostOne(u))
    assert first(tree) == plan.MAX_PASSES
    pairs.add(sk.Pair(pairs.variable((4,))[[[0, 1], [1, 2], [2, 3]]], np.ones(3)))
    assert first(pairs) == plan.MAX_PASSES


def test_rows_are_presolved(monkeypatch):
    """HiGHS gets no variable that rows force to a bound, and contracts chains."""
    given = []
    monkeypatch.setattr(finish, "best", lambda gain, *args: given.append(len(gain)) or best(gain, *args))
    monkeypatch.setattr(plan, "first_passes", lambda layout, options: 1)
    graph, rng = sk.FactorGraph(), np.random.default_rng(0)
    u = graph.variable(np.r_[-np.inf, rng.normal(size=2000)])
    graph.add(sk.Xor(u[:2]))  # the second one is on, and the third one is off
    graph.add(sk.AtMostOne(u[1:3]))
    graph.add(sk.Imply(u[np.stack([np.arange(3, 2000), np.arange(4, 2001)], axis=1)]))
    found = graph.map()
    assert found.success and given == [1998]
    assert found.nit < 5  # a pass is SIMPLEX_STEPS_PER_PASS iterations: 20 without
    assert found[u][:3].tolist() == [0.0, 1.0, 0.0]
    gains = graph.scores[3:]
    assert abs(found[u][3:] @ gains - max(gains[k:].sum() for k in range(1999))) < 1e-9 * np.abs(gains).sum()
