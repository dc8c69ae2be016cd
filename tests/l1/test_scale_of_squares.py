"""Least squares whose objective is tiny, in itself or relative to the squares of y.

The duality gap is relative to that objective.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from sparsekit import LassoOBA, lasso_path
from sparsekit.optimize import LeastSquaresLoss, minimize_oba

TOL = 1e-3


def data(n=60, p=10):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) + 2.0 * rng.standard_normal((n, 1))
    return X, X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_a_gap_is_relative_to_its_objective(scale, positive):
    X, y = data()
    alphas = scale * np.geomspace(1.0, 1e-4, 9)
    for alpha in alphas:
        model = LassoOBA(alpha, positive=positive, tol=TOL).fit(X, scale * y)
        assert model.dual_gap_ <= 10 * TOL * model.objective_
    path = lasso_path(X, scale * y, alphas=alphas, positive=positive, tol=TOL)
    assert (path.dual_gaps <= 10 * TOL * path.objectives).all()


def test_squares_that_are_left_may_be_far_below_those_of_y():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130, 12))
    y = X[:, :3].sum(axis=1)
    y[0] += 1e-6
    loss = LeastSquaresLoss(X, y)
    found = minimize_oba(loss, 0.0, tol=1e-12)
    best = y - X @ LinearRegression(fit_intercept=False).fit(X, y).coef_
    assert_allclose(found.fun, 0.5 * best @ best, rtol=1e-6)
    assert_allclose(found.fun, loss.value(found.x), rtol=1e-9)
