"""Sharpness of what estimators minimised: value, gradient, score, and refusals."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import sparsekit as sk
from sparsekit.inspection import sharpness
from sparsekit.inspection._training import training_function


def numbers():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y / y.std()


def classes(two=True):
    X, y = (load_breast_cancer if two else load_iris)(return_X_y=True)
    return scale(X), np.array(["a", "b", "c"])[y]


def labels():
    X, _ = classes(False)
    Y = (np.random.default_rng(0).uniform(size=(len(X), 4)) < 0.4).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    return X, Y


ESTIMATORS = [
    (sk.L1LogisticOBA(C=0.1, class_weight="balanced"), classes),
    (sk.L1LogisticOBA(C=0.1, fit_intercept=False, penalty_weights=[1, 0, 2, 1]), lambda: classes(False)),
    (sk.L1LogisticOBACV(Cs=3), classes),
    (sk.L1LogisticOBA(C=0.1, l1_ratio=0.3, penalty_weights=[1, 0, 2, 1]), lambda: classes(False)),
    (sk.L1LogisticOBACV(Cs=2, cv=2, l1_ratio=[0.2, 0.5]), lambda: classes(False)),
    (sk.LassoOBA(alpha=0.05), numbers),
    (sk.LassoOBA(alpha=0.05, l1_ratio=0.5), numbers),
    (sk.LassoOBACV(alphas=[0.05], cv=2, l1_ratio=[0.2, 0.5]), numbers),
    (sk.SparsemaxClassifier(), lambda: classes(False)),
    (sk.SparsemaxClassifier(alpha=1e-2), labels),
    (sk.SoftmaxClassifier(alpha=1e-3, penalize_intercept=False), lambda: classes(False)),
    (sk.SoftmaxClassifierCV(alphas=[0.1, 0.01]), lambda: classes(False)),
]


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


@pytest.mark.parametrize("estimator, data", ESTIMATORS, ids=name_of)
def test_estimators(estimator, data):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    estimator.fit(X, y, sample_weight=weight)
    before = estimator.coef_.copy()
    f = training_function(estimator, X, y, sample_weight=weight)
    value = f.fun(f.x)[0]
    # the function is the one that the estimator says it minimised, on the scale of the mean loss
    if hasattr(estimator, "objective_"):
        sums = isinstance(estimator, (sk.L1LogisticOBA, sk.L1LogisticOBACV))
        expected = np.sum(estimator.objective_) / (weight.sum() if sums else 1.0)
        assert value == pytest.approx(expected, rel=2e-6)
    # its gradient
    rng = np.random.default_rng(0)
    d = rng.standard_normal(len(f.x))
    x = f.x + 0.01 * d
    slope = (f.fun(x + 1e-6 * d)[0] - f.fun(x - 1e-6 * d)[0]) / 2e-6
    assert f.fun(x)[1] @ d == pytest.approx(slope, rel=1e-5)
    # its score
    measured = f.measure(f.x)
    assert measured[0] == pytest.approx(value)
    assert measured[1] == pytest.approx(estimator.score(X, y, sample_weight=weight))
    moved = f.measure(0.0 * f.x)
    assert moved != measured
    # and nothing about the estimator has changed
    np.testing.assert_array_equal(estimator.coef_, before)

    direct = sharpness(lambda x: f.fun(x), f.x, jac=True, random_state=0)
    assert sharpness(estimator, X, y, sample_weight=weight, random_state=0) == pytest.approx(direct)
    assert direct > 0


def test_pipelines_searches_and_parts_of_the_classes():
    X, y = classes(False)
    model = sk.L1LogisticOBA().fit(StandardScaler().fit_transform(X), y)
    expected = sharpness(model, StandardScaler().fit_transform(X), y)
    pipeline = make_pipeline(StandardScaler(), sk.L1LogisticOBA()).fit(X, y)
    assert sharpness(pipeline, X, y) == pytest.approx(expected)
    search = GridSearchCV(pipeline, {"l1logisticoba__C": [1.0]}, cv=2).fit(X, y)
    assert sharpness(search, X, y) == pytest.approx(expected)
    some = np.flatnonzero(y != "a")
    f = training_function(model, X[some], y[some])
    log_loss = -np.log(model.predict_proba(X[some])[np.arange(100), (y[some] == "c") + 1]).mean()
    assert f.fun(f.x)[0] == pytest.approx(log_loss + np.abs(model.coef_).sum() / 100)
    with pytest.raises(ValueError, match="'z', which is no class"):
        sharpness(model, X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="features"):
        sharpness(model, X[:, :2], y)


def test_wrong_numbers_of_labels_are_refused():
    X, Y = labels()
    model = sk.SparsemaxClassifier(alpha=1e-2).fit(X, Y)
    for wrong in (Y[:, :3], np.column_stack([Y, Y])):
        with pytest.raises(ValueError, match="a column for each of the 4 labels"):
            sharpness(model, X, wrong)


def test_searches_without_a_best_estimator():
    X, y = classes(False)
    search = GridSearchCV(sk.L1LogisticOBA(), {"C": [1.0]}, cv=2, refit=False).fit(X, y)
    for unfitted in (search, GridSearchCV(sk.L1LogisticOBA(), {"C": [1.0]})):
        with pytest.raises(NotFittedError, match="GridSearchCV has no best_estimator_"):
            sharpness(unfitted, X, y)


def test_other_estimators_are_refused():
    X, y = classes()
    with pytest.raises(TypeError, match=r"BoundedClassifier is no L1LogisticOBA, .* pass a function"):
        sharpness(sk.BoundedClassifier().fit(X, y), X, y)


def test_single_precision_data_is_no_rise():
    X, y = load_diabetes(return_X_y=True)
    X = scale(X).astype(np.float32)
    model = sk.LassoOBA(alpha=0.1).fit(X, y)
    double = sharpness(model, X.astype(np.float64), y, epsilon=1e-5, random_state=0)
    assert sharpness(model, X, y, epsilon=1e-5, random_state=0) == pytest.approx(double, rel=1e-3)
