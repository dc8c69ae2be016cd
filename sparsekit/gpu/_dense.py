"""Products and Gram matrices of dense rows on the GPU; the twin of ``sparsekit._cython._dense``.

Matrices are read in their own type, every sum of a product is float64: a pass waits for memory, and the
units for float64 have time. Gram matrices are products of cuBLAS in the type of their blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from .._typing import DeviceArray
from ._compile import THREADS, grid1d, kernel, sm_count
from ._reduce import WARP, block_of

# columns of a thread in a fused Hessian product, and the threads of its largest block
_COLUMNS, _MOST_THREADS = 8, 512
# entries of a block of rows of a Gram matrix
_BLOCK = 2**26


def matvec(A: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    """out = A v; A (n, p) in C order, v and out float64."""
    n, p = A.shape
    if n == 0:
        return
    warps = -(-n // 4)
    threads = block_of(warps * WARP)
    launch = kernel("dense", "sk_dense_matvec", real=A.dtype)
    launch(grid1d(warps * WARP, threads, 16), threads, (A, v, n, p, out))


def rmatvec(A: DeviceArray, u: DeviceArray, out: DeviceArray, square: bool = False) -> None:
    """out[:p] = A^T u, or (A^2)^T u; A (n, p) in C order, u and out float64."""
    n, p = A.shape
    if p == 0:
        return
    width = WARP
    while width < THREADS and width < p:
        width *= 2
    tiles = -(-p // width)
    # enough parts to fill the device, and rows enough in each to be worth their sum
    parts = max(1, min(8 * sm_count() // tiles, -(-n // 64)))
    threads = THREADS if n > 8 else width
    part = np.empty((parts, p), like=out)
    launch = kernel("dense", "sk_dense_columns", real=A.dtype)
    launch((tiles, parts), threads, (A, u, n, p, width, int(square), part))
    _finish(part, 0.0, part, part, out)


def _finish(part: DeviceArray, ridge: float, diagonal: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    blocks, size = part.shape
    threads = block_of(size, 64)
    launch = kernel("dense", "sk_dense_finish", real=np.float32)
    launch(grid1d(size, threads), threads, (part, blocks, size, ridge, diagonal, v, out))


def hessian_fits(m: int) -> bool:
    """Whether a block holds rows of m entries, so that a Hessian product is one pass."""
    return m <= _COLUMNS * _MOST_THREADS


def hessian(
    A: DeviceArray,
    d: DeviceArray,
    v: DeviceArray,
    intercept: bool,
    ridge: float,
    diagonal: DeviceArray,
    out: DeviceArray,
) -> None:
    """out = (A^T diag(d) A + ridge diag) v, or that of [A, 1], for A (n, m) of rows that fit."""
    n, m = A.shape
    threads = _MOST_THREADS if m > _COLUMNS * THREADS else min(THREADS, block_of(m))
    columns = 1
    while columns * threads < m:
        columns *= 2
    blocks = max(1, min(-(-n // 4), (1 if threads > THREADS else 2) * sm_count()))
    part = np.empty((blocks, m + bool(intercept)), like=out)
    launch = kernel("dense", "sk_dense_hessian", real=A.dtype, defines={"SK_COLUMNS": columns})
    launch(blocks, threads, (A, d, v, n, m, int(intercept), part))
    _finish(part, ridge, diagonal, v, out)


def dense_squares(A: DeviceArray, d: DeviceArray, out: DeviceArray) -> None:
    """out[j] = sum_i d_i A[i, j]^2 for A (rows, cols) in C order."""
    rmatvec(A, d, out, square=True)


def dense_gram(
    X: DeviceArray, cols: DeviceArray, d: DeviceArray, G: DeviceArray, block: DeviceArray | None = None
) -> None:
    """G[0] = A^T diag(d) A, A = X[:, cols], or [X[:, cols], 1] where G is larger; X in any order, not copied.

    Products of blocks of rows in the type of ``block`` (that of X without one) are summed in float64.
    """
    n, m = X.shape[0], len(cols)
    size = G.shape[1]
    strides = tuple(stride // X.itemsize for stride in X.strides)
    cols = cols.astype(np.int32, copy=False)
    dtype = X.dtype if block is None else block.dtype

    def fill(first: int, rows: int, part: DeviceArray) -> None:
        source = X if dtype == X.dtype else X[first : first + rows].astype(dtype)
        at = 0 if source is not X else first
        steps = strides if source is X else tuple(s // source.itemsize for s in source.strides)
        threads = block_of(rows * size)
        launch = kernel("dense", "sk_dense_scale", real=dtype)
        weights = d if source is X else d[first : first + rows]
        args = (source, *steps, cols, weights, at, rows, m, size, part)
        launch(grid1d(rows * size, threads, 16), threads, args)

    gram_of_blocks(n, size, dtype, fill, G[0])


def gram_of_blocks(
    n: int, size: int, dtype: DTypeLike, fill: Callable[[int, int, DeviceArray], None], G: DeviceArray
) -> None:
    """G = sum of B^T B over blocks B of rows, which ``fill(first, rows, B)`` writes."""
    G[:] = 0.0
    if size == 0 or n == 0:
        return
    step = min(n, max(1, _BLOCK // size))
    room = np.empty((step, size), dtype=dtype, like=G)
    for first in range(0, n, step):
        B = room[: min(step, n - first)]
        fill(first, len(B), B)
        G += B.T @ B
