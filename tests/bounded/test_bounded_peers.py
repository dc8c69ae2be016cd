"""BoundedRegressor and BoundedClassifier probabilities against scikit-learn's."""

import numpy as np
import pytest
from reference_bounded import CLASSIFICATION
from sklearn.linear_model import (
    SGDClassifier,
)

from sparsekit import BoundedClassifier


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
