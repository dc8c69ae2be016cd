"""Products of dense rows on the GPU; as those in ``_cython``.

Matrices are read in their own type, every sum is float64: cuBLAS would sum float32 in float32.
"""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ._compile import sums

# parts of the rows that are summed at once: sufficient blocks for a large device, whatever the number of
# columns
N_PARTS = 256


def matvec(A: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    """out = A v; A (n, p) in C order, v and out float64."""
    sums()(A, v[: A.shape[1]], out, axis=1)


def rmatvec(A: DeviceArray, u: DeviceArray, out: DeviceArray, square: bool = False) -> None:
    """out[:p] = A^T u, or (A^2)^T u; A (n, p) in C order, u and out float64."""
    n, p = A.shape
    reduce = sums(square)
    height = max(1, n // N_PARTS)
    cut, u = n // height * height, u[:, None]
    parts = reduce(A[:cut].reshape(-1, height, p), u[:cut].reshape(-1, height, 1), axis=1)
    np.add(parts.sum(axis=0), reduce(A[cut:], u[cut:], axis=0), out=out[:p])
