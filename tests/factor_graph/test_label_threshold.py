"""threshold="auto": its moves against rows that are truly left out, and its choice."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from sparsekit import AtMostOne, LPSparseMAPClassifier, LPSparseMAPClassifierCV, load, save
from sparsekit._factor_graph.estimators import label_threshold
from sparsekit._factor_graph.estimators.label_decisions import f1_thresholds


def rows(n, exclusive, seed=0, p=20, K=6):
    """Sets of one label, which exclude each other; or of weak labels that do not."""
    rng = np.random.default_rng(seed)
    if exclusive:
        Y = np.eye(K, dtype=int)[rng.integers(K, size=n)]
        return 0.5 * Y @ np.random.default_rng(99).normal(size=(K, p)) + rng.normal(size=(n, p)), Y
    X = rng.normal(size=(n, p))
    score = X @ np.random.default_rng(99).normal(size=(p, K)) / 4.0 + rng.normal(size=(n, K))
    return X, (score > 1.2).astype(int)


def choose(monkeypatch, X, Y, **options):
    """The model, and the marginals that its choice used."""
    seen = []

    def watched(mu, *args, **keywords):
        seen.append(mu)
        return decide(mu, *args, **keywords)

    decide = label_threshold.decide
    monkeypatch.setattr(label_threshold, "decide", watched)
    model = LPSparseMAPClassifier(**options).fit(X, Y)
    monkeypatch.setattr(label_threshold, "decide", decide)
    return model, seen[0] if seen else None


@pytest.mark.parametrize("options", [{}, {"loss": "logistic"}, {"pairs": [[0, 1], [2, 4]]}])
def test_marginals_are_nearly_those_of_rows_left_out(monkeypatch, options):
    X, Y = rows(60, False)
    alpha = 0.1
    model, moved = choose(monkeypatch, X, Y, alpha=alpha, tol=1e-7, **options)
    model.set_params(alpha=alpha * 60 / 59)
    plain, true = model.predict_marginals(X), np.empty(moved.shape)
    for i in range(len(X)):
        true[i] = model.fit(np.delete(X, i, 0), np.delete(Y, i, 0)).predict_marginals(X[i : i + 1])[0]
    # the same row has not the mean leverage, so that a part of the difference is left
    assert np.mean((moved - true) ** 2) < 0.2 * np.mean((plain - true) ** 2)


def test_the_share_is_what_new_rows_ask_for():
    for exclusive, seed in ((True, 0), (True, 1), (False, 2)):
        X, Y = rows(300, exclusive, seed)
        model = LPSparseMAPClassifier().fit(X, Y)
        assert model.threshold == "auto"
        assert model.threshold_share_ >= 0.5 if exclusive else model.threshold_share_ <= 0.25
        new, truth = rows(3000, exclusive, seed + 50)

        def f1(found, truth=truth):
            both = 2.0 * (found * truth).sum(axis=1) / np.maximum((found + truth).sum(axis=1), 1)
            return np.where((found + truth).any(axis=1), both, 1.0).mean()

        ours = f1(model.predict(new))
        others = [f1(model.set_params(threshold=t).predict(new)) for t in ("expected_f1", 0.5)]
        assert ours > max(others) - 0.01
        mu = model.predict_marginals(new)
        cut = (1.0 - model.threshold_share_) * f1_thresholds(mu, model.never_empty_)
        expected = mu > cut + 0.5 * model.threshold_share_
        some = expected.any(axis=1)
        np.testing.assert_array_equal(model.set_params(threshold="auto").predict(new)[some], expected[some])


def test_weights_are_repeated_rows_and_layouts_agree(monkeypatch):
    X, Y = rows(90, True, p=8)
    times = np.random.default_rng(1).integers(0, 4, size=90)
    weighted, _ = choose(monkeypatch, X, Y, alpha=0.05)
    for same in (sp.csr_matrix(X), np.asfortranarray(X)):
        assert choose(monkeypatch, same, Y, alpha=0.05)[0].threshold_share_ == weighted.threshold_share_
    weighted = LPSparseMAPClassifier(tol=1e-8).fit(X, Y, sample_weight=times)
    repeated = LPSparseMAPClassifier(tol=1e-8).fit(np.repeat(X, times, 0), np.repeat(Y, times, 0))
    assert weighted.threshold_share_ == repeated.threshold_share_


@pytest.mark.filterwarnings("error")
def test_where_there_is_nothing_to_choose(monkeypatch):
    X, Y = rows(60, True)
    for options in ({"loss": "hinge"}, {"factors": [(AtMostOne, range(6))]}, {"threshold": 0.3}):
        model, seen = choose(monkeypatch, X, Y, alpha=0.1, **options)
        assert seen is None
        assert np.isnan(model.threshold_share_) if "threshold" in options else model.threshold_share_ == 0.0
    for X_, Y_ in ((np.ones((5, 2)), Y[:5]), (X[:1], Y[:1]), (X, 0 * Y), (1e-170 * X, Y), (1e100 * X, Y)):
        for loss in ("sparsemap", "logistic"):
            for alpha in ("auto", 1e-3):
                model = LPSparseMAPClassifier(alpha, loss=loss).fit(X_, Y_)
                assert model.threshold_share_ in label_threshold.SHARES


@pytest.mark.parametrize("fitted_with", [0.5, "expected_f1"])
def test_auto_after_a_fit_with_another_threshold_asks_for_a_fit(fitted_with):
    X, Y = rows(120, True)
    model = LPSparseMAPClassifier(0.05, threshold=fitted_with).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(NotFittedError, match='another threshold: threshold="auto" follows'):
        model.set_params(threshold="auto").predict(X)
    np.testing.assert_array_equal(model.set_params(threshold=fitted_with).predict(X), expected)
    model.set_params(threshold="auto").fit(X, Y)
    ours = model.predict(X)
    np.testing.assert_array_equal(ours, LPSparseMAPClassifier(0.05).fit(X, Y).predict(X))
    # the way back needs none
    np.testing.assert_array_equal(model.set_params(threshold=fitted_with).predict(X), expected)


def test_auto_needs_no_other_fit_where_it_chooses_nothing():
    X, Y = rows(60, True)
    for options, y in (({"loss": "hinge"}, Y), ({"factors": [(AtMostOne, range(6))]}, Y), ({}, Y[:, 0])):
        model = LPSparseMAPClassifier(0.1, threshold="expected_f1", **options).fit(X, y)
        expected = model.predict(X)
        assert model.threshold_share_ == 0.0
        np.testing.assert_array_equal(model.set_params(threshold="auto").predict(X), expected)


def test_models_saved_before_there_was_a_share_predict_as_they_did(tmp_path):
    X, Y = rows(120, True)
    for model in (
        LPSparseMAPClassifier(0.05, threshold="expected_f1").fit(X, Y),
        LPSparseMAPClassifierCV([0.05], thresholds=["expected_f1"], cv=2).fit(X, Y),
    ):
        expected = model.predict(X)
        for share in (np.nan, None):
            if share is None:
                del model.threshold_share_
            save(model, tmp_path / "model.skops")
            again = load(tmp_path / "model.skops")
            np.testing.assert_array_equal(again.predict(X), expected)
            name = "threshold" if hasattr(again, "threshold") else "threshold_"
            setattr(again, name, "auto")
            with pytest.raises(NotFittedError, match="threshold"):
                again.predict(X)
