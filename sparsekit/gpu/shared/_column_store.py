"""Compressed columns of a sparse matrix; as ``_cython.shared._columns`` has them."""

from __future__ import annotations

from ..._typing import DeviceArray
from ._sparse import Lines, product, transpose


class ColumnStore:
    """X (n, p) by columns, in the type of its values: column j is ``cut[j] .. cut[j + 1]``."""

    def __init__(self, n: int, p: int, cut: DeviceArray, row: DeviceArray, val: DeviceArray) -> None:
        self.n, self.p, self.cut, self.row, self.val = int(n), int(p), cut, row, val
        self.height, self.blocks = self.n, 1
        self.lines = Lines(cut, val.size)

    @property
    def counts(self) -> DeviceArray:
        """Stored entries of each column, (p,)."""
        return self.cut[1:] - self.cut[:-1]

    def rmatvec(self, u: DeviceArray, out: DeviceArray) -> None:
        """out = X^T u."""
        product(self.cut, self.row, self.val, u, out, self.lines)


def columns_from_csr(indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, p: int) -> ColumnStore:
    """The store of rows (indptr, indices, data)."""
    return ColumnStore(len(indptr) - 1, p, *transpose(indptr, indices, data, p))
