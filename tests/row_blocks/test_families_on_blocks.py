"""Generalised linear models on blocks of rows against those of main memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from row_data import as_dask, in_blocks, targets, text
from sklearn.model_selection import KFold

from sparsekit import GLMOBA, GLMOBACV, glm_path
from sparsekit._estimator import block_data

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
    n, rng = len(scores), np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, n)
    weight[::7] = 0.0
    return X, targets(scores), weight, np.log(rng.uniform(0.1, 1.0, n))


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
    assert_allclose(model.coef_, wanted.coef_, atol=1e-3)
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


CV = KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def never_whole(monkeypatch):
    """No way to all rows of X at once."""
    monkeypatch.setattr(block_data, "gather_rows", None)


@pytest.mark.parametrize("family", ["poisson", "gamma", "binomial"])
def test_paths_are_those_of_main_memory(family, data, columns, never_whole):
    X, targets, weight, offset = data
    options = dict(n_lambdas=4, eps=0.1, sample_weight=weight, offset=offset, tol=TOL)
    found, wanted = (glm_path(form, targets[family], family, **options) for form in (in_blocks(X), X))
    for name in ("lambdas", "objectives"):
        assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-6)
    assert_allclose(found.coefs, wanted.coefs, atol=1e-3)
    assert_allclose(found.intercepts, wanted.intercepts, atol=1e-3)
    assert (found.dual_gaps <= 10 * TOL * found.objectives).all()


def test_a_search_on_dask_takes_its_targets_weights_and_offsets_in_blocks(data, never_whole):
    pytest.importorskip("dask")
    X, targets, weight, offset = data
    rows = [as_dask(part[:, None])[:, 0] for part in (targets["poisson"], weight, offset)]
    options = dict(alphas=[0.02, 0.005], cv=CV, tol=TOL)
    found = GLMOBACV(**options).fit(as_dask(X), *rows)
    wanted = GLMOBACV(**options).fit(X, targets["poisson"], weight, offset)
    assert_allclose(found.scores_, wanted.scores_, rtol=1e-4)
    score = found.score(as_dask(X), *rows)
    assert_allclose(score, wanted.score(X, targets["poisson"], weight, offset), rtol=1e-4)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        found.score(as_dask(X), *rows[:2])
    with pytest.raises(ValueError, match="cv has 65 folds; with X in blocks 64 are the most"):
        GLMOBACV(cv=65).fit(in_blocks(X), targets["poisson"])
