"""The multinomial loss on the GPU (or its emulation) against NumPy, the Cython kernels and the CPU's fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device
from scipy.special import softmax

from sparsekit._cython.shared import _class_operators
from sparsekit._l1.losses.multinomial import MultinomialLoss


@pytest.fixture
def operators(cupy):
    from sparsekit.gpu.shared import _class_operators

    return _class_operators


def random_problem(n=40, p=9, K=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)).astype(dtype)
    return X, rng.integers(K, size=n), rng.random(n) + 0.2, rng


def columns_of(A):
    """The parts of a CSR matrix by columns, on the device."""
    import cupy

    turned = A.T.tocsr()
    return (
        cupy.asarray(turned.indptr.astype(np.int64)),
        cupy.asarray(turned.indices),
        cupy.asarray(turned.data),
    )


def row_parts(n, K, rng):
    """Row probabilities as `MultinomialLoss.probabilities` gives them."""
    P = softmax(rng.standard_normal((n, K)), axis=1)
    top = P.argmax(axis=1).astype(np.int32)
    P[np.arange(n), top] = 0.0
    return P, P.sum(axis=1), top


def variables_of(p, K, m, rng):
    """Sorted indices in a table of p features and a row of intercepts by K classes."""
    return np.sort(rng.choice((p + 1) * K, m, replace=False))


def hessian_on(A, parts, s, index):
    """The Hessian of the model on ``index``, by NumPy; A (n, p + 1) with the intercept's column."""
    P, rest, top = parts
    full = P.copy()
    full[np.arange(len(P)), top] = 1.0 - rest
    rows, classes = np.divmod(index, P.shape[1])
    U = A[:, rows] * full[:, classes]
    H = -(U * s[:, None]).T @ U
    same = classes[:, None] == classes
    return H + same * ((A[:, rows] * (s[:, None] * full[:, classes])).T @ A[:, rows])


@pytest.mark.parametrize(
    "K, intercept, dense", [(2, True, True), (3, False, False), (32, True, False), (33, False, True)]
)
def test_operators(cupy, operators, K, intercept, dense):
    X, _, s, rng = random_problem(70, 6, dtype=np.float32)
    X[:, 2] = 0.0  # a feature without entries
    parts, A = row_parts(70, K, rng), sp.csr_matrix(X)
    index = variables_of(6, K, 4 * K, rng)
    index = index[index < 6 * K] if not intercept else index
    s = s.astype(np.float32)
    table = np.column_stack([X, np.ones(70)]).astype(np.float64)
    H = hessian_on(table, parts, s.astype(np.float64), index)
    diagonal = H.diagonal().copy()
    shared = (parts[0].astype(np.float32), parts[2], s, index.astype(np.int64), diagonal)
    rows = (A.indptr.astype(np.int64), A.indices, A.data)
    moved = [cupy.asarray(a) for a in shared]
    if dense:
        operator = operators.ClassDenseOperator(cupy.asarray(X), *moved, intercept, 0.5)
    else:
        operator = operators.ClassRowOperator(
            *[cupy.asarray(a) for a in rows], 6, *moved, intercept, 0.5, columns_of(A)
        )
    v = rng.standard_normal(len(index))
    out = operator.matvec(cupy.asarray(v)).get()
    scale = np.abs(H).sum(axis=1).max() * np.abs(v).max()
    np.testing.assert_allclose(out, H @ v + 0.5 * diagonal * v, atol=1e-6 * scale)
    np.testing.assert_array_equal(operator.diag.get(), diagonal)
    # no float is too small, and no product depends on what was before
    w = -1e-60 * np.abs(v)
    tiny = operator.matvec(cupy.asarray(w)).get()
    np.testing.assert_allclose(tiny, H @ w + 0.5 * diagonal * w, atol=1e-66 * scale)
    assert not operator.matvec(cupy.zeros(len(index))).get().any()
    np.testing.assert_array_equal(operator.matvec(cupy.asarray(v)).get(), out)
    assert operator.n_products == 4
    if not dense and K % 8 == 0:  # what the CPU needs padded
        on_rows = _class_operators.ClassRowOperator(*rows, 6, *shared, intercept, 0.5, 1)
        np.testing.assert_allclose(on_rows.matvec(v), out, atol=1e-6 * scale)


def losses_of(cupy, X, codes, K, s):
    """The loss in main memory and on the device."""
    there = [to_device(cupy, a) for a in (X, codes, s)]
    return (
        MultinomialLoss(X, codes, K, s, fit_intercept=True),
        MultinomialLoss(*there[:2], K, there[2], fit_intercept=True),
    )


@pytest.mark.parametrize(
    "make, weighted", [(np.asarray, True), (sp.csr_matrix, False), (sp.csc_matrix, True)]
)
def test_loss(cupy, make, weighted):
    X, codes, s, rng = random_problem(K=4)
    s = s if weighted else None
    here, there = losses_of(cupy, make(X), codes, 4, s)
    x = rng.standard_normal(here.n_variables)
    xd = cupy.asarray(x)
    assert there.value(xd) == pytest.approx(here.value(x), rel=1e-13)
    np.testing.assert_allclose(there.gradient(xd).get(), here.gradient(x), rtol=1e-11, atol=1e-12)
    subset, v = np.sort(rng.choice(len(x), 9, replace=False)), rng.standard_normal(9)
    found = there.hessian_product(xd, cupy.asarray(subset), cupy.asarray(v))
    np.testing.assert_allclose(found.get(), here.hessian_product(x, subset, v), rtol=1e-10, atol=1e-12)
    Z = here.predictor(x)
    _, theta = here.derivatives(Z)
    assert there.dual_value(cupy.asarray(theta)) == pytest.approx(here.dual_value(theta), rel=1e-12)
    assert there.dual_value(cupy.asarray(theta + 1.0)) == -np.inf
    penalty = there.l1_vector(2.0)
    np.testing.assert_array_equal(penalty.get(), here.l1_vector(2.0))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("gram", [False, True])
def test_models(cupy, make, gram, monkeypatch):
    from sparsekit._l1.losses import multinomial

    if not gram:
        monkeypatch.setattr(multinomial, "MAX_SIDE", 0)
    X, codes, s, rng = random_problem(n=60, K=5)
    losses = losses_of(cupy, make(X), codes, 5, s)
    x = 0.5 * rng.standard_normal(losses[0].n_variables)
    chosen = np.sort(rng.choice(len(x), len(x) * 2 // 3, replace=False))
    v = rng.standard_normal(len(chosen))
    found = []
    for loss, convert in zip(losses, (np.asarray, cupy.asarray)):
        problem = loss.problem()
        problem.start(convert(x))
        dz = problem.move_all().direction(convert(np.ones(len(x))))
        operator, move = problem.model(convert(chosen), 0.1)
        found.append(
            [
                operator.matvec(convert(v)), operator.diag, move.direction(convert(v)), problem.gradient(),
                problem.stretch(dz), problem.lipschitz(),
            ]
        )  # fmt: skip
    for mine, theirs in zip(found[1], found[0]):
        mine = cupy.asnumpy(mine)
        # a sparse design's bound has another tie of rows and columns, or the trace
        rtol = 1e-10 if gram else 1e-5
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


def test_host_and_device_together_are_refused(cupy):
    X, codes, s, _ = random_problem(n=30, K=3)
    with pytest.raises(TypeError, match="sample_weight"):
        MultinomialLoss(cupy.asarray(X), cupy.asarray(codes), 3, s)
    with pytest.raises(ValueError, match="codes must be integers"):
        MultinomialLoss(cupy.asarray(X), cupy.asarray(codes + 0.5), 3)
    loss = MultinomialLoss(cupy.asarray(X), cupy.asarray(codes), 3)
    with pytest.raises(TypeError, match=r"cupy\.asarray\(x\)"):
        loss.value(np.zeros(loss.n_variables))
