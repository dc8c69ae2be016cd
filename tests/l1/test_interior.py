"""The interior-point method of least squares: the same solutions, early ends, extreme data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sparsekit import LassoOBA
from sparsekit._l1.solver.interior import interior_point
from sparsekit._linalg.prepared import Prepared

FORMATS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def data(n, p, seed):
    rng = np.random.default_rng([n, p, seed])
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    w = rng.standard_normal(p) * (rng.random(p) < 0.4)
    return X, X @ w + rng.standard_normal(n) + 3.0


def largest(X, y):
    return np.abs((y - y.mean()) @ (X - X.mean(axis=0))).max()


def crowded():
    """Sparse X, y and a weak penalty at which OBA comes to use more columns than there are rows."""
    rng = np.random.default_rng(1)
    X = 0.3 * rng.standard_normal((250, 1200)) + 0.95 * rng.standard_normal((250, 1))
    X *= rng.random((250, 1200)) < 0.05
    y = X[:, :20].sum(axis=1) + rng.standard_normal(250)
    return sp.csr_array(X), y, 1e-5 * np.abs(X.T @ (y - y.mean())).max() / 250


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("as_format", FORMATS)
def test_as_many_coefficients_as_rows_are_found_by_the_interior_point_method(as_format, l1_ratio, positive):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((210, 420)) + rng.standard_normal((210, 1))
    coef = rng.standard_normal(420)
    y = X @ (np.abs(coef) if positive else coef) + rng.standard_normal(210)
    weights = rng.choice([0.0, 1.0, 3.0], 210)
    alpha = 1e-4 * np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / 210
    options = dict(alpha=alpha, l1_ratio=l1_ratio, positive=positive)
    model = LassoOBA(solver="interior", **options).fit(as_format(X), y, sample_weight=weights)
    assert model.solver_ == "interior, gram"
    assert model.dual_gap_ <= 1e-4 * model.objective_
    other = LassoOBA(solver="gram", max_iter=1000, **options).fit(X, y, sample_weight=weights)
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-4)
    if l1_ratio == 1.0 and not positive:
        crowded = LassoOBA(alpha).fit(as_format(X), y)
        assert crowded.solver_ == "interior, gram" and crowded.dual_gap_ <= 1e-4 * crowded.objective_


@pytest.mark.parametrize("positive", [False, True])
def test_nothing_is_in_use_where_the_penalty_is_the_largest(positive):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 60)), np.arange(40.0) - 19.5
    rows, l1, none = Prepared(X, None, True), np.full(60, 1.001 * largest(X, y)), np.zeros(60)
    w, _ = interior_point(rows, y, l1, none, positive=positive, gap_tol=1e-4)
    assert 0.5 * np.sum((y - rows.product(w)[0]) ** 2) + l1 @ np.abs(w) <= 0.5 * y @ y * (1 + 1e-5)
    w, nit = interior_point(rows, np.zeros(40), l1, none, positive=positive, gap_tol=1e-4)
    assert nit == 0 and not w.any()


def test_time_that_is_up_takes_nothing_away():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 900))
    y = X[:, :30] @ rng.standard_normal(30) + rng.standard_normal(300)
    alpha = 1e-4 * np.abs(X.T @ (y - y.mean())).max() / 300
    for seconds in (0.02, 0.05, 0.1, 0.2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LassoOBA(alpha, max_time=seconds, history=True).fit(X, y)
        assert np.all(np.diff(model.history_["fun"]) <= 1e-9 * model.history_["fun"][0])
    start = LassoOBA(10.0 * alpha, warm_start=True, solver="interior").fit(X, y)
    before = 0.5 * np.mean((y - start.predict(X)) ** 2) + alpha * np.abs(start.coef_).sum()
    with pytest.warns(ConvergenceWarning):
        start.set_params(alpha=alpha, max_time=1e-9).fit(X, y)
    assert start.objective_ <= before * (1 + 1e-12)


def test_an_interior_point_is_one_of_max_iter_iterations():
    X, y = data(60, 90, seed=4)
    alpha = 1e-3 * largest(X, y) / len(y)
    for most in (1, 3, 6):
        with pytest.warns(ConvergenceWarning):
            assert LassoOBA(alpha, solver="interior", max_iter=most).fit(X, y).n_iter_ == most


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_an_interior_point_of_a_full_sparse_matrix(shift):
    X, y = data(50, 80, seed=5)
    X = X + shift
    alpha = 1e-3 * largest(X - shift, y) / len(y)
    dense, sparse = (
        LassoOBA(alpha, solver="interior").fit(form(X), y) for form in (np.asarray, sp.csr_array)
    )
    assert sparse.dual_gap_ <= 1e-4 * sparse.objective_
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-4)


def test_a_very_weak_penalty_with_an_intercept_has_an_interior_point():
    X, y = data(60, 120, seed=6)
    rows = Prepared(X, None, True)
    centred = y - y.mean()
    l1 = np.full(120, 1e-9 * largest(X, y))
    w, nit = interior_point(rows, centred, l1, np.zeros(120), positive=False, gap_tol=1e-4)
    assert 5 <= nit < 40
    assert 0.5 * np.sum((centred - rows.product(w)[0]) ** 2) + l1 @ np.abs(w) <= 1e-6 * centred @ centred


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("as_format", [np.asarray, sp.csr_array])
def test_an_interior_point_alone_is_near_the_solution(as_format, l1_ratio, positive):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((60, 400)) * (rng.random((60, 400)) < 0.05)
    y = X @ (rng.standard_normal(400) * (rng.random(400) < 0.2)) + 0.1 * rng.standard_normal(60)
    total = 0.01 * largest(X, y)
    l1, l2 = np.full(400, l1_ratio * total), np.full(400, (1.0 - l1_ratio) * total)
    rows, centred = Prepared(as_format(X), None, True), y - y.mean()
    w, nit = interior_point(rows, centred, l1, l2, positive=positive, gap_tol=1e-4)
    assert nit < 30
    found = 0.5 * np.sum((centred - rows.product(w)[0]) ** 2) + l1 @ np.abs(w) + 0.5 * l2 @ w**2
    best = LassoOBA(total / 60, l1_ratio=l1_ratio, positive=positive, solver="oba", tol=1e-8).fit(X, y)
    assert found == pytest.approx(60 * best.objective_, rel=1e-2)


def test_entries_make_the_centred_matrix_of_rows():
    rng = np.random.default_rng(9)
    X = rng.random((30, 500)) * (rng.random((30, 500)) < 0.05)
    rows, scale = Prepared(sp.csr_array(X), None, True), rng.random(500)
    B = X - X.mean(axis=0)
    np.testing.assert_allclose(
        rows.row_gram(scale, np.float64, by_entries=True), (B * scale) @ B.T, atol=1e-10
    )


@pytest.mark.parametrize("as_format", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("intercept", [True, False])
def test_oba_gives_way_where_more_coefficients_are_in_use_than_rows(as_format, intercept):
    X, y, alpha = crowded()
    seen = []
    model = LassoOBA(alpha, fit_intercept=intercept, history=True, max_time=60.0, callback=seen.append)
    model.fit(as_format(X), y)
    assert model.solver_ == "gram, oba, interior, gram"
    assert model.dual_gap_ <= 1e-4 * model.objective_
    assert (np.diff([one.nit for one in seen]) >= 1).all() and seen[-1].nit == model.n_iter_
    assert (np.diff([one.time for one in seen]) >= 0.0).all()
    assert (np.diff(model.history_["time"]) >= 0.0).all()
    assert len(model.history_["time"]) == len(seen) + 1
    best = LassoOBA(alpha, fit_intercept=intercept, solver="interior", tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(best.objective_, rel=2e-4)
    # a callback that stops OBA, and a limit within it
    stopped = LassoOBA(alpha, fit_intercept=intercept, callback=lambda report: report.nit == 6)
    assert stopped.fit(as_format(X), y).n_iter_ == 6
    assert stopped.solver_ == "gram, oba"
    with pytest.warns(ConvergenceWarning):
        assert LassoOBA(alpha, fit_intercept=intercept, max_iter=6).fit(as_format(X), y).n_iter_ == 6


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("n", [60, 99, 150, 220])
def test_sparse_fits_with_many_coefficients_in_use_are_certified(n, positive):
    rng = np.random.default_rng(n)
    X = sp.random(n, 3000, 0.02, random_state=1, format="csr", data_rvs=rng.standard_normal)
    y = rng.standard_normal(n)
    for part in (1e-2, 1e-4):
        alpha = part * np.abs(X.T @ (y - y.mean())).max() / n
        model = LassoOBA(alpha, positive=positive).fit(X, y)
        assert model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("part, solver", [(0.1, "gram, oba"), (1e-4, "gram, oba, interior, gram")])
def test_weak_elastic_nets_with_many_coefficients_in_use_leave_oba(part, solver, positive):
    rng = np.random.default_rng(600)
    X = sp.random(600, 3000, 0.05, random_state=0, format="csc", data_rvs=rng.standard_normal)
    y = X @ rng.standard_normal(3000)
    y = y / y.std() + 0.1 * rng.standard_normal(600)
    alpha = part * np.abs(X.T @ (y - y.mean())).max() / 600
    model = LassoOBA(alpha, l1_ratio=0.3, positive=positive).fit(X, y)
    assert model.solver_ == solver and np.count_nonzero(model.coef_) > 600
    assert model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("at", [5, 11])
def test_a_callback_may_change_what_it_gets_and_raise_at_any_iteration(at):
    X, y, alpha = crowded()
    plain, seen = LassoOBA(alpha).fit(X, y), []

    def spoil(report):
        report.x[:] = 0.0
        seen.append(report.nit)

    same = LassoOBA(alpha, callback=spoil).fit(X, y)
    np.testing.assert_array_equal(same.coef_, plain.coef_)
    assert same.solver_ == plain.solver_ == "gram, oba, interior, gram"
    where = seen[min(at, len(seen) - 2)]

    def end(report):
        if report.nit == where:
            raise StopIteration

    assert LassoOBA(alpha, callback=end).fit(X, y).n_iter_ == where
