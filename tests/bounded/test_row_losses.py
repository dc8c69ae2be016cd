"""The losses of the bounded models: kernels against NumPy, envelopes against their definition, duals."""

import numpy as np
import pytest
import reference_bounded as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from sparsekit._bounded.losses.losses import (
    LossRows,
    classification_loss,
    regression_loss,
    robust_spread,
    weighted_quantile,
)

SETTINGS = dict(quantile=0.3, epsilon=0.7)
KINKS = ("absolute", "quantile", "epsilon_insensitive", "hinge")


def loss_of(name, seed=0, n=60):
    """The loss on random rows, predictors of all sizes, and the reference's arguments."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 2, n)
    s = rng.random(n)
    s[:3] = 0.0
    s /= s.sum()
    if name in reference.REGRESSION:
        y = rng.standard_normal(n)
        return regression_loss(name, y, s, **SETTINGS), z, y, s
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return classification_loss(name, y, s), z, y, s


ALL = (*reference.REGRESSION, *reference.CLASSIFICATION)


@pytest.mark.parametrize("name", ALL)
def test_values_and_slopes(name):
    loss, z, y, s = loss_of(name)
    rows = loss.evaluate(z, LossRows.empty(len(z)))
    plain = reference.losses(name, z, y, SETTINGS["quantile"], SETTINGS["epsilon"])
    assert rows.f == pytest.approx(float(s @ plain), rel=1e-12)
    # convex and not at a kink: the slope is the derivative
    h = 1e-6 * np.maximum(np.abs(z), 1)
    up, down = (
        reference.losses(name, z + k * h, y, SETTINGS["quantile"], SETTINGS["epsilon"]) for k in (1, -1)
    )
    np.testing.assert_allclose(rows.u, s * (up - down) / (2 * h), rtol=1e-5, atol=1e-8)
    if name not in KINKS:
        below, above = (loss.evaluate(z + k * h, LossRows.empty(len(z))).u for k in (-1, 1))
        np.testing.assert_allclose(rows.curvature, (above - below) / (2 * h), rtol=1e-4, atol=1e-6)
    else:
        assert not rows.curvature.any()
    dz = np.random.default_rng(1).standard_normal(len(z))
    for step in (0.0, 0.3, -2.0):
        moved = loss.evaluate(z + step * dz, LossRows.empty(len(z)))
        assert loss.slope_along(z, dz, step) == pytest.approx(float(moved.u @ dz), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", KINKS)
def test_envelope_is_its_definition(name):
    """max over a of a r - h*(a) - delta/2 (a - a')^2, by a search for each row."""
    loss, z, y, s = loss_of(name, n=25)
    previous = np.random.default_rng(2).uniform(loss.lo, loss.hi, len(z))
    for delta in (1e-2, 1.0, 50.0):
        rows = loss.evaluate(z, LossRows.empty(len(z)), delta, previous)
        r = (z - y) * (1.0 if loss.c is None else y)
        total = 0.0
        for i in range(len(z)):

            def minus(a, i=i, r=r, delta=delta):
                return -(a * r[i] - loss.eps * abs(a) - 0.5 * delta * (a - previous[i]) ** 2)

            found = optimize.minimize_scalar(minus, bounds=(loss.lo, loss.hi), options={"xatol": 1e-12})
            best = min(found.fun, minus(loss.lo), minus(loss.hi), minus(0.0))
            total -= s[i] * best
            assert minus(rows.dual[i]) <= best + 1e-9
        assert rows.f == pytest.approx(total, rel=1e-8)
        sign = 1.0 if loss.c is None else loss.c
        np.testing.assert_allclose(rows.u, s * sign * rows.dual, rtol=1e-15)
        inside = (rows.dual > loss.lo) & (rows.dual < loss.hi) & ((rows.dual != 0) | (loss.eps == 0))
        np.testing.assert_allclose(rows.curvature, np.where(inside, s / delta, 0.0), rtol=1e-14)
        dz = np.ones(len(z))
        assert loss.slope_along(z, dz, 0.0, delta, previous) == pytest.approx(float(rows.u.sum()), rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_fenchel_young(name):
    """sum of losses >= u . z + dual value, with equality at the slopes' own predictor."""
    loss, z, _, _ = loss_of(name)
    rows = loss.evaluate(z, LossRows.empty(len(z)))
    dual = loss.dual_value(rows)
    assert rows.f == pytest.approx(float(rows.u @ z) + dual, rel=1e-10, abs=1e-12)
    for seed in range(5):
        other = z + np.random.default_rng(seed).standard_normal(len(z)) * 3
        assert loss.evaluate(other, LossRows.empty(len(z))).f >= float(rows.u @ other) + dual - 1e-12


def test_extreme_predictors():
    """Overflow gives an infinite value or a NaN, which no search accepts, never a small number."""
    y = np.array([1.0, -1.0, 1.0])
    weight = np.full(3, 1 / 3)
    for z in (np.array([1e200, 1e200, -1e200]), np.array([np.inf, 0.0, 0.0]), np.array([np.nan, 0.0, 0.0])):
        for name in ALL:
            if name in reference.REGRESSION:
                loss = regression_loss(name, y, weight, **SETTINGS)
            else:
                loss = classification_loss(name, y, weight)
            f = loss.evaluate(z, LossRows.empty(3)).f
            if np.isnan(z[0]):
                assert np.isnan(f)
            else:
                plain = reference.losses(name, z, y, 0.3, 0.7)
                assert not np.isfinite(f) or f == pytest.approx(plain.mean(), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4)), min_size=1), st.floats(0.05, 0.95))
def test_weights_are_repeated_rows(pairs, q):
    values, counts = (np.array(column) for column in zip(*pairs))
    if not counts.any():
        counts[0] = 1
    repeated = np.repeat(values, counts).astype(float)
    values, weight = values.astype(float), counts / counts.sum()
    flat = np.full(len(repeated), 1 / len(repeated))
    assert weighted_quantile(values, weight, q) == weighted_quantile(repeated, flat, q)
    at = weighted_quantile(values, weight, q)
    assert weight[values <= at].sum() >= q - 1e-9 and weight[values < at].sum() <= q + 1e-9
    assert robust_spread(values, weight) == pytest.approx(robust_spread(repeated, flat), abs=1e-12)


def test_outliers_add_to_the_excess_only():
    y = np.random.default_rng(0).standard_normal(1000)
    weight = np.full(1000, 1e-3)
    clean = regression_loss("absolute", y, weight, **SETTINGS)
    assert clean.excess(np.zeros(1000)) == 0.0 and 0.8 < clean.spread < 1.2
    y[0] = 1e9
    loss = regression_loss("absolute", y, weight, **SETTINGS)
    rows = loss.evaluate(np.zeros(1000), LossRows.empty(1000))
    assert 0.8 < loss.spread < 1.2 and loss.excess(np.zeros(1000)) == pytest.approx(1e6, rel=1e-5)
    assert 0.0 < rows.f - loss.excess(np.zeros(1000)) < 5.0
