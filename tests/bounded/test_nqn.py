"""minimize_nqn and its parts, against the reference, dense matrices and SciPy."""

import tracemalloc

import numpy as np
import pytest
import reference_nqn as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsekit import minimize_nqn
from sparsekit._bounded.solver import nqn
from sparsekit._bounded.solver.nqn import ACTIVE_SETS, NQNOptions, minimize
from sparsekit._cython.shared import _box, _pairs
from sparsekit.optimize import nonsmooth_problems

N = 30


def box(rng, n=N):
    """Bounds of all kinds, and a point inside with entries on both of them."""
    lower, upper = -rng.uniform(0.1, 1.0, n), rng.uniform(0.1, 1.0, n)
    kind = rng.integers(0, 5, n)
    lower[kind == 0], upper[kind == 1] = -np.inf, np.inf
    upper[kind == 2] = lower[kind == 2]  # fixed
    x = np.clip(rng.uniform(-1.5, 1.5, n), lower, upper)
    return lower, upper, x


def filled(rng, memory, n_pairs, n=N):
    """Pairs of a random positive matrix, and the same as a list of (s, y)."""
    pairs, kept = _pairs.Pairs(n, memory), []
    A = rng.standard_normal((n, n))
    H = A @ A.T / n + 0.5 * np.eye(n)
    x, zero = rng.standard_normal(n), np.zeros(n)
    for _ in range(n_pairs):
        s = rng.standard_normal(n)
        y = H @ s
        pairs.put(x, x + s, zero, y)
        kept = [*kept, (x + s - x, y)][-memory:]
    return pairs, kept


@pytest.mark.parametrize("memory, n_pairs", [(1, 1), (5, 0), (5, 3), (5, 5), (5, 17), (20, 23)])
@pytest.mark.parametrize("theta", [1e-3, 1.0, 300.0])
@pytest.mark.parametrize("capacity", [64, 2])  # the second one has the arrays grow
def test_direction(memory, n_pairs, theta, capacity, monkeypatch):
    monkeypatch.setattr(_pairs, "INITIAL_CAPACITY", capacity)
    rng = np.random.default_rng(memory + n_pairs)
    pairs, kept = filled(rng, memory, n_pairs)
    B = reference.bfgs_matrix(kept, theta, N)
    for share in (1.0, 0.5, 0.7, 0.0, 0.1):  # the Gram matrix follows the free set
        free = (rng.random(N) < share).astype(np.uint8)
        g, p = rng.standard_normal(N), np.full(N, np.nan)
        pairs.set_free(free)
        assert pairs.direction(g, theta, p)
        np.testing.assert_allclose(p, reference.subspace_step(B, g, free == 0), rtol=1e-7, atol=1e-9)
        # and so does a new pair
        x, s = rng.standard_normal(N), rng.standard_normal(N)
        pairs.put(x, x + s, np.zeros(N), 2.0 * s)
        kept = [*kept, (x + s - x, 2.0 * s)][-memory:]
        B = reference.bfgs_matrix(kept, theta, N)
        assert pairs.direction(g, theta, p)
        np.testing.assert_allclose(p, reference.subspace_step(B, g, free == 0), rtol=1e-7, atol=1e-9)
    least = min(y @ y / (s @ y) for s, y in kept)
    np.testing.assert_allclose(pairs.smallest_curvature(), least, rtol=1e-10)
    pairs.clear()
    pairs.set_free(free)
    pairs.direction(g, theta, p)
    np.testing.assert_allclose(p, np.where(free, -g / theta, 0.0))
    assert len(pairs) == 0 and pairs.smallest_curvature() == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_passes_over_vectors(seed):
    rng = np.random.default_rng(seed)
    lower, upper, x = box(rng)
    g, p, out = rng.standard_normal(N), rng.integers(-1, 2, N) * rng.random(N), np.empty(N)
    g[::4] = 0.0  # binds at either bound
    free = np.empty(N, dtype=np.uint8)
    binding = reference.binding(x, g, lower, upper)
    assert _box.free_variables(x, g, lower, upper, free) == np.sum(~binding)
    np.testing.assert_array_equal(free, ~binding)
    part = reference.feasible_part(x, p, lower, upper)
    slope = _box.feasible_part(x, p, g, lower, upper, out)
    np.testing.assert_array_equal(out, part)
    np.testing.assert_allclose(slope, g @ part, atol=1e-12)
    np.testing.assert_allclose(_box.feasible_slope(x, p, g, lower, upper), g @ part, atol=1e-12)
    expected = np.abs(reference.feasible_part(x, -g, lower, upper)).max()
    np.testing.assert_allclose(_box.optimality(x, g, lower, upper), expected)
    _box.trial_point(x, part, 0.7, lower, upper, out)
    np.testing.assert_allclose(out, np.clip(x + 0.7 * part, lower, upper), rtol=1e-14, atol=1e-15)
    assert (out >= lower).all() and (out <= upper).all()
    moving = part != 0
    distance = np.where(part > 0, upper - x, x - lower)[moving] / np.abs(part[moving])
    np.testing.assert_allclose(_box.longest_step(x, part, lower, upper), distance.max(initial=0.0))
    s, y = p - x, out - g
    np.testing.assert_allclose(_pairs.pair_norms(x, p, g, out), [s @ y, s @ s, y @ y], atol=1e-12)


def test_corrections_are_those_of_algorithm_3():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lower, upper, x = box(rng)
        pairs, kept = filled(rng, 5, 4)
        g, p, free = 5 * rng.standard_normal(N), np.empty(N), np.empty(N, dtype=np.uint8)
        _box.free_variables(x, g, lower, upper, free)
        pairs.set_free(free)
        pairs.direction(g, 1.3, p)
        count = 0
        while pairs.correct(x, p, lower, upper):
            pairs.direction(g, 1.3, p)
            count += 1
        B = reference.bfgs_matrix(kept, 1.3, N)
        active, expected, t = reference.correct_active_set(
            x, free == 0, lambda a, B=B, g=g: reference.subspace_step(B, g, a), lower, upper
        )
        np.testing.assert_array_equal(pairs.free_set(), ~active)
        np.testing.assert_allclose(p, expected, rtol=1e-7, atol=1e-9)
        assert count == t


@pytest.mark.parametrize("active_set", ACTIVE_SETS)
def test_first_steps_are_the_references(active_set):
    for problem in nonsmooth_problems(12):
        if problem.name == "Active_Faces" and active_set.endswith("subgradient"):
            continue  # the least point of the hull is 0: what (3.9) holds hangs on signs of rounding errors
        x0 = problem.starts(1)[0]
        lower, upper = problem.bounds.lb.astype(float), problem.bounds.ub.astype(float)
        x0 = np.clip(x0, lower, upper)
        thesis = NQNOptions(
            gtol=0.0,
            ftol=-1.0,
            max_iter=4,
            active_set=active_set,
            initial_scale="gradient",
            longer=np.inf,
            interpolate=False,
        )
        ours = minimize(problem.fun_and_jac, x0, lower, upper, thesis)
        theirs = reference.nqn(problem.fun_and_jac, x0, lower, upper, active_set, max_iter=4)
        if not np.isfinite(theirs.f):
            continue
        assert ours.nfev == theirs.nfev, problem
        np.testing.assert_allclose(ours.fun, theirs.f, rtol=1e-6, err_msg=repr(problem))


@pytest.mark.parametrize("active_set", ACTIVE_SETS)
def test_known_optima_of_the_nonsmooth_problems(active_set):
    solved = []
    for problem in nonsmooth_problems(20):
        if problem.bounded_minimum is None:
            continue
        x0 = problem.starts(1)[0]
        result = minimize_nqn(
            problem.fun_and_jac, x0, jac=True, bounds=problem.bounds, active_set=active_set, max_fun=2000,
            gtol=0.0, ftol=-1.0,
        )  # fmt: skip
        assert (result.x >= problem.bounds.lb).all() and (result.x <= problem.bounds.ub).all()
        assert result.fun == problem.fun(result.x)
        start = problem.fun(np.clip(x0, problem.bounds.lb, problem.bounds.ub))
        solved.append(result.fun - problem.bounded_minimum < 1e-4 * (start - problem.bounded_minimum))
    # Nesterov_1 has no local method that finds its minimum
    assert len(solved) == 14 and sum(solved) >= 13


@pytest.mark.parametrize("active_set", ["corrected", "corrected-subgradient"])
def test_buffers_grow_with_the_number_of_pairs(active_set):
    """What is asked for here would take 7 TiB."""

    def fun(x):
        return np.abs(x).sum() + 0.5 * x @ x, np.sign(x) + x

    x0, options = np.arange(1.0, 6.0), dict(jac=True, active_set=active_set)
    tracemalloc.start()
    try:
        many = minimize_nqn(fun, x0, memory=10**6, n_gradients=10**30, **options)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    some = minimize_nqn(fun, x0, memory=500, n_gradients=500, **options)
    np.testing.assert_array_equal(many.x, some.x)
    assert many.nit == some.nit > 2


def test_restarts_drop_a_singular_matrix(monkeypatch):
    """Pairs whose directions lead nowhere do not end the run: it begins again without them."""
    curvature = np.geomspace(1.0, 100.0, N)
    real = nqn.choose_direction
    spoilt = []

    def no_direction_with_pairs(state, opts):
        if state.nit == 3 and len(state.pairs):
            spoilt.append(len(state.pairs))
            return 0.0
        return real(state, opts)

    monkeypatch.setattr(nqn, "choose_direction", no_direction_with_pairs)
    result = minimize_nqn(lambda z: (0.5 * z @ (curvature * z), curvature * z), np.ones(N), jac=True)
    assert spoilt == [3] and result.n_restarts == 1
    assert result.success and result.fun < 1e-10 and result.nit > 4
