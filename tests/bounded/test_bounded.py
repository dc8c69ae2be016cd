"""BoundedRegressor and BoundedClassifier against an independent solver that certifies its answers."""

import functools
import warnings

import numpy as np
import pytest
import reference_bounded as reference
import scipy.sparse as sp
from reference_bounded import CLASSIFICATION, REGRESSION
from sklearn.base import clone

from sparsekit import BoundedClassifier, BoundedRegressor, load, save

LOSSES = REGRESSION + CLASSIFICATION
REL = 1e-6
PENALTIES = {"none": (0.0, 0.0), "l1": (0.05, 1.0), "l2": (0.05, 0.0), "both": (0.05, 0.4)}
INF = np.inf
# no bound, a fixed coefficient, one-sided ones, a box that holds zero and one that does not
MIXED = (np.array([-INF, 0.25, 0.0, -INF, -0.1, -1.0, 0.3]), np.array([INF, 0.25, INF, 0.2, 0.15, -0.4, 0.9]))
BOUNDS = {"free": (None, None), "nonnegative": (0, None), "scalars": (-0.2, 0.3), "mixed": MIXED}


def estimator(loss, **params):
    return (BoundedRegressor if loss in REGRESSION else BoundedClassifier)(loss, **params)


def data(loss, seed=0, n=80, p=7):
    """Rows, targets and weights (some zero); classes overlap, so that no loss needs a penalty."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.3
    z = X @ np.array([1.0, 0.3, -0.5, 0.6, 0.0, -0.8, 0.1, *np.zeros(p)])[:p] + 0.7
    y = z + rng.standard_t(3, n)
    weights = rng.uniform(0, 2, n) * (rng.random(n) < 0.9)
    return X, (y if loss in REGRESSION else np.where(y > 0.5, 1.0, -1.0)), weights


def own(model):
    """The parameters that the objective depends on."""
    names = ("alpha", "l1_ratio", "quantile", "epsilon")
    return {k: v for k, v in model.get_params().items() if k in names}


def fitted_objective(model, X, y, sample_weight=None):
    """P of a fitted model; for the classifier with y -1 or 1."""
    w, b = np.ravel(model.coef_), np.ravel(model.intercept_)[0]
    return reference.objective(X, y, w, b, model.loss, sample_weight=sample_weight, **own(model))


def scalar(value):
    return np.asarray(value).reshape(()).item() if np.ndim(value) == 0 else np.asarray(value).item()


def assert_in_bounds(model, bounds):
    """Exactly: no tolerance."""
    w = model.coef_.astype(np.float64)
    lower, upper = (np.broadcast_to(b, w.shape) for b in reference.as_bounds(bounds, w.shape[-1]))
    assert (w >= lower).all() and (w <= upper).all(), np.min([w - lower, upper - w])


def check(model, X, y, sample_weight=None, rel=REL):
    """Fit; the objective must be the reference's, the certificate an upper bound of the error, and the bounds
    met.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sample_weight=sample_weight)
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    _, _, best = reference.solve(
        dense, y, model.loss, model.bounds, fit_intercept=model.fit_intercept, sample_weight=sample_weight,
        rel=min(1e-8, 0.01 * rel), **own(model),
    )  # fmt: skip
    value, gap = scalar(model.objective_), scalar(model.dual_gap_)
    assert value == pytest.approx(fitted_objective(model, dense, y, sample_weight), rel=1e-9, abs=1e-14)
    assert_in_bounds(model, model.bounds)
    assert -1e-7 * best <= value - best <= rel * best, (value, best)
    assert 0 <= gap <= model.tol * value * (1 + 1e-9)
    assert value - best <= gap + 1e-8 * best
    if not model.fit_intercept:
        assert np.all(model.intercept_ == 0.0)
    return best


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_matches_the_reference(loss, penalty, bounds):
    alpha, l1_ratio = PENALTIES[penalty]
    params = dict(bounds=BOUNDS[bounds], alpha=alpha, l1_ratio=l1_ratio)
    if loss in REGRESSION:
        params.update(quantile=0.3, epsilon=0.4)
    X, y, weights = data(loss)
    for fit_intercept in (True, False):
        for s in (None, weights):
            check(estimator(loss, fit_intercept=fit_intercept, **params), X, y, s)


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive"])
def test_epsilon(loss):
    X, y, s = data(loss)
    for epsilon in (0.01, 1.0, 3.0):
        check(BoundedRegressor(loss, epsilon=epsilon, bounds=MIXED), X, y, s)
    # the ends: no tube is the absolute loss, and a huge epsilon the squared loss or no loss at all
    if loss == "epsilon_insensitive":
        tube = BoundedRegressor(loss, epsilon=0.0).fit(X, y).objective_
        assert tube == pytest.approx(BoundedRegressor("absolute").fit(X, y).objective_, rel=REL)
        assert BoundedRegressor(loss, epsilon=1e3, alpha=0.1).fit(X, y).objective_ == pytest.approx(
            0, abs=1e-9
        )
    else:
        squared = BoundedRegressor("squared").fit(X, y).objective_
        assert BoundedRegressor(loss, epsilon=1e3).fit(X, y).objective_ == pytest.approx(squared, rel=REL)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("loss", LOSSES)
def test_tol_is_the_proved_relative_gap(loss, tol):
    X, y, s = data(loss)
    check(estimator(loss, bounds=MIXED, alpha=0.01, l1_ratio=0.5, tol=tol), X, y, s, rel=tol)


def with_float32_bounds():
    """Bounds that no float32 is equal to; the fixed coefficient is one that float32 has."""
    lower, upper = (side.copy() for side in MIXED)
    return lower, np.where(lower == upper, upper, np.where(upper == 0.9, 0.7, upper))


@functools.cache
def best_in_float32(loss, index):
    """Rows rounded to float32, targets, bounds, and the least objective within them."""
    X, y, _ = data(loss)
    X = X.astype(np.float32).astype(np.float64)
    pair = [
        (-0.1, 0.1),
        with_float32_bounds(),
        (0.1, None),
        (None, 1 / 3),
        (np.full(7, -1e-9), np.full(7, 1e-9)),
    ][index]
    return X, y, pair, reference.solve(X, y, loss, pair, **own(estimator(loss, alpha=0.01)))[2]


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_float32_keeps_the_bounds_exactly(loss, container):
    for index in range(5):
        X, y, pair, best = best_in_float32(loss, index)
        model = estimator(loss, bounds=pair, alpha=0.01, tol=1e-5).fit(container(X.astype(np.float32)), y)
        assert model.coef_.dtype == np.float32
        assert_in_bounds(model, pair)
        assert scalar(model.objective_) == pytest.approx(best, rel=5e-5)
        # objective_ is that of the coefficients that the user gets
        assert scalar(model.objective_) == pytest.approx(fitted_objective(model, X, y), rel=1e-5)


def test_a_coefficient_fixed_between_two_float32():
    """No float32 is 0.1: the nearest is the answer, and no error."""
    X, y, _ = data("absolute")
    model = BoundedRegressor(bounds=(np.full(7, 0.1), np.full(7, 0.1))).fit(X.astype(np.float32), y)
    assert np.abs(model.coef_ - 0.1).max() <= np.spacing(np.float32(0.1))
    double = BoundedRegressor(bounds=(0.1, 0.1)).fit(X, y)
    assert (double.coef_ == 0.1).all()
    rest = y - 0.1 * X.sum(axis=1)
    assert double.objective_ == pytest.approx(np.abs(rest - np.median(rest)).mean(), rel=REL)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_bound_that_is_no_bound(loss):
    X, y, s = data(loss)
    free = estimator(loss, alpha=0.01).fit(X, y, s)
    for bounds in ((None, None), (-INF, None), [None, INF], (np.full(7, -INF), 1e300), (-1e9, 1e9)):
        model = estimator(loss, alpha=0.01, bounds=bounds).fit(X, y, s)
        assert scalar(model.objective_) == pytest.approx(scalar(free.objective_), rel=2 * REL)


@pytest.mark.parametrize("shape", [(200, 8), (3000, 12)])
@pytest.mark.parametrize("loss", ["absolute", "quantile", "epsilon_insensitive", "hinge"])
def test_a_warm_start_ends_at_the_solution(loss, shape, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    y = X[:, :4].sum(axis=1) + rng.standard_t(3, shape[0])
    make, targets = (BoundedClassifier, y > 0) if loss == "hinge" else (BoundedRegressor, y)
    model = make(loss, bounds=(0, None), alpha=1e-3, warm_start=True).fit(X, targets)
    objective = model.objective_
    model.fit(X, targets)
    np.testing.assert_allclose(model.objective_, objective, rtol=3e-6)
    other = ~targets if loss == "hinge" else y[::-1].copy()
    fresh = clone(model).fit(X, other)
    model.fit(X, other)
    np.testing.assert_allclose(model.objective_, fresh.objective_, rtol=3e-6)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    loaded.fit(X, other)
    np.testing.assert_allclose(loaded.objective_, fresh.objective_, rtol=3e-6)
