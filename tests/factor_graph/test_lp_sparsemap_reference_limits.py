"""The reference of LP-SparseMAP: graphs without a solution, or nearly so; and its gradient."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from reference_sparsemax import sparsemax

SEEDS = range(12)


def test_infeasible_graphs():
    xor = ref.make_factor("xor", range(4))
    none = [ref.make_factor("budget", range(4), budget=0)]
    short = [ref.make_factor("knapsack", range(4), costs=np.ones(4), budget=0.9999)]
    two = [ref.make_factor("or_out", [0, 1], negated=[False, True]), ref.make_factor("and_out", [0, 1])]
    two += [ref.make_factor("or", [0, 2]), ref.make_factor("xor", [2]), ref.make_factor("xor", [0])]
    odd = [ref.make_factor("budget", range(4), budget=3, exactly=True)]
    empty = [ref.make_factor("knapsack", range(2), costs=np.ones(2), budget=-1.0)]
    for factors in ([xor, *none], [xor, *short], two, [xor, *odd], empty):
        assert ref.solve_exact(np.ones(4), factors) == (None, None)
        assert ref.solve_exact(np.ones(4), factors, quad=0.0) is None


def test_nearly_feasible_graphs_are_no_solutions():
    """Below what the linear program can tell, an error and not a wrong mu."""
    xor = ref.make_factor("xor", range(4))
    for excess in 10.0 ** -np.arange(3, 11):
        short = ref.make_factor("knapsack", range(4), costs=np.ones(4), budget=1 - excess)
        try:
            mu, _ = ref.solve_exact(np.ones(4), [xor, short])
        except RuntimeError:
            assert excess < 1e-6
        else:
            assert mu is None


def test_tight_graphs_are_feasible():
    """Without a point where every probability is positive, and with redundant constraints."""
    xor = ref.make_factor("xor", range(4))
    tight = ref.make_factor("knapsack", range(4), costs=np.ones(4), budget=1.0)
    z = np.array([0.3, -1.0, 0.4, 0.2])
    mu, _ = ref.solve_exact(z, [xor, tight, ref.make_factor("at_most_one", range(4)), xor])
    assert np.max(np.abs(mu - sparsemax(z)[0])) < 1e-13
    mu, _ = ref.solve_exact(z, [xor, ref.make_factor("budget", [0, 2], budget=0)])
    assert np.max(np.abs(mu - [0, 0, 0, 1])) < 1e-13
    mu, _ = ref.solve_exact(z, [ref.make_factor("xor", [0]), ref.make_factor("xor", [1], negated=[True])])
    assert np.max(np.abs(mu - [1, 0, 0.4, 0.2])) < 1e-13


def test_a_graph_without_an_integer_point_can_be_feasible():
    """Three variables, of every two exactly one: only (1/2, 1/2, 1/2)."""
    odd = [ref.make_factor("xor", pair) for pair in ([0, 1], [1, 2], [0, 2])]
    mu, _ = ref.solve_exact(np.array([3.0, -1.0, 0.2]), odd)
    assert np.max(np.abs(mu - 0.5)) < 1e-13


def test_random_graphs_are_repeated_and_mixed():
    seen, feasible = set(), []
    for seed in range(60):
        eta, factors = ref.random_graph(np.random.default_rng(seed), 10, 4)
        again, others = ref.random_graph(np.random.default_rng(seed), 10, 4)
        assert np.array_equal(eta, again) and len(factors) == 4
        for f, g in zip(factors, others):
            assert f.kind == g.kind and np.array_equal(f.variables, g.variables)
            assert len(set(f.variables)) == len(f.variables) == f.M.shape[0]
            assert f.M.shape[1] == f.N.shape[1] and len(f.scores) == f.N.shape[0]
            seen.add(f.kind)
        feasible.append(ref.solve_exact(eta, factors)[0] is not None)
    assert seen == set(ref.KINDS)
    assert 10 < sum(feasible) < 60


# The gradient


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_sparsemax(seed):
    rng = np.random.default_rng(seed)
    z, d = rng.normal(size=6) * 0.7, rng.normal(size=6)
    gradient, (scores,) = ref.vjp_exact(z, [ref.make_factor("xor", range(5))], d)
    s = sparsemax(z[:5])[0] > 0
    assert np.max(np.abs(gradient[:5] - s * (d[:5] - d[:5][s].mean()))) < 1e-13
    assert gradient[5] == (d[5] if 0 < z[5] < 1 else 0) and len(scores) == 0


@pytest.mark.parametrize("seed", range(25))
def test_gradient_against_differences(seed):
    rng = np.random.default_rng(seed)
    eta, factors = ref.random_graph(rng, 9, 4, feasible=True)
    before = eta.copy()
    d = rng.normal(size=9)
    exact, numeric = ref.vjp_exact(eta, factors, d), ref.vjp_numeric(eta, factors, d)
    assert np.array_equal(eta, before)
    assert np.max(np.abs(exact[0] - numeric[0])) < 1e-7
    for a, b in zip(exact[1], numeric[1]):
        assert np.max(np.abs(a - b), initial=0) < 1e-7


def test_the_jacobian_is_symmetric_and_no_expansion():
    for seed in SEEDS:
        eta, factors = ref.random_graph(np.random.default_rng(seed), 8, 3, feasible=True)
        J = np.array([ref.vjp_exact(eta, factors, unit)[0] for unit in np.eye(8)])
        assert np.max(np.abs(J - J.T)) < 1e-12
        values = np.linalg.eigvalsh(J)
        assert values.min() > -1e-12 and values.max() < 1 + 1e-12
