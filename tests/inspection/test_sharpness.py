"""Sharpness of functions: against a search of the whole box."""

import numpy as np
import pytest
import reference_sharpness as reference

from sparsekit import L1LogisticOBA
from sparsekit.inspection import sharpness


def quadratic(n, seed, slope=0.0):
    """A convex quadratic, its gradient, and a point near its minimum."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n))
    H, centre = B @ B.T / n, rng.standard_normal(n)
    tilt = slope * rng.standard_normal(n)

    def value(x):
        return float(0.5 * (x - centre) @ H @ (x - centre) + tilt @ (x - centre))

    return value, lambda x: H @ (x - centre) + tilt, centre


@pytest.mark.parametrize("slope", [1.0, 1e-2])
@pytest.mark.parametrize("seed", range(4))
def test_full_space_is_the_largest_corner(slope, seed):
    value, gradient, x = quadratic(6, seed, slope)
    expected = reference.sharpness(value, x, 1e-3, n_inside=2)
    found = sharpness(value, x, jac=gradient, n_starts=4, random_state=0)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_manifold_is_searched_whole(seed):
    value, gradient, x = quadratic(12, seed, 0.1)
    options = dict(epsilon=1e-2, n_starts=4, random_state=seed, return_result=True)
    result = sharpness(value, x, jac=gradient, n_directions=4, **options)
    expected = reference.sharpness(value, x, 1e-2, result.directions, n_inside=2)
    assert result.sharpness == pytest.approx(expected, rel=1e-6)


def test_a_peak_inside_the_box():
    # largest at neither corner nor centre: 1 - cos has its crest where x = pi
    x = np.zeros(1)
    found = sharpness(
        lambda x: (float(1 - np.cos(x[0])), np.sin(x)), x, jac=True, epsilon=4.0, random_state=1
    )
    assert found == pytest.approx(200.0, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_at_an_exact_minimum_it_starts_elsewhere(seed):
    value, gradient, x = quadratic(5, seed)
    expected = reference.sharpness(value, x, 1e-3, n_inside=2)
    once = sharpness(value, x, jac=gradient, random_state=0)
    assert 0.5 * expected < once <= expected * (1 + 1e-9)
    often = sharpness(value, x, jac=gradient, random_state=0, n_starts=12)
    assert often == pytest.approx(expected, rel=1e-6)


def test_kinks():
    weight = np.array([1.0, 2.0, 0.5])
    found = sharpness(
        lambda x: float(weight @ np.abs(x)), np.zeros(3), jac=lambda x: weight * np.sign(x),
        random_state=0,
    )  # fmt: skip
    assert found == pytest.approx(100 * 1e-3 * 3.5, rel=1e-9)


def test_several_boxes_and_what_is_reported():
    value, gradient, x = quadratic(8, 1, 0.1)
    epsilons = [1e-3, 1e-2, 1e-4]
    result = sharpness(
        value, x, jac=gradient, epsilon=epsilons, random_state=0, return_result=True, n_directions=3
    )
    A = result.directions
    assert A.shape == (8, 3)
    assert result.sharpness.shape == (3,)
    for k, epsilon in enumerate(epsilons):
        assert value(result.x_max[k]) == pytest.approx(result.fun_max[k], rel=1e-12)
        z = np.linalg.lstsq(A, result.x_max[k] - x, rcond=None)[0]
        np.testing.assert_allclose(A @ z, result.x_max[k] - x, atol=1e-12)
        assert (np.abs(z) <= reference.box(x, epsilon, A) * (1 + 1e-9)).all()
        expected = 100 * (result.fun_max[k] - result.fun) / (1 + result.fun)
        assert result.sharpness[k] == pytest.approx(expected)
    assert result.sharpness[1] > result.sharpness[0] > result.sharpness[2] > 0
    assert result.fun == value(x) and result.nit >= 3
    one = sharpness(value, x, jac=gradient, random_state=0, return_result=True)
    assert isinstance(one.sharpness, float) and one.x_max.shape == x.shape and one.directions is None


def test_evaluations_are_counted_and_few():
    value, gradient, x = quadratic(20, 0, 1e-3)
    calls = []
    result = sharpness(
        lambda x: calls.append(1) or value(x), x, jac=gradient, random_state=0, return_result=True
    )
    assert len(calls) == result.nfev <= 30


def test_without_a_gradient():
    value, gradient, x = quadratic(6, 2, 0.1)
    for options in ({}, {"n_directions": 2}):
        with_it = sharpness(value, x, jac=gradient, random_state=0, **options)
        result = sharpness(value, x, random_state=0, return_result=True, **options)
        assert result.sharpness == pytest.approx(with_it, rel=1e-3)
        assert result.nfev % (1 + options.get("n_directions", 6)) == 0


def test_differences_are_counted_and_fit_the_size_of_x():
    calls = []
    far = np.full(3, 1.0001e9)

    def value(x):
        calls.append(1)
        return float(np.sum((x - 1e9) ** 2) / 1e18)

    result = sharpness(value, far, jac=False, random_state=0, return_result=True)
    assert result.nfev == len(calls)
    exact = sharpness(value, far, jac=lambda x: 2 * (x - 1e9) / 1e18, random_state=0)
    assert result.sharpness == pytest.approx(exact, rel=1e-2)


def test_negative_functions_and_buffers_that_are_used_again():
    buffer = np.empty(4)

    def fun(x):
        np.multiply(2.0, x, out=buffer)
        buffer[0] += 0.5
        value = float(x @ x + 0.5 * x[0] - 0.75)
        x[:] = np.nan  # its own copy
        return value, buffer

    x = np.full(4, 0.1)
    f = 4 * 0.01 + 0.05 - 0.75
    for epsilon in (0.1, 0.01):
        half = epsilon * 1.1
        largest = 4 * (0.1 + half) ** 2 + 0.5 * (0.1 + half) - 0.75
        expected = 100 * (largest - f) / (1 + f)  # f < 0 raises it
        found = sharpness(fun, x, jac=True, epsilon=[0.1, 0.01], max_iter=3, random_state=0)
        assert found[0 if epsilon == 0.1 else 1] == pytest.approx(expected, rel=1e-9)


def test_a_larger_box_begins_where_the_smaller_one_ended():
    seen = []

    def fun(x):
        seen.append(x.copy())
        return float(np.sum(x**2)), 2 * x

    options = dict(jac=True, max_iter=1, random_state=0, return_result=True)
    small = sharpness(fun, np.zeros(2), epsilon=[1e-3], **options)
    n_small = len(seen)
    seen.clear()
    sharpness(fun, np.zeros(2), epsilon=[1e-3, 1e-2], **options)
    assert any(np.allclose(x, small.x_max[0], rtol=1e-12) for x in seen[n_small:])


def test_functions_that_are_not_defined_everywhere():
    def fun(x):
        defined = x[1] >= 0
        return (1 + float(x @ x) if defined else np.nan), (2 * x if defined else np.full(2, np.inf))

    for seed in range(8):
        found = sharpness(fun, np.zeros(2), jac=True, n_starts=2, random_state=seed)
        assert found == pytest.approx(100 * 2e-6 / 2, rel=0.6) and np.isfinite(found) and found > 0


def test_infinite_values_count():
    def fun(x):
        return float(x @ x) if np.all(x < 1e-4) else np.inf

    assert sharpness(fun, np.zeros(3), jac=lambda x: 2 * x + 1e-3, random_state=0) == np.inf


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epsilon": 0}, "epsilon must be a number > 0"),
        ({"epsilon": [1e-3, np.nan]}, "epsilon must be a number > 0"),
        ({"epsilon": []}, "epsilon must be a number > 0"),
        ({"n_directions": 4}, "n_directions must be at most the number of variables, 3; got 4"),
        ({"n_directions": 1.5}, "n_directions must be a whole number, at least 1; got 1.5"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"n_starts": 0}, "n_starts must be at least 1, got 0"),
        ({"jac": "2-point"}, "jac must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sharpness(lambda x: float(x @ x), np.zeros(3), **options)


@pytest.mark.parametrize(
    "fun, x, options, error, message",
    [
        (lambda x: -2.0, [0.0], {}, ValueError, "larger than -1"),
        (lambda x: np.nan, [0.0], {}, ValueError, "finite at x"),
        (lambda x: 1.0, [[0.0]], {}, ValueError, "x must have shape"),
        (lambda x: 1.0, [], {}, ValueError, "x must have shape"),
        (lambda x: 1.0, [np.inf], {}, ValueError, "x must be finite"),
        (lambda x: x, [0.0, 1.0], {}, ValueError, "one number"),
        (lambda x: (x @ x, 2 * x), [0.0, 1.0], {}, ValueError, "say jac=True"),
        (
            lambda x: (1.0, np.full(2, np.nan)),
            [0.0, 1.0],
            {"jac": True},
            ValueError,
            "gradient at x must be finite",
        ),
        (lambda x: 1.0, [0.0], {"batch_size": 5}, TypeError, "batch_size goes with"),
        (lambda x: 1.0, [0.0], {"jac": True}, ValueError, "f and its gradient"),
        (lambda x: 1.0, [0.0], {"jac": lambda x: np.zeros(2)}, ValueError, "gradient must have shape"),
        (lambda x: 1.0, [0.0], {"y": [1]}, TypeError, "y goes with"),
        (lambda x: 1.0, [0.0], {"loss": max}, TypeError, "loss goes with"),
        (3.0, [0.0], {}, TypeError, "callable or a PyTorch module"),
        (L1LogisticOBA(), [[0.0]], {"y": [0]}, TypeError, "PyTorch module; got L1LogisticOBA"),
    ],
)
def test_bad_input(fun, x, options, error, message):
    with pytest.raises(error, match=message):
        sharpness(fun, x, **options)
