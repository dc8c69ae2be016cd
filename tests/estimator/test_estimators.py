"""Estimators among scikit-learn's tools: data without copies, sparse coefficients, names, selections."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from sparsekit import BoundedClassifier, BoundedRegressor, L1LogisticOBA, L1LogisticOBACV, LassoOBA


@pytest.mark.parametrize("container", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_data_reach_the_loss_without_a_copy(cancer, container, monkeypatch):
    import sparsekit._l1.paths.problems as module

    X, y = cancer
    X = container(X)
    seen = []

    def spy(X, *args):
        seen.append(X)
        return real(X, *args)

    real = module.logistic_loss
    monkeypatch.setattr(module, "logistic_loss", spy)
    L1LogisticOBA().fit(X, y)
    if sp.issparse(X):
        assert np.shares_memory(seen[0].data, X.data) and np.shares_memory(seen[0].indices, X.indices)
    else:
        assert np.shares_memory(seen[0], X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", [LassoOBA(0.1), BoundedRegressor("squared", alpha=0.1, l1_ratio=1.0)])
def test_sparsified_regressions(model, dtype):
    """One row of coefficients predicts what the vector did, of every container."""
    X, y = load_diabetes(return_X_y=True)
    X = scale(X).astype(dtype)
    model = clone(model).fit(X, y)
    coef, expected = model.coef_, model.predict(X)
    containers = [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array]
    for _ in range(2):  # a second call changes nothing
        assert model.sparsify() is model and sp.issparse(model.coef_) and model.coef_.shape == (1, X.shape[1])
        for container in containers:
            found = model.predict(container(X))
            assert isinstance(found, np.ndarray) and found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.score(X, y) == pytest.approx(clone(model).fit(X, y).score(X, y))
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, 1:])
    for _ in range(2):
        assert model.densify() is model
        np.testing.assert_array_equal(model.coef_, coef, strict=True)
    assert model.sparsify().fit(X, y).coef_.shape == coef.shape


@pytest.mark.parametrize("model", [LassoOBA(), L1LogisticOBA(), BoundedRegressor()])
def test_sparsify_needs_a_fit(model):
    for method in (model.sparsify, model.densify):
        with pytest.raises(NotFittedError):
            method()


def test_probabilities_hold_for_huge_scores(iris):
    X, y = iris
    for target in (y, (y > 0).astype(int)):
        model = L1LogisticOBA().fit(X, target)
        for factor in (1.0, 1e6, 1e300):
            proba, log = model.predict_proba(X * factor), model.predict_log_proba(X * factor)
            np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
            assert np.isfinite(log).all() and (log <= 0).all()
            np.testing.assert_allclose(np.exp(log), proba, rtol=1e-12, atol=1e-300)
    # the small side of a binary probability keeps its digits
    model.coef_, model.intercept_ = np.array([[1.0, 0, 0, 0]]), np.zeros(1)
    assert model.predict_proba([[50.0, 0, 0, 0]])[0, 0] == pytest.approx(np.exp(-50), rel=1e-12)


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
    X, y = scale(X)[y < 2], y[y < 2]
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
