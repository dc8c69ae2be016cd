"""The regularisation paths against single fits, scikit-learn and their own certificates."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning

from sparsekit import L1LogisticOBA, l1_logistic_path, lasso_path
from sparsekit.metrics import kkt_violation


def test_every_point_is_optimal_and_equals_a_single_fit(cancer):
    X, y = cancer
    path = l1_logistic_path(X, y, n_lambdas=12, tol=1e-8)
    assert path.coefs.shape == (30, 12) and path.intercepts.shape == (12,)
    np.testing.assert_allclose(path.lambdas[[0, -1]], path.lambda_max * np.array([1.0, 1e-3]))
    np.testing.assert_array_equal(path.n_nonzero, np.count_nonzero(path.coefs, axis=0))
    assert path.n_nonzero[0] == 0 and path.n_nonzero[-1] > 15 and not path.statuses.any()
    unit = np.abs(X.T @ (y - 0.5)).max()
    for i, lam in enumerate(path.lambdas):
        w, b = path.coef(i), path.intercepts[i]
        gradient = X.T @ (expit(X @ w + b) - y)
        assert kkt_violation(w, gradient, lam) <= 1.01e-8 * unit
    np.testing.assert_array_less(np.abs(path.dual_gaps), 1e-5 * path.objectives)
    for i in (3, 7, 11):
        single = L1LogisticOBA(C=path.Cs[i], tol=1e-8).fit(X, y)
        assert path.objectives[i] == pytest.approx(single.objective_, rel=1e-8)
        np.testing.assert_allclose(path.coef(i), single.coef_[0], atol=1e-3)


def test_lambda_max_is_sharp(cancer, iris):
    for X, y in (cancer, iris):
        path = l1_logistic_path(X, y, n_lambdas=1)
        at = l1_logistic_path(X, y, lambdas=[path.lambda_max * (1 + 1e-6)], tol=1e-9)
        below = l1_logistic_path(X, y, lambdas=[path.lambda_max * 0.99], tol=1e-9)
        assert at.n_nonzero[0] == 0 and below.n_nonzero[0] > 0


def test_lambda_max_with_unpenalised_features(cancer):
    X, y = cancer
    weights = np.ones(30)
    weights[[0, 4]] = 0.0
    weights[7] = 3.0
    path = l1_logistic_path(X, y, n_lambdas=4, penalty_weights=weights, tol=1e-9)
    free = L1LogisticOBA(C=np.inf, tol=1e-10).fit(X[:, [0, 4]], y)
    gradient = X.T @ (free.predict_proba(X[:, [0, 4]])[:, 1] - y)
    assert path.lambda_max == pytest.approx(
        np.max(np.abs(gradient)[weights > 0] / weights[weights > 0]), rel=1e-6
    )
    np.testing.assert_allclose(path.coef(0)[[0, 4]], free.coef_[0], rtol=1e-5)
    assert path.n_nonzero[0] == 2
    single = L1LogisticOBA(C=path.Cs[-1], penalty_weights=weights, tol=1e-9).fit(X, y)
    assert path.objectives[-1] == pytest.approx(single.objective_, rel=1e-8)


def test_multinomial_path(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])
    dense = l1_logistic_path(X, names[y], n_lambdas=8, tol=1e-8, coefs="dense")
    sparse = l1_logistic_path(X, names[y], n_lambdas=8, tol=1e-8, coefs="sparse")
    assert dense.coefs.shape == (3, 4, 8) and dense.intercepts.shape == (3, 8)
    assert isinstance(sparse.coefs, sp.csc_array) and sparse.coefs.shape == (12, 8)
    np.testing.assert_array_equal(dense.classes, names)
    Y = np.eye(3)[y]
    unit = np.abs(X.T @ (Y - 1 / 3)).max()
    for i, lam in enumerate(dense.lambdas):
        np.testing.assert_array_equal(sparse.coef(i), dense.coef(i))
        P = softmax(X @ dense.coef(i).T + dense.intercepts[:, i], axis=1)
        assert kkt_violation(dense.coef(i).T, X.T @ (P - Y), lam) <= 1.01e-8 * unit
    assert dense.n_nonzero[0] == 0 and dense.n_nonzero[-1] >= 5


def test_options_of_the_penalties(cancer):
    X, y = cancer
    Cs = [1.0, 0.01, 0.1]
    by_C, by_lambda = l1_logistic_path(X, y, Cs=Cs), l1_logistic_path(X, y, lambdas=1 / np.array(Cs))
    np.testing.assert_allclose(by_C.Cs, [0.01, 0.1, 1.0])
    np.testing.assert_allclose(by_C.coefs, by_lambda.coefs, atol=1e-10)
    for bad in (dict(Cs=Cs, lambdas=Cs), dict(Cs=[0.0, 1.0]), dict(lambdas=[-1.0]), dict(Cs=[np.nan]),
                dict(Cs=[[1.0]]), dict(Cs=[]), dict(n_lambdas=0), dict(eps=0.0), dict(eps=2), dict(tol=0),
                dict(coefs="no")):  # fmt: skip
        with pytest.raises(ValueError, match="|".join(bad)):
            l1_logistic_path(X, y, **bad)


def test_unconverged_points_are_warned_about(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match=r"4 of 5 points of the path did not converge"):
        path = l1_logistic_path(X, y, n_lambdas=5, max_iter=1, tol=1e-10)
    assert (path.statuses == [0, 1, 1, 1, 1]).all()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        path = l1_logistic_path(X, y, n_lambdas=5, max_time=1e-9, tol=1e-10)
    assert np.isfinite(path.coefs).all() and len(path.lambdas) == 5


def test_path_without_signal():
    X, y = np.zeros((6, 2)), np.array([0, 1] * 3)
    path = l1_logistic_path(X, y, n_lambdas=3)
    assert path.lambda_max == 0 and not path.n_nonzero.any() and np.isfinite(path.lambdas).all()


def test_wide_sparse_data_give_sparse_coefficients():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 200_000), density=1e-3, format="csr", rng=rng)
    y = (
        np.asarray(X[:, :5000].sum(axis=1)).ravel() > np.asarray(X[:, 5000:10000].sum(axis=1)).ravel()
    ).astype(int)
    path = l1_logistic_path(X, y, n_lambdas=50)
    assert isinstance(path.coefs, sp.csc_array) and path.coefs.shape == (200_000, 50)
    np.testing.assert_array_equal(np.diff(path.coefs.indptr), path.n_nonzero)
    assert not path.statuses.any()


def test_a_path_says_what_it_is_in_a_line(cancer):
    path = l1_logistic_path(*cancer, n_lambdas=5)
    ends = (
        f"lambda from {path.lambda_max:.4g} to {path.lambdas[4]:.4g}, n_nonzero from 0 to {path.n_nonzero[4]}"
    )
    assert repr(path) == f"RegularizationPath(5 penalties, {ends}, 5 converged)"


def test_lengths_of_grids_by_scikit_learns_name():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    for path, name, y in ((lasso_path, "alphas", X[:, 0]), (l1_logistic_path, "Cs", X[:, 0] > 0)):
        wanted, found = path(X, y, n_lambdas=5, eps=0.1), path(X, y, **{name: 5}, eps=0.1)
        assert_array_equal(found.lambdas, wanted.lambdas)
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            path(X, y, **{name: 0})
    assert len(l1_logistic_path(X, X[:, 0] > 0, lambdas=3).lambdas) == 3
    with pytest.raises(TypeError, match=r"keyword argument 'n_alphas'; did you mean alphas\?"):
        lasso_path(X, X[:, 0], n_alphas=5)
    with pytest.raises(TypeError, match="keyword argument 'gpu'; it has X, y, alphas"):
        lasso_path(X, X[:, 0], gpu=True)
