"""Penalties chosen by AIC, BIC and EBIC, and fits without a penalty to what was selected."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import comb
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import log_loss, mean_gamma_deviance, mean_poisson_deviance

import sparsekit as sk

N, P = 120, 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)) + 0.3
Z = X[:, 0] - 0.8 * X[:, 1]
NUMBERS = 1.0 + Z + RNG.standard_normal(N)
KINDS = np.digitize(Z + RNG.logistic(size=N), [-1.0, 1.0])
COUNTS = RNG.poisson(np.exp(0.5 * Z)).astype(float)
WEIGHT = np.where(np.arange(N) % 10 == 0, 0.0, RNG.uniform(0.5, 2.0, N))
COUNTED, MEAN_ONE = WEIGHT > 0.0, WEIGHT / WEIGHT[WEIGHT > 0.0].mean()
SELECTIONS = ["aic", "bic", "ebic"]
TIGHT = dict(tol=1e-8)


def _criterion(selection, fit, k, n, n_intercepts=1, p=P):
    """By the formulas of the docstrings."""
    df = k + n_intercepts
    return {
        "aic": fit + 2.0 * df,
        "bic": fit + np.log(n) * df,
        "ebic": fit + np.log(n) * df + 2.0 * np.log(comb(p, k)),
    }[selection]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_of_least_squares(selection, fit_intercept):
    options = dict(fit_intercept=fit_intercept, **TIGHT)
    search = sk.LassoOBACV(20, selection=selection, **options).fit(X, NUMBERS, WEIGHT)
    path = sk.lasso_path(X, NUMBERS, alphas=search.alphas_, sample_weight=WEIGHT, **options)
    squares = (NUMBERS[:, None] - X @ path.coefs - path.intercepts) ** 2
    n = COUNTED.sum()
    fit = n * np.log(MEAN_ONE @ squares / n)
    expected = _criterion(selection, fit, (path.coefs != 0).sum(axis=0), n, int(fit_intercept))
    assert_allclose(search.criterion_, expected, rtol=1e-8)
    best = int(np.argmin(expected))
    assert 0 < best < 19 and search.alpha_ == search.alphas_[best]
    model = sk.LassoOBA(search.alpha_, **options).fit(X, NUMBERS, WEIGHT)
    assert_allclose(search.coef_, model.coef_, atol=1e-7)
    assert_allclose(search.intercept_, model.intercept_, atol=1e-7)
    assert search.objective_ == pytest.approx(model.objective_) and search.n_iter_.shape == (1,)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("y", [KINDS > 0, KINDS], ids=["two", "three"])
def test_of_classes(selection, y):
    n_outputs = len(np.unique(y)) - 1
    search = sk.L1LogisticOBACV(15, selection=selection, **TIGHT).fit(X, y, WEIGHT)
    path = sk.l1_logistic_path(X, y, Cs=search.Cs_, sample_weight=WEIGHT, **TIGHT)
    values = []
    for i, C in enumerate(search.Cs_):
        model = sk.L1LogisticOBA(C, **TIGHT).fit(X, y, WEIGHT)
        fit = 2.0 * log_loss(y, model.predict_proba(X), sample_weight=WEIGHT, normalize=False)
        k = np.minimum(np.count_nonzero(np.atleast_2d(path.coef(i)), axis=0), n_outputs).sum()
        values.append(_criterion(selection, fit, k, WEIGHT.sum(), n_outputs, P * n_outputs))
    assert_allclose(search.criterion_, values, rtol=1e-5)
    assert search.Cs_[np.argmin(values)] == search.C_
    assert_allclose(search.coef_.ravel(), path.coef(int(np.argmin(values))).ravel(), atol=1e-5)
    assert search.score(X, y) == pytest.approx(np.mean(search.predict(X) == y))


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_of_families_and_several_ratios(family):
    y = COUNTS + (family == "gamma")
    deviance = {"poisson": mean_poisson_deviance, "gamma": mean_gamma_deviance}[family]
    ratios = [0.5, 1.0]
    search = sk.GLMOBACV(family, alphas=8, l1_ratio=ratios, selection="bic", **TIGHT).fit(X, y, WEIGHT)
    assert search.criterion_.shape == (2, 8)
    for ratio, values in zip(ratios, search.criterion_):
        path = sk.glm_path(
            X, y, family=family, n_lambdas=8, eps=1e-3, l1_ratio=ratio, sample_weight=WEIGHT, **TIGHT
        )
        n = WEIGHT.sum() if family == "poisson" else COUNTED.sum()
        found = [
            deviance(y, np.exp(X @ coef + b), sample_weight=WEIGHT)
            for coef, b in zip(path.coefs.T, path.intercepts)
        ]
        fit = n * (np.array(found) if family == "poisson" else np.log(found))
        assert_allclose(values, _criterion("bic", fit, path.n_nonzero, n), rtol=1e-6)
    chosen = np.unravel_index(np.argmin(search.criterion_), (2, 8))
    assert search.l1_ratio_ == ratios[chosen[0]] and search.alpha_ == search.alphas_[chosen[1]]
    again = sk.GLMOBA(family, alpha=search.alpha_, l1_ratio=search.l1_ratio_, **TIGHT).fit(X, y, WEIGHT)
    assert_allclose(search.coef_, again.coef_, atol=1e-6)


@pytest.mark.parametrize(
    "make, y", [(sk.LassoOBACV, NUMBERS), (sk.L1LogisticOBACV, KINDS), (sk.GLMOBACV, COUNTS)]
)
def test_the_unit_of_weights_and_rows_without_one_do_not_count(make, y):
    grid = {"Cs" if make is sk.L1LogisticOBACV else "alphas": [0.01, 0.1, 0.2]}
    search = make(**grid, selection="bic", **TIGHT)
    weighted = search.fit(X, y, WEIGHT).criterion_
    if make is sk.LassoOBACV:  # others know the dispersion, and weights count like repeated rows
        assert_allclose(search.fit(X, y, 1e-3 * WEIGHT).criterion_, weighted, rtol=1e-7)
    assert_allclose(search.fit(X[COUNTED], y[COUNTED], WEIGHT[COUNTED]).criterion_, weighted, rtol=1e-6)


def test_models_of_more_than_half_as_many_features_as_rows_are_no_candidates():
    wide = np.random.default_rng(1).standard_normal((40, 200))
    y = wide[:, 0] + 0.5 * wide[:, 1] + 0.1 * wide[:, 2:].sum(axis=1)
    search = sk.LassoOBACV(50, selection="aic").fit(wide, y)
    n_nonzero = sk.lasso_path(wide, y, alphas=search.alphas_).n_nonzero
    assert n_nonzero[-1] > 20
    assert np.array_equal(np.isinf(search.criterion_), n_nonzero > 20)
    assert np.count_nonzero(search.coef_) <= 20
    with pytest.raises(
        ValueError, match=r"selection='aic' has no candidate: every model .* 0\.5 features a row"
    ):
        sk.LassoOBACV(2, selection="aic", penalty_weights=np.zeros(30)).fit(wide[:, :30], y)
    labels = sk.L1LogisticOBACV(5, eps=1e-2, selection="aic").fit(wide, y > 0)  # of a known dispersion
    assert np.isfinite(labels.criterion_).all()


SUPPORTS = ["1se", "bic"]


@pytest.mark.parametrize("selection", SUPPORTS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_relaxed_fit_has_no_penalty_on_what_is_selected(selection, make):
    how = dict(selection=selection, cv=3)
    plain = sk.LassoOBACV(20, **how).fit(make(X), NUMBERS)
    model = sk.LassoOBACV(20, relaxed=True, **how).fit(make(X), NUMBERS)
    used = np.flatnonzero(plain.coef_)
    assert model.alpha_ == plain.alpha_ and 0 < len(used) < P
    assert np.array_equal(np.flatnonzero(model.coef_), used)
    peer = LinearRegression().fit(X[:, used], NUMBERS)
    assert_allclose(model.coef_[used], peer.coef_, atol=1e-5)
    assert model.objective_ == pytest.approx(0.5 * np.mean((NUMBERS - model.predict(X)) ** 2))

    plain = sk.L1LogisticOBACV(20, **how).fit(make(X), KINDS > 0)
    model = sk.L1LogisticOBACV(20, relaxed=True, **how).fit(make(X), KINDS > 0)
    used = np.flatnonzero(plain.coef_[0])
    assert model.C_ == plain.C_ and np.array_equal(np.flatnonzero(model.coef_[0]), used)
    peer = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X[:, used], KINDS > 0)
    assert_allclose(model.coef_[0, used], peer.coef_[0], atol=1e-3)

    plain = sk.GLMOBACV(alphas=20, **how).fit(make(X), COUNTS)
    model = sk.GLMOBACV(alphas=20, relaxed=True, **how).fit(make(X), COUNTS)
    used = np.flatnonzero(plain.coef_)
    peer = PoissonRegressor(alpha=0.0, tol=1e-8, max_iter=1000).fit(X[:, used], COUNTS)
    assert_allclose(model.coef_[used], peer.coef_, atol=1e-3)
    assert np.array_equal(np.flatnonzero(model.coef_), used)


def test_a_relaxed_fit_of_several_classes_keeps_each_zero():
    options = dict(selection="bic", **TIGHT)
    plain = sk.L1LogisticOBACV(20, **options).fit(X, KINDS)
    model = sk.L1LogisticOBACV(20, relaxed=True, **options).fit(X, KINDS)
    assert np.array_equal(model.coef_ != 0, plain.coef_ != 0) and (model.coef_ == 0).any()
    residual = model.predict_proba(X) - (KINDS[:, None] == np.arange(3))
    assert np.abs((residual.T @ X)[model.coef_ != 0]).max() <= 1e-5
    assert np.abs(residual.sum(axis=0)).max() <= 1e-5


def test_a_relaxed_fit_that_separates_the_classes_warns():
    y = X[:, 0] > 0.0
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        sk.L1LogisticOBACV([1.0], selection="bic", relaxed=True).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="separates the classes"):
        sk.GLMOBACV("binomial", alphas=[0.01], selection="bic", relaxed=True).fit(X, y)


def test_parameters_that_contradict_one_another_are_refused():
    with pytest.raises(ValueError, match="l1_ratio=0 leaves none at zero"):
        sk.LassoOBACV(l1_ratio=[0.0, 1.0], selection="bic").fit(X, NUMBERS)
    with pytest.raises(ValueError, match="use refit=True"):
        sk.LassoOBACV(refit=False, relaxed=True).fit(X, NUMBERS)


def test_the_end_of_the_grid_warns():
    with pytest.warns(UserWarning, match="the weakest penalty of the grid, beyond which bic may still fall"):
        sk.LassoOBACV([0.5, 0.3], selection="bic").fit(X, NUMBERS)


def test_a_path_that_is_not_solved_warns():
    with pytest.warns(ConvergenceWarning, match=r"the path at alpha="):
        sk.GLMOBACV(alphas=3, selection="bic", max_iter=1).fit(X, COUNTS)


def test_a_relaxed_fit_moves_unpenalised_features_that_were_zero():
    rng = np.random.default_rng(3)
    first = rng.standard_normal(N)
    second = -0.9 * first + 0.4 * rng.standard_normal(N)
    options = dict(alphas=[0.4], positive=True, penalty_weights=[1.0, 0.0], selection="bic")
    X, y = np.column_stack([first, second]), first + 0.3 * second
    assert sk.LassoOBACV(**options).fit(X, y).coef_[1] == 0.0
    assert_allclose(sk.LassoOBACV(relaxed=True, **options).fit(X, y).coef_, [1.0, 0.3], atol=1e-6)
