"""The estimators at work: real data, scikit-learn's tools around them, callbacks, metadata."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsekit import (
    BoundedClassifier,
    BoundedRegressor,
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
)


def test_pipeline_and_grid_search_over_C():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), L1LogisticOBA())
    grid = {"l1logisticoba__C": [0.001, 0.01, 0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=5, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["l1logisticoba__C"] in (0.1, 1.0)
    assert search.score(X, y) > -0.1
    mean = search.cv_results_["mean_test_score"]
    assert mean[0] < mean[1] < mean[2]
    # the grid search and the path's cross-validation are the same computation
    cv = L1LogisticOBACV(Cs=grid["l1logisticoba__C"], cv=5, scoring="neg_log_loss")
    cv.fit(StandardScaler().fit_transform(X), y)
    assert search.best_params_["l1logisticoba__C"] == cv.C_


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


def test_select_from_model_and_set_output():
    X, y = load_wine(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), SelectFromModel(L1LogisticOBA(C=0.05))).set_output(
        transform="pandas"
    )
    selected = pipeline.fit_transform(X, y)
    kept = np.abs(pipeline[-1].estimator_.coef_).sum(axis=0) > 1e-5
    assert isinstance(selected, pd.DataFrame) and list(selected.columns) == list(X.columns[kept])
    assert 2 <= kept.sum() < X.shape[1]


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


def test_scikit_learn_callbacks():
    sklearn_callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)

    class Recorder:
        def __init__(self, stop_at=None):
            self.events, self.scores, self.stop_at = [], [], stop_at

        def setup(self, estimator, context):
            self.events.append("setup")

        def teardown(self, estimator, context):
            self.events.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.events.append(("begin", context.task_name, context.task_id))

        def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
            self.events.append(("end", context.task_name, context.task_id))
            if fitted_estimator is not None:
                self.scores.append(fitted_estimator.score(X, y))
            return context.task_name == "iteration" and context.task_id == self.stop_at

    recorder = Recorder()
    model = L1LogisticOBA().set_callbacks(recorder).fit(X, y)
    n_iter = model.n_iter_[0]
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    for kind in ("begin", "end"):
        tasks = [event for event in recorder.events if event[0] == kind]
        assert sorted(tasks) == sorted(
            [(kind, "fit", 0)] + [(kind, "iteration", i) for i in range(n_iter + 1)]
        )
    assert len(recorder.scores) == n_iter + 1
    assert recorder.scores[-1] == recorder.scores[-2] == model.score(X, y) > recorder.scores[0] - 0.1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert L1LogisticOBA(tol=1e-9).set_callbacks(Recorder(stop_at=1)).fit(X, y).n_iter_[0] == 2

    monitor = sklearn_callback.ScoringMonitor(scoring="neg_log_loss")
    search = GridSearchCV(L1LogisticOBA().set_callbacks(monitor), {"C": [0.1, 1.0]}, cv=2)
    search.fit(X, y)
    scores = [row["neg_log_loss"] for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert len(scores) > 10 and max(scores) > -0.1

    recorder = Recorder()
    L1LogisticOBACV(Cs=3, cv=3).set_callbacks(recorder).fit(X, y)
    assert [event for event in recorder.events if event[0] == "begin"] == [
        ("begin", "fit", 0), ("begin", "fold", 0), ("begin", "fold", 1), ("begin", "fold", 2)
    ]  # fmt: skip
    recorder = Recorder()
    LassoOBA(0.01).set_callbacks(recorder).fit(X, y)
    assert recorder.scores and recorder.events[-1] == "teardown"
