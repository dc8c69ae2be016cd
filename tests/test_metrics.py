"""kkt_violation against the definition and against problems with a known solution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso

from sparsekit.metrics import kkt_violation

numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, numbers, st.floats(0, 1e6)), min_size=1, max_size=5))
def test_is_the_largest_median(rows):
    x, g, l1 = np.array(rows).T
    expected = max(abs(float(np.median([g_j - l_j, x_j, g_j + l_j]))) for x_j, g_j, l_j in zip(x, g, l1))
    assert kkt_violation(x, g, l1) == expected


def test_zero_exactly_at_the_minimiser_of_a_separable_problem():
    a = np.array([3.0, -2.0, 0.5, 1.0])  # min 1/2 |x - a|^2 + |x|_1: soft thresholding
    x = np.sign(a) * np.maximum(np.abs(a) - 1.0, 0.0)
    assert kkt_violation(x, x - a, 1.0) == 0.0
    for j in range(4):
        moved = x.copy()
        moved[j] += 0.01
        assert kkt_violation(moved, moved - a, 1.0) == pytest.approx(0.01)


def test_scikit_learn_lasso_is_nearly_optimal():
    X, y = load_diabetes(return_X_y=True)
    y = y - y.mean()
    model = Lasso(0.5, tol=1e-12, max_iter=100000, fit_intercept=False).fit(X, y)
    gradient = X.T @ (X @ model.coef_ - y) / len(y)
    assert kkt_violation(model.coef_, gradient, 0.5) < 1e-8
    assert kkt_violation(model.coef_ * 1.01, gradient, 0.4) > 0.05


def test_edge_cases_and_errors():
    assert kkt_violation([], [], 1.0) == 0.0
    assert kkt_violation([[0.0], [1.0]], [[0.5], [0.25]], 0.0) == 0.5
    with pytest.raises(ValueError, match="same shape"):
        kkt_violation([1.0, 2.0], [1.0], 1.0)
    with pytest.raises(ValueError, match="l1 must be a number"):
        kkt_violation([1.0, 2.0], [1.0, 1.0], [1.0])
    with pytest.raises(ValueError, match="l1 must be >= 0"):
        kkt_violation([1.0], [1.0], -1.0)
