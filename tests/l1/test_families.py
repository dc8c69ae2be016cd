"""Families: values, derivatives, conjugates and ranges against mpmath and finite differences."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference_glm import loss

from sparsekit._l1.losses.families.make import make_family
from sparsekit._l1.losses.family_loss import BLOCK_ROWS, FamilyLoss

COUNTS, AMOUNTS, SHARES = [0.0, 1.0, 3.0, 250.0], [0.01, 1.0, 40.0], [0.0, 0.3, 1.0]
CASES = [
    ("poisson", "log", {}, COUNTS),
    ("gamma", "log", {}, AMOUNTS),
    ("tweedie", "log", {"power": 1.5}, [0.0, *AMOUNTS]),
    ("tweedie", "log", {"power": 1.05}, [0.0, *AMOUNTS]),
    ("tweedie", "log", {"power": 1.9}, [0.0, *AMOUNTS]),
    ("negative-binomial", "log", {"dispersion": 0.5}, COUNTS),
    ("negative-binomial", "log", {"dispersion": 1e-9}, COUNTS),
    ("negative-binomial", "log", {"dispersion": 20.0}, COUNTS),
    ("binomial", "logit", {}, SHARES),
    ("binomial", "probit", {}, SHARES),
    ("binomial", "cloglog", {}, SHARES),
    ("gaussian", "identity", {}, [-3.0, 0.0, 7.5]),
    ("huber", "identity", {"epsilon": 1.35}, [-3.0, 0.0, 7.5]),
]
PARAMETERS = {"power": 1.5, "dispersion": 1.0, "epsilon": 1.35}
each_case = pytest.mark.parametrize(("name", "link", "parameters", "targets"), CASES)


def _family(name, link, parameters):
    return make_family(name, "auto" if name == "tweedie" else link, **{**PARAMETERS, **parameters})


def _pairs(targets, low=-4.0, high=4.0):
    z, y = np.meshgrid(np.linspace(low, high, 33), targets)
    return z.ravel(), y.ravel()


@each_case
def test_values_and_derivatives_are_those_of_mpmath(name, link, parameters, targets):
    family = _family(name, link, parameters)
    z, y = _pairs(targets)
    if name == "huber":
        z = z + 1e-3  # away from the kinks of the slope
    value, u, d = family.evaluate(z, y, family.saturated(y))
    with mp.workdps(60):
        for k in range(len(z)):
            f = lambda t, k=k: loss(name, link, t, y[k], **parameters)  # noqa: E731
            assert_allclose(value[k], float(f(z[k])), rtol=1e-10, atol=1e-13)
            assert_allclose(u[k], float(mp.diff(f, z[k])), rtol=1e-9, atol=1e-12)
            assert_allclose(d[k], float(mp.diff(f, z[k], 2)), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("z", [-29.0, -31.0, -1e4, -1e6])
def test_probit_far_from_zero_is_that_of_mpmath(z):
    value, u, d = make_family("binomial", "probit", **PARAMETERS).evaluate(np.array([z]), np.ones(1), None)
    with mp.workdps(60):
        ratio = mp.npdf(z) / mp.ncdf(z)
        assert_allclose(value, float(-mp.log(mp.ncdf(z))), rtol=1e-14)
        assert_allclose(u, float(-ratio), rtol=1e-12)
        assert_allclose(d, float(ratio * (ratio + z)), rtol=1e-9)


@pytest.mark.parametrize("y", [0.0, 1.0])
def test_probit_of_a_right_row_at_the_end_of_the_range_is_zero(y):
    loss = FamilyLoss(make_family("binomial", "probit", **PARAMETERS), np.empty((1, 0)), np.array([y]))
    value, u, d = loss.derivatives(np.array([(2.0 * y - 1.0) * 1e160]))
    assert (value, u[0], d[0]) == (0.0, 0.0, 0.0)


@each_case
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_many_rows_are_sums_over_blocks_of_them(name, link, parameters, targets, weighted):
    family, rng, n = _family(name, link, parameters), np.random.default_rng(0), 2 * BLOCK_ROWS + 7
    z, y = rng.uniform(-2.0, 2.0, n), rng.choice(targets, n)
    s = rng.uniform(0.5, 2.0, n) * (np.arange(n) % 5 > 0) if weighted else None
    loss = FamilyLoss(family, np.empty((n, 0)), y, s)
    value, u, d = loss.derivatives(z)
    values, first, second = family.evaluate(z, y, family.saturated(y))
    s = np.ones(n) if s is None else s
    assert_allclose(value, s @ values, rtol=1e-12)
    assert_allclose(u, s * first, rtol=1e-14, atol=1e-300)
    assert_allclose(d, s * second, rtol=1e-14, atol=1e-300)


@each_case
def test_the_saturated_predictor_has_the_mean_y_and_no_loss(name, link, parameters, targets):
    family = _family(name, link, parameters)
    y = np.array([one for one in targets if np.isfinite(family.link(np.array([one]))).all()])
    z = family.saturated(y)
    value, u, d = family.evaluate(z, y, z)
    assert_allclose(family.mean(z), y, rtol=1e-12, atol=1e-15)
    assert_allclose(value, 0.0, atol=1e-12 * max(1.0, y.max(initial=0.0)))
    assert_allclose(u, 0.0, atol=1e-12 * max(1.0, y.max(initial=0.0)))
    assert (d > 0.0).all()


@each_case
def test_conjugates_meet_fenchel_young_with_equality_at_the_derivative_only(name, link, parameters, targets):
    family = _family(name, link, parameters)
    z, y = _pairs(targets)
    zy = family.saturated(y)
    value, u, _ = family.evaluate(z, y, zy)
    found = family.conjugate(u, y, zy)
    if link in ("probit", "cloglog"):
        assert found is None
        return
    # theta at a boundary of the domain is rounding there
    inside = np.isfinite(found)
    assert inside.mean() > 0.95
    assert_allclose(found[inside], (u * z - value)[inside], rtol=1e-9, atol=1e-9 * max(targets))
    other, own = np.roll(z, 7), inside
    bound = u * other - family.evaluate(other, y, zy)[0]
    assert (found[own] >= bound[own] - 1e-9 * (1.0 + np.abs(bound[own]))).all()
    # a dual point is scaled towards zero, which is in every domain
    assert np.isfinite(family.conjugate(0.5 * u[inside], y[inside], zy[inside])).all()
    assert_allclose(family.conjugate(0.0 * u, y, zy), 0.0, atol=1e-12 * max(1.0, *targets))


@pytest.mark.parametrize(
    ("name", "theta", "y"),
    [("poisson", -2.5, 2.0), ("gamma", 1.5, 2.0), ("tweedie", -0.5, 0.0), ("negative-binomial", 3.0, 1.0),
     ("negative-binomial", -1.5, 1.0), ("binomial", 0.9, 0.5), ("huber", 2.0, 0.0)],
)  # fmt: skip
def test_conjugates_are_infinite_outside_their_domain(name, theta, y):
    family, theta, y = make_family(name, **PARAMETERS), np.array([theta]), np.array([y])
    assert family.conjugate(theta, y, family.saturated(y))[0] == np.inf
