"""How rows of scores, one a class, are shared out, and what products with a transpose need."""

from __future__ import annotations

import numpy as np

from .._typing import CompressedParts, DeviceArray
from . import _sparse

# at the end, because what is imported uses the functions above
from ._compile import THREADS, grid1d

# scores of a row from which a block works on it; fewer are shared by some lanes of a warp
_BLOCK_ROW = 2048


def score_lanes(K: int) -> dict[str, int]:
    """The macro that says how many lanes share a row of ``K`` scores; 0 is a block."""
    return {"SCORE_LANES": 0 if K >= _BLOCK_ROW else min(32, 1 << max(K - 1, 0).bit_length())}


def row_blocks(n: int, lanes: int) -> int:
    """Blocks for ``n`` rows of scores."""
    return grid1d(n * (lanes or THREADS))


def transpose(
    indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, n_columns: int
) -> CompressedParts:
    """Compressed columns of compressed rows: indptr (n_columns + 1,), row numbers in order, values.

    Products with a transpose are products by rows of this copy, whose sums have one order.
    """
    starts, row, values = _sparse.transpose(indptr, indices, data, n_columns)
    return starts.astype(np.int64, copy=False), row.astype(indices.dtype, copy=False), values
