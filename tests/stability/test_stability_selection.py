"""StabilitySelection against loops over cold fits, and scikit-learn's contract."""

import warnings

import numpy as np
import pytest
import sklearn
from reference_stability import frequencies
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from sparsekit import (
    BoundedClassifier,
    BoundedRegressor,
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
    SoftmaxClassifier,
    StabilitySelection,
)
from sparsekit._stability.solver.halves import complementary_pairs

FEW = dict(n_pairs=5, penalties=8, random_state=0)


@pytest.fixture(scope="module")
def numbers():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y / y.std()


@pytest.fixture(scope="module")
def two():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def three():
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).standard_normal((len(y), 6))
    return np.column_stack([scale(X), noise]), y


def halves_of(y, model, classes):
    rows = np.arange(len(y))
    codes = np.unique(y, return_inverse=True)[1] if classes else None
    drawn = np.random.RandomState(model.random_state)
    return [half for pair in complementary_pairs(rows, codes, model.n_pairs, drawn) for half in pair]


def check_against_loops(model, X, y, fit, classes, free=()):
    """``fit(rows, value)`` gives the coefficients of a half at a value of C or alpha for all rows."""
    model.fit(X, y)
    expected, mean = frequencies(
        lambda rows, k: fit(rows, model.penalties_[k]), halves_of(y, model, classes), X.shape[1],
        len(model.penalties_), model.max_selected_, free,
    )  # fmt: skip
    assert expected.max() > 0 and np.unique(expected).size > 3
    np.testing.assert_array_equal(model.stability_paths_, expected)
    np.testing.assert_array_equal(model.stability_scores_, expected.max(axis=1))
    assert model.n_selected_ == mean


@pytest.mark.parametrize("max_false", [None, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_lasso_paths_are_cold_fits(numbers, max_false, fit_intercept):
    X, y = numbers
    lasso = LassoOBA(tol=1e-9, fit_intercept=fit_intercept)
    model = StabilitySelection(lasso, max_false=max_false, n_pairs=6, penalties=12, random_state=1)

    def fit(rows, alpha):
        return (
            Lasso(alpha, tol=1e-12, max_iter=10**6, fit_intercept=fit_intercept).fit(X[rows], y[rows]).coef_
        )

    check_against_loops(model, X, y, fit, classes=False)


@pytest.mark.parametrize("data", ["two", "three"])
@pytest.mark.parametrize("max_false", [None, 1.5])
def test_logistic_paths_are_cold_fits(data, max_false, request):
    X, y = request.getfixturevalue(data)
    model = StabilitySelection(
        L1LogisticOBA(tol=1e-9), max_false=max_false, n_pairs=4, random_state=2,
        penalties=[0.002, 0.05, 0.01, 0.02, 0.05, 0.1],
    )  # fmt: skip

    def fit(rows, C):
        # C multiplies a sum over the rows, of which a half has the half
        return L1LogisticOBA(C=C * len(y) / len(rows), tol=1e-9).fit(X[rows], y[rows]).coef_

    check_against_loops(model, X, y, fit, classes=True)
    np.testing.assert_array_equal(model.penalties_, [0.002, 0.01, 0.02, 0.05, 0.1])
    assert model.parameter_ == "C"


def test_free_features_are_selected_and_not_counted(numbers):
    X, y = numbers
    weights = np.ones(10)
    weights[[0, 4]] = 0
    lasso = LassoOBA(tol=1e-9, penalty_weights=weights)
    model = StabilitySelection(lasso, max_false=0.9, n_pairs=5, penalties=12, random_state=0)

    def fit(rows, alpha):
        return clone(lasso).set_params(alpha=alpha).fit(X[rows], y[rows]).coef_

    check_against_loops(model, X, y, fit, classes=False, free=(0, 4))
    assert model.stability_scores_[0] == model.stability_scores_[4] == 1
    assert model.n_selected_ <= model.max_selected_ and model.get_support()[[0, 4]].all()
    fewer = StabilitySelection(LassoOBA(), max_false=0.9, n_pairs=5).fit(X[:, :8], y)
    assert fewer.max_selected_ == model.max_selected_


@pytest.mark.parametrize(
    "base, values",
    [
        (BoundedClassifier("squared_hinge", l1_ratio=1.0, tol=1e-9), [0.3, 0.1, 0.03, 0.01]),
        (BoundedClassifier(alpha=7.0, l1_ratio=1.0, tol=1e-9, bounds=(0, None)), [0.03, 0.01]),
    ],
)
def test_other_estimators_are_fitted_at_each_penalty(two, base, values):
    X, y = two
    model = StabilitySelection(base, max_false=3.0, n_pairs=3, penalties=values, random_state=0)

    def fit(rows, alpha):
        return clone(base).set_params(alpha=alpha).fit(X[rows], y[rows]).coef_

    check_against_loops(model, X, y, fit, classes=True)
    assert base.alpha in (7.0, 1e-4) and not hasattr(base, "coef_")


def test_estimators_of_scikit_learn(two, numbers):
    X, y = two
    new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    l1 = {"l1_ratio": 1} if new else {"penalty": "l1"}
    liblinear = LogisticRegression(solver="liblinear", tol=1e-8, max_iter=10**5, fit_intercept=False, **l1)
    options = dict(n_pairs=4, penalties=[0.01, 0.03, 0.1], random_state=0, max_false=2.0)
    theirs = StabilitySelection(liblinear, **options).fit(X, y)
    ours = StabilitySelection(L1LogisticOBA(fit_intercept=False, tol=1e-9), **options).fit(X, y)
    np.testing.assert_array_equal(theirs.stability_paths_, ours.stability_paths_)
    X, y = numbers
    theirs = StabilitySelection(Lasso(tol=1e-10), n_pairs=4, penalties=[0.3, 0.1], random_state=0).fit(X, y)
    ours = StabilitySelection(LassoOBA(tol=1e-9), n_pairs=4, penalties=[0.3, 0.1], random_state=0).fit(X, y)
    np.testing.assert_array_equal(theirs.stability_paths_, ours.stability_paths_)


def test_halves():
    rows, codes = np.arange(3, 31), np.zeros(40, dtype=int)
    codes[[5, 6, 7]] = 1
    codes[9] = 2
    drawn = np.random.RandomState(0)
    pairs = complementary_pairs(rows, codes, 50, drawn)
    left_out = set()
    for one, other in pairs:
        assert len(one) == len(other) == 13 and not set(one) & set(other)
        assert set(one) | set(other) < set(rows) and (np.diff(one) > 0).all()
        assert np.count_nonzero(codes[one] == 1) == np.count_nonzero(codes[other] == 1) == 1
        left_out |= set(rows) - set(one) - set(other)
    assert {5, 6, 7, 9} <= left_out  # another odd row each time
    (pair,) = complementary_pairs(np.arange(7), None, 1, drawn)
    assert [len(half) for half in pair] == [3, 3]


def test_names_and_frames(numbers):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = StabilitySelection(LassoOBA(penalty_weights={"age": 0.0}), **FEW).set_output(transform="pandas")
    frame = model.fit_transform(X, y)
    assert list(frame.columns) == list(model.get_feature_names_out()) and "age" in frame.columns
    assert list(model.feature_names_in_) == list(X.columns)
    bounded = BoundedRegressor("squared", l1_ratio=1.0, bounds={"bmi": (None, 0)})  # names reach its fits
    found = StabilitySelection(bounded, n_pairs=3, penalties=[1.0, 0.5], random_state=0).fit(X, y)
    assert found.stability_scores_[2] == 0 and found.stability_scores_.max() == 1
    pipeline = make_pipeline(StandardScaler(), StabilitySelection(LassoOBA(), **FEW), LassoOBA(0.1))
    assert pipeline.fit(X, y).score(X, y) > 0.4


def test_the_threshold_may_change_after_the_fit(two):
    model = StabilitySelection(max_false=3.0, n_pairs=10, random_state=0).fit(*two)
    at = {}
    for threshold in (0.55, 0.75, 1.0):
        model.set_params(threshold=threshold)
        np.testing.assert_array_equal(model.get_support(), model.stability_scores_ >= threshold)
        at[threshold] = model.expected_false_
        bounds = [
            model.set_params(assumption=name).expected_false_ for name in ("r-concave", "unimodal", "none")
        ]
        assert bounds[0] <= at[threshold] == bounds[1] <= bounds[2]
        model.set_params(assumption="unimodal")
    assert at[0.55] > at[0.75] > at[1.0]
    # frequencies are votes, which no rounding may cost: 0.6 of 10 halves are 6
    model = StabilitySelection(threshold=0.6, n_pairs=5, random_state=0).fit(*two)
    model._counts = np.arange(30) % 11
    np.testing.assert_array_equal(model.get_support(), model._counts >= 6)


@pytest.mark.parametrize("kind", ["lasso", "logistic", "other"])
def test_weights(kind, numbers, two):
    X, y = numbers if kind == "lasso" else two
    base = {"lasso": LassoOBA(tol=1e-9), "logistic": L1LogisticOBA(tol=1e-9),
            "other": BoundedClassifier(l1_ratio=1.0, tol=1e-9)}[kind]  # fmt: skip
    penalties = [0.1, 0.03] if kind == "other" else 8
    model = StabilitySelection(base, n_pairs=3, penalties=penalties, random_state=0, max_false=3.0)
    plain = clone(model).fit(X, y)
    for weight in (np.ones(len(y)), np.full(len(y), 1e-3)):
        if kind == "logistic" and weight[0] != 1:
            continue  # C multiplies a sum
        np.testing.assert_array_equal(
            clone(model).fit(X, y, sample_weight=weight).stability_paths_, plain.stability_paths_
        )
    if kind == "logistic":
        scaled = clone(model).fit(X, y, sample_weight=np.full(len(y), 4.0))
        np.testing.assert_allclose(scaled.penalties_, plain.penalties_ / 4)
        np.testing.assert_array_equal(scaled.stability_paths_, plain.stability_paths_)
    # rows of weight zero are not drawn
    weight = np.ones(len(y))
    weight[::3] = 0
    some = weight > 0
    left = clone(model).fit(X[some], y[some])
    found = clone(model).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(found.penalties_, left.penalties_, rtol=1e-9)
    np.testing.assert_array_equal(found.stability_paths_, left.stability_paths_)


def test_class_weights_are_sample_weights(two):
    X, y = two
    model = StabilitySelection(L1LogisticOBA(class_weight={0: 3.0}, tol=1e-9), **FEW).fit(X, y)
    other = StabilitySelection(L1LogisticOBA(tol=1e-9), **FEW).fit(
        X, y, sample_weight=np.where(y == 0, 3.0, 1.0)
    )
    np.testing.assert_allclose(model.penalties_, other.penalties_)
    np.testing.assert_array_equal(model.stability_paths_, other.stability_paths_)


def test_metadata_routing(numbers):
    X, y = numbers
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    plain = StabilitySelection(LassoOBA(), **FEW).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        model = StabilitySelection(LassoOBA(), **FEW)
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(X, y, sample_weight=weight)
        model = StabilitySelection(LassoOBA().set_fit_request(sample_weight=True), **FEW)
        routed = model.fit(X, y, sample_weight=weight)
        with pytest.raises(TypeError, match="sample_weight"):
            StabilitySelection(LassoOBA().set_fit_request(sample_weight=False), **FEW).fit(
                X, y, sample_weight=weight
            )
    np.testing.assert_array_equal(routed.stability_paths_, plain.stability_paths_)


def test_noise_alone_selects_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 300)), rng.standard_normal(60)
    model = StabilitySelection(LassoOBA(), max_false=0.2, random_state=0).fit(X, y)
    assert not model.get_support().any() and model.expected_false_ <= 0.2
    with pytest.warns(UserWarning, match="No features were selected"):
        assert model.transform(X).shape == (60, 0)
    constant = StabilitySelection(LassoOBA(), **FEW).fit(np.ones((8, 3)), np.arange(8.0))
    assert not constant.stability_scores_.any() and constant.expected_false_ == 0


def test_what_is_refused(two, numbers):
    X, y = two
    for model, error, why in [
        (
            StabilitySelection(max_false=0.01),
            ValueError,
            r"max_false=0.01 is out of reach: with 30 features.*0\.034",
        ),
        (StabilitySelection(threshold=0.5), ValueError, "threshold"),
        (
            StabilitySelection(BoundedClassifier(l1_ratio=1)),
            ValueError,
            "penalties must be an array of values of alpha",
        ),
        (
            StabilitySelection(L1LogisticOBACV()),
            TypeError,
            "penalty C or alpha; L1LogisticOBACV has neither .*by it",
        ),
        (StabilitySelection(StandardScaler()), TypeError, "StandardScaler has neither"),
        (StabilitySelection(L1LogisticOBA(tol=-1.0)), ValueError, "tol"),
        (StabilitySelection(penalties=[0.0, 1.0]), ValueError, "penalties must be > 0"),
        (StabilitySelection(estimator="l1"), ValueError, "estimator"),
        (StabilitySelection(LassoOBA()), TypeError, "LassoOBA.fit takes no groups"),
    ]:
        with pytest.raises(error, match=why):
            model.fit(X, y, **({"groups": y} if "groups" in why else {}))
    for base in (SoftmaxClassifier(), Ridge()):
        with pytest.raises(ValueError, match=f"{type(base).__name__} used every feature in every fit"):
            StabilitySelection(base, penalties=[1.0], n_pairs=2).fit(X, y)
    with pytest.raises(ValueError, match=r"Unknown label type.*give StabilitySelection\(LassoOBA\(\)\)"):
        StabilitySelection().fit(numbers[0], numbers[1])
    with pytest.raises(ValueError, match="fewer than 2 classes have 2 rows"):
        StabilitySelection().fit(X[:5], [0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="cannot be halved"):
        StabilitySelection(LassoOBA()).fit(X, y, sample_weight=np.arange(len(y)) < 3)
    model = StabilitySelection(**FEW)
    for call in (model.get_support, lambda: model.expected_false_, lambda: model.transform(X)):
        with pytest.raises(NotFittedError):
            call()
    model.fit(X, y)
    for name, value, valid in (("threshold", 0.5, 0.75), ("assumption", "normal", "unimodal")):
        model.set_params(**{name: value})
        for call in (model.get_support, lambda: model.expected_false_):
            with pytest.raises(ValueError, match=f"The '{name}' parameter"):
                call()
        model.set_params(**{name: valid})


def test_fits_that_end_early_are_said_once(numbers):
    with pytest.warns(ConvergenceWarning) as caught:
        StabilitySelection(LassoOBA(max_iter=1, tol=1e-12, hessian="lbfgs"), **FEW).fit(*numbers)
    assert len(caught) == 1 and "StabilitySelection: " in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StabilitySelection(LassoOBA(), **FEW).fit(*numbers)
