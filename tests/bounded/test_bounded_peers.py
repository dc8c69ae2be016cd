"""BoundedRegressor and BoundedClassifier against scikit-learn's and SciPy's models of the same objective."""

import numpy as np
import pytest
from reference_bounded import CLASSIFICATION, REGRESSION
from sklearn.linear_model import (
    SGDClassifier,
)

from sparsekit import BoundedClassifier, BoundedRegressor

REL = 1e-6


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_probabilities_are_those_of_sgd(loss, data, request):
    """The same coefficients in SGDClassifier give the same probabilities."""
    X, y = request.getfixturevalue(data)
    ours = BoundedClassifier(loss, alpha=1e-3).fit(X, y)
    other = SGDClassifier(loss=loss).fit(X, y)
    other.coef_, other.intercept_ = ours.coef_, ours.intercept_
    wide = np.concatenate(
        [X, 30 * X, -30 * X]
    )  # scores beyond the margins, and rows without a positive score
    np.testing.assert_allclose(ours.predict_proba(wide), other.predict_proba(wide), atol=1e-12)
    with np.errstate(divide="ignore"):
        expected = np.log(other.predict_proba(wide))
    likely = expected > -20
    np.testing.assert_allclose(ours.predict_log_proba(wide)[likely], expected[likely], atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(wide), other.decision_function(wide), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(wide), other.predict(wide))


def test_probabilities_are_there_for_two_losses_only(cancer):
    X, y = cancer
    for loss in CLASSIFICATION:
        model = BoundedClassifier(loss, alpha=0.1)
        expected = loss in ("log_loss", "modified_huber")
        for name in ("predict_proba", "predict_log_proba"):
            assert hasattr(model, name) == expected
            assert hasattr(model.fit(X, y), name) == expected
    with pytest.raises(AttributeError, match=r"predict_proba|hinge"):
        BoundedClassifier("hinge").fit(X, y).predict_proba(X)


@pytest.mark.parametrize("loss", REGRESSION)
def test_units_of_the_target(diabetes, loss):
    """y in other units: the same model in those units (alpha and epsilon scaled as the loss is)."""
    X, y = diabetes
    power = 2 if loss in ("squared", "huber") else 1
    bounds = (-3.0, 8.0)
    plain = BoundedRegressor(loss, bounds=bounds, alpha=0.1, epsilon=20.0).fit(X, y)
    for factor in (1e-4, 1e5):
        model = BoundedRegressor(
            loss,
            bounds=(-3.0 * factor, 8.0 * factor),
            alpha=0.1 * factor ** (power - 2),
            epsilon=20.0 * factor,
        ).fit(X, y * factor)
        assert model.objective_ == pytest.approx(plain.objective_ * factor**power, rel=2 * REL)
