"""Dual points on the active face: valid bounds, and early ones at weak penalties."""

import numpy as np
import pytest

from sparsekit import L1LogisticOBA
from sparsekit._l1.solver.face_points import face_points
from sparsekit.optimize import LogisticLoss, minimize_oba


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_gaps_bound_the_error(seed, dtype, l1_ratio):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 12)) + 3.0 * rng.standard_normal((300, 1))
    y = rng.random(300) < 1 / (1 + np.exp(-X @ rng.standard_normal(12)))
    X, weight, offset = X.astype(dtype), rng.uniform(0.1, 2.0, 300), rng.standard_normal(300)
    settings = dict(C=10.0 ** rng.uniform(-1, 4), l1_ratio=l1_ratio, fit_intercept=bool(seed % 2))
    exact = L1LogisticOBA(tol=1e-12, **settings).fit(X, y, weight, offset=offset)
    for tol in (1e-2, 1e-3, 1e-5):
        model = L1LogisticOBA(tol=tol, **settings).fit(X, y, weight, offset=offset)
        error = model.objective_ - exact.objective_
        assert error - 1e-11 * model.objective_ <= model.dual_gap_ <= 10 * tol * model.objective_


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_points_have_the_gradient_of_a_solution(l2):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((200, 6)), np.where(rng.random(200) < 0.5, 1.0, -1.0)
    loss = LogisticLoss(X, y, fit_intercept=True)
    l1, l2 = loss.l1_vector(0.5), loss.l1_vector(l2)
    x = 1.05 * minimize_oba(loss, l1, l2=l2).x
    problem = loss.problem()
    problem.start(x)
    problem.n_rows = 200
    theta, gradient = next(face_points(loss, problem, x, l1, l2, problem.gradient(), np.inf))
    np.testing.assert_allclose(gradient[:6], X.T @ theta, atol=1e-12)
    # by hand: a Newton step of the elastic net on the face, with the derivatives to first order
    A, active = np.column_stack([X, np.ones(200)]), np.flatnonzero((x != 0) | (l1 == 0))
    u, d = problem.state.u, problem.state.d
    left = A.T @ u + l2 * x + l1 * np.sign(x)
    H = A[:, active].T @ (d[:, None] * A[:, active]) + np.diag(l2[active])
    expected = u - d * (A[:, active] @ np.linalg.solve(H, left[active]))
    np.testing.assert_allclose(theta, expected, rtol=1e-5, atol=1e-8)
