"""Starts of bounded linear models with one row deep in the straight part of its loss."""

import numpy as np
import pytest

from sparsekit._bounded.losses.losses import classification_loss, regression_loss
from sparsekit._bounded.losses.problem import BoundedProblem
from sparsekit._bounded.solver.minimize_bounded import minimize_bounded
from sparsekit._bounded.solver.run import BoundedOptions

SMOOTH = ["log_loss", "squared_hinge", "modified_huber", "huber", "squared"]
KINKED = ["hinge", "absolute", "quantile", "epsilon_insensitive"]
OF_CLASSES = ("log_loss", "squared_hinge", "modified_huber", "hinge")


def far_problem(name, alpha, others):
    """(fresh problem, start): the first feature is the first row's own, or almost; its margin is -1000."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((300, 10)), rng.standard_normal(10)
    w[0] = 0.0
    s = np.full(300, 1.0 / 300)
    if name in OF_CLASSES:
        y = np.sign(1.5 * X @ w + rng.logistic(size=300))
        loss = classification_loss(name, y, s)
    else:
        y = X @ w + rng.standard_normal(300)
        loss = regression_loss(name, y, s, quantile=0.3, epsilon=0.5)
    X[:, 0] *= others
    X[0, 0] = 1.0
    start = np.zeros(10)
    start[0] = -1000.0 * (y[0] if name in OF_CLASSES else 1.0)
    box = np.full(10, -np.inf), np.full(10, np.inf)
    return lambda: BoundedProblem(X, loss, *box, 0.0, alpha, fit_intercept=True), start


@pytest.mark.parametrize("name", SMOOTH + KINKED)
@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("others", [0.0, 1e-3])
def test_a_row_far_on_the_wrong_side_comes_back(name, alpha, others):
    make, start = far_problem(name, alpha, others)
    cold = minimize_bounded(make(), np.zeros(10), 0.0, BoundedOptions())
    far = minimize_bounded(make(), start, 0.0, BoundedOptions())
    assert far.status == cold.status == 0
    # both are certain to some digits
    assert far.fun == pytest.approx(cold.fun, rel=1e-3, abs=1e-9)
    # losses with kinks are smoothed in continuation steps, from any initial point
    assert far.nit <= (12 if name in SMOOTH else max(3 * cold.nit, 100))
