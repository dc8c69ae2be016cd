"""Compressed rows times a table. cuSPARSE guarantees no order of summation; spmm.cuh does."""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ._compile import C_REAL, kernel
from ._reduce import WARP

_THREADS = 128
# Row ends and entries of a piece, at least and at most. They are a function of the data alone, so that no sum
# depends on the device.
_LEAST, _MOST = 32, 512
# pieces that keep a large device busy
_PIECES = 16384


def layout(K: int) -> dict[str, int]:
    """How a warp divides ``K`` columns: the macros of spmm.cuh."""
    lanes = min(WARP, 1 << max(K - 1, 0).bit_length())
    return {"SPMM_LANES": lanes, "SPMM_COLUMNS": max(1, min(4, -(-K // WARP)))}


def piece_size(length: int) -> int:
    """Row ends and entries of a piece, a power of two."""
    return min(_MOST, max(_LEAST, 1 << (length // _PIECES).bit_length()))


def multiply(
    indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, V: DeviceArray, out: DeviceArray
) -> None:
    """Rows of ``out`` = A V, summed in their type.

    A has as many rows as ``indptr`` says; ``V`` and ``out`` may have more than A has columns and rows.
    """
    n, K = indptr.size - 1, out.shape[1]
    if n <= 0 or K == 0:
        return
    macros = layout(K)
    length = n + data.size
    piece = piece_size(length)
    pieces = -(-length // piece)
    tiles = -(-K // (macros["SPMM_LANES"] * macros["SPMM_COLUMNS"]))
    # each row of it is written where it is read, by the same division into pieces
    carry = np.empty_like(out, shape=(pieces, K))
    of = {"real": data.dtype, "index": indices.dtype, "defines": macros | {"SUM": C_REAL[out.dtype]}}
    kernel("shared/spmm", "sk_spmm", **of)(
        (-(-pieces * WARP // _THREADS), tiles), _THREADS,
        (indptr, indices, data, V, out, carry, n, K, piece, pieces),
    )  # fmt: skip
    if pieces > 1:
        kernel("shared/spmm", "sk_spmm_carry", **of)(
            (pieces - 1, tiles), _THREADS, (indptr, carry, out, n, K, piece)
        )
