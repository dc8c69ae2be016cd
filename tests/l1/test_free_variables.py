"""Duality gaps where variables have no penalty: upper bounds, and silent where nothing is left to gain."""

import warnings

import numpy as np
import pytest

from sparsekit import L1LogisticOBA
from sparsekit._l1.losses.multinomial import MultinomialLoss
from sparsekit.optimize import LogisticLoss, ProbitLoss, minimize_oba


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("first", [1, 5, 8])
def test_gaps_bound_the_error_of_columns_that_nobody_centred(n_classes, first):
    rng = np.random.default_rng(first)
    X = rng.normal(size=(40, 2))
    y = (X @ rng.normal(size=(2, n_classes)) + 2.0 * rng.gumbel(size=(40, n_classes))).argmax(axis=1)

    def loss_of(X):
        if n_classes == 2:
            return LogisticLoss(X, 2 * y - 1, fit_intercept=True)
        return MultinomialLoss(X, y, 3, fit_intercept=True)

    for l1 in (0.0, loss_of(X).l1_vector([0.0, 1.0])):
        best = minimize_oba(loss_of(X), l1, tol=1e-10).fun
        for shift in (1e2, 1e5, 10.0**first):
            found = minimize_oba(loss_of(X + shift), l1)
            assert found.dual_gap >= (found.fun - best) - 1e-9 * best
            assert found.dual_gap <= found.fun
        assert minimize_oba(loss_of(X + 10.0), l1).dual_gap <= 1e-4 * best


def test_the_objective_bounds_the_gap_of_separable_data_without_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), rng.integers(0, 2, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = L1LogisticOBA(C=np.inf).fit(X, y)
    assert model.dual_gap_ <= model.objective_ < 1e-10
    loss = ProbitLoss(X, 2.0 * y - 1.0)
    assert np.isnan(minimize_oba(loss, 1.0).dual_gap)
