"""The guide's conversions from scikit-learn's parameters: both sides find the same model."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import ElasticNet, HuberRegressor, LogisticRegression, QuantileRegressor, Ridge
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


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_elastic_nets(ratio, two, three, numbers):
    new = "l1_ratio" in L1  # else the name of the penalty says it too
    how = dict(l1_ratio=ratio) if new else dict(penalty="elasticnet", l1_ratio=ratio)
    for data in (two, three):
        theirs = LogisticRegression(C=C, solver="saga", **how, **EXACT).fit(*data)
        assert_same(L1LogisticOBA(C, l1_ratio=ratio, tol=1e-8).fit(*data), theirs)
    n = len(numbers[1])
    theirs = ElasticNet(0.3, l1_ratio=ratio, **EXACT) if ratio else Ridge(0.3 * n)
    assert_same(LassoOBA(0.3, l1_ratio=ratio, tol=1e-8).fit(*numbers), theirs.fit(*numbers))


def test_liblinears_intercept_is_a_column_of_ones(two):
    X, y = two
    theirs = LogisticRegression(solver="liblinear", C=C, **L1, **EXACT).fit(X, y)
    ours = L1LogisticOBA(C=C, fit_intercept=False, tol=1e-8).fit(np.column_stack([X, np.ones(len(y))]), y)
    np.testing.assert_allclose(ours.coef_[:, :-1], theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.coef_[:, -1], theirs.intercept_, atol=1e-4)
    # and penalised: the free one is another
    free = L1LogisticOBA(C=C, tol=1e-8).fit(X, y)
    assert abs(free.intercept_ - theirs.intercept_).item() > 0.01


def test_weights_replace_n(two):
    """Class weights times sample weights: their sum is what C is divided by."""
    X, y = two
    weights = {0: 0.5, 1: 3.0}
    s = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    total = np.sum(s * np.where(y == 1, 3.0, 0.5))
    assert abs(total / len(y) - 1) > 0.2  # n instead would be seen
    theirs = LogisticRegression(C=C, class_weight=weights, **EXACT).fit(X, y, sample_weight=s)
    ours = BoundedClassifier("log_loss", alpha=1 / (C * total), class_weight=weights, tol=1e-10)
    assert_same(ours.fit(X, y, sample_weight=s), theirs)
    pair = SoftmaxClassifier(
        alpha=2 / (C * total), class_weight=weights, penalize_intercept=False, tol=1e-8
    ).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(pair.coef_[1] - pair.coef_[0], theirs.coef_[0], atol=1e-4)
    np.testing.assert_allclose(pair.intercept_[1] - pair.intercept_[0], theirs.intercept_[0], atol=1e-4)


def test_l2_of_more_classes(three):
    theirs = LogisticRegression(C=C, **EXACT).fit(*three)
    alpha = 1 / (C * len(three[1]))
    ours = SoftmaxClassifier(alpha=alpha, penalize_intercept=False, tol=1e-8).fit(*three)
    assert_same(ours, theirs, intercept=False)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_linear_svc(two, loss):
    alpha = 1 / (C * len(two[1]))
    ours = BoundedClassifier(loss, alpha=alpha, fit_intercept=False, tol=1e-10).fit(*two)
    theirs = LinearSVC(C=C, loss=loss, fit_intercept=False, **EXACT).fit(*two)
    assert_same(ours, theirs)
    options = dict(class_weight={0: 3.0}, fit_intercept=False)
    total = len(two[1]) + 2 * np.sum(two[1] == 0)
    ours = BoundedClassifier(loss, alpha=1 / (C * total), **options, tol=1e-10).fit(*two)
    assert_same(ours, LinearSVC(C=C, loss=loss, **options, **EXACT).fit(*two))


def drawn_weights(y):
    s = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    assert abs(s.mean() - 1) > 0.2
    return s


@pytest.mark.parametrize("positive", [False, True])
def test_elastic_net(numbers, positive):
    ours = BoundedRegressor(
        "squared", alpha=0.5, l1_ratio=0.4, bounds=(0 if positive else None, None), tol=1e-11
    ).fit(*numbers)
    assert_same(ours, ElasticNet(0.5, l1_ratio=0.4, positive=positive, **EXACT).fit(*numbers), atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_quantile_regressor(numbers, weighted):
    s = drawn_weights(numbers[1]) if weighted else None
    ours = BoundedRegressor("quantile", quantile=0.3, alpha=0.05, l1_ratio=1, tol=1e-11)
    theirs = QuantileRegressor(quantile=0.3, alpha=0.05)
    assert_same(ours.fit(*numbers, sample_weight=s), theirs.fit(*numbers, sample_weight=s))


@pytest.mark.parametrize("weighted", [False, True])
def test_huber_regressor(numbers, weighted):
    """Its penalty is in units of the scale that it estimates; its own tolerance decides the digits."""
    s = drawn_weights(numbers[1]) if weighted else np.ones(len(numbers[1]))
    theirs = HuberRegressor(epsilon=1.35, alpha=10, tol=1e-9, max_iter=10000).fit(*numbers, sample_weight=s)
    scale = theirs.scale_
    ours = BoundedRegressor("huber", epsilon=1.35 * scale, alpha=10 * scale / s.sum(), tol=1e-11)
    assert_same(ours.fit(*numbers, sample_weight=s), theirs, atol=1e-2)


def test_ridge_with_weights(numbers):
    s = drawn_weights(numbers[1])
    ours = BoundedRegressor("squared", alpha=30 / s.sum(), tol=1e-11).fit(*numbers, sample_weight=s)
    assert_same(ours, Ridge(30, **EXACT).fit(*numbers, sample_weight=s), atol=1e-3)


def test_linear_svr(numbers):
    n = len(numbers[1])
    ours = BoundedRegressor(
        "epsilon_insensitive", epsilon=5, alpha=1 / (C * n), fit_intercept=False, tol=1e-11
    )
    theirs = LinearSVR(C=C, epsilon=5, fit_intercept=False, **EXACT)
    assert_same(ours.fit(*numbers), theirs.fit(*numbers), atol=1e-3)
    s = drawn_weights(numbers[1])
    ours.set_params(alpha=1 / (C * s.sum()))
    assert_same(ours.fit(*numbers, sample_weight=s), theirs.fit(*numbers, sample_weight=s), atol=1e-3)


def test_glmnets_standardization(two):
    """penalty_weights of the columns' deviations fit what standardised columns do, on the original scale."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:100] * 10.0 ** np.linspace(-1, 1, X.shape[1]), y[:100]
    scaler = StandardScaler()
    scaled = L1LogisticOBA(C=C, tol=1e-9).fit(scaler.fit_transform(X), y)
    weighted = L1LogisticOBA(C=C, penalty_weights=X.std(axis=0), tol=1e-12, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(weighted.coef_ * scaler.scale_, scaled.coef_, atol=1e-4)


def test_glmnets_limits_relaxation_and_ends_of_paths(two, numbers):
    """Its rows that have no parameter of their own here."""
    X, y = two
    n = len(y)
    model = BoundedClassifier("log_loss", alpha=1 / (C * n), l1_ratio=1, bounds=(0, None)).fit(-X, y)
    assert (model.coef_ >= 0).all() and 0 < (model.coef_ > 0).sum() < X.shape[1]
    # the optimality conditions of coefficients >= 0, and the certificate
    slope = -(-X).T @ (y - model.predict_proba(-X)[:, 1]) / n + model.alpha
    assert slope.min() > -1e-3 * model.alpha
    np.testing.assert_allclose(slope[model.coef_[0] > 1e-6], 0, atol=1e-3 * model.alpha)
    assert model.dual_gap_ <= 1e-5 * model.objective_
    X, y = numbers
    model = LassoOBA(0.5).fit(X, y)
    used = model.coef_ != 0
    relaxed = LassoOBA(0.0, tol=1e-9).fit(X[:, used], y)
    A = np.column_stack([X[:, used], np.ones(len(y))])
    wanted = np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(np.append(relaxed.coef_, relaxed.intercept_), wanted, atol=1e-4)
    path = LassoOBA.path(X, y, callback=lambda now: now.nnz > 5)  # the intercept counts
    assert path.n_nonzero[-1] >= 5 and (path.n_nonzero[:-1] <= 5).all() and len(path.lambdas) < 50
