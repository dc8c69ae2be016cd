"""LPSparseMAPClassifierCV: its choice against a search by hand, and scikit-learn's checks."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsekit import AtMostOne, LPSparseMAPClassifier, LPSparseMAPClassifierCV

X, Y = make_multilabel_classification(n_samples=80, n_classes=4, random_state=0)
X = X / 10.0
ALPHAS, THRESHOLDS = [1.0, 0.05, 0.003], ("expected_f1", "auto", 0.3)


@parametrize_with_checks(
    [LPSparseMAPClassifierCV(alphas=[0.1, 0.01], cv=2), LPSparseMAPClassifierCV([0.1], cv=2, loss="logistic")]
)
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_choice_is_that_of_a_search_by_hand(form):
    weight = np.linspace(0.5, 2.0, len(X))
    model = LPSparseMAPClassifierCV(ALPHAS, thresholds=THRESHOLDS, cv=KFold(3), tol=1e-8)
    model.fit(form(X), Y, sample_weight=weight)
    assert model.alphas_.tolist() == ALPHAS and model.threshold_scores_.shape == (3, 3, 3)
    for t, threshold in enumerate(THRESHOLDS):
        for k, (train, test) in enumerate(KFold(3).split(X)):
            for i, alpha in enumerate(ALPHAS):
                part = LPSparseMAPClassifier(alpha, threshold=threshold, tol=1e-8)
                found = part.fit(X[train], Y[train], sample_weight=weight[train]).predict(X[test])
                score = f1_score(
                    Y[test], found, average="samples", zero_division=1.0, sample_weight=weight[test]
                )
                np.testing.assert_allclose(model.threshold_scores_[t, k, i], score, atol=1e-12)
    means = model.threshold_scores_.mean(axis=1)
    t, i = np.unravel_index(means.argmax(), means.shape)
    assert (model.threshold_, model.alpha_) == (THRESHOLDS[t], ALPHAS[i])
    np.testing.assert_array_equal(model.scores_, model.threshold_scores_[t])
    np.testing.assert_array_equal(model.mean_score_, means[t])
    final = LPSparseMAPClassifier(ALPHAS[i], threshold=THRESHOLDS[t], tol=1e-8)
    final.fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), final.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), final.predict_proba(X), atol=1e-5)


def test_alphas_by_default_are_around_the_automatic_one():
    model = LPSparseMAPClassifierCV(cv=2).fit(X, Y)
    np.testing.assert_allclose(model.alphas_[3], LPSparseMAPClassifier().fit(X, Y).alpha_)
    assert len(model.alphas_) == 7 and (np.diff(model.alphas_) < 0).all() and model.alpha_ in model.alphas_


def test_threads_scorers_classes_and_factors():
    options = dict(alphas=[0.1, 0.01], cv=3, scoring="f1_micro")
    one, three = (LPSparseMAPClassifierCV(n_jobs=n, **options).fit(X, Y) for n in (None, 3))
    np.testing.assert_array_equal(one.threshold_scores_, three.threshold_scores_)
    assert one.score(X, Y) == f1_score(Y, one.predict(X), average="micro")
    kinds = np.array(["a", "b", "c"])[Y[:, :2].sum(axis=1)]
    model = LPSparseMAPClassifierCV([0.1, 0.01], cv=3).fit(X, kinds)
    assert model.score(X, kinds) == (model.predict(X) == kinds).mean() > 0.5
    assert model.threshold_ == "auto" and len(model.threshold_scores_) == 1
    keep = Y[:, :2].sum(axis=1) < 2
    model = LPSparseMAPClassifierCV([0.1, 0.01], cv=3, factors=[(AtMostOne, [0, 1])]).fit(X[keep], Y[keep])
    assert model.predict(X)[:, :2].sum(axis=1).max() == 1


@pytest.mark.parametrize(
    "options, match",
    [
        ({"alphas": [0.0]}, "alphas"),
        ({"thresholds": []}, "thresholds must name at least one"),
        ({"thresholds": [1.0]}, "thresholds must be"),
        ({"thresholds": ["f1"]}, "thresholds must be"),
        ({"loss": "squared"}, "loss"),
        ({"scoring": lambda *_: np.nan}, "scoring gave NaN for alpha=0.1 in fold 0"),
    ],
)
def test_what_is_wrong_is_named(options, match):
    with pytest.raises(ValueError, match=match):
        LPSparseMAPClassifierCV(**{"alphas": [0.1], "cv": 2, **options}).fit(X, Y)
