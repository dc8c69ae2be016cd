"""ExtremeSoftmaxSGD on a GPU: fits and predictions against main memory's, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device
from sklearn.preprocessing import normalize

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators import fit

pytestmark = pytest.mark.thorough


def data(n=90, n_classes=12, n_features=30):
    rng = np.random.default_rng(0)
    centres = rng.random((n_classes, n_features)) * (rng.random((n_classes, n_features)) < 0.2)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    X = centres[y] + rng.random((n, n_features)) * (rng.random((n, n_features)) < 0.05)
    return sp.csr_matrix(normalize(X)), 10 * y


def fits(cupy, X, y, *, sample_weight=None, **kwargs):
    """Two estimators, fitted in main memory and on the GPU, and X there."""
    # what "auto" stands for on a GPU; in main memory its steps adapt
    kwargs = {
        "method": "implicit",
        "n_jobs": 1,
        "max_iter": 2,
        "learning_rate": 1.0,
        "random_state": 0,
        **kwargs,
    }
    there, labels, weight = (to_device(cupy, given) for given in (X, y, sample_weight))
    host = ExtremeSoftmaxSGD(**kwargs).fit(X, y, sample_weight)
    device = ExtremeSoftmaxSGD(**kwargs).fit(there, labels, weight)
    return host, device, there


CASES = [
    {},
    {"method": "umax", "alpha": 0.01, "learning_rate": 0.1},
    {"method": "nce", "alpha": 0.01},
    {"method": "is", "fit_intercept": False, "batch_size": 3},
    {"hash_bits": 20},
    {"method": "ove", "learning_rate": "auto", "max_iter": 1},
]


@pytest.mark.parametrize("kwargs", CASES, ids=str)
def test_one_row_at_a_time_gives_main_memorys_model(cupy, kwargs):
    X, y = data()
    host, device, there = fits(cupy, X, y, **kwargs)
    for name in ("coef_" if device.hash_bits is None else "table_", "intercept_", "classes_"):
        value = getattr(device, name)
        assert isinstance(value, cupy.ndarray)
        np.testing.assert_allclose(value.get(), getattr(host, name), rtol=1e-7, atol=1e-8)
    for name in ("objective_curve_", "objective_error_curve_", "objective_"):
        np.testing.assert_allclose(getattr(device, name), getattr(host, name), rtol=1e-7, atol=1e-9)
    assert device.objective_ > 0
    assert device.learning_rate_ == host.learning_rate_
    np.testing.assert_array_equal(device.predict(there).get(), host.predict(X))
    np.testing.assert_allclose(device.predict_proba(there).get(), host.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(device.log_loss(there, cupy.asarray(y)), host.log_loss(X, y), rtol=1e-8)
    for proba in (False, True):
        labels, scores = device.predict_topk(there, 4, proba=proba)
        expected = host.predict_topk(X, 4, proba=proba)
        np.testing.assert_allclose(scores.get(), expected[1], atol=1e-7)
        np.testing.assert_array_equal(labels.get()[:, 0], expected[0][:, 0])
    np.testing.assert_allclose(device.to_cpu().decision_function(X), host.decision_function(X), atol=1e-7)


def test_dense_rows_weights_and_other_labels(cupy):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0, 2, len(y)).astype(np.float32)
    X32 = X.toarray().astype(np.float32)
    host, device, there = fits(cupy, X32, y.astype(np.float64), sample_weight=weight, method="ove")
    assert device.coef_.dtype == np.float32
    np.testing.assert_allclose(device.coef_.get(), host.coef_, atol=1e-5)
    np.testing.assert_allclose(device.decision_function(there).get(), host.decision_function(X32), atol=1e-4)
    two = (y > 50).astype(np.int32)
    host, device, there = fits(cupy, X.toarray(), two)
    np.testing.assert_allclose(
        device.decision_function(there).get(), host.decision_function(X.toarray()), atol=1e-8
    )


@pytest.mark.parametrize("choice", ["first", "sample"])
def test_several_labels_a_row(cupy, choice):
    X, _ = data()
    rng = np.random.default_rng(2)
    Y = sp.csr_matrix((rng.random((X.shape[0], 8)) < 0.25).astype(np.float32))
    host, device, there = fits(cupy, X, Y, label_choice=choice)
    np.testing.assert_allclose(device.coef_.get(), host.coef_, atol=1e-8)
    found = device.predict(there)
    np.testing.assert_array_equal(found.get().toarray(), host.predict(X).toarray())
    np.testing.assert_allclose(device.log_loss(there, to_device(cupy, Y)), host.log_loss(X, Y), rtol=1e-7)


def test_as_many_rows_at_once_as_by_default_reach_the_same_loss(cupy):
    X, y = data(n_classes=60, n=240)
    host, device, there = fits(cupy, X, y, n_jobs=None, max_iter=8, learning_rate=3.0)
    mine, expected = device.log_loss(there, cupy.asarray(y)), host.log_loss(X, y)
    assert mine == pytest.approx(expected, rel=0.15) and mine < 0.5 * np.log(60)
    assert np.abs(device.coef_.get() - host.coef_).max() > 1e-3  # not one row after the other


def test_partial_fit_goes_on_and_meets_new_classes(cupy):
    X, y = data()
    models = []
    for device in (False, True):
        model = ExtremeSoftmaxSGD("implicit", learning_rate=1.0, random_state=0, n_jobs=1, alpha=0.01)
        order = np.argsort(y, kind="stable")
        for part in (order[:40], order[20:70], order[70:]):
            A, labels = X[part].toarray(), y[part]
            if device:
                A, labels = cupy.asarray(A), cupy.asarray(labels)
            model.partial_fit(A, labels, classes=[5, 10] if len(models) < 0 else None)
        models.append(model)
    host, device = models
    np.testing.assert_array_equal(device.classes_.get(), host.classes_)
    np.testing.assert_allclose(device.coef_.get(), host.coef_, rtol=1e-7, atol=1e-8)
    assert device.t_ == host.t_
    on = device.to_cpu().partial_fit(X[:9].toarray(), y[:9])
    np.testing.assert_allclose(on.coef_, host.partial_fit(X[:9].toarray(), y[:9]).coef_, rtol=1e-6, atol=1e-8)


def test_what_is_refused(cupy):
    X, y = data()
    _, device, there = fits(cupy, X, y, max_iter=1)
    for name in ("sparsify", "quantize"):
        with pytest.raises(TypeError, match=rf"to_cpu\(\)\.{name}\(\)"):
            getattr(device, name)()
    labels, nan = cupy.asarray(y), cupy.full(len(y), np.nan)
    for kind, match, target, options in (
        (ValueError, "Unknown label type", cupy.asarray(y + 0.5), {}),
        (ValueError, "y contains NaN", nan, {}),
        (ValueError, "X has 90 rows, y has shape", labels[:7], {}),
        (TypeError, "LabelEncoder", y.astype(str), {}),
        (TypeError, "X is on the GPU and y in main memory", y, {}),
        (ValueError, "does not go with a GPU", labels, {"prior": "centroids"}),
    ):
        with pytest.raises(kind, match=match):
            ExtremeSoftmaxSGD(**options).fit(there, target)


def test_large_tables_are_searched_for_many_rows(cupy, monkeypatch):
    monkeypatch.setattr(fit, "MAX_SCORES", 10)
    W = cupy.zeros((1000, 3))
    W[1:] = np.nan
    assert not fit._is_finite(W, np.tile(np.arange(1000), 1000))
    assert fit._is_finite(W, np.zeros(5, dtype=int))


def test_steps_that_diverge_say_so(cupy):
    X, y = data()
    with pytest.raises(FloatingPointError, match="diverged in epoch"):
        fits(cupy, 30 * X.toarray(), y, method="sgd", learning_rate=1e6, n_jobs=None)
