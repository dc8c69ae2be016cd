"""The search of minimize_nqn: where its trials are, and how many a run takes."""

import numpy as np
import pytest
from scipy import optimize

from sparsekit._bounded.solver.nqn import NQNOptions, Stop, init_state, minimize, search
from sparsekit._solver import outcome
from sparsekit._solver.line_search import Trial, place_by_cubic


def test_trials_in_a_bracket():
    # the cubic a^3 - 3 a of minimum 1, but in the nearer half only, and a tenth away from the end
    def cubic(a):
        return Trial(a, a**3 - 3 * a, 3 * a * a - 3)

    assert np.isclose(place_by_cubic(cubic(0.0), cubic(3.0)), 1.0)
    assert np.isclose(place_by_cubic(cubic(0.4), cubic(1.9)), 1.0)
    assert np.isclose(place_by_cubic(cubic(0.0), cubic(1.8)), 0.9)
    assert np.isclose(place_by_cubic(cubic(0.9), cubic(10.0)), 1.81)
    # no cubic: the middle
    start = Trial(0.0, 1.0, -1.0)
    for f, slope in ((np.inf, np.nan), (np.nan, 1.0), (-np.inf, 1.0), (1e308, np.inf), (2.0, -np.inf)):
        assert 0.1 <= place_by_cubic(start, Trial(1.0, f, slope)) <= 0.5
    assert place_by_cubic(start, Trial(1.0, np.nan, np.nan)) == 0.5


def test_search_places_its_trials():
    x, inf = np.zeros(1), np.full(1, np.inf)

    def trials(centre, opts):
        seen = []

        def fun(z):
            seen.append(z[0])
            gap = z - centre
            return 0.5 * gap[0] ** 2, gap

        f, g = fun(x)
        state = init_state(x, f, g, -inf, inf, opts)
        state.p_bar[:] = state.p[:] = 1.0
        search(state, float(g[0]), fun, opts)
        return seen[1:]

    plain = NQNOptions(interpolate=False)
    np.testing.assert_allclose(trials(0.3, NQNOptions()), [1.0, 0.3])  # the minimum of the parabola
    np.testing.assert_allclose(trials(0.3, plain), [1.0, 0.5])
    np.testing.assert_allclose(trials(15.0, NQNOptions()), [1.0, 10.0])
    np.testing.assert_allclose(trials(15.0, plain), [1.0, 2.0])


def test_search_halves_after_a_trial_that_was_not_too_long():
    """Where f bends sharply, cubics are wrong again and again."""
    x, inf, seen = np.zeros(1), np.full(1, np.inf), []

    def fun(z):  # a kink at 0.7
        seen.append(z[0])
        return (-z[0], np.array([-1.0])) if z[0] < 0.7 else (20 * (z[0] - 0.7) - 0.7, np.array([20.0]))

    state = init_state(x, *fun(x), -inf, inf, NQNOptions())
    state.p_bar[:] = state.p[:] = 1.0
    found = search(state, -1.0, fun, NQNOptions())
    assert seen[1] == 1.0 and 0.1 <= seen[2] <= 0.5 and seen[3] == 0.5 * (seen[1] + seen[2])
    assert 0.7 < found.t < 0.735 and found.f < 0.0


def test_search_ends_where_nothing_decreases():
    x, g, inf = np.zeros(2), np.array([1.0, 1.0]), np.full(2, np.inf)
    state = init_state(x, 0.0, g, -inf, inf, NQNOptions())
    state.p_bar[:] = state.p[:] = -1.0
    with pytest.raises(Stop) as stop:
        search(state, -2.0, lambda z: (1.0, g), NQNOptions())
    assert stop.value.status == outcome.NO_PROGRESS


def test_evaluations_on_smooth_problems():
    """In the median about as many as L-BFGS-B takes, and fewer than by halves and doubles."""
    scales = np.logspace(-2, 2, 50)

    def ellipse(x):
        return 0.5 * scales @ x**2 - x.sum(), scales * x - 1.0

    def rosenbrock(x):
        return optimize.rosen(x), optimize.rosen_der(x)

    cases = [
        (ellipse, np.zeros(50), (-1.0, 0.1)), (ellipse, np.ones(50), (-np.inf, 20.0)),
        (rosenbrock, np.tile([-1.2, 1.0], 2), (-np.inf, np.inf)), (rosenbrock, np.full(20, 0.3), (-2.0, 0.8)),
        (rosenbrock, np.full(20, -0.5), (-2.0, 3.0)),
    ]  # fmt: skip
    ratios, gains = [], []
    for fun, x0, (low, high) in cases:
        lower, upper = np.full(len(x0), low), np.full(len(x0), high)
        counts = []
        for interpolate in (True, False):
            opts = NQNOptions(gtol=1e-6, ftol=-1.0, interpolate=interpolate)
            result = minimize(fun, x0, lower, upper, opts)
            assert result.status == 0
            counts.append(result.nfev)
        theirs = optimize.minimize(
            fun, x0, jac=True, bounds=optimize.Bounds(lower, upper), method="L-BFGS-B",
            options=dict(gtol=1e-6, ftol=0, maxcor=20, maxiter=10**4, maxfun=10**5),
        )  # fmt: skip
        ratios.append(counts[0] / theirs.nfev)
        gains.append(counts[0] / counts[1])
    assert np.median(ratios) <= 1.1 and np.mean(gains) < 1.0
