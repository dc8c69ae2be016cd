"""Paths of least squares by descent over sums of rows, and by OBA from where that takes long on."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from sparsekit import LassoOBA, LassoOBACV, lasso_path
from sparsekit._l1 import cv_problems, squares
from sparsekit._l1.cv_problems import SquaresProblem


def data(n=80, p=20, copies=False):
    rng = np.random.default_rng(p)
    X = rng.standard_normal((n, p)) + 0.5
    if copies:
        X[:, p // 2 :] = X[:, : p // 2] + 1e-5 * rng.standard_normal((n, p // 2))
    return X, X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + rng.standard_normal(n) + 7.0, rng.uniform(0.2, 2.0, n)


def never_descend(monkeypatch):
    monkeypatch.setattr(SquaresProblem, "descend", lambda *_, **options: None)


def counted(monkeypatch):
    """How many penalties OBA was given."""
    seen, plain = [], cv_problems.iterate_path
    monkeypatch.setattr(
        cv_problems,
        "iterate_path",
        lambda *given, **options: (seen.append(len(given[2])), plain(*given, **options))[1],
    )
    return seen


@pytest.mark.parametrize("kind", ["tall", "few rows", "sparse", "single"])
@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.4}, {"l1_ratio": 0.0}, {"fit_intercept": False}])
def test_the_descent_finds_what_oba_finds(kind, options, monkeypatch):
    X, y, weight = data(*((30, 60) if kind == "few rows" else (80, 20)))
    X = sp.csr_array(np.where(X > 0.7, X, 0.0)) if kind == "sparse" else X
    X = X.astype(np.float32) if kind == "single" else X
    tol = 1e-6 if kind == "single" else 1e-9  # which OBA reaches
    options = dict(n_lambdas=6, eps=0.01, tol=tol, sample_weight=weight, penalty_weights={1: 0.0}, **options)
    seen = counted(monkeypatch)
    path = lasso_path(X, y, **options)
    assert seen == []
    never_descend(monkeypatch)
    other = lasso_path(X, y, **options)
    assert_allclose(path.lambdas, other.lambdas, rtol=10 * tol)
    assert_allclose(path.objectives, other.objectives, rtol=10 * tol)
    assert_allclose(path.coefs, other.coefs, atol=1e-3 if kind == "single" else 1e-5)
    assert_allclose(path.intercepts, other.intercepts, atol=1e-3 if kind == "single" else 1e-5)
    assert path.coefs.dtype == other.coefs.dtype == X.dtype
    assert not path.statuses.any()
    assert (path.dual_gaps <= 10 * tol * path.objectives).all()


@pytest.mark.parametrize("chunk", [40, 2**20])
@pytest.mark.parametrize("sweeps", [1, 5])
def test_what_takes_long_is_left_to_oba(sweeps, chunk, monkeypatch):
    monkeypatch.setattr(squares, "_CHUNK", chunk)
    X, y, _ = data(copies=True)
    options = dict(n_lambdas=10, eps=1e-5, tol=1e-9)
    monkeypatch.setattr(cv_problems, "_SWEEPS", sweeps)
    seen = counted(monkeypatch)
    path = lasso_path(X, y, **options)
    assert len(seen) == 1 and 0 < seen[0] < 10
    assert path.coefs.shape == (20, 10) and not path.statuses.any()
    assert (path.dual_gaps <= 1e-8 * path.objectives).all()
    never_descend(monkeypatch)
    assert_allclose(path.objectives, lasso_path(X, y, **options).objectives, rtol=1e-8)


@pytest.mark.parametrize("sweeps", [1, 200])
def test_a_callback_and_the_time_end_it(sweeps, monkeypatch):
    X, y, _ = data()
    monkeypatch.setattr(cv_problems, "_SWEEPS", sweeps)
    seen = []

    def enough(result):
        seen.append(result.nnz > 3)
        return seen[-1]

    path = lasso_path(X, y, n_lambdas=10, callback=enough)
    assert seen[-1] and not any(seen[:-1])
    assert 1 < len(path.lambdas) < 10 and path.statuses[-1] == 3 and not path.statuses[:-1].any()
    with pytest.warns(match="did not converge"):
        path = lasso_path(X, y, n_lambdas=10, max_time=1e-9)
    assert path.coefs.shape == (20, 10)
    assert path.statuses[-1] == 2 and set(path.statuses) <= {0, 2}


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_entries_are_those_of_all_rows(format, dtype, monkeypatch):
    rng = np.random.default_rng(3)
    X = sp.random_array((400, 12), density=0.05, format=format, dtype=dtype, rng=rng)
    y, weight = rng.standard_normal(400) + 5.0, rng.uniform(0.0, 2.0, 400)
    for s in (None, weight):
        centre = squares.means_of(X, s)
        assert squares._by_entries(X, s)
        found = squares.moments(X, y, s, centre, 2.0)
        monkeypatch.setattr(squares, "_by_entries", lambda X, weight: False)
        for name, value in vars(squares.moments(X, y, s, centre, 2.0)).items():
            assert_allclose(getattr(found, name), value, rtol=1e-12, atol=1e-11, err_msg=name)
        monkeypatch.undo()


def test_entries_of_columns_that_hardly_vary_are_centred_first():
    rng = np.random.default_rng(4)
    X = sp.random_array((5000, 60), density=0.005, format="lil", rng=rng)
    X[:, 5] = 1e6 + rng.standard_normal((5000, 1))
    assert not squares._by_entries(X.tocsr(), None)
    few = sp.csr_array(X)[:, :5]
    assert squares._by_entries(few, None)
    # of the rows that count all have an entry
    weight = np.zeros(5000)
    weight[few[:, [0]].toarray().ravel() != 0] = 1.0
    assert not squares._by_entries(few, weight)
    assert not squares._by_entries(sp.csr_array(rng.standard_normal((50, 10))), None)


def test_columns_with_few_entries_go_by_oba_and_find_the_same(monkeypatch):
    rng = np.random.default_rng(5)
    X = sp.random_array((200, 40), density=0.03, format="csr", rng=rng)
    y = X @ rng.standard_normal(40) + 0.1 * rng.standard_normal(200)
    options = dict(alphas=4, eps=0.05, cv=2, tol=1e-9)
    assert squares.takes_gram(X)
    path, chosen = lasso_path(X, y, n_lambdas=5, tol=1e-9), LassoOBACV(**options).fit(X, y)
    monkeypatch.setattr(squares, "_FEW", 10)
    assert not squares.takes_gram(X[:, :30]) and squares.takes_gram(X[:, :10])
    assert squares.takes_gram(X[:, :30].toarray())
    seen = counted(monkeypatch)
    other = LassoOBACV(**options).fit(X, y)
    assert len(seen) >= 3  # two folds and the last fit
    assert_allclose(other.mse_path_, chosen.mse_path_, rtol=1e-4)
    assert_allclose(other.coef_, chosen.coef_, atol=1e-6)
    assert_allclose(lasso_path(X, y, n_lambdas=5, tol=1e-9).objectives, path.objectives, rtol=1e-8)


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


def test_folds_without_rows_of_their_own_descend_to_the_end(monkeypatch):
    X, y, _ = data(copies=True)
    options = dict(alphas=[0.1, 1e-4], cv=3, refit=False, tol=1e-8)
    expected = LassoOBACV(**options).fit(X, y)
    monkeypatch.setattr(cv_problems, "_SWEEPS", 1)
    assert_allclose(LassoOBACV(**options).fit(X, y).mse_path_, expected.mse_path_, rtol=1e-6)
