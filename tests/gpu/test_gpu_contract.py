"""What every estimator owes a user with a GPU: results there, the way back, and one side for all arrays."""

import pickle

import numpy as np
import pytest

import sparsekit as sk

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

N, P = 48, 6
X = np.random.default_rng(3).standard_normal((N, P))
SCORES = X @ np.random.default_rng(4).standard_normal((P, 3)) + 0.3
TARGETS = {"numbers": SCORES[:, 0], "classes": SCORES.argmax(axis=1), "labels": (SCORES > 0).astype(np.int64)}
WEIGHT = np.linspace(0.5, 2.0, N)
MODELS = {
    "LassoOBA": (lambda **k: sk.LassoOBA(alpha=0.05, **k), "numbers"),
    "LassoOBACV": (lambda **k: sk.LassoOBACV(alphas=[0.05], cv=2, **k), "numbers"),
    "L1LogisticOBA": (lambda **k: sk.L1LogisticOBA(C=0.5, **k), "classes"),
    "L1LogisticOBACV": (lambda **k: sk.L1LogisticOBACV(Cs=[0.5], cv=2, **k), "classes"),
    "BoundedRegressor": (lambda **k: sk.BoundedRegressor("huber", **k), "numbers"),
    "BoundedClassifier": (lambda **k: sk.BoundedClassifier(alpha=1e-2, **k), "classes"),
    "SparsemaxClassifier": (lambda **k: sk.SparsemaxClassifier(alpha=1e-2, **k), "classes"),
    "SoftmaxClassifier": (lambda **k: sk.SoftmaxClassifier(alpha=1e-2, **k), "classes"),
    "SoftmaxClassifier, labels": (lambda **k: sk.SoftmaxClassifier(alpha=1e-2, **k), "labels"),
    "ExtremeSoftmaxSGD": (
        lambda **k: sk.ExtremeSoftmaxSGD(max_iter=2, learning_rate=0.1, random_state=0, **k),
        "classes",
    ),
    "LPSparseMAPClassifier": (lambda **k: sk.LPSparseMAPClassifier(alpha=0.05, pairs="all", **k), "labels"),
}
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "predict_marginals")
WARM = [name for name in MODELS if not name.endswith("CV") and name != "ExtremeSoftmaxSGD"]


def numbers(found):
    return found.get() if hasattr(found, "get") else np.asarray(found)


@pytest.fixture(params=MODELS)
def case(request, cupy):
    """A maker of models, and the targets in main memory and on the device."""
    make, kind = MODELS[request.param]
    return make, TARGETS[kind], cupy.asarray(TARGETS[kind])


@pytest.mark.filterwarnings("ignore:.*rows have no label")
def test_the_way_back(cupy, case):
    make, targets, y = case
    there, model = cupy.asarray(X), make()
    assert model.fit(there, y) is model
    back = model.to_cpu()
    again = pickle.loads(pickle.dumps(back))
    for name in ("coef_", "intercept_", "classes_"):
        if isinstance(getattr(model, name, 0.0), cupy.ndarray):
            assert isinstance(getattr(back, name), np.ndarray)
            np.testing.assert_array_equal(getattr(back, name), getattr(model, name).get())
    methods = [name for name in METHODS if hasattr(model, name)]
    assert methods and isinstance(model.coef_, cupy.ndarray)
    for name in methods:
        found, expected = getattr(model, name)(there), getattr(back, name)(X)
        assert isinstance(found, cupy.ndarray)
        np.testing.assert_allclose(found.get(), expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(getattr(again, name)(X), expected)
        with pytest.raises(TypeError, match=r"fitted on the GPU.*to_cpu\(\)"):
            getattr(model, name)(X)
        with pytest.raises(TypeError, match=r"fitted in main memory.*cupy\.asnumpy\(X\)"):
            getattr(back, name)(there)
    column = (slice(None), None) if y.ndim == 1 else slice(None)
    weight = cupy.asarray(WEIGHT)
    for found, expected in (
        (model.score(there, y), back.score(X, targets)),
        (model.score(there, y, weight), back.score(X, targets, WEIGHT)),
        (model.score(there, y, 2.0), back.score(X, targets)),
        (model.score(there, y[column]), back.score(X, targets)),
        (model.score(there[::-2, ::1], y[::-2]), back.score(X[::-2], targets[::-2])),
    ):
        assert type(found) is float and found == pytest.approx(expected, abs=1e-12)
    if hasattr(model, "sparsify"):
        with pytest.raises(TypeError, match=r"to_cpu\(\)\.sparsify\(\)"):
            model.sparsify()


def test_one_side_for_all(cupy, case):
    make, y, dy = case
    there = cupy.asarray(X)
    for given, match in [
        ((there, y), r"X is on the GPU and y in main memory.*cupy\.asarray\(y\)"),
        ((X, dy), "y is on the GPU and X in main memory"),
        ((there, dy, WEIGHT), r"sample_weight in main memory.*cupy\.asarray\(sample_weight\)"),
        ((X, y, cupy.asarray(WEIGHT)), r"sample_weight is on the GPU"),
    ]:
        with pytest.raises(TypeError, match=match):
            make().fit(*given)
    with pytest.raises(ValueError, match="NaN"):
        make().fit(there * np.nan, dy)
    with pytest.raises(ValueError, match=">= 0"):
        make().fit(there, dy, -cupy.asarray(WEIGHT))
    if y.ndim == 1 and y.dtype.kind == "i":
        with pytest.raises(TypeError, match="LabelEncoder"):
            make().fit(there, np.array(["a", "b", "c"])[y])
    elif y.ndim == 1:
        with pytest.raises(ValueError, match="NaN"):
            make().fit(there, dy * np.nan)


@pytest.mark.parametrize("name", WARM)
def test_warm_starts_histories_and_callbacks(cupy, name):
    make, kind = MODELS[name]
    y, seen = TARGETS[kind], []
    if kind == "numbers":  # targets without noise have an objective of rounding, and starts are no better
        y = y + 0.1 * np.random.default_rng(5).standard_normal(N)
    there, dy = cupy.asarray(X), cupy.asarray(y)
    model = make(warm_start=True, history=True, callback=seen.append).fit(there, dy)
    assert isinstance(seen[-1].x, cupy.ndarray) and isinstance(seen[-1].fun, float)
    assert all(isinstance(column, np.ndarray) for column in model.history_.values())
    cold = int(np.sum(model.n_iter_))
    assert int(np.sum(model.fit(there, dy).n_iter_)) < cold
    # a start on the other side
    for given, kind in (((X, y), np.ndarray), ((there, dy), cupy.ndarray)):
        assert int(np.sum(model.fit(*given).n_iter_)) < cold
        assert isinstance(model.coef_, kind)
