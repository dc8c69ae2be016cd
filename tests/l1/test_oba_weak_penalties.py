"""Weak penalties: rows thrown far to the wrong side, ill-conditioned models, certificates that are tight."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._cython import _columns, _factor, _model, _operators, _single_factor
from sparsekit._l1.losses import linear_problem as _linear_problem
from sparsekit._l1.losses.multinomial import MultinomialLoss
from sparsekit._l1.solver import preconditioner as _preconditioner
from sparsekit._l1.solver.minimise_model import Effort
from sparsekit._linalg.as_design import as_design
from sparsekit.optimize import LogisticLoss, OBAOptions, minimize_oba


def separable(n=3000, p=12, seed=0):
    """Rows that two columns tell apart well, so that zero is worse than one row at margin -1000."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    X[:, :2] += 2.0 * y[:, None]
    X[:, -1] = 0.0
    X[0, -1] = 1.0  # one row's own column
    return X, y


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_row_deep_in_the_straight_part_comes_back(layout, fit_intercept):
    X, y = separable()
    loss = LogisticLoss(sp.csr_matrix(X) if layout == "csr" else X, y, fit_intercept=fit_intercept)
    l1 = loss.l1_vector(0.01)
    best = minimize_oba(loss, l1, tol=1e-10)
    start = best.x.copy()
    start[X.shape[1] - 1] -= y[0] * (1000.0 + y[0] * loss.predictor(best.x)[0])
    assert y[0] * loss.predictor(start)[0] == pytest.approx(-1000.0)
    result = minimize_oba(loss, l1, start, history=True)
    assert result.history["fun"][0] > 1000.0  # it was not replaced by zero
    assert result.status == 0 and result.nit <= 12
    assert result.fun <= best.fun * (1 + 1e-4) and result.fun - best.fun <= result.dual_gap


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_whose_class_is_far_behind_comes_back(n_classes):
    rng = np.random.default_rng(1)
    n, p = 1500, 9
    codes = rng.integers(0, n_classes, n)
    X = rng.standard_normal((n, p))
    X[np.arange(n), codes] += 3.0
    X[:, -1] = 0.0
    X[0, -1] = 1.0
    loss = MultinomialLoss(X, codes, n_classes)
    l1 = loss.l1_vector(0.01)
    best = minimize_oba(loss, l1, tol=1e-8)
    start = best.x.copy()
    start[(p - 1) * n_classes + codes[0]] -= 1000.0
    scores = loss.predictor(start)[0]
    assert scores.max() - scores[codes[0]] > 900
    result = minimize_oba(loss, l1, start, history=True)
    assert result.history["fun"][0] > 900.0
    assert result.status == 0 and result.nit <= 15
    assert result.fun - best.fun <= max(result.dual_gap, 1e-12)


def text(n, p, seed, length=40):
    """Counts of words by Zipf's law, some of which say something of the label."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, p + 1)
    rows = np.repeat(np.arange(n), length)
    X = sp.csr_matrix(
        (np.ones(n * length), (rows, rng.choice(p, n * length, p=share / share.sum()))), shape=(n, p)
    )
    w = rng.standard_normal(p) * (rng.random(p) < 0.2)
    z = X @ w + 0.3 * rng.standard_normal(n)
    return X, np.where(z > np.median(z), 1.0, -1.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1.0, 30.0, 1e3])
def test_a_default_fit_is_certified(C, fit_intercept):
    X, y = text(1500, 3000, 0)
    loss = LogisticLoss(X, y, fit_intercept=fit_intercept)
    result = minimize_oba(loss, loss.l1_vector(1 / C))
    assert result.status == 0
    assert 0 <= result.dual_gap <= 1e-4 * result.fun
    tight = minimize_oba(loss, loss.l1_vector(1 / C), tol=1e-9)
    assert result.fun - tight.fun <= result.dual_gap + 1e-12 * result.fun
    # a bound that is far from the truth would be of no use
    error = result.fun - tight.fun
    assert error <= 1e-6 * result.fun or result.dual_gap <= 100 * error


def test_a_looser_tol_gives_a_looser_gap():
    X, y = text(800, 1500, 1)
    loss = LogisticLoss(X, y)
    loose, default = (minimize_oba(loss, loss.l1_vector(0.01), tol=tol) for tol in (1e-3, 1e-5))
    assert default.dual_gap < loose.dual_gap <= 1e-2 * loose.fun and loose.nit <= default.nit
    uncertified = minimize_oba(loss, loss.l1_vector(0.01), gap=False)
    assert np.isnan(uncertified.dual_gap) and uncertified.nit <= default.nit


def test_ill_conditioned_ends_are_factorised(monkeypatch):
    made = []
    prepare = _preconditioner.Preconditioner.prepare

    def count(self, *args):
        before = self.factor
        prepare(self, *args)
        made.append(self.factor is not before)

    X, y = text(3000, 4000, 2)
    loss = LogisticLoss(X, y, fit_intercept=True)
    monkeypatch.setattr(_preconditioner.Preconditioner, "prepare", count)
    helped = minimize_oba(loss, loss.l1_vector(0.003), tol=1e-7)
    assert any(made)
    monkeypatch.setattr(_preconditioner, "_LARGEST", 0)
    plain = minimize_oba(loss, loss.l1_vector(0.003), tol=1e-7, max_iter=1000)
    assert helped.status == 0 and helped.dual_gap <= 1e-6 * helped.fun
    assert helped.fun == pytest.approx(plain.fun, rel=2e-6)
    assert 2 * helped.n_products < plain.n_products


def positive(m, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((m, m)) * np.exp(rng.uniform(-spread, spread, m))
    return B.T @ B + 1e-3 * np.eye(m)


@pytest.mark.parametrize("off", [0, 1, 7, 19, 60])
def test_one_factor_serves_every_face(off):
    m, rng = 100, np.random.default_rng(off)
    H = positive(m, 3, 0.5)
    factor = _factor.Factor(H.copy(), 0.0)
    r = rng.standard_normal(m)
    for _ in range(4):  # from face to face
        out = rng.choice(m, off, replace=False)
        inside = np.ones(m, dtype=bool)
        inside[out] = False
        found = factor.solution(np.where(inside, r, 0.0), inside)
        if factor.crowded:
            assert off > m // 5
            continue
        assert off <= m // 5 and np.all(found[out] == 0)
        exact = np.linalg.solve(H[np.ix_(inside, inside)], r[inside])
        np.testing.assert_allclose(found[inside], exact, rtol=1e-8, atol=1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("m", [60, 240])  # room for 12 and for 48 columns
def test_a_single_factor_follows_faces_that_shrink_and_grow(m):
    """Its base is a face where that costs less than columns; what a base lacks has its diagonal."""
    rng = np.random.default_rng(m)
    # columns of very different size, which single precision must not mind
    H = positive(m, 3, 0.1) + m * np.eye(m)
    size = np.exp(rng.uniform(-20, 20, m))
    H *= size * size[:, None]
    factor = _single_factor.SingleFactor(H.copy(), 0.0)
    r = rng.standard_normal(m) * size
    for off in (0, 1, 7, 19, 9, 60, 61, 99, 62, 10, 0, 100):
        out = rng.permutation(m)[: off * m // 100] if off % 2 else np.arange(off * m // 100)
        inside = np.ones(m, dtype=bool)
        inside[out] = False
        found = factor.solution(np.where(inside, r, 0.0), inside)
        assert not factor.crowded and np.all(found[out] == 0)
        if off == 100:
            break
        scaled = H[np.ix_(inside, inside)] / size[inside] / size[inside, None]
        exact = np.linalg.solve(scaled, (r / size)[inside])
        error = np.abs(found[inside] * size[inside] - exact)
        # a few that came back since the last base was made may have their diagonal alone
        assert np.quantile(error, 0.9, method="lower") <= 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("kind", [_factor.Factor, _single_factor.SingleFactor])
def test_a_factor_of_a_singular_matrix(kind):
    a = np.array([[1.0, 1.0], [1.0, 1.0]])
    found = kind(a.copy(), 0.0).solution(np.array([1.0, 1.0]), np.ones(2, dtype=bool))
    np.testing.assert_allclose(a @ found, [1.0, 1.0], rtol=1e-6)
    assert kind(np.empty((0, 0)), 0.0).solution(np.empty(0), np.empty(0, dtype=bool)).size == 0
    zero = kind(np.diag([0.0, 4.0]), 0.0)  # a column without entries
    np.testing.assert_allclose(zero.solution(np.array([0.0, 4.0]), np.ones(2, dtype=bool)), [0, 1], rtol=1e-6)
    with pytest.raises(ValueError, match="no Cholesky factor"):
        kind(np.array([[1.0, 5.0], [5.0, 1.0]]), 0.0)
    with pytest.raises(ValueError, match="shape"):
        kind(np.eye(2), 0.0).solution(np.ones(3), np.ones(3, dtype=bool))


def test_fits_end_alike_with_factors_of_either_precision(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random(500, 1200, 0.02, format="csr", random_state=0)
    X.data[:] = rng.standard_normal(X.nnz) ** 2
    y = np.where(X[:, :20].sum(axis=1).A1 + 0.1 * rng.standard_normal(500) > 0.3, 1.0, -1.0)
    loss = LogisticLoss(X, y, fit_intercept=True)
    monkeypatch.setattr(_preconditioner, "_SMALLEST", 20)
    monkeypatch.setattr(_preconditioner, "_SPENT", 0.0)
    monkeypatch.setattr(_preconditioner, "_LEFT", 0.0)
    made, results = [], []
    for largest, name in (10**6, "Factor"), (0, "SingleFactor"):
        kind = getattr(_linear_problem, name)
        monkeypatch.setattr(_linear_problem, "_SMALL_FACTOR", largest)

        def make(*arguments, kind=kind, name=name):
            made.append(name)
            return kind(*arguments)

        monkeypatch.setattr(_linear_problem, name, make)
        results.append(minimize_oba(loss, loss.l1_vector(0.001), tol=1e-7))
    assert set(made) == {"Factor", "SingleFactor"}
    exact, near = results
    assert exact.status == near.status == 0
    assert near.fun == pytest.approx(exact.fun, rel=2e-6)
    assert near.n_products <= 2 * exact.n_products


def test_places_must_lie_in_the_factor():
    H = positive(4, 0)
    factor = _factor.Factor(H.copy(), 0.0)
    for place, match in ([0, 1, 2], "shape"), ([0, 1, 2, 4], "outside"), ([-2, 1, 2, 3], "outside"):
        with pytest.raises(ValueError, match=match):
            _operators.GramOperator(H, 0.0).use_factor(factor, np.array(place, dtype=np.int32))


def test_options_of_the_bend():
    X, y = separable(400)
    loss = LogisticLoss(X, y)
    results = [
        minimize_oba(loss, 0.05, options=OBAOptions(tol=1e-9, bend=bend)) for bend in (1.0, 4.0, np.inf)
    ]
    for result in results:
        assert result.status == 0 and result.fun == pytest.approx(results[0].fun, rel=1e-7)


@pytest.mark.parametrize("strength", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("shape", [(2000, 300), (1500, 3000)])
def test_a_small_promise_ends_a_run_near_the_minimum(shape, strength):
    X, y = text(*shape, 4)
    loss = LogisticLoss(X, y, fit_intercept=True)
    l1 = loss.l1_vector(strength)
    best = minimize_oba(loss, l1, tol=1e-9)
    short = minimize_oba(loss, l1, options=OBAOptions(promise_tol=3e-4))
    assert short.success and short.n_products < best.n_products
    assert short.fun <= best.fun * (1 + 3e-3)
    # no gap is claimed that was not computed
    assert short.dual_gap >= short.fun - best.fun


def test_dense_tables_of_more_than_some_hundred_columns_are_solved_by_matrices():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 650))
    for j in range(1, X.shape[1]):  # each column like the one before
        X[:, j] = 0.99 * X[:, j - 1] + np.sqrt(1 - 0.99**2) * X[:, j]
    y = np.where(X @ rng.standard_normal(650) + 20 * rng.logistic(size=1500) > 0, 1.0, -1.0)
    loss = LogisticLoss(X, y, fit_intercept=True)
    result = minimize_oba(loss, loss.l1_vector(0.1))
    assert result.success and result.dual_gap <= 1e-4 * result.fun and result.nit <= 25
    assert np.count_nonzero(result.x) > 400


def test_a_dense_model_becomes_a_matrix_where_products_were_many_two_times_in_a_row():
    rng = np.random.default_rng(0)
    design = as_design(rng.standard_normal((1500, 700)))
    d, v = np.ones(1500), np.ones(700)

    def model(cols, products):
        operator = design.model(np.arange(cols), d, False, 1e-7)[0]
        for _ in range(products):
            operator.matvec(v[:cols])
        return type(operator).__name__

    assert model(600, 0) == "GramOperator"
    # many, few, many, many
    assert [model(700, products) for products in (30, 3, 30, 30)] == ["DenseOperator"] * 4
    assert model(700, 0) == model(650, 0) == "GramOperator"
    # and so it is for a selection of its columns
    assert (
        type(design.select(np.arange(690)).model(np.arange(660), d, False, 1e-7)[0]).__name__
        == "GramOperator"
    )
    wide = as_design(rng.standard_normal((800, 700)))
    wide._many = 2
    assert type(wide.model(np.arange(700), np.ones(800), False, 1e-7)[0]).__name__ == "DenseOperator"


@pytest.mark.parametrize("has", [False, True])
def test_conjugate_gradients_by_columns_on_faces_end_where_a_matrix_does(has):
    """Products by columns go over those on the face alone, and faces change from one to the next."""
    rng = np.random.default_rng(0)
    X = sp.random(300, 40, 0.2, format="csr", random_state=0)
    d, cols = rng.random(300), np.arange(40, dtype=np.int32)
    counts = np.bincount(X.indices, minlength=40).astype(np.int64)
    A = np.asarray(X.toarray().astype(np.float32), dtype=np.float64)
    A = np.column_stack([A, np.ones(300)]) if has else A
    m = 40 + has
    x0 = rng.standard_normal(m) * (rng.random(m) < 0.5)
    g0, l1 = 5.0 * rng.standard_normal(m), np.full(m, 3.0)
    found = []
    for store in (None, _columns.columns_from_csr(X.indptr, X.indices, X.data, 40, counts, 128, 1)):
        if store is None:
            operator = _operators.GramOperator(np.ascontiguousarray((A.T * d) @ A), 1e-7)
        else:
            operator = _columns.ColumnOperator(store, cols, d, has, 1e-7, None, 1)
        x = np.empty(m)
        effort = Effort(max_cycles=50, forcing=1e-9, cg_tol=1e-9, cg_max=200, direct_size=0)
        found.append((x, *_model.solve_model(operator, x0, g0, l1, x, effort)))
    exact, by_columns = found
    assert 0 < np.count_nonzero(exact[0]) < m
    np.testing.assert_allclose(by_columns[0], exact[0], rtol=1e-6, atol=1e-7)
    assert by_columns[2] <= exact[2] + 3  # cycles
