"""A solve that reports convergence is optimal: near ties and large scores, against exact references."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref

from sparsekit import DepTree, Factor, FactorGraph, Sequence

SCALES = [1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6]


def near_ties(rng, shape, scale):
    """Scores with few values, moved by differences of 1e-9 to 1e-6."""
    kind = rng.integers(3)
    values = rng.integers(-2, 3, shape) if kind else np.add.outer(*(rng.integers(-1, 2, n) for n in shape))
    near = 10.0 ** rng.integers(-9, -5) * rng.choice([1.0, scale])
    return scale * values + near * rng.standard_normal(shape)


def tree(n, projective, single_root):
    return ref.structures("dep_tree", n=n, projective=projective, single_root=single_root)[0]


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_near_tied_trees(projective, single_root):
    structures = {n: tree(n, projective, single_root) for n in (3, 4, 5)}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, scale = int(rng.integers(3, 6)), rng.choice(SCALES)
        scores = near_ties(rng, (n, n), scale)
        graph = FactorGraph()
        u = graph.variable(scores)
        graph.add(DepTree(u, projective=projective, single_root=single_root))
        rounding = 16 * n * np.finfo(float).eps * (1 + np.abs(scores).max())
        best = graph.map()
        assert best.success and best.optimality == 0
        assert (structures[n].T @ scores.ravel()).max() - scores.ravel() @ best.x <= rounding
        assert (structures[n].T @ best.x).max() == n  # one tree
        solution = graph.solve()
        slope = scores.ravel() - solution.x
        assert solution.success and solution.n_fallbacks == 0
        assert (structures[n].T @ slope).max() - slope @ solution.x <= 2 * rounding


def best_sequence(unary, transitions):
    value = unary[0]
    for scores, step in zip(unary[1:], transitions):
        value = (value[:, None] + step).max(axis=0) + scores
    return value.max()


def test_near_tied_sequences_of_all_scales():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        T, K = rng.integers(2, 25), rng.integers(2, 15)
        unary, transitions = (
            scale * (values := np.round(rng.standard_normal(shape)))
            + scale * 1e-8 * rng.standard_normal(values.shape)
            for scale, shape in zip(rng.choice(SCALES, 2), ((T, K), (T - 1, K, K)))
        )
        graph = FactorGraph()
        u = graph.variable(unary)
        factor = Sequence(u, transitions)
        graph.add(factor)
        solution = graph.solve()
        assert solution.success
        x, flow = solution[u], solution[factor]
        left = unary - x
        gap = best_sequence(left, transitions) - (left * x).sum() - (transitions * flow).sum()
        size = np.abs(unary).max() + np.abs(transitions).max(initial=0)
        assert gap <= 2e-11 * T + 1e-13 * T * size
        assert solution.n_fallbacks in (0, 1)


class Costly(Factor):
    """An oracle whose structures are too many for the calls allowed."""

    def __init__(self, variables):
        super().__init__(variables)

    def maximize(self, scores, additional_scores):
        return np.eye(scores.size)[scores.argmax()]


@pytest.mark.parametrize("exact", [True, False])
def test_an_unfinished_oracle_is_not_convergence(exact):
    graph = FactorGraph()
    u = graph.variable(np.linspace(0, 0.01, 40))
    graph.add(Costly(u))
    graph.add(Costly(u[::-1]))
    assert not graph.solve(max_iter=2, inner_iter=3, exact=exact).success
    assert graph.solve(max_iter=500, inner_iter=100, exact=exact).success


@pytest.mark.parametrize(
    "T, K, scale, seeds",
    [
        (50, 10, 1e-4, [0]),
        (50, 10, 1e-6, [0, 1]),
        (20, 5, 1e-7, [0, 3]),
        (50, 12, 1e-8, [0]),
        (50, 12, 1e-10, [0]),
    ],
)
def test_sequences_of_tiny_scores(T, K, scale, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for _ in range(2):  # the second one of 1e-4 has near ties
            unary, transitions = (scale * rng.standard_normal(shape) for shape in ((T, K), (T - 1, K, K)))
            rng.standard_normal(T * K)
        graph = FactorGraph()
        u = graph.variable(unary)
        factor = Sequence(u, transitions)
        graph.add(factor)
        solution = graph.solve(max_time=1)
        assert solution.success and solution.n_fallbacks == 0
        x = solution[u]
        left = unary - x
        gap = best_sequence(left, transitions) - (left * x).sum() - (transitions * solution[factor]).sum()
        assert gap <= 2e-11 * T
