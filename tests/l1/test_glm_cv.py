"""GLMOBACV against fits of each fold, and its rules of choice."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics import mean_poisson_deviance, mean_tweedie_deviance
from sklearn.model_selection import KFold
from sklearn.utils._testing import ignore_warnings

from sparsekit import GLMOBA, GLMOBACV

N, P = 150, 12
CV = KFold(3, shuffle=True, random_state=0)


def _data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P))
    z = 0.6 * X[:, 0] - 0.5 * X[:, 1]
    return X, rng.poisson(np.exp(z)).astype(float), rng.uniform(0.5, 2.0, N), 0.3 * rng.standard_normal(N)


X, Y, WEIGHT, OFFSET = _data()


@pytest.mark.parametrize("selection", ["best", "1se"])
def test_scores_are_the_deviances_of_fits_to_the_folds(selection):
    alphas = [0.3, 0.1, 0.03, 0.01]
    search = GLMOBACV(alphas=alphas, cv=CV, selection=selection, tol=1e-8).fit(X, Y, WEIGHT, offset=OFFSET)
    expected = np.array([
        [
            -mean_poisson_deviance(
                Y[test],
                GLMOBA(alpha=alpha, tol=1e-9).fit(X[train], Y[train], WEIGHT[train], OFFSET[train])
                .predict(X[test], OFFSET[test]), sample_weight=WEIGHT[test],
            )
            for alpha in alphas
        ]
        for train, test in CV.split(X)
    ])  # fmt: skip
    assert_allclose(search.scores_, expected, rtol=1e-4)
    best = int(np.argmax(expected.mean(axis=0)))
    least = expected.mean(axis=0)[best] - expected.std(axis=0, ddof=1)[best] / np.sqrt(3)
    assert search.alpha_best_ == alphas[best]
    assert search.alpha_1se_ == alphas[int(np.argmax(expected.mean(axis=0) >= least))]
    assert search.alpha_ == getattr(search, f"alpha_{selection}_")
    model = GLMOBA(alpha=search.alpha_, tol=1e-8).fit(X, Y, WEIGHT, OFFSET)
    assert_allclose(search.coef_, model.coef_, atol=1e-6)
    assert_allclose(search.intercept_, model.intercept_, atol=1e-6)
    assert search.dual_gap_ <= 1e-7 * search.objective_
    assert_allclose(search.score(X, Y, WEIGHT, OFFSET), model.score(X, Y, WEIGHT, OFFSET), rtol=1e-5)


def test_ratios_grids_names_and_sparse_data():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(P)])
    options = dict(alphas=8, l1_ratio=[0.5, 1.0], cv=CV, penalty_weights={"c3": 0.0}, eps=1e-2)
    search = GLMOBACV(**options).fit(frame, Y)
    assert search.l1_ratio_ in (0.5, 1.0) and len(search.l1_ratio_scores_) == 2
    assert len(search.alphas_) == 8 and (np.diff(search.alphas_) < 0.0).all()
    assert search.coef_[3] != 0.0
    weights = np.where(np.arange(P) == 3, 0.0, 1.0)
    sparse = GLMOBACV(**{**options, "penalty_weights": weights}).fit(sp.csr_array(X), Y)
    assert_allclose(sparse.coef_, search.coef_, atol=1e-4)
    assert sparse.alpha_ == pytest.approx(search.alpha_, rel=1e-6)


@pytest.mark.parametrize("family", ["gamma", "tweedie", "negative-binomial", "binomial", "gaussian", "huber"])
def test_every_family_is_searched(family):
    y = (Y > 0).astype(float) if family == "binomial" else Y + 0.1
    search = GLMOBACV(family, alphas=6, cv=CV, positive=family == "gamma").fit(X, y)
    again = GLMOBA(family, alpha=search.alpha_, positive=family == "gamma").fit(X, y)
    assert_allclose(search.coef_, again.coef_, atol=1e-3)
    if family == "tweedie":
        train, test = next(CV.split(X))
        model = GLMOBA(family, alpha=search.alphas_[-1]).fit(X[train], y[train])
        deviance = mean_tweedie_deviance(y[test], model.predict(X[test]), power=1.5)
        assert_allclose(-search.scores_[0, -1], deviance, rtol=1e-2)


def test_other_scorers_and_the_mean_of_the_folds():
    search = GLMOBACV(alphas=[0.1], cv=CV, scoring="neg_mean_poisson_deviance", refit=False).fit(X, Y)
    folds = [GLMOBA(alpha=0.1).fit(X[train], Y[train]) for train, _ in CV.split(X)]
    assert_allclose(search.coef_, np.mean([fold.coef_ for fold in folds], axis=0), atol=1e-4)
    assert_allclose(search.score(X, Y), -mean_poisson_deviance(Y, search.predict(X)), rtol=1e-9)
    assert not hasattr(search, "dual_gap_")


@ignore_warnings
def test_a_fold_without_a_model_is_refused():
    y = np.where(np.arange(N) < N // 3, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"y is 0\.0 in every row with a positive weight"):
        GLMOBACV(cv=[(np.arange(N // 3, N), np.arange(N // 3))]).fit(X, y)
