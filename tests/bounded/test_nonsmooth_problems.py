"""The nonsmooth test set: values against loops, gradients against differences, optima, bounds, starts."""

import numpy as np
import pytest
import reference_nonsmooth as ref
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hilbert

from sparsekit._bounded.losses import nonsmooth_functions as functions
from sparsekit._bounded.losses.nonsmooth_problems import nonsmooth_problems

NAMES = [problem.name for problem in nonsmooth_problems(2)]
# of Table 3.2, those with a closed form within the bounds
CLOSED = [problem.name for problem in nonsmooth_problems(2) if problem.bounded_minimum is not None]


def named(name, n, **options):
    return next(problem for problem in nonsmooth_problems(n, **options) if problem.name == name)


def feasible(problem, rng, count, reach=2.0):
    """Points of the box around the middle, of a wide one, and at its corners nearest to x*."""
    lower, upper = problem.bounds.lb, problem.bounds.ub
    middle = np.clip(problem.minimizer, lower, upper)
    wide = np.exp(rng.uniform(-7, np.log(reach), (count, 1))) * rng.standard_normal((count, problem.n))
    return np.clip(middle + wide, lower, upper)


def test_the_25_problems_of_table_3_2():
    assert len(NAMES) == len(set(NAMES)) == 25
    assert set(NAMES) - set(ref.VALUES) == {"Convex_Nonsmooth"}
    assert (NAMES[0], NAMES[7], NAMES[19], NAMES[24]) == (
        "Active_Faces",
        "Convex_Nonsmooth",
        "Nesterov_3",
        "TEST29_24",
    )
    assert len(CLOSED) == 14


@pytest.mark.parametrize("n", [2, 3, 5, 20, 251])
@pytest.mark.parametrize("name", sorted(ref.VALUES))
def test_values_are_those_of_the_loops(name, n):
    problem, rng = named(name, n), np.random.default_rng(n)
    for scale in (1e-3, 1.0, 3.0):
        x = scale * rng.standard_normal(n)
        assert_allclose(problem.fun(x), ref.VALUES[name](x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [2, 5, 20])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_central_differences(name, n):
    """At random points, where f is differentiable with probability 1 in a whole neighbourhood of 1e-6."""
    problem, rng = named(name, n), np.random.default_rng(7)
    for scale in (0.1, 1.0, 2.0):
        x = scale * rng.standard_normal(n)
        numeric = np.empty(n)
        for i in range(n):
            step = np.zeros(n)
            step[i] = 1e-6
            numeric[i] = (problem.fun(x + step) - problem.fun(x - step)) / 2e-6
        g = problem.jac(x)
        assert np.abs(g).max() > 0
        assert_allclose(g, numeric, atol=1e-7 * max(np.abs(g).max(), abs(problem.fun(x))), rtol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5, 20, 100, 1000])
@pytest.mark.parametrize("name", NAMES)
def test_unconstrained_minimum(name, n):
    problem, rng = named(name, n), np.random.default_rng(n)
    assert_allclose(problem.fun(problem.minimizer), problem.minimum, atol=1e-12 * n, rtol=1e-13)
    scales = np.exp(rng.uniform(-12, 1, (60, 1)))
    for x in problem.minimizer + scales * rng.standard_normal((60, n)):
        assert problem.fun(x) >= problem.minimum - 1e-11 * max(1.0, abs(problem.minimum))
    for x in 3 * rng.standard_normal((20, n)):
        assert problem.fun(x) > problem.minimum


def minimiser_within_bounds(name, n):
    """A point whose value is the closed form: most have the odd variables at o and the even ones at e."""
    even = np.arange(1, n + 1) % 2 == 0
    x = np.where(even, -0.5, 0.0)
    if name == "Active_Faces":
        x[~even] = 0.5 * even.sum() / (~even).sum()
    elif name == "Chained_Crescent_1":
        x[~even] = 0.25
        x[0] = 0.0
        if n % 2:
            x[-1] = 0.5
    elif name == "Chained_Crescent_2":
        x[~even] = 1 - np.sqrt(0.75)
        x[0] = 0.0
    elif name == "Chained_LQ":
        e = np.sqrt(0.5) - 0.5
        x = np.where(even, e, np.sqrt(1 - e * e))
    elif name.startswith("Modified_Rosenbrock"):
        x[0], x[1] = (np.sqrt(0.5) if name.endswith("1") else 0.5 ** (1 / 3)), 0.5
        for i in range(2, n):
            x[i] = x[i - 1] ** 2
    elif name == "Myopic_Decoupled":
        x[~even] = -0.45
        if n % 2:
            x[-1] = 7.0
    elif name == "Nesterov_1":
        x[0], x[1] = np.sqrt(0.75), 0.5
        for i in range(2, n):
            # the recursion x -> 2 x^2 - 1 rests at -1/2, where rounding errors would double
            x[i] = -0.5
    elif name == "Nesterov_3":
        x[~even] = -0.25
    return x


@pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 101])
@pytest.mark.parametrize("name", CLOSED)
def test_minimum_within_bounds(name, n):
    problem, rng = named(name, n), np.random.default_rng(n)
    x = minimiser_within_bounds(name, n)
    lower, upper = problem.bounds.lb, problem.bounds.ub
    assert (x >= lower - 1e-15).all() and (x <= upper + 1e-15).all()
    assert_allclose(problem.fun(x), problem.bounded_minimum, rtol=1e-13)
    assert problem.bounded_minimum > problem.minimum
    slack = 1e-12 * max(1.0, abs(problem.bounded_minimum))
    for y in feasible(problem, rng, 100):
        assert problem.fun(y) >= problem.bounded_minimum - slack
    # next to it, along single variables and in all of them
    for scale in (1e-6, 1e-3, 0.1):
        for y in x + scale * rng.standard_normal((30, n)) * (rng.random((30, n)) < rng.random((30, 1))):
            assert problem.fun(np.clip(y, lower, upper)) >= problem.bounded_minimum - slack


@pytest.mark.parametrize("n", [2, 7, 100])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_and_starts(name, n):
    problem = named(name, n)
    lower, upper, best = problem.bounds.lb, problem.bounds.ub, problem.minimizer
    # i = 1, 3, ... are the first, third ... entry
    assert (lower[0::2] == -100).all() and (upper[0::2] == 100).all()
    assert_allclose(lower[1::2], best[1::2] - 5.5, rtol=1e-15)
    assert_allclose(upper[1::2], best[1::2] - 0.5, rtol=1e-15)
    starts = problem.starts()
    assert starts.shape == (10, n)
    assert (starts > lower).all() and (starts < upper).all()
    from_middle = starts - (lower + upper) / 2
    assert np.abs(from_middle).max() <= 2
    if n == 100:
        assert np.abs(from_middle).max() > 1.95
        assert_allclose(from_middle.std(), 2 / np.sqrt(3), rtol=0.1)
    assert_array_equal(problem.starts(3), starts[:3])


def test_starts_and_matrices_follow_the_seed():
    every, again, other = (nonsmooth_problems(6, random_state=seed) for seed in (0, 0, 1))
    for a, b, c in zip(every, again, other, strict=True):
        assert_array_equal(a.starts(), b.starts())
        assert not np.array_equal(a.starts(), c.starts())
    x = np.ones(6)
    convex = [named("Convex_Nonsmooth", 6, random_state=seed).fun(x) for seed in (0, 0, 1)]
    assert convex[0] == convex[1] != convex[2]


@pytest.mark.parametrize("n", [1, 20, 1000])
def test_hilbert_products_by_transforms(n):
    H, rng = hilbert(n), np.random.default_rng(0)
    product = functions.Hilbert(n).product
    for x in (rng.standard_normal(n), np.sign(rng.standard_normal(n)), 100 * rng.random(n)):
        assert_allclose(product(x), H @ x, rtol=0, atol=2e-15 * np.linalg.norm(x))


def test_overflow_is_infinite_and_silent(recwarn):
    assert named("Nonsmooth_Brown", 4).fun(np.full(4, 90.0)) == np.inf
    assert named("TEST29_24", 4).fun(np.full(4, 90.0)) == np.inf
    named("Nonsmooth_Brown", 4).jac(np.full(4, 90.0))
    named("TEST29_24", 4).jac(np.full(4, 90.0))
    assert not recwarn.list


@pytest.mark.parametrize("n", [1, 0, -3, 2.5, 10.0, "5", None, True])
def test_wrong_n(n):
    with pytest.raises(ValueError, match="n must be a whole number, at least 2"):
        nonsmooth_problems(n)


def test_wrong_arguments():
    problem = named("L1", 5)
    for bad in (np.zeros(4), np.zeros((5, 1)), 1.0):
        for method in (problem.fun, problem.jac, problem.fun_and_jac):
            with pytest.raises(ValueError, match=r"x must have shape \(5,\) for L1"):
                method(bad)
    for bad in (0, 2.5):
        with pytest.raises(ValueError, match="n_starts"):
            problem.starts(bad)
