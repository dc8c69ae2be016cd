"""Sparsemax and softmax regression on a GPU: losses, fits and predictions against main memory's, refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import same, to_device

from sparsekit import SoftmaxClassifier, SoftmaxClassifierCV, SparsemaxClassifier, SparsemaxClassifierCV
from sparsekit._fenchel_young.estimators.path import fenchel_young_path
from sparsekit._fenchel_young.losses import loss as fenchel_young
from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss
from sparsekit._fenchel_young.solver.minimize_model import minimize_fenchel_young
from sparsekit._linalg import class_products as _class_model

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


def on_device(cupy, X, form):
    """X on the device, dense or compressed."""
    return to_device(cupy, X if form == "dense" else sp.csr_matrix(X))


@pytest.mark.parametrize(
    "transform, form, kind, dtype",
    [
        ("sparsemax", "dense", "codes", np.float32),
        ("sparsemax", "csr", "distributions", np.float64),
        ("softmax", "dense", "distributions", np.float64),
        ("softmax", "csr", "codes", np.float32),
    ],
)
def test_losses_are_those_of_main_memory(cupy, transform, form, kind, dtype):
    X, Q, codes, w = random_problem()
    X, targets = X.astype(dtype), codes if kind == "codes" else Q
    w[3] = 0.0
    host = FenchelYoungLoss(transform, X if form == "dense" else sp.csr_matrix(X), targets, 4, w)
    loss = FenchelYoungLoss(transform, on_device(cupy, X, form), cupy.asarray(targets), 4, cupy.asarray(w))
    rng = np.random.default_rng(1)
    T, G = rng.standard_normal((2, *loss.shape))
    Z, mine = host.scores(T), loss.scores(cupy.asarray(T))
    same(mine, Z, rtol=1e-12, atol=1e-12)
    value, R = host.derivatives(Z)
    found, mine_R = loss.derivatives(mine)
    assert isinstance(found, float) and found == pytest.approx(value, rel=1e-12)
    assert loss.magnitude == pytest.approx(host.magnitude, rel=1e-13)
    same(mine_R, R, rtol=1e-10, atol=1e-15)
    same(loss.adjoint(mine_R), host.adjoint(R), rtol=1e-10, atol=1e-14)
    V = rng.standard_normal(loss.shape).astype(np.float32)
    operator, ours = loss.operator(mine), host.operator(Z)
    assert operator.shape == loss.shape  # nothing is padded
    out = operator.multiply(cupy.asarray(V), cupy.full(V.shape, np.nan, dtype=np.float32))
    wide = np.zeros(ours.shape, dtype=np.float32)
    wide[:, :4] = V
    expected = ours.multiply(wide, np.empty_like(wide))[:, :4]
    same(out, expected, atol=1e-5 * np.abs(expected).max())
    same(operator.diag, ours.diag, rtol=2e-5, atol=1e-8)
    for free in (False, True):
        step = loss.newton_step(mine, cupy.asarray(G), 1e-2, free, np.inf)
        expected = host.newton_step(Z, G, 1e-2, free, np.inf)
        # what is added to all free intercepts changes nothing, and softmax leaves out what is little
        shift = (expected - step.get())[-1].mean() * np.eye(8)[:, 7:] if free else 0.0
        same(step + cupy.asarray(shift), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_rows_by_blocks(cupy, form, monkeypatch):
    monkeypatch.setattr(_class_model, "DEVICE_BLOCK", 64)
    X, _, codes, w = random_problem(n=1100, p=4, K=3)
    X = X.astype(np.float32)
    host = FenchelYoungLoss("softmax", X if form == "dense" else sp.csr_matrix(X), codes, 3, w)
    loss = FenchelYoungLoss("softmax", on_device(cupy, X, form), cupy.asarray(codes), 3, cupy.asarray(w))
    T = np.random.default_rng(0).standard_normal(loss.shape)
    Z, mine = host.scores(T), loss.scores(cupy.asarray(T))
    same(mine, Z, rtol=1e-12, atol=1e-12)
    same(loss.adjoint(mine), np.vstack([X.T.astype(float) @ Z, Z.sum(axis=0)]), rtol=1e-12, atol=1e-12)
    G = np.random.default_rng(1).standard_normal(loss.shape)
    step = loss.newton_step(mine, cupy.asarray(G), 1e-2, False, np.inf)
    expected = host.newton_step(Z, G, 1e-2, False, np.inf)
    same(step, expected, atol=1e-6 * np.abs(expected).max())
    same(loss.operator(mine).diag, host.operator(Z).diag, rtol=2e-5)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("transform", MAPS)
def test_conjugate_gradients_wait_once_a_step(cupy, transform, form, monkeypatch):
    monkeypatch.setattr(fenchel_young, "MAX_SIDE", 0)
    X, Q, _, w = random_problem(p=25)
    loss = FenchelYoungLoss(transform, on_device(cupy, X, form), cupy.asarray(Q), 4, cupy.asarray(w))
    loss.operator(loss.scores(cupy.zeros(loss.shape)))  # what is made once
    before = dict(cupy.emulation.counts) if hasattr(cupy, "emulation") else None
    found = minimize_fenchel_young(loss, 1e-5, tol=1e-9)
    if before and transform == "softmax":  # of sparsemax a product needs its supports
        waits = cupy.emulation.counts["syncs"] - before["syncs"]
        assert found.n_cg > 30 and waits <= found.n_cg + 12 * (found.nit + 1)
    expected = minimize_fenchel_young(FenchelYoungLoss(transform, X, Q, 4, w), 1e-5, tol=1e-9)
    assert found.status == 0 and found.n_cg > 0
    assert type(found.x) is cupy.ndarray and type(found.grad) is cupy.ndarray
    same(found.x, expected.x, atol=1e-4 * np.abs(expected.x).max())
    assert found.fun == pytest.approx(expected.fun, abs=1e-10)
    assert 0.0 <= found.dual_gap < 1e-7 and isinstance(found.dual_gap, float)


def test_no_result_depends_on_the_order_of_threads(cupy, monkeypatch):
    monkeypatch.setattr(fenchel_young, "MAX_SIDE", 0)
    X, _, codes, _ = random_problem()
    found = []
    for seed in (0, 1):
        if hasattr(cupy, "emulation"):
            cupy.emulation.seed(seed)
        loss = FenchelYoungLoss("softmax", on_device(cupy, X, "csr"), cupy.asarray(codes), 4)
        found.append(minimize_fenchel_young(loss, 1e-2, tol=1e-6).x.get())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_what_fits_refuse(cupy, cls):
    X, Q, codes, _ = random_problem()
    A, y, q = cupy.asarray(X), cupy.asarray(codes), cupy.asarray(Q)

    def refused(kind, match, X, y, *weight, **options):
        with pytest.raises(kind, match=match):
            cls(**options).fit(X, y, *weight)

    refused(ValueError, "one entry for each row", A, y[1:])
    refused(ValueError, "one row for each row", A, q[1:])
    refused(ValueError, r"y\[0, 0\] is -", A, -q)
    refused(ValueError, r"y\[0\] sums to 2", A, 2 * q)
    with pytest.warns(UserWarning, match="50 of 50 rows"):
        refused(ValueError, "no row with a label", A, cupy.zeros((50, 4)))
    refused(ValueError, "columns 0 .. 3", A, q, class_weight={7: 1.0})
    refused(ValueError, "at least 2 classes", A, y, (y == 1) * 1.0)


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
