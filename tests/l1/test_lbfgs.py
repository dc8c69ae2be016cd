"""L-BFGS: the compact operator against dense BFGS, its reduced solve, and OBA with it."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference_nqn import bfgs_matrix

from sparsekit._cython.shared import _pairs
from sparsekit._l1.solver.quasi_newton import QuasiNewtonProblem
from sparsekit._linalg.lbfgs import add_pair, new_pairs, operator
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, ProbitLoss, minimize_oba


def quadratic_pairs(rng, n, count, sparse=False):
    """Steps of mixed length and the gradient changes of a convex quadratic."""
    A = rng.standard_normal((n, n + 5))
    H = A @ A.T / n
    pairs = []
    for _ in range(count):
        s = rng.standard_normal(n) * 10.0 ** rng.uniform(-4, 2)
        if sparse:
            s *= rng.random(n) < 0.3
            s[rng.integers(n)] = 1.0
        pairs.append((s, H @ s))
    return pairs


def add(memory, s, y):
    zero = np.zeros(len(s))
    return add_pair(memory, zero, s, zero, y)


def filled(pairs, n, size):
    memory = new_pairs(n, size, np.empty(0))
    for s, y in pairs:
        assert add(memory, s, y)
    return memory


def as_matrix(operator):
    return np.column_stack([operator.matvec(e) for e in np.eye(operator.size)])


@pytest.mark.parametrize("count, memory", [(0, 4), (1, 4), (4, 4), (11, 4), (7, 1), (30, 25)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("capacity", [64, 2])  # the second one has the arrays grow
def test_operator_equals_dense_recursion(count, memory, sparse, capacity, monkeypatch):
    monkeypatch.setattr(_pairs, "INITIAL_CAPACITY", capacity)
    rng = np.random.default_rng(count + 100 * memory)
    n = 20
    pairs = quadratic_pairs(rng, n, count, sparse)
    lbfgs = filled(pairs, n, memory)
    assert len(lbfgs) == min(count, memory)
    expected = bfgs_matrix(pairs[-memory:], 1.7, n)
    got = as_matrix(operator(lbfgs, theta=1.7))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    # rows only, in any order, and the ridge in units of theta
    rows = rng.permutation(n)[:9]
    got = as_matrix(operator(lbfgs, rows, 1.7, 0.25))
    expected = expected[np.ix_(rows, rows)] + 0.25 * 1.7 * np.eye(9)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("ridge", [0.0, 1e-8, 0.5])
@pytest.mark.parametrize("memory", [1, 5, 12])
def test_reduced_solve_equals_dense_solve(memory, ridge):
    rng = np.random.default_rng(memory)
    n = 40
    lbfgs = filled(quadratic_pairs(rng, n, 15), n, memory)
    rows = np.sort(rng.permutation(n)[:30])
    block = operator(lbfgs, rows, ridge=ridge)
    B = as_matrix(block)
    for size in (1, 2, 7, 18, 30):
        free = rng.permutation(30)[:size]
        rhs = rng.standard_normal(size)
        expected = np.linalg.solve(B[np.ix_(free, free)], rhs)
        got = block.solve(rhs, free)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_solve_without_pairs_and_on_nothing():
    multiple = operator(new_pairs(3, 2, np.empty(0)), theta=4.0)
    np.testing.assert_allclose(multiple.solve([1.0, 2.0], [0, 2]), [0.25, 0.5])
    np.testing.assert_allclose(multiple.matvec(np.array([1.0, 2.0, 3.0])), [4.0, 8.0, 12.0])
    assert multiple.solve(np.empty(0), np.empty(0, dtype=int)).shape == (0,)
    with pytest.raises(ValueError, match="length"):
        multiple.solve([1.0], [0, 1])
    with pytest.raises(ValueError, match="free"):
        multiple.solve([1.0], [3])


def test_pairs_without_curvature_are_skipped():
    lbfgs = new_pairs(3, 2, np.empty(0))
    s = np.array([1.0, 0.0, 0.0])
    bad = [-s, np.array([0.0, 1.0, 0.0]), np.zeros(3), np.array([1e-9, 1.0, 0.0]), np.full(3, np.nan)]
    for y in (*bad, np.array([np.inf, 0.0, 0.0])):
        assert not add(lbfgs, s, y)
    assert not add(lbfgs, np.zeros(3), s)
    assert len(lbfgs) == 0
    assert add(lbfgs, s, np.array([1e-7, 1.0, 0.0]))
    lbfgs.clear()
    assert len(lbfgs) == 0
    with pytest.raises(ValueError, match="theta"):
        operator(lbfgs)
    with pytest.raises(ValueError, match="theta"):
        operator(lbfgs, theta=0.0)


def data(seed=0, n=150, p=40):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.logspace(-0.5, 0.5, p)
    z = X[:, :6] @ rng.standard_normal(6) * 2 + 0.5 + rng.standard_normal(n)
    return X, z, np.where(z > 0, 1.0, -1.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "float32"])
@pytest.mark.parametrize("cls", [LogisticLoss, LeastSquaresLoss, ProbitLoss])
def test_same_optimum_as_exact(cls, kind, intercept):
    X, z, y = data()
    X = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "float32": np.float32}.get(kind, np.asarray)(X)
    loss = cls(X, z if cls is LeastSquaresLoss else y, fit_intercept=intercept)
    g0 = np.abs(loss.gradient(np.zeros(loss.n_variables)))[:40].max()
    for share in (0.3, 0.02):
        l1 = loss.l1_vector(share * g0)
        exact = minimize_oba(loss, l1, tol=1e-6 if kind == "float32" else 1e-9)
        got = minimize_oba(loss, l1, hessian="lbfgs", tol=1e-6, max_iter=500)
        assert exact.success and got.success, got.message
        assert got.optimality <= 1e-6
        assert got.fun == pytest.approx(exact.fun, rel=1e-7)
        np.testing.assert_allclose(got.x, exact.x, atol=1e-3 * np.abs(exact.x).max())
        assert got.n_direct > 0 and got.n_cg == 0
        assert np.isnan(got.dual_gap) == np.isnan(exact.dual_gap)


def test_singular_pairs_are_forgotten():
    problem = LeastSquaresLoss(*data()[:2]).problem()
    wrapped = QuasiNewtonProblem(problem, 3)
    wrapped.start(np.zeros(40))
    g = wrapped.gradient()
    wrapped.observe(np.zeros(40), g)
    wrapped.observe(np.ones(40), g + np.arange(1.0, 41.0))
    assert len(wrapped.pairs) == 1
    zero, tiny, one = np.zeros(40), np.full(40, 1e-200), np.ones(40)
    wrapped.pairs.put(zero, tiny, zero, tiny)  # whose products vanish
    wrapped.pairs.put(zero, one, zero, one)
    model, _ = wrapped.model(np.arange(40), 0.0)
    assert len(wrapped.pairs) == 0
    np.testing.assert_allclose(as_matrix(model), wrapped.lipschitz() * np.eye(40))
