"""Kernels that look at all scores of a row once: the highest ones, and the logarithm of the normaliser.

Lists of the highest scores come out sorted, the highest first, where those of the CPU are heaps; what they
hold is the same. Terms of float32 scores in the normaliser are float32, summed in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from .._typing import DeviceArray
from ._compile import THREADS, kernel

TILE = 64

# scores that a warp keeps in its registers, one a lane; that it keeps in shared memory
_FEW, _MANY = 32, 1024
# scores of a row for each of the warps that share it
_WARP_WORK = 512
_SHARED = 48 * 1024
_TABLE = 2**26  # weights of a table of some classes
_WIDEST = 2**20  # classes of it: a grid's second dimension has no room for many more tiles


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
    """Scores (n, m) of the classes lo, lo + 1, ... into what is known of each row.

    Written: best and codes (n, k), to begin with -inf and a number beyond all classes; total and high (n,),
    to begin with 0 and -inf, of log sum exp = high + log(total); own_score (n,), where the class own (n,) is
    among them. total and own may be of size 0: not asked for.
    """
    n, m = scores.shape
    k = best.shape[1]
    if n == 0 or m == 0:
        return
    if k > _MANY:
        _sort(scores, lo, best, codes)
        k = 0
    share, rows, shared = _shape(n, m, k, scores.dtype)
    launch = kernel("ranking", _name("sk_rank_scores", k), real=scores.dtype)
    launch(
        -(-n // rows), rows * share * 32,
        (scores, n, m, lo, k, best, codes, high, total, total.size > 0, own, own_score, own.size > 0, share),
        shared=shared,
    )  # fmt: skip


def rank_sparse(
    data: DeviceArray,
    indices: DeviceArray,
    indptr: DeviceArray,
    coef: DeviceArray,
    columns: DeviceArray,
    bias: DeviceArray,
    first: int,
    best: DeviceArray,
    codes: DeviceArray,
    high: DeviceArray,
    total: DeviceArray,
    own: DeviceArray,
    own_score: DeviceArray,
) -> None:
    """The same for CSR rows, whose column j is column columns[j] of coef (n_classes, d).

    bias (n_classes,); class k is number first + k. The classes are cut into len(best) ranges, each with
    results of its own: best and codes (parts, n, k), high (parts, n), total (parts, n) or (parts, 0);
    own_score (n,) is for all. Parts are what keeps a GPU busy where there are few rows.
    """
    parts, n, k = best.shape
    n_classes, real = coef.shape[0], data.dtype
    if n == 0 or n_classes == 0:
        return
    size = coef.dtype.itemsize
    direct = coef.dtype == real and coef.strides[0] == size  # the weights are a table already
    width = n_classes if direct else min(_WIDEST, max(TILE, _TABLE // max(1, len(columns)) // TILE * TILE))
    share, rows, shared = _shape(n, max(1, min(width, n_classes) // parts), min(k, _MANY), real)
    for begin in range(0, n_classes, width):
        end = min(n_classes, begin + width)
        if direct:
            table, stride, at = coef, coef.strides[1] // size, columns
        else:
            table, stride, at = _table(coef[begin:end], columns, real), end - begin, np.arange(
                len(columns), dtype=np.int64, like=columns
            )  # fmt: skip
        listed = k
        if k > _MANY:
            listed = 0
            _sort_products(data, indices, indptr, n, table, stride, at, bias, begin, end, first, best, codes)
        kernel("ranking", _name("sk_rank_sparse", listed), real=real)(
            (-(-n // rows), parts), rows * share * 32,
            (
                data, indices, indptr, n, table, stride, at, bias, n_classes, begin, end, first, listed, best,
                codes, high, total, total.size > 0, own, own_score, own.size > 0, share,
            ),
            shared=shared,
        )  # fmt: skip


def _name(kind: str, k: int) -> str:
    return f"{kind}_{'few' if k <= _FEW else 'many'}"


def _shape(n: int, m: int, k: int, real: DTypeLike) -> tuple[int, int, int]:
    """Warps a row, rows a block, and bytes of shared memory, for n rows of m scores."""
    k = 0 if k > _MANY else k
    bytes_of_warp = 16 + k * (8 + np.dtype(real).itemsize)
    share = 1
    while k <= _FEW and share < THREADS // 32 and share * _WARP_WORK < m:
        share *= 2
    most = min(THREADS // 32, _SHARED // bytes_of_warp)
    rows = max(1, min(most // share, n))
    return share, rows, rows * share * bytes_of_warp


def _table(coef: DeviceArray, columns: DeviceArray, real: DTypeLike) -> DeviceArray:
    """Weights (columns, classes), contiguous."""
    m, d = coef.shape[0], len(columns)
    out = np.empty((d, m), dtype=real, like=coef)
    if d == 0:
        return out
    size = coef.dtype.itemsize
    weight = "float" if size == 4 else "double"
    launch = kernel("ranking", "sk_rank_table", real=real, defines={"WEIGHT": weight})
    launch(
        (-(-d // 32), -(-m // 32)), 256,
        (coef, coef.strides[0] // size, coef.strides[1] // size, columns, d, m, out),
    )  # fmt: skip
    return out


def _sort(scores: DeviceArray, lo: int, best: DeviceArray, codes: DeviceArray) -> None:
    """The highest scores by sorting them all, where so many are wanted that no list of a warp holds them."""
    n, m = scores.shape
    k = best.shape[1]
    every = np.concatenate([best, scores], axis=1)
    numbers = np.arange(lo, lo + m, dtype=np.int64, like=scores)
    every_code = np.concatenate([codes, np.broadcast_to(numbers, (n, m))], axis=1)
    nobody = np.isnan(every)
    every[nobody] = -np.inf
    every_code[nobody] = np.iinfo(np.int64).max
    # by falling score, of equal ones by code: two sorts that keep the order of what is equal
    order = np.argsort(every_code, axis=1, kind="stable")
    every, every_code = np.take_along_axis(every, order, 1), np.take_along_axis(every_code, order, 1)
    order = np.argsort(-every, axis=1, kind="stable")[:, :k]
    best[:] = np.take_along_axis(every, order, 1)
    codes[:] = np.take_along_axis(every_code, order, 1)


def _sort_products(
    data: DeviceArray,
    indices: DeviceArray,
    indptr: DeviceArray,
    n: int,
    table: DeviceArray,
    stride: int,
    at: DeviceArray,
    bias: DeviceArray,
    begin: int,
    end: int,
    first: int,
    best: DeviceArray,
    codes: DeviceArray,
) -> None:
    parts, n_classes = len(best), len(bias)
    scores = np.empty((n, end - begin), dtype=data.dtype, like=data)
    warps = min(n, THREADS // 32)
    kernel("ranking", "sk_rank_products", real=data.dtype)(
        -(-n // warps), 32 * warps,
        (data, indices, indptr, n, table, stride, at, bias[begin:end], end - begin, scores),
    )  # fmt: skip
    for part in range(parts):
        lo = max(begin, n_classes * part // parts // TILE * TILE)
        hi = min(end, n_classes if part == parts - 1 else n_classes * (part + 1) // parts // TILE * TILE)
        if lo < hi:
            _sort(scores[:, lo - begin : hi - begin], first + lo, best[part], codes[part])
