"""Rankings of scores on the GPU (or its emulation) against those of main memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._extreme.estimators import scores as module
from sparsekit.gpu.extreme import _ranking

NOBODY = np.iinfo(np.int64).max


def test_scores_that_are_not_finite(cupy):
    nan, inf = np.nan, np.inf
    rows = [[1.0, nan, 3.0], [-inf] * 3, [-inf, 2.0, -inf], [0.0, -0.0, 0.0], [nan, -inf, nan]]
    best, codes, high = cupy.full((5, 2), -inf), cupy.full((5, 2), NOBODY), cupy.full(5, -inf)
    total, none = cupy.zeros(5), cupy.empty(0)
    _ranking.rank_scores(cupy.asarray(rows), 5, best, codes, high, total, none, none)
    # NaN does not displace a score of -inf, and of equal scores the smaller code is first
    assert codes.get().tolist() == [[7, 5], [5, 6], [6, 5], [5, 6], [6, NOBODY]]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(high.get() + np.log(total.get()), [nan, -inf, 2.0, np.log(3.0), nan])


@pytest.mark.parametrize(
    "dtype, order, k",
    [(np.float16, "C", 4), (np.float32, "F", 300), (np.float64, "C", 0), (np.float64, "F", 33)],
)
def test_rankings(cupy, monkeypatch, dtype, order, k):
    """Dense and sparse rows, some classes at a time, with many scores that are equal."""
    from cupyx.scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    coef, intercept = rng.integers(-8, 8, (300, 12)).astype(dtype) / 8, rng.integers(-8, 8, 300) / 8.0
    X = sp.random(7, 12, density=0.4, format="csr", random_state=0)
    X.data[:] = rng.integers(1, 4, X.nnz)
    codes = rng.integers(300, size=7)
    there = module.LinearScores(cupy.asarray(coef, order=order), cupy.asarray(intercept))
    for kind in (np.float32, np.float64):
        rows = X.astype(kind)
        expected = module.rank(module.LinearScores(coef, intercept), rows, k, codes=codes, normalize=True)
        for given in (csr_matrix(rows), cupy.asarray(rows.toarray())):
            with monkeypatch.context() as patch:
                patch.setattr(_ranking, "DEVICE_BLOCK", 4 * 64)
                patch.setattr(module, "MAX_SCORES", 700)
                found = module.rank(there, given, k, codes=cupy.asarray(codes), normalize=True)
            rtol = 1e-12 if kind == np.float64 else 1e-5
            for mine, theirs in zip(found, expected):
                np.testing.assert_allclose(mine.get(), theirs, rtol=rtol, atol=rtol)
