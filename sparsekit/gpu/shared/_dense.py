"""Products and Gram matrices of dense rows on the GPU; the twin of that in ``_cython``.

Matrices are read in their own type, every sum of a product is float64: a pass waits for memory, and the
units for float64 have time. Gram matrices are products of cuBLAS in the type of their blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from ..._typing import DeviceArray
from ._compile import THREADS, kernel, sm_count
from ._reduce import WARP, block_of, over

# columns of a thread in a fused Hessian product, and the threads of its largest block
_COLUMNS, _MOST_THREADS = 8, 512
# entries of a block of rows of a Gram matrix
_BLOCK = 2**26


def matvec(A: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    """out = A v; A (n, p) in C order, v and out float64."""
    n, p = A.shape
    if n == 0:
        return
    over(
        "shared/dense", "sk_dense_matvec", -(-n // 4), (A, v, n, p, out), lanes=WARP, per_sm=16, real=A.dtype
    )


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
    launch = kernel("shared/dense", "sk_dense_columns", real=A.dtype)
    launch((tiles, parts), threads, (A, u, n, p, width, int(square), part))
    _finish(part, 0.0, part, part, out)


def _finish(part: DeviceArray, ridge: float, diagonal: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    blocks, size = part.shape
    args = part, blocks, size, ridge, diagonal, v, out
    over("shared/dense", "sk_dense_finish", size, args, real=np.float32)


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
    launch = kernel("shared/dense", "sk_dense_hessian", real=A.dtype, defines={"SK_COLUMNS": columns})
    launch(blocks, threads, (A, d, v, n, m, int(intercept), part))
    _finish(part, ridge, diagonal, v, out)


def dense_gram(X: DeviceArray, cols: DeviceArray, d: DeviceArray, G: DeviceArray) -> None:
    """G[0] = A^T diag(d) A, A = X[:, cols], or [X[:, cols], 1] where G is larger; X in any order.

    Products of blocks of rows in the type of X are summed in float64.
    """
    m = len(cols)

    def fill(first: int, block: DeviceArray) -> None:
        block[:, :m] = X[first : first + len(block)][:, cols]
        block[:, m:] = 1.0

    gram_of_blocks(d, X.dtype, fill, G[0])


def gram_of_blocks(
    d: DeviceArray, dtype: DTypeLike, fill: Callable[[int, DeviceArray], None], G: DeviceArray
) -> None:
    """G = sum of B^T diag(d) B over blocks B of rows, which ``fill(first, B)`` writes."""
    n, size = len(d), len(G)
    G[:] = 0.0
    if size == 0 or n == 0:
        return
    root, step = np.sqrt(d), min(n, max(1, _BLOCK // size))
    room = np.empty((step, size), dtype=dtype, like=G)
    for first in range(0, n, step):
        B = room[: min(step, n - first)]
        fill(first, B)
        B *= root[first : first + len(B), None]
        G += B.T @ B
