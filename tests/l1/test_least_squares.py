"""Fits of least squares in main memory: optimality, certificates, hand-over, and thresholds of the plan."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import ElasticNet

import sparsekit
from sparsekit import L1LogisticOBA, LassoOBA, LassoOBACV, glm_path, l1_logistic_path, lasso_path
from sparsekit._l1 import plan
from sparsekit._l1.losses.multinomial import logistic_loss
from sparsekit._linalg.prepared import Prepared
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, minimize_oba

KINDS = ["few in use", "some in use", "most in use"]
STRENGTH = dict(zip(KINDS, [0.3, 0.03, 1e-4]))
FORMATS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def data(n=400, p=60, seed=0, rho=0.6):
    rng = np.random.default_rng([n, p, seed])
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + (1 - rho**2) ** 0.5 * X[:, j]
    w = rng.standard_normal(p) * (rng.random(p) < 0.4)
    return X + rng.standard_normal(p), X @ w + rng.standard_normal(n) + 3.0


def largest(X, y, s=None):
    s = np.ones(len(y)) if s is None else s
    mean = np.average(X, axis=0, weights=s), np.average(y, weights=s)
    return np.abs((s * (y - mean[1])) @ (X - mean[0])).max()


def violation(X, y, s, w, b, l1, l2):
    """How far the optimality conditions are from met, relative to the largest penalty of an empty model."""
    g = X.T @ (s * (X @ w + b - y)) + l2 * w
    left = np.where(w == 0, np.maximum(np.abs(g) - l1, 0), np.abs(g + l1 * np.sign(w)))
    return left.max() / largest(X, y, s)


def by_oba(X, y, alpha, l1_ratio=1.0, s=None, tol=1e-9):
    """The same fit by `minimize_oba` on the loss: objective as a mean, and coefficients."""
    loss, total = LeastSquaresLoss(X, y, s, fit_intercept=True), len(y) if s is None else s.sum()
    penalty = loss.l1_vector(alpha * total)
    found = minimize_oba(loss, l1_ratio * penalty, l2=(1 - l1_ratio) * penalty, tol=tol)
    return found.fun / total, found.x[:-1]


@pytest.mark.parametrize("shape", [(400, 60), (40, 150)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_optimality_in_double_precision(kind, l1_ratio, fit_intercept, weighted, order, shape):
    X, y = data(*shape)
    X, p = np.asarray(X, order=order), shape[1]
    s = np.random.default_rng(1).integers(0, 4, len(y)) + 0.25 * weighted if weighted else np.ones(len(y))
    v = np.where(np.arange(p) % 31 == 3, 0.0, 1.0 + np.arange(p) % 3)
    alpha = STRENGTH[kind] * largest(X, y, s) / s.sum()
    model = LassoOBA(alpha, l1_ratio=l1_ratio, fit_intercept=fit_intercept, penalty_weights=v)
    model.fit(X, y, sample_weight=s if weighted else None)
    w, b, lam = model.coef_, model.intercept_, alpha * v * s.sum()
    assert violation(X, y, s, w, b, l1_ratio * lam, (1 - l1_ratio) * lam) < 2e-5
    assert not fit_intercept or abs(s @ (y - X @ w - b)) < 1e-6 * (s @ abs(y))
    assert 0 <= model.dual_gap_ <= 1e-4 * model.objective_
    assert np.count_nonzero(w) > 3


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.float32, "int64 indices"])
@pytest.mark.parametrize("shape", [(90, 15), (40, 300), (500, 200)])
def test_every_kind_of_matrix(shape, kind):
    X, y = data(*shape, seed=3)
    s = np.random.default_rng(3).uniform(0.2, 2.0, shape[0])
    if kind is not np.float32:
        X[np.random.default_rng(0).random(shape) < 0.7] = 0.0
    form = sp.csr_array(X) if kind == "int64 indices" else X.astype(kind) if kind is np.float32 else kind(X)
    if kind == "int64 indices":
        form.indices, form.indptr = form.indices.astype(np.int64), form.indptr.astype(np.int64)
    options = dict(l1_ratio=0.9, max_iter=10**5)
    model = LassoOBA(0.1, tol=1e-10, **options).fit(form, y, s)
    peer = ElasticNet(0.1, tol=1e-14, **options).fit(form.astype(float) if kind is np.float32 else X, y, s)
    single = kind is np.float32
    assert_allclose(model.coef_, peer.coef_, atol=1e-6 if single else 1e-8)
    assert_allclose(model.intercept_, peer.intercept_, atol=1e-6 if single else 1e-8)
    assert model.dual_gap_ <= 1e-9 * model.objective_


@pytest.mark.parametrize("kind", KINDS)
def test_warm_starts(kind):
    X, y = data(seed=3)
    alpha = STRENGTH[kind] * largest(X, y) / len(y)
    cold = LassoOBA(alpha).fit(X, y)
    warm = LassoOBA(3 * alpha, warm_start=True).fit(X, y).set_params(alpha=alpha).fit(X, y)
    far = LassoOBA(alpha, warm_start=True).fit(X, -9 * y).fit(X, y)  # a start worse than zero
    for model in (warm, far):
        assert_allclose(model.coef_, cold.coef_, rtol=0, atol=1e-4)


def test_rounds_correct_what_single_precision_left():
    """Columns that are nearly combinations of others, and a tolerance that one round does not meet."""
    X, y = data(2000, 160, rho=0.999)
    alpha = 1e-5 * largest(X, y) / len(y)
    model = LassoOBA(alpha, tol=1e-9).fit(X, y)
    assert model.optimality_ <= 1e-9 and model.dual_gap_ <= 1e-8 * model.objective_


HARD = {
    "constant columns": lambda X, y: (np.c_[X, np.ones((len(X), 2)), np.zeros(len(X))], y),
    "columns twice": lambda X, y: (np.c_[X, X[:, :9]], y),
    "columns nearly twice": lambda X, y: (np.c_[X, X[:, :30] + 1e-4 * X[:, 30:60]], y),
    "scales": lambda X, y: (X * np.logspace(-4, 4, X.shape[1]), 1e6 * y),
    "no noise": lambda X, y: (X, X[:, 3] - 2 * X[:, 5]),
    "large means": lambda X, y: (X + 1e5, y - 1e6),
    "y constant": lambda X, y: (X, np.full(len(y), 7.0)),
    "small": lambda X, y: (1e-10 * X, 1e-10 * y),
    "overflow in single precision": lambda X, y: (1e30 * X, y),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shape", [(400, 60), (50, 90)])
@pytest.mark.parametrize("kind", HARD)
def test_hard_data(kind, shape):
    X, y = HARD[kind](*data(*shape, seed=4))
    alpha = 1e-2 * (largest(X, y) or 1.0) / len(y)
    model = LassoOBA(alpha, tol=1e-7).fit(X, y)
    fun, _ = by_oba(X, y - y.mean(), alpha, tol=1e-7)
    assert model.objective_ <= fun * (1 + 1e-6) + 1e-300
    assert model.optimality_ <= 1e-7


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_nonnegative_coefficients_with_features_without_a_penalty(fit_intercept):
    """More of these than rows determine, whose least-squares step leaves the orthant."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((30, 150)), rng.standard_normal(30)
        v = rng.choice([0.0, 1.0, 3.0], 150)
        model = LassoOBA(0.001, positive=True, fit_intercept=fit_intercept, penalty_weights=v).fit(X, y)
        assert model.n_iter_ < 100 and model.dual_gap_ <= 1e-4 * model.objective_ + 1e-12 * (y @ y) / 60


@pytest.mark.parametrize("as_format", [*FORMATS, np.float32])
def test_a_constant_column_without_a_penalty_has_no_coefficient(as_format):
    X, y = data(200, 5, seed=13)
    X[:, 2], v = 0.1, [1.0, 1.0, 0.0, 1.0, 1.0]
    X = as_format(X)
    for model in (LassoOBA(0.0), LassoOBA(0.1, penalty_weights=v), LassoOBACV(3, cv=3, penalty_weights=v)):
        assert np.abs(model.fit(X, y).coef_[2]) < 1e-6
    assert np.abs(np.asarray(lasso_path(X, y, n_lambdas=3, penalty_weights=v).coefs)[2]).max() < 1e-6
    # what is constant in a fold alone is centred by the mean of all rows
    Z = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    Z[:66, 1] = 4.0
    search = LassoOBACV(alphas=[0.1, 0.01], cv=3, tol=1e-8).fit(as_format(Z), y)
    assert_allclose(search.mse_path_, mse_of_folds(as_format(Z), y, search.alphas_), rtol=1e-4)


@pytest.mark.parametrize("p", [250, 900])
def test_folds_without_a_penalty_score_the_solution_of_least_norm(p):
    X, y = data(60, p, seed=14)
    search = LassoOBACV([1.0], penalty_weights=np.zeros(p), cv=3).fit(X, y)
    for k, test in enumerate(np.array_split(np.arange(60), 3)):
        train = np.setdiff1d(np.arange(60), test)
        mean, offset = X[train].mean(axis=0), y[train].mean()
        coef = np.linalg.lstsq(X[train] - mean, y[train] - offset)[0]
        error = np.mean((y[test] - offset - (X[test] - mean) @ coef) ** 2)
        assert search.mse_path_[0, k] == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_fit_that_a_callback_stops_says_its_own_objective(stop):
    X, y = data(60, 900, seed=15)
    times = []

    def callback(state):
        times.append(state.time)
        return state.nit >= stop

    model = LassoOBA(0.01, callback=callback).fit(X, y)
    residual = y - model.predict(X)
    assert model.objective_ == pytest.approx(0.5 * np.mean(residual**2) + 0.01 * np.abs(model.coef_).sum())
    best = LassoOBA(0.01, history=True).fit(X, y)
    assert model.objective_ - best.objective_ <= model.dual_gap_ * (1 + 1e-9)
    assert (np.diff(times) >= 0).all() and (np.diff(best.history_["time"]) >= 0).all()


@pytest.mark.parametrize("shape", [(400, 60), (40, 150)])
def test_limits_callbacks_and_history(shape):
    X, y = data(*shape, seed=5)
    alpha = 0.01 * largest(X, y) / len(y)
    seen = []
    model = LassoOBA(alpha, history=True, callback=lambda state: seen.append((state.nit, state.fun, state.x)))
    model.fit(X, y)
    assert [row[0] for row in seen] == list(range(1, model.n_iter_ + 1))
    assert_allclose(model.history_["fun"][1:], [row[1] / len(y) for row in seen])
    assert len(seen[0][2]) == shape[1] + 1
    assert LassoOBA(alpha, callback=lambda state: True).fit(X, y).n_iter_ == 1
    with pytest.warns(UserWarning, match="max_time"):
        LassoOBA(alpha, max_time=1e-9).fit(X, y)
    with pytest.warns(UserWarning, match="max_iter"):
        assert LassoOBA(alpha, max_iter=1).fit(X, y).n_iter_ == 1


@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [0.03, 0.5])
def test_centred_rows_are_dense_algebra(as_format, centred, weighted, density):
    rng = np.random.default_rng(6)
    X = np.where(rng.random((70, 40)) < density, rng.standard_normal((70, 40)) + 1.0, 0.0)
    X[:, 7] = 5.0 + 0.1 * rng.standard_normal(70)  # a full column
    s = rng.uniform(0.0, 2.0, 70) if weighted else None
    weight = np.ones(70) if s is None else s
    B = X - (np.average(X, axis=0, weights=weight) if centred else 0.0)
    rows = Prepared(as_format(X), s, centred)
    w, u = rng.standard_normal(40), rng.standard_normal(70)
    assert_allclose(rows.product(w)[0], B @ w, atol=1e-12)
    assert_allclose(rows.product(np.where(np.arange(40) == 3, w, 0.0))[0], B[:, 3] * w[3], atol=1e-12)
    assert_allclose(rows.transposed_product(u), B.T @ u, atol=1e-12)
    G = B.T @ (weight[:, None] * B)
    assert_allclose(rows.gram(np.float64), G, rtol=1e-5, atol=1e-4)
    assert_allclose(rows.gram(np.float32), G, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("shape", [(120, 30), (30, 200)])
def test_all_solvers_find_the_same(shape, l1_ratio, positive):
    X, y = data(*shape, seed=10)
    alpha = 0.01 * largest(X, y) / len(y)
    options = dict(alpha=alpha, l1_ratio=l1_ratio, positive=positive, tol=1e-9)
    names = ("auto", "gram", "oba") if l1_ratio == 0.0 else ("auto", "gram", "oba", "interior")
    models = {name: LassoOBA(solver=name, **options).fit(X, y) for name in names}
    assert models["oba"].solver_ == "oba"
    assert "interior" not in models or models["interior"].solver_ == "interior, gram"
    assert models["gram"].solver_ == ("newton" if l1_ratio == 0.0 and not positive else "gram")
    for model in models.values():
        assert model.objective_ == pytest.approx(models["oba"].objective_, rel=1e-7)
        assert_allclose(model.coef_, models["oba"].coef_, atol=1e-3)


@pytest.mark.parametrize("as_format", [np.asarray, sp.csr_array])
def test_a_set_that_outgrows_its_limit_is_handed_over(monkeypatch, capsys, as_format):
    monkeypatch.setattr(plan, "MAX_SIDE", 25)
    X, y = data(60, 300, seed=11)
    top = largest(X, y) / len(y)
    model = LassoOBA(0.01 * top, verbose=1).fit(as_format(X), y)
    assert model.solver_ == "gram, oba" and "solved by gram, oba" in capsys.readouterr().out
    assert LassoOBA(0.5 * top).fit(as_format(X), y).solver_ == "gram"


def test_a_solver_that_cannot_be_had_is_refused():
    X, y = data()
    with pytest.raises(ValueError, match="solver='gram' needs X in main memory"):
        LassoOBA(solver="gram", hessian="lbfgs").fit(X, y)
    for options in ({"l1_ratio": 0.0}, {"penalty_weights": np.arange(X.shape[1])}):
        with pytest.raises(ValueError, match=r"solver='interior' needs .* L1 penalty of each feature"):
            LassoOBA(solver="interior", **options).fit(X, y)


@pytest.mark.parametrize("shape", [(400, 60), (40, 150)])
@pytest.mark.parametrize("as_format", FORMATS)
def test_equal_calls_return_equal_bits(shape, as_format):
    X, y = data(*shape, seed=12)
    X, labels = as_format(np.where(np.abs(X) > 0.5, X, 0.0)), y > np.median(y)
    alpha = 0.02 * np.abs(X.T @ (y - y.mean())).max() / len(y)
    models = (
        LassoOBA(alpha), LassoOBA(alpha, l1_ratio=0.0), LassoOBA(alpha, positive=True), LassoOBACV(5, cv=3),
        sparsekit.GLMOBACV("gaussian", alphas=5, cv=3), L1LogisticOBA(0.3), L1LogisticOBA(0.3, l1_ratio=0.0),
        sparsekit.ExtremeSoftmaxSGD(max_iter=3, random_state=0),
    )  # fmt: skip
    for k, model in enumerate(models):
        one, two = (clone(model).fit(X, labels if k > 4 else y) for _ in range(2))
        assert_array_equal(one.coef_, two.coef_)
        assert_array_equal(one.n_iter_, two.n_iter_)
    for path, target in ((lasso_path, y), (l1_logistic_path, labels), (glm_path, np.exp(y - y.max()))):
        one, two = (path(X, target, n_lambdas=5) for _ in range(2))
        assert_array_equal((one.objectives, one.n_iters), (two.objectives, two.n_iters))
    three = logistic_loss(X, np.digitize(y, [2.0, 4.0]), 3, None, True, 1)
    for loss in (LeastSquaresLoss(X, y), LogisticLoss(X, np.where(labels, 1.0, -1.0)), three):
        for l1, l2 in ((alpha * len(y), 0.0), (0.0, 1.0)):
            one, two = (minimize_oba(loss, l1, l2=l2) for _ in range(2))
            assert_array_equal((*one.x, one.nit, one.nfev), (*two.x, two.nit, two.nfev))


THRESHOLDS = [name for name in vars(plan) if name.isupper()]


@pytest.mark.parametrize("value", [0, np.inf])
@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds_change_no_answer(name, value, monkeypatch):
    """Each way of the plan solves what the others solve."""
    monkeypatch.setattr(plan, name, value)
    for shape in ((120, 30), (30, 70)):
        dense, y = data(*shape, seed=9)
        sparse = np.where(np.abs(dense) > 1.0, dense, 0.0)
        for X, as_format in ((dense, np.asfortranarray), (sparse, sp.csr_array), (sparse, sp.csc_array)):
            for l1_ratio in (1.0, 0.3, 0.0):
                alpha = 0.02 * largest(X, y) / len(y)
                options = dict(l1_ratio=l1_ratio, tol=1e-8)
                fun, coef = by_oba(X, y, alpha, l1_ratio)
                model = LassoOBA(alpha, **options).fit(as_format(X), y)
                assert model.objective_ == pytest.approx(fun, rel=1e-6)
                assert_allclose(model.coef_, coef, atol=1e-3)
                path = lasso_path(as_format(X), y, alphas=[9 * alpha, 3 * alpha, alpha], **options)
                assert path.objectives[-1] == pytest.approx(fun, rel=1e-6)
                assert not path.statuses.any()
            peer = ElasticNet(alpha, l1_ratio=0.3, positive=True, tol=1e-13, max_iter=10**5).fit(X, y)
            model = LassoOBA(alpha, l1_ratio=0.3, positive=True, tol=1e-8).fit(as_format(X), y)
            assert_allclose(model.coef_, peer.coef_, atol=1e-4)
            search = LassoOBACV(alphas=[9 * alpha, alpha], cv=3, tol=1e-8).fit(as_format(X), y)
            assert_allclose(search.mse_path_, mse_of_folds(X, y, search.alphas_), rtol=1e-5)


def mse_of_folds(X, y, alphas):
    out, test = np.empty((len(alphas), 3)), np.array_split(np.arange(len(y)), 3)
    for k, rows in enumerate(test):
        train = np.setdiff1d(np.arange(len(y)), rows)
        for i, alpha in enumerate(alphas):
            peer = ElasticNet(alpha, l1_ratio=1.0, tol=1e-13, max_iter=10**6).fit(X[train], y[train])
            out[i, k] = np.mean((peer.predict(X[rows]) - y[rows]) ** 2)
    return out
