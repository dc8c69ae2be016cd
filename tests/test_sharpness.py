"""Sharpness: against a search of the whole box, for functions, estimators and modules."""

import warnings

import numpy as np
import pytest
import reference_sharpness as reference
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from sparsekit import (
    BoundedClassifier,
    BoundedRegressor,
    ExtremeSoftmaxSGD,
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
    LPSparseMAPClassifier,
    SoftmaxClassifier,
    SoftmaxClassifierCV,
    SparsemaxClassifier,
)
from sparsekit.inspection import sharpness
from sparsekit.inspection._sharpness import pseudo_inverse, random_directions
from sparsekit.inspection._training import training_function

METHODS = ("l-bfgs-b", "nqn")


def quadratic(n, seed, slope=0.0):
    """A convex quadratic, its gradient, and a point near its minimum."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n))
    H, centre = B @ B.T / n, rng.standard_normal(n)
    tilt = slope * rng.standard_normal(n)

    def value(x):
        return float(0.5 * (x - centre) @ H @ (x - centre) + tilt @ (x - centre))

    return value, lambda x: H @ (x - centre) + tilt, centre


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("slope", [1.0, 1e-2])
@pytest.mark.parametrize("seed", range(4))
def test_full_space_is_the_largest_corner(method, slope, seed):
    value, gradient, x = quadratic(6, seed, slope)
    expected = reference.sharpness(value, x, 1e-3, n_inside=2)
    found = sharpness(value, x, jac=gradient, method=method, n_starts=4, random_state=0)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_a_manifold_is_searched_whole(method, seed):
    value, gradient, x = quadratic(12, seed, 0.1)
    A = np.random.default_rng(seed).standard_normal((12, 4))
    expected = reference.sharpness(value, x, 1e-2, A, n_inside=2)
    found = sharpness(
        value, x, jac=gradient, directions=A, epsilon=1e-2, method=method, n_starts=4, random_state=0
    )
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_peak_inside_the_box(method):
    # largest at neither corner nor centre: 1 - cos has its crest where x = pi
    x = np.zeros(1)
    found = sharpness(
        lambda x: (float(1 - np.cos(x[0])), np.sin(x)),
        x,
        jac=True,
        epsilon=4.0,
        method=method,
        random_state=1,
    )
    assert found == pytest.approx(200.0, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_at_an_exact_minimum_it_starts_elsewhere(method, seed):
    value, gradient, x = quadratic(5, seed)
    expected = reference.sharpness(value, x, 1e-3, n_inside=2)
    once = sharpness(value, x, jac=gradient, method=method, random_state=0)
    assert 0.5 * expected < once <= expected * (1 + 1e-9)
    often = sharpness(value, x, jac=gradient, method=method, random_state=0, n_starts=12)
    assert often == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_kinks(method):
    weight = np.array([1.0, 2.0, 0.5])
    found = sharpness(
        lambda x: float(weight @ np.abs(x)), np.zeros(3), jac=lambda x: weight * np.sign(x), method=method,
        random_state=0,
    )  # fmt: skip
    assert found == pytest.approx(100 * 1e-3 * 3.5, rel=1e-9)


def test_several_boxes_and_what_is_reported():
    value, gradient, x = quadratic(8, 1, 0.1)
    epsilons = [1e-3, 1e-2, 1e-4]
    result = sharpness(
        value, x, jac=gradient, epsilon=epsilons, random_state=0, return_result=True, n_directions=3
    )
    A = result.directions
    assert A.shape == (8, 3)
    assert result.sharpness.shape == (3,)
    for k, epsilon in enumerate(epsilons):
        assert value(result.x_max[k]) == pytest.approx(result.fun_max[k], rel=1e-12)
        z = np.linalg.lstsq(A, result.x_max[k] - x, rcond=None)[0]
        np.testing.assert_allclose(A @ z, result.x_max[k] - x, atol=1e-12)
        assert (np.abs(z) <= reference.box(x, epsilon, A) * (1 + 1e-9)).all()
        expected = 100 * (result.fun_max[k] - result.fun) / (1 + result.fun)
        assert result.sharpness[k] == pytest.approx(expected)
    assert result.sharpness[1] > result.sharpness[0] > result.sharpness[2] > 0
    assert result.fun == value(x) and result.nit >= 3
    one = sharpness(value, x, jac=gradient, random_state=0, return_result=True)
    assert isinstance(one.sharpness, float) and one.x_max.shape == x.shape and one.directions is None


def test_evaluations_are_counted_and_few():
    value, gradient, x = quadratic(20, 0, 1e-3)
    calls = []
    result = sharpness(
        lambda x: calls.append(1) or value(x), x, jac=gradient, random_state=0, return_result=True
    )
    assert len(calls) == result.nfev <= 30


def test_without_a_gradient():
    value, gradient, x = quadratic(6, 2, 0.1)
    for options in ({}, {"n_directions": 2}):
        with_it = sharpness(value, x, jac=gradient, random_state=0, **options)
        result = sharpness(value, x, random_state=0, return_result=True, **options)
        assert result.sharpness == pytest.approx(with_it, rel=1e-3)
        assert result.nfev % (1 + options.get("n_directions", 6)) == 0


def test_differences_are_counted_and_fit_the_size_of_x():
    calls = []
    far = np.full(3, 1.0001e9)

    def value(x):
        calls.append(1)
        return float(np.sum((x - 1e9) ** 2) / 1e18)

    result = sharpness(value, far, jac=False, random_state=0, return_result=True)
    assert result.nfev == len(calls)
    exact = sharpness(value, far, jac=lambda x: 2 * (x - 1e9) / 1e18, random_state=0)
    assert result.sharpness == pytest.approx(exact, rel=1e-2)


def test_single_precision_data_is_no_rise():
    X, y = load_diabetes(return_X_y=True)
    X = scale(X).astype(np.float32)
    model = LassoOBA(alpha=0.1).fit(X, y)
    double = sharpness(model, X.astype(np.float64), y, epsilon=1e-5, random_state=0)
    assert sharpness(model, X, y, epsilon=1e-5, random_state=0) == pytest.approx(double, rel=1e-3)


def test_larger_boxes_never_have_less():
    value, gradient, x = quadratic(30, 3, 1e-4)
    epsilons = np.geomspace(1e-5, 1e-1, 9)
    rising = sharpness(value, x, jac=gradient, epsilon=epsilons, random_state=0)
    assert (np.diff(rising) > 0).all()


def test_pseudo_inverse_and_directions():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50)
    A = random_directions(50, 7, rng)
    np.testing.assert_allclose(pseudo_inverse(A, x), np.linalg.pinv(A) @ x, atol=1e-12)
    twice = np.column_stack([A, A[:, 0]])  # of rank 7
    np.testing.assert_allclose(pseudo_inverse(twice, x), np.linalg.pinv(twice) @ x, atol=1e-10)
    nearly = np.column_stack([A, A[:, 0] + 1e-7 * rng.standard_normal(50)])
    np.testing.assert_allclose(pseudo_inverse(nearly, x), np.linalg.pinv(nearly) @ x, rtol=1e-5)
    large = random_directions(3000, 7, np.random.RandomState(1))
    np.testing.assert_allclose(large.T @ large / 3000, np.eye(7), atol=0.1)  # standard normal, independent
    assert abs(large.mean()) < 0.05


def test_large_manifolds_are_kept_in_single_precision(monkeypatch):
    monkeypatch.setattr("sparsekit.inspection._sharpness._LARGE", 64)
    A = random_directions(50, 7, np.random.RandomState(0))
    assert A.dtype == np.float32
    np.testing.assert_array_equal(A, np.random.RandomState(0).standard_normal((50, 7)).astype(np.float32))
    value, gradient, x = quadratic(50, 0, 0.1)
    single = sharpness(value, x, jac=gradient, directions=A)
    double = sharpness(value, x, jac=gradient, directions=A.astype(np.float64))
    assert single == pytest.approx(double, rel=1e-4)


def test_negative_functions_and_buffers_that_are_used_again():
    buffer = np.empty(4)

    def fun(x):
        np.multiply(2.0, x, out=buffer)
        buffer[0] += 0.5
        value = float(x @ x + 0.5 * x[0] - 0.75)
        x[:] = np.nan  # its own copy
        return value, buffer

    x = np.full(4, 0.1)
    f = 4 * 0.01 + 0.05 - 0.75
    for epsilon in (0.1, 0.01):
        half = epsilon * 1.1
        largest = 4 * (0.1 + half) ** 2 + 0.5 * (0.1 + half) - 0.75
        expected = 100 * (largest - f) / (1 + f)  # f < 0 raises it
        found = sharpness(fun, x, jac=True, epsilon=[0.1, 0.01], max_iter=3, random_state=0)
        assert found[0 if epsilon == 0.1 else 1] == pytest.approx(expected, rel=1e-9)


def test_a_larger_box_begins_where_the_smaller_one_ended():
    # from z = 0 the way leads up to the left; a small box finds the rise to the right by its random start
    def fun(x):
        return float(x[0] ** 2), 2 * x

    for seed in range(6):
        both = sharpness(fun, [0.0], jac=True, epsilon=[1e-3, 1e-2], max_iter=1, random_state=seed)
        assert both[1] >= both[0] > 0
    starts = []

    def recorded(x):
        starts.append(x.copy())
        return float(np.sum(x**2)), 2 * x

    result = sharpness(
        recorded, np.zeros(2), jac=True, epsilon=[1e-3, 1e-2], max_iter=1, random_state=0, return_result=True
    )
    assert any(np.array_equal(x, result.x_max[0]) for x in starts[-10:])


@pytest.mark.parametrize("method", METHODS)
def test_functions_that_are_not_defined_everywhere(method):
    def fun(x):
        defined = x[1] >= 0
        return (1 + float(x @ x) if defined else np.nan), (2 * x if defined else np.full(2, np.inf))

    for seed in range(8):
        found = sharpness(fun, np.zeros(2), jac=True, n_starts=2, method=method, random_state=seed)
        assert found == pytest.approx(100 * 2e-6 / 2, rel=0.6) and np.isfinite(found) and found > 0


def test_infinite_values_count():
    def fun(x):
        return float(x @ x) if np.all(x < 1e-4) else np.inf

    assert sharpness(fun, np.zeros(3), jac=lambda x: 2 * x + 1e-3, random_state=0) == np.inf


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epsilon": 0}, "epsilon must be a number > 0"),
        ({"epsilon": [1e-3, np.nan]}, "epsilon must be a number > 0"),
        ({"epsilon": []}, "epsilon must be a number > 0"),
        ({"n_directions": 4}, "from 1 to the number of variables, 3"),
        ({"n_directions": 1.5}, "n_directions must be an integer"),
        ({"directions": np.ones((2, 2))}, r"directions must have shape \(3, p\)"),
        ({"directions": np.full((3, 1), np.nan)}, "directions must be finite"),
        ({"directions": np.ones((3, 1)), "n_directions": 1}, "exclude each other"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"n_starts": 0}, "n_starts must be an integer >= 1"),
        ({"method": "newton"}, "method must be 'nqn' or 'l-bfgs-b'"),
        ({"jac": "2-point"}, "jac must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        sharpness(lambda x: float(x @ x), np.zeros(3), **options)


@pytest.mark.parametrize(
    "fun, x, options, error, message",
    [
        (lambda x: -2.0, [0.0], {}, ValueError, "larger than -1"),
        (lambda x: np.nan, [0.0], {}, ValueError, "finite at x"),
        (lambda x: 1.0, [[0.0]], {}, ValueError, "x must have shape"),
        (lambda x: 1.0, [], {}, ValueError, "x must have shape"),
        (lambda x: 1.0, [np.inf], {}, ValueError, "x must be finite"),
        (lambda x: x, [0.0, 1.0], {}, ValueError, "one number"),
        (lambda x: (x @ x, 2 * x), [0.0, 1.0], {}, ValueError, "say jac=True"),
        (
            lambda x: (1.0, np.full(2, np.nan)),
            [0.0, 1.0],
            {"jac": True},
            ValueError,
            "gradient at x must be finite",
        ),
        (lambda x: 1.0, [0.0], {"batch_size": 5}, TypeError, "batch_size goes with"),
        (L1LogisticOBA(), [[0.0]], {"y": [0], "batch_size": 5}, TypeError, "batch_size is for PyTorch"),
        (lambda x: 1.0, [0.0], {"jac": True}, ValueError, "f and its gradient"),
        (lambda x: 1.0, [0.0], {"jac": lambda x: np.zeros(2)}, ValueError, "gradient must have shape"),
        (lambda x: 1.0, [0.0], {"y": [1]}, TypeError, "y goes with"),
        (lambda x: 1.0, [0.0], {"loss": max}, TypeError, "loss goes with"),
        (3.0, [0.0], {}, TypeError, "callable, a fitted estimator or"),
        (L1LogisticOBA(), [[0.0]], {}, TypeError, "needs its data"),
        (L1LogisticOBA(), [[0.0]], {"y": [0], "jac": True}, TypeError, "jac goes with"),
        (L1LogisticOBA(), [[0.0]], {"y": [0], "loss": max}, TypeError, "loss is for PyTorch"),
        (LogisticRegression(), [[0.0]], {"y": [0]}, TypeError, "LogisticRegression is no estimator of"),
    ],
)
def test_bad_input(fun, x, options, error, message):
    with pytest.raises(error, match=message):
        sharpness(fun, x, **options)


def numbers():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y / y.std()


def classes(two=True):
    X, y = (load_breast_cancer if two else load_iris)(return_X_y=True)
    return scale(X), np.array(["a", "b", "c"])[y]


def labels(empty=True):
    X, _ = classes(False)
    Y = (np.random.default_rng(0).uniform(size=(len(X), 4)) < 0.4).astype(int)
    Y[0] = 0
    if not empty:
        Y[Y.sum(axis=1) == 0, 0] = 1
    return X, Y


ESTIMATORS = [
    (L1LogisticOBA(C=0.1, class_weight="balanced"), classes),
    (L1LogisticOBA(C=0.1, fit_intercept=False, penalty_weights=[1, 0, 2, 1]), lambda: classes(False)),
    (L1LogisticOBACV(Cs=3), classes),
    (LassoOBA(alpha=0.05), numbers),
    (SparsemaxClassifier(), lambda: classes(False)),
    (SparsemaxClassifier(alpha=1e-2), lambda: labels(False)),
    (SoftmaxClassifier(alpha=1e-3, penalize_intercept=False), lambda: classes(False)),
    (SoftmaxClassifierCV(alphas=[0.1, 0.01]), lambda: classes(False)),
    (BoundedRegressor("quantile", quantile=0.7, alpha=0.1, l1_ratio=0.5, bounds=(0, None)), numbers),
    (BoundedRegressor("huber"), numbers),
    (BoundedClassifier("hinge", alpha=0.1), lambda: classes(False)),
    (BoundedClassifier(alpha=0.1), classes),
    (LPSparseMAPClassifier(pairs="all", alpha=0.01), labels),
    (LPSparseMAPClassifier(pairs="all", alpha=0.01, loss="hinge"), labels),
    (LPSparseMAPClassifier(alpha=0.01, loss="logistic"), labels),
    (LPSparseMAPClassifier(alpha=0.01), lambda: classes(False)),
    (LPSparseMAPClassifier(alpha=0.01, loss="hinge"), lambda: classes(False)),
    (ExtremeSoftmaxSGD(alpha=1e-3, learning_rate=1.0, max_iter=5, random_state=0), lambda: classes(False)),
    (ExtremeSoftmaxSGD(learning_rate=1.0, max_iter=5, random_state=0), labels),
    (ExtremeSoftmaxSGD(learning_rate=1.0, label_choice="sample", max_iter=5, random_state=0), labels),
]


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


@pytest.mark.parametrize("estimator, data", ESTIMATORS, ids=name_of)
def test_estimators(estimator, data):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without labels; the hinge's accuracy
        estimator.fit(X, y, sample_weight=weight)
    before = estimator.coef_.copy()
    f = training_function(estimator, X, y, sample_weight=weight)
    value = f.fun(f.x)[0]
    # the function is the one that the estimator says it minimised, on the scale of the mean loss
    if hasattr(estimator, "objective_"):
        sums = isinstance(estimator, (L1LogisticOBA, L1LogisticOBACV))
        expected = np.sum(estimator.objective_) / (weight.sum() if sums else 1.0)
        assert value == pytest.approx(expected, rel=2e-6)
    # its gradient
    rng = np.random.default_rng(0)
    d = rng.standard_normal(len(f.x))
    x = f.x + 0.01 * d
    slope = (f.fun(x + 1e-6 * d)[0] - f.fun(x - 1e-6 * d)[0]) / 2e-6
    assert f.fun(x)[1] @ d == pytest.approx(slope, rel=1e-5)
    # its score
    measured = f.measure(f.x)
    assert measured[0] == pytest.approx(value)
    assert measured[1] == pytest.approx(estimator.score(X, y, sample_weight=weight))
    moved = f.measure(0.0 * f.x)
    assert moved != measured
    # and nothing about the estimator has changed
    np.testing.assert_array_equal(estimator.coef_, before)

    direct = sharpness(lambda x: f.fun(x), f.x, jac=True, random_state=0)
    assert sharpness(estimator, X, y, sample_weight=weight, random_state=0) == pytest.approx(direct)
    assert direct > 0


def test_pipelines_searches_and_parts_of_the_classes():
    X, y = classes(False)
    model = L1LogisticOBA().fit(StandardScaler().fit_transform(X), y)
    expected = sharpness(model, StandardScaler().fit_transform(X), y)
    pipeline = make_pipeline(StandardScaler(), L1LogisticOBA()).fit(X, y)
    assert sharpness(pipeline, X, y) == pytest.approx(expected)
    search = GridSearchCV(pipeline, {"l1logisticoba__C": [1.0]}, cv=2).fit(X, y)
    assert sharpness(search, X, y) == pytest.approx(expected)
    some = np.flatnonzero(y != "a")
    f = training_function(model, X[some], y[some])
    log_loss = -np.log(model.predict_proba(X[some])[np.arange(100), (y[some] == "c") + 1]).mean()
    assert f.fun(f.x)[0] == pytest.approx(log_loss + np.abs(model.coef_).sum() / 100)
    with pytest.raises(ValueError, match="'z', which is no class"):
        sharpness(model, X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="features"):
        sharpness(model, X[:, :2], y)


def test_scaled_weights_are_sharper():
    # ten times the weights on data a tenth as large: the same predictions, from a narrower valley
    X, y = numbers()
    wide = BoundedRegressor("squared").fit(X, y)
    narrow = BoundedRegressor("squared").fit(10 * X, y)
    np.testing.assert_allclose(10 * narrow.coef_, wide.coef_, rtol=1e-4)
    for options in ({}, {"n_directions": 5}):
        flat = sharpness(wide, X, y, epsilon=1e-2, random_state=0, **options)
        assert sharpness(narrow, 10 * X, y, epsilon=1e-2, random_state=0, **options) > 10 * flat


def test_wrong_numbers_of_labels_are_refused():
    X, Y = labels(False)
    for model in (
        SparsemaxClassifier(alpha=1e-2),
        ExtremeSoftmaxSGD(learning_rate=1.0, max_iter=1, random_state=0),
        LPSparseMAPClassifier(alpha=0.1, pairs=None),
    ):
        model.fit(X, Y)
        for wrong in (Y[:, :3], np.column_stack([Y, Y])):
            with pytest.raises(ValueError, match="a column for each of the 4 labels"):
                sharpness(model, X, wrong)


def test_searches_without_a_best_estimator():
    X, y = classes(False)
    search = GridSearchCV(L1LogisticOBA(), {"C": [1.0]}, cv=2, refit=False).fit(X, y)
    for unfitted in (search, GridSearchCV(L1LogisticOBA(), {"C": [1.0]})):
        with pytest.raises(NotFittedError, match="GridSearchCV has no best_estimator_"):
            sharpness(unfitted, X, y)


def test_hashed_weights_have_no_coefficients():
    X, y = classes(False)
    model = ExtremeSoftmaxSGD(hash_bits=8, learning_rate=1.0, max_iter=1, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="hashed weights"):
        sharpness(model, X, y)
