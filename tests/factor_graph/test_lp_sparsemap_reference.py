"""The reference of LP-SparseMAP against counts, closed forms, SciPy's linear programs and differences."""

import itertools
import math

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from reference_lp_graphs import random_graph
from scipy.optimize import linprog

SEEDS = range(12)


def columns(M):
    return {tuple(column) for column in M.T}


# The structures


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_trees_are_as_many_as_known(n):
    """Cayley: (n+1)^(n-1) and n^(n-1); projective: the ternary trees, and those with one root."""
    ternary = math.comb(3 * n, n) // (2 * n + 1)
    single = math.comb(3 * n - 2, n - 1) // n
    counts = {(False, False): (n + 1) ** (n - 1), (False, True): n ** (n - 1), (True, False): ternary}
    counts[True, True] = single
    for (projective, single_root), count in counts.items():
        M, N = ref.structures("dep_tree", n=n, projective=projective, single_root=single_root)
        assert M.shape == (n * n, count) and N.shape == (0, count)
        assert len(columns(M)) == count
        assert np.all(M.reshape(n, n, -1).sum(axis=1) == 1)


TRUTH = {
    "xor": "001 010 100",
    "at_most_one": "000 001 010 100",
    "or": "001 010 011 100 101 110 111",
    "or_out": "000 011 101 111",
    "and_out": "000 010 100 111",
    "xor_out": "000 011 101",
    "imply": "000 001 010 011 100 101 111",
}


@pytest.mark.parametrize("kind", TRUTH)
def test_truth_tables(kind):
    expected = {tuple(map(int, row)) for row in TRUTH[kind].split()}
    assert columns(ref.structures(kind, d=3)[0]) == expected
    flipped = {(1 - a, b, 1 - c) for a, b, c in expected}
    assert columns(ref.structures(kind, d=3, negated=[True, False, True])[0]) == flipped


def test_counts_of_the_others():
    for d, k in itertools.product(range(1, 6), range(6)):
        exact, below = (ref.structures("budget", d=d, budget=k, exactly=e)[0].shape[1] for e in (True, False))
        assert exact == math.comb(d, k) and below == sum(math.comb(d, i) for i in range(k + 1))
    M, N = ref.structures("dense", sizes=[2, 3, 2])
    assert M.shape == (7, 12) and np.array_equal(N, np.eye(12))
    assert tuple(M[:, 7]) == (0, 1, 1, 0, 0, 0, 1)  # (1, 0, 1) in C order
    M, N = ref.structures("pair")
    assert columns(np.vstack([M, N])) == {(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)}
    M, N = ref.structures("sequence", T=3, K=3)
    M, N = M.reshape(3, 3, -1), N.reshape(2, 3, 3, -1)
    assert M.shape[-1] == 27 and np.array_equal(N, np.einsum("tiy,tjy->tijy", M[:-1], M[1:]))
    for m, n in itertools.product(range(1, 4), repeat=2):
        M = ref.structures("matching", m=m, n=n)[0].reshape(m, n, -1)
        assert M.shape[-1] == math.perm(max(m, n), min(m, n)) == len(columns(M.reshape(m * n, -1)))
        assert np.all(M.sum(axis=int(m <= n)) == 1) and np.all(M.sum(axis=int(m > n)) <= 1)


def test_knapsack_vertices():
    """As good as the polytope for any linear function, and inside it."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        d = 4
        costs = rng.integers(0, 4, d).astype(float) if seed % 2 else rng.uniform(0, 2, d)
        budget = rng.uniform(0, 1.1) * costs.sum()
        M = ref.structures("knapsack", costs=costs, budget=budget)[0]
        assert M.min() >= 0 and M.max() <= 1 and np.all(costs @ M <= budget + 1e-12)
        assert len(columns(M)) == M.shape[1]
        for score in rng.normal(size=(20, d)):
            best = -linprog(-score, A_ub=costs[None], b_ub=[budget], bounds=(0, 1)).fun
            assert best == pytest.approx(np.max(score @ M), abs=1e-9)
        whole = ref.structures("knapsack", costs=np.ones(d), budget=2.0)[0]
        assert columns(whole) == columns(ref.structures("budget", d=d, budget=2)[0])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="no negated"):
        ref.structures("dense", sizes=[2, 2], negated=[True, False, False, False])
    with pytest.raises(ValueError, match="do not fit"):
        ref.make_factor("pair", [0, 1])
    with pytest.raises(ValueError, match="do not fit"):
        ref.make_factor("xor", [0, 1, 0])


# Graphs


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_feasible_point_gains_to_first_order(seed, scale):
    """Which certifies the maximum of a concave function; constraints and objective are written once more."""
    rng = np.random.default_rng(seed)
    eta, factors = random_graph(rng, 10, 6, feasible=True, integer=bool(seed % 2), scale=scale)
    mu, ps = ref.solve_exact(eta, factors)
    ends, tol = np.cumsum([len(eta), *(f.M.shape[1] for f in factors)]), 1e-9 * max(1.0, scale)

    def agreement(x):
        mu, ps = x[: len(eta)], [x[a:b] for a, b in itertools.pairwise(ends)]
        rows = [np.append(mu[f.variables] - f.M @ p, p.sum() - 1) for f, p in zip(factors, ps)]
        return np.concatenate(rows)

    zero = agreement(np.zeros(ends[-1]))
    jacobian = np.array([agreement(x) - zero for x in np.eye(ends[-1])]).T
    slope = np.concatenate([eta] + [f.N.T @ f.scores for f in factors])
    found, in_mu = np.concatenate([mu, *ps]), np.arange(ends[-1]) < len(eta)
    assert np.max(np.abs(agreement(found))) < 1e-12 and found.min() > -1e-12 and found.max() < 1 + 1e-12
    assert ref.objective(eta, factors, mu, ps) == pytest.approx(slope @ found - mu @ mu / 2, abs=tol)

    def best(gradient):
        solved = linprog(-gradient, A_eq=jacobian, b_eq=-zero, bounds=(0, 1), method="highs")
        assert solved.success
        return gradient @ solved.x, solved.x

    gradient = slope - in_mu * found
    assert best(gradient)[0] - gradient @ found < tol
    assert ref.solve_exact(eta, factors, quad=0.0) == pytest.approx(best(slope)[0], abs=tol)
    # and a feasible point that is not the maximum is told from it
    corner = best(-slope)[1]
    if np.max(np.abs(corner - found)[in_mu]) > 1e-6:
        gradient = slope - in_mu * corner
        assert best(gradient)[0] - gradient @ corner > 1e-9 * min(1.0, scale)


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


def test_a_graph_without_an_integer_point_can_be_feasible():
    """Three variables, of every two exactly one: only (1/2, 1/2, 1/2)."""
    odd = [ref.make_factor("xor", pair) for pair in ([0, 1], [1, 2], [0, 2])]
    mu, _ = ref.solve_exact(np.array([3.0, -1.0, 0.2]), odd)
    assert np.max(np.abs(mu - 0.5)) < 1e-13


def test_random_graphs_are_repeated_and_mixed():
    seen, feasible = set(), []
    for seed in range(60):
        eta, factors = random_graph(np.random.default_rng(seed), 10, 4)
        again, others = random_graph(np.random.default_rng(seed), 10, 4)
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


def test_gradient_against_differences():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        eta, factors = random_graph(rng, 9, 4, feasible=True)
        before = eta.copy()
        d = rng.normal(size=9)
        exact, numeric = ref.vjp_exact(eta, factors, d), ref.vjp_numeric(eta, factors, d)
        assert np.array_equal(eta, before)
        assert np.max(np.abs(exact[0] - numeric[0])) < 1e-7
        for a, b in zip(exact[1], numeric[1]):
            assert np.max(np.abs(a - b), initial=0) < 1e-7
