"""Small fits of least squares: descent over sums of rows, and OBA where that takes long."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.linear_model import ElasticNet

from sparsekit import LassoOBA
from sparsekit._l1 import lasso, small_squares
from sparsekit._solver import outcome
from sparsekit.metrics import kkt_violation


def data(n=90, p=15):
    rng = np.random.default_rng([n, p])
    X = rng.standard_normal((n, p)) + rng.standard_normal(p)
    return X, X[:, :3] @ [2.0, -1.0, 0.5] + rng.standard_normal(n) + 4.0, rng.uniform(0.2, 2.0, n)


@pytest.fixture
def handed_on(monkeypatch):
    """Starts that OBA was given."""
    seen, plain = [], small_squares.minimize_oba
    monkeypatch.setattr(
        small_squares, "minimize_oba",
        lambda loss, l1, x, **options: (seen.append((x, options)), plain(loss, l1, x, **options))[1],
    )  # fmt: skip
    return seen


def without(monkeypatch, model, *given, **options):
    with monkeypatch.context() as patch:
        patch.setattr(lasso, "small_squares", lambda *_: None)
        return model.fit(*given, **options)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_the_fits_of_oba(l1_ratio, fit_intercept, weighted, handed_on, monkeypatch):
    X, y, s = data()
    given = {"sample_weight": s if weighted else None, "offset": np.sin(y)}
    options = dict(
        l1_ratio=l1_ratio, fit_intercept=fit_intercept, tol=1e-10, penalty_weights={1: 0.0, 2: 3.0}
    )
    model = LassoOBA(0.05, **options).fit(X, y, **given)
    assert not handed_on and 0 <= model.dual_gap_ <= 1e-9 * model.objective_
    other = without(monkeypatch, LassoOBA(0.05, **options), X, y, **given)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-10)
    assert_allclose(model.coef_, other.coef_, atol=1e-6)
    assert_allclose(model.intercept_, other.intercept_, atol=1e-6)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.float32, "int64 indices"])
@pytest.mark.parametrize("shape", [(90, 15), (40, 300)])
def test_of_all_kinds_of_matrices(shape, kind):
    X, y, s = data(*shape)
    if kind is not np.float32:
        X[np.random.default_rng(0).random(shape) < 0.7] = 0.0
    form = sp.csr_array(X) if kind == "int64 indices" else X.astype(kind) if kind is np.float32 else kind(X)
    if kind == "int64 indices":
        form.indices, form.indptr = form.indices.astype(np.int64), form.indptr.astype(np.int64)
    options = dict(l1_ratio=0.9, max_iter=10**5)
    model = LassoOBA(0.1, tol=1e-10, **options).fit(form, y, s)
    peer = ElasticNet(0.1, tol=1e-14, **options).fit(X, y, s)
    single = kind is np.float32
    assert_allclose(model.coef_, peer.coef_, atol=2e-6 if single else 1e-8)
    assert_allclose(model.intercept_, peer.intercept_, atol=2e-6 if single else 1e-8)
    assert model.dual_gap_ <= (1e-5 if single else 1e-9) * model.objective_


def test_as_scikit_learn():
    X, y, _ = data()
    ours = LassoOBA(0.02, l1_ratio=0.7).fit(X, y)
    peer = ElasticNet(0.02, l1_ratio=0.7, tol=1e-14, max_iter=100000).fit(X, y)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-8)
    assert ours.n_iter_ == 1


@pytest.mark.parametrize("status", [outcome.MAX_ITER, outcome.NO_PROGRESS])
@pytest.mark.parametrize("max_time", [None, 10.0])
def test_what_takes_long_is_handed_on(status, max_time, handed_on, monkeypatch):
    X, y, _ = data()
    X[:, 5:10] = X[:, :5] + 1e-6 * X[:, 10:15]
    plain = small_squares.minimize_squares

    def given_up(*given, **options):
        result = plain(*given, **{**options, "tol": 0.1})
        result.status = status
        return result

    monkeypatch.setattr(small_squares, "minimize_squares", given_up)
    options = dict(tol=1e-9, l1_ratio=0.9, max_time=max_time)
    model = LassoOBA(1e-4, **options).fit(X, y)
    [(start, given)] = handed_on
    assert np.count_nonzero(start)
    assert given["max_time"] is None if max_time is None else 0.0 < given["max_time"] < max_time
    assert model.dual_gap_ <= 1e-8 * model.objective_
    other = without(monkeypatch, LassoOBA(1e-4, **options), X, y)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-9)


def test_which_are_small(monkeypatch):
    X, y, _ = data()
    assert small_squares.small_squares(X, y, None, True, 1) is not None
    assert small_squares.small_squares(sp.csr_array(X[:10]), y[:10], None, True, 1) is not None
    assert small_squares.small_squares(sp.csr_array(X[:10]), y[:10], None, True, 1, kinks=False) is None
    for other in (X[:10], np.ones((200_000, 2)), np.ones((300, 129)), X[:, :0]):
        assert small_squares.small_squares(other, np.ones(len(other)), None, True, 1) is None
    with np.errstate(over="ignore"):
        assert small_squares.small_squares(X * 1e160, y, None, True, 1) is None
    seen = []
    monkeypatch.setattr(lasso, "small_squares", lambda *given: seen.append(given))
    for model in (LassoOBA(0.0), LassoOBA(hessian="lbfgs"), LassoOBA(positive=True)):
        model.fit(X, y)
    assert not seen


def test_starts_limits_callbacks_and_history(handed_on):
    X, y, _ = data()
    model = LassoOBA(0.01, warm_start=True, history=True).fit(X, y)
    assert len(model.history_["fun"]) == model.n_iter_ == 1
    coef = model.coef_.copy()
    model.fit(X, y)
    assert_allclose(model.coef_, coef, atol=1e-10)
    seen = []
    LassoOBA(0.01, callback=lambda r: seen.append((r.nit, r.fun, r.nnz))).fit(X, y)
    assert [row[0] for row in seen] == [1] and seen[0][2] == np.count_nonzero(coef)
    LassoOBA(1e-9, callback=lambda result: True).fit(X, y)
    with pytest.warns(match="max_time"):
        assert np.isfinite(LassoOBA(1e-7, max_time=1e-9).fit(X[:16], y[:16]).coef_).all()
    assert not handed_on
    loose = LassoOBA(0.01, tol=0.1).fit(X, y)
    gradient = X.T @ (loose.predict(X) - y) / len(y)
    assert kkt_violation(loose.coef_, gradient, 0.01) <= 0.1 * np.abs(X.T @ (y - y.mean())).max() / len(y)
