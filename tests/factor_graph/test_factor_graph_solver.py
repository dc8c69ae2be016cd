"""How factor graphs are solved: Algorithm 1 step by step, exits, warm starts, batches, -inf, infeasible
graphs, LP-MAP."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference_factor_graph import algorithm_1, build, forbid, random_graph
from scipy.optimize import nnls

import sparsekit as sk
from sparsekit._solver.outcome import INFEASIBLE as NONE

seeds = st.integers(0, 2**32 - 1)


def shared(seed, **options):
    """A random graph in which some variable is in two factors: otherwise nothing is iterated."""
    for attempt in range(seed, seed + 1000):
        eta, factors = random_graph(attempt, **options)
        if factors and np.bincount(np.concatenate([f.variables for f in factors])).max() > 1:
            return eta, factors
    raise AssertionError("no such graph")


def matching(seed=0, n=6):
    graph = sk.FactorGraph()
    u = graph.variable(np.random.default_rng(seed).normal(size=(n, n)))
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    return graph, u


# Algorithm 1


@pytest.mark.parametrize("gamma", [0.3, 2.0])
def test_iterations_of_algorithm_1(gamma):
    for seed in range(0, 3000, 300):
        eta, factors = shared(seed, scale=1.0)
        graph, _, made = build(eta, factors)
        steps = algorithm_1(eta, factors, gamma, np.clip(eta, 0, 1), 6)
        for t, (mu, copies) in enumerate(steps, start=1):
            solution = graph.solve(
                exact=False, max_iter=t, step_size=gamma, adaptive=False, relaxation=1.0, inner_iter=500,
                tol_primal=1e-300, tol_dual=1e-300,
            )  # fmt: skip
            np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-10)
            for factor, x in zip(made, copies):
                np.testing.assert_allclose(solution.local(factor)["x"].ravel(), x, rtol=0, atol=1e-9)
            if solution.nit == t:  # else it met the solution before
                primal = sum(
                    np.sum((mu[f.variables] - x) ** 2 / degree(factors, f)) for f, x in zip(factors, copies)
                )
                assert abs(solution.primal_residual - np.sqrt(primal)) < 1e-9


def degree(factors, f):
    return np.bincount(np.concatenate([g.variables for g in factors]))[f.variables]


@pytest.mark.parametrize(
    "options",
    [
        {"exact": False, "adaptive": False, "relaxation": 1.0},
        {"exact": False, "adaptive": False, "relaxation": 1.0, "inner_iter": 1},
        {"exact": False, "adaptive": False, "relaxation": 1.8, "step_size": 0.5},
        {"exact": False, "relaxation": 0.7},
        {"exact": False, "step_size": 30.0},
        {"exact": True, "step_size": 0.02, "relaxation": 1.0},
        {"exact": True, "adaptive": False, "step_size": 5.0},
        {"exact": True, "inner_iter": 1},
    ],
    ids=lambda options: "-".join(f"{key}={value}" for key, value in options.items()),
)
def test_variants_converge_to_the_solution(options):
    passes = 0
    for seed in range(0, 4000, 400):
        eta, factors = shared(seed, scale=1.0)
        mu, _ = ref.solve_exact(eta, factors)
        solution = build(eta, factors)[0].solve(**options, max_iter=50_000, tol_primal=1e-11, tol_dual=1e-11)
        assert solution.status == 0
        np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-8)
        passes += solution.nit
    assert passes > 20


def test_exits():
    graph, _ = matching()
    whole = graph.solve()
    assert whole.status == 0 and whole.success and "onverged" in whole.message
    assert 0 < whole.nit < 200 and whole.optimality <= 1e-9 and whole.primal_residual == whole.optimality
    for exact in (True, False):
        for most in (1, 2, 3):
            solution = graph.solve(max_iter=most, exact=exact)
            assert solution.status == 1 and not solution.success and "max_iter" in solution.message
            assert solution.nit == most and solution.optimality > 1e-6
            # not the solution, but never out of the box
            assert solution.x.min() >= 0 and solution.x.max() <= 1
            assert np.isfinite(solution.fun)
    rough = graph.solve(exact=False, tol_primal=1e-3, tol_dual=1e-3)
    fine = graph.solve(exact=False, tol_primal=1e-9, tol_dual=1e-9)
    assert rough.status == fine.status == 0 and rough.nit < fine.nit
    assert 1e-6 < abs(rough.x - whole.x).max() < 0.1 and abs(fine.x - whole.x).max() < 1e-7


# Warm starts


def test_warm_start():
    for seed in range(0, 2000, 200):
        eta, factors = shared(seed, scale=1.0)
        graph, u, made = build(eta, factors)
        old = graph.solve(exact=False, max_iter=20_000)
        old_x = old.x.copy()
        again = graph.solve(warm_start=True, exact=False)
        np.testing.assert_allclose(again.x, old.x, rtol=0, atol=1e-6)
        assert again.nit <= max(old.nit // 2, 5)
        for refused, argument in ((old.vjp, eta), (old.jvp, eta), (old.local, made[0])):
            with pytest.raises(ValueError, match="warm_start"):
                refused(argument)
        near = eta + 1e-3 * np.random.default_rng(seed).normal(size=len(eta))
        mu, _ = ref.solve_exact(near, factors)
        graph.set_scores(u, near)
        warm = graph.solve(warm_start=True)
        np.testing.assert_allclose(warm.x, mu, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(old.x, old_x)  # what was handed out stays
        cold = graph.solve()
        np.testing.assert_allclose(cold.x, mu, rtol=0, atol=1e-8)
        np.testing.assert_allclose(warm.vjp(eta).scores, cold.vjp(eta).scores, rtol=0, atol=1e-7)


def test_warm_start_from_anything():
    graph, u = matching()
    right, eta = graph.solve().x, graph.scores.reshape(u.shape)
    for before in (
        lambda: graph.map(),
        lambda: graph.map(exact=False),
        lambda: graph.solve(max_iter=1),
        lambda: graph.solve(exact=False, step_size=100.0),
    ):
        before()
        warm = graph.solve(warm_start=True)
        assert warm.status == 0
        np.testing.assert_allclose(warm.x, right, rtol=0, atol=1e-8)
    graph.set_scores(u[0], np.full(6, -np.inf))
    assert graph.solve().status == NONE
    graph.set_scores(u, eta)
    warm = graph.solve(warm_start=True)
    assert warm.status == 0
    np.testing.assert_allclose(warm.x, right, rtol=0, atol=1e-8)
    graph.add(sk.Or(u[:, 0]))  # the plan has changed: there is nothing to start from
    np.testing.assert_allclose(graph.solve(warm_start=True).x, graph.solve().x, rtol=0, atol=1e-12)


# Many graphs


def test_batch_is_one_by_one():
    eta, factors = shared(500, scale=1.0)
    rng = np.random.default_rng(0)
    graph, u, made = build(eta, factors)
    extra = graph.additional_scores
    scores = eta + rng.normal(size=(20, len(eta)))
    extras = extra + 0.5 * rng.normal(size=(20, len(extra)))
    assert len(extra)
    for given_extras in (None, extra + 1, extras):
        batch = graph.solve_batch(scores, given_extras)
        for n_jobs in (2, -1):
            threaded = sk.lp_sparsemap(graph, scores, given_extras, n_jobs=n_jobs)
            np.testing.assert_array_equal(threaded.x, batch.x)
            np.testing.assert_array_equal(threaded.additional, batch.additional)
            np.testing.assert_array_equal(threaded.nit, batch.nit)
            np.testing.assert_array_equal(threaded.vjp(scores, n_jobs=2).scores, batch.vjp(scores).scores)
        used = np.broadcast_to(extra if given_extras is None else given_extras, extras.shape)
        for i in range(20):
            for f, h in zip(factors, made):
                if len(f.scores):
                    f.scores = batch._run.layout and used[i][start(graph, h) :][: len(f.scores)]
            one = build(scores[i], factors)[0].solve()
            np.testing.assert_array_equal(batch.x[i], one.x)
            np.testing.assert_array_equal(batch[u][i], one.x)
            assert batch.status[i] == one.status == 0 and batch.nit[i] == one.nit
            mu, _ = ref.solve_exact(scores[i], factors)
            np.testing.assert_allclose(one.x, mu, rtol=0, atol=1e-8)


def start(graph, factor):
    number = graph.factors.index(factor)
    return sum(f.n_additional for f in graph.factors[:number])


def test_batch_reads_by_view_and_factor():
    graph, u = matching()
    pairs = sk.Pair(u[:, :2], np.arange(6.0))
    tags = sk.Sequence(u[:2, :2], np.eye(2))
    graph.add(pairs)
    graph.add(tags)
    batch = graph.solve_batch(np.random.default_rng(0).normal(size=(4, 2, 18)))  # (4, 36) as well
    assert batch[u].shape == (4, 6, 6) and batch[u[0, 0]].shape == (4,)
    assert batch[pairs].shape == (4, 6) and batch[tags].shape == (4, 1, 2, 2)
    gradients = batch.vjp(np.ones((4, 36)))
    assert gradients[u.T].shape == (4, 6, 6) and gradients[pairs].shape == (4, 6)
    assert gradients[tags].shape == (4, 2, 2)
    one = graph.solve()
    assert one[tags].shape == (1, 2, 2) and one.vjp(np.ones(36))[tags].shape == (2, 2)
    single = sk.Pair(u[0, 2:4], 0.5)
    graph.add(single)
    assert np.shape(graph.solve()[single]) == () and np.shape(
        graph.solve_batch(np.zeros((3, 36)))[single]
    ) == (3,)


def test_graphs_of_different_shapes():
    graphs = [build(*shared(seed))[0] for seed in range(0, 2000, 200)]
    one_by_one = [graph.solve() for graph in graphs]
    for n_jobs in (None, 2):
        found = sk.lp_sparsemap(graphs, n_jobs=n_jobs)
        for solution, other in zip(found, one_by_one):
            np.testing.assert_array_equal(solution.x, other.x)
            np.testing.assert_array_equal(solution.additional, other.additional)
            assert solution.fun == other.fun and solution.status == other.status and solution.nit == other.nit
            np.testing.assert_array_equal(solution.vjp(other.x).scores, other.vjp(other.x).scores)
    same = sk.lp_sparsemap([graphs[0], graphs[0]], n_jobs=2)
    np.testing.assert_array_equal(same[0].x, same[1].x)
    np.testing.assert_array_equal(sk.lp_sparsemap(graphs[1]).x, one_by_one[1].x)


# Infeasible graphs, forbidden variables


def assert_infeasible(solution, of_scores=False):
    assert solution.status == NONE and not solution.success and "nfeasible" in solution.message
    assert np.isnan(solution.x).all() and np.isnan(solution.additional).all() and np.isnan(solution.fun)
    assert of_scores or solution.optimality > 1e-6
    with pytest.raises(ValueError, match=r"nfeasible|LP-MAP"):
        solution.vjp(np.zeros(solution.x.shape))


@given(seeds)
@settings(max_examples=40)
def test_random_infeasible_graphs(seed):
    eta, factors = random_graph(seed, feasible=False, most=9)
    mu, _ = ref.solve_exact(eta, factors)
    graph = build(eta, factors)[0]
    solution = graph.solve()
    if mu is not None:
        assert solution.status == 0
        np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-8)
        return
    assert_infeasible(solution)
    for solve in (graph.solve, graph.map):
        assert_infeasible(solve(exact=False))
    assert_infeasible(graph.map())
    assert_infeasible(graph.solve(warm_start=True))
    batch = graph.solve_batch(np.stack([eta, 0.0 * eta]))
    assert batch.status.tolist() == [NONE, NONE] and np.isnan(batch.x).all()


def drop_scores(rng, eta, factors):
    eta = np.where(rng.random(len(eta)) < 0.2, -np.inf, eta)
    for f in factors:
        f.scores = np.where(rng.random(len(f.scores)) < 0.2, -np.inf, f.scores)
    return eta


@given(seeds)
@example(227)  # rounding times -inf
@example(435832)  # infeasible by additional scores
@settings(max_examples=70)
def test_forbidden(seed):
    rng = np.random.default_rng(seed)
    eta, factors = random_graph(seed)
    eta = drop_scores(rng, eta, factors)
    finite, allowed = forbid(eta, factors)
    graph, _, made = build(eta, factors)
    empty = any(f.M.shape[1] == 0 for f in allowed)
    mu, ps = (None, None) if empty else ref.solve_exact(finite, allowed)
    solution = graph.solve()
    if mu is None:
        assert_infeasible(solution, of_scores=True)
        return
    assert solution.status == 0 and graph.solve(exact=False).status != NONE
    np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-8)
    assert not solution.x[np.isneginf(eta)].any()
    value = ref.objective(finite, allowed, mu, ps)
    assert abs(solution.fun - value) < 1e-7 * (1 + abs(finite).sum())
    for f, h in zip(factors, made):
        assert abs(np.ravel(solution[h])[np.isneginf(f.scores)]).max(initial=0) < 1e-9
    best = graph.map()
    assert best.status == 0
    assert abs(best.fun - ref.solve_exact(finite, allowed, quad=0.0)) < 1e-7 * (1 + abs(finite).sum())


def test_forbidden_whatever_the_coefficients():
    """A finite loss for -inf does not suffice where a little of what is forbidden allows much of the rest."""
    graph = sk.FactorGraph()
    u = graph.variable([-np.inf, 10.0])
    graph.add(sk.Knapsack(u, [20.0, 1.0], 20.0, negated=[True, False]))  # u[1] <= 20 u[0]
    np.testing.assert_array_equal(graph.solve()[u], [0, 0])
    graph = sk.FactorGraph()
    a, b = graph.variable(np.r_[-np.inf, np.zeros(8), 10]), graph.variable(np.zeros(9))
    for i in range(9):  # b = a, and the next a is their sum: doubled at every link
        graph.add(sk.XorOut([a[i], b[i], a[i + 1]]))
        graph.add(sk.XorOut([a[i], b[i]]))
    solution = graph.solve()
    assert solution.status == 0
    np.testing.assert_allclose(solution.x, 0, atol=1e-9)


def test_an_unconverged_iterate_certifies_nothing():
    eta = np.random.default_rng(0).normal(size=(4, 4))
    eta[0, 1] = eta[2, 3] = -np.inf
    graph = sk.FactorGraph()
    u = graph.variable(eta)
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    for most in range(1, 12):
        assert graph.solve(max_iter=most, exact=False, step_size=3.0).status == 1


# LP-MAP


@given(seeds)
@settings(max_examples=50)
def test_map(seed):
    eta, factors = random_graph(seed)
    value, scale = ref.solve_exact(eta, factors, quad=0.0), 1 + abs(eta).sum()
    graph = build(eta, factors)[0]
    solution = graph.map()
    assert solution.status == 0
    assert abs(solution.fun - value) < 1e-8 * scale
    assert solution.x.min() >= -1e-9 and solution.x.max() <= 1 + 1e-9
    for f in factors:  # its copies are mixtures of the factor's structures
        mixed, here = np.vstack([f.M, np.ones(f.M.shape[1])]), np.append(solution.x[f.variables], 1.0)
        assert nnls(mixed, here)[1] < 1e-8
    with pytest.raises(ValueError, match="LP-MAP"):
        solution.vjp(eta)
    ad3 = graph.map(exact=False, max_iter=20_000, tol_primal=1e-7, tol_dual=1e-7)
    assert ad3.status == 0 and abs(ad3.fun - value) < 1e-4 * scale


def test_map_of_different_sizes():
    """Small and large scores, and variables in no factor, are no more than others to be maximised."""
    graph = sk.FactorGraph()
    u, free = graph.variable([[1000, 0], [0.001, 0]]), graph.variable([1e-4, -1e-4, 5.0])
    graph.add(sk.Xor(u))
    solution = graph.map()
    assert solution.status == 0
    np.testing.assert_allclose(solution[u], [[1, 0], [1, 0]], atol=1e-8)
    np.testing.assert_allclose(solution[free], [1, 0, 1], atol=1e-8)
    assert graph.map(warm_start=True).nit <= solution.nit
    # on or off, also where there is no factor at all
    alone = sk.FactorGraph()
    u = alone.variable([0.3, -0.3, 2.0])
    for exact in (True, False):
        np.testing.assert_array_equal(graph.map(exact=exact)[free], [1.0, 0.0, 1.0])
        np.testing.assert_array_equal(alone.map(exact=exact)[u], [1.0, 0.0, 1.0])
