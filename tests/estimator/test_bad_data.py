"""What all estimators refuse by name: numbers that are none, weights, shapes, parameters out of range."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import sparsekit as sk
from sparsekit.datasets import write_csr

MODELS = [
    sk.L1LogisticOBA(), sk.LassoOBA(0.1), sk.L1LogisticOBACV(Cs=3, cv=3), sk.LassoOBACV(alphas=3, cv=3),
    sk.GLMOBA("gaussian"), sk.BoundedRegressor(), sk.BoundedClassifier(), sk.SparsemaxClassifier(),
    sk.SoftmaxClassifier(), sk.LPSparseMAPClassifier(), sk.ExtremeSoftmaxSGD(learning_rate=0.1, max_iter=2),
]  # fmt: skip
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
SCORED = [sk.LassoOBA(0.1), sk.L1LogisticOBA(), sk.BoundedRegressor(), sk.ExtremeSoftmaxSGD(max_iter=2)]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = np.where(X[:, 0] + RNG.standard_normal(60) > 0, 1, -1)


def spoilt(values, index, bad):
    values = np.array(values, dtype=float)
    values[index] = bad
    return values


def refused(model, match, X=X, y=Y, **given):
    with pytest.raises(ValueError, match=match):
        clone(model).fit(X, y, **given)


@each_model
def test_numbers_that_are_none(model):
    for bad, what in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        for form in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, pd.DataFrame):
            refused(model, f"Input X contains {what}", X=form(spoilt(X, (3, 2), bad)))
        refused(model, f"Input y contains {what}", y=spoilt(Y, 0, bad))
        refused(model, f"Input sample_weight contains {what}", sample_weight=spoilt(np.ones(60), 0, bad))


@each_model
def test_weights_of_rows(model):
    for weight, match in (
        (spoilt(np.ones(60), 7, -2.0), r"Negative values in sample_weight"),
        (np.zeros(60), "at least one non-zero"),
        (np.ones(3), r"sample_weight\.shape == \(3,\), expected \(60,\)"),
        (np.ones((60, 1)), "1D array or scalar"),
    ):
        refused(model, match, sample_weight=weight)


@pytest.mark.parametrize("model", SCORED, ids=lambda model: type(model).__name__)
def test_one_weight_for_all_rows_in_score(model, tmp_path):
    """A positive one changes nothing, anything else is refused; of rows in a folder too."""
    model = clone(model).fit(X, Y)
    for rows in (X, write_csr(tmp_path / "folder", X)):
        expected = model.score(rows, Y)
        for weight in (2.0, 3, np.float32(0.5)):
            assert model.score(rows, Y, sample_weight=weight) == pytest.approx(expected)
        for weight in (np.nan, np.inf, -2.0, 0.0, "a"):
            with pytest.raises(ValueError, match="sample_weight must be a finite number > 0"):
                model.score(rows, Y, sample_weight=weight)


@each_model
def test_shapes(model):
    for rows, y, match in (
        (X, Y[:-1], r"inconsistent numbers of samples: \[60, 59\]"),
        (X[:, 0], Y, "Expected 2D array"),
        (X[:0], Y[:0], "0 sample"),
        (X[:, :0], Y, r"0 feature\(s\) \(shape=\(60, 0\)\)"),
        (np.full((4, 2), "a"), Y[:4], "X must hold numbers"),
    ):
        refused(model, match, X=rows, y=y)
    fitted = clone(model).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 5"):
        fitted.predict(X[:, :3])


@pytest.mark.parametrize(
    "name, values",
    [
        ("C", [0, -1.0, np.nan, "1", None]), ("alpha", [-0.1, np.nan, "1", None]),
        ("l1_ratio", [-0.1, 1.1, np.nan, None]), ("loss", ["pinball", "", 1]),
        ("tol", [0.0, -1e-3, None]), ("max_iter", [0, -5, 1.5]), ("max_time", [0.0, -1.0, "1"]),
        ("n_jobs", [1.5, "2"]), ("hessian", ["diagonal", None]), ("memory", [0, 2.5]),
        ("warm_start", ["yes"]), ("fit_intercept", ["no"]), ("callback", [3]), ("verbose", [-1]),
        ("history", ["yes"]), ("class_weight", ["heavy", 3]),
        ("quantile", [0.0, 1.0, -0.1, np.nan, "0.5", None]), ("epsilon", [-1e-9, np.nan, None]),
        ("pairs", ["some", -1, 1.5]), ("pair_alpha", [-1.0, np.nan, np.inf, "1"]),
        ("factors", ["Budget", 3, {}]), ("threshold", [-0.1, 1.0, np.nan, "f1"]), ("never_empty", ["no"]),
    ],
)  # fmt: skip
def test_parameters_out_of_range(name, values):
    # (SGD has more choices of alpha and tol: tests/extreme)
    models = [model for model in MODELS[:-1] if name in model.get_params()]
    assert models
    for model in models:
        for value in values:
            named = clone(model).set_params(**{name: value})
            refused(named, f"'{name}' parameter of {type(model).__name__}")
