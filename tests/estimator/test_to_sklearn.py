"""`to_sklearn`: what scikit-learn's estimators predict with our coefficients."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    SGDClassifier,
)
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted

import sparsekit as sk

# scores are the same bits, or as near as that many roundings of their terms
EXACT, ROUNDED = 0, 8
# model, the class that stands for it, and how near scores are with two classes and with three
CLASSIFIERS = {
    "l1": (sk.L1LogisticOBA(C=0.5), LogisticRegression, EXACT, EXACT),
    "l1 cv": (sk.L1LogisticOBACV(Cs=3, cv=2), LogisticRegression, EXACT, EXACT),
    "elastic net cv": (sk.L1LogisticOBACV(Cs=3, cv=2, l1_ratio=[0.0, 0.5]), LogisticRegression, EXACT, EXACT),
    "bounded log": (sk.BoundedClassifier(alpha=0.01, bounds=(0, None)), SGDClassifier, EXACT, EXACT),
    "bounded l1": (sk.BoundedClassifier(alpha=0.01, l1_ratio=1.0), SGDClassifier, EXACT, EXACT),
    "modified huber": (sk.BoundedClassifier("modified_huber", alpha=0.1), SGDClassifier, EXACT, EXACT),
    "hinge": (sk.BoundedClassifier("hinge", alpha=0.1, l1_ratio=0.5), SGDClassifier, EXACT, EXACT),
    "squared hinge": (sk.BoundedClassifier("squared_hinge", alpha=0.1), SGDClassifier, EXACT, EXACT),
    "softmax": (sk.SoftmaxClassifier(), LogisticRegression, ROUNDED, EXACT),
    "softmax cv": (sk.SoftmaxClassifierCV(alphas=[0.1, 1e-3], cv=2), LogisticRegression, ROUNDED, EXACT),
    "sparsemax": (sk.SparsemaxClassifier(), LinearSVC, ROUNDED, EXACT),
    "sparsemax cv": (sk.SparsemaxClassifierCV(alphas=[0.1, 1e-3], cv=2), LinearSVC, ROUNDED, EXACT),
    "structured": (sk.LPSparseMAPClassifier(alpha=1e-3), LinearSVC, ROUNDED, EXACT),
    "structured cv": (sk.LPSparseMAPClassifierCV([1e-2, 1e-3], cv=2), LinearSVC, ROUNDED, EXACT),
    # whose kernel sums in its own order
    "extreme": (sk.ExtremeSoftmaxSGD(random_state=0), LogisticRegression, ROUNDED, ROUNDED),
}
REGRESSORS = {
    "lasso": (sk.LassoOBA(0.05), Lasso),
    "positive lasso": (sk.LassoOBA(0.05, positive=True), Lasso),
    "lasso cv": (sk.LassoOBACV(alphas=3, cv=2), Lasso),
    "elastic net cv": (sk.LassoOBACV(alphas=3, cv=2, l1_ratio=0.5), ElasticNet),
    "no penalty": (sk.LassoOBA(0.0), LinearRegression),
    "without intercept": (sk.LassoOBA(0.05, fit_intercept=False), Lasso),
    "Gaussian": (sk.GLMOBA("gaussian", alpha=0.1), Lasso),  # families of positive y: tests/l1/test_glm.py
    "Gaussian cv": (sk.GLMOBACV("gaussian", alphas=3, cv=2), Lasso),
    "absolute": (sk.BoundedRegressor(alpha=0.1), QuantileRegressor),
    "quantile": (sk.BoundedRegressor("quantile", quantile=0.9, alpha=0.1, l1_ratio=1), QuantileRegressor),
    "huber": (sk.BoundedRegressor("huber", epsilon=0.5), HuberRegressor),
    "insensitive": (sk.BoundedRegressor("epsilon_insensitive", epsilon=0.2), LinearSVR),
    "squares": (sk.BoundedRegressor("squared", bounds=(0, None)), LinearRegression),
    "elastic net": (sk.BoundedRegressor("squared", alpha=0.1, l1_ratio=0.5), ElasticNet),
    "bounded lasso": (sk.BoundedRegressor("squared", alpha=0.1, l1_ratio=1.0, bounds=(-1, 1)), Lasso),
}


def data(n_classes, dtype=np.float64):
    X, y = load_iris(return_X_y=True)
    keep = y < n_classes
    X = np.column_stack([scale(X), scale(X) ** 2])[keep]
    return np.where(np.abs(X) < 0.2, 0.0, X).astype(dtype), y[keep]


def containers(X):
    return [
        X,
        np.asfortranarray(X),
        X.astype("f4"),
        X.astype("f8"),
        sp.csr_array(X),
        sp.csr_matrix(X, dtype="f4"),
    ]


def same_bits(one, other):
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("labels", ["numbers", "strings"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_predict_the_same(name, n_classes, dtype, labels):
    model, kind, *allowed = CLASSIFIERS[name]
    X, y = data(n_classes, dtype)
    y = np.array(["setosa", "versicolor", "virginica"])[y] if labels == "strings" else y
    model.fit(X, y)
    converted = model.to_sklearn()
    check_is_fitted(converted)
    assert type(converted) is kind and converted.coef_.dtype == X.dtype
    same_bits(converted.classes_, model.classes_)
    exact = allowed[n_classes - 2] == EXACT
    for rows in containers(X):
        ours, theirs = model.decision_function(rows), converted.decision_function(rows)
        # (our kernel of very many classes answers in the type of X)
        eps = max(np.finfo(kind).eps for kind in (ours.dtype, theirs.dtype, converted.coef_.dtype))
        atol = ROUNDED * eps * np.abs(model.coef_).max() * np.abs(X).max() * X.shape[1]
        if exact:
            same_bits(ours, theirs)
            same_bits(model.predict(rows), converted.predict(rows))
        else:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)
            np.testing.assert_array_equal(model.predict(rows), converted.predict(rows))
        if not hasattr(converted, "predict_proba"):
            assert "sparsemax" in name or "hinge" in name or "structured" in name
            continue
        ours, theirs = model.predict_proba(rows), converted.predict_proba(rows)
        if exact and n_classes == 3:
            same_bits(ours, theirs)
        elif exact and ours.dtype == theirs.dtype:  # of "modified_huber" scikit-learn's are float64
            # of two classes scikit-learn's first probability is 1 - p, ours keeps all its digits
            np.testing.assert_array_equal(ours[:, 1], theirs[:, 1])
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2 * eps if exact else atol)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_predict_the_same(name, dtype):
    model, kind = REGRESSORS[name]
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X).astype(dtype), scale(y)
    converted = model.fit(X, y).to_sklearn()
    assert type(converted) is kind and is_regressor(converted)
    for rows in containers(X):
        same_bits(model.predict(rows), converted.predict(rows))
    same_bits(model.predict(sp.csc_array(X)), converted.predict(sp.csc_array(X)))
    assert model.score(X, y) == converted.score(X, y)


def test_every_linear_estimator_is_here():
    public = (getattr(sk, name) for name in sk.__all__)
    linear = {thing for thing in public if hasattr(thing, "to_sklearn")}
    found = {type(model) for model, *_ in (*CLASSIFIERS.values(), *REGRESSORS.values())}
    assert found == linear - {sk.OrdinalOBA}  # which says that scikit-learn has none
    assert {
        thing
        for name in sk.__all__
        if isinstance(thing := getattr(sk, name), type) and issubclass(thing, BaseEstimator)
    } - linear == {sk.StabilitySelection, sk.SequenceTagger}  # a selector, and what scikit-learn has none of


@pytest.mark.parametrize("name", ["l1", "bounded l1", "extreme", "lasso", "bounded lasso"])
def test_sparsified_models(name):
    model = (CLASSIFIERS | REGRESSORS)[name][0]
    X, y = data(3) if name in CLASSIFIERS else (scale(load_diabetes().data), scale(load_diabetes().target))
    model.fit(X, y).sparsify()
    converted = model.to_sklearn()
    assert converted.coef_ is not model.coef_ and sp.issparse(converted.coef_) == (name in CLASSIFIERS)
    for rows in (X, sp.csr_array(X)):
        np.testing.assert_allclose(model.predict_proba(rows) if name in CLASSIFIERS else model.predict(rows),
                                   converted.predict_proba(rows) if name in ("l1", "bounded l1", "extreme")
                                   else converted.predict(rows), rtol=1e-12, atol=1e-12)  # fmt: skip
    half = sk.ExtremeSoftmaxSGD(random_state=0).fit(*data(3)).quantize()
    converted = half.to_sklearn()
    assert converted.coef_.dtype == converted.intercept_.dtype == np.float32
    np.testing.assert_allclose(half.predict_proba(data(3)[0]), converted.predict_proba(data(3)[0]), atol=1e-5)


def test_the_converted_model_is_a_copy_with_feature_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = sk.L1LogisticOBA(C=0.5, class_weight="balanced", fit_intercept=False).fit(X, y)
    converted = model.to_sklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of names that do not fit
        same_bits(model.predict_proba(X), converted.predict_proba(X))
    list_of_names = list(converted.feature_names_in_)
    assert list_of_names == list(X.columns) and converted.n_features_in_ == 4
    assert (
        converted.get_params()["C"] == 0.5
        and converted.class_weight == "balanced"
        and not converted.fit_intercept
    )
    kept = converted.coef_.copy()
    for attribute in ("coef_", "intercept_", "classes_", "n_iter_", "feature_names_in_"):
        assert not np.shares_memory(getattr(model, attribute), getattr(converted, attribute)), attribute
    model.coef_[:] = 0
    np.testing.assert_array_equal(converted.coef_, kept)
    with pytest.raises(ValueError, match="feature names"):
        converted.predict(X.rename(columns=str.upper))


def test_it_needs_nothing_of_this_package(tmp_path):
    X, y = data(3)
    model = sk.SparsemaxClassifier().fit(X, y)
    (tmp_path / "converted.pkl").write_bytes(pickle.dumps(model.to_sklearn()))
    np.save(tmp_path / "X.npy", X)
    code = (
        "import pickle, sys, numpy as np; sys.modules['sparsekit'] = None; "
        "print(pickle.load(open('converted.pkl', 'rb')).predict(np.load('X.npy')).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == str(model.predict(X).tolist()), done.stderr


@pytest.mark.parametrize(
    "model, X, y, why",
    [
        (sk.ExtremeSoftmaxSGD(hash_bits=8, max_iter=1, tol=0.1), *data(3), "hashed"),
        (sk.ExtremeSoftmaxSGD(max_iter=2), data(3)[0], np.eye(3)[data(3)[1]], "indicator"),
        (sk.SparsemaxClassifier(), data(3)[0], np.eye(3)[data(3)[1]], "matrix"),
        (sk.SoftmaxClassifier(), data(3)[0], np.eye(3)[data(3)[1]], "matrix"),
        (sk.LPSparseMAPClassifier(), data(3)[0], np.eye(3)[data(3)[1]], "matrix"),
        (sk.ExtremeSoftmaxSGD(max_iter=2), data(3)[0], np.zeros(150), "one class"),
        (sk.OrdinalOBA(), *data(3), "ordered classes"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_nothing_stands_for(model, X, y, why):
    model.fit(X, y)
    with pytest.raises(
        ValueError, match=f"no estimator of scikit-learn predicts .*{type(model).__name__}.*{why}"
    ):
        model.to_sklearn()


@pytest.mark.parametrize("method", ["to_sklearn", "coefficients"])
def test_both_need_a_fit(method):
    for kind in {type(model) for model, *_ in (*CLASSIFIERS.values(), *REGRESSORS.values())}:
        with pytest.raises(NotFittedError):
            getattr(kind(), method)()


def test_tables_of_coefficients():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["<noise> & co"] = np.random.default_rng(0).standard_normal(len(y))
    lasso = sk.LassoOBA(0.1).fit(X, y)
    table = lasso.coefficients()
    assert isinstance(table, pd.DataFrame) and table.shape == (5, 1) and table.index.name == "feature"
    magnitudes = table["coefficient"].abs().to_numpy()
    assert (np.diff(magnitudes) <= 0).all() and 0 < np.count_nonzero(magnitudes) < 5
    for name, value in table["coefficient"].items():
        assert value == lasso.coef_[list(X.columns).index(name)]
    zeros = [name for name, value in zip(X.columns, lasso.coef_) if value == 0]
    assert list(table.index[-len(zeros) :]) == zeros  # as they stand in X
    model = sk.L1LogisticOBA(C=0.1).fit(X, np.array(["a", "b", "c"])[y])
    table = model.coefficients()
    assert list(table.columns) == ["a", "b", "c"]
    assert (np.diff(table.abs().max(axis=1)) <= 0).all()
    np.testing.assert_array_equal(table.loc[list(X.columns)].to_numpy(), model.coef_.T)
    sparse = model.sparsify().coefficients()
    pd.testing.assert_frame_equal(sparse.sparse.to_dense(), table)
    plain = sk.L1LogisticOBA().fit(X.to_numpy(), y == 0).coefficients()
    assert set(plain.index) == {f"x{j}" for j in range(5)} and list(plain.columns) == ["coefficient"]
    hashed = sk.ExtremeSoftmaxSGD(hash_bits=8, max_iter=1, tol=0.9).fit(X, y)
    with pytest.raises(ValueError, match="no coefficients by feature: its weights are hashed"):
        hashed.coefficients()
