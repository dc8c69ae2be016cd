"""Several structures that enter an active set at once: one for each FG_SMALL_FACTOR (64) in use."""

import numpy as np
import pytest

from sparsekit import Budget, DepTree, Factor, FactorGraph
from sparsekit._cython.factor_graph._structures import tree

WORDS = 18


class Recorded(Factor):
    """Projective trees by their oracle only; `asked` has the scores of each call, `answers` the trees."""

    def __init__(self, variables):
        super().__init__(variables)
        self.asked, self.answers = [], []

    def maximize(self, scores, additional_scores):
        heads = tree(np.ascontiguousarray(scores), True, False)[1]
        self.asked.append(np.array(scores))
        self.answers.append(np.eye(len(scores))[heads])
        return self.answers[-1]


def weak_scores(seed=0):
    return 1e-2 * np.random.default_rng(seed).standard_normal((WORDS, WORDS))


def solved(scores, **options):
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(Recorded(u))
    return graph.factors[0], u, graph.solve(**options)


def gain(scores, x):
    """How much more the best tree scores than x at the gradient: 0 for the projection."""
    left = np.ascontiguousarray(scores - x)
    return tree(left, True, False)[0] - (left * x).sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_mixture_of_many_trees_is_the_projection(seed):
    scores = weak_scores(seed)
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(DepTree(u, projective=True))
    solution = graph.solve()
    found = solution.local(graph.factors[0])
    weights, tables = found["weights"], found["structures"].reshape(-1, WORDS, WORDS)
    assert solution.success and len(weights) > 3 * 64 and (weights > 0).all()
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.tensordot(weights, tables, 1), solution[u], rtol=0, atol=1e-12)
    assert abs(gain(scores, solution[u])) < 1e-12


def test_later_structures_follow_an_exact_line_search():
    scores = weak_scores()
    factor, u, solution = solved(scores)
    assert solution.success and abs(gain(scores, solution[u])) < 1e-12
    ahead = 0
    for before, answer, after in zip(factor.asked[128:], factor.answers[128:], factor.asked[129:]):
        along = answer - (scores - before)
        moved, length = before - after, np.linalg.norm(before - after)
        if length < 1e-9 or (moved * along).sum() < (1 - 1e-9) * length * np.linalg.norm(along):
            continue
        ahead += 1
        assert abs((after * along).sum()) < 1e-12
    assert ahead > 20


@pytest.mark.parametrize("seed", range(4))
def test_structures_asked_ahead_enter_once(seed):
    factor, _, solution = solved(weak_scores(seed))
    structures = solution.local(factor)["structures"].reshape(-1, WORDS * WORDS)
    assert len(np.unique(structures, axis=0)) == len(structures) > 3 * 64
    assert len(factor.asked) < 1.25 * len(structures)


@pytest.mark.parametrize("most", [1, 127, 130, 131, 133, 200, 201])
def test_calls_of_the_oracle_are_limited(most):
    factor, u, solution = solved(weak_scores(), max_iter=1, inner_iter=most, exact=False)
    assert not solution.success
    assert len(factor.asked) <= most + 1
    np.testing.assert_allclose(solution[u].sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 0.1])
def test_trees_with_budgets_as_by_their_oracle(scale):
    scores = scale * np.random.default_rng(5).standard_normal((WORDS, WORDS))
    solutions = []
    for kind in (Recorded, lambda u: DepTree(u, projective=True)):
        graph = FactorGraph()
        u = graph.variable(scores)
        graph.add(kind(u))
        graph.add(Budget(u[:, 0], 1))
        solutions.append(graph.solve())
    assert solutions[0].success and solutions[1].success
    np.testing.assert_allclose(solutions[0].x, solutions[1].x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n, seed", [(24, 1), (24, 2), (30, 1)])
def test_derivatives_with_many_structures_are_a_projection(n, seed):
    scores = 0.02 * np.random.default_rng(seed).standard_normal((n, n))
    d = np.random.default_rng(9).standard_normal(n * n)
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(DepTree(u, projective=True))
    graph.add(Budget(u[:, 0], 1))
    solution = graph.solve()
    once = np.ravel(solution.vjp(d).scores)
    np.testing.assert_allclose(np.ravel(solution.vjp(once).scores), once, rtol=0, atol=1e-9)
    assert abs(once).max() > 0.1
