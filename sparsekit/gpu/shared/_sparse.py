"""Compressed rows and columns on the GPU: products, selections, transposes; as those in ``_cython``.

No sum of a product depends on the order in which blocks run: cuSPARSE does not guarantee that. X^T u needs X
by columns, which `transpose` makes once.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from ._compile import C_REAL, THREADS, kernel
from ._reduce import WARP

# Most row ends and entries that a warp works at. Their number depends on the data alone, so no sum depends on
# the device.
MAX_PIECE = 512
# pieces that keep a large device busy
N_PIECES = 16384


def multiply(
    indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, V: DeviceArray, out: DeviceArray
) -> None:
    """Rows of ``out`` = A V, summed in their type; pointers are int64.

    A has as many rows as ``indptr`` says; ``V`` and ``out`` may have more than A has columns and rows.
    """
    n, K = indptr.size - 1, out.shape[1]
    if n <= 0 or K == 0:
        return
    length = n + data.size
    piece = min(MAX_PIECE, max(WARP, 1 << (length // N_PIECES).bit_length()))
    pieces, lanes = -(-length // piece), min(WARP, 1 << (K - 1).bit_length())
    grid = -(-pieces * WARP // THREADS), -(-K // lanes)
    # each row of it is written where it is read, by the same division into pieces
    carry = np.empty_like(out, shape=(pieces, K))
    of = {"real": data.dtype, "index": indices.dtype, "defines": {"SUM": C_REAL[out.dtype]}}
    kernel("shared/sparse", "sk_lines_product", **of)(
        grid, THREADS, (indptr, indices, data, V, out, carry, n, K, lanes, piece, pieces)
    )
    if pieces > 1:
        kernel("shared/sparse", "sk_lines_carry", **of)(
            grid, THREADS, (indptr, carry, out, n, K, lanes, piece, pieces)
        )


class Lines:
    """Lines (rows of CSR, columns of CSC) in the type of their values; line i is indptr[i] .. indptr[i + 1].

    ``parts`` are (indptr, indices, data), with pointers of int64.
    """

    def __init__(self, indptr: DeviceArray, indices: DeviceArray, data: DeviceArray) -> None:
        # positions in the data may be beyond int32 where indices are not
        self.indptr, self.indices, self.data = indptr.astype(np.int64, copy=False), indices, data
        self.parts = self.indptr, indices, data

    def with_values(self, data: DeviceArray) -> Self:
        """The same entries with other values."""
        other = copy.copy(self)
        other.data, other.parts = data, (self.indptr, self.indices, data)
        return other

    @property
    def counts(self) -> DeviceArray:
        """Stored entries of each line."""
        return self.indptr[1:] - self.indptr[:-1]

    def product(self, t: DeviceArray, out: DeviceArray) -> None:
        """out[i] = sum_k X[i, k] t[k], float64, over the lines i."""
        multiply(*self.parts, t[:, None], out[:, None])


def transpose(indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, p: int) -> CompressedParts:
    """(cut, rows, values) of the columns of a matrix in CSR; rows ascend within a column."""
    order = np.argsort(indices, kind="stable")
    rows = line_numbers(indptr, len(indices))[order]
    cut = np.searchsorted(indices[order], np.arange(p + 1, dtype=indices.dtype, like=indices))
    return cut.astype(indptr.dtype), rows.astype(indptr.dtype, copy=False), data[order]


def line_numbers(indptr: DeviceArray, nnz: int) -> DeviceArray:
    """The line of each of nnz entries, int32."""
    entries = np.arange(nnz, dtype=indptr.dtype, like=indptr)
    return np.searchsorted(indptr[1:], entries, side="right").astype(np.int32)


def select(
    indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, position: DeviceArray
) -> CompressedParts:
    """The columns with ``position`` >= 0, int32, as columns of these numbers; waits for their size."""
    selected = position[indices]
    kept = np.flatnonzero(selected >= 0)
    return np.searchsorted(kept, indptr), selected[kept], data[kept]


def gather(
    indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, chosen: DeviceArray, size: int
) -> CompressedParts:
    """The ``chosen`` lines, one after the other, which have ``size`` entries."""
    cut = np.zeros(len(chosen) + 1, dtype=np.int64, like=data)
    cut[1:] = np.cumsum(indptr[chosen + 1] - indptr[chosen])
    new = line_numbers(cut, size)
    entries = np.arange(size, like=new) + (indptr[chosen] - cut[:-1])[new]
    return cut, indices[entries].astype(np.int32, copy=False), data[entries]
