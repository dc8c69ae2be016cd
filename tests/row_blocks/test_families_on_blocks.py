"""Generalised linear models on blocks of rows against those of main memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from row_data import as_dask, in_blocks, text
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
SEARCHES = {
    "poisson with weights and offsets": ("poisson", dict(weighted=True, offset=True)),
    "gamma, means of folds": ("gamma", dict(refit=False)),
    "binomial, two ratios": ("binomial", dict(l1_ratio=[0.5, 1.0], alphas=[0.02, 0.005])),
    "tweedie, nonnegative": ("tweedie", dict(positive=True, offset=True)),
    "negative binomial, no intercept": ("negative-binomial", dict(fit_intercept=False)),
    "huber, unpenalised": ("huber", dict(penalty_weights={3: 0.0}, l1_ratio=0.5)),
    "a criterion": ("gamma", dict(selection="bic", weighted=True, alphas=[0.03, 0.02, 0.01])),
    "a criterion, relaxed": ("poisson", dict(selection="aic", relaxed=True, offset=True, alphas=[0.03])),
    "a grid": ("poisson", dict(alphas=4, eps=0.1, selection="1se")),
}


@pytest.fixture
def never_whole(monkeypatch):
    """No way to all rows of X at once."""
    monkeypatch.setattr(block_data, "gather_rows", None)


@pytest.mark.filterwarnings("ignore:GLMOBACV. the best alpha, .* is the weakest penalty of the grid")
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_are_those_of_main_memory(name, data, never_whole):
    X, targets, weight, offset = data
    family, settings = SEARCHES[name]
    settings = dict(settings)
    weight = weight if settings.pop("weighted", False) else None
    offset = offset if settings.pop("offset", False) else None
    settings = {"alphas": [0.02, 0.01, 0.005], "cv": CV, "tol": TOL, "epsilon": 2.0, **settings}
    found, wanted = (
        GLMOBACV(family, **settings).fit(form, targets[family], weight, offset) for form in (in_blocks(X), X)
    )
    assert_allclose(found.alphas_, wanted.alphas_, rtol=1e-6)
    assert found.alpha_ == pytest.approx(wanted.alpha_, rel=1e-6) and found.l1_ratio_ == wanted.l1_ratio_
    for scores in ("scores_", "criterion_"):
        assert hasattr(found, scores) == hasattr(wanted, scores)
        if hasattr(wanted, scores):
            assert_allclose(getattr(found, scores), getattr(wanted, scores), rtol=1e-4)
    assert_allclose(found.coef_, wanted.coef_, atol=1e-3)
    assert_allclose(found.intercept_, wanted.intercept_, atol=1e-3)
    if hasattr(wanted, "objective_"):
        assert_allclose(found.objective_, wanted.objective_, rtol=1e-7)
    score = found.score(in_blocks(X), targets[family], weight, offset)
    assert_allclose(score, found.score(X, targets[family], weight, offset), rtol=1e-9)


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
