"""BoundedRegressor and BoundedClassifier beside scikit-learn's and SciPy's models of the same objective."""

import numpy as np
import pytest
import reference_bounded as reference
from reference_bounded import CLASSIFICATION, REGRESSION
from scipy.optimize import linprog, lsq_linear
from sklearn.linear_model import (
    SGDClassifier,
)

from sparsekit import BoundedClassifier, BoundedRegressor

REL = 1e-6


def value(ours, X, y, coef, intercept, sample_weight=None):
    """P of any coefficients, by the parameters of our model."""
    names = ("alpha", "l1_ratio", "quantile", "epsilon")
    params = {k: v for k, v in ours.get_params().items() if k in names}
    b = np.ravel(intercept)[0]
    return reference.objective(X, y, np.ravel(coef), b, ours.loss, sample_weight=sample_weight, **params)


def assert_equal_objective(ours, X, y, coef, intercept, sample_weight=None, rel=REL):
    """Neither solution is better than the other by more than rel, judged by one and the same function."""
    mine = value(ours, X, y, ours.coef_, ours.intercept_, sample_weight)
    theirs = value(ours, X, y, coef, intercept, sample_weight)
    assert mine <= theirs * (1 + REL)  # never worse than the peer, however loose the peer
    assert theirs <= mine * (1 + rel)
    assert np.ravel(ours.objective_)[0] == pytest.approx(mine, rel=1e-9)


@pytest.mark.parametrize("method", ["trf", "bvls"])
def test_lsq_linear_with_boxes(diabetes, method):
    X, y = diabetes
    rng = np.random.default_rng(0)
    lower = rng.uniform(-20, 5, X.shape[1])
    upper = lower + rng.uniform(0.1, 20, X.shape[1])
    lower[3], upper[5] = -np.inf, np.inf
    other = lsq_linear(X, y - y.mean(), (lower, upper), method=method, tol=1e-12)
    ours = BoundedRegressor("squared", bounds=(lower, upper), fit_intercept=False).fit(X, y - y.mean())
    assert_equal_objective(ours, X, y - y.mean(), other.x, 0.0)
    assert ours.objective_ == pytest.approx(other.cost / len(y), rel=REL)
    np.testing.assert_allclose(ours.coef_, other.x, atol=0.2)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linprog_with_boxes(diabetes, fit_intercept):
    """min mean |y - Xw - b| in the box as a linear program in (w, b, positive part, negative part)."""
    X, y = diabetes
    n, p = X.shape
    rng = np.random.default_rng(1)
    lower = rng.uniform(-20, 5, p)
    upper = lower + rng.uniform(0.0, 20, p)
    upper[2] = lower[2]
    free = np.inf if fit_intercept else 0.0
    box = [*zip(lower, upper), (-free, free), *[(0, None)] * (2 * n)]
    c = np.concatenate([np.zeros(p + 1), np.full(2 * n, 1 / n)])
    other = linprog(c, A_eq=np.hstack([X, np.ones((n, 1)), np.eye(n), -np.eye(n)]), b_eq=y, bounds=box)
    ours = BoundedRegressor("absolute", bounds=(lower, upper), fit_intercept=fit_intercept).fit(X, y)
    assert ours.objective_ == pytest.approx(other.fun, rel=REL)
    assert_equal_objective(ours, X, y, other.x[:p], other.x[p])


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_probabilities_are_those_of_sgd(loss, data, request):
    """The same coefficients in SGDClassifier give the same probabilities."""
    X, y = request.getfixturevalue(data)
    ours = BoundedClassifier(loss, alpha=1e-3).fit(X, y)
    other = SGDClassifier(loss=loss).fit(X, y)
    other.coef_, other.intercept_ = ours.coef_, ours.intercept_
    wide = np.concatenate([X, 30 * X, -30 * X])  # scores beyond the margins, and rows that no class wants
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
