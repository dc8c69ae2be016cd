"""Bounded models on a GPU: coefficients, gaps and errors as in main memory, and the way back."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from sparsekit import BoundedClassifier, BoundedRegressor
from sparsekit._bounded.losses.losses import classification_loss, regression_loss
from sparsekit._bounded.losses.problem import BoundedProblem
from sparsekit._bounded.solver.box_step import minimize_in_box
from sparsekit._bounded.solver.minimize_bounded import minimize_bounded
from sparsekit._bounded.solver.run import BoundedOptions
from sparsekit._linalg.newton import NewtonSystem

pytestmark = pytest.mark.thorough

INF = np.inf
REGRESSION = ("absolute", "quantile", "huber", "squared", "epsilon_insensitive")
CLASSIFICATION = ("log_loss", "hinge", "squared_hinge", "modified_huber")


def _data(n, p, sparse=False, dtype=np.float64, classes=0, seed=0):
    """X, targets (labels if ``classes``) and weights; a tenth of the weights are zero."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, 0.3, format="csr", random_state=rng) if sparse else rng.standard_normal((n, p))
    Z = X @ rng.standard_normal((p, max(classes - 1, 1))) + 0.3 * rng.standard_normal(
        (n, max(classes - 1, 1))
    )
    y = Z[:, 0] + 3.0
    if classes:
        y = np.argmax(np.column_stack([np.zeros(n), Z]), axis=1) + 4
    weight = np.where(rng.random(n) < 0.1, 0.0, rng.random(n))
    return X.astype(dtype), y, weight


def _up(cupy, X):
    if not sp.issparse(X):
        return cupy.asarray(X)
    import cupyx.scipy.sparse

    return getattr(cupyx.scipy.sparse, f"{X.format}_matrix")(X)


def _both(cupy, model, X, y, weight=None):
    """The model fitted in main memory, and its clone on the device."""
    here = clone(model).fit(X, y, sample_weight=weight)
    weight = None if weight is None else cupy.asarray(weight)
    there = model.fit(_up(cupy, X), cupy.asarray(y), sample_weight=weight)
    return here, there


def _assert_same(cupy, here, there, X, rtol=1e-6):
    assert isinstance(there.coef_, cupy.ndarray)
    assert there.coef_.dtype == here.coef_.dtype
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=rtol)
    assert np.all(np.asarray(there.dual_gap_) >= 0)
    assert there.optimality_ <= there.tol
    scale = np.abs(here.coef_).max()
    np.testing.assert_allclose(there.coef_.get(), here.coef_, atol=2e-3 * scale)
    found = there.predict(_up(cupy, X))
    assert isinstance(found, cupy.ndarray)
    if isinstance(here, BoundedRegressor):
        np.testing.assert_allclose(found.get(), here.predict(X), atol=2e-2 * np.abs(here.predict(X)).max())
    else:
        assert np.mean(found.get() == here.predict(X)) > 0.99


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("sparse", [False, True])
def test_regressions(cupy, loss, sparse):
    X, y, weight = _data(250, 9, sparse)
    bounds = (np.linspace(-1.0, -0.2, 9), cupy.asarray(np.where(np.arange(9) < 4, 0.4, INF)))
    model = BoundedRegressor(loss, bounds=bounds, alpha=1e-2, l1_ratio=0.5, quantile=0.3, epsilon=0.4)
    here = clone(model).set_params(bounds=(bounds[0], bounds[1].get())).fit(X, y, sample_weight=weight)
    there = model.fit(_up(cupy, X), cupy.asarray(y), sample_weight=cupy.asarray(weight))
    assert isinstance(there.intercept_, float)
    assert there.intercept_ == pytest.approx(here.intercept_, abs=1e-3)
    _assert_same(cupy, here, there, X)
    w = there.coef_.get()
    assert ((w >= bounds[0]) & (w <= bounds[1].get())).all()
    score = there.score(_up(cupy, X), cupy.asarray(y), cupy.asarray(weight))
    assert score == pytest.approx(here.score(X, y, weight), abs=1e-3)


@pytest.mark.parametrize("loss", CLASSIFICATION)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifications(cupy, loss, classes):
    X, y, _ = _data(220, 7, classes=classes)
    model = BoundedClassifier(loss, bounds=(-0.6, None), alpha=1e-2, class_weight="balanced")
    here, there = _both(cupy, model, X, y)
    _assert_same(cupy, here, there, X)
    np.testing.assert_array_equal(there.classes_.get(), here.classes_)
    X_there = _up(cupy, X)
    scores = there.decision_function(X_there).get()
    np.testing.assert_allclose(scores, here.decision_function(X), atol=1e-2)
    if loss in ("log_loss", "modified_huber"):
        np.testing.assert_allclose(there.predict_proba(X_there).get(), here.predict_proba(X), atol=1e-3)
        with np.errstate(divide="ignore"):
            logs = there.predict_log_proba(X_there).get()
        assert np.array_equal(np.isfinite(logs), np.isfinite(here.predict_log_proba(X)))
    assert there.score(X_there, cupy.asarray(y)) == pytest.approx(here.score(X, y), abs=0.01)


@pytest.mark.parametrize("sparse", [False, True])
def test_more_rows_than_newton_alone_takes(cupy, sparse):
    """NQN first, on standardised columns; float32 data, coefficients rounded to the inside of the bounds."""
    X, y, weight = _data(900, 25, sparse, np.float32)
    model = BoundedRegressor("absolute", bounds=(-0.3, 0.7), history=True)
    here, there = _both(cupy, model, X, y, weight)
    assert {"start", "nqn", "newton"} >= set(there.history_["method"]) >= {"nqn", "newton"}
    assert there.coef_.dtype == np.float32
    w = there.coef_.get().astype(np.float64)
    assert ((w >= -0.3) & (w <= 0.7)).all()
    _assert_same(cupy, here, there, X, rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_rows_side_of_newtons_matrix(cupy, sparse):
    """Few rows and many columns: Woodbury, which main memory uses as well."""
    X, y, _ = _data(30, 400, sparse)
    for loss, targets, lower in (("squared", y, -0.01), ("hinge", np.where(y > 3, 1, 0), 0.0)):
        cls = BoundedRegressor if loss == "squared" else BoundedClassifier
        model = cls(loss, bounds=(lower, 0.2), alpha=0.1)
        here, there = _both(cupy, model, X, targets)
        np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-6)
        np.testing.assert_allclose(there.coef_.get(), here.coef_, atol=2e-3 * np.abs(here.coef_).max())


@pytest.mark.parametrize("side", ["columns", "rows"])
@pytest.mark.parametrize("sparse", [False, True])
def test_steps_in_a_box(cupy, side, sparse):
    n, p = (60, 20) if side == "columns" else (15, 330)
    X, y, weight = _data(n, p, sparse)
    rng, steps, moments, weight = np.random.default_rng(1), [], [], weight / weight.sum()
    d, gradient, cols = rng.random(n) + 0.1, rng.standard_normal(p + 1), np.delete(np.arange(p), 3)
    for put in (np.asarray, cupy.asarray):
        up = X if put is np.asarray else _up(cupy, X)
        loss = regression_loss("squared", put(y), put(weight), quantile=0.5, epsilon=0.1)
        problem = BoundedProblem(up, loss, put(np.zeros(p)), put(np.ones(p)), 0.0, 0.1, fit_intercept=True)
        system = NewtonSystem.build(
            problem.matrix, put(np.arange(1, n)), put(cols), put(d[1:]), problem.l2, problem.fit_intercept
        )
        assert (system.gram is None) == (side == "rows")
        moments.append([a if put is np.asarray else a.get() for a in problem.moments()])
        low, high = put(np.full(p, -0.05)), put(np.full(p, 0.05))
        steps.append(minimize_in_box(system, put(gradient[:p]), low, high, put(np.full(p, 1e-3))))
        # a matrix that is not positive definite is no step, and no error
        bad = minimize_in_box(system, put(gradient[:p]), low, high, put(np.full(p, -1e6)))
        assert np.isnan(bad if put is np.asarray else bad.get()).all()
    np.testing.assert_allclose(steps[1].get(), steps[0], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(moments[1], moments[0], rtol=1e-10, atol=1e-14)


def test_constant_columns_and_columns_without_squares(cupy):
    X, y, _ = _data(60, 4)
    X[:, 1], X[:, 2] = 5.0, 0.0
    for sparse in (False, True):
        X_there = _up(cupy, sp.csr_matrix(X) if sparse else X)
        here, there = BoundedRegressor().fit(X, y), BoundedRegressor().fit(X_there, cupy.asarray(y))
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
        X_there = _up(cupy, sp.csr_matrix(X * 1e-200) if sparse else X * 1e-200)
        with pytest.raises(ValueError, match="squares of column 0 are too large or too small"):
            BoundedRegressor().fit(X_there, cupy.asarray(y))


def test_warm_start_history_callback(cupy):
    X, y, _ = _data(200, 6, classes=3)
    X_there, y_there = _up(cupy, X), cupy.asarray(y)
    seen = []
    model = BoundedClassifier("hinge", warm_start=True, callback=seen.append, alpha=1e-2)
    first = int(model.fit(X_there, y_there).n_iter_.sum())
    assert isinstance(seen[0].x, cupy.ndarray)
    assert model.fit(X_there, y_there).n_iter_.sum() <= first
    assert model.fit(X, y).coef_.shape == (3, 6)  # a start on the other side is of no use
    assert isinstance(model.coef_, np.ndarray)
    with pytest.warns(UserWarning, match="max_iter"):
        BoundedRegressor(max_iter=1).fit(X_there, y_there)


def test_the_way_back_and_what_is_refused(cupy):
    X, y, weight = _data(80, 5)
    X_there, y_there = cupy.asarray(X), cupy.asarray(y)
    model = BoundedRegressor("huber").fit(X_there, y_there)
    back = model.to_cpu()
    assert isinstance(back.coef_, np.ndarray)
    np.testing.assert_allclose(back.predict(X), model.predict(X_there).get(), rtol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(back)).coef_, back.coef_)
    labels = (y_there > 3).astype(np.int64)
    classifier = BoundedClassifier().fit(X_there, labels)
    np.testing.assert_array_equal(classifier.to_cpu().predict(X), classifier.predict(X_there).get())
    for fitted in (model, classifier):
        with pytest.raises(TypeError, match=r"to_cpu\(\)"):
            fitted.predict(X)
        with pytest.raises(TypeError, match=r"cupy\.asnumpy\(X\)"):
            fitted.to_cpu().predict(X_there)
        with pytest.raises(TypeError, match=r"to_cpu\(\)\.sparsify\(\)"):
            fitted.sparsify()
    refused = partial(pytest.raises, TypeError)
    with refused(match=r"cupy\.asarray\(y\)"):
        BoundedRegressor().fit(X_there, y)
    with refused(match="y is on the GPU"):
        BoundedRegressor().fit(X, y_there)
    with refused(match=r"cupy\.asarray\(sample_weight\)"):
        BoundedClassifier().fit(X_there, labels, sample_weight=weight)
    with refused(match="the upper bound is on the GPU"):
        BoundedRegressor(bounds=(0, cupy.ones(5))).fit(X, y)
    with refused(match="LabelEncoder"):
        BoundedClassifier().fit(X_there, np.where(y > 3, "a", "b"))
    with pytest.raises(ValueError, match=r"feature 1 cross: \[2, 1\]"):
        BoundedRegressor(bounds=(cupy.asarray([0.0, 2.0, 0.0, 0.0, 0.0]), 1)).fit(X_there, y_there)
    with pytest.raises(ValueError, match="NaN or infinity"):
        BoundedRegressor().fit(X_there, y_there * np.nan)


def test_waits_of_an_iteration(cupy):
    """About thirty, of NQN or of Newton: numbers that a step of either depends on."""
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the stand-in counts what the host waits for")
    X, y, weight = _data(1200, 20)
    weight = weight / weight.sum()
    losses = (
        regression_loss("absolute", cupy.asarray(y), cupy.asarray(weight), quantile=0.5, epsilon=0.1),
        (classification_loss("log_loss", cupy.asarray(np.where(y > 3, 1.0, -1.0)), cupy.asarray(weight))),
    )
    for loss in losses:
        lower = cupy.asarray(np.full(20, -0.5))
        problem = BoundedProblem(cupy.asarray(X), loss, lower, -lower, 0.0, 1e-3, fit_intercept=True)
        before = dict(cupy.emulation.counts)
        result = minimize_bounded(problem, cupy.zeros(20), 0.0, BoundedOptions(tol=1e-5))
        assert result.success
        assert (cupy.emulation.counts["syncs"] - before["syncs"]) / result.nit < 45
