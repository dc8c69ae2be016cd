"""Estimates of ExtremeSoftmaxSGD's objective from some rows: unbiased, cheap, and what they stop."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from scipy.special import log_softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators import tracking
from sparsekit._extreme.estimators.objective import Examples, draw, examples_of
from sparsekit._extreme.estimators.targets import check_extreme_targets, used_rows

K = 30


@pytest.fixture(scope="module")
def table():
    """Overlapping classes: 400 rows, 6 features."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(K), rng.integers(K, size=400 - K)])
    X = rng.standard_normal((K, 6))[y] + 0.7 * rng.standard_normal((400, 6))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def indicator(y, seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((len(y), K)) < 0.05).astype(int)
    Y[np.arange(len(y)), y] = 1
    Y[:3] = 0
    return Y


def full_objective(model, X, y, alpha=0.0, weight=None, label_choice="first"):
    """Every row and class, in plain NumPy."""
    Y = np.eye(K)[y] if y.ndim == 1 else y.astype(float)
    weight = np.ones(len(X)) if weight is None else weight
    weight = weight * (Y.sum(axis=1) > 0)
    weight = weight / weight.sum()
    if label_choice == "first":
        Y = np.eye(K)[Y.argmax(axis=1)]
    Y = Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
    W = np.column_stack([model.coef_, model.intercept_])
    Z = np.column_stack([X, np.full(len(X), float(model.fit_intercept))])
    S = Z @ W.T

    return -(weight @ (Y * log_softmax(S, axis=1)).sum(axis=1)) + alpha / 2 * (W**2).sum()


CASES = {
    "plain": {},
    "ridge": {"alpha": 1e-3, "fit_intercept": False},
    "class blocks": {
        "method": "auto",
        "n_negatives": 3,
        "alpha": 1e-3,
        "noise": "frequency",
        "callback": lambda r: r.nit == 5,  # Newton's method does not follow then
    },
    "umax": {"method": "umax", "alpha": 0.01, "learning_rate": 0.1},
    "nce": {"method": "nce", "learning_rate": 0.1},
    "threads": {"n_jobs": 2},
}


def everything(monkeypatch):
    """Have all rows be paid for."""
    monkeypatch.setattr(tracking, "EVALUATED_PART", 1e6)


def nothing_free(monkeypatch):
    """Have small fits pay as large ones do."""
    monkeypatch.setattr(tracking, "FREE_SCORES", 0)


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_all_rows_give_the_objective_itself(table, monkeypatch, name, kind):
    X, y = table
    everything(monkeypatch)
    options = {"learning_rate": 3.0, "max_iter": 7, "random_state": 0, "tol": 0.0, **CASES[name]}
    given = {"dense": X, "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[kind]
    model = ExtremeSoftmaxSGD(**({"method": "implicit"} | options)).fit(given, y)
    alpha = options.get("alpha", 0.0)
    value = full_objective(model, X, y, alpha)
    rtol = 1e-4 if kind == "float32" else 1e-9
    np.testing.assert_allclose(model.objective_, value, rtol=rtol)
    assert model.objective_error_ == 0.0
    assert len(model.objective_curve_) == model.n_iter_ and np.isfinite(model.objective_curve_).all()


@pytest.mark.parametrize("label_choice", ["first", "sample"])
def test_several_labels_and_weights(table, monkeypatch, label_choice):
    X, y = table
    Y, weight = indicator(y), np.random.default_rng(1).uniform(0, 2, len(y))
    weight[5] = 0.0
    everything(monkeypatch)
    model = ExtremeSoftmaxSGD(
        "implicit", learning_rate=3.0, max_iter=3, random_state=0, label_choice=label_choice
    )
    model.fit(X, sp.csr_array(Y), sample_weight=weight)
    value = full_objective(model, X, Y, 0.0, weight, label_choice)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-9)
    assert model.objective_error_ == 0.0


def test_hashed_weights(table, monkeypatch):
    X, y = table
    everything(monkeypatch)
    model = ExtremeSoftmaxSGD("implicit", learning_rate=3.0, hash_bits=9, max_iter=3, random_state=0)
    model.fit(X, y)
    assert model.objective_ == pytest.approx(model.log_loss(X, y), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_estimate_is_unbiased_and_its_error_covers(table, weighted):
    _, y = table
    rng = np.random.default_rng(2)
    losses = rng.exponential(size=len(y))
    share = None
    if weighted:
        share = rng.uniform(0.2, 2.0, len(y))
        share /= share.sum()
    truth = losses.mean() if share is None else share @ losses
    examples = Examples(np.arange(len(y)), y, share)
    found, errors = [], []
    for seed in range(3000):
        sample = draw(examples, 100, np.random.default_rng(seed))
        seen = losses[sample.rows]
        found.append(sample.weight @ seen)
        errors.append(np.sqrt(sample.spare * np.var(seen, ddof=1) / len(seen)))
    found, errors = np.array(found), np.array(errors)
    assert abs(found.mean() - truth) < 4 * found.std() / np.sqrt(len(found))
    # the error is the spread of the estimates, and two of it hold nearly always
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(found.std(), rel=0.05)
    assert 0.92 < np.mean(np.abs(found - truth) < 2 * errors) < 0.98


@pytest.mark.parametrize("max_iter", [7, 40])
def test_estimates_take_a_twentieth_at_most(table, monkeypatch, max_iter):
    X, y = table
    X, y = np.tile(X, (4, 1)), np.tile(y, 4)
    nothing_free(monkeypatch)
    scored = []
    real = tracking.SampledObjective.evaluate

    def evaluate(self, *args):
        scored.append(self.X.shape[0] * K)
        return real(self, *args)

    monkeypatch.setattr(tracking.SampledObjective, "evaluate", evaluate)
    options = {"n_negatives": 9, "max_iter": max_iter, "tol": 0.0}
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, random_state=0, **options).fit(X, y)
    found = np.isfinite(model.objective_curve_)
    assert len(scored) == 1 + found.sum() and found[-1]
    assert (found.sum() == 7) == (max_iter == 7)
    allowed = tracking.EVALUATED_PART * len(y) * 10 * max_iter
    assert 0.8 * allowed <= sum(scored[1:]) <= allowed


@pytest.mark.parametrize(
    "options", [{}, CASES["ridge"], CASES["class blocks"]], ids=["default", "ridge", "class blocks"]
)
def test_evaluation_changes_no_bit(table, options):
    X, y = table
    options = {"method": "implicit", "learning_rate": 3.0, "max_iter": 6, "random_state": 0, **options}
    plain = ExtremeSoftmaxSGD(tol=None, **options).fit(X, y)
    watched = ExtremeSoftmaxSGD(tol=0.0, **options).fit(X, y)
    stopping = ExtremeSoftmaxSGD(**options).fit(X, y)
    for model in (watched, stopping):
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    assert plain._rng_state == watched._rng_state
    assert not hasattr(plain, "objective_") and not hasattr(
        watched.set_params(tol=None).fit(X, y), "objective_"
    )


def test_a_fit_stops_where_nothing_falls(table):
    X, y = table
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, max_iter=500, decay=0.8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert 5 < model.n_iter_ < 500
    curve = model.objective_curve_[np.isfinite(model.objective_curve_)]
    # on its own rows the last epochs moved by less than tol each
    assert abs(curve[-2] - curve[-1]) < 1e-4 * np.log(K) * 10
    on = ExtremeSoftmaxSGD(
        "implicit", learning_rate=1.0, max_iter=500, decay=0.8, random_state=0, tol=0.0
    ).fit(X, y)
    assert on.n_iter_ == 500
    truth = [full_objective(one, X, y) for one in (model, on)]
    assert truth[0] - truth[1] < 0.01 * np.log(K)
    # the same epochs
    same = ExtremeSoftmaxSGD(
        "implicit", learning_rate=1.0, max_iter=model.n_iter_, decay=0.8, random_state=0, tol=None
    )
    np.testing.assert_array_equal(same.fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("max_iter", [1, 6])
def test_a_fit_that_ends_too_early_warns(table, max_iter):
    X, y = table
    with pytest.warns(
        ConvergenceWarning, match=r"still fell by .* when \d epochs were over\. Raise max_iter"
    ) as caught:
        ExtremeSoftmaxSGD(
            "implicit", learning_rate=0.3, max_iter=max_iter, n_negatives=K, random_state=0
        ).fit(X, y)
        ExtremeSoftmaxSGD(
            "implicit", learning_rate=0.3, max_iter=max_iter, n_negatives=K, random_state=0
        ).fit(ListOfBlocks([X]), y)
    assert len(caught) == 2 and {one.filename for one in caught} == {__file__}
    for options in ({"tol": 0.0}, {"tol": None}, {"callback": lambda r: r.nit == 1}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            options = {"max_iter": max_iter, "n_negatives": K, **options}
            ExtremeSoftmaxSGD("implicit", learning_rate=0.3, random_state=0, **options).fit(X, y)


def test_a_fall_is_judged_by_the_same_rows(monkeypatch):
    """The error of a difference is much smaller than that of the objective."""
    nothing_free(monkeypatch)
    monkeypatch.setattr(tracking, "MAX_ROWS", 800)  # else all rows are evaluated
    X, y = load_digits(return_X_y=True)
    model = ExtremeSoftmaxSGD("implicit", learning_rate=0.01, max_iter=30, random_state=0, tol=0.0)
    falls = []
    real = tracking.Tracker.fall

    def end(self, *args, **kwargs):
        falls.append((real(self), self.estimate.value(self.evaluations[-1])[1]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracking.Tracker, "end", end)
        model.fit(X / 16, y)
    (_, of_fall), of_value = falls[0]
    assert 0 < 20 * of_fall < of_value


@pytest.mark.parametrize("options", [{}, {"alpha": 1e-3}, {"label_choice": "sample"}], ids=str)
def test_blocks_evaluate_the_same_rows_as_memory(table, monkeypatch, options):
    X, y = table
    nothing_free(monkeypatch)
    Y = indicator(y) if "label_choice" in options else y
    seen = []
    real = tracking.SampledObjective.__init__

    def record(self, sample, X, alpha):
        seen.append((sample, X.copy()))
        real(self, sample, X, alpha)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracking.SampledObjective, "__init__", record)
        for given in (X, ListOfBlocks([X[:100], X[100:100], X[100:390], X[390:]])):
            model = ExtremeSoftmaxSGD(
                "implicit", learning_rate=1.0, max_iter=30, random_state=4, tol=0.0, **options
            )
            model.fit(given, Y)
    (one, rows), (other, from_blocks) = seen
    for name in ("rows", "codes", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(rows, from_blocks)
    np.testing.assert_array_equal(rows, X[one.rows])


def test_passes_leave_no_estimate_of_an_older_model(table):
    X, y = table
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, max_iter=2, tol=0.0, random_state=0).fit(X, y)
    assert np.isfinite(model.objective_)
    model.partial_fit(X, y)
    assert not hasattr(model, "objective_") and not hasattr(model, "objective_curve_")


def test_very_many_classes_and_few_rows_have_no_estimate():
    Y = sp.csr_array((np.ones(5), (np.arange(5), np.arange(5))), shape=(5, 10**5))
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, max_iter=2, random_state=0).fit(np.eye(5), Y)
    assert np.isnan(model.objective_) and np.isnan(model.objective_curve_).all()


def test_examples_are_the_rows_that_count():
    _, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(150) % 2, 2.0, 0.0)
    targets = check_extreme_targets(y, weight)
    examples = examples_of(targets, "first", used_rows(targets))
    np.testing.assert_array_equal(examples.rows, np.arange(1, 150, 2))
    assert examples.share is None
    targets = check_extreme_targets(np.array([[1, 1], [0, 0], [0, 1]]), np.array([1.0, 1.0, 3.0]))
    examples = examples_of(targets, "sample", used_rows(targets))
    np.testing.assert_array_equal(examples.rows, [0, 0, 2])
    np.testing.assert_array_equal(examples.codes, [0, 1, 1])
    np.testing.assert_allclose(examples.share, [0.125, 0.125, 0.75])


def test_the_objective_of_a_hashed_model_of_few_features():
    """Scattered ones, of which the table is addressed by their numbers."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 300)
    columns = (y[:, None] * 37 + rng.integers(0, 40, (300, 5))) * 17 + 5
    X = sp.csr_array((np.ones(1500), columns.ravel(), np.arange(0, 1501, 5)), shape=(300, 5000))
    X.sum_duplicates()
    model = ExtremeSoftmaxSGD(hash_bits=14, learning_rate=3.0, max_iter=5, random_state=0).fit(X, y)
    assert model.objective_error_ == 0.0
    assert model.objective_ == pytest.approx(model.log_loss(X, y), rel=1e-9)
