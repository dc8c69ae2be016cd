"""CUDA kernels of the L1 solver against NumPy and the Cython kernels, which they mirror."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._cython import _glm, _model, _operators, _sparse

RNG = np.random.default_rng


def _matrix(n=70, p=45, density=0.2, dtype=np.float64, seed=0, long=0):
    """Random CSR; with ``long`` its first row and column are full, of several blocks' length."""
    rng = RNG(seed)
    X = sp.random(n, p, density, format="lil", random_state=rng)
    for k in range(long):
        X[k], X[:, k] = rng.standard_normal(p), rng.standard_normal((n, 1))
    X = X.tocsr().astype(dtype)
    X.sort_indices()
    return X


def _device_csr(cupy, X, index=np.int32):
    return (
        cupy.asarray(X.indptr.astype(index)),
        cupy.asarray(X.indices.astype(index)),
        cupy.asarray(X.data),
    )


def test_parts_of_many_blocks_are_reduced(cupy):
    from sparsekit.gpu._reduce import finish, finish_on_device

    part = RNG(0).standard_normal((1000, 3))
    found = finish(cupy.asarray(part), maxima=2)
    np.testing.assert_allclose(found, [part[:, 0].sum(), part[:, 1].max(), part[:, 2].sum()], rtol=1e-12)
    np.testing.assert_array_equal(finish_on_device(cupy.asarray(part), maxima=2).get(), found)
    np.testing.assert_array_equal(finish(cupy.asarray(part[:1]), maxima=7), part[0])


@pytest.mark.parametrize("loss", ["logistic", "squared", "probit"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_their_derivatives(cupy, loss, weighted):
    from sparsekit.gpu import _glm as gpu

    rng = RNG(1)
    z = np.concatenate([rng.standard_normal(700) * 4, [-800.0, 800.0, -40.0, 30.0, 0.0, -5.9, 5.5]])
    n = len(z)
    y = rng.choice([-1.0, 1.0], n)
    s = rng.random(n) if weighted else np.empty(0)
    u, d = np.empty(n), np.empty(n)
    value = getattr(_glm, f"{loss}_derivatives")(z, y, s, u, d)
    du, dd = cupy.empty(n), cupy.empty(n)
    args = [cupy.asarray(a) for a in (z, y, s)]
    found = getattr(gpu, f"{loss}_derivatives")(*args, du, dd)
    assert isinstance(found, float)
    assert found == pytest.approx(value, rel=1e-13)
    assert getattr(gpu, f"{loss}_value")(*args) == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(du.get(), u, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(dd.get(), d, rtol=1e-11, atol=1e-300)


def test_values_of_nothing_and_axpy(cupy):
    from sparsekit.gpu import _glm as gpu

    none = cupy.empty(0)
    assert gpu.logistic_value(none, none, none) == gpu.probit_derivatives(none, none, none, none, none) == 0.0
    z, dz, out = RNG(0).random(300), RNG(1).random(300), cupy.empty(300)
    gpu.axpy_rows(cupy.asarray(z), 0.25, cupy.asarray(dz), out)
    np.testing.assert_array_equal(out.get(), z + 0.25 * dz)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("long", [0, 2])
def test_sparse_products(cupy, dtype, index, long):
    from sparsekit.gpu import _sparse as gpu

    X = _matrix(900, 700, 0.02, dtype, long=long) if long else _matrix(dtype=dtype)
    n, p = X.shape
    rng = RNG(2)
    w, u, c = rng.standard_normal(p), rng.standard_normal(n), rng.standard_normal(n)
    rows = _device_csr(cupy, X, index)
    turned = _device_csr(cupy, X.T.tocsr(), index)
    exact = X.astype(np.float64)
    for found, expected in zip(gpu.transpose(*rows, p), turned):
        np.testing.assert_array_equal(found.get(), expected.get())
    out = cupy.empty(n)
    for lines in (None, gpu.Lines(rows[0], X.nnz)):
        assert lines is None or len(lines.longs) == long
        gpu.product(*rows, cupy.asarray(w), out, lines)
        np.testing.assert_allclose(out.get(), exact @ w, rtol=1e-12, atol=1e-12)
    gpu.csr_matvec(*rows, cupy.asarray(w), out, 2)
    np.testing.assert_allclose(out.get(), exact @ w, rtol=1e-12, atol=1e-12)
    gpu.csc_matvec(*turned, cupy.asarray(w), out)
    np.testing.assert_allclose(out.get(), exact @ w, rtol=1e-12, atol=1e-12)
    out = cupy.empty(p)
    gpu.csr_rmatvec(*rows, cupy.asarray(u), out, None, 2)
    np.testing.assert_allclose(out.get(), exact.T @ u, rtol=1e-12, atol=1e-12)
    assert gpu.csr_largest_row(rows[0], rows[2]) == pytest.approx(abs(exact).sum(axis=1).max(), rel=1e-12)
    slopes = np.empty((p, 3))
    _sparse.csr_slope_range(X.indptr, X.indices, X.data, c, slopes, np.empty((0, p, 3)), 1)
    for function, lines in ((gpu.csr_slope_range, rows), (gpu.csc_slope_range, turned)):
        out = cupy.empty((p, 3))
        function(*lines, cupy.asarray(c), out)
        np.testing.assert_allclose(out.get(), slopes, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_absolute_bound(cupy, intercept):
    from sparsekit.gpu import _sparse as gpu

    X, rng = _matrix(), RNG(3)
    n, p = X.shape
    d, v, expected = rng.random(n), rng.random(p + intercept), np.empty(p + intercept)
    _sparse.csr_absolute_bound(X.indptr, X.indices, X.data, d, v, expected, intercept)
    out = cupy.empty(p + intercept)
    gpu.csr_absolute_bound(*_device_csr(cupy, X), cupy.asarray(d), cupy.asarray(v), out, intercept)
    np.testing.assert_allclose(out.get(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_selections_keep_order_and_values(cupy, dtype, kind):
    from sparsekit.gpu import _sparse as gpu

    X = _matrix(60, 120, 0.5, dtype)  # rows longer than a warp
    n, p = X.shape
    cols = np.flatnonzero(RNG(4).random(p) < 0.7)
    expected = X[:, cols]
    expected.sort_indices()
    indices, data = cupy.empty(X.nnz + 1, dtype=np.int32), cupy.empty(X.nnz + 1, dtype=dtype)
    if kind == "csr":
        position = np.full(p, -1, dtype=np.int32)
        position[cols] = np.arange(len(cols))
        indptr = cupy.empty(n + 1, dtype=np.int32)
        gpu.csr_select(*_device_csr(cupy, X), cupy.asarray(position), indptr, indices, data)
    else:
        columns = _device_csr(cupy, X.T.tocsr())
        indptr = cupy.zeros(n + 1, dtype=np.int64)
        chosen = cupy.asarray(cols.astype(np.int32))
        gpu.csc_select_count(*columns[:2], chosen, indptr)
        gpu.csc_select_fill(*columns, chosen, indptr[:-1].copy(), indices, data)
    np.testing.assert_array_equal(indptr.get(), expected.indptr)
    np.testing.assert_array_equal(indices.get()[: expected.nnz], expected.indices)
    np.testing.assert_array_equal(data.get()[: expected.nnz], expected.data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_are_compressed(cupy, dtype):
    from sparsekit.gpu import _sparse as gpu

    X = _matrix(40, 75, 0.3, dtype)
    dense, counts = cupy.asarray(X.toarray()), cupy.empty(40, dtype=np.int64)
    gpu.dense_count(dense, counts)
    np.testing.assert_array_equal(counts.get(), np.diff(X.indptr))
    indices, data = cupy.empty(X.nnz, dtype=np.int32), cupy.empty(X.nnz, dtype=dtype)
    gpu.dense_compress(dense, cupy.asarray(X.indptr.astype(np.int64)), indices, data)
    np.testing.assert_array_equal(indices.get(), X.indices)
    np.testing.assert_array_equal(data.get(), X.data)


def _hessian(X, cols, d, intercept, ridge):
    A = (X.toarray() if sp.issparse(X) else X)[:, cols].astype(float)
    if intercept:
        A = np.column_stack([A, np.ones(len(A))])
    H = A.T @ (d[:, None] * A)
    return H, H + ridge * np.diag(np.diag(H))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("long", [0, 2])
def test_row_and_column_operators(cupy, dtype, intercept, long):
    from sparsekit.gpu._columns import ColumnOperator, columns_from_csr
    from sparsekit.gpu._rows import ModelRows, RowOperator

    X = _matrix(900, 60, 0.05, dtype, long=long) if long else _matrix(dtype=dtype)
    (n, p), rng = X.shape, RNG(5)
    cols = np.flatnonzero(rng.random(p) < 0.6)
    cols = cols if not long else np.union1d(cols, [0])
    d, v = rng.random(n), rng.standard_normal(len(cols) + intercept)
    plain, H = _hessian(X, cols, d, intercept, 0.5)
    position = np.full(p, -1, dtype=np.int32)
    position[cols] = np.arange(len(cols))
    csr = _device_csr(cupy, X)
    rows = ModelRows(n, X.nnz, np.array([0, n]), 2)
    rows.fill(*csr, cupy.asarray(position), len(cols))
    assert rows.nnz == X[:, cols].nnz
    lengths = np.diff(X[:, cols].indptr)
    assert rows.square_work == 0.5 * (lengths * (lengths + 1)).sum()
    store = columns_from_csr(*csr, p)
    np.testing.assert_array_equal(store.counts.get(), np.diff(X.tocsc().indptr))
    dd, chosen = cupy.asarray(d), cupy.asarray(cols.astype(np.int32))
    operators = [
        RowOperator(rows, dd, intercept, 0.5),
        RowOperator(rows, dd, intercept, 0.5, store, chosen, cupy.asarray(position)),
        ColumnOperator(store, chosen, dd, intercept, 0.5, 2),
    ]
    operators.append(ColumnOperator(store, chosen, dd, intercept, 0.5, 2, operators[1]))
    for operator in operators:
        assert operator.size == len(v)
        np.testing.assert_allclose(operator.matvec(cupy.asarray(v)).get(), H @ v, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(operator.diag.get(), np.diag(plain), rtol=1e-6)
        assert operator.n_products == 1
    np.testing.assert_allclose(rows.diagonal(dd, intercept).get(), np.diag(plain), rtol=1e-6)
    work = cupy.empty((1, len(v), len(v)))
    rows.gram(dd, intercept, work)
    np.testing.assert_allclose(work.get()[0], plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("p", [3, 70, 600])
def test_dense_kernels(cupy, dtype, intercept, p):
    from sparsekit.gpu import _dense as gpu
    from sparsekit.gpu._rows import DenseOperator

    rng, n = RNG(6), 45
    X = rng.standard_normal((n, p)).astype(dtype)
    d, u, v = rng.random(n), rng.standard_normal(n), rng.standard_normal(p + intercept)
    A = cupy.asarray(X)
    loose = dict(rtol=1e-5, atol=1e-4) if dtype == np.float32 else dict(rtol=1e-11, atol=1e-11)
    for found, expected, function, vector in (
        (cupy.empty(n, dtype=dtype), X.astype(float) @ v[:p], gpu.dense_matvec, v[:p]),
        (cupy.empty(p), X.astype(float).T @ u, gpu.dense_rmatvec, u),
    ):
        function(A, cupy.asarray(vector), found, 3, 2)
        np.testing.assert_allclose(found.get(), expected, **loose)
    squares = cupy.empty(p)
    gpu.dense_squares(A, cupy.asarray(d), squares, 3, 2)
    np.testing.assert_allclose(squares.get(), (X.astype(float) ** 2).T @ d, rtol=1e-12)
    every = np.arange(p)
    plain, H = _hessian(X, every, d, intercept, 0.25)
    operator = DenseOperator(A, cupy.asarray(d), cupy.asarray(np.diag(plain).copy()), intercept, 0.25, 2)
    np.testing.assert_allclose(operator.matvec(cupy.asarray(v)).get(), H @ v, rtol=1e-10, atol=1e-9)
    for chosen in (every, every[::2]):
        expected, _ = _hessian(X, chosen, d, intercept, 0.0)
        G = cupy.empty((1, *expected.shape))
        gpu.dense_gram(A, cupy.asarray(chosen.astype(np.int32)), cupy.asarray(d), G, intercept)
        np.testing.assert_allclose(G.get()[0], expected, **loose)
    wide = cupy.asarray(np.asfortranarray(X))
    gpu.dense_gram(wide, cupy.asarray(chosen.astype(np.int32)), cupy.asarray(d), G, intercept)
    np.testing.assert_allclose(G.get()[0], expected, **loose)


def test_rows_too_wide_for_one_pass(cupy, monkeypatch):
    from sparsekit.gpu import _dense, _rows

    monkeypatch.setattr(_rows, "hessian_fits", lambda m: False)
    rng = RNG(7)
    X, d, v = rng.standard_normal((30, 50)), rng.random(30), rng.standard_normal(51)
    plain, H = _hessian(X, np.arange(50), d, True, 0.1)
    diagonal = cupy.asarray(np.diag(plain).copy())
    operator = _rows.DenseOperator(cupy.asarray(X), cupy.asarray(d), diagonal, True, 0.1)
    np.testing.assert_allclose(operator.matvec(cupy.asarray(v)).get(), H @ v, rtol=1e-11)
    assert not _dense.hessian_fits(5000)


def _model_problem(m=60, seed=0):
    rng = RNG(seed)
    A = rng.standard_normal((2 * m, m)) * np.exp(rng.standard_normal(m))
    x = np.where(rng.random(m) < 0.4, rng.standard_normal(m), 0.0)
    g, l1 = 3 * rng.standard_normal(m), rng.random(m)
    l1[0] = 0.0
    return A.T @ A / m, x, g, l1


def test_identification_measure_penalty_bound(cupy):
    from sparsekit.gpu import _model as gpu

    _, x, g, l1 = _model_problem(700)
    kind, size = np.empty(700, dtype=np.int8), np.empty(700)
    expected = _model.identify(x, g, l1, kind, size)
    dx, dg, dl = (cupy.asarray(a) for a in (x, g, l1))
    dkind, dsize = cupy.empty(700, dtype=np.int8), cupy.empty(700)
    assert gpu.identify(dx, dg, dl, dkind, dsize) == expected
    np.testing.assert_array_equal(dkind.get(), kind)
    np.testing.assert_array_equal(dsize.get(), size)
    assert gpu.measure(dx, dg, dl) == _model.measure(x, g, l1) == expected[0]
    assert gpu.penalty(dx, dl) == pytest.approx(_model.penalty(x, l1), rel=1e-14)
    assert gpu.ista_bound(dx, dg, dl, 3.0) == pytest.approx(_model.ista_bound(x, g, l1, 3.0), rel=1e-13)
    g[5] = np.nan
    assert np.isnan(gpu.measure(dx, cupy.asarray(g), dl))
    assert np.isnan(gpu.identify(dx, cupy.asarray(g), dl, dkind, dsize)[0])
    none = cupy.empty(0)
    assert gpu.measure(none, none, none) == gpu.penalty(none, none) == 0.0
    assert gpu.ista_bound(none, none, none, 1.0) == 0.0


def _solve(module, operator, x0, g0, l1, out, like, cycles=60, holds=20):
    m = len(x0)
    counts = np.zeros(4, dtype=np.int64)
    xp = np if isinstance(like, np.ndarray) else like
    decrease = module.solve_model(
        operator, x0, g0, l1, out, xp.empty((8, m)), xp.empty(m * m), xp.empty(m, dtype=np.int32),
        xp.empty(m, dtype=np.int8), cycles, 1e-9, 1e-10, 0, 4 * m, 0, holds, counts,
    )  # fmt: skip
    return decrease, counts


@pytest.mark.parametrize("how", ["direct", "one block", "many blocks", "callback"])
def test_models_are_minimised(cupy, how, monkeypatch):
    from sparsekit.gpu import _model as gpu
    from sparsekit.gpu import _operators as operators

    if how == "many blocks":
        monkeypatch.setattr(gpu, "_ONE_BLOCK", 0)
        monkeypatch.setattr(gpu, "block_of", lambda n, most=0: 32)
    G, x, g, l1 = _model_problem()
    m = len(x)
    if how == "callback":
        dG = cupy.asarray(G)
        operator = operators.CallbackOperator(lambda v: dG @ v, cupy.asarray(np.diag(G).copy()), 1e-7)
    else:
        operator = operators.GramOperator(cupy.asarray(G), 1e-7)
        operator.direct = how == "direct"
    out = cupy.empty(m)
    decrease, counts = _solve(gpu, operator, *(cupy.asarray(a) for a in (x, g, l1)), out, cupy)
    reference = np.empty(m)
    best, _ = _solve(_model, _operators.GramOperator(G, 1e-7), x, g, l1, reference, reference)
    assert decrease == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(out.get(), reference, rtol=1e-5, atol=1e-6)
    assert counts[0] >= 1
    assert (counts[3] > 0) == (how == "direct")
    assert (counts[2] > 0) == (how != "direct")


def test_models_without_room_or_holds(cupy):
    from sparsekit.gpu import _model as gpu
    from sparsekit.gpu._operators import GramOperator

    none = cupy.empty(0)
    decrease, _ = _solve(gpu, GramOperator(cupy.empty((0, 0)), 0.0), none, none, none, none, cupy)
    assert decrease == 0.0
    G, x, g, l1 = _model_problem(40, seed=3)
    out = cupy.empty(40)
    operator = GramOperator(cupy.asarray(G), 1e-7)
    decrease, _ = _solve(gpu, operator, *(cupy.asarray(a) for a in (x, g, l1)), out, cupy, holds=0)
    reference = np.empty(40)
    best, _ = _solve(_model, _operators.GramOperator(G, 1e-7), x, g, l1, reference, reference)
    assert decrease == pytest.approx(best, rel=1e-6)


def test_a_matrix_that_is_not_definite_is_left_to_conjugate_gradients(cupy):
    from sparsekit.gpu import _model as gpu
    from sparsekit.gpu._operators import GramOperator

    G = np.diag([1.0, -1.0, 2.0])
    out, x = cupy.empty(3), cupy.zeros(3)
    g, l1 = cupy.asarray(np.array([3.0, 0.1, -4.0])), cupy.zeros(3)
    decrease, counts = _solve(gpu, GramOperator(cupy.asarray(G), 0.0), x, g, l1, out, cupy, cycles=1)
    assert counts[2] > 0
    assert decrease > 0


def test_lbfgs_operator(cupy):
    from sparsekit._linalg.lbfgs import LBFGS

    rng, n = RNG(8), 40
    A = rng.standard_normal((n, n))
    here, there = LBFGS(n, 4), LBFGS(n, 4, like=cupy.empty(0))
    for count in range(6):
        rows = np.sort(rng.permutation(n)[:25])
        v = rng.standard_normal(25)
        theta = {} if count else {"theta": 2.0}
        mine = here.operator(rows, ridge=0.1, **theta)
        twin = there.operator(cupy.asarray(rows), ridge=0.1, **theta)
        np.testing.assert_allclose(twin.matvec(cupy.asarray(v)).get(), mine.matvec(v), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(twin.diag.get(), mine.diag)
        np.testing.assert_allclose(twin.solve(cupy.asarray(v)).get(), mine.solve(v), rtol=1e-8)
        free = np.flatnonzero(rng.random(25) < 0.5)
        expected = np.zeros(25)
        expected[free] = mine.solve(v[free], free)
        kind = np.zeros(25, dtype=np.int8)
        kind[free] = rng.integers(1, 3, len(free))
        side = np.where(kind > 0, v, 0.0)
        kind[np.setdiff1d(np.arange(25), free)[:3]] = 3  # held: not on the face
        found = twin.solve_face(cupy.asarray(kind), cupy.asarray(side)).get()
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        s = rng.standard_normal(n)
        assert here.update(s, A.T @ (A @ s)) == there.update(cupy.asarray(s), cupy.asarray(A.T @ (A @ s)))
    with pytest.raises(np.linalg.LinAlgError):
        twin.__class__(cupy.ones((3, 2)), np.zeros((2, 2)), 1.0, 0.0)
    with pytest.raises(ValueError, match="middle"):
        twin.__class__(cupy.ones((3, 2)), np.zeros((3, 3)), 1.0, 0.0)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_designs(cupy, layout, dtype, monkeypatch):
    from sparsekit._linalg import device_design
    from sparsekit._linalg.design import as_design

    X, rng = _matrix(50, 30, 0.3, dtype), RNG(9)
    X = np.asarray(X.toarray(), order=layout) if layout in "CF" else X.asformat(layout)
    if layout in "CF":
        device = cupy.asarray(X)
    else:
        import cupyx.scipy.sparse

        device = getattr(cupyx.scipy.sparse, f"{layout}_matrix")(X)
    there, exact = as_design(device), as_design(X.astype(np.float64))
    assert there.shape == X.shape
    d, u, w = rng.random(50), rng.standard_normal(50), rng.standard_normal(30)
    cols = np.flatnonzero(rng.random(30) < 0.5)
    dcols, dd = cupy.asarray(cols), cupy.asarray(d)
    for here, design, columns in ((exact, there, 30), (exact.select(cols), there.select(dcols), len(cols))):
        v = w[:columns]
        np.testing.assert_allclose(design.matvec(cupy.asarray(v)).get(), here.matvec(v), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            design.rmatvec(cupy.asarray(u)).get(), here.rmatvec(u), rtol=1e-6, atol=1e-6
        )
    matrix = X.toarray() if sp.issparse(X) else X
    for intercept in (False, True):
        largest = np.linalg.eigvalsh(_hessian(matrix, np.arange(30), d, intercept, 0.0)[0])[-1]
        assert there.norm_bound(dd, intercept) >= largest * (1 - 1e-6)
        assert there.norm_bound(dd, intercept) == pytest.approx(exact.norm_bound(d, intercept), rel=1e-5)
        for side, name in ((768, "GramOperator"), (0, None)):
            monkeypatch.setattr(device_design, "_GRAM_SIDE", side)
            operator, move = there.model(dcols, dd, intercept, 0.5)
            assert (type(operator).__name__ == "GramOperator") == (name is not None)
            v = rng.standard_normal(len(cols) + intercept)
            _, H = _hessian(matrix, cols, d, intercept, 0.5)
            np.testing.assert_allclose(operator.matvec(cupy.asarray(v)).get(), H @ v, rtol=1e-4, atol=1e-4)
            along = matrix[:, cols].astype(float) @ v[: len(cols)]
            found = move.matvec(cupy.asarray(v[: len(cols)])).get()
            np.testing.assert_allclose(found, along, rtol=1e-6, atol=1e-6)
    if sp.issparse(X):
        np.testing.assert_array_equal(there.counts().get(), np.diff(X.tocsc().indptr))
        assert there.largest_row() == pytest.approx(abs(matrix.astype(float)).sum(axis=1).max())
        slopes = there.slope_range(cupy.asarray(u)).get()
        np.testing.assert_allclose(slopes, exact.slope_range(u), rtol=1e-6, atol=1e-9)


def test_a_rough_model_takes_a_part_of_the_rows_that_misses_no_column(cupy, monkeypatch):
    from sparsekit._linalg import device_design
    from sparsekit._linalg.design import as_design

    monkeypatch.setattr(device_design, "_ROUGH_WORK", 0)
    X, d = RNG(0).standard_normal((400, 3)), np.ones(400)
    design, every = as_design(cupy.asarray(X)), cupy.arange(3)
    rough = design.model(every, cupy.asarray(d), False, 0.0, rough=True)[0].G.get()
    part = X[::6]  # 400 rows are 20 for each of 20 columns: a stride of 6 for three
    np.testing.assert_allclose(rough, 6 * part.T @ part)
    X[np.arange(400) % 6 == 0, 1] = 0.0
    whole = as_design(cupy.asarray(X)).model(every, cupy.asarray(d), False, 0.0, rough=True)[0].G.get()
    np.testing.assert_allclose(whole, X.T @ X)
