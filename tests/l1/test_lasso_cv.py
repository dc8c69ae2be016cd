"""LassoOBACV against scikit-learn's LassoCV and ElasticNetCV, plain cross-validation, and its own rules."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNetCV, Lasso
from sklearn.model_selection import KFold, cross_val_score

from sparsekit import LassoOBA, LassoOBACV

TIGHT = 1e-12


@pytest.fixture(scope="module")
def data():
    X, y = load_diabetes(return_X_y=True)
    return 20 * X[:120], y[:120]


def theirs(X, y, weight=None, **options):
    """scikit-learn's; before 1.7 the number of alphas had a name of its own."""
    model = ElasticNetCV(**{"tol": 1e-10, "max_iter": 10**5, **options})
    if "n_alphas" in model.get_params() and isinstance(options.get("alphas"), int):
        model.set_params(n_alphas=options["alphas"], alphas=None)
    return model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("ratio", [1.0, 0.4, [0.2, 0.6, 1.0]])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weights", "no intercept"])
def test_scikit_learn_finds_the_same(data, ratio, kind):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y)) if kind == "weights" else None
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    options = dict(alphas=12, l1_ratio=ratio, cv=4, fit_intercept=kind != "no intercept")
    ours = LassoOBACV(tol=TIGHT, **options).fit(X, y, weight)
    model = theirs(X, y, weight, **options)
    assert_allclose(ours.alphas_, model.alphas_, rtol=1e-10)
    assert ours.mse_path_.shape == model.mse_path_.shape
    assert_allclose(ours.mse_path_, model.mse_path_, rtol=1e-6)
    assert_allclose((ours.alpha_, ours.l1_ratio_), (model.alpha_, model.l1_ratio_), rtol=1e-10)
    assert_allclose(ours.coef_, model.coef_, atol=1e-4)
    assert ours.intercept_ == pytest.approx(model.intercept_, abs=1e-4)
    assert ours.dual_gap_ <= 1e-8 * ours.objective_
    assert ours.score(X, y) == pytest.approx(model.score(X, y), rel=1e-6)


def test_scores_are_those_of_plain_cross_validation(data):
    cv, alphas = KFold(3, shuffle=True, random_state=0), [0.3, 10.0, 2.0]
    model = LassoOBACV(alphas, cv=cv, scoring="r2", tol=TIGHT).fit(*data)
    assert_allclose(model.alphas_, sorted(alphas, reverse=True))
    for j, alpha in enumerate(model.alphas_):
        expected = cross_val_score(Lasso(alpha, tol=1e-10, max_iter=10**5), *data, cv=cv, scoring="r2")
        assert_allclose(model.scores_[:, j], expected, rtol=1e-6)
    assert not hasattr(model, "mse_path_")
    final = LassoOBA(model.alpha_, tol=TIGHT).fit(*data)
    assert model.objective_ == pytest.approx(final.objective_, rel=1e-9)
    assert model.score(*data) == pytest.approx(final.score(*data), rel=1e-8)
    parts = [LassoOBA(2.0, tol=TIGHT).fit(data[0][rows], data[1][rows]) for rows, _ in cv.split(*data)]
    mean = LassoOBACV([2.0], cv=cv, refit=False, tol=TIGHT).fit(*data)
    assert_allclose(mean.coef_, np.mean([part.coef_ for part in parts], axis=0), atol=1e-5)
    assert mean.intercept_ == pytest.approx(np.mean([part.intercept_ for part in parts]), rel=1e-6)


def one_standard_error(errors):
    """Position of the strongest penalty whose error is at most the best plus its standard error."""
    means = [sum(row) / len(row) for row in errors]
    best = min(range(len(means)), key=lambda k: (means[k], k))
    spread = sum((e - means[best]) ** 2 for e in errors[best]) / (len(errors[best]) - 1)
    limit = means[best] + (spread / len(errors[best])) ** 0.5
    return best, min(k for k in range(len(means)) if means[k] <= limit)


@pytest.mark.parametrize("ratio", [1.0, [0.3, 1.0]])
def test_one_standard_error_takes_the_sparser_side(data, ratio):
    model = LassoOBACV(30, l1_ratio=ratio, selection="1se").fit(*data)
    alphas = model.alphas_ if np.ndim(ratio) == 0 else model.alphas_[ratio.index(model.l1_ratio_)]
    best, sparse = one_standard_error((-model.scores_.T).tolist())
    assert (model.alpha_best_, model.alpha_1se_) == (alphas[best], alphas[sparse])
    assert model.alpha_ == model.alpha_1se_ > model.alpha_best_
    assert clone(model).set_params(selection="best").fit(*data).alpha_ == model.alpha_best_


def test_folds_without_weight_are_refused_and_ones_that_stop_are_named(data):
    X, y = data
    with pytest.raises(ValueError, match="left-out part of fold 1 have sample_weight 0"):
        LassoOBACV(2, cv=3).fit(X, y, np.repeat([1.0, 0.0, 1.0], 40))
    with pytest.warns(ConvergenceWarning, match=r"LassoOBACV: \d+ of \d+ points .* fold 0 at alpha=\S+"):
        LassoOBACV(3, cv=3, max_iter=1, tol=1e-12, hessian="lbfgs").fit(X, y)
    for name, bad in (("alphas", [-1.0]), ("l1_ratio", [2.0]), ("selection", "2se"), ("eps", 1.0)):
        with pytest.raises(ValueError, match=name):
            LassoOBACV(**{name: bad}).fit(X, y)


def test_a_constant_target_has_no_errors():
    X = np.random.default_rng(0).normal(size=(14, 60))
    for y in (0.1, 1e3 + 0.1, 0.0):
        model = LassoOBACV(cv=3).fit(X, np.full(14, y))
        assert model.mse_path_.max() <= 1e-24 * max(y, 1.0) ** 2


def test_the_default_tolerance_chooses_as_scikit_learn_does():
    X, y = load_diabetes(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ratios = [0.1, 0.5, 0.9]
    ours, model = LassoOBACV(l1_ratio=ratios).fit(X, y), ElasticNetCV(l1_ratio=ratios).fit(X, y)
    assert_allclose((ours.alpha_, ours.l1_ratio_), (model.alpha_, model.l1_ratio_), rtol=1e-10)


def test_folds_of_nearly_exact_fits_choose_as_exact_folds_do():
    """Where few columns explain y, the errors of left-out rows are far below the squares of y."""
    X, y = make_regression(200, 1000, n_informative=10, noise=1.0, random_state=1)
    y /= y.std()
    exact = LassoOBACV(tol=1e-9, max_iter=5000).fit(X, y)
    assert LassoOBACV().fit(X, y).alpha_ == exact.alpha_
