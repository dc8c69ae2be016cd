"""Structures of weak scores, whose mixtures are of so many that ways of their own solve them.

Each is compared with factors of the same polytope that are solved otherwise. They are logic on rows and
columns, or a user's factor, which has an oracle only.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from structure_oracles import ChainOracle, TreeOracle

from sparsekit import AtMostOne, Budget, DepTree, FactorGraph, Matching, Pair, Sequence, Xor, sparsemax
from sparsekit._cython.factor_graph._structures import tree

MANY = 64


def matching_by_logic(u, transitions):
    m, n = u.shape
    return [(Xor if fewer else AtMostOne)(rows) for rows, fewer in ((u, m <= n), (u.T, n <= m))]


def is_matching(table):
    return table.sum(axis=0).max() <= 1 and table.sum(axis=1).max() <= 1 and table.sum() == min(table.shape)


def is_sequence(table):
    return (table.sum(axis=1) == 1).all()


@dataclass(frozen=True)
class Kind:
    """Factors over a view (m, n), by the package's own and by others, and what a structure of theirs is."""

    shape: tuple
    own: Callable
    peer: Callable
    is_structure: Callable
    # whether weak scores need no structures; else several enter at once
    is_implicit: bool = True

    @property
    def is_tree(self):
        return self.shape[0] == self.shape[1] and self.is_structure not in (is_matching, is_sequence)

    def allowed(self):
        """Rows and columns of one structure."""
        rows = np.arange(min(self.shape))
        if self.is_tree:
            return rows, np.maximum(rows - 1, 0)
        return (np.arange(self.shape[0]), 0) if self.is_structure is is_sequence else (rows, rows)

    def draw(self, scale, seed=0):
        """Scores and transitions."""
        rng, (m, n) = np.random.default_rng(seed), self.shape
        return scale * rng.standard_normal((m, n)), scale * rng.standard_normal((m - 1, n, n))


def trees(projective, single_root):
    def is_tree(table):
        # the best tree by its own arcs is itself
        return (table.sum(axis=1) == 1).all() and tree(table, projective, single_root)[0] == len(table)

    return Kind(
        (14, 14),
        lambda u, c: [DepTree(u, projective=projective, single_root=single_root)],
        lambda u, c: [TreeOracle(u, projective, single_root)],
        is_tree,
        is_implicit=not projective,
    )


def matching(m, n):
    return Kind((m, n), lambda u, c: [Matching(u)], matching_by_logic, is_matching)


def sequence(T, K):
    return Kind((T, K), lambda u, c: [Sequence(u, c)], lambda u, c: [ChainOracle(u, c)], is_sequence)


KINDS = {
    "matching": matching(20, 20), "wide matching": matching(12, 25), "tall matching": matching(25, 12),
    "sequence": sequence(12, 5), "sequence of many tags": sequence(4, 14),
    "tree": trees(False, False), "tree of one root": trees(False, True),
    "projective tree": trees(True, False), "projective tree of one root": trees(True, True),
}  # fmt: skip
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def solved(make, scores, transitions, more=lambda u: [], **options):
    """Graph, view and solution of factors; ``more`` makes others in addition."""
    graph = FactorGraph()
    u = graph.variable(scores)
    for factor in (*make(u, transitions), *more(u)):
        graph.add(factor)
    solution = graph.solve(**options)
    assert solution.success, solution.message
    return graph, u, solution


def n_structures(solution):
    return len(solution._run.states.structures(0, 0)[0])


def compare(kind, scores, transitions, more=lambda u: [], gradients=True, tol=1e-8):
    """The solution, after its marginals and derivatives were those of the peer."""
    _, u, own = solved(kind.own, scores, transitions, more)
    _, w, peer = solved(kind.peer, scores, transitions, more, max_iter=20000, inner_iter=1000)
    np.testing.assert_allclose(own[u], peer[w], rtol=0, atol=1e-8)
    np.testing.assert_allclose(own.fun, peer.fun, rtol=1e-9, atol=1e-8)
    if gradients:
        d = np.random.default_rng(1).standard_normal(scores.shape)
        np.testing.assert_allclose(own.vjp({u: d})[u], peer.vjp({w: d})[w], rtol=0, atol=tol)
        np.testing.assert_allclose(own.jvp(d.ravel()), peer.jvp(d.ravel()), rtol=0, atol=tol)
    return own


@each_kind
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e-2, 0.1])
def test_as_factors_that_are_solved_otherwise(kind, scale):
    scores, transitions = kind.draw(scale)
    weak = compare(kind, scores, transitions, tol=1e-5 if kind.is_tree else 1e-8)
    if 0.0 < scale < 0.1:
        assert n_structures(weak) == 0 if kind.is_implicit else n_structures(weak) > MANY
    # where scores tie
    for form in (lambda part: np.maximum(part, 0), lambda part: scale * np.round(part / (scale or 1.0))):
        compare(kind, form(scores), form(transitions), tol=1e-5 if kind.is_tree else 1e-8)


@each_kind
@pytest.mark.parametrize("scale", [1.0, 10.0, 1e4])
def test_where_structures_are_few(kind, scale):
    compare(kind, *kind.draw(scale, seed=2), tol=1e-5 if kind.is_tree else 1e-8)


@each_kind
def test_the_mixture_is_one_of_structures(kind):
    graph, u, solution = solved(kind.own, *kind.draw(0.02, seed=3))
    factor = graph.factors[0]
    found = solution.local(factor)
    weights, tables = found["weights"], found["structures"].reshape(-1, *kind.shape)
    assert (weights > 0).all() and all(map(kind.is_structure, tables))
    assert set(np.unique(tables)) == {0.0, 1.0}
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.tensordot(weights, tables, 1), solution[u], atol=1e-7)
    assert found["additional"].shape == (len(weights), factor.n_additional)
    if factor.n_additional:
        np.testing.assert_allclose(weights @ found["additional"], solution[factor].ravel(), atol=1e-7)
        steps = tables[:, :-1, :, None] * tables[:, 1:, None, :]
        np.testing.assert_array_equal(found["additional"].reshape(steps.shape), steps)


@each_kind
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.1])
def test_with_other_factors(kind, scale):
    """A budget that binds, and a pair."""
    scores, transitions = kind.draw(scale, seed=4)
    scores[[0, 1, 2], [0, 1, 2]] += 0.3

    def more(u):
        return [Budget(u[[0, 1, 2], [0, 1, 2]], 1), Pair([u[0, 1], u[3, 1]], 0.1)]

    # derivatives by many structures keep three to six digits, which depends on the processor
    compare(kind, scores, transitions, more, tol=1e-4 if kind.is_implicit else 1e-3)


@each_kind
def test_two_that_share_variables(kind):
    scores, transitions = kind.draw(0.02, seed=5)
    columns = (slice(None, -2), slice(2, None)) if kind.is_tree else (slice(None), slice(None))
    found = []
    for make in (kind.own, kind.peer):

        def both(u, c, make=make):
            return [*make(u[:-2, columns[0]], c[:-2]), *make(u[2:, columns[1]], c[2:])]

        _, u, solution = solved(both, scores, transitions, max_iter=20000, inner_iter=1000)
        found.append(solution[u])
    np.testing.assert_allclose(*found, rtol=0, atol=1e-8)


@each_kind
@pytest.mark.parametrize("scale", [1e-3, 0.1])
def test_forbidden_scores(kind, scale):
    rng = np.random.default_rng(6)
    scores, transitions = kind.draw(scale, seed=6)
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    transitions[rng.random(transitions.shape) < 0.4] = -np.inf
    scores[kind.allowed()], transitions[:, 0, 0] = 0.0, 0.0
    found = compare(kind, scores, transitions, tol=1e-5 if kind.is_tree else 1e-8)
    assert np.isinf(scores).any() and not found.x[np.isinf(scores).ravel()].any()


@each_kind
def test_scores_of_very_different_sizes(kind):
    rng = np.random.default_rng(7)
    parts = kind.draw(1.0)
    scores, transitions = (10.0 ** rng.uniform(-6, 3, part.shape) * np.sign(part) for part in parts)
    compare(kind, scores, transitions, gradients=False)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "tall matching"])
def test_what_a_row_has_in_common_changes_nothing(name):
    """Where each row has one entry of a structure."""
    kind = KINDS[name]
    scores, transitions = kind.draw(0.01, seed=8)
    common = 1e6 * np.random.default_rng(9).standard_normal((len(scores), 1))
    moved = scores + common
    first = solved(kind.own, moved - common, transitions)[2]  # what rounding left of them
    second = solved(kind.own, moved, transitions)[2]
    assert not kind.is_implicit or n_structures(first) == n_structures(second) == 0
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-8)


@each_kind
def test_solved_again_from_the_last_solution(kind):
    scores, transitions = kind.draw(0.02)
    graph, u, _ = solved(kind.own, scores, transitions)
    for scale, seed in ((1e-2, 1), (1.0, 2), (1e-3, 3), (100.0, 4), (0.0, 5)):
        scores = kind.draw(scale, seed)[0]
        graph.set_scores(u, scores)
        again = graph.solve(warm_start=True)
        _, _, cold = solved(kind.own, scores, transitions)
        assert again.success
        np.testing.assert_allclose(again.x, cold.x, rtol=0, atol=1e-8)
        d = np.arange(scores.size) / scores.size
        np.testing.assert_allclose(again.vjp(d).scores, cold.vjp(d).scores, rtol=0, atol=1e-5)


def test_a_long_flow_is_best_by_its_own_conditions():
    kind = sequence(60, 12)
    scores, transitions = kind.draw(0.02)
    graph, u, found = solved(kind.own, scores, transitions)
    x, flow = found[u], found[graph.factors[0]]
    assert n_structures(found) == 0 and (x >= 0).all() and (flow >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1.0, rtol=0, atol=1e-11)
    np.testing.assert_allclose(flow.sum(axis=2), x[:-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(flow.sum(axis=1), x[1:], rtol=0, atol=1e-11)
    # no sequence is better than those in use, for scores less the marginals
    on, arcs = ChainOracle.maximize(None, scores - x, transitions)
    best = ((scores - x) * on).sum() + (transitions * arcs).sum()
    assert best - ((scores - x) * x).sum() - (transitions * flow).sum() < 1e-11


def test_derivatives_of_a_flow_in_transitions_are_those_of_differences():
    kind, step = sequence(12, 6), 1e-7
    scores, transitions = kind.draw(0.05)
    graph, u, found = solved(kind.own, scores, transitions)
    (e, f), (d, _) = kind.draw(1.0, seed=1), kind.draw(1.0, seed=2)
    ahead, back = (solved(kind.own, scores + s * e, transitions + s * f)[2].x for s in (step, -step))
    moved, gradients = (ahead - back) / (2 * step), found.vjp({u: d})
    slope = (gradients[u] * e).sum() + (gradients[graph.factors[0]] * f).sum()
    assert n_structures(found) == 0 and abs(slope - d.ravel() @ moved) < 1e-4
    np.testing.assert_allclose(found.jvp(e.ravel(), f.ravel()), moved, rtol=0, atol=1e-4)


def test_one_position():
    scores = 1e-4 * np.random.default_rng(7).standard_normal((1, 400))
    graph, u, found = solved(lambda u, c: [Sequence(u, c)], scores, np.zeros((0, 400, 400)))
    np.testing.assert_allclose(found[u], sparsemax(scores), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.vjp({u: scores})[u], scores - scores.mean(), rtol=0, atol=1e-12)
    assert len(found.local(graph.factors[0])["weights"]) == 400


def test_projective_trees_of_large_scores_with_weak_ones():
    kind = trees(True, False)
    for seed in range(3):
        scores = kind.draw(1e-3, seed)[0]
        scores[9, 3] = scores[12, 3] = 1e6
        _, u, solution = solved(kind.own, scores, None)
        left = scores - solution[u]
        gain = tree(left, True, False)[0] - (left * solution[u]).sum()
        assert solution[u][9, 3] == 1.0 and gain < 1e-12 * abs(scores).sum()


@pytest.mark.parametrize("shape", [(60, 60), (40, 60), (60, 40), (12, 25), (1, 4)])
@pytest.mark.parametrize("rows, columns, scale", [(1e4, 1e3, 0.3), (10.0, 10.0, 0.03), (1e5, 0.0, 3.0)])
def test_constants_of_rows_and_columns_are_no_trouble_for_matchings(shape, rows, columns, scale):
    """Constants of both sides change no marginal if sides are equal, and no matching falls back."""
    rng = np.random.default_rng(shape)
    plain = scale * rng.standard_normal(shape)
    scores = plain + rows * rng.standard_normal((shape[0], 1)) + columns * rng.standard_normal((1, shape[1]))
    found = []
    for one in (scores, plain):
        graph = FactorGraph()
        x = graph.variable(one)
        graph.add(Matching(x))
        solution = graph.solve()
        assert solution.success and solution.n_fallbacks == 0
        found.append(np.asarray(solution[x]))
    smaller = 1 if shape[0] >= shape[1] else 0
    np.testing.assert_allclose(found[0].sum(axis=1 - smaller), 1.0, atol=1e-8)
    assert (found[0].sum(axis=smaller) <= 1.0 + 1e-8).all()
    if shape[0] == shape[1]:
        np.testing.assert_allclose(found[0], found[1], atol=1e-6)
