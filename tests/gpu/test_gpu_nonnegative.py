"""Coefficients >= 0 on a GPU: kernels against plain formulas, fits against those in main memory."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sparsekit import LassoOBA
from sparsekit._l1.solver.minimise_model import Effort
from sparsekit._l1.solver.nonnegative import BARE

TIGHT = dict(tol=1e-10, max_iter=500, positive=True)


def _data(n, p, layout="C", dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5
    if layout == "csr":
        X = sp.csr_array(np.where(rng.random((n, p)) < 0.3, X, 0.0))
    w = np.where(np.arange(p) < 6, rng.uniform(-2.0, 2.0, p), 0.0)
    return X.astype(dtype), X @ w + rng.standard_normal(n) + 3.0


def test_the_certificate_is_never_below_the_error(cupy):
    X, y = _data(60, 15)
    for v, alpha in ((None, 3.0), (None, 0.1), (None, 0.0), (np.arange(15) % 3, 0.5)):
        for ratio in (1.0, 0.5):
            fixed = dict(alpha=alpha, l1_ratio=ratio, penalty_weights=v)
            best = LassoOBA(**{**TIGHT, **fixed}).fit(X, y).objective_
            for stop in (1, 2, 3):
                there = LassoOBA(**{**TIGHT, **fixed}, callback=lambda now, stop=stop: now.nit >= stop)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    there.fit(cupy.asarray(X), cupy.asarray(y))
                assert there.objective_ - best <= there.dual_gap_ + 1e-12 * best
                assert float(there.coef_.min()) >= 0.0


def _sides(m=400, seed=0):
    """A point, gradients, and penalties of which some are the least that there are, and the last is none."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(m) < 0.5, rng.random(m), 0.0)
    g, l1 = 2 * rng.standard_normal(m), rng.random(m)
    l1[::7], l1[-1] = BARE, 0.0
    x[-1] = -1.0  # of no sign
    return x, g, l1


def test_sides_of_the_orthant(cupy):
    from sparsekit.gpu.shared import _orthant as gpu

    x, g, l1 = _sides()
    lower = np.where(l1 > 0, np.inf, l1)
    residual = np.abs(np.median([g - lower, x, g + l1], axis=0))
    kind = np.where(x != 0, 1, np.where((g + l1 < 0) | (g - lower > 0), 2, 0))
    dx, dg, dl = map(cupy.asarray, (x, g, l1))
    dkind, dsize = cupy.empty(len(x), dtype=np.int8), cupy.empty(len(x))
    found = gpu.identify(dx, dg, dl, dkind, dsize, one_sided=True)
    assert found == (residual.max(), (kind == 1).sum(), (kind == 2).sum())
    np.testing.assert_array_equal(dkind.get(), kind)
    np.testing.assert_array_equal(dsize.get(), np.where(kind == 2, residual, 0.0))
    assert gpu.measure(dx, dg, dl, one_sided=True) == residual.max()
    L = 3.0
    point = x - (g + l1) / L
    point = np.where(l1 > 0, np.maximum(point, 0.0), point)
    move = point - x
    expected = g @ move + 0.5 * L * move @ move + l1 @ np.abs(point)
    assert gpu.ista_bound(dx, dg, dl, L, one_sided=True) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("how", ["direct", "gradients"])
def test_models_are_minimised_on_one_side(cupy, how):
    from scipy.optimize import nnls

    from sparsekit.gpu.l1 import _model
    from sparsekit.gpu.shared._operators import GramOperator

    x, g, l1 = _sides(30)
    x[-1], l1[-1] = 0.5, 0.3
    A = np.random.default_rng(1).standard_normal((60, 30))
    G = A.T @ A
    operator = GramOperator(cupy.asarray(G), 0.0)
    operator.direct = how == "direct"
    out, effort = cupy.empty(30), Effort(60, 1e-12, cg_tol=1e-12, cg_max=200, sweeps=0)
    decrease, *_ = _model.solve_model(operator, *map(cupy.asarray, (x, g, l1)), out, effort, one_sided=True)
    # G x = (G x0 - g - l1) + forces, as nonnegative least squares with the same gradient
    best = nnls(A, np.linalg.lstsq(A.T, G @ x - g - l1, rcond=None)[0])[0]
    np.testing.assert_allclose(out.get(), best, atol=1e-8)
    move = best - x
    assert decrease == pytest.approx(-(g @ move + 0.5 * move @ G @ move + l1 @ move), rel=1e-8)
