"""Columns whose mean is large relative to their spread: the fit is that of the columns less their means."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import L1LogisticOBA, L1LogisticOBACV, l1_logistic_path

# three columns to be centred and two that are not
SHIFT = np.array([1e6, -1e5, 0.0, 4096.0, 3.0])


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def _problem(n_classes, n=120):
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(n, len(SHIFT))), 2)
    scores = X @ rng.normal(size=(len(SHIFT), n_classes)) + rng.gumbel(size=(n, n_classes))
    weight = np.where(np.arange(n) % 7 == 0, 0.0, rng.uniform(0.5, 2.0, n))
    offset = rng.normal(size=n if n_classes == 2 else (n, n_classes))
    return X, scores.argmax(axis=1), weight, offset


def test_a_column_far_from_zero_gets_the_objective_of_the_column_itself():
    x = np.array([[-0.31], [-0.91], [1.32], [-0.19], [-0.1], [-0.13], [1.13], [-0.47]])
    y = [0, 1, 2, 0, 0, 2, 2, 2]
    for shift in (0.0, 1e5, 1e8):
        model = L1LogisticOBA(C=np.inf).fit(x + shift, y)
        assert model.objective_ == pytest.approx(3.7953219, abs=1e-7)
        assert model.objective_ - 3.7953218 <= model.dual_gap_ + 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_a_constant_that_is_added_to_columns_changes_nothing_but_the_intercept(n_classes, C):
    X, y, weight, offset = _problem(n_classes)
    near = L1LogisticOBA(C=C, tol=1e-9).fit(X, y, weight, offset=offset)
    chances = near.predict_proba(X, offset=offset)
    for form in (np.asfortranarray, sp.csr_array, sp.csc_matrix):
        data = form(X + SHIFT)
        far = L1LogisticOBA(C=C, tol=1e-9, warm_start=True).fit(data, y, weight, offset=offset)
        np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
        np.testing.assert_allclose(far.predict_proba(data, offset=offset), chances, atol=1e-6)
        assert far.objective_ == pytest.approx(near.objective_, rel=1e-9)
        assert far.n_iter_[0] < 25
        # a warm start begins at the solution
        assert far.fit(data, y, weight, offset=offset).n_iter_[0] == 0


def test_callbacks_get_the_variables_of_the_data_as_they_are():
    X, y, *_ = _problem(2)
    seen = []
    model = L1LogisticOBA(callback=lambda found: seen.append(found.x)).fit(X + SHIFT, y)
    np.testing.assert_allclose(seen[-1], np.append(model.coef_, model.intercept_))


def test_paths_and_cross_validation_are_those_of_the_columns_less_their_means():
    X, y, weight, _ = _problem(3)
    options = {"tol": 1e-7, "penalty_weights": [0, 1, 1, 1, 1]}
    near, far = (
        l1_logistic_path(data, y, n_lambdas=4, sample_weight=weight, **options) for data in (X, X + SHIFT)
    )
    assert far.lambda_max == pytest.approx(near.lambda_max, rel=1e-7)
    np.testing.assert_allclose(far.objectives, near.objectives, rtol=1e-6)
    near, far = (
        L1LogisticOBACV(Cs=3, cv=2, scoring="neg_log_loss", **options).fit(data, y) for data in (X, X + SHIFT)
    )
    np.testing.assert_allclose(far.scores_, near.scores_, rtol=1e-3)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-3)
