"""Logistic paths in main memory: optimality, certificates, limits, hand-over to OBA, and the kept Hessian."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sparsekit import GLMOBA, L1LogisticOBA, glm_path, l1_logistic_path, shared_fits
from sparsekit._l1 import plan
from sparsekit._l1.estimators import shared_fits as shared_fits_module
from sparsekit._l1.losses.families.make import make_family
from sparsekit._l1.losses.family_loss import FamilyLoss
from sparsekit._l1.solver.gram_model import GramModel
from sparsekit._l1.solver.newton_session import NewtonSession
from sparsekit.optimize import LogisticLoss

FORMATS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]
SHAPES = [(300, 40), (60, 200)]


def data(shape, seed=0, as_format=np.asarray, dtype=np.float64):
    rng = np.random.default_rng([*shape, seed])
    n, p = shape
    X = 0.8 * rng.standard_normal(shape) + 0.6 * rng.standard_normal((n, 1))
    if as_format in (sp.csr_array, sp.csc_array):
        X *= rng.random(shape) < 0.3
    scores = X[:, : p // 5] @ rng.standard_normal(p // 5)
    y = (scores + 0.5 * scores.std() * rng.standard_normal(n) > 0).astype(int)
    return as_format(X.astype(dtype)), y, rng.uniform(0.1, 2.0, n)


def excess(X, y, s, path, k, v, l1_ratio, fit_intercept, offset):
    """How much higher an objective is than that of OBA to ten times the digits, relative to it."""
    loss = LogisticLoss(X, 2.0 * y - 1.0, s, fit_intercept=fit_intercept, offset=offset)
    single = L1LogisticOBA(
        path.Cs[k], penalty_weights=v, l1_ratio=l1_ratio, fit_intercept=fit_intercept, tol=1e-9
    ).fit(X, y, sample_weight=s, **({} if offset is None else {"offset": offset}))
    penalty = loss.l1_vector(path.lambdas[k] * (1.0 if v is None else v))

    def objective(coef, intercept):
        x = np.append(coef, [intercept] * fit_intercept).astype(float)
        return loss.value(x) + l1_ratio * penalty @ abs(x) + 0.5 * (1.0 - l1_ratio) * penalty @ x**2

    least = objective(single.coef_, single.intercept_[0])
    return (objective(path.coef(k), path.intercepts[k]) - least) / least


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("fit_intercept, offset", [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
@pytest.mark.parametrize("weights", [None, "rows", "rows and columns"])
def test_objectives_are_those_of_oba(shape, as_format, fit_intercept, offset, l1_ratio, weights):
    X, y, s = data(shape, as_format=as_format)
    s = None if weights is None else s
    v = np.where(np.arange(shape[1]) % 17 == 3, 0.0, 1.0 + np.arange(shape[1]) % 3)
    v = v if weights == "rows and columns" else None
    shift = np.linspace(-2.0, 3.0, shape[0]) if offset else None
    path = l1_logistic_path(
        X, y, n_lambdas=12, eps=1e-2, l1_ratio=l1_ratio, fit_intercept=fit_intercept, sample_weight=s,
        penalty_weights=v, offset=shift, tol=1e-8,
    )  # fmt: skip
    assert not path.statuses.any() and len(path.lambdas) == 12
    for k in (0, 5, 11):
        assert -1e-9 < excess(X, y, s, path, k, v, l1_ratio, fit_intercept, shift) < 1e-7
    assert (path.dual_gaps <= 1e-7 * path.objectives).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("name", ["MAX_SIDE", "SMALL_GRAM", "SCREENED_PART"])
@pytest.mark.parametrize("value", [0, np.inf])
def test_thresholds_change_no_answer(monkeypatch, shape, as_format, name, value):
    X, y, _ = data(shape, seed=1, as_format=as_format)
    before = l1_logistic_path(X, y, n_lambdas=10, eps=1e-2, tol=1e-8)
    monkeypatch.setattr(plan, name, value)
    after = l1_logistic_path(X, y, n_lambdas=10, eps=1e-2, tol=1e-8)
    assert not after.statuses.any()
    fits = [L1LogisticOBA(C, tol=1e-8).fit(X, y).objective_ for C in before.Cs]
    assert_allclose([after.objectives, fits], [before.objectives] * 2, rtol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [0.1, 1e-4])
@pytest.mark.parametrize("name", ["RIDGE_COLUMNS", "FEW_ROWS_DENSE", "FEW_ROWS_SPARSE", "MAX_SIDE"])
def test_thresholds_of_ridges_change_no_answer(monkeypatch, shape, as_format, fit_intercept, scale, name):
    X, y, s = data(shape, seed=2, as_format=as_format)
    v = np.where(np.arange(shape[1]) % 17 == 3, 0.0, 1.0 + np.arange(shape[1]) % 3)
    options = dict(l1_ratio=0.0, fit_intercept=fit_intercept, tol=1e-9, penalty_weights=v)
    found = []
    for most in (0, np.inf):
        monkeypatch.setattr(plan, name, most)
        counts = GLMOBA("poisson", alpha=scale, **options).fit(X, y + 1, s)
        classes = L1LogisticOBA(1.0 / (scale * len(y)), **options).fit(X, y, s)
        path = glm_path(X, y + 1, alphas=[3.0 * scale, scale], sample_weight=s, **options)
        other = l1_logistic_path(X, y, Cs=[classes.C / 3.0, classes.C], sample_weight=s, **options)
        assert max(counts.dual_gap_ / counts.objective_, classes.dual_gap_ / classes.objective_) < 1e-8
        assert not (path.statuses.any() or other.statuses.any())
        found.append([counts.objective_, classes.objective_, *path.objectives, *other.objectives])
    assert_allclose(found[0], found[1], rtol=1e-8)
    assert_allclose(found[0][:2], found[0][3::2], rtol=1e-8)


def test_shared_ridges_keep_a_hessian_without_the_data():
    X, y, _ = data((300, 40), seed=5)
    with shared_fits():
        for C in (1e-2, 1e-1, 1e-3):
            model = L1LogisticOBA(C, l1_ratio=0.0, tol=1e-8).fit(X, y)
            (state,) = shared_fits_module._active._states.values()
            assert 40**2 * 8 < state.prepared.n_bytes < X.nbytes
            assert state.prepared.design is None and state.prepared.part is None
            with pytest.MonkeyPatch.context() as context:
                context.setattr(plan, "RIDGE_COLUMNS", 0)
                alone = L1LogisticOBA(C, l1_ratio=0.0, tol=1e-8, history=True).fit(X, y)
            assert_allclose(model.coef_, alone.coef_, atol=1e-5 * abs(alone.coef_).max())


def test_ridges_with_a_session_have_limits_callbacks_and_no_history():
    X, y, _ = data((300, 40), seed=5)
    seen = []
    options = dict(C=1e-2, l1_ratio=0.0, tol=1e-8)
    whole = L1LogisticOBA(**options, callback=lambda state: seen.append((state.nit, state.fun))).fit(X, y)
    assert [nit for nit, _ in seen] == list(range(1, whole.n_iter_[0] + 1))
    assert seen[-1][1] == pytest.approx(whole.objective_, rel=1e-12)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        cut = L1LogisticOBA(**options, max_iter=1).fit(X, y)
    assert cut.n_iter_ == [1] and cut.objective_ > whole.objective_
    recorded = L1LogisticOBA(**options, history=True).fit(X, y)  # by OBA
    assert recorded.history_["fun"][-1] == pytest.approx(whole.objective_, rel=1e-8)
    warm = L1LogisticOBA(**options, warm_start=True).fit(X, y)
    assert warm.fit(X, y).n_iter_[0] <= 1


@pytest.mark.parametrize("as_format", FORMATS)
def test_a_set_that_outgrows_its_limit_is_handed_over(monkeypatch, as_format):
    X, y, _ = data((60, 200), as_format=as_format)
    session = NewtonSession(LogisticLoss(X, 2.0 * y - 1.0, fit_intercept=True))
    monkeypatch.setattr(plan, "MAX_SIDE", 15)
    l1, x = session.loss.l1_vector(1.0), np.zeros(201)
    top = abs(X.T @ (y - y.mean())).max()
    for part, is_left in ((0.5, False), (0.05, True), (0.02, True)):
        found = session.minimize(part * top * l1, x, tol=1e-8, max_iter=200)
        assert found.success and (session.hessian is None) == is_left
        x = None
        single = L1LogisticOBA(1.0 / (part * top), tol=1e-9).fit(X, y)
        assert found.fun == pytest.approx(single.objective_, rel=1e-7)


@pytest.mark.parametrize("kind", ["separable", "copies", "few values", "constant column", "zero weights"])
def test_hard_data(kind):
    X, y, s = data((120, 30), seed=4)
    s = None
    if kind == "separable":
        y = (X[:, 0] > 0).astype(int)
    elif kind == "copies":
        X = np.hstack([X, X, X[:, :5] + 1e-9])
    elif kind == "few values":
        X = np.round(X[:, :6])
    elif kind == "constant column":
        X[:, 3] = 7.0
    else:
        s = np.where(np.arange(120) % 3 == 0, 0.0, 1.0)
    path = l1_logistic_path(X, y, n_lambdas=15, eps=1e-5, sample_weight=s)
    assert not path.statuses.any()
    for k in (4, 9, 14):
        assert excess(X, y, s, path, k, None, 1.0, True, None) < 1e-4


@pytest.mark.parametrize("seed", [0, 4, 86])
def test_a_run_that_is_stopped_is_no_worse_than_its_last_iterate(seed):
    """Few rows of Huber's loss have curvature: a Newton step of the intercept alone would go too far."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 30))
    X, y = rng.standard_normal((n, 3)), 5.0 * rng.standard_t(1, n)
    family = make_family("huber", "auto", power=1.5, dispersion=1.0, epsilon=0.3)
    loss, seen = FamilyLoss(family, X, y, fit_intercept=True), []

    def stop(intermediate_result):
        seen.append(intermediate_result.fun)
        return True

    start = np.append(0.1 * rng.standard_normal(3), 6.0 * rng.standard_normal())
    l1 = loss.l1_vector(0.1)
    found = NewtonSession(loss).minimize(l1, start, tol=1e-8, max_iter=100, callback=stop)
    assert len(seen) == 1 and found.fun <= seen[0] * (1.0 + 1e-12)
    assert_allclose(found.fun, loss.value(found.x) + l1 @ abs(found.x), rtol=1e-12)


def test_a_model_leaves_its_matrix_as_it_was():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((30, 8))
    matrix, x, g, l1, l2 = B.T @ B, np.zeros(8), 9.0 * rng.standard_normal(8), np.ones(8), rng.random(8)
    before = matrix.copy()
    found, _ = GramModel().minimize(matrix, x, g, l1, l2)
    assert_array_equal(matrix, before)
    slopes = g + (before + np.diag(l2)) @ found
    used = found != 0.0
    assert used.any()
    assert_allclose(slopes[used], -np.sign(found[used]), atol=0.2)
    assert (np.abs(slopes[~used]) <= 1.2).all()
