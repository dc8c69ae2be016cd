"""L1LogisticOBACV: its scores against plain cross-validation, its two choices of C, its metadata."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, get_scorer, log_loss, make_scorer
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score, cross_validate
from sklearn.preprocessing import scale
from sklearn.utils.metadata_routing import get_routing_for_object

from sparsekit import L1LogisticOBA, L1LogisticOBACV
from sparsekit._l1.estimators import fold_search

TIGHT = 1e-8


@pytest.mark.parametrize("data", ["cancer", "iris"])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_scores_are_those_of_plain_cross_validation(data, scoring, request):
    X, y = request.getfixturevalue(data)
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    Cs = [0.5, 0.02, 0.1]
    model = L1LogisticOBACV(Cs=Cs, cv=cv, scoring=scoring, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(model.Cs_, sorted(Cs))
    for j, C in enumerate(model.Cs_):
        expected = cross_val_score(L1LogisticOBA(C=C, tol=TIGHT), X, y, cv=cv, scoring=scoring)
        np.testing.assert_allclose(model.scores_[:, j], expected, rtol=1e-4)
    np.testing.assert_allclose(model.mean_score_, model.scores_.mean(axis=0))
    np.testing.assert_allclose(model.se_, model.scores_.std(axis=0, ddof=1) / 2.0)
    assert model.C_ == model.C_best_ == model.Cs_[np.argmax(model.mean_score_)]
    final = L1LogisticOBA(C=model.C_, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-4)
    assert model.objective_ == pytest.approx(final.objective_, rel=1e-8)
    assert model.score(X, y) == pytest.approx(get_scorer(scoring or "accuracy")(final, X, y), rel=1e-5)


@pytest.mark.parametrize("data", ["cancer", "iris"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_accuracy_is_that_of_the_scorer(data, make, request):
    X, y = request.getfixturevalue(data)
    names = np.array(["b", "c", "a"])[y]
    seen = []

    def scoring(model, X, y):
        seen.append(accuracy_score(y, model.predict(X)))
        return seen[-1]

    kind = dict(Cs=[0.003, 0.02, 0.3], cv=StratifiedKFold(3))
    own = L1LogisticOBACV(**kind).fit(make(X), names)
    slow = L1LogisticOBACV(scoring=scoring, **kind).fit(make(X), names)
    np.testing.assert_array_equal(own.scores_, slow.scores_)
    assert len(seen) == own.scores_.size and own.scores_.max() < 1.0


@pytest.mark.parametrize(
    "scores, best, one_se",
    [
        # falling curve: the smallest C is best and nothing sparser exists
        ([[3.0, 2.0, 1.0], [3.2, 2.1, 1.1]], 1.0, 1.0),
        # a flat top: ties go to the smaller C
        ([[1.0, 2.0, 2.0], [1.0, 2.0, 2.0]], 2.0, 2.0),
        # the best is the largest C, the middle is within its standard error of 0.5, the first is not
        ([[0.0, 2.6, 2.5], [0.0, 2.6, 3.5]], 3.0, 2.0),
        # a dip below the threshold between two that are good enough: still the smallest C
        ([[2.6, 0.0, 2.5], [2.6, 0.0, 3.5]], 3.0, 1.0),
    ],
)
def test_choice_from_known_scores(scores, best, one_se):
    model = L1LogisticOBACV()
    model.Cs_ = np.array([1.0, 2.0, 3.0])
    model._choose(np.array(scores))
    assert (model.C_best_, model.C_1se_) == (best, one_se)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
def test_sample_weight_enters_fits_and_scores(cancer, class_weight):
    X, y = cancer
    s = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    cv = list(StratifiedKFold(3).split(X, y))
    model = L1LogisticOBACV(Cs=[0.05, 0.5], cv=cv, tol=TIGHT, class_weight=class_weight).fit(
        X, y, sample_weight=s
    )
    totals = np.bincount(y, weights=s)
    per_class = {None: [1.0, 1.0], "balanced": s.sum() / (2 * totals)}.get(
        class_weight if not isinstance(class_weight, dict) else 0, [1.0, 3.0]
    )
    for k, (train, test) in enumerate(cv):
        for j, C in enumerate(model.Cs_):
            fold = L1LogisticOBA(C=C, tol=TIGHT).fit(
                X[train], y[train], (s * np.asarray(per_class)[y])[train]
            )
            expected = accuracy_score(y[test], fold.predict(X[test]), sample_weight=s[test])
            assert model.scores_[k, j] == pytest.approx(expected)


def test_a_fold_may_lack_a_class(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    everything = np.arange(150)
    lacking = np.flatnonzero(y != 1)  # the middle one
    cv = [(lacking, everything), (everything, np.flatnonzero(y == 1))]
    for scoring in ("neg_log_loss", "accuracy"):
        model = L1LogisticOBACV(Cs=[0.1, 1.0], cv=cv, scoring=scoring, tol=TIGHT).fit(X, names)
        assert np.isfinite(model.scores_).all()
        two = L1LogisticOBA(C=1.0, tol=TIGHT).fit(X[lacking], names[lacking])
        if scoring == "accuracy":
            assert model.scores_[0, 1] == pytest.approx(accuracy_score(names, two.predict(X)))
        else:
            proba = np.insert(two.predict_proba(X), 1, 0.0, axis=1)
            assert model.scores_[0, 1] == pytest.approx(
                -log_loss(names, proba, labels=["a", "b", "c"]), rel=1e-4
            )
    with pytest.raises(ValueError, match=r"training part of fold 0 has only the class \['a'\]"):
        L1LogisticOBACV(cv=[(np.flatnonzero(y == 0), everything)]).fit(X, names)


def test_metadata_routing(cancer):
    X, y = cancer
    groups = np.arange(len(y)) % 7
    s = np.random.default_rng(1).uniform(0.1, 3.0, len(y))  # with which no row lies at the boundary
    with pytest.raises(ValueError, match="groups"):
        L1LogisticOBACV(cv=GroupKFold(3)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        model = L1LogisticOBACV(Cs=[0.1], cv=GroupKFold(3), scoring=scorer, tol=TIGHT)
        model.set_fit_request(sample_weight=True)
        model.fit(X, y, groups=groups, sample_weight=s)
        for k, (train, test) in enumerate(GroupKFold(3).split(X, y, groups)):
            fold = L1LogisticOBA(C=0.1, tol=TIGHT).fit(X[train], y[train], s[train])
            expected = accuracy_score(y[test], fold.predict(X[test]), sample_weight=s[test])
            assert model.scores_[k, 0] == pytest.approx(expected)
        unasked = L1LogisticOBACV(Cs=[0.1], cv=GroupKFold(3), scoring=make_scorer(accuracy_score))
        # scikit-learn before 1.8: a scorer that was asked nothing does not know that it could take weights
        if "sample_weight" in get_routing_for_object(unasked.scoring).score.requests:
            with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
                unasked.fit(X, y, groups=groups, sample_weight=s)
        # inside another cross-validation the weights and groups arrive as well
        nested = cross_validate(
            model,
            X,
            y,
            cv=3,
            params={"sample_weight": s, "groups": groups},
            scoring=scorer,
            error_score="raise",
        )
        assert (nested["test_score"] > 0.9).all()


def test_convergence_warning_counts_the_solves(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match=r"L1LogisticOBACV: 7 of 7 points .* fold 0 at C=\S+, fold 0"):
        L1LogisticOBACV(Cs=[0.1, 1.0], cv=3, max_iter=1, tol=1e-12, scoring="neg_log_loss").fit(X, y)


def test_bad_parameters(cancer):
    X, y = cancer
    for name, value in (("Cs", []), ("Cs", [0.0]), ("Cs", 0), ("eps", 1.0), ("selection", "first"),
                        ("scoring", "nothing"), ("cv", 1)):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            L1LogisticOBACV(**{name: value}).fit(X, y)


def test_an_automatic_grid_goes_on_where_its_largest_C_is_the_best():
    """Unscaled columns: those of size 1000 say where the grid begins, those of size 0.1 where it ends."""
    X, y = load_breast_cancer(return_X_y=True)
    options = {"cv": 3, "tol": 1e-4}
    model = L1LogisticOBACV(**options).fit(X, y)
    assert len(model.Cs_) > 10 and 10.0 < model.C_ < model.Cs_[-1]
    np.testing.assert_allclose(np.diff(np.log(model.Cs_)), np.log(1e3) / 9.0)
    assert model.scores_.shape == (3, len(model.Cs_)) and model.mean_score_.max() > 0.95
    # a score is that of a fit to the fold
    train, test = next(StratifiedKFold(3).split(X, y))
    alone = L1LogisticOBA(C=model.Cs_[-1], tol=1e-4).fit(X[train], y[train])
    assert alone.score(X[test], y[test]) == pytest.approx(model.scores_[0, -1], abs=0.02)
    # of several ratios the chosen one's grid goes on
    mixed = L1LogisticOBACV(4, l1_ratio=[0.5, 1.0], **options).fit(X, y)
    assert len(mixed.Cs_) > 4 and mixed.l1_ratio_scores_.max() == mixed.mean_score_.max()


def test_a_grid_whose_end_is_the_best_is_named():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    for Cs, end in (([0.001, 0.01], "0.01, is the largest of Cs"), ([10, 1000], "10, is the smallest of Cs")):
        with pytest.warns(UserWarning, match=f"the best C, {end}"):
            L1LogisticOBACV(Cs, cv=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L1LogisticOBACV([0.01, 0.3, 1000], cv=2, tol=1e-3).fit(X, y)
        L1LogisticOBACV([1.0], cv=2).fit(X, y)
        # below the automatic grid's first value all coefficients are zero
        L1LogisticOBACV([1e-6, 2e-6], cv=2).fit(X, y)


def test_coefs_paths_are_the_models_of_the_folds(monkeypatch):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    folds = list(StratifiedKFold(3).split(X, y))
    Cs = [0.1, 1.0, 0.3]
    model = L1LogisticOBACV(Cs, cv=folds, tol=1e-7, scoring="neg_log_loss").fit(X, y)
    assert model.coefs_paths_.shape == (3, 3, 3, 14)
    one = L1LogisticOBA(C=0.3, tol=1e-7).fit(X[folds[2][0]], y[folds[2][0]])
    np.testing.assert_allclose(model.coefs_paths_[2, 1, :, :13], one.coef_, atol=1e-3)
    np.testing.assert_allclose(model.coefs_paths_[2, 1, :, 13], one.intercept_, atol=1e-3)
    two = L1LogisticOBACV(Cs, cv=2, fit_intercept=False, refit=False).fit(X.astype(np.float32), y > 0)
    assert two.coefs_paths_.shape == (2, 3, 13) and two.coefs_paths_.dtype == np.float32
    at = list(two.Cs_).index(two.C_)
    np.testing.assert_allclose(two.coefs_paths_[:, at].mean(axis=0), two.coef_[0], rtol=1e-5)
    three = L1LogisticOBACV(Cs, cv=2, refit=False).fit(X, y > 0)
    mean = three.coefs_paths_[:, list(three.Cs_).index(three.C_)].mean(axis=0)
    np.testing.assert_allclose(mean, np.append(three.coef_[0], three.intercept_), rtol=1e-12)
    assert not hasattr(three, "objective_")
    # where they would take too much memory
    monkeypatch.setattr(fold_search, "MAX_BYTES", 0)
    assert not hasattr(model.fit(X, y), "coefs_paths_")
