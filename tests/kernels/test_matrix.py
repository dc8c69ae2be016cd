"""The matrix protocol: products, sandwiches, squares and parts of every kind of X against dense NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import sparsekit as sk
from sparsekit._l1.solver import working_hessian
from sparsekit._l1.solver.working_hessian import WorkingHessian
from sparsekit._linalg import as_design as as_design_module
from sparsekit._linalg import matrix as matrix_module
from sparsekit._linalg.as_design import as_design
from sparsekit._linalg.matrix import sparse_sandwich
from sparsekit._linalg.prepared import Prepared

KINDS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}
kinds = pytest.mark.parametrize("kind", list(KINDS))


def data(kind, n=37, p=11, density=0.5, dtype=np.float64, seed=0):
    """The matrix, and X in double precision."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) * (rng.random((n, p)) < density)).astype(dtype)
    return as_design(KINDS[kind](X)), X.astype(np.float64)


@kinds
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_squares_and_sizes(kind, dtype):
    matrix, X = data(kind, dtype=dtype)
    weight = np.random.default_rng(1).random(len(X))
    np.testing.assert_allclose(matrix.squares(weight), weight @ X**2, rtol=1e-12)
    np.testing.assert_allclose(matrix.absolute_sums(weight), weight @ abs(X), rtol=1e-12)
    if matrix.is_sparse:
        np.testing.assert_array_equal(matrix.counts(), np.count_nonzero(X, axis=0))


@kinds
@pytest.mark.parametrize("rows", [slice(3, 20, 2), np.array([30, 2, 2, 5])])
@pytest.mark.parametrize("columns", [None, np.array([7, 0, 3])])
def test_parts_are_new_arrays(kind, rows, columns):
    matrix, X = data(kind)
    expected = X[rows] if columns is None else X[rows][:, columns]
    part = matrix.part(rows, columns)
    np.testing.assert_array_equal(part.toarray() if matrix.is_sparse else part, expected)
    dense = matrix.dense_part(rows, columns, np.float32)
    assert dense.dtype == np.float32
    dense[:] = -1.0
    np.testing.assert_allclose(matrix.matvec(np.ones(11)), X.sum(axis=1), rtol=1e-12, atol=1e-12)
    ones = matrix.with_ones(rows, columns)
    ones = ones.toarray() if matrix.is_sparse else ones
    np.testing.assert_array_equal(ones, np.column_stack([expected, np.ones(len(expected))]))


@kinds
@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("columns", [None, np.array([9, 1, 4, 0])])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("by_entries", [None, False, True])
def test_sandwich(kind, density, columns, some, by_entries):
    matrix, X = data(kind, density=density)
    if by_entries and not matrix.is_sparse:
        by_entries = None
    rng = np.random.default_rng(2)
    rows = np.array([4, 30, 11, 8, 7]) if some else None
    A = X if columns is None else X[:, columns]
    A = A[rows] if some else A
    d = rng.random(len(A))
    expected = A.T @ (d[:, None] * A)
    found = matrix.sandwich(d, columns, rows=rows, by_entries=by_entries)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    B = np.column_stack([A, np.ones(len(A))])
    found = matrix.sandwich(d, columns, rows=rows, intercept=True, by_entries=by_entries)
    np.testing.assert_allclose(found, B.T @ (d[:, None] * B), rtol=1e-12, atol=1e-12)
    if not some:
        centre = rng.standard_normal(A.shape[1])
        B = A - centre
        for weight in (d, None):
            found = matrix.sandwich(weight, columns, centre=centre, by_entries=by_entries)
            expected = B.T @ (B if weight is None else d[:, None] * B)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        single = matrix.sandwich(d, columns, dtype=np.float32, by_entries=by_entries)
        np.testing.assert_allclose(single, A.T @ (d[:, None] * A), rtol=1e-5, atol=1e-5)
        assert single.dtype == np.float64


@kinds
def test_sandwich_by_blocks_of_few_rows(kind, monkeypatch):
    matrix, X = data(kind, n=300)
    monkeypatch.setattr(matrix_module.Matrix, "block_entries", 16)
    monkeypatch.setattr(matrix_module, "BLOCK", 64)
    d = np.random.default_rng(3).random(300)
    for by_entries in (False, True) if matrix.is_sparse else (False,):
        found = matrix.sandwich(d, by_entries=by_entries)
        np.testing.assert_allclose(found, X.T @ (d[:, None] * X), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(matrix.squares(d), d @ X**2, rtol=1e-11)


@kinds
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_prepared_sums_over_rows_and_columns(kind, centred, weighted):
    _, X = data(kind, n=23, p=40)
    rng = np.random.default_rng(4)
    s = rng.random(23) if weighted else None
    scale = rng.random(40)
    weights = np.ones(23) if s is None else s
    B = X - (np.average(X, axis=0, weights=weights) if centred else 0.0)
    R = np.sqrt(weights)[:, None] * B
    prepared = Prepared(KINDS[kind](X), s, centred)
    np.testing.assert_allclose(prepared.squares(), (R**2).sum(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        prepared.row_gram(scale, np.float64), (R * scale) @ R.T, rtol=1e-10, atol=1e-12
    )
    assert prepared.row_gram(scale, np.float32).dtype == np.float32


@kinds
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("dtype, rtol", [(np.float32, 2e-6), (np.float64, 1e-12)])
def test_a_gram_matrix_of_centred_columns(kind, centred, density, dtype, rtol):
    """Few entries are multiplied one by one, many in dense blocks."""
    rng = np.random.default_rng(4)
    matrix, X = data(kind, n=60, density=density, seed=5)
    s = rng.random(60)
    B = X - (np.average(X, axis=0, weights=s) if centred else 0.0)
    expected = (B.T * s) @ B
    found = Prepared(matrix.X, s, centred).gram(dtype)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * abs(expected).max())


@kinds
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("first", [[4, 1], list(range(11))])
def test_a_working_set_grows_and_shrinks(monkeypatch, kind, first, intercept):
    monkeypatch.setattr(working_hessian, "BLOCK", 20)
    matrix, X = data(kind, n=25, seed=6)
    hessian, d = WorkingHessian(matrix, intercept), np.random.default_rng(7).random(25)

    def check():
        B = X[:, hessian.columns]
        ratios = np.average(B, axis=0, weights=d) if intercept else np.zeros(B.shape[1])
        B = B - ratios
        np.testing.assert_allclose(hessian.reduced, (B.T * d) @ B, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(hessian.ratios, ratios, rtol=1e-6, atol=1e-6)
        assert hessian.curvature == pytest.approx(d.sum() if intercept else 0.0)
        np.testing.assert_allclose(hessian.part.rmatvec(d), X[:, hessian.columns].T @ d, atol=1e-12)
        np.testing.assert_array_equal(hessian.is_used, np.isin(np.arange(11), hessian.columns))

    given = d.copy()
    hessian.add(np.array(first), given)
    given[:] = np.nan  # the solver's own array, which goes on to other points
    check()
    while not hessian.is_used.all():
        hessian.add(np.flatnonzero(~hessian.is_used)[:7], d)
        check()
    for kept in (np.arange(11) != 3, np.arange(10) % 3 == 0, np.zeros(4, dtype=bool), np.ones(0, dtype=bool)):
        d, columns = d[::-1].copy(), hessian.columns[kept]
        hessian.renew(d, kept)
        np.testing.assert_array_equal(hessian.columns, columns)
        stored = np.count_nonzero(X[:, columns]) if matrix.is_sparse else None
        assert hessian.is_new and hessian.count(columns) == stored
        check()
    hessian.add(np.array([5, 0]), d)
    hessian.detach()
    hessian.attach(matrix)
    check()
    hessian.clear()
    hessian.add(np.array([2, 3]), d)
    check()


FORMS = {
    "C": np.ascontiguousarray, "F": np.asfortranarray, "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sp.csr_array, "csc": sp.csc_array,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("density", [0.05, 0.15, 0.3, 0.9])
@pytest.mark.parametrize("n", [600, 200])
def test_a_large_matrix_has_the_form_of_its_density(form, dtype, density, n):
    rng = np.random.default_rng(11)
    X = ((rng.random((n, 200)) < density) * rng.integers(1, 9, (n, 200))).astype(dtype)
    design = as_design(FORMS[form](X))
    stays = n * 200 < 100000
    assert design.is_sparse == (form in ("csr", "csc") if stays else density < 0.2)
    assert design.X.dtype == (np.float64 if dtype == np.int32 else dtype)
    w, u = rng.standard_normal(200), rng.standard_normal(n)
    np.testing.assert_allclose(design.matvec(w), X @ w, rtol=1e-12)
    np.testing.assert_allclose(design.rmatvec(u), X.T @ u, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        Prepared(FORMS[form](X), None, True).means, X.mean(axis=0, dtype=float), rtol=1e-12
    )


@pytest.mark.parametrize("density, full", [(0.05, False), (0.6, False), (0.02, True)])
def test_fits_do_not_depend_on_the_form(density, full):
    rng = np.random.default_rng(12)
    X = rng.standard_normal((700, 160)) * (rng.random((700, 160)) < density)
    if full:  # a column far from zero beside many zeros
        X[:, 3] = 2000.0 + rng.integers(0, 25, 700)
    y = X @ np.where(rng.random(160) < 0.2, 1.0, 0.0) + rng.standard_normal(700)
    models = (
        sk.LassoOBA(0.01), sk.LassoOBA(0.01, l1_ratio=0.3, positive=True), sk.GLMOBA("gaussian", alpha=0.01),
        sk.BoundedRegressor("huber", alpha=0.01), sk.BoundedRegressor("absolute", alpha=0.01, bounds=(0, 1)),
    )  # fmt: skip
    classifiers = (
        sk.L1LogisticOBA(), sk.L1LogisticOBA(l1_ratio=0.0), sk.BoundedClassifier(), sk.SoftmaxClassifier(),
    )  # fmt: skip
    for model, target in [(m, y) for m in models] + [(m, y > np.median(y)) for m in classifiers]:
        found = [float(np.ravel(model.fit(make(X), target).objective_)[0]) for make in FORMS.values()]
        np.testing.assert_allclose(found, found[0], rtol=2e-5)


@pytest.mark.parametrize("kind", ["C", "F", "strided"])
def test_mostly_zeros_are_counted_until_there_are_too_many(kind, monkeypatch):
    """Rows of numbers only, then of zeros only: the share of all decides, not that of the first ones."""
    counted = []
    count = as_design_module._sparse.dense_count

    def watched(lines, *args):
        counted.append(len(lines))
        count(lines, *args)

    monkeypatch.setattr(as_design_module, "_sparse", SimpleNamespace(**vars(as_design_module._sparse)))
    monkeypatch.setattr(as_design_module._sparse, "dense_count", watched)
    for n_full, is_sparse in ((400, True), (800, False), (2000, False)):
        counted.clear()
        X = np.zeros((2000, 1000))
        X[:n_full] = np.random.default_rng(0).standard_normal((n_full, 1000))
        design = as_design(KINDS[kind](X))
        assert design.is_sparse == is_sparse
        v = np.arange(1000.0)
        np.testing.assert_allclose(design.matvec(v), X @ v, rtol=1e-12)
        if n_full == 2000:
            assert sum(counted) <= 0.4 * len(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("part", [False, True])
def test_sandwich_of_entries(kind, dtype, long, part):
    """Columns in any order, twice, or none; X, more than two tiles, or a part of it. X keeps its entries."""
    rng = np.random.default_rng(0)
    values, starts = rng.integers(1, 9, 900).astype(dtype), np.append(np.arange(0, 901, 30), 900)
    A = kind(sp.csr_array((values, rng.integers(0, 75, 900), starts), shape=(31, 76)))
    assert A.nnz == 900 and not A.has_canonical_format
    if long:
        A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    before = [part.copy() for part in (A.indptr, A.indices, A.data)]
    rows = rng.permutation(31)[:20] if part else None
    columns = rng.permutation(76)[:70] if part else None
    d = rng.integers(0, 4, 20 if part else 31).astype(np.float64)
    found = as_design(A).sandwich(d, columns, rows=rows, intercept=True, by_entries=True)
    X = A.toarray().astype(np.float64)
    X = X[np.ix_(rows, columns)] if part else X
    X = np.hstack([X, np.ones((len(X), 1))])
    np.testing.assert_array_equal(found, (X.T * d) @ X)
    for now, old in zip((A.indptr, A.indices, A.data), before):
        np.testing.assert_array_equal(now, old)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sandwich_in_the_type_of_the_matrix(dtype):
    A = sp.csr_array(np.arange(6, dtype=dtype).reshape(3, 2))
    found, sums = sparse_sandwich(A)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, (A.T @ A).toarray())
    np.testing.assert_array_equal(sums, [6, 9])
    found, sums = sparse_sandwich(sp.csr_array((0, 4)), np.zeros(0))
    assert not found.any() and not sums.any() and found.shape == (4, 4)


@pytest.mark.parametrize("by_entries", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sandwich_of_centred_rows(by_entries, weighted):
    A = sp.random_array((30, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
    rows, d, centre = np.arange(3, 13), np.linspace(0.5, 2.0, 10) if weighted else None, np.arange(6.0)
    found = as_design(A).sandwich(d, rows=rows, centre=centre, by_entries=by_entries)
    B = A.toarray()[rows] - centre
    np.testing.assert_allclose(found, (B.T * (1.0 if d is None else d)) @ B, rtol=1e-12, atol=1e-12)
