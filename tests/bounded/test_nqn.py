"""minimize_nqn and its parts, against the reference, dense matrices and SciPy."""

import tracemalloc

import numpy as np
import pytest
import reference_nqn as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

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


@pytest.mark.parametrize("variant", reference.VARIANTS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_reference_solves_quadratics_with_bounds(variant, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((12, 8)), rng.standard_normal(12)
    lower, upper = rng.uniform(-0.5, 0.1, 8), rng.uniform(0.1, 0.5, 8)
    lower[rng.random(8) < 0.3], upper[rng.random(8) < 0.3] = -np.inf, np.inf

    def fun_and_jac(x):
        r = A @ x - b
        return 0.5 * r @ r, A.T @ r

    found = reference.nqn(fun_and_jac, np.zeros(8), lower, upper, variant, gtol=1e-6, max_iter=500)
    best = optimize.lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14)
    assert found.status == reference.STATIONARY and found.nit < 60
    np.testing.assert_allclose(found.f, best.cost, rtol=1e-11)
    np.testing.assert_allclose(found.x, best.x, atol=1e-5)


def test_smooth_problems_take_as_many_evaluations_as_scipy():
    """In the median about as many as L-BFGS-B takes, and fewer than by halves and doubles."""
    rng = np.random.default_rng(0)
    A, y, scales = rng.standard_normal((80, 40)), np.sign(rng.standard_normal(80)), np.logspace(-2, 2, 50)

    def logistic(w):
        z = y * (A @ w)
        return np.logaddexp(0, -z).sum() + 0.05 * w @ w, -A.T @ (y / (1 + np.exp(z))) + 0.1 * w

    def ellipse(x):
        return 0.5 * scales @ x**2 - x.sum(), scales * x - 1.0

    def rosenbrock(x):
        return optimize.rosen(x), optimize.rosen_der(x)

    ratios, gains = [], []
    for fun, x0, low, high in (
        (logistic, np.zeros(40), -np.inf, np.inf), (logistic, np.zeros(40), -0.2, 0.3),
        (ellipse, np.zeros(50), -1.0, 0.1), (ellipse, np.ones(50), -np.inf, 20.0),
        (rosenbrock, np.tile([-1.2, 1.0], 2), -np.inf, np.inf), (rosenbrock, np.full(20, 0.3), -2.0, 0.8),
        (rosenbrock, np.full(20, -0.5), -2.0, 3.0),
    ):  # fmt: skip
        lower, upper = np.full(len(x0), low), np.full(len(x0), high)
        ours, halving = (
            minimize(fun, x0, lower, upper, NQNOptions(gtol=1e-6, ftol=-1.0, interpolate=interpolate))
            for interpolate in (True, False)
        )
        theirs = optimize.minimize(
            fun, x0, jac=True, bounds=optimize.Bounds(lower, upper), method="L-BFGS-B",
            options=dict(gtol=1e-6, ftol=0, maxcor=20, maxiter=10**4, maxfun=10**5),
        )  # fmt: skip
        assert ours.status == halving.status == 0 and ours.optimality <= 1e-6
        np.testing.assert_allclose(ours.fun, theirs.fun, rtol=1e-8, atol=1e-9)
        ratios.append(ours.nfev / theirs.nfev)
        gains.append(ours.nfev / halving.nfev)
    assert np.median(ratios) <= 1.1 and np.mean(gains) < 1.0


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


def test_gradients_survive_the_growth_of_buffers(monkeypatch):
    rng, n = np.random.default_rng(0), 7
    rows, kept = nqn.RecentGradients(n, 5, np.empty(0)), []
    monkeypatch.setattr(nqn.NQNOptions, "n_gradients", 2)
    growing = nqn.RecentGradients(n, 5, np.empty(0))
    for _ in range(12):
        g = rng.standard_normal(n)
        rows.put(g)
        growing.put(g)
        kept = [*kept, g][-5:]
        np.testing.assert_array_equal(growing.least(), rows.least())
        sizes = np.sort(np.diag(growing.gram[: growing.count, : growing.count]))
        np.testing.assert_allclose(sizes, np.sort([g @ g for g in kept]))
    assert rows.rows.shape == growing.rows.shape == (5, n)


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
