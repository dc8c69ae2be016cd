"""BoundedRegressor and BoundedClassifier: several classes, hard data, threads, probabilities."""

import warnings

import numpy as np
import pytest
import reference_bounded as reference
import scipy.sparse as sp
from reference_bounded import CLASSIFICATION, REGRESSION
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier

from sparsekit import BoundedClassifier, BoundedRegressor

LOSSES = REGRESSION + CLASSIFICATION
REL = 1e-6
BOXES = (np.array([-0.2, 0.1, -np.inf, 0.0, -0.1, -1.0]), np.array([0.2, 0.1, 0.3, np.inf, 0.2, -0.3]))
every = pytest.mark.parametrize("loss", LOSSES)
for side in BOXES:
    side.flags.writeable = False


def estimator(loss, **params):
    params = {"alpha": 0.01, "l1_ratio": 0.5, "bounds": BOXES} | params
    return (BoundedRegressor if loss in REGRESSION else BoundedClassifier)(loss, **params)


def data(loss, n=90, p=6, seed=0):
    """Rows with zeros in them, some altogether zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    X[::13] = 0.0
    y = X @ np.linspace(1, -1, p) + 0.3 + rng.standard_t(3, n)
    return X, (y if loss in REGRESSION else np.where(y > 0.2, 1.0, -1.0))


def same(model, other, rel=3 * REL):
    """Equal minima: the coefficients need not be unique."""
    np.testing.assert_allclose(model.objective_, other.objective_, rtol=rel, atol=1e-12)


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_more_classes_are_one_against_the_rest(loss, iris):
    X, y = iris[0][20:], iris[1][20:]  # classes of different size
    names = np.array(["setosa", "versicolor", "virginica"])
    lower = np.array([[-1.0, 0, -np.inf, 0.1], [0, 0, 0, 0], [-2, -2, 0.5, -0.3]])
    upper = np.array([[1.0, 0.5, np.inf, 0.1], [1, 1, 0, np.inf], [2, 2, 0.5, 0.3]])
    weight = {"setosa": 2.0, "versicolor": 1.0, "virginica": 0.3}
    model = estimator(loss, bounds=(lower, upper), class_weight=weight).fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, names)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == model.objective_.shape == model.dual_gap_.shape == (3,)
    assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all()
    s = np.array([2.0, 1.0, 0.3])[y]
    for k in range(3):
        single = estimator(loss, bounds=(lower[k], upper[k])).fit(X, names[y] == names[k], s)
        assert single.coef_.shape == (1, 4) and single.objective_.shape == (1,)
        assert model.objective_[k] == pytest.approx(single.objective_[0], rel=3 * REL)
        best = reference.solve(
            X,
            np.where(y == k, 1.0, -1.0),
            loss,
            (lower[k], upper[k]),
            alpha=0.01,
            l1_ratio=0.5,
            sample_weight=s,
        )[2]
        assert -1e-7 * best <= model.objective_[k] - best <= REL * best
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_array_equal(model.predict(X), names[scores.argmax(axis=1)])
    one = estimator(loss, bounds=(lower[0], upper[0])).fit(X, names[y])  # (p,) is for every class
    assert (one.coef_ >= lower[0]).all() and (one.coef_ <= upper[0]).all()
    two = estimator(loss, bounds=(lower[:1], upper[:1])).fit(X, y == 1)  # (1, p) with two classes
    assert (two.coef_ >= lower[:1]).all()


# Hard data: a right answer, proved, or a ConvergenceWarning, never NaN and never outside the bounds.


def settle(model, X, y):
    """Fit; True if it claims to have converged. What it claims must hold."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught), [str(w.message) for w in caught]
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert np.isfinite(model.objective_).all() and np.all(model.dual_gap_ >= 0)
    lower, upper = reference.as_bounds(model.bounds, model.n_features_in_)
    assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all()
    if not caught:
        assert np.all(model.dual_gap_ <= model.tol * model.objective_ * (1 + 1e-9) + 1e-12)
    return not caught


@every
@pytest.mark.parametrize("n, p", [(8, 60), (30, 40)])
def test_more_features_than_rows(loss, n, p):
    X, y = data(loss, n=n, p=p, seed=3)
    for bounds in ((0, None), (-0.05, 0.1)):
        model = estimator(loss, bounds=bounds, alpha=0.02)
        assert settle(model, X, y)
        best = reference.solve(X, y, loss, bounds, alpha=0.02, l1_ratio=0.5)[2]
        assert np.ravel(model.objective_)[0] - best <= REL * best


@pytest.mark.parametrize("loss", REGRESSION)
def test_one_row_and_equal_targets(loss):
    model = estimator(loss, bounds=(None, None), alpha=0.1)
    assert settle(model, [[1.0, -2.0]], [3.0])
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-6)
    epsilon = model.epsilon if loss == "epsilon_insensitive" else 0.0
    assert abs(model.intercept_ - 3.0) <= epsilon + 1e-4 and model.objective_ <= 1e-8
    X, _ = data(loss)
    for constant in (0.0, 5.0, -1e6):
        model = estimator(loss, bounds=(None, None), alpha=0.1)
        assert settle(model, X, np.full(len(X), constant))
        assert model.objective_ <= 1e-8 * max(1.0, abs(constant))
    # bounds that keep the coefficients from zero
    fixed = estimator(loss, bounds=(0.5, 0.5)).fit(X, np.zeros(len(X)))
    assert (fixed.coef_ == 0.5).all()
    assert settle(estimator(loss, bounds=(0.5, 0.5), fit_intercept=False), [[0.0]], [0.0])


@every
def test_columns_of_very_different_scales(loss):
    """The same problem in other units: bounds and coefficients are divided by what X is multiplied with."""
    X, y = data(loss)
    units = 10.0 ** np.array([-6, 6, 0, -3, 3, -1])
    plain = estimator(loss, alpha=0.0).fit(X, y)
    for container in (np.asarray, sp.csr_array):
        model = estimator(loss, alpha=0.0, bounds=(BOXES[0] / units, BOXES[1] / units))
        if settle(model, container(X * units), y):
            same(model, plain)
        assert np.all(model.objective_ <= plain.objective_ * 1.01)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_counts_with_massive_ties(quantile):
    """Hardly a target differs from another: whole faces of solutions, and kinks everywhere."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (150, 5)).astype(float)
    y = rng.poisson(np.exp(0.2 * X.sum(axis=1) - 1))
    for bounds in ((0, None), (-0.5, 0.5), (0.0, 1.0)):
        for alpha in (0.0, 0.01):
            model = BoundedRegressor("quantile", quantile=quantile, bounds=bounds, alpha=alpha, l1_ratio=1.0)
            assert settle(model, X, y)
            best = reference.solve(X, y, "quantile", bounds, alpha=alpha, l1_ratio=1.0, quantile=quantile)[2]
            assert model.objective_ - best <= REL * best
            # the optimality condition of the intercept, ties on either side
            r = y - model.predict(X)
            assert np.mean(r > 1e-4) <= 1 - quantile + 1e-9 and np.mean(r < -1e-4) <= quantile + 1e-9


@pytest.mark.parametrize("wrap", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
def test_threads_give_the_same_bits(wrap):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 80))
    y = X @ rng.standard_normal(80) + rng.standard_normal(6000)
    for model, target in ((BoundedRegressor("quantile", bounds=(0, 1)), y), (BoundedClassifier(), y > 0)):
        one, two = (clone(model).set_params(n_jobs=k).fit(wrap(X), target) for k in (1, 2))
        np.testing.assert_array_equal(one.coef_, two.coef_)
        np.testing.assert_array_equal(one.dual_gap_, two.dual_gap_)


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_probabilities_are_those_of_sgd(loss, data, request):
    """The same coefficients in SGDClassifier give the same probabilities."""
    X, y = request.getfixturevalue(data)
    ours = BoundedClassifier(loss, alpha=1e-3).fit(X, y)
    other = SGDClassifier(loss=loss).fit(X, y)
    other.coef_, other.intercept_ = ours.coef_, ours.intercept_
    # scores beyond the margins, and rows without a positive score
    wide = np.concatenate([X, 30 * X, -30 * X])
    np.testing.assert_allclose(ours.predict_proba(wide), other.predict_proba(wide), atol=1e-12)
    with np.errstate(divide="ignore"):
        expected = np.log(other.predict_proba(wide))
    likely = expected > -20
    np.testing.assert_allclose(ours.predict_log_proba(wide)[likely], expected[likely], atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(wide), other.decision_function(wide), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(wide), other.predict(wide))


def test_probabilities_are_there_for_two_losses_only(cancer):
    X, y = cancer
    for loss in CLASSIFICATION:
        model = BoundedClassifier(loss, alpha=0.1)
        expected = loss in ("log_loss", "modified_huber")
        for name in ("predict_proba", "predict_log_proba"):
            assert hasattr(model, name) == expected
            assert hasattr(model.fit(X, y), name) == expected
    with pytest.raises(AttributeError, match=r"predict_proba|hinge"):
        BoundedClassifier("hinge").fit(X, y).predict_proba(X)
