"""minimize_oba and its estimators on a GPU: the same answers as in main memory, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

from sparsekit import LassoOBA, l1_logistic_path
from sparsekit._l1.losses.multinomial import MultinomialLoss
from sparsekit.optimize import LogisticLoss, minimize_oba


def _data(n, p, layout):
    rng = np.random.default_rng(0)
    X = (
        rng.standard_normal((n, p))
        if layout == "C"
        else sp.random(n, p, 0.1, format=layout, random_state=rng)
    )
    z = X @ np.where(rng.random(p) < 10 / p, 2 * rng.standard_normal(p), 0.0) + 0.3 * rng.standard_normal(n)
    return X, np.where(z > 0, 1.0, -1.0)


def test_a_loss_of_ones_own_is_minimised_where_x0_is(cupy):
    class Own:
        n_variables = 30

        def __init__(self, A, b):
            self.A, self.b = A, b

        def value(self, x):
            return 0.5 * ((self.A @ x - self.b) ** 2).sum()

        def gradient(self, x):
            return self.A.T @ (self.A @ x - self.b)

        def hessian_product(self, x, subset, v):
            return self.A[:, subset].T @ (self.A[:, subset] @ v)

    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 30)), rng.standard_normal(50)
    here = minimize_oba(Own(A, b), 3.0, tol=1e-8)
    there = minimize_oba(Own(cupy.asarray(A), cupy.asarray(b)), 3.0, cupy.zeros(30), tol=1e-8)
    assert isinstance(there.x, cupy.ndarray)
    assert there.fun == pytest.approx(here.fun, rel=1e-10)
    np.testing.assert_allclose(there.x.get(), here.x, atol=1e-6)


def test_what_is_refused(cupy):
    X, y = _data(60, 20, "C")
    dX, dy = cupy.asarray(X), cupy.asarray(y)
    loss, codes = LogisticLoss(dX, dy), cupy.arange(60) % 3
    for call in (
        lambda: minimize_oba(loss, np.ones(20)),
        lambda: minimize_oba(loss, 1.0, np.ones(20)),
        lambda: LogisticLoss(dX, y),
        lambda: LogisticLoss(dX, dy, np.ones(60)),
        lambda: loss.value(np.zeros(20)),
        lambda: MultinomialLoss(dX, codes, 3, np.ones(60)),
        lambda: MultinomialLoss(dX, codes, 3).value(np.zeros(60)),
        lambda: l1_logistic_path(dX, y),
        lambda: LassoOBA.path(dX, dy, sample_weight=np.ones(60)),
    ):
        with pytest.raises(TypeError, match="cupy"):
            call()
    with pytest.raises(ValueError, match="row 3"):
        LogisticLoss(dX, cupy.where(cupy.arange(60) == 3, 0.5, dy))
    with pytest.raises(ValueError, match="penalty_weights"):
        LassoOBA(penalty_weights=cupy.ones(3)).fit(dX, dy)


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_models_without_a_matrix(cupy, layout, monkeypatch):
    from sparsekit._linalg import device_design

    monkeypatch.setattr(device_design, "MAX_FACTOR_SIDE", 0)
    X, y = _data(150, 250, layout)
    loss = LogisticLoss(X, y, fit_intercept=True)
    l1 = loss.l1_vector(0.05 * np.abs(loss.gradient(np.zeros(251))[:250]).max())
    here = minimize_oba(loss, l1, tol=1e-8)
    loss = LogisticLoss(to_device(cupy, X), cupy.asarray(y), fit_intercept=True)
    there = minimize_oba(loss, cupy.asarray(l1), tol=1e-8)
    assert there.success and there.optimality <= 1e-8 and there.n_direct == 0 and there.n_cg > 0
    assert isinstance(there.x, cupy.ndarray) and isinstance(there.grad, cupy.ndarray)
    assert isinstance(there.fun, float) and there.fun == pytest.approx(here.fun, rel=1e-8)
    np.testing.assert_allclose(there.x.get(), here.x, atol=1e-4 * np.abs(here.x).max())
    assert -1e-10 * here.fun <= there.dual_gap <= max(1e-5 * here.fun, 10 * here.dual_gap)


def test_the_host_waits_seldom(cupy):
    X, y = _data(400, 900, "csr")
    loss = LogisticLoss(to_device(cupy, X), cupy.asarray(y), fit_intercept=True)
    if not hasattr(cupy, "emulation"):
        pytest.skip("a device does not count what it was waited for; only the stand-in does")
    before = dict(cupy.emulation.counts)
    result = minimize_oba(loss, 1.0)
    after = cupy.emulation.counts
    assert result.success
    # a fit's own, an iteration's own, and those of its model: rounds, cycles, checks of conjugate gradients
    waits = 60 + 19 * result.nit + 3 * sum(result.n_corrections) + result.n_cg // 2
    assert after["syncs"] - before["syncs"] <= waits
    assert after["uploads"] - before["uploads"] <= 2  # the dual point's small system
