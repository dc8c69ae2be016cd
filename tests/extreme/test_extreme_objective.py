"""Estimates of ExtremeSoftmaxSGD's objective from some rows: unbiased, cheap, and what they stop."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators import objective as objectives
from sparsekit._extreme.estimators import sample as samples
from sparsekit._extreme.estimators import tracking
from sparsekit._extreme.estimators.objective import SampledObjective
from sparsekit._extreme.estimators.sample import Examples, allowance, draw, examples_of, plan_estimates
from sparsekit._extreme.estimators.targets import check_extreme_targets, used_rows
from sparsekit._extreme.solver.state import SamplingOptions, SoftmaxState

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
    """Every row and class, in plain NumPy; also the gradient's norm, relative to that of zeros."""
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

    def gradient(W):
        return ((softmax(Z @ W.T, axis=1) - Y) * weight[:, None]).T @ Z + alpha * W

    value = -(weight @ (Y * log_softmax(S, axis=1)).sum(axis=1)) + alpha / 2 * (W**2).sum()
    return value, np.linalg.norm(gradient(W)) / np.linalg.norm(gradient(0 * W))


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
    monkeypatch.setattr(samples, "STEP_SCORE", 1e6)


def nothing_free(monkeypatch):
    """Have small fits pay as large ones do."""
    monkeypatch.setattr(samples, "FREE", 0)
    monkeypatch.setattr(tracking, "FREE_CALL", 0)


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_all_rows_give_the_objective_itself(table, monkeypatch, name, kind):
    X, y = table
    everything(monkeypatch)
    options = {"learning_rate": 3.0, "max_iter": 7, "random_state": 0, "tol": 0.0, **CASES[name]}
    given = {"dense": X, "sparse": sp.csr_array(X), "float32": X.astype(np.float32)}[kind]
    model = ExtremeSoftmaxSGD(**({"method": "implicit"} | options)).fit(given, y)
    alpha = options.get("alpha", 0.0)
    value, norm = full_objective(model, X, y, alpha)
    rtol = 1e-4 if kind == "float32" else 1e-9
    np.testing.assert_allclose(model.objective_, value, rtol=rtol)
    np.testing.assert_allclose(model.optimality_, norm, rtol=10 * rtol)
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
    value, norm = full_objective(model, X, Y, 0.0, weight, label_choice)
    np.testing.assert_allclose([model.objective_, model.optimality_], [value, norm], rtol=1e-9)
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
        sample = draw(examples, 100, K, 0, np.random.default_rng(seed))
        seen = losses[sample.rows]
        found.append(sample.weight @ seen)
        errors.append(np.sqrt(sample.spare * np.var(seen, ddof=1) / len(seen)))
    found, errors = np.array(found), np.array(errors)
    assert abs(found.mean() - truth) < 4 * found.std() / np.sqrt(len(found))
    # the error is the spread of the estimates, and two of it hold nearly always
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(found.std(), rel=0.05)
    assert 0.92 < np.mean(np.abs(found - truth) < 2 * errors) < 0.98


@pytest.mark.parametrize("weighted", [False, True])
def test_the_squared_gradient_is_unbiased(table, monkeypatch, weighted):
    X, y = table
    share = None
    if weighted:
        share = np.random.default_rng(3).uniform(0.2, 2.0, len(y))
        share /= share.sum()
    model = ExtremeSoftmaxSGD("implicit", learning_rate=3.0, max_iter=5, random_state=0).fit(X, y)
    W, b = model.coef_, model.intercept_
    expected = full_objective(model, X, y, 0.0, share)[1]
    options = SamplingOptions()
    seen = []
    real = objectives._squared_gradient
    monkeypatch.setattr(objectives, "_squared_gradient", lambda *args: seen.append(real(*args)) or seen[-1])
    for seed in range(600):
        drawn = draw(Examples(np.arange(len(y)), y, share), 60, K, 0, np.random.default_rng(seed))
        estimate = SampledObjective(drawn, X[drawn.rows], 0.0, K)
        state = SoftmaxState(W, b, K)
        estimate.gradient_norm(estimate.evaluate(1, state, options), state, options)
    squares = np.reshape([square for square, _ in seen], (-1, 2))
    # here and at zeros
    mean, error = squares.mean(axis=0), squares.std(axis=0) / np.sqrt(len(squares))
    assert mean[0] == pytest.approx(expected**2 * mean[1], abs=4 * (error[0] + expected**2 * error[1]))
    assert error[0] < 0.05 * mean[0]


@pytest.mark.parametrize("n_classes", [2, 10, 300, 10**4, 10**6])
@pytest.mark.parametrize("n_rows", [20, 1000, 10**5, 10**7])
@pytest.mark.parametrize("max_iter", [1, 3, 50, 1000])
def test_the_cost_is_a_twentieth_at_most(n_classes, n_rows, max_iter):
    taken = min(n_classes, 6)
    schedule = plan_estimates(n_rows, n_rows, n_classes, taken, max_iter)
    allowed = max(2**17, 0.05 * samples.STEP_SCORE * n_rows * taken * max_iter)
    assert schedule.cost(n_classes, max_iter) <= allowed
    # and it is used, where it buys the least number of rows
    if allowed >= n_classes * min(samples.LEAST, n_rows):
        assert schedule.n_rows > 0 and schedule.is_due(max_iter, max_iter)


def test_evaluations_follow_the_plan(table, monkeypatch):
    X, y = table
    nothing_free(monkeypatch)
    scored = []
    real = tracking.SampledObjective.evaluate

    def evaluate(self, *args):
        scored.append(self.X.shape[0] * K)
        return real(self, *args)

    monkeypatch.setattr(tracking.SampledObjective, "evaluate", evaluate)
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, max_iter=20, tol=0.0, random_state=0).fit(X, y)
    schedule = plan_estimates(400, 400, K, 6, 20)
    assert sum(scored) == schedule.n_rows * K * np.isfinite(model.objective_curve_).sum()
    assert sum(scored) <= schedule.cost(K, 20) <= allowance(400, 6, 20)


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
    truth = [full_objective(one, X, y)[0] for one in (model, on)]
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
    for options in (
        {"tol": 0.0},
        {"tol": None},
        {"callback": lambda r: r.nit == 1},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            options = {"max_iter": max_iter, "n_negatives": K, **options}
            ExtremeSoftmaxSGD("implicit", learning_rate=0.3, random_state=0, **options).fit(X, y)


def test_a_fall_is_judged_by_the_same_rows(monkeypatch):
    """The error of a difference is much smaller than that of the objective."""
    nothing_free(monkeypatch)
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

    def record(self, sample, X, alpha, n_classes):
        seen.append((sample, X.copy()))
        real(self, sample, X, alpha, n_classes)

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


def test_partial_fit_evaluates_its_rows_when_due(table, monkeypatch):
    X, y = table
    nothing_free(monkeypatch)
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, random_state=0)
    estimates = []
    for _ in range(40):
        model.partial_fit(X, y, classes=np.arange(K))
        estimates.append(np.isfinite(model.objective_curve_[0]))
    assert 0 < sum(estimates) < 40 and not estimates[0]
    # an older estimate stays
    assert np.isfinite(model.objective_)
    scored = sum(estimates) * min(samples.LEAST, 400) * K
    assert scored <= allowance(400, 6, 40)
    everything(monkeypatch)
    model.partial_fit(X[:50], y[:50])
    assert model.objective_ == pytest.approx(full_objective(model, X[:50], y[:50])[0])
    assert model.objective_error_ == 0.0


def test_very_many_classes_and_few_rows_have_no_estimate():
    X, y = np.eye(5), np.arange(5)
    model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, max_iter=2, random_state=0)
    model.partial_fit(X, y, classes=np.arange(10**5))
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
