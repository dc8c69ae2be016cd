"""The guide's conversions from scikit-learn's parameters: both sides find the same model."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.metrics import d2_log_loss_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from sparsekit import GLMOBA, BoundedClassifier, BoundedRegressor, L1LogisticOBA, LassoOBA, SoftmaxClassifier

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


def test_no_penalty(two):
    X, y = two[0][:, :2], two[1]
    assert_same(L1LogisticOBA(C=np.inf, tol=1e-9).fit(X, y), LogisticRegression(C=np.inf, **EXACT).fit(X, y))


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


@pytest.mark.parametrize("solver", ["liblinear", "saga"])
def test_l1_needs_no_conversion_for_weights(two, solver):
    X, y = two
    options = dict(C=C, class_weight={0: 3.0}, fit_intercept=False)
    theirs = LogisticRegression(solver=solver, **options, **L1, **EXACT).fit(X, y)
    assert_same(L1LogisticOBA(**options, tol=1e-8).fit(X, y), theirs)


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


def test_linear_svc_with_l1(two):
    alpha = 1 / (C * len(two[1]))
    ours = BoundedClassifier("squared_hinge", alpha=alpha, l1_ratio=1, fit_intercept=False, tol=1e-10)
    theirs = LinearSVC(C=C, penalty="l1", dual=False, fit_intercept=False, **EXACT)
    assert_same(ours.fit(*two), theirs.fit(*two))


def drawn_weights(y):
    s = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    assert abs(s.mean() - 1) > 0.2
    return s


@pytest.mark.parametrize("weighted", [False, True])
def test_lasso(numbers, weighted):
    s = drawn_weights(numbers[1]) if weighted else None
    ours, theirs = LassoOBA(2.0, tol=1e-9), Lasso(2.0, **EXACT)
    assert_same(ours.fit(*numbers, sample_weight=s), theirs.fit(*numbers, sample_weight=s), atol=1e-3)


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


def test_sgd_has_the_same_alpha(two):
    """SGD is approximate: its solution is near ours, with no lower objective."""
    X, y = two
    options = dict(alpha=0.1, fit_intercept=False, tol=None)
    theirs = SGDClassifier("log_loss", max_iter=300, random_state=0, average=True, **options).fit(X, y)
    ours = BoundedClassifier(alpha=0.1, fit_intercept=False, tol=1e-10).fit(X, y)
    assert_same(ours, theirs, atol=0.02)
    # it divides the weighted losses by the number of rows, not by the sum of the weights
    weights = {0: 3.0, 1: 1.0}
    theirs = SGDClassifier(
        "log_loss", max_iter=300, random_state=0, average=True, class_weight=weights, **options
    ).fit(X, y)
    alpha = 0.1 * len(y) / (len(y) + 2 * np.sum(y == 0))
    ours = BoundedClassifier(alpha=alpha, fit_intercept=False, class_weight=weights, tol=1e-10).fit(X, y)
    assert_same(ours, theirs, atol=0.02)


def test_the_share_of_deviance(two):
    """glmnet's dev.ratio is 1 - deviance / null deviance, of the fit without its penalty."""
    X, y = two
    model = L1LogisticOBA(C=C, tol=1e-8).fit(X, y)
    share = np.mean(y)
    null = -len(y) * (share * np.log(share) + (1 - share) * np.log(1 - share))
    ratio = 1 - (model.objective_ - np.abs(model.coef_).sum() / C) / null
    assert 0.1 < ratio < 0.95
    np.testing.assert_allclose(d2_log_loss_score(y, model.predict_proba(X)), ratio, rtol=1e-6)


def test_glmnets_standardization(two):
    """penalty_weights of the columns' deviations fit what standardised columns do, on the original scale."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:100] * 10.0 ** np.linspace(-1, 1, X.shape[1]), y[:100]
    scaler = StandardScaler()
    scaled = L1LogisticOBA(C=C, tol=1e-9).fit(scaler.fit_transform(X), y)
    weighted = L1LogisticOBA(C=C, penalty_weights=X.std(axis=0), tol=1e-12, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(weighted.coef_ * scaler.scale_, scaled.coef_, atol=1e-4)


def test_an_offset_is_glums(two):
    glum = pytest.importorskip("glum", reason="the offsets of glum need glum")
    X, y = two
    offset = np.random.default_rng(0).standard_normal(len(y))
    theirs = glum.GeneralizedLinearRegressor(
        family="binomial", alpha=1 / (len(y) * C), l1_ratio=1, gradient_tol=1e-8
    )
    theirs.fit(X, y, offset=offset)
    ours = L1LogisticOBA(C=C, tol=1e-8).fit(X, y, offset=offset)
    assert_same(ours, theirs)
    np.testing.assert_allclose(
        ours.predict_proba(X, offset=offset)[:, 1], theirs.predict(X, offset=offset), atol=1e-4
    )


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


@pytest.mark.parametrize(
    ("family", "theirs"),
    [
        ("poisson", PoissonRegressor(alpha=0.1, **EXACT)),
        ("gamma", GammaRegressor(alpha=0.1, **EXACT)),
        ("tweedie", TweedieRegressor(power=1.5, link="log", alpha=0.1, **EXACT)),
    ],
)
def test_ridges_of_generalised_linear_models(numbers, family, theirs):
    X, y = numbers[0], np.round(1.0 + np.abs(numbers[1]) / 30.0)
    assert_same(GLMOBA(family, alpha=0.1, l1_ratio=0.0, tol=1e-9).fit(X, y), theirs.fit(X, y))


def test_an_exposure_is_an_offset_of_counts(numbers):
    X, rng = numbers[0], np.random.default_rng(0)
    e = rng.uniform(0.1, 1.0, len(X))
    y = rng.poisson(5.0 * e * np.exp(0.3 * X[:, 2])).astype(float)
    theirs = PoissonRegressor(alpha=0.1, **EXACT).fit(X, y / e, sample_weight=e)
    ours = GLMOBA("poisson", alpha=0.1 * e.mean(), l1_ratio=0.0, tol=1e-9).fit(X, y, offset=np.log(e))
    assert_same(ours, theirs)
