"""Adaptive steps of method "auto": against plain NumPy and the exact softmax, their sums and their ridge."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from test_class_blocks import K, N, drawn_classes, problem, table

import sparsekit
from sparsekit import ExtremeSoftmaxSGD, SoftmaxClassifier
from sparsekit._extreme.estimators import settings
from sparsekit._extreme.estimators.scores import LinearScores, log_losses
from sparsekit._extreme.plan import newton_follows
from sparsekit._extreme.solver.sgd import steps
from sparsekit._extreme.solver.state import set_scale


def reference_step(T, sums, x, classes, r, weight, rate, ridge):
    """One step on T (K, D + 1), intercepts last, and on the sums of squares, written down plainly.

    The sums' scale is that of x times ``unit``; the intercept's feature is 1 whatever the scale. The ridge
    shrinks by the weights of the draw, and the label once: without bias.
    """
    features, rows, per_class, totals = sums
    unit = totals[3]
    p = len(x)
    totals[1] += 1
    f = T[classes] @ np.append(x, 1.0)
    share = np.append(1.0, r) * np.exp(f - f.max())
    g = weight * share / share.sum()
    g[0] -= weight
    scaled = np.append(x * unit, 1.0)
    squares = (g**2).sum()
    present = x != 0
    rows[present] += 1
    features[:p] += (x * unit) ** 2 * squares
    totals[2] += squares
    totals[0] += (scaled**2).sum() * squares
    per_class[classes] += (scaled**2).sum() * g**2
    by_feature = np.zeros(p + 1)
    by_feature[:p][present] = unit**2 / np.sqrt(features[:p][present])
    by_feature[p] = 1.0 / np.sqrt(totals[2])
    by_class = np.divide(
        rate * np.sqrt(totals[0]), np.sqrt(per_class[classes]), out=np.zeros(len(classes)),
        where=per_class[classes] > 0,
    )  # fmt: skip
    change = by_class * g
    reach = by_feature @ np.append(x, 1.0) ** 2
    short = 1.0 / (1.0 + np.abs(change).max() * reach / 2.0)
    often = np.append(np.divide(totals[1], rows, out=np.zeros(p), where=present), 1.0)
    for j, k in enumerate(classes):
        T[k] -= short * change[j] * by_feature * np.append(x, 1.0)
        touched = np.append(present, True)
        shrink = ridge * short * by_class[j] * (r[j - 1] if j else 1.0) * by_feature * often
        T[k][touched] /= 1.0 + shrink[touched]


def sums_of(state):
    return [a.copy() for a in (state.feature_sums, state.feature_rows, state.class_sums, state.totals)]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(("noise", "n_negatives"), [(None, K), ("frequency", 32), (None, 16)])
def test_steps_are_those_written_down(noise, n_negatives, sparse, alpha, dtype, index):
    X, rows, options, state, work = problem(
        noise, n_negatives, sparse=sparse, index=index, dtype=dtype, alpha=alpha
    )
    # entries of zero are entries of a dense row, and none of a sparse one
    X = X if sparse else np.where(X == 0.0, 0.7, X)
    if not sparse:
        rows.data[:] = X.ravel()
        state.totals[3] = 0.0
        set_scale(state, rows)
    assert state.totals[3] == pytest.approx(1.0 / np.sqrt((X[X != 0] ** 2).mean()), rel=1e-6)
    plan = options.plan
    T, sums = table(state, options), sums_of(state)
    expected_sums = [sums[0], sums[1], sums[2][:K][plan.place], sums[3]]
    np.testing.assert_array_equal(plan.place[rows.y], work.columns)
    for e in range(N):
        classes, r = drawn_classes(options, rows, work, e)
        reference_step(T, expected_sums, X[e], classes, r, rows.weight[e], 0.4, alpha)
        assert steps(state, rows, options, work, 0.4, e, e + 1) == -1
    rtol = 1e-9 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(table(state, options), T, rtol=rtol, atol=rtol)
    found = sums_of(state)
    found[2] = found[2][:K][plan.place]
    for one, other in zip(found, expected_sums):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-12)


def test_a_first_step_moves_no_score_far():
    """Of one row nothing is known of the scale of gradients; a score moves by less than 2."""
    X, rows, options, state, work = problem(None, K)
    state.W[:], state.bias[:] = 0.0, 0.0
    steps(state, rows, options, work, 1e6, 0, 1)
    T = table(state, options)
    moved = T @ np.append(X[0], 1.0)
    assert 1.5 < np.abs(moved).max() <= 2.0


def gaussians(n, d, n_classes, spread, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return spread * rng.standard_normal((n_classes, d))[y] + rng.standard_normal((n, d)), y


def sparse_text(n, p, n_classes, seed):
    rng = np.random.default_rng(seed)
    y = (n_classes * rng.random(n) ** 2).astype(int)
    words = np.where(
        rng.random((n, 12)) < 0.4,
        (y[:, None] * 37 + rng.integers(0, 9, (n, 12))) % p,
        (p * rng.random((n, 12)) ** 3).astype(int),
    )
    X = sp.csr_array((np.ones(12 * n), words.ravel(), np.arange(0, 12 * n + 1, 12)), shape=(n, p))
    X.sum_duplicates()
    X.data = np.sqrt(X.data / 12)
    return X, np.unique(y, return_inverse=True)[1]


SETS = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine, raw": lambda: load_wine(return_X_y=True),
    "breast cancer, raw": lambda: load_breast_cancer(return_X_y=True),
    "overlapping": lambda: gaussians(3000, 12, 40, 0.8, 5),
    "text": lambda: sparse_text(3000, 4000, 60, 1),
    "more classes than a step takes": lambda: sparse_text(4000, 3000, 500, 2),
    "20 rows": lambda: make_classification(20, 20, n_informative=10, n_classes=3, random_state=0),
}


def objective(model, X, y, alpha):
    W, b = model.coef_, model.intercept_
    if len(W) == 1:
        W, b = np.vstack([-W / 2, W / 2]), np.append(-b / 2, b / 2)
    losses = log_losses(LinearScores(W, b), X, y)
    return losses.mean() + alpha / 2 * ((W**2).sum() + (b**2).sum())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.thorough(keep=5)
def test_the_bare_constructor_is_within_one_percent_of_the_exact_softmax(name, alpha):
    X, y = SETS[name]()
    model = ExtremeSoftmaxSGD(alpha=alpha, random_state=0).fit(X, y)
    # without a ridge the optimum of separable classes is at infinity, and 0 is a bound
    exact = SoftmaxClassifier(alpha=alpha or 1e-7, max_iter=60).fit(X, y)
    lowest = min(objective(exact, X, y, alpha), objective(model, X, y, alpha))
    above = objective(model, X, y, alpha) - (lowest if alpha or name == "overlapping" else max(0.0, lowest))
    # without a ridge steps on samples of the classes end before the optimum: new rows are predicted better
    limit = 0.015 if not alpha and name == "more classes than a step takes" else 0.01
    assert above <= limit * np.log(len(np.unique(y)))
    assert model.score(X, y) >= exact.score(X, y) - 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_passes_over_batches_learn_and_grow(dtype):
    X, y = sparse_text(3000, 2000, 400, 6)
    X = X.astype(dtype)
    # classes come as their rows do
    order = np.argsort(y + 60 * np.random.default_rng(0).random(len(y)), kind="stable")
    model = ExtremeSoftmaxSGD(random_state=0)
    seen, sizes = 0, []
    for begin in range(0, 3000, 250):
        rows = order[begin : begin + 250]
        model.partial_fit(X[rows], y[rows])
        seen += len(rows)
        sizes.append(len(model.classes_))
        assert model.coef_.shape == (sizes[-1], 2000) and model.coef_.dtype == dtype and model.t_ == seen
    assert sizes[0] < 150 and sizes[-1] == len(np.unique(y)) and sizes == sorted(sizes)
    for _ in range(8):
        model.partial_fit(X, y)
    whole = ExtremeSoftmaxSGD(random_state=0, max_iter=9).fit(X, y)
    assert model.log_loss(X, y) < whole.log_loss(X, y) + 0.05 * np.log(400)
    # weights of classes grow in place
    table = model.coef_.base
    model.partial_fit(X, y)
    assert model.coef_.base is table


def test_spare_columns_of_a_users_table_are_no_weights():
    X, y = sparse_text(600, 300, 20, 7)
    model = ExtremeSoftmaxSGD(random_state=0).partial_fit(X, y)
    wide = np.full((300, 64), 7.0)
    wide[:, :20] = model.coef_.T
    other = pickle.loads(pickle.dumps(model))
    other.coef_ = wide[:, :20].T
    labels = np.append(y[1:], 1000)
    for each in (model, other):
        each.partial_fit(X, labels)
    np.testing.assert_array_equal(model.coef_, other.coef_)


@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_copies_go_on_to_the_same_bits(begin, tmp_path):
    X, y = sparse_text(900, 400, 300, 8)
    model = getattr(ExtremeSoftmaxSGD(max_iter=3, tol=None, random_state=0), begin)(X[:600], y[:600])
    pickled = pickle.loads(pickle.dumps(model))
    sparsekit.save(model, tmp_path / "model.skops")
    loaded = sparsekit.load(tmp_path / "model.skops")
    for each in (model, pickled, loaded):
        each.partial_fit(X[600:], y[600:])
    for each in (pickled, loaded):
        np.testing.assert_array_equal(each.coef_, model.coef_)
        np.testing.assert_array_equal(each.intercept_, model.intercept_)
        for name in settings.SUMS:
            np.testing.assert_array_equal(getattr(each, name), getattr(model, name))


def test_a_later_call_goes_on_with_the_sums():
    X, y = sparse_text(900, 400, 300, 9)
    model = ExtremeSoftmaxSGD(alpha=0.0, max_iter=6, tol=0.0, random_state=0).fit(X, y)
    before, squares, of_classes = model.log_loss(X, y), model._sum_totals[0], model._class_sums
    model.partial_fit(X, y)
    assert model._sum_totals[0] > squares and (model._class_sums >= of_classes).all()
    assert model.log_loss(X, y) < before


def test_sums_stand_in_the_order_of_the_classes():
    """Frequent classes have had larger gradients, whichever column was theirs in the fit."""
    X, y = sparse_text(3000, 400, 300, 15)
    y = np.random.default_rng(0).permutation(y.max() + 1)[y]
    model = ExtremeSoftmaxSGD(max_iter=2, tol=None, random_state=0).fit(X, y)
    assert len(model.classes_) > 192
    assert np.corrcoef(np.bincount(y), model._class_sums)[0, 1] > 0.5


def test_named_methods_forget_the_sums():
    X, y = sparse_text(400, 200, 30, 10)
    model = ExtremeSoftmaxSGD(random_state=0).fit(X, y)
    assert model.learning_rate_ == settings.DECAYING_RATE and not hasattr(model, "learning_rate_losses_")
    model.set_params(method="is", learning_rate=1.0).fit(X, y)
    assert not any(hasattr(model, name) for name in settings.SUMS)


def test_what_steps_cannot_adapt_with_is_implicit_sgd():
    X, y = sparse_text(500, 200, 30, 11)
    options = {"learning_rate": 3.0, "max_iter": 3, "random_state": 0, "hash_bits": 14}
    auto, named = (ExtremeSoftmaxSGD(method, **options).fit(X, y) for method in ("auto", "implicit"))
    np.testing.assert_array_equal(auto.table_, named.table_)


def test_newton_steps_end_a_small_fit_but_for_those_that_were_stopped():
    X, y = gaussians(400, 6, 5, 0.5, 12)
    exact = SoftmaxClassifier(alpha=1e-3, tol=1e-9).fit(X, y)
    lowest = objective(exact, X, y, 1e-3)
    options = dict(alpha=1e-3, max_iter=2, random_state=0)
    model = ExtremeSoftmaxSGD(**options).fit(X, y)
    assert objective(model, X, y, 1e-3) - lowest < 1e-4
    assert model.objective_ == pytest.approx(objective(model, X, y, 1e-3), abs=1e-9)
    assert model.n_iter_ == 2 and len(model.objective_curve_) == 2
    for stopped in (
        ExtremeSoftmaxSGD(**options, callback=lambda intermediate_result: True),
        ExtremeSoftmaxSGD(**options, max_time=1e-9),
    ):
        assert objective(stopped.fit(X, y), X, y, 1e-3) - lowest > 1e-3
    with pytest.warns(ConvergenceWarning, match="still fell"):
        ExtremeSoftmaxSGD(**options).fit(*sparse_text(20000, 4000, 60, 1))


def test_newton_steps_see_weights_labels_and_used_rows():
    X, y = gaussians(300, 5, 4, 0.5, 13)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    options = dict(alpha=1e-2, max_iter=3, random_state=0)
    model = ExtremeSoftmaxSGD(**options).fit(X, y, sample_weight=weight)
    exact = SoftmaxClassifier(alpha=1e-2, tol=1e-9).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=2e-3)
    Y = np.eye(4, dtype=int)[y] | (np.random.default_rng(1).random((300, 4)) < 0.3)
    Y[::7] = 0
    used = Y.any(axis=1)
    for choice, target in (("first", np.eye(4, dtype=int)[Y.argmax(axis=1)]), ("sample", Y)):
        model = ExtremeSoftmaxSGD(label_choice=choice, **options).fit(X, Y)
        norms = 0.005 * ((model.coef_**2).sum() + (model.intercept_**2).sum())
        losses = model.predict_proba(X[used])
        q = target[used] / target[used].sum(axis=1, keepdims=True)
        expected = -(q * np.log(losses)).sum(axis=1).mean() + norms
        assert model.objective_ == pytest.approx(expected, rel=1e-9)
        exact = SoftmaxClassifier(alpha=1e-2, tol=1e-9).fit(X[used], target[used])
        np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize(
    ("n", "p", "n_classes", "density", "expected"),
    [
        (100, 20, 3, 1.0, True),  # small
        (100000, 50, 10, 1.0, True),  # dense
        (100000, 5000, 10, 0.001, True),  # a pass is short
        (100000, 5000, 100, 0.01, False),  # sparse and long
        (100000, 5000, 2, 0.01, False),  # copies of the data would be half of what a fit may take
        (100000, 50, 1000, 1.0, False),  # the scores would be far larger than the data
        (100, 50000, 500, 0.001, False),  # and here the weights
        (100, 20, 1, 1.0, False),
    ],
)
def test_newton_steps_are_for_small_and_dense_data(n, p, n_classes, density, expected):
    width = int(p * density)
    rows = SimpleNamespace(width=width, n_rows=n, n_features=p, data=range(n * width))
    assert newton_follows(SimpleNamespace(adaptive=True), rows, n_classes) is expected
    assert not newton_follows(SimpleNamespace(adaptive=False), rows, n_classes)


def test_the_default_ridge():
    X, y = sparse_text(500, 200, 30, 1)
    model = ExtremeSoftmaxSGD(prior=None, max_iter=3, tol=0.0, random_state=0).fit(X, y)
    assert model.alpha_ == 0.1 / 500
    same = ExtremeSoftmaxSGD(alpha=0.1 / 500, max_iter=3, tol=0.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    # one label a row counts
    indicator = sp.csr_array((np.ones(500), (np.arange(500), y)), shape=(500, 30)).toarray()
    indicator[:, 3] = 1.0
    assert ExtremeSoftmaxSGD(prior=None, max_iter=1, tol=None).fit(X, indicator).alpha_ == 0.1 / 500
    both = ExtremeSoftmaxSGD(prior=None, max_iter=1, tol=None, label_choice="sample").fit(X, indicator)
    assert both.alpha_ == pytest.approx(0.1 / 500)
    for options in (dict(method="implicit", learning_rate=1.0), dict(hash_bits=10, learning_rate=1.0)):
        assert ExtremeSoftmaxSGD(max_iter=1, **options).fit(X, y).alpha_ == 0.0
    assert ExtremeSoftmaxSGD(alpha=0.5, max_iter=1).fit(X, y).alpha_ == 0.5


def test_a_stream_has_the_ridge_of_the_rows_so_far():
    X, y = sparse_text(600, 200, 30, 2)
    model = ExtremeSoftmaxSGD(random_state=0)
    for end in (200, 400, 600):
        model.partial_fit(X[end - 200 : end], y[end - 200 : end], classes=np.arange(30))
        assert model.alpha_ == pytest.approx(0.1 / end)


@pytest.mark.thorough
def test_epochs_end_when_the_rate_is_spent():
    X, y = sparse_text(800, 300, 600, 7)

    def epochs(*args, X=X, y=y, **options):
        return ExtremeSoftmaxSGD(*args, **{"tol": None, "random_state": 0} | options).fit(X, y).n_iter_

    assert len(np.unique(y)) > 192
    assert epochs() == 7 and epochs(n_negatives=600, prior=None) == 29  # 0.5 ** 7 < 0.01 > 0.85 ** 29
    assert epochs(prior="centroids") == 7 and epochs(prior="centroids", alpha=0.01) == 29
    assert epochs(decay=0.8) == 21  # 0.8 ** 21 < 0.01
    assert epochs(decay=0.9) == 44 and epochs(decay=0.9, max_iter=7) == 7
    assert epochs(alpha=0.0) == 7 and epochs(decay=0.95) == 50 == epochs(decay=1.0)
    assert epochs("implicit", learning_rate=1.0, decay=0.5) == 50
    assert epochs(X=X.toarray(), max_iter=5) == 5
    X, y = sparse_text(4000, 1000, 600, 7)  # too large to end with Newton's method
    with pytest.warns(ConvergenceWarning, match="when 3 epochs were over. Raise decay, with which"):
        epochs(X=X, y=y, decay=0.2, tol=1e-9)
    with warnings.catch_warnings():  # what is left is not worth another fit
        warnings.simplefilter("error")
        assert epochs(X=X, y=y, tol=1e-4) <= 7
    with pytest.warns(ConvergenceWarning, match="when 3 epochs were over. Raise max_iter"):
        epochs(X=X, y=y, prior=None, max_iter=3, tol=1e-9)


def test_a_stream_steps_at_one_rate():
    X, y = sparse_text(600, 200, 30, 2)
    model = ExtremeSoftmaxSGD(random_state=0).partial_fit(X, y, classes=np.arange(30))
    assert model.learning_rate_ == 0.3 == model.partial_fit(X, y).learning_rate_
    assert ExtremeSoftmaxSGD(max_iter=1, random_state=0).fit(X, y).learning_rate_ == 0.6
    assert ExtremeSoftmaxSGD(decay=1.0, max_iter=1, random_state=0).fit(X, y).learning_rate_ == 0.3
