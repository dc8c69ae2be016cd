"""Structures coupled with logic, where passes stall: solutions against all structures, one by one."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from coupled import Rows, build, random_factors
from reference_lp_sparsemap import structures
from scipy.optimize import linprog, nnls

import sparsekit as sk
from sparsekit._factor_graph import plan
from sparsekit._factor_graph.solver import finish
from sparsekit._factor_graph.solver.layout import GraphOptions


def one_hot(picks, size):
    return np.array([np.eye(size)[list(pick)].ravel() for pick in picks])


def sequence(rng, scale, forbidden):
    T, K = 4, 3
    transitions = rng.normal(size=(T - 1, K, K)) * scale
    every, add = (part.T for part in structures("sequence", T=T, K=K))
    truth = rng.integers(len(every))
    transitions[
        (rng.random(transitions.shape) < forbidden) & ~add[truth].astype(bool).reshape(-1, K, K)
    ] = -np.inf
    return (T, K), lambda u: sk.Sequence(u, transitions), every, add, transitions, every[truth]


def dense(rng, scale, forbidden):
    scores = rng.normal(size=(3, 3, 3)) * scale
    every, add = (part.T for part in structures("dense", sizes=(3, 3, 3)))
    truth = rng.integers(len(every))
    off = rng.random(scores.shape) < forbidden
    scores[off & (add[truth].reshape(3, 3, 3) == 0)] = -np.inf
    return (3, 3), lambda u: sk.Dense(list(u), scores), every, add, scores, every[truth]


def without_additional(kind, shape, factor, **params):
    def make(rng, scale, forbidden):
        every, add = (part.T for part in structures(kind, **params))
        return shape, factor, every, add, np.zeros(0), every[rng.integers(len(every))]

    return make


def matching(m, n):
    return without_additional("matching", (m, n), sk.Matching, m=m, n=n)


def tree(single_root):
    factor = partial(sk.DepTree, single_root=single_root)
    return without_additional("dep_tree", (4, 4), factor, n=4, single_root=single_root)


def two_sequences(rng, scale, forbidden):
    """Both as one factor whose structures are all pairs of paths."""
    T, K = 3, 2
    transitions = rng.normal(size=(2, T - 1, K, K)) * scale
    paths = [a + b for a, b in product(product(range(K), repeat=T), repeat=2)]
    add = np.zeros((len(paths), transitions.size))
    for row, path in zip(add, paths):
        for part in range(2):
            for t, (a, b) in enumerate(pairwise(path[part * T : (part + 1) * T])):
                row[((part * (T - 1) + t) * K + a) * K + b] = 1.0
    on = one_hot([paths[rng.integers(len(paths))]], K)[0]

    def factors(u):
        return [sk.Sequence(u[:T], transitions[0]), sk.Sequence(u[T:], transitions[1])]

    return (2 * T, K), factors, one_hot(paths, K), add, transitions, on


KINDS = {
    "sequence": sequence,
    "dense": dense,
    "two sequences": two_sequences,
    "matching 4 x 4": matching(4, 4),
    "matching 3 x 5": matching(3, 5),
    "matching 5 x 3": matching(5, 3),
    "tree": tree(False),
    "single root": tree(True),
}


class Mixed(Rows):
    """Rows of the logic, and a weight for each structure of one factor over the first variables."""

    def __init__(self, scores, factors, structures, gain):
        super().__init__(scores, factors)
        allowed = np.isfinite(gain)
        S, gain = structures[allowed], gain[allowed]
        k, before, d = len(S), self.size, S.shape[1]
        self.linear = np.r_[self.linear, gain]
        self.G = np.block([[self.G, np.zeros((len(self.G), k))], [np.zeros((k, before)), -np.eye(k)]])
        self.h = np.r_[self.h, np.zeros(k)]
        agree = np.hstack([np.eye(d, before), -S.T])
        self.A = np.vstack(
            [np.hstack([self.A, np.zeros((len(self.A), k))]), agree, np.r_[np.zeros(before), np.ones(k)]]
        )
        self.b = np.r_[self.b, np.zeros(d), 1.0]
        self.S, self.k = S, k

    def complete(self, x):
        before = self.A[-1].size - self.k
        whole, self.size = self.size, before
        rows = slice(0, len(self.h) - self.k)
        G, h, A, linear = self.G, self.h, self.A, self.linear
        self.G, self.h, self.linear = G[rows, :before], h[rows], linear[:before]
        z = super().complete(x)
        self.G, self.h, self.A, self.linear, self.size = G, h, A, linear, whole
        mix = np.vstack([self.S.T, np.ones(self.k)])
        to = np.r_[x[: self.S.shape[1]], 1.0]
        near = 1e-9  # rounding of x
        found = linprog(-linear[before:], np.vstack([mix, -mix]), np.r_[to + near, near - to], method="highs")
        assert found.status == 0, found.message
        return np.r_[z, found.x]

    def stationarity(self, x, near=1e-7):
        z = self.complete(x)
        assert self.violation(z) < 1e-7
        slope = self.linear - np.r_[x, np.zeros(len(z) - len(x))]
        active = self.G[self.G @ z > self.h - near]
        size = np.abs(slope).max()
        return nnls(np.vstack([active, self.A, -self.A]).T, slope / size, maxiter=10**5)[1] * size


def problem(kind, seed, scale, forbidden=0.0, extra=6, m=12):
    """A graph of one structure and m logic factors over its variables and `extra` others, and its rows."""
    rng = np.random.default_rng(seed)
    shape, factor, structures, add, additional, truth = KINDS[kind](rng, scale, forbidden)
    whole = np.r_[truth, rng.random(extra) < 0.5].astype(bool)
    scores = rng.normal(size=len(whole)) * scale
    scores[~whole & (rng.random(len(whole)) < forbidden)] = -np.inf
    factors = random_factors(rng, whole, m, scale)
    graph, u = build(scores, factors)
    made = factor(u[: len(truth)].reshape(shape))
    for one in made if isinstance(made, list) else [made]:
        graph.add(one)
    flat = additional.ravel()
    gain = np.where(add > 0, np.where(np.isinf(flat), -np.inf, flat), 0.0).sum(axis=1)
    return graph, u, made, Mixed(scores, factors, structures, gain)


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
        graph, u, _, rows = problem(kind, seed, scale)
        solution = graph.solve()
        assert solution.status == 0, solution.message
        assert rows.stationarity(solution[u]) < 1e-6 * max(1.0, scale)
    # passes would have ended these graphs as well
    assert at_once and None not in at_once
    np.testing.assert_allclose(at_once[-1][0], solution[u], atol=1e-7)


@pytest.mark.parametrize("scale", [0.1, 100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_linear_programs(at_once, kind, scale):
    """The value, and structures whose mixture it is."""
    for seed in range(3):
        graph, u, factor, rows = problem(kind, seed, scale)
        found = graph.map()
        assert found.status == 0, found.message
        size = np.abs(rows.linear).sum()
        assert rows.violation(rows.complete(found[u])) < 1e-7
        assert abs(found.fun - rows.best()) < 1e-8 * size
        assert at_once and None not in at_once
        if isinstance(factor, list):
            factor = factor[1]
        local = found.local(factor)
        assert abs(local["weights"].sum() - 1.0) < 1e-9 and local["weights"].min() > 0
        np.testing.assert_allclose(local["weights"] @ local["structures"], local["x"].ravel(), atol=1e-8)
        if factor.n_additional:
            np.testing.assert_allclose(
                local["weights"] @ local["additional"], found[factor].ravel(), atol=1e-8
            )


@pytest.mark.parametrize("kind", ["sequence", "dense"])
def test_forbidden(at_once, kind):
    for seed in range(4):
        graph, u, _, rows = problem(kind, seed, 1.0, 0.2)
        off = graph.scores == -np.inf
        solution, found = graph.solve(), graph.map()
        assert off.any() or np.isinf(graph.additional_scores).any()
        assert solution.status == 0 and found.status == 0
        assert not solution[u][off].any() and not found[u][off].any()
        assert rows.stationarity(solution[u]) < 1e-6
        assert abs(found.fun - rows.best()) < 1e-8 * np.abs(rows.linear).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(at_once, kind):
    """After a general solver the kernels' Jacobian is that of the solution."""
    rng = np.random.default_rng(0)
    graph, u, _, _ = problem(kind, 1, 1.0)
    scores, solution = graph.scores.copy(), graph.solve()
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
