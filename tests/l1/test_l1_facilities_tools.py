"""Which public L1 thing has which facility: offsets, callbacks, copies, tables, and input that is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from l1_things import (
    COUNTS,
    ESTIMATORS,
    FOLDS,
    NUMBERS,
    OFFSET,
    THINGS,
    TWO,
    N,
    X,
    each_estimator,
    each_thing,
    frame,
    is_selection,
    kind,
    least,
    objective,
    of_classes,
    offset_of,
    same,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsekit as sk

# offsets


@each_thing
def test_an_offset_is_a_column_with_coefficient_one(thing):
    offset = offset_of(thing)
    found = thing.fit(offset=offset)
    if not of_classes(thing):
        same(found, thing.fit(y=thing.y - OFFSET), rtol=1e-6)
        return
    if is_selection(thing):
        plain = thing.fit()
        assert not np.array_equal(found[0], plain[0])
        same(thing.fit(offset=np.zeros(N)), plain, rtol=0, atol=0)
        return
    coef, intercept, value, gap = found
    assert_allclose(objective(thing, coef, intercept, offset=offset), value, rtol=1e-10)
    best = least(kind(thing), shifted=True)
    assert_allclose(value, best, rtol=1e-8)
    assert value - gap <= best * (1 + 1e-12)


@each_estimator
def test_offset_and_weights_go_where_routing_says(estimator):
    offset = offset_of(estimator)
    y, given = estimator.y, {"sample_weight": COUNTS, "offset": offset}
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(estimator.model).set_fit_request(sample_weight=True, offset=True)
        model.set_predict_request(offset=True).set_score_request(offset=True, sample_weight=True)
        if isinstance(model, sk.L1LogisticOBACV | sk.LassoOBACV):
            scorer = get_scorer("accuracy" if of_classes(estimator) else "neg_mean_squared_error")
            model.set_params(scoring=scorer.set_score_request(sample_weight=True))
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, clone(model)).fit(X, y, **given)
        scaled = pipeline[0].transform(X)
        direct = clone(model).fit(scaled, y, sample_weight=None, offset=offset)
        assert np.abs(pipeline[-1].coef_ - direct.coef_).max() > 1e-3  # weights arrived
        assert_array_equal(pipeline.predict(X, offset=offset), pipeline[-1].predict(scaled, offset=offset))
        if isinstance(model, sk.L1LogisticOBACV | sk.LassoOBACV):
            return
        search = GridSearchCV(model, {"fit_intercept": [True]}, cv=KFold(2)).fit(X, y, **given)
        scores = []
        for a, b in KFold(2).split(X):
            part = clone(model).fit(X[a], y[a], sample_weight=COUNTS[a], offset=offset[a])
            scores.append(part.score(X[b], y[b], sample_weight=COUNTS[b], offset=offset[b]))
        assert_allclose(search.cv_results_["mean_test_score"], np.mean(scores), rtol=1e-9)


# callbacks


class Recorder:
    """A callback of scikit-learn's protocol."""

    def __init__(self):
        self.tasks = []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **found):
        self.tasks.append(f"{context.task_name} ends")


@pytest.mark.parametrize("name", [n for n in THINGS if "ath" not in n])
def test_callbacks_of_scikit_learn(name):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    thing, recorder = THINGS[name], Recorder()
    if is_selection(thing):
        model = sk.StabilitySelection(clone(thing.model), n_pairs=3, penalties=3, n_jobs=2)
        task, count = "half", 6
    else:
        model = clone(thing.model)
        task, count = ("fold", 3) if "CV" in name else ("iteration", None)
    model.set_callbacks(recorder).fit(X, thing.y)
    assert recorder.tasks[0] == "fit" and recorder.tasks[-2:] == ["fit ends", "teardown"]
    assert recorder.tasks.count(task) == recorder.tasks.count(f"{task} ends") >= (count or 1)
    assert count in (None, recorder.tasks.count(task))


@pytest.mark.parametrize("name", [n for n in THINGS if "CV" not in n])
def test_callbacks_of_the_package_see_copies_and_stop(name):
    thing, seen = THINGS[name], []

    def watch(intermediate_result):
        seen.append((intermediate_result.fun, intermediate_result.nnz))
        intermediate_result.x[:] = np.nan

    watched = thing.fit(callback=watch)
    assert seen and np.isfinite(seen).all()
    same(watched, thing.fit())
    del seen[:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who stops a fit need not be told so
        thing.fit(callback=lambda result: seen.append(result.nit) or True)
    assert len(seen) == (6 if is_selection(thing) else 1)


# least squares without a slope; targets that are no numbers; folds and scores that are none


@pytest.mark.parametrize("columns", [np.ones((N, 3)), np.zeros((N, 3))])
@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.5}, {"l1_ratio": 0.0}, {"hessian": "lbfgs"}])
def test_constant_columns_are_fitted_without_a_warning(columns, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sk.LassoOBA(0.1, **options).fit(columns, NUMBERS)
    assert_allclose(model.coef_, 0.0, atol=1e-15)
    assert_allclose(model.intercept_, NUMBERS.mean())
    # a gap that is small by the tolerance alone is no such proof
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        sk.LassoOBA(1e-4, max_iter=1, tol=1e-12, hessian="lbfgs").fit(X, NUMBERS)


@pytest.mark.parametrize("name", [n for n in THINGS if "asso" in n])
def test_targets_that_are_no_numbers_are_named(name):
    thing = THINGS[name]
    words = np.where(TWO, "a", "b")
    for y, shown in (
        (words, "'a'|'b'"), (words.astype(object), "'a'|'b'"), (list(words), "'a'|'b'"),
        (pd.Series(words), "'a'|'b'"),
        (np.arange(N).astype("M8[D]"), "1970-01-01"), (pd.Series(np.arange(N).astype("m8[s]")), "0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"y must hold numbers; it holds .*({shown})"):
            thing.fit(y=y)
    same(thing.fit(y=NUMBERS.astype(object)), thing.fit(), rtol=1e-12)
    same(thing.fit(y=[str(value) for value in NUMBERS]), thing.fit(), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if "CV" in n and "3" not in n])
def test_folds_and_scores_that_are_none_are_refused(name):
    model, y = THINGS[name].model, THINGS[name].y
    rows = np.arange(N)
    for cv, message in (
        ([], "cv has no folds"), ([(rows, [])], "The left-out part of fold 0 has no rows"),
        ([FOLDS[0], (rows[:0], rows)], "The training part of fold 1 has no rows"),
        ([(rows < 0, rows)], "The training part of fold 0 has no rows"),
        ([(rows, [N])], f"The left-out part of fold 0 has rows that X lacks, which has {N}"),
        ([([0.5, 1.5], rows)], "The training part of fold 0 has rows that X lacks"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(cv=cv).fit(X, y)
    masks = [tuple(np.isin(rows, part) for part in fold) for fold in FOLDS]
    assert_array_equal(
        clone(model).set_params(cv=masks).fit(X, y).coef_, clone(model).set_params(cv=FOLDS).fit(X, y).coef_
    )
    for answer, message in (
        (np.nan, "scoring gives NaN for the left-out part of fold 0 at (C|alpha)="),
        ("good", "scoring must return a number; got 'good'"),
        (None, "scoring must return a number; got None"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(scoring=lambda estimator, X, y, answer=answer: answer).fit(X, y)


@each_thing
def test_columns_of_words_are_named(thing):
    words = frame().assign(colour="red", place="x")
    with pytest.raises(ValueError, match="column 'colour' of X holds 'red', and X must hold numbers"):
        thing.fit(words)
    same(thing.fit(frame().astype(object)), thing.fit(), rtol=1e-9)
