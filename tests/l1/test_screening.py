"""Leaving out the variables whose penalty no gradient can reach changes nothing but the time."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._cython.shared._orthant import measure
from sparsekit._l1 import plan
from sparsekit._l1.losses.losses import LogisticLoss
from sparsekit._l1.solver.oba import minimize_oba as solve
from sparsekit.optimize import minimize_oba

L1 = 4.0
formats = pytest.mark.parametrize("kind", ["csr", "csc"])
weights = pytest.mark.parametrize("weighted", [False, True])
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])
exact_and_lbfgs = pytest.mark.parametrize("hessian", ["exact", "lbfgs"])


def _text(n=200, common=40, rare=1500, seed=0, kind="csr", weighted=False):
    """Common columns that carry the labels, spread among rare ones of four entries or less."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(common + rare)
    A = np.zeros((n, common + rare))
    chosen = rng.random((n, common)) < min(0.3, 80 / common)
    A[:, order[:common]] = rng.standard_normal((n, common)) * chosen
    A[rng.integers(n, size=(4, rare)), order[common:]] = rng.standard_normal((4, rare))
    z = A[:, order[:common]] @ rng.normal(0, 2, common) + 0.5
    y = np.where(z + rng.logistic(size=n) > 0, 1.0, -1.0)
    s = rng.uniform(0.5, 1.5, n) * (rng.random(n) < 0.9) if weighted else None
    return sp.csr_matrix(A).asformat(kind), y, s


def _left_out(loss, l1):
    """Mask of the variables that the solver screens out."""
    _, kept = loss.problem().screened(l1, plan.SCREENED_PART)
    out = np.ones(loss.n_variables, dtype=bool)
    out[slice(None) if kept is None else kept] = False
    return out


@pytest.fixture
def unscreened(monkeypatch):
    """A solver that checks all variables."""

    def run(*args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setattr(LogisticLoss, "slope_range", lambda self: None)
            return minimize_oba(*args, **kwargs)

    return run


@weights
@formats
@pytest.mark.parametrize("dtype, index", [(np.float64, np.int32), (np.float32, np.int64)])
@pytest.mark.parametrize("n", [0, 3, 200, 12000])
def test_slopes_bound_every_gradient(kind, weighted, dtype, index, n):
    rng = np.random.default_rng(n)
    # 12000 rows have more than 50000 non-zeros, which are summed in two parts
    X = sp.random(n, 30, 0.15 if n > 200 else 0.4, kind, dtype, rng, data_rvs=rng.standard_normal)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    y = rng.choice([-1.0, 1.0], n)
    s = rng.uniform(0, 2, n) * (rng.random(n) < 0.8) if weighted else None
    losses = [LogisticLoss(X, y, s, n_threads=threads) for threads in (1, 2)]
    out = losses[0].slope_range()
    np.testing.assert_array_equal(out, losses[1].slope_range())
    np.testing.assert_array_equal(out[:, 2], X.getnnz(axis=0))
    slack = 1e-13 * out[:, :2].sum(axis=1)
    for scale in (0.0, 0.1, 1.0, 10.0, 1e3):
        g = losses[0].gradient(scale * rng.standard_normal(30))
        assert np.all(-out[:, 0] - slack <= g) and np.all(g <= out[:, 1] + slack)
    # and none is larger than it must be: rows at either end of their slope reach it
    c = -y if s is None else -y * s
    parts = X.toarray().astype(float) * c[:, None]
    np.testing.assert_allclose(out[:, 0], -np.minimum(parts, 0).sum(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(out[:, 1], np.maximum(parts, 0).sum(axis=0), rtol=1e-12, atol=1e-15)


@intercepts
@weights
@formats
def test_what_is_left_out(kind, weighted, fit_intercept):
    X, y, s = _text(kind=kind, weighted=weighted)
    loss, p = LogisticLoss(X, y, s, fit_intercept=fit_intercept), X.shape[1]
    rng = np.random.default_rng(0)
    l1 = loss.l1_vector(rng.uniform(0, 2 * L1, p) * (rng.random(p) < 0.9))
    out = _left_out(loss, l1)
    assert out.sum() > 500 and (l1 == 0).sum() > 50
    assert not np.any(out & (l1 == 0))
    values = X.toarray() * (-y if s is None else -y * s)[:, None]
    reach = np.maximum(-np.minimum(values, 0).sum(axis=0), np.maximum(values, 0).sum(axis=0))
    np.testing.assert_array_equal(out[:p], reach <= l1[:p])
    # a penalty just within reach keeps a variable, one just out of reach does not
    for factor in (1 - 1e-6, 1 + 1e-6):
        penalty = np.where(rng.random(p) < 0.5, 9.0, factor) * reach
        out = _left_out(loss, loss.l1_vector(penalty))
        assert np.all(out[:p] == (penalty >= reach)) and not out[p:].any()


def _agree(loss, l1, result, plain, tol):
    out = _left_out(loss, l1)
    assert 200 < out.sum() < loss.n_variables  # else nothing is tested
    assert result.status == plain.status == 0 and result.success
    assert result.x.shape == (loss.n_variables,) and not result.x[out].any()
    assert np.count_nonzero(plain.x) > 5
    assert result.fun == pytest.approx(plain.fun, rel=1e-2 * tol)
    assert result.fun == pytest.approx(loss.value(result.x) + l1 @ np.abs(result.x), rel=1e-12)
    np.testing.assert_allclose(result.x, plain.x, atol=1e-5)
    np.testing.assert_allclose(result.grad, loss.gradient(result.x), rtol=1e-9, atol=1e-10)
    scale = np.abs(loss.gradient(np.zeros(loss.n_variables))).max()
    # the measure is that of all variables, though not all were evaluated
    assert result.optimality <= tol
    assert result.optimality == pytest.approx(measure(result.x, result.grad, l1) / scale, rel=1e-3, abs=1e-14)
    for found in (result, plain):
        assert -1e-10 * plain.fun <= found.dual_gap <= 100 * tol * plain.fun


@exact_and_lbfgs
@intercepts
@weights
@formats
@pytest.mark.parametrize("common", [40, 700])
def test_same_solution_as_without(unscreened, hessian, fit_intercept, weighted, kind, common):
    X, y, s = _text(common=common, kind=kind, weighted=weighted)
    rng = np.random.default_rng(1)
    for penalty in (L1, rng.uniform(0.8, 1.2, X.shape[1]) * L1):
        losses = [LogisticLoss(X, y, s, fit_intercept=fit_intercept) for _ in range(2)]
        l1 = losses[0].l1_vector(penalty)
        # L-BFGS stops for rounding below that, with all variables as well
        tol = 1e-8 if hessian == "exact" else 1e-6
        kwargs = {"tol": tol, "hessian": hessian, "max_iter": 2000}
        plain = unscreened(losses[1], l1, **kwargs)
        assert (_left_out(losses[0], l1).sum() < X.shape[1] - 500) == (common > 500)
        _agree(losses[0], l1, minimize_oba(losses[0], l1, **kwargs), plain, tol)
        # from a start that is not zero on what is left out
        x0 = plain.x + 0.1 * rng.standard_normal(len(l1))
        before = x0.copy()
        _agree(losses[0], l1, minimize_oba(losses[0], l1, x0, **kwargs), plain, tol)
        np.testing.assert_array_equal(x0, before)
        inner = solve(losses[0], l1, x0, **kwargs)
        assert inner.grad is None and inner.x.shape == l1.shape


@formats
@intercepts
def test_threads_change_no_bit(kind, fit_intercept):
    X, y, s = _text(n=3000, rare=6000, kind=kind, weighted=True)
    assert X.nnz > 50000  # sums are cut into parts from there on
    losses = [LogisticLoss(X, y, s, fit_intercept=fit_intercept, n_threads=threads) for threads in (1, 2)]
    l1 = losses[0].l1_vector(L1)
    assert _left_out(losses[0], l1).sum() > 500
    one, two = (minimize_oba(loss, l1, tol=1e-7) for loss in losses)
    assert one.status == 0 and one.x.any()
    for name in ("x", "grad", "fun", "optimality", "dual_gap", "nit", "n_products"):
        np.testing.assert_array_equal(one[name], two[name])
