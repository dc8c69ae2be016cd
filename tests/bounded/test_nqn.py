"""minimize_nqn and its parts, against the reference, dense matrices, SciPy and closed forms."""

import tracemalloc

import numpy as np
import pytest
import reference_nqn as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from sparsekit import minimize_nqn
from sparsekit._bounded import nqn
from sparsekit._bounded.nqn import ACTIVE_SETS, NQNOptions, minimize
from sparsekit._cython import _pairs
from sparsekit._solver import outcome
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
@pytest.mark.parametrize("room", [64, 2])  # the second one has the arrays grow
def test_direction(memory, n_pairs, theta, room, monkeypatch):
    monkeypatch.setattr(_pairs, "ROOM", room)
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
    assert _pairs.free_variables(x, g, lower, upper, free) == np.sum(~binding)
    np.testing.assert_array_equal(free, ~binding)
    part = reference.feasible_part(x, p, lower, upper)
    slope = _pairs.feasible_part(x, p, g, lower, upper, out)
    np.testing.assert_array_equal(out, part)
    np.testing.assert_allclose(slope, g @ part, atol=1e-12)
    np.testing.assert_allclose(_pairs.feasible_slope(x, p, g, lower, upper), g @ part, atol=1e-12)
    expected = np.abs(reference.feasible_part(x, -g, lower, upper)).max()
    np.testing.assert_allclose(_pairs.optimality(x, g, lower, upper), expected)
    _pairs.trial_point(x, part, 0.7, lower, upper, out)
    np.testing.assert_allclose(out, np.clip(x + 0.7 * part, lower, upper), rtol=1e-14, atol=1e-15)
    assert (out >= lower).all() and (out <= upper).all()
    moving = part != 0
    room = np.where(part > 0, upper - x, x - lower)[moving] / np.abs(part[moving])
    np.testing.assert_allclose(_pairs.longest_step(x, part, lower, upper), room.max(initial=0.0))
    s, y = p - x, out - g
    np.testing.assert_allclose(_pairs.pair_norms(x, p, g, out), [s @ y, s @ s, y @ y], atol=1e-12)


def test_corrections_are_those_of_algorithm_3():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lower, upper, x = box(rng)
        pairs, kept = filled(rng, 5, 4)
        g, p, free = 5 * rng.standard_normal(N), np.empty(N), np.empty(N, dtype=np.uint8)
        _pairs.free_variables(x, g, lower, upper, free)
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


@pytest.mark.parametrize("bounds", [None, "box"])
def test_smooth_problems_take_as_many_evaluations_as_scipy(bounds):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((80, 40)), np.sign(rng.standard_normal(80))

    def logistic(w):
        z = y * (A @ w)
        return np.logaddexp(0, -z).sum() + 0.05 * w @ w, -A.T @ (y / (1 + np.exp(z))) + 0.1 * w

    box_ = None if bounds is None else [(-0.2, 0.3)] * 40
    ours = minimize_nqn(logistic, np.zeros(40), jac=True, bounds=box_, gtol=1e-7, ftol=-1)
    theirs = optimize.minimize(
        logistic, np.zeros(40), jac=True, bounds=box_, method="L-BFGS-B",
        options=dict(gtol=1e-7, ftol=1e-16, maxcor=20),
    )  # fmt: skip
    assert ours.status == 0 and ours.optimality <= 1e-7
    np.testing.assert_allclose(ours.fun, theirs.fun, rtol=1e-10)
    assert ours.nfev <= 1.1 * theirs.nfev + 3


def corner(x):
    """(3.6) of the thesis."""
    r, sign = x[0] + 0.1 * x[1], np.sign(x[0] - x[1])
    return abs(x[0] - x[1]) + 0.5 * r**2, np.array([sign + r, 0.1 * r - sign])


BOUNDS = [(None, -0.5), (None, None)]


def test_as_a_method_of_scipy():
    for bounds in (BOUNDS, optimize.Bounds([-np.inf, -np.inf], [-0.5, np.inf])):
        result = optimize.minimize(
            corner, [-0.7, 3.0], jac=True, bounds=bounds, method=minimize_nqn, options={"ftol": 1e-12}
        )
        np.testing.assert_allclose(result.x, [-0.5, -0.5], atol=1e-6)
    result = optimize.minimize(
        lambda x: corner(x)[0], [-0.7, 3.0], jac=lambda x: corner(x)[1], bounds=BOUNDS, method=minimize_nqn
    )
    np.testing.assert_allclose(result.x, [-0.5, -0.5], atol=1e-5)


def test_forms_of_the_gradient_and_arguments():
    def fun(x, a, b):
        return np.sum(a * (x - b) ** 2)

    def grad(x, a, b):
        return 2 * a * (x - b)

    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.3, -2.0, 5.0])
    bounds = [(0, 1), (-1, None), (None, 4)]
    expected = [0.3, -1.0, 4.0]
    exact = minimize_nqn(fun, np.zeros(3), (a, b), grad, bounds)
    pair = minimize_nqn(lambda x, *c: (fun(x, *c), list(grad(x, *c))), np.zeros(3), (a, b), True, bounds)
    np.testing.assert_allclose(exact.x, expected, atol=1e-7)
    np.testing.assert_array_equal(exact.x, pair.x)
    inside = []

    def watched(x, a, b):
        inside.append(x.copy())
        return fun(x, a, b)

    differences = minimize_nqn(watched, np.zeros(3), (a, b), None, bounds)
    np.testing.assert_allclose(differences.x, expected, atol=1e-6)
    assert differences.nfev == len(inside) > exact.nfev
    inside = np.array(inside)
    assert (inside[:, 0] >= 0).all() and (inside[:, 1] >= -1).all() and (inside[:, 2] <= 4).all()
    # one argument need not be in a tuple
    one = minimize_nqn(lambda x, c: (c * x @ x, 2 * c * x), np.ones(2), 3.0, True)
    np.testing.assert_allclose(one.x, 0.0, atol=1e-6)


def test_fixed_variables_and_starts_outside():
    result = minimize_nqn(
        lambda x: (np.abs(x - 3).sum(), np.sign(x - 3)), [9.0, -9.0, 0.0], jac=True,
        bounds=[(0, 5), (1, 1), (-1, 2)],
    )  # fmt: skip
    np.testing.assert_allclose(result.x, [3.0, 1.0, 2.0], atol=1e-8)
    assert result.x[1] == 1.0 and result.x[2] == 2.0
    assert "2 entries of x0" in result.warning and result.warning in result.message
    inside = minimize_nqn(corner, [-0.7, 3.0], jac=True, bounds=BOUNDS)
    assert inside.warning is None


def test_every_exit():
    def quadratic(x):
        return 0.5 * x @ x, x.copy()

    start = np.array([3.0, -4.0])
    assert minimize_nqn(quadratic, start, jac=True).status == 0
    stationary = minimize_nqn(quadratic, np.zeros(2), jac=True)
    assert (stationary.status, stationary.nit, stationary.nfev, stationary.success) == (0, 0, 1, True)
    kink = minimize_nqn(lambda x: (np.abs(x).sum(), np.where(x >= 0, 1.0, -1.0)), start, jac=True)
    assert (
        kink.status == outcome.SMALL_DECREASE and kink.success and kink.fun < 1e-6 and kink.optimality == 1.0
    )
    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, max_iter=3)
    assert (result.status, result.nit, result.success) == (
        outcome.MAX_ITER,
        3,
        False,
    ) and "max_iter" in result.message
    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, max_fun=7)
    assert (result.status, result.nfev) == (outcome.MAX_FUN, 7) and "max_fun" in result.message
    result = minimize_nqn(optimize.rosen, np.zeros(50), jac=optimize.rosen_der, max_time=1e-9)
    assert result.status == outcome.MAX_TIME and "max_time" in result.message
    wrong = minimize_nqn(lambda x: (x @ x, -2 * x), start, jac=True, ftol=-1)
    assert (
        wrong.status in (outcome.NO_DIRECTION, outcome.NO_PROGRESS)
        and not wrong.success
        and "gradient" in wrong.message
    )
    never = minimize_nqn(
        lambda x: (np.abs(x).sum(), np.where(x >= 0, 1.0, -1.0)), start, jac=True, ftol=-1, gtol=0.0
    )
    assert never.status == outcome.NO_PROGRESS and never.fun < 1e-12
    falling = minimize_nqn(lambda x: (x[0] + x[1] ** 2, np.array([1.0, 2 * x[1]])), start, jac=True)
    assert falling.status == outcome.UNBOUNDED and "bounds" in falling.message


def test_callbacks_get_copies_and_may_stop():
    seen = []

    def by_point(x):
        seen.append(x.copy())
        x[:] = np.nan
        return len(seen) == 4

    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, callback=by_point)
    assert (result.status, result.nit) == (outcome.STOPPED, 4)
    np.testing.assert_array_equal(result.x, seen[-1])

    def by_report(intermediate_result):
        seen.append(intermediate_result)
        if intermediate_result.nit == 2:
            raise StopIteration

    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, callback=by_report)
    assert result.status == outcome.STOPPED and seen[-1].nit == 2 and seen[-1].fun == result.fun


def test_history():
    result = minimize_nqn(corner, [-0.7, 3.0], jac=True, bounds=BOUNDS, history=True)
    assert len(result.history) == result.nit
    # a trial point that was passed by may have been a little lower
    assert 0 <= result.history[-1]["f"] - result.fun < 1e-9 and result.history[-1]["nfev"] <= result.nfev
    assert (np.diff([line["f"] for line in result.history]) <= 0).all()
    assert result.history[-1]["n_active"] == 1
    # short of the kink the gradient holds nothing, the correction does
    assert (0, 1) in [(line["n_predicted"], line["n_held"]) for line in result.history]
    assert all(0 <= line["n_predicted"] <= line["n_held"] <= 2 for line in result.history)


def test_values_that_are_not_finite_are_stepped_back_from():
    def barrier(x):
        if x[0] <= 0.1:
            return (np.nan, np.nan * x) if x[0] < -1 else (np.inf, x)
        if x[0] > 5:
            return 0.0, np.full_like(x, np.nan)  # a point without a gradient is never accepted
        return x[0] - 0.5 * np.log(x[0] - 0.1) + (x[1] - 1) ** 2, np.array(
            [1 - 0.5 / (x[0] - 0.1), 2 * x[1] - 2]
        )

    for start in ([4.9, 50.0], [0.10001, -3.0]):
        result = minimize_nqn(barrier, start, jac=True)
        np.testing.assert_allclose(result.x, [0.6, 1.0], atol=1e-5)


def test_minus_infinity_is_no_minimum():
    result = minimize_nqn(
        lambda x: (np.log(x[0]) if x[0] > 0 else -np.inf, 1 / x), [0.5], jac=True, bounds=[(0, 1)]
    )
    assert np.isfinite(result.fun) and result.x[0] > 0


def test_history_has_a_line_for_every_iteration():
    """Also where iterations no longer change f, and begin again."""
    for problem in nonsmooth_problems(10):
        result = minimize_nqn(
            problem.fun_and_jac, problem.starts(1)[0], jac=True, bounds=problem.bounds, gtol=0.0, ftol=-1.0,
            max_fun=1000, history=True,
        )  # fmt: skip
        assert len(result.history) == result.nit


def test_the_users_arrays_are_neither_kept_nor_changed():
    buffer, x0 = np.empty(3), np.array([1.0, 2.0, 3.0])

    def fun(x):
        value = 0.5 * x @ x
        buffer[:] = x
        x[:] = np.nan
        return value, buffer

    result = minimize_nqn(fun, x0, jac=True)
    np.testing.assert_allclose(result.x, 0.0, atol=1e-6)
    np.testing.assert_array_equal(x0, [1.0, 2.0, 3.0])


def test_no_variables_and_no_memory():
    empty = minimize_nqn(lambda x: (7.0, np.empty(0)), np.empty(0), jac=True)
    assert empty.success and empty.fun == 7.0 and empty.x.shape == (0,)
    steepest = minimize_nqn(lambda x: (x @ x, 2 * x), np.ones(4), jac=True, memory=0)
    np.testing.assert_allclose(steepest.x, 0.0, atol=1e-6)


@pytest.mark.parametrize(
    "kwargs, error, words",
    [
        (dict(bounds=[(0, 1), (2, 1)]), ValueError, "variable 1 cross"),
        (dict(bounds=[(0, 1), (np.nan, 1)]), ValueError, "lower bound of variable 1 is NaN"),
        (dict(bounds=[(0, 1), (np.inf, np.inf)]), ValueError, "variable 1 hold no finite"),
        (dict(bounds=[(0, 1)]), ValueError, "each of the 2 variables; got 1"),
        (dict(bounds=[(0, 1), 3]), ValueError, "number 1 is 3"),
        (dict(bounds=optimize.Bounds([0, 0, 0], [1, 1, 1])), ValueError, "shape"),
        (dict(active_set="newest"), ValueError, "active_set"),
        (dict(memory=-1), ValueError, "memory"),
        (dict(n_gradients=0), ValueError, "n_gradients"),
        (dict(max_iter=1.5), ValueError, "max_iter"),
        (dict(max_fun=0), ValueError, "max_fun"),
        (dict(gtol=-1.0), ValueError, "gtol"),
        (dict(gtol=np.nan), ValueError, "gtol"),
        (dict(max_time=-1), ValueError, "max_time"),
        (dict(jac="exact"), ValueError, "jac"),
        (dict(constraints=[1]), ValueError, "constraints"),
        (dict(hess=len), ValueError, "hess"),
        (dict(x0=[[1.0]]), ValueError, "x0"),
        (dict(x0=[1.0, np.nan]), ValueError, "entry 1"),
        (dict(x0=[1.0, np.inf]), ValueError, "finite"),
        (dict(fun=3), TypeError, "fun"),
        (dict(fun=lambda x: x @ x), ValueError, "jac=True"),
        (dict(fun=lambda x: (x, x)), ValueError, "number"),
        (dict(fun=lambda x: ("1", x)), ValueError, "number"),
        (dict(fun=lambda x: (np.nan, x)), ValueError, "finite at x0"),
        (dict(fun=lambda x: (1.0, x * np.inf)), ValueError, "entry 0"),
        (dict(fun=lambda x: (1.0, x[:1])), ValueError, "gradient must have shape"),
    ],
)
def test_bad_input(kwargs, error, words):
    given_ = {"fun": lambda x: (x @ x, 2 * x), "x0": [1.0, 1.0], "jac": True, **kwargs}
    with pytest.raises(error, match=words):
        minimize_nqn(**given_)


@pytest.mark.parametrize("active_set", ["corrected", "corrected-subgradient"])
def test_room_for_very_many_pairs_is_made_as_they_come(active_set):
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


def test_gradients_are_kept_as_room_grows(monkeypatch):
    rng, n = np.random.default_rng(0), 7
    rows, kept = nqn.RecentGradients(n, 5, np.empty(0)), []
    monkeypatch.setattr(nqn, "ROOM", 2)
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


def test_errors_of_the_function_come_through():
    def fails(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        minimize_nqn(fails, [1.0], jac=True)


def test_restarts_forget_a_spoilt_matrix(monkeypatch):
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
