"""`shared_fits`: the same models with less work, in one process and in others, and nothing left behind."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsekit as sk
from sparsekit._l1.estimators import shared_fits as module

TOL = 1e-9


def problem(seed=0, n=120, p=30, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(dtype)
    X[:, 1] += 0.9 * X[:, 0]
    score = X[:, :4] @ [1.0, -1.0, 0.5, 0.3]
    return X, score + 0.3 * rng.normal(size=n)


def classes(score):
    return np.where(score > 0, "yes", "no")


MODELS = {
    "lasso": (sk.LassoOBA(tol=TOL), {"alpha": [0.5, 0.01, 0.1, 0.001]}),
    "lasso_no_intercept": (sk.LassoOBA(tol=TOL, fit_intercept=False), {"alpha": [0.5, 0.01]}),
    "net": (sk.LassoOBA(tol=TOL), {"alpha": [0.1, 0.01], "l1_ratio": [0.3, 1.0, 0.0]}),
    "positive": (sk.LassoOBA(tol=TOL, positive=True), {"alpha": [0.1, 0.01, 0.001]}),
    "lasso_oba": (sk.LassoOBA(tol=TOL, solver="oba"), {"alpha": [0.1, 0.01]}),
    "logistic": (sk.L1LogisticOBA(tol=TOL), {"C": [0.05, 1.0, 0.2, 10.0]}),
    "logistic_no_intercept": (sk.L1LogisticOBA(tol=TOL, fit_intercept=False), {"C": [0.1, 1.0]}),
    "logistic_net": (sk.L1LogisticOBA(tol=TOL), {"C": [0.1, 1.0], "l1_ratio": [0.5, 1.0, 0.0]}),
    "balanced": (sk.L1LogisticOBA(tol=TOL, class_weight="balanced"), {"C": [0.1, 1.0]}),
}


def searched(name, X, y, n_jobs=None):
    model, grid = MODELS[name]
    return GridSearchCV(model, grid, cv=3, n_jobs=n_jobs).fit(X, y)


@pytest.mark.parametrize("form", ["dense", "csr", "csc", "float32", "wide", "shifted"])
@pytest.mark.parametrize("name", MODELS)
def test_a_search_finds_the_same(name, form):
    X, score = problem(n=40 if form == "wide" else 120, p=90 if form == "wide" else 30)
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "shifted":
        X = X + 50.0
    elif form in ("csr", "csc"):
        X = sp.csr_array(np.where(np.abs(X) > 0.8, X, 0.0)).asformat(form)
    y = score if name.startswith(("lasso", "net", "positive")) else classes(score)
    plain = searched(name, X, y)
    with sk.shared_fits():
        shared = searched(name, X, y)
    assert shared.best_params_ == plain.best_params_
    scores = [search.cv_results_["mean_test_score"] for search in (shared, plain)]
    assert_allclose(*scores, rtol=1e-4, atol=1e-6)
    gap = 20 * TOL * plain.best_estimator_.objective_
    assert abs(shared.best_estimator_.objective_ - plain.best_estimator_.objective_) <= gap
    assert shared.best_estimator_.dual_gap_ <= gap


def test_what_was_solved_takes_no_more_work():
    X, y = problem(n=300, p=40)
    labels = classes(y)
    with sk.shared_fits():
        for model, target in ((sk.LassoOBA(0.01), y), (sk.L1LogisticOBA(1.0), labels)):
            model.fit(X, target)
            first = model.n_iter_
            again = model.fit(X.copy(), target.copy()).n_iter_
            assert np.sum(again) <= 1 < np.sum(first) + 1
            kept = next(reversed(module._active._states.values()))
            assert kept.prepared is not None and len(kept.solutions) == 1


@pytest.mark.parametrize("what", ["X", "y", "weight", "offset", "intercept", "penalty_weights", "order"])
def test_other_data_are_other_data(what):
    """Whatever differs, nothing of one fit gets into the other."""
    X, y = problem()
    other, fit, more = sk.LassoOBA(0.01, tol=TOL), (X, y), {}
    if what == "X":
        changed = X.copy()
        changed[3, 2] += 5.0
        fit = (changed, y)
    elif what == "y":
        fit = (X, y + np.arange(len(y)))
    elif what == "weight":
        more = {"sample_weight": np.arange(1.0, len(y) + 1.0)}
    elif what == "offset":
        more = {"offset": np.sin(np.arange(len(y)))}
    elif what == "intercept":
        other.set_params(fit_intercept=False)
    elif what == "penalty_weights":
        other.set_params(penalty_weights=np.arange(X.shape[1]) * 1.0)
    else:
        fit = (X[::-1].copy(), y)
    plain = copy.deepcopy(other).fit(*fit, **more)
    with sk.shared_fits():
        sk.LassoOBA(0.01, tol=TOL).fit(X, y)
        other.fit(*fit, **more)
        assert len(module._active._states) == 2
    assert_allclose(other.coef_, plain.coef_, atol=1e-6)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_data_that_are_taken_for_others(monkeypatch, form):
    """Gradients of a fit's own data correct whatever was taken over: here that of any data of the shape."""
    monkeypatch.setattr(module, "_key", lambda options, X, *arrays: (options, X.shape))
    tasks = []
    for seed in range(4):
        X, y = problem(seed, n=150)
        X = sp.csr_array(np.where(np.abs(X) > 0.8, X, 0.0)) if form == "csr" else X * 10.0**seed
        tasks += [(sk.LassoOBA(0.01, tol=TOL), X, y), (sk.L1LogisticOBA(tol=TOL), X, classes(y))]
    plain = [copy.deepcopy(model).fit(X, y) for model, X, y in tasks]
    with sk.shared_fits():
        found = [model.fit(X, y) for model, X, y in tasks]
        assert len(module._active._states) == 2
    for one, other in zip(found, plain, strict=True):
        assert one.dual_gap_ <= 20 * TOL * one.objective_
        assert_allclose(one.objective_, other.objective_, rtol=40 * TOL)


def test_other_orders_of_the_classes_are_other_data():
    X, score = problem()
    y = np.digitize(score, [-0.5, 0.8])
    orders = [0, 1, 2], [1, 0, 2], [0, 2, 1]

    def fits():
        return [sk.OrdinalOBA(alpha=0.01, categories=order, tol=TOL).fit(X, y) for order in orders]

    alone = fits()
    with sk.shared_fits():
        shared = fits()
    for one, other in zip(shared, alone):
        assert_allclose(one.objective_, other.objective_, rtol=1e-7)
        assert_allclose(one.coef_, other.coef_, atol=1e-5)


@pytest.mark.parametrize("family", ["poisson", "gamma", "huber"])
def test_families_find_the_same(family):
    X, score = problem()
    y = score if family == "huber" else np.exp(np.clip(score, -2.0, 2.0))
    models = [sk.GLMOBA(family, alpha=alpha, tol=TOL) for alpha in (0.3, 0.03, 0.1)]
    alone = [copy.copy(model).fit(X, y).coef_ for model in models]
    with sk.shared_fits():
        shared = [model.fit(X, y).coef_ for model in models]
    assert_allclose(shared, alone, atol=1e-5)


def test_nothing_is_shared_outside():
    X, y = problem()
    first = sk.LassoOBA(0.01).fit(X, y)
    with sk.shared_fits():
        sk.LassoOBA(0.02).fit(X, y)
    assert module._active is None
    again = sk.LassoOBA(0.01).fit(X, y)
    assert again.n_iter_ == first.n_iter_
    assert_array_equal(again.coef_, first.coef_)


def test_copies_of_columns_are_not_kept():
    """A state does not grow with the rows, and the next fit copies its columns again."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 90))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(4000)
    with sk.shared_fits(max_bytes=200_000):
        first = sk.LassoOBA(0.1, solver="gram").fit(X, y)
        assert len(module._active._states) == 1
        second = sk.LassoOBA(0.05, solver="gram").fit(X, y)
    alone = sk.LassoOBA(0.05, solver="gram").fit(X, y)
    assert first.n_iter_ > 0 and second.n_iter_ <= alone.n_iter_
    np.testing.assert_allclose(second.coef_, alone.coef_, atol=1e-6)


@pytest.mark.parametrize(("max_bytes", "expected"), [(0, 0), (20_000, 2), (2**28, 4)])
def test_memory_has_a_limit(max_bytes, expected):
    with sk.shared_fits(max_bytes=max_bytes):
        for seed in range(4):
            X, y = problem(seed)
            sk.LassoOBA(0.001).fit(X, y)  # all columns: 30 x 30 numbers
        assert len(module._active._states) == expected
        assert sum(kept.n_bytes for kept in module._active._states.values()) <= max_bytes
        if expected:  # those that were last used
            assert np.sum(sk.LassoOBA(0.001).fit(X, y).n_iter_) <= 1


@pytest.mark.parametrize("wrong", [-1, 1.5, "1 GB", None])
def test_wrong_limits(wrong):
    said = pytest.raises(ValueError, match="max_bytes must be an integer of at least 0; got")
    with said, sk.shared_fits(max_bytes=wrong):
        raise AssertionError("the context was entered")


def test_a_process_shares_what_it_was_sent_to_share():
    """Two fits to the same rows in one worker, within the context and after it."""
    X, y = problem(n=300)
    rows = np.arange(len(y))
    call = joblib.delayed(cross_validate)
    options = dict(cv=[(rows, rows), (rows, rows)], return_estimator=True)

    def iterations():
        [found] = joblib.Parallel()([call(sk.LassoOBA(0.01), X, y, **options)])
        assert all("_shared_fits" not in vars(model) for model in found["estimator"])
        return [int(np.sum(model.n_iter_)) for model in found["estimator"]]

    with joblib.parallel_config("loky", n_jobs=2):
        with sk.shared_fits():
            shared = iterations()
        alone = iterations()
    assert shared[1] < shared[0] == alone[0] == alone[1]


def test_a_model_that_is_saved_meanwhile():
    X, y = problem()
    with sk.shared_fits():
        model = sk.LassoOBA(0.01).fit(X, y)
        saved, copied = pickle.dumps(model), copy.deepcopy(model)
    for loaded in (pickle.load(io.BytesIO(saved)), copied):
        assert vars(loaded).keys() == vars(model).keys()
        assert_array_equal(loaded.predict(X), model.predict(X))


def test_pipelines_share_what_their_steps_made():
    X, y = problem(n=200)
    model = make_pipeline(StandardScaler(), sk.L1LogisticOBA(tol=TOL))
    grid = {"l1logisticoba__C": [0.1, 1.0, 10.0]}
    with sk.shared_fits():
        search = GridSearchCV(model, grid, cv=2, refit=False).fit(X, classes(y))
        assert [len(kept.solutions) for kept in module._active._states.values()] == [3, 3]
    plain = GridSearchCV(model, grid, cv=2, refit=False).fit(X, classes(y))
    assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


@pytest.mark.parametrize("options", [{"history": True}, {"hessian": "lbfgs"}])
def test_what_shares_nothing(options):
    X, y = problem()
    plain = sk.LassoOBA(0.01, **options).fit(X, y)
    with sk.shared_fits():
        sk.LassoOBA(0.01, **options).fit(X, y)
        again = sk.LassoOBA(0.01, **options).fit(X, y)
        assert not module._active._states
    assert_array_equal(again.coef_, plain.coef_)


def test_a_context_within_another_shares_with_it():
    X, y = problem()
    with sk.shared_fits():
        sk.LassoOBA(0.01).fit(X, y)
        with sk.shared_fits():
            assert sk.LassoOBA(0.01).fit(X, y).n_iter_ <= 1
        assert len(module._active._states) == 1
