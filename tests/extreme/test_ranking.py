"""The highest scores and the normaliser of each row, against a sort of all scores."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from sparsekit._extreme.estimators import scores as scores_module
from sparsekit._extreme.estimators.scores import HashedScores, LinearScores, rank


def problem(K, kind, dtype=np.float64, seed=0, n=7, d=30):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)) * (rng.random((n, d)) < 0.3)
    X[2] = 0
    coef = rng.integers(-2, 3, (K, d))  # small integers: many scores are equal, and sums are exact
    coef, intercept = coef.astype(dtype), rng.integers(-1, 2, K).astype(dtype)
    scores = X @ coef.T + intercept
    X = X.astype(dtype)
    if kind.startswith("sparse"):
        X = sp.csr_array(X)
        if kind == "sparse, long":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if kind == "sparse, by feature":
        coef = np.asfortranarray(coef)
    if kind == "sparse, strided":
        wide = np.zeros((2 * K, 2 * d), dtype=dtype)
        wide[::2, ::2] = coef
        coef = wide[::2, ::2]
    if kind == "sparse, half":
        coef = coef.astype(np.float16)
    if kind == "sparse, CSR":
        coef = sp.csr_array(coef)
    return X, coef, intercept, scores


KINDS = ["dense"] + [
    f"sparse{more}" for more in ("", ", long", ", by feature", ", strided", ", half", ", CSR")
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [1, 5, 64, 65, 200, 1000])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_rank(kind, K, n_threads, dtype, in_blocks, monkeypatch):
    if in_blocks:
        monkeypatch.setattr(scores_module, "MAX_SCORES", 16)
    X, coef, intercept, scores = problem(K, kind, dtype)
    own = np.random.default_rng(1).integers(0, K, X.shape[0])
    for k in (1, 3, 70, 2 * K):
        codes, best, normalizers, mine = rank(
            LinearScores(coef, intercept, n_threads), X, k, codes=own, normalize=True
        )
        # of equal scores the first class first
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(codes, order)
        np.testing.assert_array_equal(best, np.take_along_axis(scores, order, 1))
        assert best.dtype == dtype
        np.testing.assert_allclose(normalizers, logsumexp(scores.astype(float), axis=1), rtol=1e-6)
        np.testing.assert_array_equal(mine, scores[np.arange(len(own)), own])


def test_large_and_falling_scores_do_not_overflow():
    X = np.array([[1.0], [-1.0], [1e3]])
    coef = np.linspace(-800, 900, 1000)[:, None]
    scores = X @ coef.T
    _, _, normalizers, _ = rank(LinearScores(coef, np.zeros(1000)), X, normalize=True)
    np.testing.assert_allclose(normalizers, logsumexp(scores, axis=1), rtol=1e-12)
    _, _, normalizers, _ = rank(LinearScores(coef, np.zeros(1000), 2), sp.csr_array(X), normalize=True)
    np.testing.assert_allclose(normalizers, logsumexp(scores, axis=1), rtol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_that_are_not_finite(n_threads, sparse):
    coef = np.ones((200, 2))
    coef[0, 0] = np.nan
    X = sp.csr_array(np.eye(2)) if sparse else np.eye(2)
    codes, best, normalizers, _ = rank(LinearScores(coef, np.zeros(200), n_threads), X, 1, normalize=True)
    assert np.isnan(normalizers[0])
    if sparse:  # NaN times a zero that is not stored is nothing
        np.testing.assert_allclose(normalizers[1], 1 + np.log(200))
    assert codes.min() >= 0 and codes.max() < 200
    coef[:] = np.nan
    codes, best, normalizers, _ = rank(LinearScores(coef, np.zeros(200), n_threads), X + X, 2, normalize=True)
    assert np.isnan(normalizers).all() and np.isnan(best).all() and (codes == 0).all()
    # classes of no probability at all before others
    coef = np.zeros((200, 2))
    intercept = np.where(np.arange(200) < 130, -np.inf, 0.0)
    codes, _, normalizers, _ = rank(LinearScores(coef, intercept, n_threads), X, 1, normalize=True)
    np.testing.assert_allclose(normalizers, np.log(70))
    assert (codes == 130).all()


def test_hashed_scores_and_no_rows():
    rng = np.random.default_rng(0)
    model = HashedScores(rng.standard_normal(256), rng.standard_normal(90), 64 - 8, 2)
    X = rng.standard_normal((4, 5))
    scores = model.block(X, 0, 90)
    codes, best, normalizers, _ = rank(model, X, 3, normalize=True)
    np.testing.assert_array_equal(codes, np.argsort(-scores, axis=1)[:, :3])
    np.testing.assert_allclose(normalizers, logsumexp(scores, axis=1))
    codes, best, normalizers, own = rank(model, X[:0], 3, codes=np.empty(0, dtype=int), normalize=True)
    assert best.shape[0] == codes.shape[0] == len(normalizers) == len(own) == 0


def test_threads_have_no_scores_of_their_own_where_these_are_many(monkeypatch):
    X, coef, intercept = problem(400, "sparse")[:3]
    monkeypatch.setattr(scores_module, "MAX_SCORES", 7 * 50)
    assert len(LinearScores(coef, intercept, n_threads=4).rank(X, 50, None, False).best) == 1
    assert len(LinearScores(coef, intercept, n_threads=4).rank(X, 10, None, False).best) == 4
