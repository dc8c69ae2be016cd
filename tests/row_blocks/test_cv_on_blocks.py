"""Cross-validation, paths and predictions on blocks, against those in memory."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import as_dask, in_blocks, labels, targets, text
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsekit import GLMOBACV, L1LogisticOBA, L1LogisticOBACV, LassoOBA, LassoOBACV, SoftmaxClassifier
from sparsekit._estimator import block_data

X, SCORES = text(p=80)
RNG = np.random.default_rng(1)
WEIGHT = RNG.uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0
OFFSETS = {k: RNG.standard_normal((500, k) if k > 2 else 500) for k in (1, 2, 3, 4)}
TARGETS = targets(SCORES) | {1: SCORES + 2.0} | {k: labels(SCORES, k) for k in (2, 3, 4)}


def cv_of(**options):
    return L1LogisticOBACV(**{"Cs": [0.2, 1.0, 3.0], "scoring": "neg_log_loss", "tol": 1e-8, **options})


def glm(family, **options):
    return GLMOBACV(
        family, **{"alphas": [0.02, 0.01, 0.005], "cv": 3, "epsilon": 2.0, "tol": 1e-7, **options}
    )


BIC = dict(selection="bic", tol=1e-8)
# estimator, its target, and whether there are weights and offsets
SEARCHES = {
    **{
        f"classes, {name}, {k}": (cv_of(cv=3, **options), k, more)
        for k in (2, 4)
        for name, options, more in [
            ("plain", {}, ""),
            ("weights", {}, "weights"),
            ("balanced", {"class_weight": "balanced"}, "weights"),
            ("class weights", {"class_weight": {"low": 3.0, "top" if k > 2 else "mid": 0.2}}, ""),
            ("means of folds", {"refit": False}, ""),
            ("no intercept", {"fit_intercept": False}, ""),
        ]
    },
    "classes, two ratios": (cv_of(Cs=[0.2, 2.0], l1_ratio=[0.0, 0.5], cv=2), 3, "weights"),
    "classes, accuracy": (cv_of(Cs=[0.5, 4.0], cv=3, scoring="accuracy"), 3, "weights offsets"),
    "numbers, two ratios": (
        LassoOBACV([0.01, 0.002], l1_ratio=[0.5, 1.0], positive=True, cv=3, tol=1e-8), 1, "weights",
    ),
    "numbers, offsets": (LassoOBACV([0.01, 0.002], cv=3, tol=1e-8), 1, "weights offsets"),
    **{
        f"a criterion, {k}, relaxed {relaxed}": (model.set_params(relaxed=relaxed, **BIC), k, "weights")
        for relaxed in (False, True)
        for model, k in [
            (L1LogisticOBACV([0.2, 0.5, 1.0], class_weight="balanced"), 2),
            (L1LogisticOBACV([0.2, 0.5, 1.0], class_weight="balanced"), 4),
            (LassoOBACV([0.1, 0.03]), 1),
        ]
    },
    "poisson": (glm("poisson"), "poisson", "weights offsets"),
    "gamma, means of folds": (glm("gamma", refit=False), "gamma", ""),
    "binomial, two ratios": (glm("binomial", l1_ratio=[0.5, 1.0], alphas=[0.02, 0.005]), "binomial", ""),
    "tweedie, nonnegative": (glm("tweedie", positive=True), "tweedie", "offsets"),
    "negative binomial": (glm("negative-binomial", fit_intercept=False), "negative-binomial", ""),
    "huber": (glm("huber", penalty_weights={3: 0.0}, l1_ratio=0.5), "huber", ""),
    "gamma, a criterion": (glm("gamma", selection="bic", alphas=[0.03, 0.02, 0.01]), "gamma", "weights"),
    "poisson, relaxed": (glm("poisson", selection="aic", relaxed=True, alphas=[0.03]), "poisson", "offsets"),
    "poisson, a grid": (glm("poisson", alphas=4, eps=0.1, selection="1se"), "poisson", ""),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*CV. the best .* is the .* penalty of the grid")
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.thorough(keep=20)
def test_searches_are_those_of_main_memory(name, monkeypatch):
    monkeypatch.setattr(block_data, "gather_rows", None)  # no way to all rows of X at once
    model, target, more = SEARCHES[name]
    y, weight = TARGETS[target], WEIGHT if "weights" in more else None
    offset = OFFSETS[target if target in OFFSETS else 1] if "offsets" in more else None
    found, wanted = (clone(model).fit(form, y, weight, offset) for form in (in_blocks(X), X))
    penalty = "C" if hasattr(wanted, "Cs_") else "alpha"
    assert_allclose(getattr(found, f"{penalty}s_"), getattr(wanted, f"{penalty}s_"), rtol=1e-6)
    assert getattr(found, f"{penalty}_") == pytest.approx(getattr(wanted, f"{penalty}_"), rel=1e-6)
    assert np.all(found.l1_ratio_ == wanted.l1_ratio_)
    close = dict(atol=0.01) if model.scoring == "accuracy" else dict(rtol=2e-4)
    for scores in ("scores_", "mse_path_", "criterion_"):
        assert hasattr(found, scores) == hasattr(wanted, scores)
        if hasattr(wanted, scores):
            assert_allclose(getattr(found, scores), getattr(wanted, scores), **close)
    if isinstance(model, L1LogisticOBACV):  # coefficients need not be unique, probabilities are
        assert_allclose(found.predict_proba(X, offset), wanted.predict_proba(X, offset), atol=1e-3)
    else:
        assert_allclose(found.coef_, wanted.coef_, atol=1e-3)
        assert_allclose(found.intercept_, wanted.intercept_, atol=1e-3)
    assert hasattr(found, "objective_") == hasattr(wanted, "objective_")
    if hasattr(wanted, "objective_"):
        assert_allclose(found.objective_, wanted.objective_, rtol=1e-7)
    score = found.score(in_blocks(X), y, weight, offset)
    assert_allclose(score, found.score(X, y, weight, offset), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("last", [False, True])
def test_a_class_that_a_training_part_lacks(n_classes, last):
    """Its rows are all among those that the fold misses."""
    y = labels(SCORES, n_classes)
    lacking = np.unique(y)[-1 if last else 0]
    rows, here = np.arange(500), y == lacking
    cv = [(rows[~here], rows[here | (rows % 3 == 0)]), (rows[rows % 2 == 0], rows[rows % 2 == 1])]
    for options, offset in (
        ({}, None), ({"class_weight": {lacking: 2.0, "mid": 0.5}}, None), ({}, OFFSETS[n_classes]),
    ):  # fmt: skip
        model = cv_of(cv=cv, **options)
        found, wanted = (clone(model).fit(form, y, offset=offset) for form in (in_blocks(X), X))
        assert_allclose(found.scores_, wanted.scores_, rtol=2e-4)
        assert found.C_ == wanted.C_
        assert_allclose(found.objective_, wanted.objective_, rtol=1e-7)
        assert_allclose(found.predict_proba(X, offset), wanted.predict_proba(X, offset), atol=1e-3)


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
