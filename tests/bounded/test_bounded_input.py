"""BoundedRegressor and BoundedClassifier: what is refused and how, large numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sparsekit import BoundedClassifier, BoundedRegressor

every_model = pytest.mark.parametrize(
    "model", [BoundedRegressor(), BoundedClassifier()], ids=["regressor", "classifier"]
)


@pytest.fixture(scope="module")
def rows():
    """X and a target of -1 and 1, which is good for both estimators."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    return X, np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)


def refused(model, X, y, match, **fit_params):
    with pytest.raises(ValueError, match=match):
        clone(model).fit(X, y, **fit_params)


# Bounds that are refused, and what the error names, with the targets of 60 rows: -1 and 1, or three classes.
ONE = r"it must be one number for all features, or of shape \(5,\), a number for each feature"
PAIR = r"bounds|could not convert"
REFUSED = {
    "cross": ((np.array([0, 0, 0, 1.5, 0]), np.ones(5)), r"(?s)bounds.*\b3\b"),
    "cross in float32": (
        (np.full(5, 1.5), np.array([2, 2, 2, np.nextafter(1.5, 1.0), 2])),
        r"(?s)bounds.*\b3\b",
    ),
    "cross everywhere": ((2.0, 1.0), "bounds"),
    "lower at infinity": ((np.inf, None), "bounds|inf"),
    "upper at -infinity": ((None, -np.inf), "bounds|inf"),
    "NaN": ((np.nan, None), r"(?s)bounds.*NaN|NaN.*bounds"),
    "NaN of a feature": ((None, np.array([0, 0, np.nan, 0, 0])), r"(?s)bounds.*NaN|NaN.*bounds"),
    **{
        f"shape {n}": ((np.zeros(n), None), rf"lower bound has shape \({n},\); {ONE}")
        for n in (1, 2, 4, 6, 60)
    },
    "shape of the upper": ((None, np.zeros(2)), rf"upper bound has shape \(2,\); {ONE}"),
    "a column": ((np.zeros((5, 1)), None), "(?s)bounds.*5"),
    **{
        f"no pair {k}": (bounds, PAIR)
        for k, bounds in enumerate(
            (None, 1.0, (), (0.0,), (0, 1, 2), "ab", np.zeros((5, 2)), [(0, 1)] * 5, {"low": 0}, ("a", "b"))
        )
    },
    **{
        f"no number {k}": (bounds, "bounds")
        for k, bounds in enumerate(
            ({0: 3}, {0: ("a", 1)}, {0: ([1, 2], 1)}, ("0", "1"), (None, [[1.0, "x"]]))
        )
    },
}


@every_model
@pytest.mark.parametrize("name", REFUSED)
def test_bounds_that_are_refused(rows, model, name):
    X, y = rows
    bounds, match = REFUSED[name]
    for container in (np.asarray, np.float32):
        with pytest.raises((ValueError, TypeError), match=match):
            clone(model).set_params(bounds=bounds).fit(container(X), y)


def test_bounds_of_several_classes_and_of_names_that_are_refused(rows):
    X, y = rows
    crossed = np.zeros((3, 5))
    crossed[1, 4] = 1.0
    for lower, upper, match in (
        (crossed, 0.5, r"(?s)bounds.*\b1\b.*\b4\b"),
        (np.zeros((2, 5)), None, "bounds"),
        (np.zeros((1, 5)), None, "bounds"),
        (np.zeros(2), None, rf"{ONE}, or \(3, 5\), that of coef_\.$"),
    ):
        refused(BoundedClassifier(bounds=(lower, upper)), X, np.arange(60) % 3, match)
    refused(BoundedRegressor(bounds=(np.zeros((1, 5)), None)), X, y, "bounds")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "price", "e"])
    lower = np.array([0, 0, 0, 2.0, 0])
    refused(BoundedRegressor(bounds=(lower, 1.0)), frame, y, r"(?s)bounds.*(\b3\b|price)")
    refused(BoundedRegressor(bounds={"a": (0, 1), 0: (1, 2)}), frame, y, "bounds.*twice")


def test_columns_whose_squares_overflow(rows):
    X, y = rows
    for scale in (1e200, 1e-200):
        refused(BoundedRegressor(), X * [1, 1, scale, 1, 1], y, "column 2")


def test_float32_objective_is_that_of_the_coefficients():
    """Rounded coefficients and the columns' large mean: the intercept makes up for it."""
    rng = np.random.default_rng(0)
    X = (1e4 + rng.standard_normal((500, 5))).astype(np.float32)
    y = (X - 1e4) @ np.ones(5) + 0.01 * rng.standard_normal(500)
    model = BoundedRegressor().fit(X, y)
    exact = BoundedRegressor().fit(X.astype(np.float64), y)
    value = np.mean(np.abs(X.astype(np.float64) @ model.coef_.astype(np.float64) + model.intercept_ - y))
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert 0 <= model.objective_ - exact.objective_ <= min(model.dual_gap_ + 1e-12, 1e-5 * value)


@pytest.mark.parametrize("loss", ["absolute", "quantile", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("top", [1e160, 1e300, 1.7e308])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_huge_target_is_fitted_or_refused(loss, top):
    """The square of it overflowed, and the optimality was NaN."""
    X, y = np.random.default_rng(0).standard_normal((6, 3)), np.zeros(6)
    y[0] = top
    try:
        model = BoundedRegressor(loss=loss).fit(X, y)
    except ValueError as error:
        assert str(error).startswith("y is too large: the objective") and top > 1e305
    else:
        assert np.isfinite(model.objective_) and np.isfinite(model.coef_).all()
        assert model.optimality_ >= 0 and (np.isfinite(model.optimality_) or top > 1e305)


def test_lists_of_two_for_two_features_are_refused_as_ambiguous():
    X, y = np.eye(2), np.array([0, 1])
    for model in (BoundedRegressor(), BoundedClassifier()):
        for bounds in ([(0, 1), (0, 5)], ([0, 0], [1, 5]), [(0, None), (0, None)]):
            with pytest.raises(ValueError, match=r"or as a pair for each feature.*\{0: \(lower, upper\)"):
                model.set_params(bounds=bounds).fit(X, y)
    wide = BoundedRegressor(bounds=(np.array([0.0, 0.0]), np.array([1.0, 5.0]))).fit(9 * X, [0, 90])
    named = BoundedRegressor(bounds={0: (0, 1), 1: (0, 5)}).fit(9 * X, [0, 90])
    assert wide.coef_[1] <= 5 and named.coef_[1] <= 5
    np.testing.assert_array_equal(wide.coef_, named.coef_)
