"""The reference of LP-SparseMAP against counts, closed forms, equal polytopes and SciPy."""

import itertools
import math

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from reference_sparsemax import sparsemax
from scipy.optimize import brentq, linprog, minimize

SEEDS = range(12)


def columns(M):
    return {tuple(column) for column in M.T}


def same_graph(eta, factors, others):
    """Two lists of factors that describe one polytope give one mu."""
    first, second = ref.solve_exact(eta, factors)[0], ref.solve_exact(eta, others)[0]
    assert np.max(np.abs(first - second)) < 1e-12
    return first


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


def test_projective_trees_have_descendants_under_every_arc():
    n = 4
    every = columns(ref.structures("dep_tree", n=n)[0])
    projective = columns(ref.structures("dep_tree", n=n, projective=True)[0])
    for column in every:
        heads = {i + 1: (0 if j == i else j + 1) for i, j in np.argwhere(np.reshape(column, (n, n)))}

        def above(word, heads=heads):
            found = [word]
            while word:
                word = heads[word]
                found.append(word)
            return found

        holds = all(
            head in above(between)
            for word, head in heads.items()
            for between in range(min(word, head) + 1, max(word, head))
        )
        assert holds == (column in projective)


def test_tree_rows_are_modifiers():
    """Two words: both on the root, 1 under 2, or 2 under 1 (row = modifier, diagonal = root)."""
    assert columns(ref.structures("dep_tree", n=2)[0]) == {(1, 0, 0, 1), (0, 1, 0, 1), (1, 0, 1, 0)}
    assert columns(ref.structures("dep_tree", n=2, single_root=True)[0]) == {(0, 1, 0, 1), (1, 0, 1, 0)}


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


@pytest.mark.parametrize("seed", SEEDS)
def test_knapsack_vertices(seed):
    """As good as the polytope for any linear function, and inside it."""
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


# One factor: closed forms


@pytest.mark.parametrize("seed", SEEDS)
def test_xor_alone_is_sparsemax(seed):
    z = np.random.default_rng(seed).normal(size=5) * 2
    mu, (p,) = ref.solve_exact(z, [ref.make_factor("xor", range(5))])
    assert np.max(np.abs(mu - sparsemax(z)[0])) < 1e-14
    assert np.max(np.abs(ref.structures("xor", d=5)[0] @ p - mu)) < 1e-14


def box_cut(v, w, a, limit, equal=False):
    """Nearest point to v, weighted, in {x in [0, 1]^d, a.x <= limit} (or equal), by a scalar root."""

    def excess(tau):
        return a @ np.clip(v - tau * a / w, 0, 1) - limit

    if not equal and excess(0.0) <= 0:
        return np.clip(v, 0, 1)
    tau = brentq(excess, 0.0 if not equal else -1e3, 1e3, xtol=1e-15, rtol=1e-15, maxiter=500)
    return np.clip(v - tau * a / w, 0, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_local_problems_that_cut_a_box_once(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    v, w, ones = rng.normal(size=d) + 0.3, 1 / rng.integers(1, 5, d), np.ones(d)
    costs, k = rng.uniform(0.2, 2, d), int(rng.integers(1, d))
    budget = rng.uniform(0.1, 0.9) * costs.sum()
    last = np.eye(d)[-1]
    mixed = 2 * last - 1  # imply: the sum of 1 - x over the inputs and x over the last is at least one
    cases = [
        (("xor", {"d": d}), (ones, 1, True)),
        (("at_most_one", {"d": d}), (ones, 1)),
        (("or", {"d": d}), (-ones, -1)),
        (("imply", {"d": d}), (-mixed, d - 2)),
        (("budget", {"d": d, "budget": k}), (ones, k)),
        (("budget", {"d": d, "budget": k, "exactly": True}), (ones, k, True)),
        (("knapsack", {"costs": costs, "budget": budget}), (costs, budget)),
    ]
    for (kind, params), cut in cases:
        M, N = ref.structures(kind, **params)
        x, p = ref.local_exact(v, w, [], M, N)
        assert np.max(np.abs(x - box_cut(v, w, *cut))) < 1e-12, kind
        assert np.max(np.abs(M @ p - x)) < 1e-13 and p.min() >= 0


@pytest.mark.parametrize("seed", range(40))
def test_pair_is_proposition_10(seed):
    """With x = delta mu, v = delta eta, w = 1 / delta^2; a negative score by flipping the second variable."""
    rng = np.random.default_rng(seed)
    delta, eta, score = np.sqrt(rng.integers(1, 5, 2)), rng.normal(size=2) + 0.3, rng.normal()
    x, _ = ref.local_exact(delta * eta, 1 / delta**2, [score], *ref.structures("pair"))
    v, s = delta * eta, score
    if score < 0:  # score x1 x2 = score x1 - score x1 (1 - x2)
        v, s = np.array([v[0] + delta[0] ** 2 * score, 1 - v[1]]), -score
    if v[0] > v[1] + delta[1] ** 2 * s:
        known = [v[0], v[1] + delta[1] ** 2 * s]
    elif v[1] > v[0] + delta[0] ** 2 * s:
        known = [v[0] + delta[0] ** 2 * s, v[1]]
    else:
        weights = 1 / delta**2
        known = [(weights @ v + s) / weights.sum()] * 2
    known = np.clip(known, 0, 1)
    if score < 0:
        known[1] = 1 - known[1]
    assert np.max(np.abs(x - known)) < 1e-14


@pytest.mark.parametrize("kind", ["or_out", "xor_out"])
@pytest.mark.parametrize("seed", SEEDS)
def test_local_output_factors_against_inequalities(kind, seed):
    """Eq. (94), and the simplex for XorOut, solved by SLSQP."""
    rng = np.random.default_rng(seed)
    v, w = rng.normal(size=4) + 0.3, 1 / rng.integers(1, 4, 4)
    x, _ = ref.local_exact(v, w, [], *ref.structures(kind, d=4))
    rules = [{"type": "ineq", "fun": lambda m: m[3] - m[:3]}] if kind == "or_out" else []
    rules.append({"type": "ineq" if rules else "eq", "fun": lambda m: m[:3].sum() - m[3]})
    found = minimize(
        lambda m: (w / 2 * (m - v) ** 2).sum(),
        np.full(4, 0.5),
        jac=lambda m: w * (m - v),
        bounds=[(0, 1)] * 4,
        constraints=rules,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.max(np.abs(found.x - x)) < 1e-6


# Graphs: other descriptions of the same polytope


@pytest.mark.parametrize("seed", SEEDS)
def test_sequence_is_a_chain_of_dense_factors(seed):
    rng = np.random.default_rng(seed)
    T, K = 3, 3
    x, eta = np.arange(9).reshape(T, K), rng.normal(size=9)
    transitions = rng.normal(size=(T - 1, K, K))
    one = [ref.make_factor("sequence", x, transitions, T=T, K=K)]
    chain = [ref.make_factor("dense", x[t : t + 2], transitions[t], sizes=[K, K]) for t in range(T - 1)]
    limits = [ref.make_factor("budget", x[:, 0], budget=1), ref.make_factor("or", x[1:, 1])]
    same_graph(eta, one, chain)
    same_graph(eta, [*one, limits[0]], [*chain, limits[0]])
    same_graph(eta, one + limits, chain + limits)


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (3, 2)])
@pytest.mark.parametrize("seed", SEEDS)
def test_matching_is_rows_and_columns(shape, seed):
    eta = np.random.default_rng(seed).normal(size=shape) * 2
    x = np.arange(eta.size).reshape(shape)
    long, short = (x, x.T) if shape[0] <= shape[1] else (x.T, x)
    rows = [ref.make_factor("xor", row) for row in long] + [
        ref.make_factor("at_most_one", row) for row in short
    ]
    same_graph(eta.ravel(), [ref.make_factor("matching", x, m=shape[0], n=shape[1])], rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pair_is_a_dense_factor(seed):
    rng = np.random.default_rng(seed)
    eta, score = rng.normal(size=2), rng.normal()
    mu, _ = ref.solve_exact(eta, [ref.make_factor("pair", [0, 1], [score])])
    # variables (off, on) each; the off copies are pulled to 1 - eta, which doubles the quadratic
    both = np.ravel([[1 - value, value] for value in eta])
    dense = ref.make_factor("dense", range(4), [0, 0, 0, 2 * score], sizes=[2, 2])
    assert np.max(np.abs(ref.solve_exact(both, [dense])[0][1::2] - mu)) < 1e-13


def negate(f, flip):
    return ref.make_factor(f.kind, f.variables, f.scores, f.negated ^ flip[f.variables], **f.params)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_negated_variables_reflect_the_solution(seed, integer):
    rng = np.random.default_rng(seed)
    eta, factors = ref.random_graph(rng, 8, 5, kinds=ref.BINARY, feasible=True, integer=integer)
    flip = rng.integers(2, size=8).astype(bool)
    mu, _ = ref.solve_exact(eta, factors)
    other, _ = ref.solve_exact(np.where(flip, 1 - eta, eta), [negate(f, flip) for f in factors])
    assert np.max(np.abs(np.where(flip, 1 - other, other) - mu)) < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_by_other_names(seed):
    rng = np.random.default_rng(seed)
    eta, five, every = rng.normal(size=5), range(5), np.ones(5, dtype=bool)
    rest = [ref.make_factor("budget", [1, 3, 4], budget=2), ref.make_factor("pair", [0, 4], [rng.normal()])]
    inputs = every.copy()
    inputs[-1] = False
    for a, b in [
        (("imply", {}), ("or", {"negated": inputs})),
        (("and_out", {}), ("or_out", {"negated": every})),
        (("at_most_one", {}), ("budget", {"budget": 1})),
        (("xor", {}), ("budget", {"budget": 1, "exactly": True})),
        (("or", {}), ("budget", {"budget": 4, "negated": every})),
        (("budget", {"budget": 2}), ("knapsack", {"costs": np.ones(5), "budget": 2.0})),
        (("xor_out", {"negated": ~inputs}), ("xor", {})),
    ]:
        pair = [ref.make_factor(kind, five, **params) for kind, params in (a, b)]
        same_graph(eta, [pair[0], *rest], [pair[1], *rest])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_factor_twice_with_its_scores_split(seed):
    eta, factors = ref.random_graph(np.random.default_rng(seed), 9, 3, feasible=True)
    parts = [
        ref.make_factor(f.kind, f.variables, part * f.scores, f.negated, **f.params)
        for f in factors
        for part in (0.25, 0.75)
    ]
    same_graph(eta, factors, parts)


# Graphs: the optimum


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_feasible_point_is_better_to_first_order(seed, integer, scale):
    """The point is feasible and the linearised problem, solved by HiGHS, gains nothing: it is optimal."""
    rng = np.random.default_rng(seed)
    eta, factors = ref.random_graph(rng, 10, 6, feasible=True, integer=integer, scale=scale)
    mu, ps = ref.solve_exact(eta, factors)
    assert ref.violation(factors, mu, ps) < 1e-12
    assert ref.linear_gap(eta, factors, mu, ps) < 1e-11 * max(1, scale)
    # and another feasible point does not pass, by at least its squared distance
    there, others = ref.solve_exact(rng.normal(size=10), factors)
    gain = ref.objective(eta, factors, mu, ps) - ref.objective(eta, factors, there, others)
    distance = np.sum((there - mu) ** 2)
    assert gain >= distance / 2 - 1e-11 * max(1, scale)
    assert ref.linear_gap(eta, factors, there, others) >= distance - 1e-9 * max(1, scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_objective_against_a_linear_program(seed):
    """No feasible point gains to first order, which proves the maximum of a concave function; the constraints
    and the objective are written here once more. (SLSQP of SciPy 1.18 reports success far below the maximum.)
    """
    kinds = [kind for kind in ref.KINDS if kind not in ("dep_tree", "matching")]
    eta, factors = ref.random_graph(np.random.default_rng(seed), 5, 2, kinds=kinds, feasible=True)
    mu, ps = ref.solve_exact(eta, factors)
    ends = np.cumsum([len(eta), *(f.M.shape[1] for f in factors)])

    def agreement(x):
        mu, ps = x[: len(eta)], [x[a:b] for a, b in itertools.pairwise(ends)]
        rows = [np.append(mu[f.variables] - f.M @ p, p.sum() - 1) for f, p in zip(factors, ps)]
        return np.concatenate(rows)

    zero = agreement(np.zeros(ends[-1]))
    jacobian = np.array([agreement(x) - zero for x in np.eye(ends[-1])]).T
    slope = np.concatenate([eta] + [f.N.T @ f.scores for f in factors])
    found, in_mu = np.concatenate([mu, *ps]), np.arange(ends[-1]) < len(eta)
    assert np.max(np.abs(agreement(found))) < 1e-12 and found.min() > -1e-12 and found.max() < 1 + 1e-12
    assert ref.objective(eta, factors, mu, ps) == pytest.approx(slope @ found - mu @ mu / 2, abs=1e-12)

    def gain(x):
        gradient = slope - in_mu * x
        best = linprog(-gradient, A_eq=jacobian, b_eq=-zero, bounds=(0, 1), method="highs")
        assert best.success
        return gradient @ (best.x - x)

    assert gain(found) < 1e-9
    # and a feasible point that is not the maximum is told from it
    corner = linprog(slope, A_eq=jacobian, b_eq=-zero, bounds=(0, 1), method="highs").x
    if np.max(np.abs(corner - found)[in_mu]) > 1e-6:
        assert gain(corner) > 1e-9


def test_variables_in_no_factor_are_clipped():
    eta = np.array([-0.5, 0.25, 3.0, 0.7])
    mu, ps = ref.solve_exact(eta, [])
    assert np.array_equal(mu, np.clip(eta, 0, 1)) and ps == []
    mu, _ = ref.solve_exact(eta, [ref.make_factor("at_most_one", [0, 1])])
    assert np.max(np.abs(mu - [0, 0.25, 1, 0.7])) < 1e-14
    assert ref.solve_exact(eta, [], quad=0.0) == pytest.approx(0.25 + 3 + 0.7)


@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_scores_and_quadratic(seed):
    rng = np.random.default_rng(seed)
    eta, factors = ref.random_graph(rng, 9, 4, feasible=True)
    mu, ps = ref.solve_exact(eta, factors)
    for f in factors:
        f.scores *= 8
    assert np.max(np.abs(ref.solve_exact(8 * eta, factors, quad=8.0)[0] - mu)) < 1e-12
    value = ref.solve_exact(8 * eta, factors, quad=0.0)
    assert value >= ref.objective(8 * eta, factors, mu, ps, quad=0.0) - 1e-9
    small, parts = ref.solve_exact(8 * eta, factors, quad=1e-4)  # close to LP-MAP: at most d / 2 * quad below
    assert value - 1e-3 <= ref.objective(8 * eta, factors, small, parts, quad=0.0) <= value + 1e-9


def test_lp_map_of_one_factor_is_its_best_structure():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        eta, (f,) = ref.random_graph(rng, 9, 1)
        free = np.setdiff1d(np.arange(9), f.variables)
        best = np.max(f.M.T @ eta[f.variables] + f.N.T @ f.scores) + np.maximum(eta[free], 0).sum()
        assert ref.solve_exact(eta, [f], quad=0.0) == pytest.approx(best, abs=1e-9)


# Infeasible and barely feasible graphs
