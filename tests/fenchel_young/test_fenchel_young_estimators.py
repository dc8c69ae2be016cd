"""SparsemaxClassifier, SoftmaxClassifier and their versions with cross-validation, as a user sees them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from sparsekit import (
    SoftmaxClassifier,
    SoftmaxClassifierCV,
    SparsemaxClassifier,
    SparsemaxClassifierCV,
    fenchel_young_path,
)
from sparsekit.metrics import jensen_shannon_divergence

BOTH = [SparsemaxClassifier, SoftmaxClassifier]
WITH_CV = [SparsemaxClassifierCV, SoftmaxClassifierCV]


@pytest.mark.parametrize("estimator", [SparsemaxClassifier(), SparsemaxClassifierCV(alphas=[1e-1, 1e-3])])
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_classifiers_multilabel_representation_invariance,
        estimator_checks.check_classifiers_multilabel_output_format_predict,
        estimator_checks.check_classifiers_multilabel_output_format_decision_function,
    ],
)
@pytest.mark.filterwarnings("ignore:.*rows of y have no label")
def test_scikit_learn_checks_of_multilabel_classifiers(estimator, check):
    """Those that a sparse distribution can pass: the fourth demands probabilities above zero."""
    check(type(estimator).__name__, estimator)


def multilabel(n=200, K=5):
    X, Y = make_multilabel_classification(n, 12, n_classes=K, allow_unlabeled=False, random_state=0)
    return StandardScaler().fit_transform(X), Y


@pytest.mark.parametrize("cls", BOTH)
def test_multiclass(cls):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = cls(alpha=1e-4).fit(X, names)
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert (P.min() == 0.0) == (cls is SparsemaxClassifier)
    assert model.score(X, names) > 0.95
    assert 0 <= model.dual_gap_ < 1e-4 * model.objective_ and model.optimality_ <= 1e-5
    assert not model.multilabel_
    two = cls().fit(X[:100], names[:100])
    assert two.decision_function(X).shape == (150,) and two.coef_.shape == (2, 4)
    np.testing.assert_array_equal(two.classes_[(two.decision_function(X) > 0).astype(int)], two.predict(X))
    if cls is SoftmaxClassifier:
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P)


@pytest.mark.parametrize("cls", BOTH)
def test_multilabel_indicator_and_distributions(cls):
    X, Y = multilabel()
    model = cls(alpha=1e-3, tol=1e-8).fit(X, Y)
    Q = Y / Y.sum(axis=1, keepdims=True)
    for other in (Q, sp.csr_matrix(Y), Y.astype(float), Y.astype(bool), Y.tolist(), pd.DataFrame(Y)):
        np.testing.assert_allclose(clone(model).fit(X, other).coef_, model.coef_, atol=1e-9)
    assert model.multilabel_ and list(model.classes_) == list(range(5))
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    labels = model.predict(X)
    least = 0.0 if cls is SparsemaxClassifier else 0.2
    np.testing.assert_array_equal(labels, least < P)
    model.threshold = 0.35
    np.testing.assert_array_equal(model.predict(X), P > 0.35)
    assert jensen_shannon_divergence(Q, P) < jensen_shannon_divergence(Q, np.full_like(Q, 0.2))
    # distributions that are no indicator's
    soft = 0.9 * Q + 0.1 / 5
    assert clone(model).fit(X, soft).objective_ != model.objective_


@pytest.mark.parametrize("cls", BOTH)
def test_rows_without_a_label_are_left_out(cls):
    X, Y = multilabel()
    Y[:7] = 0
    with pytest.warns(UserWarning, match=r"7 of 200 rows of y have no label"):
        model = cls(tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.coef_, cls(tol=1e-9).fit(X[7:], Y[7:]).coef_, atol=1e-8)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("weight", [{0: 1.0, 1: 2.0, 2: 5.0}, "balanced"], ids=str)
def test_class_weights_of_a_matrix_are_those_of_labels(cls, weight):
    X, y = load_iris(return_X_y=True)
    few = np.r_[0:50, 60:80, 100:110]
    model = cls(tol=1e-10, class_weight=weight).fit(X[few], y[few])
    as_matrix = clone(model).fit(X[few], np.eye(3)[y[few]])
    np.testing.assert_allclose(as_matrix.coef_, model.coef_, atol=1e-7)


@pytest.mark.parametrize("cls", BOTH)
def test_intercepts(cls):
    X, y = load_iris(return_X_y=True)
    none = cls(fit_intercept=False).fit(X, y)
    assert not none.intercept_.any()
    free = cls(alpha=10.0, penalize_intercept=False, tol=1e-9).fit(X, y)
    # a strong penalty leaves the frequencies, which free intercepts fit exactly
    np.testing.assert_allclose(free.predict_proba(X).mean(axis=0), 1 / 3, atol=1e-9)
    assert np.isfinite(free.dual_gap_)
    shifted = cls(alpha=1e-2, penalize_intercept=False, tol=1e-10).fit(X + 5.0, y)
    np.testing.assert_allclose(
        shifted.coef_, cls(alpha=1e-2, penalize_intercept=False, tol=1e-10).fit(X, y).coef_, atol=1e-6
    )


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    "y, match",
    [
        (np.full((150, 3), 0.3), "must be distributions that sum to 1"),
        (np.tile([1.5, -0.5, 0.0], (150, 1)), r"y\[0, 1\] is -0.5"),
        (np.tile([0, 1, 2], (150, 1)), "must be distributions that sum to 1"),
        (np.zeros((150, 3)), "no row with a label"),
        (np.zeros(150), "only one class"),
        (np.linspace(0, 1, 150), "Unknown label type"),
        (np.full((150, 3), np.nan), "NaN"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*rows of y have no label")
def test_bad_targets(cls, y, match):
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=match):
        cls().fit(X, y)


@pytest.mark.parametrize(
    "params, match",
    [({"class_weight": {7: 1.0}}, "has the key 7"), ({"class_weight": {0: -1.0}}, "finite number >= 0")],
)
def test_bad_parameters(params, match):
    X, y = load_iris(return_X_y=True)
    for target in (y, np.eye(3)[y]):
        with pytest.raises(ValueError, match=match):
            SparsemaxClassifier(**params).fit(X, target)


@pytest.mark.parametrize(
    "transform, cls", [("sparsemax", SparsemaxClassifier), ("softmax", SoftmaxClassifier)]
)
def test_path_is_its_single_fits(transform, cls):
    X, y = load_iris(return_X_y=True)
    path = fenchel_young_path(X, y, transform=transform, alphas=[1e-4, 1e-1, 1e-2], tol=1e-9)
    assert path.alphas.tolist() == [1e-1, 1e-2, 1e-4] and (path.statuses == 0).all()
    for alpha, coef, intercept, fun in zip(path.alphas, path.coefs, path.intercepts, path.objectives):
        model = cls(alpha=alpha, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(coef, model.coef_, atol=1e-5)
        np.testing.assert_allclose(intercept, model.intercept_, atol=1e-5)
        assert fun == pytest.approx(model.objective_, rel=1e-9)
    with pytest.raises(ValueError, match="alphas must be > 0"):
        fenchel_young_path(X, y, alphas=[0.0])


@pytest.mark.parametrize("cls", WITH_CV)
@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc", "accuracy"])
def test_scorers_get_a_sparse_indicator_as_an_array(cls, scoring):
    X, Y = multilabel()
    Y = np.eye(3)[np.arange(len(Y)) % 3] if scoring == "neg_log_loss" else Y
    dense, sparse = (cls(alphas=[1.0, 1e-2], cv=2, scoring=scoring).fit(X, y) for y in (Y, sp.csr_array(Y)))
    np.testing.assert_array_equal(dense.scores_, sparse.scores_)
    assert dense.score(X, Y) == sparse.score(X, sp.csr_array(Y))


@pytest.mark.parametrize("cls, plain", list(zip(WITH_CV, BOTH)))
def test_cross_validation(cls, plain):
    X, y = load_iris(return_X_y=True)
    model = cls(alphas=[10.0, 1e-3, 1e-1], n_jobs=2).fit(X, y)
    assert model.scores_.shape == (5, 3) and model.alphas_.tolist() == [10.0, 1e-1, 1e-3]
    assert model.alpha_ == model.alphas_[model.mean_score_.argmax()]
    np.testing.assert_allclose(model.coef_, plain(alpha=model.alpha_, tol=1e-9).fit(X, y).coef_, atol=1e-2)
    accuracy = cls(alphas=[10.0, 1e-3], scoring="accuracy").fit(X, y)
    assert accuracy.mean_score_.max() > 0.9
    X, Y = multilabel()
    many = cls(alphas=[1.0, 1e-2], cv=5).fit(X, Y)
    assert many.multilabel_ and many.predict(X).shape == Y.shape and (many.scores_ < 0).all()
    # a fold's score is what its own model would get
    from sklearn.model_selection import KFold

    train, test = next(iter(KFold(5).split(X)))
    Q = Y / Y.sum(axis=1, keepdims=True)
    single = plain(alpha=1.0).fit(X[train], Y[train])
    expected = -jensen_shannon_divergence(Q[test], single.predict_proba(X[test]))
    assert many.scores_[0, 0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("values", [(-1, 1), (1, 2), (0, 7)])
def test_two_integers_are_no_indicator(values):
    """scikit-learn's type_of_target calls every matrix of two integers one."""
    X, Y = multilabel()
    with pytest.raises(ValueError, match=r"must be >= 0|must be distributions"):
        SparsemaxClassifier().fit(X, np.where(Y, values[1], values[0]))


@pytest.mark.parametrize("cls", WITH_CV)
def test_cross_validation_scores_by_the_users_weights_only(cls):
    X, y = load_iris(return_X_y=True)
    seen = []

    def scorer(estimator, X, y, sample_weight=None):
        seen.append(sample_weight)
        return float(np.mean(estimator.predict(X) == y))

    cls(alphas=[1e-2], scoring=scorer, class_weight="balanced").fit(X, y)
    assert seen == [None] * 5
    w = np.random.default_rng(0).random(150)
    cls(alphas=[1e-2], scoring=scorer, class_weight="balanced").fit(X, y, w)
    assert sorted(np.concatenate(seen[5:])) == pytest.approx(sorted(w))


@pytest.mark.parametrize("cls", WITH_CV)
def test_cross_validation_without_rows_to_score(cls):
    X, Y = multilabel()
    Y[:10] = 0
    with pytest.warns(UserWarning, match="no label"):
        model = cls(alphas=[1e-2]).fit(X, Y)
    assert np.isfinite(model.scores_).all()
    Y[:40] = 0
    with pytest.warns(UserWarning, match="no label"), pytest.raises(ValueError, match="fold 0 has no row"):
        cls(alphas=[1e-2], cv=5).fit(X, Y)
    with pytest.raises(ValueError, match=r"scoring gave NaN for alpha=0\.01 in fold 0"):
        cls(alphas=[1e-2], scoring=lambda *args: np.nan).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("free", [False, True])
def test_an_excluded_huge_row_does_no_harm(cls, free):
    X, y = load_iris(return_X_y=True)
    w = np.ones(150)
    w[0], big = 0.0, X.copy()
    big[0] = 1e18
    model = cls(penalize_intercept=not free, tol=1e-7)
    np.testing.assert_allclose(
        clone(model).fit(big, y, w).coef_, clone(model).fit(X[1:], y[1:]).coef_, atol=1e-5
    )
