"""The ranking kernels on the GPU (or its emulation) against sorting in NumPy and the Cython kernels."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._arrays import thread_arguments
from sparsekit._cython.extreme import _ranking as on_cpu

NOBODY = np.iinfo(np.int64).max


@pytest.fixture
def ranking(cupy):
    from sparsekit.gpu.extreme import _ranking

    return _ranking


class Known:
    """What is known of each row, in main memory."""

    def __init__(self, n, k, dtype, own=None, sums=True):
        self.best = np.full((n, k), -np.inf, dtype=dtype)
        self.codes = np.full((n, k), NOBODY)
        self.high = np.full(n, -np.inf)
        self.total = np.zeros(n if sums else 0)
        self.own = np.empty(0, dtype=np.int64) if own is None else np.asarray(own, dtype=np.int64)
        self.own_score = np.zeros(len(self.own))

    def arrays(self):
        return self.best, self.codes, self.high, self.total, self.own, self.own_score

    def to(self, move):
        out = object.__new__(Known)
        out.__dict__ = {name: move(value) for name, value in vars(self).items()}
        return out


def normalizer(known):
    with np.errstate(divide="ignore", invalid="ignore"):
        return known.high + np.log(known.total)


def check(known, other, scores, own, sums, lo=0, rtol=1e-13):
    """``known`` against a sort of all scores, and against the kernels of the CPU."""
    n, k = known.best.shape
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = order.shape[1]
    np.testing.assert_array_equal(known.codes[:, :found], order + lo)
    np.testing.assert_array_equal(known.best[:, :found], np.take_along_axis(scores, order, 1))
    assert (known.codes[:, found:] == NOBODY).all() and (known.best[:, found:] == -np.inf).all()
    for mine, theirs in zip((known.codes, known.best), (other.codes, other.best)):
        np.testing.assert_array_equal(np.sort(mine, axis=1), np.sort(theirs, axis=1))
    if own is not None:
        np.testing.assert_array_equal(known.own_score, scores[np.arange(n), own])
        np.testing.assert_array_equal(known.own_score, other.own_score)
    if sums:
        np.testing.assert_allclose(normalizer(known), normalizer(other), rtol=rtol, atol=rtol)


def rank(kernels, known, scores, cuts):
    for begin, end in itertools.pairwise(cuts):
        kernels.rank_scores(scores[:, begin:end].copy(), begin, *known.arrays(), *thread_arguments(scores, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "n, m, k", [(9, 7, 0), (3, 70, 1), (5, 300, 5), (2, 1300, 32), (3, 200, 33), (2, 150, 150), (2, 40, 1100)]
)
def test_rank_scores(cupy, ranking, dtype, n, m, k):
    rng = np.random.default_rng(k)
    scores = rng.integers(-40, 40, (n, m)).astype(dtype) / 8  # with many that are equal
    own = rng.integers(m, size=n)
    for sums, wanted in ((True, own), (False, None)):
        known, other = Known(n, k, dtype, wanted, sums).to(cupy.asarray), Known(n, k, dtype, wanted, sums)
        cuts = [0, m // 3, m]
        rank(ranking, known, cupy.asarray(scores), cuts)
        rank(on_cpu, other, scores, cuts)
        check(
            known.to(cupy.asnumpy), other, scores, wanted, sums, rtol=1e-6 if dtype == np.float32 else 1e-13
        )


def test_scores_that_are_not_finite(cupy, ranking):
    scores = np.array([[1.0, np.nan, 3.0], [-np.inf] * 3, [-np.inf, 2.0, -np.inf], [0.0, -0.0, 0.0]])
    scores = np.vstack([scores, [np.nan, -np.inf, np.nan]])  # NaN does not displace a score of -inf
    known, other = Known(5, 2, np.float64).to(cupy.asarray), Known(5, 2, np.float64)
    for kernels, state, data in ((ranking, known, cupy.asarray(scores)), (on_cpu, other, scores)):
        kernels.rank_scores(data, 5, *state.arrays(), *thread_arguments(data, 1))
    found = known.to(cupy.asnumpy)
    np.testing.assert_array_equal(found.codes, [[7, 5], [5, 6], [6, 5], [5, 6], [6, NOBODY]])
    np.testing.assert_array_equal(np.sort(found.codes), np.sort(other.codes))
    expected = [np.nan, -np.inf, 2.0, np.log(3.0), np.nan]
    np.testing.assert_allclose(normalizer(found), expected)
    np.testing.assert_allclose(normalizer(other), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("k", [0, 4, 300])
def test_scores_of_sparse_rows(cupy, ranking, monkeypatch, dtype, order, k):
    from cupyx.scipy.sparse import csr_matrix

    from sparsekit._extreme.estimators import scores as module

    rng = np.random.default_rng(0)
    coef, intercept = rng.standard_normal((300, 12)).astype(dtype), rng.standard_normal(300)
    X = sp.random(7, 12, density=0.4, format="csr", random_state=0)
    codes = rng.integers(300, size=7)
    there = module.LinearScores(cupy.asarray(coef, order=order), cupy.asarray(intercept))
    monkeypatch.setattr(ranking, "DEVICE_BLOCK", 4 * 64)  # some classes at a time
    for kind in (np.float32, np.float64):
        rows = X.astype(kind)
        expected = module.rank(module.LinearScores(coef, intercept), rows, k, codes=codes, normalize=True)
        found = module.rank(there, csr_matrix(rows), k, codes=cupy.asarray(codes), normalize=True)
        rtol = 1e-12 if kind == np.float64 else 1e-5
        for mine, theirs in zip(found, expected):
            np.testing.assert_allclose(mine.get(), theirs, rtol=rtol, atol=rtol)
