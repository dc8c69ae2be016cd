"""The guide's conversions from scikit-learn's parameters: both sides find the same model."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from sparsekit import BoundedClassifier, BoundedRegressor, L1LogisticOBA, LassoOBA, SoftmaxClassifier

C = 0.1
# scikit-learn renamed the L1 penalty; this is what the installed release takes silently
L1 = dict(l1_ratio=1) if LogisticRegression().get_params()["penalty"] == "deprecated" else dict(penalty="l1")
EXACT = dict(tol=1e-8, max_iter=20000)


@pytest.fixture(scope="module")
def two():
    """Two classes, 100 rows, standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:100]), y[:100]


@pytest.fixture(scope="module")
def three():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def numbers():
    X, y = load_diabetes(return_X_y=True)
    return 20 * X, y - y.mean()


def assert_same(ours, theirs, intercept=True, atol=1e-4):
    assert np.abs(theirs.coef_).max() > 0.01
    np.testing.assert_allclose(np.squeeze(ours.coef_), np.squeeze(theirs.coef_), atol=atol)
    if intercept:
        np.testing.assert_allclose(np.squeeze(ours.intercept_), np.squeeze(theirs.intercept_), atol=atol)


def test_liblinear_without_intercept(two):
    ours = L1LogisticOBA(C=C, fit_intercept=False, tol=1e-8).fit(*two)
    assert_same(
        ours, LogisticRegression(solver="liblinear", C=C, fit_intercept=False, **L1, **EXACT).fit(*two)
    )


def test_liblinears_intercept_is_a_column_of_ones(two):
    X, y = two
    theirs = LogisticRegression(solver="liblinear", C=C, **L1, **EXACT).fit(X, y)
    ours = L1LogisticOBA(C=C, fit_intercept=False, tol=1e-8).fit(np.column_stack([X, np.ones(len(y))]), y)
    np.testing.assert_allclose(ours.coef_[:, :-1], theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.coef_[:, -1], theirs.intercept_, atol=1e-4)
    # and penalised: the free one is another
    free = L1LogisticOBA(C=C, tol=1e-8).fit(X, y)
    assert abs(free.intercept_ - theirs.intercept_).item() > 0.01


@pytest.mark.parametrize("data", ["two", "three"])
def test_saga(data, request):
    X, y = request.getfixturevalue(data)
    ours = L1LogisticOBA(C=C, tol=1e-8).fit(X, y)
    assert_same(ours, LogisticRegression(solver="saga", C=C, **L1, **EXACT).fit(X, y))


def test_class_weight(two):
    weights = {0: 0.5, 1: 3.0}
    ours = L1LogisticOBA(C=C, class_weight=weights, tol=1e-8).fit(*two)
    assert_same(ours, LogisticRegression(solver="saga", C=C, class_weight=weights, **L1, **EXACT).fit(*two))


def test_l2_of_two_classes(two):
    n = len(two[1])
    theirs = LogisticRegression(C=C, **EXACT).fit(*two)
    assert_same(BoundedClassifier("log_loss", alpha=1 / (C * n), tol=1e-10).fit(*two), theirs)
    pair = SoftmaxClassifier(alpha=2 / (C * n), penalize_intercept=False, tol=1e-8).fit(*two)
    np.testing.assert_allclose(pair.coef_[1] - pair.coef_[0], theirs.coef_[0], atol=1e-4)


def test_l2_of_more_classes(three):
    theirs = LogisticRegression(C=C, **EXACT).fit(*three)
    alpha = 1 / (C * len(three[1]))
    ours = SoftmaxClassifier(alpha=alpha, penalize_intercept=False, tol=1e-8).fit(*three)
    assert_same(ours, theirs, intercept=False)


def test_elastic_net_of_classes(two):
    mixed = L1 | dict(l1_ratio=0.4) if "penalty" not in L1 else dict(penalty="elasticnet", l1_ratio=0.4)
    theirs = LogisticRegression(solver="saga", C=C, **mixed, **EXACT).fit(*two)
    assert_same(BoundedClassifier(alpha=1 / (C * len(two[1])), l1_ratio=0.4, tol=1e-10).fit(*two), theirs)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_linear_svc(two, loss):
    alpha = 1 / (C * len(two[1]))
    ours = BoundedClassifier(loss, alpha=alpha, fit_intercept=False, tol=1e-10).fit(*two)
    theirs = LinearSVC(C=C, loss=loss, fit_intercept=False, **EXACT).fit(*two)
    assert_same(ours, theirs)


def test_linear_svc_with_l1(two):
    alpha = 1 / (C * len(two[1]))
    ours = BoundedClassifier("squared_hinge", alpha=alpha, l1_ratio=1, fit_intercept=False, tol=1e-10)
    theirs = LinearSVC(C=C, penalty="l1", dual=False, fit_intercept=False, **EXACT)
    assert_same(ours.fit(*two), theirs.fit(*two))


def test_lasso(numbers):
    assert_same(LassoOBA(2.0, tol=1e-9).fit(*numbers), Lasso(2.0, **EXACT).fit(*numbers), atol=1e-3)


@pytest.mark.parametrize("positive", [False, True])
def test_elastic_net(numbers, positive):
    ours = BoundedRegressor(
        "squared", alpha=0.5, l1_ratio=0.4, bounds=(0 if positive else None, None), tol=1e-11
    ).fit(*numbers)
    assert_same(ours, ElasticNet(0.5, l1_ratio=0.4, positive=positive, **EXACT).fit(*numbers), atol=1e-3)


@pytest.mark.parametrize("positive", [False, True])
def test_ridge(numbers, positive):
    n = len(numbers[1])
    ours = BoundedRegressor("squared", alpha=30 / n, bounds=(0 if positive else None, None), tol=1e-11)
    theirs = Ridge(30, positive=positive, **EXACT)
    assert_same(ours.fit(*numbers), theirs.fit(*numbers), atol=1e-3)


def test_quantile_regressor(numbers):
    ours = BoundedRegressor("quantile", quantile=0.3, alpha=0.05, l1_ratio=1, tol=1e-11).fit(*numbers)
    assert_same(ours, QuantileRegressor(quantile=0.3, alpha=0.05).fit(*numbers))


def test_linear_svr(numbers):
    n = len(numbers[1])
    ours = BoundedRegressor(
        "epsilon_insensitive", epsilon=5, alpha=1 / (C * n), fit_intercept=False, tol=1e-11
    )
    theirs = LinearSVR(C=C, epsilon=5, fit_intercept=False, **EXACT)
    assert_same(ours.fit(*numbers), theirs.fit(*numbers), atol=1e-3)


def test_sgd_has_the_same_alpha(two):
    """SGD is rough: its solution is near ours, and of no lower objective."""
    X, y = two
    options = dict(alpha=0.1, fit_intercept=False, tol=None)
    theirs = SGDClassifier("log_loss", max_iter=300, random_state=0, average=True, **options).fit(X, y)
    ours = BoundedClassifier(alpha=0.1, fit_intercept=False, tol=1e-10).fit(X, y)
    assert_same(ours, theirs, atol=0.02)


def test_glmnets_standardization(two):
    """penalty_weights of the columns' deviations fit what standardised columns do, on the original scale."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:100] * 10.0 ** np.linspace(-1, 1, X.shape[1]), y[:100]
    scaler = StandardScaler()
    scaled = L1LogisticOBA(C=C, tol=1e-9).fit(scaler.fit_transform(X), y)
    weighted = L1LogisticOBA(C=C, penalty_weights=X.std(axis=0), tol=1e-12, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(weighted.coef_ * scaler.scale_, scaled.coef_, atol=1e-4)
