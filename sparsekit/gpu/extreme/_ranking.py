"""Highest scores of rows and the logarithm of the normalizer; as ``sparsekit._cython.extreme._ranking``.

Lists of the highest scores come out sorted, the highest first, where those of the CPU are heaps; what they
hold is the same. Terms of float32 scores in the normalizer are float32, summed in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..._arrays import DEVICE_BLOCK
from ..._typing import DeviceArray
from ..shared._curvature import product32
from ..shared._multinomial import matmat


def rank_scores(
    scores: DeviceArray,
    lo: int,
    best: DeviceArray,
    codes: DeviceArray,
    high: DeviceArray,
    total: DeviceArray,
    own: DeviceArray,
    own_score: DeviceArray,
) -> None:
    """Merge the scores (n, m) of the classes lo, lo + 1, ... into what is known of each row.

    Written: best and codes (n, k), at first -inf and a number beyond all classes. total and high (n,), at
    first 0 and -inf, of log sum exp = high + log(total). own_score (n,), where the class own (n,) is among
    them. total and own may be of size 0: not asked for.
    """
    if not scores.size:
        return
    if own.size:
        rows = np.flatnonzero((own >= lo) & (own < lo + scores.shape[1]))
        own_score[rows] = scores[rows, own[rows] - lo]
    if total.size:
        top = np.maximum(high, scores.max(axis=1))
        origin = np.where(np.isneginf(top), 0.0, top)  # a row of -inf adds exp(-inf) = 0
        terms = np.exp(scores - origin[:, None].astype(scores.dtype)).sum(axis=1, dtype=np.float64)
        total[:] = total * np.exp(high - origin) + terms
        high[:] = top
    if best.shape[1]:
        _insert(scores, lo, best, codes)


def _insert(scores: DeviceArray, lo: int, best: DeviceArray, codes: DeviceArray) -> None:
    """Put the highest scores among the best; of equal ones the smaller codes. NaN is never among them."""
    import cupy

    nobody = np.iinfo(np.int64).max
    here = np.arange(lo, lo + scores.shape[1], dtype=np.int64, like=codes)
    every = cupy.concatenate([np.where(codes == nobody, np.nan, best), scores], axis=1)
    every_code = cupy.concatenate([codes, cupy.broadcast_to(here, scores.shape)], axis=1)
    # NaN is sorted to the end, and of equal scores the earlier class comes first
    order = np.argsort(-every, axis=1, kind="stable")[:, : best.shape[1]]
    found = np.take_along_axis(every, order, 1)
    best[:] = np.where(np.isnan(found), -np.inf, found)
    codes[:] = np.where(np.isnan(found), nobody, np.take_along_axis(every_code, order, 1))


def sparse_scores(X: DeviceArray, coef: DeviceArray, dtype: DTypeLike) -> DeviceArray:
    """X coef^T (n, classes) for X in CSR, with sums in a fixed order, which cuSPARSE does not guarantee.

    The weights of the columns that X has are copied, those of some classes at a time.
    """
    columns = np.unique(X.indices)
    indices = np.searchsorted(columns, X.indices).astype(np.int32)
    rows = X.indptr.astype(np.int64), indices, X.data.astype(dtype, copy=False)
    product = product32 if dtype == np.float32 else matmat
    out = np.empty((X.shape[0], len(coef)), dtype=dtype, like=coef)
    step = max(1, DEVICE_BLOCK // max(1, len(columns)))
    for first in range(0, len(coef), step):
        weights = coef[first : first + step][:, columns].T.astype(dtype, order="C")
        part = np.empty((X.shape[0], weights.shape[1]), dtype=dtype, like=coef)
        product(*rows, weights, part)
        out[:, first : first + step] = part
    return out
