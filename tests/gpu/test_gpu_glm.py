"""Generalised linear models of data on a GPU: the coefficients, scores and choices of main memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

from sparsekit import GLMOBA, GLMOBACV, glm_path

pytestmark = pytest.mark.thorough

N, P = 70, 8
V = np.arange(P) % 3 * 1.0  # penalty weights, some of them none
FAMILIES = ("poisson", "gamma", "tweedie", "negative-binomial", "binomial", "gaussian", "huber")


def _data(family="poisson", layout="dense", dtype=np.float64):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((N, P)) + 0.2).astype(dtype)
    X = sp.csr_matrix(np.where(rng.random(X.shape) < 0.6, X, 0.0)) if layout == "csr" else X
    z = X @ np.resize([0.5, -0.5, 0.3, 0.0, 0.0, 0.0], P)
    mean = np.exp(np.clip(z, -2.0, 2.0))
    y = {
        "gamma": rng.gamma(2.0, mean / 2.0),
        "tweedie": rng.gamma(np.maximum(rng.poisson(mean), 1e-12)),
        "binomial": (rng.random(N) < mean / (1.0 + mean)) * 1.0,
        "gaussian": z + 3.0,
        "huber": z + rng.standard_cauchy(N),
    }.get(family, rng.poisson(mean) * 1.0)
    weight = rng.uniform(0.5, 2.0, N)
    weight[::9] = 0.0
    return X, y, weight, 0.3 * rng.standard_normal(N)


def _compare(cupy, here, there, given, coef=1e-5):
    X, y, weight, offset = given
    dX, dy, dw, do = (to_device(cupy, part) for part in given)
    scale = np.abs(here.coef_).max()
    assert isinstance(there.coef_, cupy.ndarray) and there.coef_.dtype == X.dtype
    np.testing.assert_allclose(there.coef_.get(), here.coef_, rtol=0, atol=coef * scale)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-2 * coef)
    assert np.isnan(here.dual_gap_) == np.isnan(there.dual_gap_)
    assert not there.dual_gap_ > 10 * there.tol * there.objective_ + 1e-6 * (X.dtype == np.float32)
    found = there.predict(dX, do)
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(found.get(), here.predict(X, offset), rtol=20 * coef, atol=20 * coef)
    assert there.score(dX, dy, dw, do) == pytest.approx(here.score(X, y, weight, offset), abs=20 * coef)
    np.testing.assert_allclose(there.to_cpu().predict(X, offset), found.get(), rtol=1e-5)


FITS = [
    *[(family, ("dense", "csr")[k % 2], {}) for k, family in enumerate(FAMILIES)],
    *[("binomial", "dense", {"link": link}) for link in ("probit", "cloglog")],
    ("poisson", "dense", {"l1_ratio": 0.5, "positive": True}),
    ("gamma", "csr", {"l1_ratio": 0.0}),
    ("tweedie", "dense", {"power": 1.2, "fit_intercept": False, "penalty_weights": V}),
    ("negative-binomial", "csr", {"hessian": "lbfgs", "dispersion": 0.5, "tol": 1e-6}),
]


@pytest.mark.parametrize("family, layout, options", FITS)
def test_fits_are_those_of_main_memory(cupy, family, layout, options):
    given = _data(family, layout)
    options = {"alpha": 0.02, "tol": 1e-8, **options}
    here = GLMOBA(family, **options).fit(*given)
    there = GLMOBA(family, warm_start=True, **options).fit(*(to_device(cupy, part) for part in given))
    _compare(cupy, here, there, given, 1e-3 if "hessian" in options else 1e-5)
    n_iter = there.n_iter_
    there.fit(*(to_device(cupy, part) for part in given))
    assert there.n_iter_ <= n_iter
    _compare(cupy, here, there, given, 1e-3 if "hessian" in options else 1e-5)


def test_searches_and_paths(cupy):
    given = _data("poisson", "csr")
    on_device = [to_device(cupy, part) for part in given]
    options = dict(alphas=4, eps=0.05, cv=3, tol=1e-8)
    here, there = GLMOBACV(**options).fit(*given), GLMOBACV(**options).fit(*on_device)
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-3)
    assert there.alpha_ == pytest.approx(here.alpha_, rel=1e-6)
    _compare(cupy, here, there, given)
    X, y, weight, offset = given
    dX, dy, dw, do = on_device
    here = glm_path(X, y, n_lambdas=4, eps=0.05, sample_weight=weight, offset=offset, tol=1e-8)
    there = glm_path(dX, dy, n_lambdas=4, eps=0.05, sample_weight=dw, offset=do, tol=1e-8)
    assert isinstance(there.coefs, np.ndarray)
    np.testing.assert_allclose(there.lambdas, here.lambdas, rtol=1e-8)
    np.testing.assert_allclose(there.coefs, here.coefs, atol=1e-5)
    np.testing.assert_allclose(there.objectives, here.objectives, rtol=1e-8)


def test_targets_and_sides_that_do_not_fit(cupy):
    X, y, _, offset = _data()
    dX, dy = cupy.asarray(X), cupy.asarray(y)
    dy[5] = -1.0
    with pytest.raises(ValueError, match=r"y must be at least 0 for this family; got -1.0 in row 5"):
        GLMOBA().fit(dX, dy)
    with pytest.raises(ValueError, match=r"y is 0.0 in every row"):
        GLMOBA().fit(dX, 0.0 * dy)
    dy = cupy.asarray(y)
    for fit in (GLMOBA().fit, GLMOBACV(cv=2).fit, glm_path):
        with pytest.raises(TypeError, match="on the GPU"):
            fit(dX, y)
        with pytest.raises(TypeError, match="on the GPU"):
            fit(dX, dy, offset=offset)
    model = GLMOBA(alpha=0.02).fit(dX, dy)
    with pytest.raises(TypeError, match="on the GPU"):
        model.score(dX, dy, offset=offset)
