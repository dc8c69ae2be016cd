"""The best of very many classes by weights in 8 bits, against a sort and the kernel that reads all."""

import gc
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._cython.extreme import _ranking as kernels
from sparsekit._extreme import plan
from sparsekit._extreme.estimators.scores import LinearScores, rank
from sparsekit._extreme.solver import shortlist

K, D = 5000, 60


@pytest.fixture(autouse=True)
def from_few_classes_on(monkeypatch):
    monkeypatch.setattr(plan, "MIN_CLASSES", 1000)


def rows(n, d, dtype, seed=1, whole=False):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, D), dtype=dtype)
    for x in X:
        x[rng.choice(D, d, replace=False)] = rng.integers(-2, 3, d) if whole else rng.standard_normal(d)
    return X


def laid_out(coef, order):
    if order == "strided":
        wide = np.zeros((2 * coef.shape[0], 2 * coef.shape[1]), dtype=coef.dtype)
        wide[::2, ::2] = coef
        return wide[::2, ::2]
    return np.asarray(coef, order=order)


def both(coef, intercept, X, k, n_threads=1):
    """By a shortlist, which must have been used, and by all scores."""
    kept = shortlist.shortlist_of(coef, intercept)
    before = kept.rows
    found = rank(LinearScores(coef, intercept, n_threads, True), X, k)[:2]
    assert kept.rows == before + X.shape[0]
    return found, rank(LinearScores(coef, intercept, n_threads), X, k)[:2], kept


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("types", [("f", "f"), ("d", "d"), ("f", "d"), ("d", "f")])
@pytest.mark.parametrize("kind", ["alike", "falling", "tiny", "ties"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_bits_are_those_of_all_scores(order, types, kind, n_threads):
    rng = np.random.default_rng(3)
    scale, decay = 1e-25 if kind == "tiny" else 1.0, float(kind == "falling")
    scale = scale * (1.0 + rng.permutation(K)) ** -decay
    coef, intercept = rng.standard_normal((K, D)) * scale[:, None], rng.standard_normal(K) * scale
    if kind == "ties":  # of whole numbers, whose sums are exact
        coef, intercept = rng.integers(-2, 3, (K, D)), rng.integers(-1, 2, K)
    coef, intercept = laid_out(coef.astype(types[1]), order), intercept.astype(types[1])
    for d, k in ((1, 10), (5, 19), (D, 3)):
        X = sp.csr_array(rows(70, d, types[0], whole=kind == "ties"))
        (codes, best), (all_codes, all_best), kept = both(coef, intercept, X, k, n_threads)
        np.testing.assert_array_equal(codes, all_codes)
        np.testing.assert_array_equal(best, all_best)
        assert best.dtype == all_best.dtype
    if kind in ("alike", "falling"):
        assert kept.failures == 0 or decay  # few classes, of very different weights, at all features
        assert kept.listed < 0.05 * K * kept.rows  # few classes are in doubt


def test_a_bound_holds_for_every_weight():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        w = rng.standard_normal((2500, 4)).astype(dtype)
        w[:, 1] = 1e6 + 1e-3 * w[:, 1]
        w[:, 2] = 1e-35 * w[:, 2]
        w[:, 3] = 7.0
        order, columns = rng.permutation(2500).astype(np.int32), np.array([2, 0, 3, 1])
        q, steps = np.full((4, 3 * kernels.PART), 99, np.int8), np.empty((4, 3), np.float32)
        kernels.round_columns(w, columns, order, q, steps, 2)
        step = np.repeat(steps.astype(float), kernels.PART, axis=1)[:, :2500]
        assert (np.abs(w[order][:, columns].T - step * q[:, :2500]) <= 0.5001 * step).all()
        assert (steps[1] < 0.01 * np.ptp(w[:, 0])).all()
        assert (q[:, 2500:] == 0).all()


def test_many_equal_scores_are_left_to_the_kernel_that_reads_all():
    coef, intercept = np.zeros((K, D), dtype=np.float32), np.zeros(K, dtype=np.float32)
    coef[7] = 1
    X = sp.csr_array(np.abs(rows(100, 5, np.float32)))
    (codes, best), (all_codes, all_best), kept = both(coef, intercept, X, 4)
    np.testing.assert_array_equal(codes, all_codes)
    np.testing.assert_array_equal(best, all_best)
    assert (codes == [7, 0, 1, 2]).all() and kept.failures == 100 and not kept.helps
    rank(LinearScores(coef, intercept, 1, True), X, 4)
    assert kept.rows == 100  # given up


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e38])
def test_weights_that_are_not_finite(bad):
    rng = np.random.default_rng(0)
    coef, intercept = rng.standard_normal((K, D)).astype(np.float32), np.zeros(K, dtype=np.float32)
    coef[4000, 3] = bad
    X = sp.csr_array(rows(20, 20, np.float32))
    with np.errstate(invalid="ignore", over="ignore"):
        (codes, best), (all_codes, all_best), kept = both(coef, intercept, X, 4)
    np.testing.assert_array_equal(codes, all_codes)
    np.testing.assert_array_equal(best, all_best)
    assert kept.failures == (X[:, [3]].toarray() != 0).sum()


def test_features_are_rounded_once_and_within_the_memory(monkeypatch):
    rng = np.random.default_rng(0)
    coef, intercept = rng.standard_normal((K, D)), np.zeros(K)
    kept, seen = shortlist.shortlist_of(coef, intercept), np.zeros(D, dtype=bool)
    for seed in range(9):
        X = sp.csr_array(rows(2, 6, np.float64, seed))
        rank(LinearScores(coef, intercept, 1, True), X, 3)
        seen[X.indices] = True
        assert kept.n_made == seen.sum() and ((kept.slots >= 0) == seen).all()
    monkeypatch.setattr(shortlist, "MAX_BYTES", 0)
    other = coef.copy()
    rank(LinearScores(other, intercept, 1, True), sp.csr_array(rows(900, 6, np.float64)), 3)
    kept = shortlist.shortlist_of(other, intercept)
    assert kept.n_made == kept.rows == 0


def test_it_goes_with_the_array_and_notices_changes():
    rng = np.random.default_rng(0)
    gc.collect()
    before = len(shortlist._kept)
    coef, intercept = rng.standard_normal((K, D)), rng.standard_normal(K)
    X = sp.csr_array(rows(5, 6, np.float64))
    both(coef, intercept, X, 3)
    assert len(shortlist._kept) == before + 1
    for change in (coef, intercept):
        change *= -1.0
        (codes, best), (all_codes, all_best), _ = both(coef, intercept, X, 3)
        np.testing.assert_array_equal(codes, all_codes)
        np.testing.assert_array_equal(best, all_best)
    shortlist.forget(coef)
    assert len(shortlist._kept) == before
    both(coef, intercept, X, 3)
    del coef, change
    gc.collect()
    assert len(shortlist._kept) == before


@pytest.mark.parametrize("method", ["auto", "implicit"])
def test_predict_topk(method):
    rng = np.random.default_rng(0)
    X, y = rows(1500, 6, np.float32), rng.integers(0, 1100, 1500)
    sparse = sp.csr_array(X)
    model = ExtremeSoftmaxSGD(method, learning_rate=1.0, max_iter=1, tol=None, n_jobs=1, random_state=0)
    model.partial_fit(sparse[:900], y[:900], classes=np.arange(1100))
    for rest in (None, slice(900, 1200), slice(1200, 1500)):
        if rest is not None:
            model.partial_fit(sparse[rest], y[rest])  # the array of weights may be the same one
        labels, scores = model.predict_topk(sparse, k=4)
        expected = model.predict_topk(sparse, k=4, shortlist=False)
        np.testing.assert_array_equal(labels, expected[0])
        np.testing.assert_array_equal(scores, expected[1])
        close = model.predict_topk(X[:3], k=4)[1]
        np.testing.assert_allclose(close, expected[1][:3], rtol=1e-5)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_topk(sparse, k=4)[1], scores)
    assert shortlist.shortlist_of(model.coef_, model.intercept_).rows > 0
    probable = model.predict_topk(sparse, k=4, proba=True)
    np.testing.assert_array_equal(probable[0], labels)
    everything = model.predict_topk(sparse[:4], k=5000)
    assert everything[0].shape == (4, 1100)
