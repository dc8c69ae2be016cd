"""Products and Gram matrices of dense rows on the GPU; as those in ``_cython``.

Matrices are read in their own type, every sum of a product is float64: cuBLAS would sum float32 in float32.
Gram matrices are products of cuBLAS in the type of their blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from ..._arrays import DEVICE_BLOCK
from ..._typing import DeviceArray
from ._compile import sums

# parts of the rows that are summed at once: sufficient blocks for a large device, whatever the number of
# columns
_PARTS = 256


def matvec(A: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    """out = A v; A (n, p) in C order, v and out float64."""
    sums()(A, v[: A.shape[1]], out, axis=1)


def rmatvec(A: DeviceArray, u: DeviceArray, out: DeviceArray, square: bool = False) -> None:
    """out[:p] = A^T u, or (A^2)^T u; A (n, p) in C order, u and out float64."""
    n, p = A.shape
    reduce = sums(square)
    height = max(1, n // _PARTS)
    cut, u = n // height * height, u[:, None]
    parts = reduce(A[:cut].reshape(-1, height, p), u[:cut].reshape(-1, height, 1), axis=1)
    np.add(parts.sum(axis=0), reduce(A[cut:], u[cut:], axis=0), out=out[:p])


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
    root, step = np.sqrt(d), min(n, max(1, DEVICE_BLOCK // size))
    work = np.empty((step, size), dtype=dtype, like=G)
    for first in range(0, n, step):
        B = work[: min(step, n - first)]
        fill(first, B)
        B *= root[first : first + len(B), None]
        G += B.T @ B
