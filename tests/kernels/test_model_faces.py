"""The quadratic model on a face: products with a copy of its matrix, and the first step of a path."""

from dataclasses import replace

import numpy as np
import pytest

from sparsekit import lasso_path
from sparsekit._cython.l1._model import solve_model
from sparsekit._cython.shared._operators import GramOperator
from sparsekit._l1.solver.minimise_model import Effort


@pytest.mark.parametrize("m", [101, 102, 103, 104])
def test_conjugate_gradients_on_a_face_reach_the_solution(m):
    rng = np.random.default_rng(m)
    A = rng.standard_normal((100 * m, m + 7))
    G, ridge, fixed = A.T @ A, 1e-3, np.arange(3, m + 7, m // 7)[:7]  # the face is no block of the matrix
    free = np.setdiff1d(np.arange(m + 7), fixed)
    H = G[np.ix_(free, free)] + ridge * np.diag(np.diag(G)[free])
    l1, x0, g, step = np.zeros(m + 7), np.zeros(m + 7), np.zeros(m + 7), rng.uniform(-1.0, 1.0, m)
    l1[fixed], x0[free], g[free] = 1e6, rng.choice([-10.0, 10.0], m), -H @ step
    x = np.empty(m + 7)
    effort = Effort(1, cg_tol=1e-12, largest_factor=m, sweeps=0)
    *_, n_cg, n_direct = solve_model(GramOperator(G, ridge), x0, g, l1, x, effort)
    assert n_cg > 0 and n_direct == 0
    np.testing.assert_allclose(x[free] - x0[free], step, atol=1e-10)
    assert not x[fixed].any()


def correlated():
    """A Gram matrix (30, 30) of correlated columns, and products with a target."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((90, 30)) + rng.standard_normal((90, 1))
    return A.T @ A, rng.standard_normal(30)


def falling_penalty():
    """A model at the solution of a penalty, whose own penalty is half of it, where columns join."""
    G, b = correlated()
    l1, x = np.full(30, 0.5 * np.abs(b).max()), np.empty(30)
    solve_model(GramOperator(G, 0.0), np.zeros(30), -b, l1, x, Effort(50, forcing=1e-12, largest_factor=30))
    return G, x, G @ x - b, 0.5 * l1


def test_the_first_step_stays_on_the_support():
    G, x, g, l1 = falling_penalty()
    support = np.flatnonzero(x)
    outside = np.setdiff1d(np.arange(30), support)
    assert support.size and (np.abs(g[outside]) > l1[outside]).any()
    new = np.empty(30)
    solve_model(GramOperator(G, 0.0), x, g, l1, new, Effort(1, largest_factor=30, sweeps=0, on_support=True))
    assert not new[outside].any()
    # the minimiser on the orthant's face, where no sign changes
    step = np.linalg.solve(G[np.ix_(support, support)], g[support] + l1[support] * np.sign(x[support]))
    assert (np.sign(x[support] - step) == np.sign(x[support])).all()
    np.testing.assert_allclose(new[support], x[support] - step, rtol=1e-9)
    solve_model(GramOperator(G, 0.0), x, g, l1, new, Effort(1, largest_factor=30, sweeps=0))
    assert new[outside].any()


def test_later_steps_leave_the_support():
    G, x, g, l1 = falling_penalty()
    found, expected = np.empty(30), np.empty(30)
    effort = Effort(50, forcing=1e-12, largest_factor=30, sweeps=0)
    solve_model(GramOperator(G, 0.0), x, g, l1, found, replace(effort, on_support=True))
    solve_model(GramOperator(G, 0.0), x, g, l1, expected, effort)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_without_a_support_the_first_step_leaves_zero():
    G, b = correlated()
    l1, x = np.full(30, 0.5 * np.abs(b).max()), np.empty(30)
    solve_model(
        GramOperator(G, 0.0), np.zeros(30), -b, l1, x, Effort(1, largest_factor=30, sweeps=0, on_support=True)
    )
    assert x.any()


def test_others_enter_where_the_support_is_solved():
    x, g, l1 = np.array([1.0, 0.0]), np.array([-0.5, -2.0]), np.array([0.5, 0.5])
    new = np.empty(2)
    solve_model(GramOperator(np.eye(2), 0.0), x, g, l1, new, Effort(10, largest_factor=30, on_support=True))
    np.testing.assert_allclose(new, [1.0, 1.5], rtol=1e-12)


def test_a_long_path_over_collinear_columns_needs_about_a_model_a_penalty():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 150))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(200)
    path = lasso_path(X + 5.0 * rng.standard_normal((200, 1)), y, alphas=1750)
    assert not path.statuses.any() and path.n_iters.max() <= 3
