"""The reference implementation of NQN itself: its line search, then the whole on known problems."""

import numpy as np
import pytest
import reference_nqn as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

from sparsekit._bounded.losses.nonsmooth_problems import nonsmooth_problems

seeds = st.integers(0, 2**32 - 1)
every_variant = pytest.mark.parametrize("variant", ref.VARIANTS)


# The line search.


def line(f, slope):
    """evaluate(x) of a function of one variable, and the list of the points it was asked for."""
    seen = []

    def evaluate(x):
        seen.append(float(x[0]))
        return f(x[0]), np.array([slope(x[0])])

    return evaluate, seen


def search(evaluate, p, lower=-np.inf, upper=np.inf, x=0.0, **options):
    x, p = np.array([x]), np.array([p])
    f, g = evaluate(x)
    return ref.modified_wolfe(evaluate, x, f, g, p, np.array([lower]), np.array([upper]), **options)


def test_line_search_crosses_the_kink():
    evaluate, seen = line(lambda t: abs(t - 0.3), lambda t: np.sign(t - 0.3))
    step = search(evaluate, 1.0)
    # 1 is higher than 0 and fails (3.21); 1/2 is lower and beyond the kink
    assert seen == [0.0, 1.0, 0.5]
    assert step.alpha == 0.5 and step.wolfe and step.f == pytest.approx(0.2)
    evaluate, seen = line(lambda t: abs(t - 5.5), lambda t: np.sign(t - 5.5))
    assert search(evaluate, 1.0).alpha == 8.0
    assert seen == [0.0, 1.0, 2.0, 4.0, 8.0]


def test_line_search_ends_at_the_bounds():
    evaluate, seen = line(lambda t: -t, lambda t: -1.0)
    step = search(evaluate, 1.0, upper=3.0)
    # at the bound nothing of p is left and (3.22) holds
    assert seen == [0.0, 1.0, 2.0, 3.0] and step.x[0] == 3.0 and step.wolfe
    evaluate, seen = line(lambda t: -t, lambda t: -1.0)
    assert search(evaluate, 10.0, upper=3.0).x[0] == 3.0
    assert seen == [0.0, 3.0]
    # a descent to the left, where the printed step 2 has a negative gamma
    evaluate, seen = line(lambda t: t, lambda t: 1.0)
    assert search(evaluate, -1.0, lower=-0.25).x[0] == -0.25
    assert seen == [0.0, -0.25]


def test_line_search_when_the_longest_step_fails():
    """The printed steps 19 to 23 would then try alpha = 0 for ever."""
    evaluate, seen = line(lambda t: abs(t - 0.1), lambda t: np.sign(t - 0.1))
    step = search(evaluate, 1.0, upper=0.5)
    assert seen == [0.0, 0.5, 0.25, 0.125]
    assert step.alpha == 0.125 and step.wolfe


def test_line_search_returns_the_step_that_decreases_alone():
    """(3.22) holds nowhere on a concave branch that jumps up: L is returned at relative length 1e-6."""
    evaluate, seen = line(lambda t: -t if t < 0.3 else 5.0, lambda t: -1.0)
    step = search(evaluate, 1.0)
    assert not step.wolfe and 0 < 0.3 - step.alpha < 0.3e-6 and step.f == -step.alpha
    assert len(seen) < 30


def test_line_search_exits():
    evaluate, _ = line(lambda t: t, lambda t: -1.0)  # the gradient lies
    with pytest.raises(ref.LineSearchError) as error:
        search(evaluate, 1.0)
    assert error.value.args[0] == ref.LINE_SEARCH
    for p, bounds in ((1.0, {"upper": 0.0}), (-1.0, {}), (0.0, {}), (np.nan, {})):
        with pytest.raises(ref.LineSearchError) as error:
            search(evaluate, p, **bounds)
        assert error.value.args[0] == ref.NO_DIRECTION
    evaluate, _ = line(lambda t: -t, lambda t: -1.0)
    with pytest.raises(ref.LineSearchError) as error:
        search(evaluate, 1.0)
    assert error.value.args[0] == ref.UNBOUNDED


@pytest.mark.parametrize("bad", [np.inf, np.nan, -np.inf])
def test_line_search_steps_back_from_what_is_not_finite(bad):
    evaluate, _ = line(lambda t: t * t - t if t < 0.7 else bad, lambda t: 2 * t - 1)
    step = search(evaluate, 1.0)
    assert step.alpha == 0.5
    evaluate, _ = line(lambda t: t * t - t, lambda t: 2 * t - 1 if t < 0.7 else bad)
    assert search(evaluate, 1.0).alpha == 0.5


@given(seeds)
@settings(max_examples=50)
def test_line_search_satisfies_both_conditions(seed):
    """On piecewise linear convex functions of several variables, with and without bounds."""
    rng = np.random.default_rng(seed)
    n, k = rng.integers(1, 6), rng.integers(2, 8)
    A, b = rng.standard_normal((k, n)), rng.standard_normal(k)
    A[-1], b[-1] = -A[:-1].sum(axis=0), 0.0  # bounded below
    lower, upper = np.full(n, -1.0), np.full(n, 1.0)
    if rng.random() < 0.5:
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)

    def evaluate(x):
        values = A @ x + b
        return values.max(), A[values.argmax()]

    x = ref.project(rng.uniform(-1.5, 1.5, n), lower, upper)
    f, g = evaluate(x)
    p = -g * rng.uniform(0.01, 5)
    p_bar = ref.feasible_part(x, p, lower, upper)
    if not p_bar.any():
        return
    step = ref.modified_wolfe(evaluate, x, f, g, p, lower, upper)
    assert_array_equal(step.x, ref.project(x + step.alpha * p_bar, lower, upper))
    assert step.f == evaluate(step.x)[0] <= f + step.alpha * ref.C1 * (g @ p_bar)
    if step.wolfe:
        assert step.g @ ref.feasible_part(step.x, p, lower, upper) >= ref.C2 * (g @ p_bar)
    else:
        # a slope (3.22) that jumps where a variable meets its bound may leave no step with both
        assert np.isfinite(lower).all()


# The whole.


def quadratic(seed, n=8):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((n + 4, n)), rng.standard_normal(n + 4)
    lower, upper = rng.uniform(-0.5, 0.1, n), rng.uniform(0.1, 0.5, n)
    lower[rng.random(n) < 0.3], upper[rng.random(n) < 0.3] = -np.inf, np.inf
    return A, b, lower, upper


@every_variant
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 7])
def test_quadratics_with_bounds(variant, seed):
    A, b, lower, upper = quadratic(seed)

    def fun_and_jac(x):
        r = A @ x - b
        return 0.5 * r @ r, A.T @ r

    result = ref.nqn(fun_and_jac, np.zeros(8), lower, upper, variant, gtol=1e-6, max_iter=500)
    best = optimize.lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14)
    # nearer to 1e-8 rounding of f may hide the decrease, on which (3.21) insists
    assert result.status == ref.STATIONARY
    assert_allclose(result.f, best.cost, rtol=1e-11)
    assert_allclose(result.x, best.x, atol=1e-5)
    assert result.nit < 60


def test_old_gradients_may_stop_a_run():
    """Variants 2 and 4 hold a variable for an old gradient's sake: at a corner that leaves no direction.

    Lemma 3.2.1 covers variant 3 only, which goes on to the minimiser of the same smooth problem.
    """
    A, b, lower, upper = quadratic(6)

    def fun_and_jac(x):
        r = A @ x - b
        return 0.5 * r @ r, A.T @ r

    best = optimize.lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14)
    for variant in ref.VARIANTS:
        result = ref.nqn(fun_and_jac, np.zeros(8), lower, upper, variant, gtol=1e-6, max_iter=500)
        free = np.abs(ref.feasible_part(result.x, -fun_and_jac(result.x)[1], lower, upper)).max()
        if variant.endswith("subgradient"):
            assert result.status == ref.NO_DIRECTION and free > 0.1
            assert result.f > best.cost + 1e-3
        else:
            assert result.status == ref.STATIONARY
            assert_allclose(result.f, best.cost, rtol=1e-11)


SOLVED = [
    "L1",
    "L2",
    "MAXQ",
    "Chained_LQ",
    "Chained_Crescent_1",
    "Myopic_Decoupled",
    "TEST29_2",
    "Active_Faces",
    "Nonsmooth_Brown",
]


@every_variant
@pytest.mark.parametrize("name", SOLVED)
def test_nonsmooth_problems(variant, name):
    n = 10
    problem = next(problem for problem in nonsmooth_problems(n) if problem.name == name)
    lower, upper = problem.bounds.lb, problem.bounds.ub
    seen = []

    def fun_and_jac(x):
        seen.append(x.copy())
        return problem.fun_and_jac(x)

    for x0 in problem.starts(2):
        seen.clear()
        result = ref.nqn(fun_and_jac, x0, lower, upper, variant, max_fun=100 * n)
        relative = (result.f - problem.bounded_minimum) / (problem.fun(x0) - problem.bounded_minimum)
        assert relative < 1e-4  # (3.25)
        assert result.f == problem.fun(result.x) >= problem.bounded_minimum - 1e-12
        assert len(seen) == result.nfev <= 100 * n
        points = np.array(seen)
        assert (points >= lower).all() and (points <= upper).all()
        assert result.f == min(problem.fun(x) for x in points)
        values = [problem.fun(x0)] + [entry["f"] for entry in result.history]
        assert (np.diff(values) <= 0).all()


def test_correction_finds_the_active_set_that_the_gradient_misses():
    """Figure 3.2, with the 1/2 of (3.6): without it, as (3.23) is printed, the solution is at no kink."""
    problem = next(problem for problem in nonsmooth_problems(40) if problem.name == "Myopic_Decoupled")

    def fun_and_jac(x):
        a, b = x[::2], x[1::2]
        s = a + 0.1 * b
        g = np.column_stack([np.sign(a - b) + s, 0.1 * s - np.sign(a - b)]).ravel()
        return (np.abs(a - b) + 0.5 * s**2).sum(), g

    x0, lower, upper = problem.starts(1)[0], problem.bounds.lb, problem.bounds.ub
    found = {}
    for variant in ref.VARIANTS:
        result = ref.nqn(fun_and_jac, x0, lower, upper, variant, max_iter=120)
        assert_allclose(result.f, 20 * 0.55**2 / 2, rtol=1e-2)
        # all 20 even variables are at their bounds at the solution
        found[variant] = np.mean([entry["n_active"] for entry in result.history[40:]])
        corrections = sum(entry["corrections"] for entry in result.history)
        assert (corrections > 0) == variant.startswith("corrected")
    assert found["gradient"] < 18 < found["corrected"]
    assert found["subgradient"] > 19 and found["corrected-subgradient"] > 19


def test_fixed_variables_stay_and_infinite_bounds_are_fine():
    def fun_and_jac(x):
        return np.abs(x - 1).sum() + 0.5 * x @ x, np.sign(x - 1) + x

    lower, upper = np.array([0.3, -np.inf, 2.0]), np.array([0.3, np.inf, np.inf])
    result = ref.nqn(fun_and_jac, [5.0, 5.0, -5.0], lower, upper, max_fun=300)
    assert result.x[0] == 0.3 and result.x[2] == 2.0
    assert_allclose(result.x[1], 1.0, atol=1e-6)
    everything = ref.nqn(fun_and_jac, np.zeros(3), np.ones(3), np.ones(3))
    assert everything.status == ref.STATIONARY and everything.nfev == 1
    assert_array_equal(everything.x, np.ones(3))


def test_statuses():
    def bowl(x):
        return x @ x, 2 * x

    assert ref.nqn(bowl, np.ones(3)).status == ref.STATIONARY
    assert ref.nqn(bowl, np.ones(3), gtol=10.0).nit == 0
    stopped = ref.nqn(lambda x: (np.abs(x).sum(), np.sign(x)), np.array([3.3, 1.7]), max_iter=1)
    assert stopped.status == ref.MAX_ITER and stopped.nit == 1
    stopped = ref.nqn(lambda x: (np.abs(x).sum(), np.sign(x)), np.array([3.3, 1.7]), max_fun=2)
    assert stopped.status == ref.MAX_FUN and stopped.nfev == 2
    assert ref.nqn(lambda x: (x.sum(), np.ones(2)), np.zeros(2)).status == ref.UNBOUNDED
    assert ref.nqn(lambda x: (x.sum(), -np.ones(2)), np.zeros(2)).status == ref.LINE_SEARCH
    with pytest.raises(ValueError, match="variant"):
        ref.nqn(bowl, np.ones(2), variant="other")


def test_pairs_of_small_curvature_are_skipped():
    """On a concave function s.y < 0: no pair is taken, the matrix stays theta I, and the corner is found."""
    result = ref.nqn(lambda x: (-x @ x, -2 * x), np.array([0.1, -0.2]), -1.0, 1.0)
    assert result.status == ref.STATIONARY
    assert_array_equal(result.x, [1.0, -1.0])
    assert not any(entry["taken"] for entry in result.history)
