"""The column store, its Hessian operator and its coordinate descent against plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_kernels import _matrix

from sparsekit._cython.l1._model import solve_model
from sparsekit._cython.shared._columns import ColumnOperator, columns_from_csr
from sparsekit._cython.shared._rows import ModelRows, RowOperator
from sparsekit._l1.solver.minimise_model import Effort

HEIGHTS = [1, 3, 7, 65536]
SHAPES = [(1, 1), (10, 4), (37, 20), (50, 3), (21, 60)]


def _data(n, p, seed=0, dtype=np.float64, index=np.int32, density=0.3):
    """CSR with empty rows and columns, and row weights of which some are zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
    A[1::4], A[:, 2::5] = 0.0, 0.0
    X = sp.csr_matrix(A.astype(dtype))
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    return X, rng.random(n) * (rng.random(n) < 0.9), rng


def _exact(X):
    """X as the store keeps it, so that only the order of the sums is left to rounding."""
    return X.astype(np.float32).astype(np.float64)


def _store(X, height, n_threads=1):
    counts = np.bincount(X.indices, minlength=X.shape[1]).astype(np.int64)
    return columns_from_csr(X.indptr, X.indices, X.data, X.shape[1], counts, height, n_threads)


def _operator(X, cols, d, intercept=False, ridge=0.0, height=7, n_threads=1, rows=None):
    cols = np.asarray(cols, dtype=np.int32)
    return ColumnOperator(_store(X, height, n_threads), cols, d, intercept, ridge, rows, n_threads)


def _row_operator(X, cols, d, intercept, ridge):
    rows = ModelRows(X.shape[0], X.nnz, np.array([0, X.shape[0] // 3, X.shape[0]]), 2)
    position = np.full(X.shape[1], -1, dtype=np.int32)
    position[cols] = np.arange(len(cols), dtype=np.int32)
    rows.fill(X.indptr, X.indices, X.data, position, len(cols))
    return RowOperator(rows, d, intercept, ridge)


def _compare(op, H, ridge, rng):
    diagonal = np.diag(H) / (1.0 + ridge)
    np.testing.assert_allclose(op.diag, diagonal, rtol=1e-12, atol=1e-13)
    for v in (rng.standard_normal(len(H)), rng.standard_normal(len(H)) * (rng.random(len(H)) < 0.4)):
        np.testing.assert_allclose(op.matvec(v), H @ v, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_store_and_operator(height, shape, dtype, index):
    X, d, rng = _data(*shape, dtype=dtype, index=index)
    p = shape[1]
    for n_threads in (1, 2):
        store = _store(X, height, n_threads)
        assert (store.n, store.p, store.blocks) == (*shape, -(-shape[0] // height))
        np.testing.assert_array_equal(store.counts, np.diff(X.tocsc().indptr))
    for cols in (np.arange(p), np.flatnonzero(rng.random(p) < 0.5), rng.permutation(p)[: p // 2 + 1]):
        for intercept in (False, True):
            H = _matrix(_exact(X), cols, d, intercept, 0.25)
            one, two = (_operator(X, cols, d, intercept, 0.25, height, threads) for threads in (1, 2))
            _compare(one, H, 0.25, rng)
            v = rng.standard_normal(len(H))
            np.testing.assert_array_equal(one.matvec(v), two.matvec(v))
            np.testing.assert_array_equal(one.diag, two.diag)


@pytest.mark.parametrize("n", [65535, 65536, 65537, 70001])
def test_last_row_number_of_the_highest_block(n):
    rng = np.random.default_rng(n)
    X, d = sp.random(n, 5, 0.01, format="lil", random_state=rng), rng.random(n)
    X[65534:65538], X[n - 1] = 2.0, 3.0
    X = _exact(X.tocsr())
    A = sp.hstack([X, np.ones((n, 1))]).toarray()
    for threads in (1, 2):
        op = _operator(X, np.arange(5), d, True, 0.0, 65536, threads)
        _compare(op, A.T @ (d[:, None] * A), 0.0, rng)


@pytest.mark.parametrize("shape, cols", [((0, 4), [1, 3]), ((0, 0), []), ((5, 0), []), ((5, 4), [])])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_nothing_there(shape, cols, intercept, n_threads):
    X, d, rng = _data(*shape)
    assert _store(X, 7, n_threads).counts.shape == (shape[1],)
    op = _operator(X, cols, d, intercept, 0.5, 7, n_threads)
    _compare(op, _matrix(X, np.array(cols, dtype=int), d, intercept, 0.5), 0.5, rng)
    g, m = 3.0 * np.ones(op.size), op.size
    x, _, _ = _solve(op, np.zeros(m), g, np.ones(m), cycles=5)
    if intercept and shape[0]:  # one variable: 3 x + 1.5 x^2 sum(d) / 2 + |x|
        np.testing.assert_allclose(x, [-2.0 / (1.5 * d.sum())], rtol=1e-12)
    else:
        assert np.all(np.isfinite(x))


@pytest.mark.parametrize("height", [-1, 0, 65537, 2**33])
def test_height_out_of_range(height):
    with pytest.raises(ValueError, match=f"height must be from 1 to 65536; got {height}"):
        _store(_data(5, 3)[0], height)


@pytest.mark.parametrize("intercept", [False, True])
def test_products_may_go_by_rows(intercept):
    X, d, rng = _data(37, 20)
    cols = np.flatnonzero(rng.random(20) < 0.6)
    rows = _row_operator(X, cols, d, intercept, 0.5)
    op = _operator(X, cols, d, intercept, 0.5, rows=rows)
    _compare(op, _matrix(_exact(X), cols, d, intercept, 0.5), 0.5, rng)
    v = rng.standard_normal(op.size)
    np.testing.assert_array_equal(op.matvec(v), rows.matvec(v))
    assert op.n_products == 3 and rows.n_products == 4


def _solve(op, x0, g0, l1, cycles=100, sweeps=3, forcing=1e-11, *, H=None):
    """Minimiser, gradient of the quadratic there, and the decrease; ``forcing`` inf: sweeps only."""
    m = len(x0)
    x = np.empty(m)
    effort = Effort(cycles, forcing, cg_tol=1e-3, cg_max=200, sweeps=sweeps)
    decrease = solve_model(op, x0, g0, l1, x, effort)[0]
    return x, None if H is None else g0 + H @ (x - x0), decrease


def _descend(H, x0, g0, l1, cycles):
    """Cyclic coordinate descent, the slow and obvious way."""
    x = x0.copy()
    for _ in range(cycles):
        before = x.copy()
        for j in np.flatnonzero(np.diag(H) > 0):
            t = H[j, j] * x[j] - (g0[j] + H[j] @ (x - x0))
            x[j] = np.sign(t) * max(abs(t) - l1[j], 0.0) / H[j, j]
        if np.abs(x - before).max() <= 1e-13:
            break
    return x


def _descend_with_intercept(H, x0, g0, l1, ridge):
    """One sweep in which the last variable is where it is best after every move, but for the ridge."""
    x, plain = x0.copy(), H - ridge / (1 + ridge) * np.diag(np.diag(H))

    def settle():
        x[-1] = x0[-1] - (g0[-1] + plain[-1, :-1] @ (x - x0)[:-1]) / plain[-1, -1]

    settle()
    for j in np.flatnonzero(np.diag(H)[:-1] > 0):
        left = plain[j, j] - plain[j, -1] ** 2 / plain[-1, -1]
        h = ridge * plain[j, j] + max(left, 1e-3 * plain[j, j])
        t = h * x[j] - (g0[j] + (H[j] @ (x - x0)))
        x[j] = np.sign(t) * max(abs(t) - l1[j], 0.0) / h
        settle()
    return x


def _quadratic(seed, intercept, ridge):
    """Strongly convex on the columns that are not empty; the start has zeros and non-zeros."""
    X, d, rng = _data(120, 15, seed, density=0.5)
    X = _exact(abs(X))  # columns of one sign are correlated, so that a few sweeps are not enough
    cols = np.flatnonzero(rng.random(15) < 0.8)
    H = _matrix(X, cols, d + 0.1, intercept, ridge)
    m = len(H)
    x0 = rng.standard_normal(m) * (rng.random(m) < 0.5) * (np.diag(H) > 0)
    g0 = 20 * rng.standard_normal(m) * (np.diag(H) > 0)
    l1 = rng.uniform(1, 15, m) * (rng.random(m) < 0.8)
    return X, cols, d + 0.1, H, x0, g0, l1


def _check(H, x0, g0, l1, found, reference, tol):
    x, grad, decrease = found
    np.testing.assert_allclose(grad, g0 + H @ (x - x0), atol=1e-10)
    np.testing.assert_allclose(x, reference, atol=tol)
    q = g0 @ (x - x0) + 0.5 * (x - x0) @ H @ (x - x0) + l1 @ (np.abs(x) - np.abs(x0))
    assert decrease == pytest.approx(-q, rel=1e-10) and decrease > 0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_sweeps_are_coordinate_descent(seed, ridge, intercept):
    X, cols, d, H, x0, g0, l1 = _quadratic(seed, intercept, ridge)
    for height in (7, 65536):
        op = _operator(X, cols, d, intercept, ridge, height)
        found = _solve(op, x0, g0, l1, 1, 1, np.inf, H=H)
        assert op.n_sweeps == 1 and op.n_products == 0
        if intercept and l1[-1] == 0:  # a free one follows every move of the others
            swept = _descend_with_intercept(H, x0, g0, l1, ridge)
        else:
            swept = _descend(H, x0, g0, l1, 1)
        _check(H, x0, g0, l1, found, swept, 1e-12)
        # left to themselves, they go on from their own gradient to the optimum
        x, grad, decrease = found
        while decrease > 1e-18:
            x, grad, decrease = _solve(op, x, grad, l1, 1, 4, np.inf, H=H)
        assert op.n_products == 0 and op.n_sweeps < 2000
        np.testing.assert_allclose(x, _descend(H, x0, g0, l1, 2000), atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_model_reaches_the_optimum(seed, ridge, intercept):
    X, cols, d, H, x0, g0, l1 = _quadratic(seed, intercept, ridge)
    best = _descend(H, x0, g0, l1, 2000)
    assert np.any(best == 0) and np.any(best != 0)
    for sweeps in (1, 3):
        one, two = (_operator(X, cols, d, intercept, ridge, 7, threads) for threads in (1, 2))
        x, grad, decrease = _solve(one, x0, g0, l1, sweeps=sweeps, H=H)
        assert one.n_sweeps > 0
        _check(H, x0, g0, l1, (x, grad, decrease), best, 1e-8)
        residual = np.median([grad - l1, x, grad + l1], axis=0)
        assert np.abs(residual).max() <= 1e-8 * np.abs(g0).max()
        for a, b in zip((x, grad, decrease), _solve(two, x0, g0, l1, sweeps=sweeps, H=H)):
            np.testing.assert_array_equal(a, b)
    by_rows = _operator(X, cols, d, intercept, ridge, rows=_row_operator(X, cols, d, intercept, ridge))
    _check(H, x0, g0, l1, _solve(by_rows, x0, g0, l1, H=H), best, 1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_later_sweeps_move_what_is_not_idle(seed):
    X, cols, d, H, x0, *_ = _quadratic(seed, False, 0.0)
    g0 = 40.0 * np.ones(len(H))  # far from the optimum: hardly a column may rest at zero
    found, *_ = _solve(_operator(X, cols, d), x0, g0, np.zeros(len(H)), 1, sweeps=4, forcing=np.inf)
    np.testing.assert_allclose(found, _descend(H, x0, g0, np.zeros(len(H)), 4), atol=1e-9)
