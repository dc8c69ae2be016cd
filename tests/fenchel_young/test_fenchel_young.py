"""Fenchel-Young losses against finite differences, their solutions against SciPy and scikit-learn."""

import numpy as np
import pytest
import reference_sparsemax as reference
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import rel_entr, softmax
from sklearn.datasets import load_iris

from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss
from sparsekit._fenchel_young.solver.minimize_model import minimize_fenchel_young

MAPS = ("sparsemax", "softmax")


def random_problem(n=60, p=9, K=4, seed=0, density=0.6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
    Q = rng.random((n, K)) * (rng.random((n, K)) < 0.6)
    Q[:, 0] += 0.05
    return X, Q / Q.sum(axis=1, keepdims=True), rng.integers(K, size=n), rng.random(n) + 0.2, rng


def plain_value(transform, X, Q, w, T, intercept):
    """The mean loss, row by row."""
    Z = X @ T[: X.shape[1]] + (T[-1] if intercept else 0.0)
    if transform == "softmax":
        each = rel_entr(Q, softmax(Z, axis=1)).sum(axis=1)
    else:
        each = np.array([reference.loss(z, q) for z, q in zip(Z, Q)])
    return np.dot(w / w.sum(), each)


def plain_hessian(transform, X, w, T, intercept):
    Z = X @ T[: X.shape[1]] + (T[-1] if intercept else 0.0)
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    if transform == "softmax":
        P = softmax(Z, axis=1)
        J = P[:, :, None] * np.eye(Z.shape[1]) - P[:, :, None] * P[:, None, :]
    else:
        J = np.array([reference.jacobian(reference.sparsemax(z)[0]) for z in Z])
    H = np.einsum("i,ia,ib,ikl->akbl", w / w.sum(), A, A, J)
    return H.reshape(A.shape[1] * Z.shape[1], -1)


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["codes", "distributions"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_value_gradient_and_products(transform, intercept, kind, make):
    X, Q, codes, w, rng = random_problem()
    targets = codes if kind == "codes" else Q
    Q = np.eye(4)[codes] if kind == "codes" else Q
    loss = FenchelYoungLoss(transform, make(X), targets, 4, w, fit_intercept=intercept, n_threads=2)
    T = 0.7 * rng.standard_normal(loss.shape)
    Z = loss.scores(T)
    value, R = loss.derivatives(Z)
    assert value == pytest.approx(plain_value(transform, X, Q, w, T, intercept), rel=1e-12)
    steps = 1e-6 * np.eye(T.size).reshape(-1, *T.shape)
    slope = [
        (
            plain_value(transform, X, Q, w, T + e, intercept)
            - plain_value(transform, X, Q, w, T - e, intercept)
        )
        / 2e-6
        for e in steps
    ]
    np.testing.assert_allclose(loss.adjoint(R).ravel(), slope, atol=1e-8)
    H = plain_hessian(transform, X, w, T, intercept)
    operator = loss.operator(Z)
    V = np.zeros(operator.shape, dtype=np.float32)
    V[:, :4] = rng.standard_normal(T.shape)
    found = operator.multiply(V, np.full_like(V, np.nan))
    expected = (H @ V[:, :4].ravel().astype(float)).reshape(T.shape)
    np.testing.assert_allclose(found[:, :4], expected, atol=3e-6 * np.abs(H).sum(axis=1).max())
    np.testing.assert_allclose(operator.diag, H.diagonal(), rtol=1e-5, atol=1e-7)
    assert not found[:, 4:].any()


def scipy_solution(transform, X, Q, w, alpha, intercept, free):
    p, K = X.shape[1], Q.shape[1]
    shape = (p + intercept, K)

    def objective(x):
        T = x.reshape(shape)
        Z = X @ T[:p] + (T[p] if intercept else 0.0)
        P = softmax(Z, axis=1) if transform == "softmax" else reference.rows(Z)[0]
        G = X.T @ ((P - Q) * (w / w.sum())[:, None])
        R = ((P - Q) * (w / w.sum())[:, None]).sum(axis=0)
        G = np.vstack([G, R]) if intercept else G
        part = T[:p] if free else T
        (G[:p] if free else G)[...] += alpha * part
        return plain_value(transform, X, Q, w, T, intercept) + 0.5 * alpha * np.sum(part**2), G.ravel()

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-10}
    return minimize(objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("intercept, free", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("direct", [False, True])
def test_agrees_with_scipy(transform, intercept, free, alpha, direct, monkeypatch):
    from sparsekit._fenchel_young.losses import loss as fenchel_young

    if not direct:
        monkeypatch.setattr(fenchel_young, "MAX_SIDE", 0)
    X, Q, _, w, _ = random_problem()
    loss = FenchelYoungLoss(transform, X, Q, 4, w, fit_intercept=intercept)
    res = minimize_fenchel_young(loss, alpha, penalize_intercept=not free, tol=1e-9)
    ref = scipy_solution(transform, X, Q, w, alpha, intercept, free)
    assert res.status == 0 and res.success
    assert res.fun <= ref.fun + 1e-12
    assert res.fun == pytest.approx(ref.fun, abs=1e-9)
    # the certificate bounds what is left, and is no empty one
    assert res.fun - ref.fun <= res.dual_gap + 1e-15
    assert 0 <= res.dual_gap < 1e-9
    assert res.n_cg == 0 if direct else res.n_cg > 0


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("transform", MAPS)
def test_gap_bounds_the_suboptimality_of_loose_fits(transform, free):
    X, Q, _, w, _ = random_problem(n=200, p=20)
    loss = FenchelYoungLoss(transform, X, Q, 4, w)
    best = minimize_fenchel_young(loss, 1e-2, penalize_intercept=not free, tol=1e-10).fun
    seen = []
    for max_iter in (1, 2, 3):
        res = minimize_fenchel_young(loss, 1e-2, penalize_intercept=not free, tol=1e-10, max_iter=max_iter)
        if res.status == 1:
            assert -1e-15 <= res.fun - best <= res.dual_gap
            seen.append(res.dual_gap)
    assert seen and np.all(np.isfinite(seen))


@pytest.mark.parametrize("transform", MAPS)
def test_threads_do_not_change_a_bit_of_sparse_problems(transform):
    rng = np.random.default_rng(3)
    # as many rows and variables as BLAS needs to share its sums between threads, if they were its own
    X = sp.random(12000, 3000, 0.004, format="csr", random_state=rng)
    codes = rng.integers(5, size=12000)
    found = [
        minimize_fenchel_young(FenchelYoungLoss(transform, X, codes, 5, n_threads=t), 1e-3, tol=1e-6).x
        for t in (1, 2)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("transform", MAPS)
def test_no_penalty_and_tiny_penalty(transform):
    X, y = load_iris(return_X_y=True)
    loss = FenchelYoungLoss(transform, X, y, 3)
    tiny = minimize_fenchel_young(loss, 1e-8, tol=1e-8)
    none = minimize_fenchel_young(loss, 0.0, tol=1e-8)
    assert tiny.status == 0 and np.isfinite(tiny.x).all() and np.isfinite(none.x).all()
    assert np.isnan(none.dual_gap)
    assert none.fun <= tiny.fun + 1e-12


def test_status_of_every_end():
    X, Q, _, w, _ = random_problem(n=300, p=30)
    loss = FenchelYoungLoss("softmax", X, Q, 4, w)
    assert minimize_fenchel_young(loss, 1e-4, max_iter=1).status == 1
    assert minimize_fenchel_young(loss, 1e-4, max_time=0.0).status == 2
    seen = []
    res = minimize_fenchel_young(loss, 1e-4, callback=lambda r: seen.append(r) or r.nit == 2, history=True)
    assert res.status == 3 and res.nit == 2 and [r.nit for r in seen] == [1, 2]
    seen[0].x[:] = np.nan  # a copy
    assert np.isfinite(res.x).all()
    assert len(res.history["fun"]) == 3 and np.all(np.diff(res.history["fun"]) < 0)

    def stop(intermediate_result):
        raise StopIteration

    assert minimize_fenchel_young(loss, 1e-4, callback=stop).status == 3
    end = minimize_fenchel_young(loss, 1e-4, tol=1e-30)
    assert end.status in (1, 4) and end.optimality < 1e-10
    again = minimize_fenchel_young(loss, 1e-4, minimize_fenchel_young(loss, 1e-4, tol=1e-8).x, tol=1e-8)
    assert again.nit == 0 and again.status == 0


@pytest.mark.parametrize(
    "x0, match", [(np.zeros(3), "x0 must have shape"), (np.full((10, 4), np.nan), "x0 must be finite")]
)
def test_bad_starts(x0, match):
    X, Q, _, _, _ = random_problem()
    with pytest.raises(ValueError, match=match):
        minimize_fenchel_young(FenchelYoungLoss("softmax", X, Q, 4), 1.0, x0)
