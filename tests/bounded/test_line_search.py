"""The line searches: where trials are, which of them is accepted, and how many a search takes."""

import numpy as np
import pytest

from sparsekit._solver import line_search, outcome
from sparsekit._solver.line_search import Trial, backtrack, bracket_weak_wolfe, cubic_step, find_slope_root


def recorded(f, derivative, with_change=None):
    """An evaluation of f and its derivative, and the step sizes that it was asked for."""
    seen = []

    def evaluate(t):
        seen.append(t)
        return Trial(t, f(t), derivative(t), t, None if with_change is None else with_change(t))

    return evaluate, seen


def test_backtracking_by_parabolas():
    evaluate, seen = recorded(lambda t: (t - 0.3) ** 2, lambda t: 2.0 * (t - 0.3))
    found = backtrack(evaluate, 0.09, -0.6)
    np.testing.assert_allclose(seen, [1.0, 0.3])
    assert found.t == found.point == seen[-1]
    # not below a tenth of the last step size, nor above half of it
    evaluate, seen = recorded(lambda t: (t - 0.001) ** 2, lambda t: 2.0 * (t - 0.001))
    assert backtrack(evaluate, 1e-6, -0.002).t == pytest.approx(0.001)
    np.testing.assert_allclose(seen, [1.0, 0.1, 0.01, 0.001])
    evaluate, seen = recorded(lambda t: 0.0 if t < 0.6 else 1.0, lambda t: np.nan)
    assert backtrack(evaluate, 1.0, -1.0).t == 0.5


def test_backtracking_needs_armijos_condition():
    evaluate, seen = recorded(lambda t: -0.5 * t, lambda t: np.nan)
    assert backtrack(evaluate, 0.0, -1.0, armijo=0.5).t == 1.0
    assert backtrack(evaluate, 0.0, -1.0, armijo=0.6) is None
    assert min(seen) >= 1e-12
    assert backtrack(evaluate, 0.0, -1.0, armijo=0.6, rounding=0.11).t == 1.0
    # of a bent path the change to first order is its own
    evaluate, _ = recorded(lambda t: -0.5 * t, lambda t: np.nan, lambda t: -2.0 * t)
    assert backtrack(evaluate, 0.0, armijo=0.25).t == 1.0
    assert backtrack(evaluate, 0.0, armijo=0.26) is None


@pytest.mark.parametrize("bad", [np.inf, np.nan, -np.inf])
def test_backtracking_from_what_is_not_finite(bad):
    evaluate, seen = recorded(lambda t: bad if t > 0.05 else -t, lambda t: np.nan)
    assert backtrack(evaluate, 0.0, -1.0).t == seen[-1]
    np.testing.assert_allclose(seen, [1.0, 0.1, 0.01])


def test_both_conditions_of_wolfe():
    rng = np.random.default_rng(0)
    for _ in range(50):
        kinks, weights = rng.uniform(0.0, 5.0, 6), rng.uniform(0.1, 1.0, 6)

        def f(t, kinks=kinks, weights=weights):
            return float(weights @ np.abs(t - kinks)) + 0.1 * t * t

        def slope(t, kinks=kinks, weights=weights):
            return float(weights @ np.where(t >= kinks, 1.0, -1.0)) + 0.2 * t

        evaluate, seen = recorded(f, slope)
        found = bracket_weak_wolfe(evaluate, f(0.0), slope(0.0), t=1.0, longest=100.0, c1=1e-4, c2=0.9)
        assert found.f <= f(0.0) + 1e-4 * found.t * slope(0.0) and found.slope >= 0.9 * slope(0.0)
        assert len(seen) <= 60


def test_a_bracket_ends_with_a_status():
    def search(f, slope, **options):
        evaluate, _ = recorded(f, slope)
        options = dict(t=1.0, longest=np.inf, c1=1e-4, c2=0.9, min_width=1e-16, min_part=1e-6) | options
        return bracket_weak_wolfe(evaluate, 0.0, -1.0, **options)

    with pytest.raises(outcome.Stop) as stop:
        search(lambda t: -t, lambda t: -1.0)
    assert stop.value.status == outcome.UNBOUNDED
    with pytest.raises(outcome.Stop) as stop:
        search(lambda t: 1.0, lambda t: 1.0)
    assert stop.value.status == outcome.NO_PROGRESS
    assert search(lambda t: -t, lambda t: -1.0, longest=3.0).t == 3.0


def test_the_root_of_a_slope():
    for centre in (1e-9, 0.3, 1.0, 7.0, 1e6):
        evaluate, seen = recorded(lambda t, c=centre: 0.5 * (t - c) ** 2, lambda t, c=centre: t - c)
        found = find_slope_root(evaluate, -centre, f=0.5 * centre**2)
        assert abs(found.slope) <= 0.1 * centre
        assert len(seen) <= 30
        # by slopes alone
        by_slopes = find_slope_root(lambda t, c=centre: Trial(t, slope=t - c), -centre)
        assert by_slopes.t == found.t


def test_the_roots_of_several_slopes():
    centres, left = np.array([1e-6, 0.3, 1.0, 7.0, 1e4]), np.arange(5)

    def evaluate(t):
        return np.maximum(t - centres[left], 3.0 * (t - centres[left]))

    def select(remain):
        nonlocal left
        left = left[remain]

    t = line_search.find_slope_roots(evaluate, select, -centres)
    assert (np.abs(t - centres) <= 0.1 * centres).all() and 0 < len(left) < 5


def test_trials_in_a_bracket():
    # the cubic a^3 - 3 a of minimum 1, but in the nearer half only, and a tenth away from the end
    def cubic(a):
        return Trial(a, a**3 - 3 * a, 3 * a * a - 3)

    assert np.isclose(cubic_step(cubic(0.0), cubic(3.0)), 1.0)
    assert np.isclose(cubic_step(cubic(0.4), cubic(1.9)), 1.0)
    assert np.isclose(cubic_step(cubic(0.0), cubic(1.8)), 0.9)
    assert np.isclose(cubic_step(cubic(0.9), cubic(10.0)), 1.81)
    # no cubic: the middle
    start = Trial(0.0, 1.0, -1.0)
    for f, slope in ((np.inf, np.nan), (np.nan, 1.0), (-np.inf, 1.0), (1e308, np.inf), (2.0, -np.inf)):
        assert 0.1 <= cubic_step(start, Trial(1.0, f, slope)) <= 0.5
    assert cubic_step(start, Trial(1.0, np.nan, np.nan)) == 0.5


def test_slopes_decide_where_values_cannot():
    rounding = 1e-12
    evaluate, _ = recorded(lambda t: 1.0 + rounding, lambda t: 0.5 * (2.0 * t - 1.0) * 1e-12)
    assert backtrack(evaluate, 1.0, -1e-12) is None
    assert backtrack(evaluate, 1.0, -1e-12, flat=1e-10).t == 1.0
    # a slope that has risen to more than the first one's opposite is that of a step too long
    evaluate, _ = recorded(lambda t: 1.0 + rounding, lambda t: (4.0 * t - 1.0) * 1e-12)
    assert backtrack(evaluate, 1.0, -1e-12, flat=1e-10).t == pytest.approx(0.25, rel=1e-3)
