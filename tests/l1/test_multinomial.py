"""The multinomial loss against NumPy, finite differences, the logistic loss and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp, softmax

from sparsekit import L1LogisticOBA
from sparsekit._l1.losses.multinomial import MultinomialLoss
from sparsekit._l1.solver.oba import minimize_oba
from sparsekit._linalg import class_products as _class_model
from sparsekit._linalg import cost
from sparsekit._linalg.as_design import as_design
from sparsekit._linalg.class_design import design_of
from sparsekit._linalg.class_products import matmat, rmatmat
from sparsekit._linalg.dense_design import DenseDesign
from sparsekit._linalg.sparse_design import CSRDesign


def random_problem(n=60, p=9, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    return X, rng.integers(K, size=n), rng.random(n) + 0.2, rng


def numpy_value(X, codes, K, s, x, intercept):
    p = X.shape[1]
    Z = X @ x[: p * K].reshape(p, K) + (x[p * K :] if intercept else 0.0)
    return np.sum(s * (logsumexp(Z, axis=1) - Z[np.arange(len(Z)), codes]))


def numpy_hessian(X, K, s, x, intercept):
    p = X.shape[1]
    Z = X @ x[: p * K].reshape(p, K) + (x[p * K :] if intercept else 0.0)
    P = softmax(Z, axis=1)
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    curve = P[:, :, None] * np.eye(K) - P[:, :, None] * P[:, None, :]
    H = np.einsum("i,ia,ib,ikl->akbl", s, A, A, curve)
    return H.reshape(A.shape[1] * K, A.shape[1] * K)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_gradient_and_hessian(intercept, weighted):
    X, codes, s, rng = random_problem()
    loss = MultinomialLoss(X, codes, 4, s if weighted else None, fit_intercept=intercept)
    s = s if weighted else np.ones(len(X))
    x = rng.standard_normal(loss.n_variables)
    assert loss.value(x) == pytest.approx(numpy_value(X, codes, 4, s, x, intercept), rel=1e-13)

    def f(point):
        return numpy_value(X, codes, 4, s, point, intercept)

    slope = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(len(x))]
    np.testing.assert_allclose(loss.gradient(x), slope, atol=1e-7)
    H = numpy_hessian(X, 4, s, x, intercept)
    subset = np.sort(rng.choice(len(x), 15, replace=False))
    v = rng.standard_normal(15)
    np.testing.assert_allclose(loss.hessian_product(x, subset, v), H[np.ix_(subset, subset)] @ v, atol=1e-11)


@pytest.mark.parametrize("K", [2, 3, 8, 11, 20, 31, 40])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("gram", [False, True])
def test_model_operators_are_the_hessian(K, make, gram, monkeypatch):
    from sparsekit._l1.losses import multinomial

    if not gram:
        monkeypatch.setattr(multinomial, "MAX_SIDE", 0)
    X, codes, s, rng = random_problem(n=300, K=K)
    loss = MultinomialLoss(make(X), codes, K, s, fit_intercept=True, n_threads=2)
    # no row is so far on the wrong side that the model takes more than its curvature
    x = 0.1 * rng.standard_normal(loss.n_variables)
    H = numpy_hessian(X, K, s, x, True)
    problem = loss.problem()
    problem.start(x)
    chosen = np.sort(rng.choice(len(x), len(x) * 2 // 3, replace=False))
    for variables in (chosen, chosen[::2]):
        operator, move = problem.model(variables, 0.0)
        v = rng.standard_normal(len(variables))
        block = H[np.ix_(variables, variables)]
        scale = np.abs(block).sum(axis=1).max()
        np.testing.assert_allclose(operator.matvec(v), block @ v, atol=3e-6 * scale)
        np.testing.assert_allclose(operator.diag, block.diagonal(), rtol=1e-5, atol=1e-12)
        full = np.zeros(len(x))
        full[variables] = v
        np.testing.assert_allclose(move.direction(v), loss.predictor(full), atol=1e-12)


def test_saturated_rows_keep_their_digits():
    # one score leads by 60: 1 - p is about 1e-26 and must not be rounded to zero
    X = np.array([[1.0]])
    loss = MultinomialLoss(X, [1], 3)
    x = np.array([0.0, 60.0, 0.0])
    miss = 2 * np.exp(-60.0)
    assert loss.value(x) == pytest.approx(miss, rel=1e-12)
    np.testing.assert_allclose(loss.gradient(x), [miss / 2, -miss, miss / 2], rtol=1e-12)
    every = np.arange(3)
    product = loss.hessian_product(x, every, np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(product, [-miss / 2, miss, -miss / 2], rtol=1e-12)
    problem = loss.problem()
    problem.start(x)
    operator, _ = problem.model(every, 0.0)
    # a model's blocks of rows are float32
    np.testing.assert_allclose(operator.matvec(np.array([0.0, 1.0, 0.0])), product, rtol=1e-6)


def test_gap_with_unpenalised_features_and_zero_weights():
    X, codes, s, _ = random_problem(n=150)
    s[::5] = 0.0
    loss = MultinomialLoss(X, codes, 4, s, fit_intercept=True)
    weights = np.full(9, 2.0)
    weights[2] = 0.0
    res = minimize_oba(loss, loss.l1_vector(weights), tol=1e-9)
    assert res.status == 0
    assert abs(res.dual_gap) < 1e-7 * res.fun


@pytest.mark.parametrize("K", [3, 20])
def test_threads_do_not_change_a_bit(K):
    rng = np.random.default_rng(3)
    X = sp.random(3000, 800, 0.02, format="csr", random_state=rng)
    codes = rng.integers(K, size=3000)
    found = []
    for n_threads in (1, 2):
        loss = MultinomialLoss(X, codes, K, fit_intercept=True, n_threads=n_threads)
        found.append(minimize_oba(loss, loss.l1_vector(1.0), tol=1e-6).x)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [1, 2, 3, 4, 5, 8, 11, 16, 17, 30, 33, 300])
def test_scores_of_classes(K, dtype):
    """Classes are taken by 16, 8 or 4, the last ones maybe twice; rows may be empty."""
    A = sp.random(200, 120, density=0.02, format="csr", dtype=dtype, random_state=1)
    assert (np.diff(A.indptr) == 0).any()
    W = np.random.default_rng(3).standard_normal((120, K))
    expected = [sum(x * W[j] for j, x in zip(row.indices, row.data.astype(float))) for row in A]
    found = []
    for index in (np.int32, np.int64):
        parts = A.indptr.astype(index), A.indices.astype(index), A.data, A.shape
        found += [matmat(CSRDesign(*parts, n_threads=n), W) for n in (1, 2)]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    for row, z in zip(found[0], expected):
        np.testing.assert_allclose(row, z, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [3, 300])  # partial sums by rows, and threads by classes
def test_products_of_rows(K, dtype):
    rng = np.random.default_rng(3)
    A = sp.random(700, 120, density=0.1, format="csr", dtype=dtype, random_state=1)
    U = rng.standard_normal((700, K))
    results = [rmatmat(as_design(A), U, np.empty((120, K)))]
    threaded = CSRDesign(A.indptr, A.indices, A.data, A.shape, n_threads=2)
    results.append(rmatmat(threaded, U, np.empty((120, K))))
    np.testing.assert_allclose(results[0], A.toarray().astype(float).T @ U, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("products", [0, np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_gram_matrices_and_products_have_one_answer(make, products, monkeypatch):
    X, codes, s, _ = random_problem(n=200, K=3)
    X = make(X)
    for target in (codes, codes == 1):
        plain = L1LogisticOBA(C=2.0, tol=1e-9).fit(X, target, s)
        with monkeypatch.context() as patch:
            patch.setattr(cost, "PRODUCTS", products)
            patch.setattr(cost, "CHEAP", 0.0)
            other = L1LogisticOBA(C=2.0, tol=1e-9).fit(X, target, s)
        assert other.objective_ == pytest.approx(plain.objective_, rel=1e-9)
        assert other.dual_gap_ <= 1e-8 * other.objective_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("buffer", [1, 2**22])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_factors_of_the_hessian(dtype, buffer, exact, make, monkeypatch):
    """By blocks of rows, in either precision: the same matrix as the sum over rows."""
    monkeypatch.setattr(_class_model, "BUFFER", buffer)
    X, codes, s, rng = random_problem(n=1300)
    loss = MultinomialLoss(make(X.astype(dtype)), codes, 4, s, fit_intercept=True)
    x = rng.standard_normal(loss.n_variables)
    # some variables of some features, in an order that is not the classes'
    positions = np.sort(rng.permutation(loss.n_variables)[:23])
    parts = loss.probabilities(loss.predictor(x))
    H = _class_model._gram_blas(loss.design, positions, parts, s, bool((positions >= 36).any()), exact)
    whole = numpy_hessian(X.astype(dtype).astype(float), 4, s, x, True)
    error = np.abs(H - whole[np.ix_(positions, positions)]).max() / np.abs(whole).max()
    assert error < (1e-13 if exact else 1e-5)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mostly_zero_dense_data_is_compressed(order, dtype):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((900, 120)) * (rng.random((900, 120)) < 0.2), order=order, dtype=dtype)
    X[5] = 0.0
    X[6] = 1.0
    X[-1, -1] = np.nan  # what is not zero is kept, whatever it is
    design = MultinomialLoss(X, np.zeros(900, dtype=int), 2, n_threads=2).design
    assert isinstance(design, CSRDesign) and design.data.dtype == dtype
    rows = sp.csr_matrix((design.data, design.indices, design.indptr), shape=X.shape)
    np.testing.assert_array_equal(rows.toarray(), X)
    assert design.nnz == np.count_nonzero(X)
    dense = MultinomialLoss(np.where(X == 0, 1.0, X), np.zeros(900, dtype=int), 2).design
    assert isinstance(dense, DenseDesign)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_probabilities_too_small_for_single_precision_count_as_zero(kind):
    """Products with numbers below the smallest normal one are slow."""
    rng, top = np.random.default_rng(0), np.zeros(30, dtype=np.int32)
    X = kind(rng.uniform(0.5, 1.0, (30, 5)))
    make = _class_model.dense_operator if kind is np.asarray else _class_model.row_operator
    for low, high in ((-45, -25), (-20, -18)):
        parts = 10.0 ** rng.uniform(low, high, (30, 3)), np.ones(30), top
        operator = make(design_of(X, 1), None, parts, np.ones(30), False, 0.0)
        V = rng.standard_normal(operator.shape).astype(np.float32)
        assert np.asarray(operator.multiply(V, np.empty_like(V))).any() == (high > -24)
