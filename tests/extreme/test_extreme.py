"""ExtremeSoftmaxSGD as a user sees it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsekit import ExtremeSoftmaxSGD, SoftmaxClassifier

METHODS = ["implicit", "umax", "ove", "nce", "is", "sgd"]
UNBIASED = ["implicit", "umax", "sgd"]


def expected_failures(estimator):
    """Two rows of weight 1 are two steps, one of weight 2 is one: as in scikit-learn's own SGD models."""
    why = "a stochastic fit to repeated rows takes other steps than one to weights"
    names = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{name}_data": why for name in names}


@parametrize_with_checks(
    [ExtremeSoftmaxSGD(max_iter=20), ExtremeSoftmaxSGD("is", learning_rate=0.1, alpha=1e-3)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(many, method):
    X, y = many
    model = ExtremeSoftmaxSGD(method, random_state=0, tol=0.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.log_loss(X, y) < 2.0
    assert model.learning_rate_ in model.learning_rate_losses_
    losses = model.learning_rate_losses_
    good = [r for r, loss in losses.items() if loss <= min(losses.values()) + 1e-3 * np.log(60)]
    assert model.learning_rate_ == min(good)
    assert len(model.objective_curve_) == model.n_iter_ == 50
    assert np.nanargmin(model.objective_curve_) > 0
    assert abs(model.objective_ - model.log_loss(X, y)) <= 4 * model.objective_error_ + 1e-9
    assert model.t_ == 50 * 600


@pytest.mark.parametrize("method", UNBIASED)
@pytest.mark.parametrize("kwargs", [{}, dict(n_negatives=2), dict(noise="frequency", n_negatives=3)])
@pytest.mark.thorough(keep=3)
def test_unbiased_methods_find_the_softmax(method, kwargs):
    """The limit is the ridge-regularised full softmax, whose solution Newton's method gives."""
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X) / 2
    alpha = 0.01
    exact = SoftmaxClassifier(alpha=alpha, tol=1e-10).fit(X, y)
    # SGD needs small steps, the others less so; a rate that falls to zero takes the noise away
    rate = {"implicit": 0.3, "umax": 0.1, "sgd": 0.05}[method]
    model = ExtremeSoftmaxSGD(
        method, alpha=alpha, learning_rate=rate, max_iter=1500, decay=0.997,
        tol=0.0, random_state=0, **kwargs,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(
        model.coef_ - model.coef_.mean(axis=0), exact.coef_ - exact.coef_.mean(axis=0), atol=0.1
    )


def test_seeds_and_threads(many):
    X, y = many
    # a pass, or no adaptive steps: fits of the bare constructor end at the optimum, where seeds hardly differ
    for fit, kwargs in (
        ("partial_fit", {}), ("fit", dict(method="implicit", learning_rate=30.0)),
        ("fit", dict(prior="centroids", n_negatives=16, max_iter=3)),
    ):  # fmt: skip
        a, b, c = (getattr(ExtremeSoftmaxSGD(random_state=s, **kwargs), fit)(X, y) for s in (1, 1, 2))
        np.testing.assert_array_equal(a.coef_, b.coef_)
        assert np.abs(a.coef_ - c.coef_).max() > 1e-3
    for method in ("implicit", "ove"):
        rate = {"implicit": 30.0, "ove": 0.3}[method]
        losses = {
            jobs: [
                ExtremeSoftmaxSGD(method, learning_rate=rate, random_state=s, n_jobs=jobs)
                .fit(X, y)
                .log_loss(X, y)
                for s in range(4)
            ]
            for jobs in (1, 2)
        }
        assert abs(np.mean(losses[1]) - np.mean(losses[2])) < 5 * np.std(losses[1]) + 0.02


def test_dtypes_and_containers(many):
    X, y = many
    # a ridge shrinks the features that a row has, which of dense rows are all
    kwargs = dict(alpha=0.0, learning_rate=10.0, random_state=0, max_iter=10)
    base = ExtremeSoftmaxSGD(**kwargs).fit(X, y)
    for data in (X.toarray(), np.asfortranarray(X.toarray()), sp.csc_array(X), sp.csr_matrix(X)):
        np.testing.assert_allclose(ExtremeSoftmaxSGD(**kwargs).fit(data, y).coef_, base.coef_, atol=1e-10)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(ExtremeSoftmaxSGD(**kwargs).fit(wide, y).coef_, base.coef_, atol=1e-10)
    single = ExtremeSoftmaxSGD(**kwargs).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.decision_function(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.coef_, base.coef_, atol=1e-2)
    before = X.copy()
    assert (abs(before - X)).nnz == 0


@pytest.mark.parametrize("method", ["implicit", "is", "umax"])
def test_sample_weight(many, method):
    """Weight 0 is absence; a doubled weight is a step of twice the length."""
    X, y = many
    weight = np.ones(600)
    weight[::3] = 0.0
    kwargs = dict(learning_rate=1.0, random_state=0, max_iter=5)
    a = ExtremeSoftmaxSGD(method, **kwargs).fit(X, y, weight)
    kept = weight > 0
    b = ExtremeSoftmaxSGD(method, **kwargs).fit(X[kept], y[kept])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-12)
    c = ExtremeSoftmaxSGD(method, **kwargs).fit(X, y, 7.5)
    d = ExtremeSoftmaxSGD(method, **kwargs).fit(X, y)
    np.testing.assert_allclose(c.coef_, d.coef_, atol=1e-12)


def test_partial_fit_takes_weights_as_they_are(many):
    X, y = many
    model = ExtremeSoftmaxSGD(method="ove", learning_rate=0.5, random_state=0)
    once = clone(model).partial_fit(X, y)
    heavy = clone(model).partial_fit(X, y, sample_weight=np.full(len(y), 3.0))
    longer = clone(model).set_params(learning_rate=1.5).partial_fit(X, y)
    assert np.abs(heavy.coef_ - once.coef_).max() > 0.1 * np.abs(once.coef_).max()
    np.testing.assert_allclose(heavy.coef_, longer.coef_, rtol=1e-6, atol=1e-9)
    only = np.flatnonzero(y == y[0])[:3]  # a batch of one class, weighted
    before = once.coef_.copy()
    once.partial_fit(X[only], y[only], sample_weight=np.ones(len(only)))
    assert (once.coef_ != before).any()


def test_partial_fit_meets_new_classes(many):
    X, y = many
    model = ExtremeSoftmaxSGD(learning_rate=10.0, random_state=0)
    order = np.argsort(y, kind="stable")
    parts = np.array_split(np.random.default_rng(0).permutation(600), 6)
    first = parts[0][y[parts[0]] < 20]
    model.partial_fit(X[first], y[first])
    assert list(model.classes_) == sorted(set(y[first]))
    for _ in range(25):
        for part in parts:
            model.partial_fit(X[part], y[part])
    assert set(model.classes_) == set(range(60)) and len(model.classes_) == 60
    assert list(model.classes_[: len(set(y[first]))]) == sorted(set(y[first]))
    assert model.coef_.shape == (60, 200) and model.intercept_.shape == (60,)
    assert model.score(X, y) > 0.95
    assert model.t_ == len(first) + 25 * 600
    assert (model.predict(X[order]) == model.predict(X)[order]).all()
    # a class that is absent from a call stays; one announced beforehand is sampled
    known = clone(model).partial_fit(X[:50], y[:50], classes=np.arange(70))
    assert known.coef_.shape == (70, 200)
    assert list(known.classes_) == list(range(70))
    known.partial_fit(X[:50], y[:50], classes=[3, 71, 70])
    assert list(known.classes_) == list(range(72))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :100], y)
    with pytest.raises(ValueError, match="y has labels of type <U1, such as 'a', but the classes so far"):
        model.partial_fit(X[:2], ["a", "b"])


def test_partial_fit_keeps_the_type_of_the_weights(many):
    X, y = many
    for first, then in ((np.float32, np.float64), (np.float64, np.float32)):
        model = ExtremeSoftmaxSGD(learning_rate=5.0, random_state=0).partial_fit(X.astype(first), y)
        model.partial_fit(X.astype(then), y)
        assert model.coef_.dtype == first
        assert np.isfinite(model.coef_).all()


def test_progress_and_callback(many, capsys):
    X, y = many
    seen = []
    model = ExtremeSoftmaxSGD(
        "implicit", learning_rate=10.0, max_iter=4, tol=1e-9, verbose=1, callback=seen.append, random_state=0
    )
    model.fit(X, y)
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 4 and "[####################] epoch 4/4  objective " in out[-1]
    assert [r.nit for r in seen] == [1, 2, 3, 4] and [r.nfev for r in seen] == [600, 1200, 1800, 2400]
    curve = model.objective_curve_
    estimates = [r for r in seen if not np.isnan(curve[r.nit - 1])]
    assert estimates[-1].nit == 4
    np.testing.assert_array_equal([r.fun for r in estimates], curve[~np.isnan(curve)])
    assert estimates[-1].objective_error == model.objective_error_curve_[3] == model.objective_error_
    np.testing.assert_allclose([r.learning_rate for r in seen], 10 * 0.9 ** np.arange(4))
    stopped = ExtremeSoftmaxSGD(
        "implicit", learning_rate=10.0, callback=lambda r: r.nit == 2, random_state=0
    ).fit(X, y)
    assert stopped.n_iter_ == 2 and np.isfinite(stopped.objective_)
    ExtremeSoftmaxSGD("implicit", max_iter=2, verbose=1, random_state=0).fit(X, y)
    out = capsys.readouterr().out
    assert "learning_rate 0.001: log-loss" in out and "takes learning_rate=" in out
    timed = ExtremeSoftmaxSGD(
        "implicit", learning_rate=10.0, max_iter=10**6, max_time=0.3, tol=0.0, random_state=0
    ).fit(X, y)
    assert 1 < timed.n_iter_ < 10**6


@pytest.mark.parametrize("method", METHODS)
def test_defined_answers(method):
    one = ExtremeSoftmaxSGD(method, random_state=0).fit(np.ones((5, 2)), ["only"] * 5)
    assert (one.predict(np.zeros((3, 2))) == "only").all()
    np.testing.assert_allclose(one.predict_proba(np.zeros((3, 2))), 1.0)
    # rows of zeros, a class with one row, a constant column, two classes
    X = np.zeros((30, 3))
    X[:10, 0], X[10:20, 1], X[:, 2] = 1.0, 1.0, 0.5
    y = np.array([0] * 10 + [1] * 10 + [2] * 9 + [3])
    for data in (X, sp.csr_array(X)):
        model = ExtremeSoftmaxSGD(method, random_state=0, n_negatives=7).fit(data, y)
        assert np.isfinite(model.predict_proba(data)).all()
        assert model.score(data, y) > (0.6 if method == "nce" else 0.9)
    empty = ExtremeSoftmaxSGD(method, fit_intercept=False, random_state=0).fit(
        np.zeros((6, 2)), [0, 1, 2] * 2
    )
    np.testing.assert_allclose(empty.predict_proba(np.zeros((1, 2))), 1 / 3)
    two = ExtremeSoftmaxSGD(method, random_state=0).fit(X[:20], y[:20])
    assert two.decision_function(X).shape == (30,) and two.score(X[:20], y[:20]) == 1.0


def test_huge_rates(many):
    X, y = many
    for method in ("auto", "implicit"):
        model = ExtremeSoftmaxSGD(method, learning_rate=1e12, max_iter=5, random_state=0).fit(X, y)
        assert np.isfinite(model.coef_).all()
    with pytest.raises(
        FloatingPointError, match=r"method='sgd' diverged in epoch \d+ at learning_rate=1e.06.*100000"
    ):
        ExtremeSoftmaxSGD("sgd", learning_rate=1e6, random_state=0).fit(X, y)


def test_bad_input(many):
    X, y = many
    model = ExtremeSoftmaxSGD(learning_rate=1.0, max_iter=1, random_state=0).fit(X, y)
    cases = [
        (dict(), X, y + 0.5, None, "Unknown label type"),
        (dict(), X, np.column_stack([y, y]), None, "Unknown label type: y is a matrix of 2 columns"),
        (dict(), X, sp.csr_array(np.full((600, 2), 3)), None, "entries other than 0 and 1"),
        (dict(), X, sp.csr_array((600, 4)), None, "y has no row with a label"),
        (dict(noise=[0.5, 0.5]), X, y, None, r"noise has shape \(2,\), but there are 60 classes"),
        (dict(noise=np.ones(60)), X, y, None, "noise must be positive and sum to 1"),
        (dict(batch_size=2), X, y, None, "batch_size=2 is not for method 'auto'"),
        (dict(learning_rate=0.0), X, y, None, "'learning_rate' parameter"),
        (dict(method="adam"), X, y, None, "'method' parameter"),
        (dict(alpha=-1.0), X, y, None, "'alpha' parameter"),
        (dict(batch_size=0), X, y, None, "'batch_size' parameter"),
    ]
    for params, data, labels, weight, match in cases:
        with pytest.raises(ValueError, match=match):
            ExtremeSoftmaxSGD(**{"max_iter": 1, **params}).fit(data, labels, weight)
    with pytest.raises(ValueError, match="y has the label 99, which the model was not fitted to"):
        model.log_loss(X, np.where(y == 5, 99, y))
    assert 0 <= model.score(X, np.where(y == 5, 99, y)) < 1


def test_large_tables_are_searched_for_many_rows(monkeypatch):
    import sparsekit._extreme.estimators.fit as module

    monkeypatch.setattr(module, "MAX_SCORES", 10)
    W = np.zeros((1000, 3))
    W[1:] = np.nan
    assert not module._is_finite(W, np.tile(np.arange(1000), 1000))
    assert module._is_finite(W, np.zeros(5, dtype=int))
    table = W[:, 0].reshape(1, -1)  # a hashed one, where codes are no rows
    assert not module._is_finite(table, np.arange(3)) and module._is_finite(table[:, :1], np.arange(3))
