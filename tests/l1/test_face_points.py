"""Dual points on the active face: valid bounds, and early ones at weak penalties."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import GLMOBA, L1LogisticOBA
from sparsekit._l1.solver.face_points import face_points, factorized, largest_part
from sparsekit.optimize import LogisticLoss, minimize_oba


def table(seed, n=6000, sizes=(40,) * 12):
    """A one-hot table of fields with rare levels, and labels by a logistic draw."""
    rng = np.random.default_rng(seed)
    columns = []
    for start, size in zip(np.cumsum([0, *sizes]), sizes):
        weights = np.cumsum(1.0 / np.arange(1, size + 1))
        columns.append(start + np.searchsorted(weights / weights[-1], rng.random(n)))
    indices = np.stack(columns, axis=1).ravel()
    X = sp.csr_array((np.ones(indices.size), indices, np.arange(n + 1) * len(sizes)), shape=(n, sum(sizes)))
    scores = X @ rng.standard_normal(X.shape[1])
    return X, (rng.random(n) < 1 / (1 + np.exp(-scores))).astype(int)


@pytest.mark.parametrize("layout", ["csr", "csc", "dense"])
def test_one_hot_tables_are_certified_in_few_iterations(layout):
    X, y = table(0)
    X = X.toarray() if layout == "dense" else X.asformat(layout)
    model = L1LogisticOBA(C=1e4).fit(X, y)
    assert model.n_iter_[0] <= 14  # 25 by scaling alone
    exact = L1LogisticOBA(C=1e4, tol=1e-10).fit(X, y)
    assert model.objective_ - exact.objective_ <= model.dual_gap_ <= 1e-4 * model.objective_


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


@pytest.mark.parametrize("family", ["poisson", "gamma", "huber"])
def test_gaps_of_families_bound_the_error(family):
    X, _ = table(1, n=1500, sizes=(3, 9, 30))
    rng = np.random.default_rng(1)
    mean = np.exp(0.5 * (X @ rng.standard_normal(X.shape[1])))
    y = {"poisson": rng.poisson(mean), "gamma": mean * rng.gamma(2.0, 0.5, 1500) + 1e-3}.get(family, mean)
    exact = GLMOBA(family=family, alpha=1e-5, tol=1e-11).fit(X, y)
    model = GLMOBA(family=family, alpha=1e-5).fit(X, y)
    error = model.objective_ - exact.objective_
    assert error - 1e-11 * abs(model.objective_) <= model.dual_gap_ <= 1e-4 * abs(model.objective_)


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


def test_there_is_no_point_where_it_does_not_pay():
    rng = np.random.default_rng(4)
    for shape, products in (((30, 60), np.inf), ((3000, 400), 0)):
        X, y = rng.standard_normal(shape), np.where(rng.random(shape[0]) < 0.5, 1.0, -1.0)
        loss = LogisticLoss(X, y)
        problem, x = loss.problem(), np.full(shape[1], 1e-3)
        problem.start(x)
        l1 = loss.l1_vector(1e-3)
        assert not list(face_points(loss, problem, x, l1, 0.0 * l1, problem.gradient(), products))


def test_a_system_that_is_not_positive_has_no_solver():
    raised = np.ones(2)
    assert factorized(np.array([[1.0, 2.0], [2.0, 1.0]]), raised) is None
    assert factorized(np.array([[1.0, 0.0], [0.0, 0.0]]), raised) is None
    assert factorized(np.array([[1.0, np.nan], [np.nan, 1.0]]), raised) is None
    H = np.array([[4.0, 1.0], [1.0, 3.0]])
    expected = np.linalg.solve(H, np.ones(2))
    np.testing.assert_allclose(factorized(H, raised)(np.ones(2)), expected, rtol=1e-6)


def test_the_largest_part_reaches_a_bound():
    start, end, bound = np.array([0.5, -0.2, 1.0]), np.array([2.5, -0.9, 1.0]), np.array([1.0, 1.0, 1.0])
    part = largest_part(start, end, bound)
    assert part == pytest.approx(0.25)
    assert largest_part(end, start, bound) == 0.0
    assert largest_part(start, start, bound) == 1.0
