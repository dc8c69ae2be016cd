"""Paths of least squares: by a Gram matrix of all columns, by working sets, against OBA on the loss."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sparsekit import LassoOBA, LassoOBACV, lasso_path
from sparsekit._l1 import plan
from sparsekit._l1.solver import gram_path as squares
from sparsekit.optimize import LeastSquaresLoss, minimize_oba


def data(n=80, p=20, copies=False):
    rng = np.random.default_rng(p)
    X = rng.standard_normal((n, p)) + 0.5
    if copies:
        X[:, p // 2 :] = X[:, : p // 2] + 1e-5 * rng.standard_normal((n, p // 2))
    return X, X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + rng.standard_normal(n) + 7.0, rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize("kind", ["tall", "few rows", "sparse", "single"])
@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.4}, {"l1_ratio": 0.0}, {"fit_intercept": False}])
def test_paths_find_what_oba_finds(kind, options):
    X, y, weight = data(*((30, 400) if kind == "few rows" else (80, 20)))
    X = sp.csr_array(np.where(X > 0.7, X, 0.0)) if kind == "sparse" else X
    X = X.astype(np.float32) if kind == "single" else X
    tol = 1e-6 if kind == "single" else 1e-9  # which OBA reaches
    options = dict(n_lambdas=6, eps=0.01, tol=tol, sample_weight=weight, penalty_weights={1: 0.0}, **options)
    path = lasso_path(X, y, **options)
    ratio, fit_intercept = options.get("l1_ratio", 1.0), options.get("fit_intercept", True)
    mean = np.average(y, weights=weight) if fit_intercept else 0.0
    loss = LeastSquaresLoss(X, y - mean, weight, fit_intercept=fit_intercept)
    v = loss.l1_vector(np.where(np.arange(X.shape[1]) == 1, 0.0, 1.0)) * weight.sum()
    for k, lam in enumerate(path.lambdas):
        found = minimize_oba(loss, ratio * lam * v, l2=(1 - ratio) * lam * v, tol=tol)
        assert path.objectives[k] == pytest.approx(found.fun / weight.sum(), rel=10 * tol)
        assert_allclose(path.coefs[:, k], found.x[: X.shape[1]], atol=1e-3 if kind == "single" else 1e-5)
    assert path.coefs.dtype == X.dtype
    assert not path.statuses.any()
    assert (path.dual_gaps <= 10 * tol * path.objectives).all()


@pytest.mark.parametrize("as_format", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("density", [0.02, 0.5])
def test_moments_are_plain_sums(density, as_format):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((400, 12)) < density, rng.standard_normal((400, 12)), 0.0)
    X[:, 5] = 1e6 + rng.standard_normal(400)  # to be centred first
    y, weight = rng.standard_normal(400) + 5.0, rng.uniform(0.0, 2.0, 400)
    for s in (None, weight):
        ones = np.ones(400) if s is None else s
        centre = np.average(X, axis=0, weights=ones)
        A, b, S = X - centre, y - 2.0, np.diag(ones)
        wanted = squares.Moments(A.T @ S @ A, A.T @ S @ b, A.T @ ones, b @ S @ b, ones @ b, ones.sum())
        for part in (squares.moments(as_format(X), y, s, centre, 2.0), halves(as_format(X), y, s, centre)):
            for name, value in vars(wanted).items():
                assert_allclose(getattr(part, name), value, rtol=1e-9, atol=1e-6, err_msg=name)


def halves(X, y, s, centre):
    """The moments of all rows as those of a half and the others."""
    every = squares.moments(X, y, s, centre, 2.0)
    X = X.tocsr() if sp.issparse(X) else X
    some = squares.moments(X[:150], y[:150], None if s is None else s[:150], centre, 2.0)
    return (every - some) + some


@pytest.mark.parametrize("fit", ["path", "cv", "single"])
def test_what_is_left_of_nearly_noiseless_data_is_no_rounding(fit):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((120, 12)) * np.logspace(0, 3, 12)
    y = X @ rng.standard_normal(12) + 1e-3 * rng.standard_normal(120) + 1e4
    alpha, tol = 1e-6, 1e-3
    if fit == "path":
        found = lasso_path(X, y, alphas=[1.0, alpha], tol=tol)
        coef, b, value, gap = found.coefs[:, 1], found.intercepts[1], found.objectives[1], found.dual_gaps[1]
    else:
        model = LassoOBACV([alpha], cv=2, tol=tol) if fit == "cv" else LassoOBA(alpha, tol=tol)
        model.fit(X, y)
        coef, b, value, gap = model.coef_, model.intercept_, model.objective_, model.dual_gap_
    expected = 0.5 * np.mean((y - X @ coef - b) ** 2) + alpha * np.abs(coef).sum()
    assert value == pytest.approx(expected, rel=1e-8)
    assert 0 <= gap <= 100 * tol * value


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("shape", [(80, 20), (30, 200)])
def test_a_path_of_one_penalty_is_a_fit(shape, positive):
    X, y, weight = data(*shape)
    for alpha, l1_ratio in ((0.3, 1.0), (0.01, 0.5), (0.1, 0.0)):
        fit = LassoOBA(alpha, l1_ratio=l1_ratio, positive=positive).fit(X, y, sample_weight=weight)
        path = lasso_path(X, y, alphas=[alpha], l1_ratio=l1_ratio, positive=positive, sample_weight=weight)
        assert_array_equal(path.coef(0), fit.coef_)
        assert path.n_iters[0] == fit.n_iter_


def test_faces_without_a_unique_minimiser():
    """Correlated columns, of which as many are in use as there are rows."""
    rng = np.random.default_rng(5)
    X = 3.0 * rng.standard_normal((100, 1)) + rng.standard_normal((100, 150))
    y = X @ rng.standard_normal(150) + rng.standard_normal(100)
    alphas = np.geomspace(1.0, 1e-5, 20) * lasso_path(X, y, n_lambdas=1).lambda_max
    path = lasso_path(X, y, alphas=alphas)
    assert not path.statuses.any() and (path.dual_gaps <= 1e-4 * path.objectives).all()
    for k in (5, 12, 19):
        fit = LassoOBA(alphas[k], tol=1e-8).fit(X, y)
        assert path.objectives[k] == pytest.approx(fit.objective_, rel=2e-4)


def test_what_models_leave_unsolved_is_solved_on_the_rows_of_the_fold():
    X, y, _ = data(90, 80)
    alphas = np.geomspace(1.0, 1e-6, 2)
    folds = [(np.flatnonzero(np.arange(90) % 3 != k), np.arange(k, 90, 3)) for k in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = LassoOBACV(alphas=alphas, cv=folds, max_iter=8).fit(X, y)
    whole = LassoOBACV(alphas=alphas, cv=folds).fit(X, y)
    assert whole.n_iter_.max() > 10  # so that eight models leave a penalty unsolved
    assert_allclose(short.mse_path_, whole.mse_path_, rtol=1e-3)


def test_scores_of_folds_on_smooth_spectra():
    """Columns that six functions nearly make: the Gram matrix is singular to rounding."""
    rng = np.random.default_rng(0)
    grid, peaks = np.linspace(0.0, 1.0, 150), rng.random(6)
    shares = rng.random((60, 6))
    X = shares @ np.exp(-0.5 * ((grid - peaks[:, None]) / 0.08) ** 2) + 1e-4 * rng.standard_normal((60, 150))
    y = shares[:, 0] + 0.5 * shares[:, 1] + 0.01 * rng.standard_normal(60)
    folds = [(np.flatnonzero(np.arange(60) % 3 != k), np.arange(k, 60, 3)) for k in range(3)]
    model = LassoOBACV(alphas=30, eps=1e-6, cv=folds).fit(X, y)
    for k, (train, test) in enumerate(folds):
        own = lasso_path(X[train], y[train], alphas=model.alphas_, tol=1e-8, max_iter=1000)
        errors = ((X[test] @ own.coefs + own.intercepts - y[test, None]) ** 2).mean(axis=0)
        assert_allclose(model.mse_path_[:, k], errors, rtol=5e-3)


@pytest.mark.parametrize(
    "n, p, entries, takes",
    [(10, 600, None, True), (50, 601, None, False), (99, 1188, None, True), (98, 1188, None, False),
     (600, 1188, 1, True), (1000, 1000, 83_333, False), (1000, 1000, 83_334, True)],
)  # fmt: skip
def test_gram_matrices_are_small_for_their_entries(n, p, entries, takes):
    assert plan.path_takes_gram(n, p, entries, 100, True, True) == takes
    assert plan.path_takes_gram(n, p, entries, 100, True, True, True) == (takes or n == 1000)
