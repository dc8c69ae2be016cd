"""Compressed columns of a sparse matrix, and products with some of them; as ``_cython._columns`` has them."""

from __future__ import annotations

from .._typing import DeviceArray
from ._compile import kernel
from ._sparse import Lines, product, share, transpose


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

    def products(
        self, cols: DeviceArray, position: DeviceArray, t: DeviceArray, sums: DeviceArray, intercept: bool,
        square: bool, ridge: float, diagonal: DeviceArray, v: DeviceArray, out: DeviceArray,
    ) -> None:  # fmt: skip
        """out = A^T t + ridge diagonal v, A = X[:, cols] or [X[:, cols], 1]; ``sums`` add up to sum(t)."""
        n_long, blocks, threads = share(self.lines, len(cols))
        launch = kernel("columns", "sk_columns_product", real=self.val.dtype, index=self.row.dtype)
        launch(
            n_long + bool(intercept) + blocks, threads,
            (self.cut, self.row, self.val, cols, position, self.lines.longs, n_long, self.lines.limit,
             self.lines.width, t, sums, sums.size, len(cols), int(intercept), int(square), float(ridge),
             diagonal, v, out),
        )  # fmt: skip


def columns_from_csr(indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, p: int) -> ColumnStore:
    """The store of rows (indptr, indices, data)."""
    return ColumnStore(len(indptr) - 1, p, *transpose(indptr, indices, data, p))
