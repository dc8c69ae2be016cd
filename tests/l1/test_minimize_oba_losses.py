"""minimize_oba with a user's own loss through the protocol, and with L-BFGS for second derivatives."""

import numpy as np
import pytest
import reference_oba as ref
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference_oba import small_problem
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from test_minimize_oba import LOSSES, check_certificate

from sparsekit._l1.losses.losses import LeastSquaresLoss
from sparsekit._l1.solver.oba import minimize_oba


class Huber:
    """sum_i h(x_i.w - y_i), h the pseudo-Huber loss sqrt(1 + r^2) - 1: only the protocol, no base class."""

    def __init__(self, X, y):
        self.X, self.y = X, y
        self.n_variables = X.shape[1]
        self.products = 0

    def _root(self, x):
        residual = self.X @ x - self.y
        return residual, np.sqrt(1 + residual**2)

    def value(self, x):
        return float((self._root(x)[1] - 1).sum())

    def gradient(self, x):
        residual, root = self._root(x)
        return self.X.T @ (residual / root)

    def hessian_product(self, x, subset, v):
        self.products += 1
        part = self.X[:, subset]
        return part.T @ ((part @ v) / self._root(x)[1] ** 3)


@pytest.fixture(scope="module")
def huber():
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    smooth = ref._linear(
        X,
        None,
        False,
        value=lambda z: np.sqrt(1 + (z - y) ** 2) - 1,
        slope=lambda z: (z - y) / np.sqrt(1 + (z - y) ** 2),
        curvature=lambda z: (1 + (z - y) ** 2) ** -1.5,
        curvature_bound=1.0,
    )
    return X, y, smooth


@pytest.mark.parametrize("hessian", ["exact", "lbfgs"])
def test_a_users_loss_through_the_protocol(huber, hessian):
    X, y, smooth = huber
    loss = Huber(X, y)
    l1 = np.full(X.shape[1], 15.0)
    l1[2] = 0.0
    best, _ = ref.oba(smooth, l1)
    result = minimize_oba(loss, l1, tol=1e-8, hessian=hessian)
    assert result.status == 0
    check_certificate(result, smooth, l1)
    assert_allclose(result.x, best, atol=1e-5)
    assert np.isnan(result.dual_gap)
    # second derivatives are what "lbfgs" does without
    assert (loss.products == 0) == (hessian == "lbfgs")


def test_an_incomplete_loss_is_named():
    class Incomplete:
        n_variables = 3

        def value(self, x):
            return 0.0

    with pytest.raises(TypeError, match="gradient"):
        minimize_oba(Incomplete(), 1.0)


@given(st.integers(0, 1000), st.sampled_from(list(LOSSES)))
def test_protocol_of_the_losses_of_this_package(seed, kind):
    X, y, s, smooth, _ = small_problem(seed, kind, fit_intercept=True, weighted=True)
    loss = LOSSES[kind][0](X, y, s, fit_intercept=True)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(smooth.size)
    assert_allclose(loss.value(x), smooth.value(x), rtol=1e-10)
    assert_allclose(loss.gradient(x), smooth.grad(x), rtol=1e-8, atol=1e-10)
    subset = np.flatnonzero(rng.random(smooth.size) < 0.6)
    v = rng.standard_normal(len(subset))
    expected = smooth.hess(x)[np.ix_(subset, subset)] @ v
    assert_allclose(loss.hessian_product(x, subset, v), expected, rtol=1e-7, atol=1e-9)
    rows = sp.csr_array(X)
    halves = np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr
    loss = LOSSES[kind][0](sp.csr_array(halves, shape=X.shape), y, s, fit_intercept=True)
    assert_allclose(loss.hessian_product(x, subset, v), expected, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(\d+,\); got \(99,\)"):
        LOSSES[kind][0](X, y, np.ones(99))


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200])
def test_the_gap_of_weights_whose_squares_are_no_numbers(scale):
    """The dual's squares were zero, and the gap was minus the objective."""
    rng = np.random.default_rng(0)
    X, y, s = (
        rng.standard_normal((6, 3)),
        np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0]),
        rng.uniform(0.5, 2.0, 6),
    )
    plain, found = (minimize_oba(LeastSquaresLoss(X, y, s * c), 0.5 * c) for c in (1.0, scale))
    # both are within tol
    assert 0 <= plain.dual_gap <= 1e-4 * plain.fun
    assert found.dual_gap / scale == pytest.approx(plain.dual_gap, rel=1e-3, abs=1e-4 * plain.fun)
    free = minimize_oba(LeastSquaresLoss(X, y, s * 1e-300), 0.1)
    assert 0 <= free.dual_gap <= 1e-9 * free.fun and not free.x.any()
