"""Coordinate descent on rows of a model, and models without rows of negligible weight, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_kernels import _matrix

from sparsekit._cython.l1._model import solve_model
from sparsekit._cython.shared._operators import GramOperator
from sparsekit._cython.shared._rows import ModelRows, RowOperator
from sparsekit._l1.solver.minimise_model import Effort
from sparsekit._linalg.as_design import as_design
from sparsekit._linalg.sparse_design import NEGLIGIBLE


def _rows(X, cols, n_threads=1, parts=3):
    n, p = X.shape
    position = np.full(p, -1, dtype=np.int32)
    position[cols] = np.arange(len(cols), dtype=np.int32)
    rows = ModelRows(n, X.nnz, np.linspace(0, n, parts + 1).astype(np.intp), n_threads)
    rows.fill(X.indptr, X.indices, X.data, position, len(cols))
    return rows


def _quadratic(seed, intercept, ridge, width=15):
    """A convex quadratic with correlated columns and an empty one, its start with zeros, and its penalty."""
    rng = np.random.default_rng(seed)
    A = abs(rng.standard_normal((120, 15))) * (rng.random((120, 15)) < 0.5)
    A[1::9], A[:, 2] = 0.0, 0.0
    X = sp.csr_matrix(A.astype(np.float32).astype(np.float64))
    if width > 15:
        X = sp.hstack([X, sp.csr_matrix((120, width - 15))], format="csr")
    cols, d = np.arange(width), rng.random(120) + 0.1
    H = _matrix(X[:, :15], np.arange(15), d, intercept, ridge)
    m = len(H)
    x0 = rng.standard_normal(m) * (rng.random(m) < 0.5) * (np.diag(H) > 0)
    g0 = 20.0 * rng.standard_normal(m) * (np.diag(H) > 0)
    l1 = rng.uniform(1.0, 15.0, m) * (rng.random(m) < 0.8)
    if intercept:
        l1[-1] = 0.0 if seed % 2 else 3.0
    return X, cols, d, H, x0, g0, l1


def _descend(H, x0, g0, l1, n_sweeps, ridge, intercept, one_sided=False):
    """Sweeps of coordinate descent; a free intercept, the last variable, is minimised after every move."""
    x, plain = x0.copy(), H - ridge / (1 + ridge) * np.diag(np.diag(H))
    follows = intercept and l1[-1] == 0

    def settle():
        if follows:
            x[-1] = x0[-1] - (g0[-1] + plain[-1, :-1] @ (x - x0)[:-1]) / plain[-1, -1]

    settle()
    for k in range(n_sweeps):
        for j in np.flatnonzero(np.diag(H)[: len(x) - follows] > 0):
            if k > 0 and x[j] == 0:  # the first sweep left it there
                continue
            h = plain[j, j] * (1 + ridge)
            if follows:
                left = plain[j, j] - plain[j, -1] ** 2 / plain[-1, -1]
                h = ridge * plain[j, j] + max(left, 1e-3 * plain[j, j])
            t = h * x[j] - (g0[j] + H[j] @ (x - x0))
            x[j] = np.sign(t) * max(abs(t) - l1[j], 0.0) / h
            if one_sided and l1[j] > 0:
                x[j] = max(x[j], 0.0)
            settle()
    return x


def _sweep(operator, x0, g0, l1, n_sweeps, one_sided=False):
    x = np.empty(len(x0))
    effort = Effort(1, forcing=np.inf, sweeps=n_sweeps)
    before = operator.n_products
    decrease = solve_model(operator, x0, g0, l1, x, effort, one_sided)[0]
    assert operator.n_products - before == int(operator.intercept)  # the intercept's column of H
    return x, decrease


@pytest.mark.parametrize("n_sweeps", [1, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_are_coordinate_descent(seed, intercept, ridge, n_sweeps):
    X, cols, d, H, x0, g0, l1 = _quadratic(seed, intercept, ridge)
    for one_sided in (False, True):
        start = np.maximum(x0, 0.0) if one_sided else x0
        operator = RowOperator(_rows(X, cols), d, intercept, ridge)
        x, decrease = _sweep(operator, start, g0, l1, n_sweeps, one_sided)
        expected = _descend(H, start, g0, l1, n_sweeps, ridge, intercept, one_sided)
        np.testing.assert_allclose(x, expected, atol=1e-11)
        step = x - start
        q = g0 @ step + 0.5 * step @ H @ step + l1 @ (np.abs(x) - np.abs(start))
        assert decrease == pytest.approx(-q, rel=1e-10) and decrease > 0


def test_column_numbers_of_32_bits():
    X, cols, d, H, x0, g0, l1 = _quadratic(1, True, 0.1, width=70000)
    index = np.r_[np.arange(15), 70000]
    full = [np.zeros(70001) for _ in range(3)]
    for whole, part in zip(full, (x0, g0, l1)):
        whole[index] = part
    x, _ = _sweep(RowOperator(_rows(X, cols), d, True, 0.1), *full, 2)
    np.testing.assert_allclose(x[index], _descend(H, x0, g0, l1, 2, 0.1, True), atol=1e-11)
    assert np.count_nonzero(x) == np.count_nonzero(x[index])


@pytest.mark.parametrize("intercept", [False, True])
def test_diagonals_add_up(intercept):
    X, cols, d, H, x0, g0, l1 = _quadratic(2, intercept, 0.0)
    one, two = np.random.default_rng(0).random((2, len(H)))
    operator = RowOperator(_rows(X, cols), d, intercept, 0.0)
    operator.add_diagonal(one)
    operator.add_diagonal(two)
    H = H + np.diag(one + two)
    np.testing.assert_allclose(operator.matvec(x0), H @ x0, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(operator.diag, np.diag(H), rtol=1e-12)
    x, _ = _sweep(operator, x0, g0, l1, 3)
    np.testing.assert_allclose(x, _descend(H, x0, g0, l1, 3, 0.0, intercept), atol=1e-11)


@pytest.mark.parametrize("sweeps", [0, 3])
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_and_conjugate_gradients_reach_one_minimum(seed, sweeps):
    effort = Effort(100, forcing=1e-11, cg_tol=1e-3, sweeps=sweeps)
    X, cols, d, _, x0, g0, l1 = _quadratic(seed, True, 1e-3)
    x, exact = np.empty((2, len(x0)))
    solve_model(RowOperator(_rows(X, cols), d, True, 1e-3), x0, g0, l1, x, effort)
    G = _matrix(X, cols, d, True, 0.0)
    solve_model(GramOperator(G, 1e-3), x0, g0, l1, exact, effort)
    np.testing.assert_allclose(x, exact, atol=1e-7)


@pytest.mark.parametrize("kept", [[], [5], range(0, 120, 7), range(120)], ids=["none", "one", "some", "all"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_selected_rows(kept, intercept, n_threads):
    X, cols, d, H, _, g0, _ = _quadratic(0, intercept, 0.0)
    kept = np.array(kept, dtype=np.intp)
    part = _rows(X, cols, n_threads).select(kept)
    A = _matrix(X[kept], cols, d[kept], intercept, 0.0) if len(kept) else np.zeros(H.shape)
    assert part.n == len(kept) and part.nnz == X[kept].nnz
    r = np.diff(X[kept].indptr)
    assert part.square_work == 0.5 * np.sum(r * (r + 1.0))
    operator = RowOperator(part, d[kept], intercept, 0.0)
    np.testing.assert_allclose(operator.matvec(g0), A @ g0, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(operator.diag, np.diag(A), rtol=1e-12, atol=1e-13)
    work = np.empty((2, len(H), len(H)))
    part.gram(np.ascontiguousarray(d[kept]), intercept, work)
    np.testing.assert_allclose(work[0], A, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(400, 30), (400, 3000)], ids=["matrix", "rows"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_rows_of_negligible_weight_keep_their_diagonal(shape, intercept, layout):
    rng = np.random.default_rng(0)
    X = sp.random(*shape, 0.4, format="csr", random_state=rng)
    X.data = X.data.astype(np.float32).astype(np.float64)
    d = rng.random(shape[0])
    light = rng.random(shape[0]) < 0.6
    d[light] *= 1e-3 * NEGLIGIBLE
    cols = np.flatnonzero(rng.random(shape[1]) < 0.9)
    operator, _ = as_design(X.asformat(layout), share=1.0).model(cols, d, intercept, 0.0)
    assert operator.reads == ("matrix" if shape[1] == 30 else "rows")
    H = _matrix(X[~light], cols, d[~light], intercept, 0.0)
    rest = np.diag(_matrix(X[light], cols, d[light], intercept, 0.0))
    np.testing.assert_allclose(operator.diag, H.diagonal() + rest, rtol=1e-6, atol=0)
    v = rng.standard_normal(len(H))
    np.testing.assert_allclose(operator.matvec(v), H @ v + rest * v, rtol=1e-5, atol=1e-5)
