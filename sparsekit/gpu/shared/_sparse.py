"""Compressed rows and columns on the GPU: products, selections, transposes; as those in ``_cython``.

Sums over one line are float64 and made by the threads that share it. So no sum depends on the order in which
blocks run. cuSPARSE guarantees neither. X^T u therefore needs X by columns, which `transpose` makes once.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from ._compile import THREADS, grid1d, kernel
from ._reduce import WARP, block_of

# A line with more entries than this for each of its threads is summed by a block.
_MAX_ENTRIES_PER_THREAD = 32
# Shorter lines never are.
_MIN_LONG_LINE = 512


class Lines:
    """Lines (rows of CSR, columns of CSC) in the type of their values; line i is indptr[i] .. indptr[i + 1].

    ``parts`` are (indptr, indices, data), with pointers of int64.
    """

    def __init__(self, indptr: DeviceArray, indices: DeviceArray, data: DeviceArray) -> None:
        # positions in the data may be beyond int32 where indices are not
        self.indptr, self.indices, self.data = indptr.astype(np.int64, copy=False), indices, data
        self.parts = self.indptr, indices, data
        self.width = width_of(data.size, len(indptr) - 1)
        self.limit = max(_MIN_LONG_LINE, _MAX_ENTRIES_PER_THREAD * self.width)
        self.longs = np.flatnonzero(self.counts > self.limit)

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
        n = len(self.indptr) - 1
        if not n:
            return
        n_longs = len(self.longs)
        threads = THREADS if n_longs else block_of(n * self.width)
        kernel("shared/sparse", "sk_lines_product", real=self.data.dtype, index=self.indices.dtype)(
            n_longs + grid1d(n * self.width, threads, 16), threads,
            (*self.parts, t, self.longs, n_longs, self.limit, self.width, n, out),
        )  # fmt: skip


def width_of(nnz: float, n: int) -> int:
    """Threads that share a line: a power of two, two entries each on average."""
    mean, width = nnz / max(n, 1), 1
    while width < WARP and 2 * width < mean:
        width *= 2
    return width


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
