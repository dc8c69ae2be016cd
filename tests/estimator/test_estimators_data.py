"""The estimators among scikit-learn's tools: names of columns, selection of features."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsekit import (
    BoundedClassifier,
    BoundedRegressor,
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
)


def test_names_of_what_made_the_columns():
    pytest.importorskip("pandas")
    texts, y = ["good film", "bad film", "good plot", "bad plot"] * 3, [1, 0, 1, 0] * 3
    pipe = make_pipeline(TfidfVectorizer(), L1LogisticOBA()).fit(texts, y)
    vectorizer, model = pipe
    names = vectorizer.get_feature_names_out()
    assert model.coefficients().index[0] in ("x0", "x2")
    for given in (pipe, pipe[:-1], vectorizer, names, list(names)):
        table = model.coefficients(feature_names=given)
        assert set(table.index[:2]) == {"bad", "good"} and set(table.index[2:]) == {"film", "plot"}
        assert table.loc["good", "coefficient"] > 0
    with pytest.raises(ValueError, match=r"feature_names must name 4 features.*shape \(2,\)"):
        model.coefficients(["a", "b"])


def test_select_from_model_keeps_the_support_of_l1_models():
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[y < 2], y[y < 2]
    models = [
        L1LogisticOBA(C=0.1), L1LogisticOBACV([0.1], cv=2), L1LogisticOBACV([0.1], l1_ratio=[1.0], cv=2),
        BoundedClassifier("log_loss", alpha=0.1, l1_ratio=1.0), LassoOBA(0.05),
        BoundedRegressor("squared", alpha=0.05, l1_ratio=1.0),
    ]  # fmt: skip
    for model in models:
        chosen = SelectFromModel(model).fit(X, y)
        support = np.ravel(chosen.estimator_.coef_) != 0.0
        assert 2 <= support.sum() < X.shape[1]
        np.testing.assert_array_equal(chosen.get_support(), support)
    # a ridge has no zeros, and the default threshold is the mean
    for model in (L1LogisticOBA(l1_ratio=0.0), L1LogisticOBACV(3, l1_ratio=[0.0, 0.5], cv=2)):
        assert SelectFromModel(model).fit(X, y).threshold_ > 1e-3
    names = [L1LogisticOBA(l1_ratio=r).penalty for r in (0.0, 0.5, 1.0)]
    assert names == ["l2", "elasticnet", "l1"] and L1LogisticOBACV(l1_ratio=[0.5, 1.0]).penalty == names[1]
