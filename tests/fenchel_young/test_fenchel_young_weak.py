"""Weak penalties, bad starts and certificates of sparsemax and softmax regression."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_multilabel_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import sparsekit as sk
from sparsekit._cython.fenchel_young import _dual_ascent
from sparsekit._fenchel_young import plan
from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss
from sparsekit._fenchel_young.solver.ascent import Ascent
from sparsekit._fenchel_young.solver.minimize_model import minimize_fenchel_young

BOTH = [sk.SparsemaxClassifier, sk.SoftmaxClassifier]
WITH_CV = [sk.SparsemaxClassifierCV, sk.SoftmaxClassifierCV]
MAPS = ("sparsemax", "softmax")


def text(n=120, p=900, K=4, seed=0):
    """Rows of few words, more words than rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    words = np.where(rng.random((n, 25)) < 0.3, rng.integers(40, size=(n, 25)) + 40 * y[:, None], -1)
    words = np.where(words < 0, rng.integers(p, size=(n, 25)), words)
    X = sp.coo_matrix((np.ones(words.size), (np.repeat(np.arange(n), 25), words.ravel())), (n, p)).tocsr()
    return sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)))), y


def data(name):
    if name == "labels":
        X, Y = make_multilabel_classification(150, 8, n_classes=5, allow_unlabeled=False, random_state=0)
        return scale(X), Y
    if name == "text":
        return text()
    X, y = {"iris": load_iris, "wine": load_wine, "wine raw": load_wine, "cancer raw": load_breast_cancer,
            "digits": load_digits}[name](return_X_y=True)  # fmt: skip
    if name == "digits":
        return X[:300] / 16.0, y[:300]
    return (X, y) if name.endswith("raw") else (scale(X), y)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("name", ["iris", "wine", "wine raw", "cancer raw", "digits", "text", "labels"])
def test_a_default_fit_is_certain_for_every_penalty(cls, name):
    X, y = data(name)
    steps = []
    for alpha in (10.0, 1e-2, 1e-4, 1e-6, 1e-8):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = cls(alpha).fit(X, y)
        best = min(cls(alpha, tol=1e-10).fit(X, y).objective_, model.objective_)
        error, gap = model.objective_ - best, model.dual_gap_
        assert error <= gap * (1 + 1e-9) + 1e-14 * model.objective_ and gap <= 1e-4 * model.objective_
        if error > 1e-6 * model.objective_:
            assert gap <= 100.0 * error
        steps.append(int(model.n_iter_[0]))
    # no cliff: a weak penalty takes more steps, but not many
    assert max(steps) <= 50


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("others", [0.0, 1e-4])
def test_a_row_far_on_the_wrong_side_comes_back(transform, K, alpha, others):
    """Deep in the straight part of the loss there is no curvature: Newton's model has no minimiser near."""
    rng = np.random.default_rng(0)
    n, p = 8000, 8  # enough rows that this start is no worse than zero
    X = rng.standard_normal((n, p))
    y = (3.0 * X[:, 1:] @ rng.standard_normal((p - 1, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    # a feature that the first row has for itself, or almost
    X[:, 0] *= others
    X[0, 0] = 1.0
    loss = FenchelYoungLoss(transform, X, y, K)
    best = minimize_fenchel_young(loss, alpha, tol=1e-9)
    start = best.x.copy()
    start[0] = 0.0
    start[0, (y[0] + 1) % K] = 1000.0
    assert loss.scores(start)[0].max() > loss.scores(start)[0, y[0]] + 900.0
    assert loss.derivatives(loss.scores(start))[0] < loss.derivatives(np.zeros((n, K)))[0]
    res = minimize_fenchel_young(loss, alpha, start)
    assert res.status == 0 and 1 <= res.nit <= 12
    assert res.fun <= best.fun * (1 + 1e-4)


def plain_ascent(X, Q, w, alpha, order, P, W):
    """The same by projections onto the simplex, row by row."""
    for i in order[w[order] > 0]:
        z, s = X[i] @ W, w[i] * (X[i] @ X[i]) / alpha
        v = np.sort((z + s * P[i]) / (1 + s))[::-1]
        tau = (np.cumsum(v) - 1) / np.arange(1, len(v) + 1)
        new = np.maximum((z + s * P[i]) / (1 + s) - tau[np.flatnonzero(v > tau)[-1]], 0.0)
        W -= np.outer(X[i], new - P[i]) * (w[i] / alpha)
        P[i] = new


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_sweeps_of_dual_ascent(dtype, dense, intercept):
    rng = np.random.default_rng(0)
    n, p, K, alpha = 40, 6, 5, 1e-2
    X = (rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)).astype(dtype)
    Q, w = np.eye(K)[rng.integers(K, size=n)], rng.random(n) / n
    w[3] = 0.0
    A = np.column_stack([X, np.ones(n)])[:, : p + intercept].astype(float)
    P, W, order = Q.copy(), np.zeros((p + intercept, K)), rng.permutation(n)
    mine = P.copy(), W.copy()
    for _ in range(3):
        common = (order, w, np.square(A).sum(axis=1), *mine, intercept, alpha)
        if dense:
            _dual_ascent.ascend_dense(X, *common)
        else:
            C = sp.csr_matrix(X)
            _dual_ascent.ascend(C.indptr.astype(np.int64), C.indices, C.data, *common)
        plain_ascent(A, Q, w, alpha, order, P, W)
    np.testing.assert_allclose(mine[0], P, atol=1e-12)
    np.testing.assert_allclose(mine[1], W, atol=1e-10)
    np.testing.assert_allclose(W, A.T @ (w[:, None] * (Q - P)) / alpha, atol=1e-10)
    assert np.array_equal(P[3], Q[3])


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("name", ["text", "wine"])
@pytest.mark.parametrize("alpha", [1e-1, 1e-4, 1e-7])
def test_dual_ascent_and_newton_agree(free, name, alpha, monkeypatch):
    X, y = data(name)
    loss = FenchelYoungLoss("sparsemax", X, y, y.max() + 1)
    options = dict(penalize_intercept=not free, tol=1e-7)
    newton = minimize_fenchel_young(loss, alpha, **options)
    for name_of, value in (("MAX_NEWTON_SIDE", 0), ("MAX_WIDE_SIDE", 0), ("MAX_ROWS_PER_FEATURE", np.inf)):
        monkeypatch.setattr(plan, name_of, value)
    blocks = []
    monkeypatch.setattr(Ascent, "block", lambda self, block=Ascent.block: blocks.append(1) or block(self))
    found = minimize_fenchel_young(loss, alpha, **options)
    assert blocks and found.status == 0
    assert found.fun == pytest.approx(newton.fun, rel=1e-6)
    if name == "text" and not free:
        assert len(blocks) == found.nit  # the sweeps reach it alone
    # from the solution; its own predictions may be no more than near the best dual point
    again = minimize_fenchel_young(loss, alpha, found.x, **options)
    assert again.nit <= 10 and again.fun <= found.fun * (1 + 1e-6)


def message(function):
    with pytest.warns(ConvergenceWarning) as record:
        function()
    return " ".join(str(w.message) for w in record)


@pytest.mark.parametrize("cls", BOTH)
def test_a_fit_that_ends_early_says_how_far_it_is(cls):
    X, y = data("wine")
    said = message(lambda: cls(1e-6, max_iter=2).fit(X, y))
    assert "reached max_iter=2" in said and "similar scales" in said
    assert float(re.search(r"may be ([\d.]+) % too high", said).group(1)) > 0.1
    assert "max_time=1e-09" in message(lambda: cls(1e-6, max_time=1e-9).fit(X, y))
    assert "alpha" not in message(lambda: cls(0.0, max_iter=1, tol=1e-12).fit(X, y))


@pytest.mark.parametrize("cls", WITH_CV)
def test_folds_that_end_early_are_named(cls):
    X, y = data("wine")
    said = message(lambda: cls([1.0, 1e-7], max_iter=3, cv=3).fit(X, y))
    assert re.search(r"3 of 6 fits .*fold 0 \(alpha 1e-07\); fold 1 \(alpha 1e-07\); fold 2", said)
    said = message(lambda: cls([1.0, 1e-7], max_iter=3, cv=13).fit(X, y))
    assert "fold 9 (alpha 1e-07) and 3 more" in said
    said = message(lambda: sk.fenchel_young_path(X, y, alphas=[1.0, 1e-7], max_iter=3))
    assert "1 of 2 fits did not converge" in said and "alpha 1e-07" in said
