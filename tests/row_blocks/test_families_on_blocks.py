"""Generalised linear models on blocks of rows against those of main memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from row_data import as_dask, cut, in_blocks, text

from sparsekit import GLMOBA
from sparsekit._row_blocks.blocks import ListOfBlocks

TOL = 1e-7
SETTINGS = {
    "plain": dict(),
    "elastic net and weights": dict(l1_ratio=0.5, weighted=True, offset=True),
    "ridge": dict(l1_ratio=0.0, offset=True),
    "no intercept": dict(fit_intercept=False, weighted=True),
    "nonnegative": dict(positive=True, offset=True),
    "unpenalised": dict(penalty_weights={3: 0.0, 290: 0.0, 0: 2.5}),
}
FAMILIES = ("poisson", "gamma", "tweedie", "negative-binomial", "binomial", "gaussian", "huber")


@pytest.fixture(scope="module")
def data():
    """X, targets of each family, weights and logarithms of exposures."""
    X, scores = text()
    rng = np.random.default_rng(0)
    n, mean = len(scores), np.exp(np.clip(scores - scores.mean(), -2.0, 2.0))
    targets = {
        "poisson": rng.poisson(mean).astype(float),
        "gamma": rng.gamma(2.0, mean / 2.0),
        "tweedie": rng.gamma(np.maximum(rng.poisson(mean), 1e-12)),
        "negative-binomial": rng.poisson(mean * rng.gamma(1.0, 1.0, n)).astype(float),
        "binomial": (rng.random(n) < mean / (1.0 + mean)).astype(float),
        "gaussian": scores + 30.0,
        "huber": scores - scores.mean(),
    }
    weight = rng.uniform(0.5, 2.0, n)
    weight[::7] = 0.0
    return X, targets, weight, np.log(rng.uniform(0.1, 1.0, n))


@pytest.fixture(params=["here", "there"])
def columns(request, monkeypatch):
    """Where the columns of a working set are: gathered in this process, or left where the blocks are."""
    if request.param == "there":
        monkeypatch.setenv("SPARSEKIT_MEMORY", "0")
    return request.param


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", SETTINGS)
def test_fits_are_those_of_main_memory(family, name, data, columns):
    X, targets, weight, offset = data
    settings = dict(SETTINGS[name])
    given = dict(
        sample_weight=weight if settings.pop("weighted", False) else None,
        offset=offset if settings.pop("offset", False) else None,
    )
    # the bends of Huber's loss need curvature from somewhere
    settings = {**settings, "l1_ratio": 0.5} if family == "huber" else settings
    model = GLMOBA(family, epsilon=2.0, alpha=0.003, tol=TOL, **settings)
    wanted = GLMOBA(**model.get_params()).fit(X, targets[family], **given)
    model.fit(in_blocks(X), targets[family], **given)
    assert_allclose(model.objective_, wanted.objective_, rtol=1e-8)
    assert_allclose(model.coef_, wanted.coef_, atol=1e-4)
    assert_allclose(model.intercept_, wanted.intercept_, atol=1e-4)
    assert model.dual_gap_ <= 10 * TOL * model.objective_ and model.optimality_ <= TOL
    assert model.needs_offset_ == wanted.needs_offset_ == (given["offset"] is not None)
    assert model.n_rounds_ > 1 and not hasattr(wanted, "n_rounds_")


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_links_without_a_dual_have_no_gap(link, data, columns):
    X, targets, *_ = data
    wanted = GLMOBA("binomial", link=link, alpha=0.003, tol=TOL).fit(X, targets["binomial"])
    found = GLMOBA("binomial", link=link, alpha=0.003, tol=TOL).fit(in_blocks(X), targets["binomial"])
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-8)
    assert np.isnan(found.dual_gap_) and found.optimality_ <= TOL
    with_dual = GLMOBA("binomial", alpha=0.003, tol=TOL).fit(in_blocks(X), targets["binomial"])
    assert found.n_rounds_ <= with_dual.n_rounds_ + 2


@pytest.mark.parametrize("single", [False, True])
def test_dask_with_offsets_in_blocks(single, data):
    pytest.importorskip("dask")
    X, targets, weight, offset = data
    X = X.astype(np.float32) if single else X
    y = targets["poisson"]
    wanted = GLMOBA(alpha=0.003, tol=TOL).fit(X, y, weight, offset)
    rows = [as_dask(part[:, None])[:, 0] for part in (y, weight, offset)]
    found = GLMOBA(alpha=0.003, tol=TOL).fit(as_dask(X), rows[0], rows[1], rows[2])
    assert found.coef_.dtype == X.dtype
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-5 if single else 1e-8)
    z = found.predict_linear(as_dask(X), rows[2])
    assert_allclose(z.compute(), found.predict_linear(X, offset), rtol=1e-5)
    one = GLMOBA(alpha=0.003, tol=TOL).fit(in_blocks(X), y, weight, 0.3)
    same = GLMOBA(alpha=0.003, tol=TOL).fit(X, y, weight, 0.3)
    assert_allclose(one.objective_, same.objective_, rtol=1e-5 if single else 1e-8)


def test_dense_blocks_and_warm_starts(data):
    X, targets, *_ = data
    X = X.toarray()
    model = GLMOBA("gamma", alpha=0.01, tol=TOL, warm_start=True).fit(ListOfBlocks(cut(X)), targets["gamma"])
    first, objective = model.n_rounds_, model.objective_
    model.fit(ListOfBlocks(cut(X)), targets["gamma"])
    assert_allclose(model.objective_, objective, rtol=1e-9)
    assert model.n_rounds_ <= first and model.n_iter_ <= 1


def test_targets_of_one_value_leave_no_loss(data, columns):
    X, _, _, offset = data
    for shift, y in ((None, np.full(X.shape[0], 2.5)), (offset, 2.5 * np.exp(offset))):
        model = GLMOBA("gamma", alpha=0.1).fit(in_blocks(X), y, offset=shift)
        assert not model.coef_.any() and model.intercept_ == pytest.approx(np.log(2.5), rel=1e-14)
        assert model.objective_ == model.dual_gap_ == 0.0


def test_targets_out_of_range_are_named(data):
    X, targets, *_ = data
    y = targets["poisson"].copy()
    y[200] = -1.0
    with pytest.raises(ValueError, match=r"y must be at least 0 .* got -1.0 in row 200"):
        GLMOBA().fit(in_blocks(X), y)
    with pytest.raises(ValueError, match="offset has 3 rows"):
        GLMOBA().fit(in_blocks(X), targets["poisson"], offset=np.zeros(3))
