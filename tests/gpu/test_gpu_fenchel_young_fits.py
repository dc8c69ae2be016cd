"""Sparsemax and softmax regression on a GPU: losses, fits and predictions beside main memory's, refusals."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from sparsekit import SoftmaxClassifier, SoftmaxClassifierCV, SparsemaxClassifier, SparsemaxClassifierCV
from sparsekit._fenchel_young.estimators.path import fenchel_young_path
from sparsekit._fenchel_young.losses import loss as fenchel_young
from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss
from sparsekit._fenchel_young.solver.minimize_model import minimize_fenchel_young
from sparsekit._linalg import class_products as _class_model
from sparsekit._linalg.positive import solve_positive

pytestmark = pytest.mark.thorough

MAPS = ("sparsemax", "softmax")
CLASSIFIERS = (SparsemaxClassifier, SoftmaxClassifier)


def random_problem(n=50, p=7, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    Q = rng.random((n, K)) * (rng.random((n, K)) < 0.6)
    Q[:, 0] += 0.05
    codes = np.argmax(X[:, :K] + 0.7 * rng.standard_normal((n, K)), axis=1)
    return X, Q / Q.sum(axis=1, keepdims=True), codes, rng.random(n) + 0.2


def there(cupy, X, form):
    """X on the device, dense or compressed."""
    if form == "dense":
        return cupy.asarray(X)
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix(sp.csr_matrix(X))


def same(mine, theirs, **tolerances):
    np.testing.assert_allclose(mine.get(), theirs, **tolerances)


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kind", ["codes", "distributions"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_are_those_of_main_memory(cupy, transform, form, kind, dtype):
    X, Q, codes, w = random_problem()
    X, targets = X.astype(dtype), codes if kind == "codes" else Q
    w[3] = 0.0
    host = FenchelYoungLoss(transform, X if form == "dense" else sp.csr_matrix(X), targets, 4, w)
    loss = FenchelYoungLoss(transform, there(cupy, X, form), cupy.asarray(targets), 4, cupy.asarray(w))
    rng = np.random.default_rng(1)
    T, G = rng.standard_normal((2, *loss.shape))
    Z, mine = host.scores(T), loss.scores(cupy.asarray(T))
    same(mine, Z, rtol=1e-12, atol=1e-12)
    value, R = host.derivatives(Z)
    found, mine_R = loss.derivatives(mine)
    assert isinstance(found, float) and found == pytest.approx(value, rel=1e-12)
    assert loss.magnitude == pytest.approx(host.magnitude, rel=1e-13)
    same(mine_R, R, rtol=1e-10, atol=1e-15)
    same(loss.pull(mine_R), host.pull(R), rtol=1e-10, atol=1e-14)
    V = rng.standard_normal(loss.shape).astype(np.float32)
    operator, ours = loss.operator(mine), host.operator(Z)
    assert operator.shape == loss.shape  # nothing is padded
    out = operator.product(cupy.asarray(V), cupy.full(V.shape, np.nan, dtype=np.float32))
    wide = np.zeros(ours.shape, dtype=np.float32)
    wide[:, :4] = V
    expected = ours.product(wide, np.empty_like(wide))[:, :4]
    same(out, expected, atol=1e-5 * np.abs(expected).max())
    same(operator.diag, ours.diag[:, :4], rtol=2e-5, atol=1e-8)
    for free in (False, True):
        step = loss.newton_step(mine, cupy.asarray(G), 1e-2, free, np.inf)
        expected = host.newton_step(Z, G, 1e-2, free, np.inf)
        # what is added to all free intercepts changes nothing, and softmax leaves out what is little
        shift = (expected - step.get())[-1].mean() * np.eye(8)[:, 7:] if free else 0.0
        same(step + cupy.asarray(shift), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("free", [True, False])
def test_solutions_are_those_of_main_memory(cupy, transform, form, direct, free, monkeypatch):
    if not direct:
        monkeypatch.setattr(fenchel_young, "_DIRECT", 0)
    X, Q, _, w = random_problem()
    host = FenchelYoungLoss(transform, X, Q, 4, w)
    loss = FenchelYoungLoss(transform, there(cupy, X, form), cupy.asarray(Q), 4, cupy.asarray(w))
    options = dict(alpha=1e-2, tol=1e-8, penalize_intercept=not free, history=True)
    expected, found = minimize_fenchel_young(host, **options), minimize_fenchel_young(loss, **options)
    assert found.status == 0 and (found.n_cg > 0) is not direct
    assert type(found.x) is cupy.ndarray and type(found.grad) is cupy.ndarray
    # what is added to all free intercepts changes nothing
    shift = (expected.x - found.x.get())[-1].mean() if free else 0.0
    same(found.x[:-1], expected.x[:-1], atol=1e-6)
    same(found.x[-1] + shift, expected.x[-1], atol=1e-6)
    assert found.fun == pytest.approx(expected.fun, abs=1e-12)
    assert 0.0 <= found.dual_gap < 1e-9 and isinstance(found.dual_gap, float)
    assert all(type(column) is np.ndarray for column in found.history.values())
    again = minimize_fenchel_young(loss, 1e-2, found.x, tol=1e-6, penalize_intercept=not free)
    assert again.nit == 0
    same(again.x, found.x.get(), atol=0.0)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_rows_by_blocks(cupy, form, monkeypatch):
    monkeypatch.setattr(_class_model, "_DEVICE_ROOM", 64)
    monkeypatch.setattr(fenchel_young, "_DEVICE_ROOM", 64)
    X, _, codes, w = random_problem(n=1100, p=4, K=3)
    X = X.astype(np.float32)
    host = FenchelYoungLoss("softmax", X if form == "dense" else sp.csr_matrix(X), codes, 3, w)
    loss = FenchelYoungLoss("softmax", there(cupy, X, form), cupy.asarray(codes), 3, cupy.asarray(w))
    T = np.random.default_rng(0).standard_normal(loss.shape)
    Z, mine = host.scores(T), loss.scores(cupy.asarray(T))
    same(mine, Z, rtol=1e-12, atol=1e-12)
    same(loss.pull(mine), np.vstack([X.T.astype(float) @ Z, Z.sum(axis=0)]), rtol=1e-12, atol=1e-12)
    G = np.random.default_rng(1).standard_normal(loss.shape)
    step = loss.newton_step(mine, cupy.asarray(G), 1e-2, False, np.inf)
    expected = host.newton_step(Z, G, 1e-2, False, np.inf)
    same(step, expected, atol=1e-6 * np.abs(expected).max())
    same(loss.operator(mine).diag, host.operator(Z).diag[:, :3], rtol=2e-5)


def test_a_step_of_conjugate_gradients_waits_once(cupy, monkeypatch):
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the emulation counts how often the host waits")
    monkeypatch.setattr(fenchel_young, "_DIRECT", 0)
    X, Q, _, w = random_problem(p=25)
    for form in ("dense", "csr"):
        loss = FenchelYoungLoss("softmax", there(cupy, X, form), cupy.asarray(Q), 4, cupy.asarray(w))
        loss.operator(loss.scores(cupy.zeros(loss.shape)))  # what is made once
        before = dict(cupy.emulation.counts)
        found = minimize_fenchel_young(loss, 1e-5, tol=1e-9)
        waits = cupy.emulation.counts["syncs"] - before["syncs"]
        assert found.n_cg > 30 and waits <= found.n_cg + 12 * (found.nit + 1)


def test_no_result_depends_on_the_order_of_threads(cupy, monkeypatch):
    monkeypatch.setattr(fenchel_young, "_DIRECT", 0)
    X, _, codes, _ = random_problem()
    found = []
    for seed in (0, 1):
        if hasattr(cupy, "emulation"):
            cupy.emulation.seed(seed)
        loss = FenchelYoungLoss("softmax", there(cupy, X, "csr"), cupy.asarray(codes), 4)
        found.append(minimize_fenchel_young(loss, 1e-2, tol=1e-6).x.get())
    np.testing.assert_array_equal(*found)


def test_positive_definite_systems(cupy):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 4))
    H, b = A.T @ A + 0.1 * np.eye(4), rng.standard_normal(4)
    same(solve_positive(cupy.asarray(H), cupy.asarray(b)), np.linalg.solve(H, b), rtol=1e-12)
    for bad in (H - 10.0 * np.eye(4), -H):
        with pytest.raises(np.linalg.LinAlgError):
            solve_positive(cupy.asarray(bad), cupy.asarray(b))
        with pytest.raises(np.linalg.LinAlgError):
            solve_positive(bad, b)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes(cupy, cls, form, dtype):
    X, _, codes, w = random_problem()
    X, y = X.astype(dtype), 10 * codes - 3
    options = dict(alpha=1e-2, tol=1e-7, class_weight={-3: 2.0, 17: 0.5})
    host = cls(**options).fit(X, y, w)
    device = there(cupy, X, form)
    model = cls(**options).fit(device, cupy.asarray(y), cupy.asarray(w))
    for name in ("coef_", "intercept_", "classes_"):
        mine, theirs = getattr(model, name), getattr(host, name)
        assert type(mine) is cupy.ndarray and mine.dtype == theirs.dtype and mine.shape == theirs.shape
        same(mine, theirs, rtol=1e-5, atol=2e-6 if dtype == np.float32 else 1e-6)
    assert model.n_features_in_ == 7 and model.multilabel_ is False
    assert model.objective_ == pytest.approx(host.objective_, rel=1e-6)
    assert model.n_iter_.tolist() == host.n_iter_.tolist()
    tolerance = dict(rtol=1e-4, atol=2e-5 if dtype == np.float32 else 2e-6)
    for method in ("decision_function", "predict_proba"):
        mine, theirs = getattr(model, method)(device), getattr(host, method)(X)
        assert type(mine) is cupy.ndarray and mine.dtype == theirs.dtype == dtype
        same(mine, theirs, **tolerance)
    same(model.predict(device), host.predict(X), atol=0)
    weights = cupy.asarray(w)
    assert model.score(device, cupy.asarray(y)) == pytest.approx(host.score(X, y))
    assert model.score(device, cupy.asarray(y), weights) == pytest.approx(host.score(X, y, w))
    if cls is SoftmaxClassifier:
        same(model.predict_log_proba(device), host.predict_log_proba(X), **tolerance)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_two_classes_and_options(cupy, cls):
    X, _, codes, _ = random_problem(K=2)
    for options in (
        dict(fit_intercept=False),
        dict(penalize_intercept=False, class_weight="balanced"),
        dict(alpha=0.3, history=True),
    ):
        host = cls(tol=1e-7, **options).fit(X, codes == 1)
        model = cls(tol=1e-7, **options).fit(cupy.asarray(X), cupy.asarray(codes == 1))
        same(model.coef_, host.coef_, atol=1e-6)
        same(model.intercept_[1] - model.intercept_[0], host.intercept_[1] - host.intercept_[0], atol=2e-6)
        assert model.classes_.dtype == bool and hasattr(model, "history_") is ("history" in options)
        found = model.decision_function(cupy.asarray(X))
        assert found.shape == (50,)
        same(found, host.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("weights", [False, True])
def test_several_labels(cupy, cls, weights):
    X, _, codes, w = random_problem()
    Y = (np.eye(4)[codes] + (X[:, 4:5] > 0.3) * np.eye(4)[(codes + 1) % 4]).astype(np.int64)
    Y[5] = Y[9] = 0
    options = dict(alpha=1e-2, tol=1e-7, class_weight={1: 3.0} if weights else None)
    sample_weight = (w,) if weights else ()
    with pytest.warns(UserWarning, match="2 of 50 rows"):
        host = cls(**options).fit(X, Y, *sample_weight)
    with pytest.warns(UserWarning, match="2 of 50 rows") as record:
        model = cls(**options).fit(cupy.asarray(X), cupy.asarray(Y), *map(cupy.asarray, sample_weight))
    assert record[0].filename == __file__
    assert model.multilabel_ and model.classes_.tolist() == [0, 1, 2, 3]
    same(model.coef_, host.coef_, atol=1e-6)
    same(model.predict(cupy.asarray(X)), host.predict(X), atol=0)
    assert model.score(cupy.asarray(X), cupy.asarray(Y)) == pytest.approx(host.score(X, Y))
    Y[5] = Y[9] = 1
    from cupyx.scipy.sparse import csr_matrix

    dense, sparse = (
        cls(threshold=0.3).fit(cupy.asarray(X), y)
        for y in (cupy.asarray(Y), csr_matrix(sp.csr_matrix(Y * 1.0)))
    )
    same(dense.coef_, sparse.coef_.get(), atol=0)
    assert not (dense.predict(cupy.asarray(X)) != (dense.predict_proba(cupy.asarray(X)) > 0.3)).any()


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_distributions(cupy, cls):
    X, Q, _, _ = random_problem()
    balanced = dict(alpha=1e-2, tol=1e-7, class_weight="balanced")
    host, model = cls(**balanced).fit(X, Q), cls(**balanced).fit(cupy.asarray(X), cupy.asarray(Q))
    same(model.coef_, host.coef_, atol=1e-6)
    same(model.predict(cupy.asarray(X)), host.predict(X), atol=0)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_the_way_to_main_memory_and_back(cupy, cls, form):
    X, _, codes, _ = random_problem()
    device = there(cupy, X, form)
    model = cls(alpha=1e-2, warm_start=True, tol=1e-6).fit(device, cupy.asarray(codes))
    probabilities = model.predict_proba(device)
    loaded = pickle.loads(pickle.dumps(model))
    same(loaded.predict_proba(device), probabilities.get(), atol=0)
    home = model.to_cpu()
    assert all(type(x) is np.ndarray for x in (home.coef_, home.intercept_, home.classes_))
    assert type(model.coef_) is cupy.ndarray
    np.testing.assert_allclose(home.predict_proba(X), probabilities.get(), atol=1e-10)
    assert home.score(X, codes) == model.score(device, cupy.asarray(codes))
    # a fit starts from the last one's coefficients wherever they are
    iterations = model.n_iter_[0]
    assert home.fit(X, codes).n_iter_[0] < iterations
    assert (
        cls(alpha=1e-2, warm_start=True, tol=1e-6).fit(X, codes).fit(device, cupy.asarray(codes)).n_iter_ < 2
    )
    assert type(model.fit(X, codes).coef_) is np.ndarray
    assert model.fit(device, cupy.asarray(codes)).n_iter_[0] < iterations


def test_callbacks_get_copies_on_the_device(cupy, capsys):
    X, _, codes, _ = random_problem()
    seen = []

    def stop(intermediate_result):
        seen.append(intermediate_result.x)
        intermediate_result.x[...] = np.nan
        return len(seen) == 2

    model = SoftmaxClassifier(callback=stop, verbose=1).fit(cupy.asarray(X), cupy.asarray(codes))
    assert model.n_iter_[0] == 2 and all(type(x) is cupy.ndarray for x in seen)
    assert bool(cupy.isfinite(model.coef_).all())
    assert capsys.readouterr().out.count("SoftmaxClassifier  iteration") == 2
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        SoftmaxClassifier(max_iter=1).fit(cupy.asarray(X), cupy.asarray(codes))


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_what_fits_refuse(cupy, cls):
    X, Q, codes, w = random_problem()
    A, y, q = cupy.asarray(X), cupy.asarray(codes), cupy.asarray(Q)

    def refused(kind, match, X, y, *weight, **options):
        with pytest.raises(kind, match=match):
            cls(**options).fit(X, y, *weight)

    refused(TypeError, "X is on the GPU and y in main memory", A, codes)
    refused(TypeError, "y is on the GPU and X in main memory", X, y)
    refused(TypeError, "X is on the GPU and y in main memory", A, Q)
    refused(TypeError, "X is on the GPU and sample_weight in main memory", A, y, w)
    refused(TypeError, "LabelEncoder", A, np.array(["a", "b"] * 25))
    refused(ValueError, "one label for each row", A, y[1:])
    refused(ValueError, "one row for each row", A, q[1:])
    refused(ValueError, "must have shape", A, q[:, :, None])
    refused(ValueError, "only one class: 1", A, cupy.ones(50, dtype=int))
    refused(ValueError, "continuous", A, q[:, 0])
    refused(ValueError, "NaN or infinity", A * np.nan, y)
    refused(ValueError, "y contains NaN", A, q * np.inf)
    refused(ValueError, r"y\[0, 0\] is -", A, -q)
    refused(ValueError, r"y\[0\] sums to 2", A, 2 * q)
    with pytest.warns(UserWarning, match="50 of 50 rows"):
        refused(ValueError, "no row with a label", A, cupy.zeros((50, 4)))
    refused(ValueError, "sample_weight must be at least 0", A, y, cupy.full(50, -1.0))
    refused(ValueError, "non-zero number", A, y, 0.0)
    refused(ValueError, "sample_weight must have shape", A, y, cupy.ones(3))
    refused(ValueError, "not a class", A, y, class_weight={7: 1.0})
    refused(ValueError, "columns 0 .. 3", A, q, class_weight={7: 1.0})
    refused(ValueError, "at least 2 classes", A, y, (y == 1) * 1.0)


def test_one_weight_compressed_columns_and_a_column_of_labels(cupy):
    X, _, codes, _ = random_problem()
    A, y = cupy.asarray(X), cupy.asarray(codes)
    plain = SoftmaxClassifier().fit(A, y)
    same(SoftmaxClassifier().fit(A, y, 2.0).coef_, plain.coef_.get(), atol=1e-12)
    from cupyx.scipy.sparse import csc_matrix

    columns = csc_matrix(sp.csc_matrix(X))
    same(SoftmaxClassifier().fit(columns, y).coef_, plain.coef_.get(), atol=1e-12)
    same(plain.predict(columns), plain.predict(A).get(), atol=0)
    with pytest.warns(DataConversionWarning):
        same(SoftmaxClassifier().fit(A, y[:, None]).coef_, plain.coef_.get(), atol=0)


def test_what_predictions_refuse(cupy):
    X, _, codes, _ = random_problem()
    A, y = cupy.asarray(X), cupy.asarray(codes)
    model, host = SoftmaxClassifier().fit(A, y), SparsemaxClassifier().fit(X, codes)
    for method in (model.predict, model.predict_proba, model.decision_function, model.predict_log_proba):
        with pytest.raises(TypeError, match=r"fitted on the GPU.*to_cpu\(\)"):
            method(X)
    for method in (host.predict, host.predict_proba, host.decision_function):
        with pytest.raises(TypeError, match=r"fitted in main memory.*cupy.asnumpy\(X\)"):
            method(A)
    with pytest.raises(TypeError, match="to_cpu"):
        model.score(X, codes)
    with pytest.raises(TypeError, match="y in main memory"):
        model.score(A, codes)
    with pytest.raises(ValueError, match="y must have shape"):
        model.score(A, y[1:])
    with pytest.raises(ValueError, match="features"):
        model.predict(A[:, 1:])


@pytest.mark.parametrize("cls", [SparsemaxClassifierCV, SoftmaxClassifierCV])
def test_cross_validation_is_for_main_memory(cupy, cls):
    X, _, codes, _ = random_problem()
    for x, y in ((cupy.asarray(X), codes), (X, cupy.asarray(codes))):
        with pytest.raises(TypeError, match=f"{cls.__name__} takes no arrays of a GPU.*asnumpy"):
            cls().fit(x, y)
    with pytest.raises(TypeError, match="fenchel_young_path takes no arrays of a GPU"):
        fenchel_young_path(cupy.asarray(X), cupy.asarray(codes))
    model = cls(alphas=[1e-2, 1e-1], cv=2).fit(X, codes)
    with pytest.raises(TypeError, match="asnumpy"):
        model.predict(cupy.asarray(X))
