"""`offset` along paths, in cross-validation and searches, in blocks of rows, on a GPU."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from offset_data import data, numbers
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from sparsekit import (
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
    LassoOBACV,
    StabilitySelection,
    l1_logistic_path,
)
from sparsekit.inspection import RegularizationPathDisplay


@pytest.mark.parametrize("K", [2, 3])
def test_paths(K):
    X, y, offset = data(K)
    weight = np.random.default_rng(1).uniform(size=len(y))
    path = l1_logistic_path(X, y, n_lambdas=4, eps=0.05, sample_weight=weight, offset=offset, tol=1e-8)
    assert path.n_nonzero[0] == 0 < path.n_nonzero[1]
    for i, C in enumerate(path.Cs):
        model = L1LogisticOBA(C, tol=1e-8).fit(X, y, weight, offset)
        assert_allclose(path.coef(i), model.coef_.squeeze(), atol=1e-6)
        assert_allclose(path.intercepts[..., i], model.intercept_.squeeze(), atol=1e-5)
        assert_allclose(path.objectives[i] * C, model.objective_ * C, rtol=1e-8)
    # just above the largest penalty nothing is selected, just below something is
    for share, empty in ((1.0001, True), (0.99, False)):
        C = 1 / (share * path.lambda_max)
        assert (not L1LogisticOBA(C, tol=1e-8).fit(X, y, weight, offset).coef_.any()) == empty
    plain = l1_logistic_path(X, y, n_lambdas=3)
    zeros = l1_logistic_path(X, y, n_lambdas=3, offset=np.zeros_like(offset))
    assert_array_equal(zeros.coefs, plain.coefs)


@pytest.mark.parametrize("K", [2, 3])
def test_cross_validation_of_classes_is_a_loop_over_the_folds(K):
    X, y, offset = data(K, n=120)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, size=len(y))
    Cs, cv = [0.05, 0.5], StratifiedKFold(3)
    options = dict(cv=cv, scoring="neg_log_loss", tol=1e-8)
    for l1_ratio in (1.0, 0.5):
        search = L1LogisticOBACV(Cs, l1_ratio=l1_ratio, **options).fit(X, y, weight, offset)
        expected = np.empty((3, 2))
        for k, (a, b) in enumerate(cv.split(X, y)):
            for j, C in enumerate(Cs):
                model = L1LogisticOBA(C, l1_ratio=l1_ratio, tol=1e-8).fit(X[a], y[a], weight[a], offset[a])
                proba = model.predict_proba(X[b], offset=offset[b])
                expected[k, j] = -log_loss(y[b], proba, sample_weight=weight[b])
        assert_allclose(search.scores_, expected, atol=1e-3 if l1_ratio == 1.0 else 2e-3)
        final = L1LogisticOBA(search.C_, l1_ratio=l1_ratio, tol=1e-8).fit(X, y, weight, offset)
        assert_allclose(search.coef_, final.coef_, atol=1e-6)
        assert_allclose(search.objective_, final.objective_, rtol=1e-8)
    proba = search.predict_proba(X, offset=offset)
    assert search.score(X, y, offset=offset) == pytest.approx(-log_loss(y, proba))
    for call in (search.predict, lambda X: search.score(X, y)):
        with pytest.raises(ValueError, match="fitted with an offset"):
            call(X)
    # grids begin where the offset alone is left, and zeros are none
    grid = L1LogisticOBACV(3, cv=cv).fit(X, y, offset=offset)
    assert_allclose(1 / grid.Cs_[0], l1_logistic_path(X, y, n_lambdas=1, offset=offset).lambda_max)
    assert_array_equal(
        L1LogisticOBACV(3, cv=cv).fit(X, y, offset=np.zeros_like(offset)).scores_,
        L1LogisticOBACV(3, cv=cv).fit(X, y).scores_,
    )
    with pytest.raises(ValueError, match=r"offset\.shape"):
        L1LogisticOBACV().fit(X, y, offset=offset[:-1])


@pytest.mark.parametrize("missing", [1, 2])
def test_a_fold_that_lacks_classes_has_their_columns_of_the_offset(missing):
    X, y, offset = data(4, n=100)
    train = np.flatnonzero(y >= missing)
    model = L1LogisticOBACV([0.5], cv=[(train, np.arange(100))], refit=False, tol=1e-9).fit(
        X, y, offset=offset
    )
    part = offset[train][:, missing:]
    part = part[:, 1] - part[:, 0] if part.shape[1] == 2 else part
    only = L1LogisticOBA(0.5, tol=1e-9).fit(X[train], y[train], offset=part)
    assert_allclose(
        model.predict_proba(X[train], offset=offset[train])[:, missing:],
        only.predict_proba(X[train], offset=part), atol=1e-6,
    )  # fmt: skip
    assert not model.predict_proba(X, offset=offset)[:, :missing].any()


def test_cross_validation_of_numbers_is_a_loop_over_the_folds():
    X, y, offset = numbers()
    alphas, cv = [0.3, 0.03], KFold(3)
    search = LassoOBACV(alphas=alphas, cv=cv, tol=1e-8).fit(X, y, offset=offset)
    expected = np.empty((3, 2))
    for k, (a, b) in enumerate(cv.split(X)):
        for j, alpha in enumerate(alphas):
            model = LassoOBA(alpha, tol=1e-8).fit(X[a], y[a], offset=offset[a])
            expected[k, j] = -mean_squared_error(y[b], model.predict(X[b], offset=offset[b]))
    assert_allclose(search.scores_, expected, rtol=1e-3)
    final = LassoOBA(search.alpha_, tol=1e-8).fit(X, y, offset=offset)
    assert_allclose(search.coef_, final.coef_, atol=1e-7)
    assert_allclose(search.intercept_, final.intercept_, atol=1e-7)
    assert search.score(X, y, offset=offset) == pytest.approx(final.score(X, y, offset=offset))
    scored = clone(search).set_params(scoring="neg_mean_squared_error").fit(X, y, offset=offset)
    mse = mean_squared_error(y, final.predict(X, offset=offset))
    assert scored.score(X, y, offset=offset) == pytest.approx(-mse)
    with pytest.raises(ValueError, match="fitted with an offset"):
        search.predict(X)
    with pytest.raises(ValueError, match=r"offset\.shape"):
        LassoOBACV().fit(X, y, offset=offset[:-1])


def test_pictures_of_paths(close_figures):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    X, y, offset = data()
    model = L1LogisticOBA(0.5).fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="fitted with an offset"):
        RegularizationPathDisplay.from_estimator(model, X, y)
    display = RegularizationPathDisplay.from_estimator(model, X, y, offset=offset, n_lambdas=3)
    expected = l1_logistic_path(X, y, offset=offset, n_lambdas=3)
    assert_array_equal(display.path.coefs, expected.coefs)


@pytest.mark.parametrize("K", [2, 3])
def test_on_a_gpu(cupy, K):
    X, y, offset = data(K)
    here = L1LogisticOBA(0.5, tol=1e-8).fit(X, y, offset=offset)
    dX, dy, do = cupy.asarray(X), cupy.asarray(y), cupy.asarray(offset)
    there = clone(here).fit(dX, dy, offset=do)
    assert isinstance(there.coef_, cupy.ndarray)
    assert_allclose(there.coef_.get(), here.coef_, atol=1e-5)
    assert_allclose(there.objective_, here.objective_, rtol=1e-8)
    assert 0 <= there.dual_gap_ + 1e-10 <= 1e-5 * here.objective_
    proba = there.predict_proba(dX, offset=do)
    assert_allclose(proba.get(), here.predict_proba(X, offset=offset), atol=1e-5)
    assert there.score(dX, dy, offset=do) == pytest.approx(here.score(X, y, offset=offset))
    with pytest.raises(TypeError, match="offset in main memory"):
        there.fit(dX, dy, offset=offset)
    with pytest.raises(ValueError, match=r"offset\.shape == \(89"):
        there.fit(dX, dy, offset=do[:-1])
    with pytest.raises(ValueError, match="offset contains NaN"):
        there.fit(dX, dy, offset=do * cupy.asarray(np.nan))
    with pytest.raises(ValueError, match="fitted with an offset"):
        there.predict(dX)
    assert_array_equal(there.to_cpu().predict(X, offset=offset), there.predict(dX, offset=do).get())


def test_squares_on_a_gpu(cupy):
    X, y, offset = numbers()
    here = LassoOBA(0.05, tol=1e-8).fit(X, y, offset=offset)
    dX, dy, do = cupy.asarray(X), cupy.asarray(y), cupy.asarray(offset)
    there = clone(here).fit(dX, dy, offset=do)
    assert_allclose(there.coef_.get(), here.coef_, atol=1e-6)
    assert_allclose(there.predict(dX, offset=do).get(), here.predict(X, offset=offset), atol=1e-6)
    assert there.score(dX, dy, offset=do) == pytest.approx(here.score(X, y, offset=offset), abs=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_stability_selection_hands_it_on(K):
    # without the offset the first feature is what explains the classes
    X, y, offset = data(K, n=120)
    rng = np.random.default_rng(0)
    offset = 4.0 * X[:, 0] if K == 2 else 4.0 * X[:, :K]
    y = (
        (offset + rng.logistic(size=120) > 0) * 1
        if K == 2
        else (offset + rng.gumbel(size=(120, K))).argmax(1)
    )
    options = dict(n_pairs=3, random_state=0, max_false=None, penalties=[0.05, 0.2])
    plain = StabilitySelection(L1LogisticOBA(), **options).fit(X, y)
    beyond = StabilitySelection(L1LogisticOBA(), **options).fit(X, y, offset=offset)
    assert plain.stability_scores_[0] == 1.0 > beyond.stability_scores_[0]
    # as fits of any estimator are
    other = StabilitySelection(Other(), **options).fit(X, y, offset=offset)
    assert_allclose(other.stability_scores_, beyond.stability_scores_, atol=0.2)
    X, y, offset = numbers()
    options["penalties"] = 5
    one = StabilitySelection(LassoOBA(), **options).fit(X, y, offset=offset)
    two = StabilitySelection(LassoOBA(), **options).fit(X, y - offset)
    assert_array_equal(one.stability_scores_, two.stability_scores_)
    with pytest.raises(ValueError, match=r"offset\.shape"):
        StabilitySelection(LassoOBA(), **options).fit(X, y, offset=offset[:-1])


class Other(L1LogisticOBA):
    """Which the selection does not know the paths of."""
