"""Projective trees of scores that are alike for all words: mixtures of stars, and the face around them.

Against all trees, written down, and linear programs that say which of them the smallest face has.
"""

import numpy as np
import pytest
from reference_lp_sparsemap import structures
from scipy.optimize import linprog

from sparsekit import Budget, DepTree, FactorGraph, sparsemax


def projective(n, single_root):
    """All projective trees, (k, n * n)."""
    return structures("dep_tree", n=n, projective=True, single_root=single_root)[0].T


def projector(trees, x):
    """On the span of the smallest face around x: of trees that have a weight in some mixture of x."""
    n_tree = len(trees)
    has = [
        linprog(-np.eye(n_tree)[k], A_eq=trees.T, b_eq=x, bounds=(0, None)).fun < -1e-7 for k in range(n_tree)
    ]
    face = trees[has]
    _, s, directions = np.linalg.svd(face - face[0])
    span = directions[: (s > 1e-9).sum()]
    return span.T @ span


def solved(scores, single_root=False):
    graph = FactorGraph()
    u = graph.variable(scores)
    graph.add(DepTree(u, projective=True, single_root=single_root))
    return u, graph.solve()


def jacobian(solution):
    return np.array([solution.vjp(e).scores for e in np.eye(solution.x.size)])


HEADS = {
    "all alike": np.zeros(5),
    "all in use": 0.1 * np.arange(5),
    "some in use": np.array([0, 0.8, 0.2, -1, 0.5]),
}


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("n", [2, 4, 5])
def test_answers_and_faces(n, kind, single_root):
    b = HEADS[kind][:n]
    u, solution = solved(np.arange(n)[:, None] + np.tile(b, (n, 1)), single_root)
    expected = np.tile(sparsemax(b), (n, 1))
    np.testing.assert_allclose(solution[u], expected, rtol=0, atol=1e-14)
    J = projector(projective(n, single_root), expected.ravel())
    np.testing.assert_allclose(jacobian(solution), J, rtol=0, atol=1e-12)


def test_faces_of_other_mixtures():
    """Of trees in the face of all stars, and of one outside it as well."""
    trees = projective(4, False)
    stars = np.array([np.eye(4)[[h] * 4].ravel() for h in range(4)])
    inside, outside = np.eye(4)[[0, 3, 3, 0]].ravel(), np.eye(4)[[0, 0, 1, 2]].ravel()
    mixtures = [stars[0] + stars[1] + 2 * inside, stars[0] + outside, inside + outside]
    for x in (mixture / mixture[:4].sum() for mixture in mixtures):
        _, solution = solved(x.reshape(4, 4))
        np.testing.assert_allclose(solution.x, x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(jacobian(solution), projector(trees, x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 70])
def test_the_face_has_half_as_many_directions_as_pairs_of_words(n):
    u, solution = solved(np.zeros((n, n)))
    np.testing.assert_allclose(solution[u], 1 / n, rtol=0, atol=1e-14)
    noise = np.random.default_rng(n).standard_normal((200, n * n))
    traces = [d @ solution.jvp(d) for d in noise]  # of mean n (n - 1) / 2
    error = np.std(traces) / np.sqrt(len(traces))
    assert abs(np.mean(traces) - n * (n - 1) / 2) <= 5 * error + 1e-12
    d = noise[0]
    once = solution.jvp(d)
    np.testing.assert_allclose(solution.jvp(once), once, rtol=0, atol=1e-10)


def test_with_a_factor_without_constraints():
    """Variables of two factors weigh half in each, so the face is met by other numbers."""
    graph = FactorGraph()
    u = graph.variable(np.zeros((6, 6)))
    graph.add(DepTree(u, projective=True))
    graph.add(Budget(u[:, 2], 5))
    solution = graph.solve()
    _, alone = solved(np.zeros((6, 6)))
    np.testing.assert_allclose(solution.x, 1 / 6, rtol=0, atol=1e-10)
    np.testing.assert_allclose(jacobian(solution), jacobian(alone), rtol=0, atol=1e-7)


def test_almost_alike_is_not_alike():
    scores = np.zeros((5, 5))
    scores[2, 4] = 1e-6
    _, solution = solved(scores)
    x = solution.x
    assert 1e-8 < abs(x - 0.2).max() <= 1e-6
    left = scores.ravel() - x
    assert (projective(5, False) @ left).max() - left @ x < 1e-13


def test_gains_that_are_rounding_end_a_solve():
    """Scores of long sentences are sums of many parts, and so are their rounding errors."""
    rng = np.random.default_rng(1)
    scores = 0.1 * rng.normal(size=(30, 1)) + 0.1 * rng.normal(size=30)
    u, solution = solved(scores)
    assert solution.status == 0
    np.testing.assert_allclose(solution[u], sparsemax(scores), rtol=0, atol=1e-13)


@pytest.mark.parametrize("weight, slope", [(1e-11, 0.5), (-1e-11, 0.0)])
def test_small_weights_and_small_losses_count_where_a_factor_is_alone(weight, slope):
    """Many words have weights and losses of all sizes, which tell what is in use unless they are rounding."""
    u, solution = solved(np.array([[2.0, 0.0], [1 - 2 * weight, 0.0]]))
    assert solution[u][1, 1] == pytest.approx(max(weight, 0), abs=1e-15)
    e = np.array([0.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(solution.vjp(e).scores, [0, 0, slope, -slope], rtol=0, atol=1e-12)
