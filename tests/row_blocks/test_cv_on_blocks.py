"""Cross-validation, paths and predictions on blocks, against those in memory."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import as_dask, in_blocks, labels, text
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA, LassoOBACV, SoftmaxClassifier

X, SCORES = text(p=80)
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0
OPTIONS = {
    "plain": {},
    "weights": {"weight": WEIGHT},
    "balanced": {"class_weight": "balanced", "weight": WEIGHT},
    "class weights": {"class_weight": {"low": 3.0, "mid": 0.2}},
    "means of folds": {"refit": False},
    "no intercept": {"fit_intercept": False},
}


def cv_of(**options):
    return L1LogisticOBACV(**{"Cs": [0.2, 1.0, 3.0], "scoring": "neg_log_loss", "tol": 1e-8, **options})


def same(found, wanted):
    assert_allclose(found.scores_, wanted.scores_, rtol=2e-4)
    assert_array_equal(found.Cs_, wanted.Cs_)
    assert found.C_ == wanted.C_
    # of several classes coefficients are not unique, probabilities are
    assert_allclose(found.predict_proba(X), wanted.predict_proba(X), atol=1e-3)
    assert hasattr(found, "objective_") == hasattr(wanted, "objective_")
    if hasattr(wanted, "objective_"):
        assert_allclose(found.objective_, wanted.objective_, rtol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.thorough(keep=5)
def test_choice_of_the_penalty(name, n_classes):
    options = dict(OPTIONS[name])
    weight, y = options.pop("weight", None), labels(SCORES, n_classes)
    if n_classes == 4 and "class_weight" in options and name != "balanced":
        options["class_weight"] = {"low": 3.0, "top": 0.2}
    cv = list(StratifiedKFold(3, shuffle=True, random_state=0).split(np.empty((500, 0)), y))
    found = cv_of(cv=cv, **options).fit(in_blocks(X), y, weight)
    same(found, cv_of(cv=cv, **options).fit(X, y, weight))


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("last", [False, True])
def test_a_class_that_a_training_part_lacks(n_classes, last):
    """Its rows are all among those that the fold misses."""
    y = labels(SCORES, n_classes)
    lacking = np.unique(y)[-1 if last else 0]
    rows, here = np.arange(500), y == lacking
    cv = [(rows[~here], rows[here | (rows % 3 == 0)]), (rows[rows % 2 == 0], rows[rows % 2 == 1])]
    for options in ({}, {"class_weight": {lacking: 2.0, "mid": 0.5}}):
        same(cv_of(cv=cv, **options).fit(in_blocks(X), y), cv_of(cv=cv, **options).fit(X, y))


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_choice_by_a_criterion(n_classes, relaxed):
    y = labels(SCORES, n_classes)
    options = dict(Cs=[0.2, 0.5, 1.0], selection="bic", relaxed=relaxed, class_weight="balanced", tol=1e-8)
    found, wanted = (L1LogisticOBACV(**options).fit(form, y, WEIGHT) for form in (in_blocks(X), X))
    assert_allclose(found.criterion_, wanted.criterion_, rtol=1e-6)
    assert found.C_ == wanted.C_ and np.array_equal(found.coef_ != 0, wanted.coef_ != 0)
    assert_allclose(found.predict_proba(X), wanted.predict_proba(X), atol=1e-3)
    if n_classes == 2:
        options = dict(alphas=[0.1, 0.03], selection="bic", relaxed=relaxed, tol=1e-8)
        found, wanted = (LassoOBACV(**options).fit(form, SCORES, WEIGHT) for form in (in_blocks(X), X))
        assert_allclose(found.criterion_, wanted.criterion_, rtol=1e-6)
        assert_allclose(found.coef_, wanted.coef_, atol=1e-5)


@pytest.mark.parametrize("n_folds", [8, 9, 64])
def test_a_bit_for_each_fold(n_folds):
    y = labels(SCORES)
    cv = [(np.flatnonzero(np.arange(500) % n_folds != k), np.arange(k, 500, n_folds)) for k in range(n_folds)]
    options = dict(cv=cv, Cs=[0.5], tol=1e-6, refit=False, scoring="neg_log_loss")
    found = L1LogisticOBACV(**options).fit(in_blocks(X), y)
    assert_allclose(found.scores_, L1LogisticOBACV(**options).fit(X, y).scores_, rtol=1e-2)
    with pytest.raises(ValueError, match="cv has 65 folds; with X in blocks 64 are the most"):
        L1LogisticOBACV(cv=[*cv, *cv][:65] if n_folds == 64 else 65).fit(in_blocks(X), y)


@pytest.mark.parametrize("make", [in_blocks, as_dask])
def test_predictions_and_scores(make):
    if make is as_dask:
        pytest.importorskip("dask.array")
    y, blocks = labels(SCORES, 3), make(X)
    for model in (L1LogisticOBA(), SoftmaxClassifier(), LassoOBA(1e-3)):
        target = SCORES if isinstance(model, LassoOBA) else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, target)
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            if hasattr(model, method):
                found = getattr(model, method)(blocks)
                assert hasattr(found, "compute") == (make is as_dask)
                assert_allclose_or_equal(np.asarray(found), getattr(model, method)(X))
        for weight in (None, WEIGHT):
            found = model.score(blocks, target, weight)
            assert isinstance(found, float)
            assert_allclose(found, model.score(X, target, weight))


def assert_allclose_or_equal(found, wanted):
    if wanted.dtype.kind == "f":
        assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    else:
        assert_array_equal(found, wanted)
