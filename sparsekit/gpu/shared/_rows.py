"""Model copies of chosen columns in short rows on the GPU, and the Hessian operators that live on them.

The twin of that in ``_cython``. A Hessian product is a pass over model rows, t = d * (A v), and one
over columns, A^T t, so that no sum needs atomics.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._typing import DeviceArray
from ._column_store import ColumnStore, columns_from_csr
from ._dense import gram_of_blocks, hessian, hessian_fits, matvec, rmatvec
from ._operators import QuadOperator
from ._reduce import reduced
from ._sparse import SQUARE, line_numbers, product, select_count, select_fill, width_of


class ModelRows:
    """X[:, cols] as rows with float32 values; the buffers are reused by ``fill``."""

    indptr: DeviceArray
    col: DeviceArray
    val: DeviceArray

    def __init__(self, n: int, capacity: int) -> None:
        self.n, self.capacity, self.m = int(n), int(capacity), 0
        self._has_room = False
        self._nnz: float | None = None
        self._width: int | None = None

    def fill(
        self, indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, position: DeviceArray, m: int
    ) -> None:
        """Copy the columns with ``position`` >= 0; m of them."""
        if not self._has_room:
            # room for all of X: then the size of a selection need not be waited for
            self.col = np.empty(self.capacity, dtype=np.int32, like=data)
            self.val = np.empty(self.capacity, dtype=np.float32, like=data)
            self._has_room = True
        pointers = select_count(indptr, indices, position)
        select_fill(indptr, indices, data, position, pointers, self.col, self.val)
        self.indptr, self.m, self._nnz, self._width = pointers, int(m), None, None

    @property
    def nnz(self) -> float:
        """Entries; the first look after ``fill`` waits for the device."""
        if self._nnz is None:
            self._nnz = float(self.indptr[-1])
        return self._nnz

    def forward(self, d: DeviceArray, v: DeviceArray, intercept: bool, t: DeviceArray) -> DeviceArray:
        """t = d * (A v); returns parts whose sum is that of t."""
        if self._width is None:
            self._width = width_of(self.nnz, self.n)
        args = self.indptr, self.col, self.val, d, v, self.n, self.m, bool(intercept), self._width, t
        return reduced(
            "shared/sparse", "sk_model_rows_product", self.n, args, t,
            lanes=self._width, per_sm=16, real=np.float32, index=np.int32,
        )  # fmt: skip

    def gram(self, d: DeviceArray, intercept: bool, work: DeviceArray) -> None:
        """work[0] = A^T diag(d) A, A = X or [X, 1]; products of blocks of rows by cuBLAS."""

        def fill(first: int, block: DeviceArray) -> None:
            cut = self.indptr[first : first + len(block) + 1]
            start, stop = int(cut[0]), int(cut[-1])
            block[:] = 0.0
            rows = line_numbers(cut - start, stop - start)
            block[rows, self.col[start:stop]] = self.val[start:stop]
            if intercept:
                block[:, self.m] = 1.0

        gram_of_blocks(d, work.dtype, fill, work[0])


class RowOperator(QuadOperator):
    """H = A^T diag(d) A by a pass over model rows and one over columns a product.

    ``cols`` of ``store`` are the columns of ``rows``; without them the rows are turned.
    """

    def __init__(
        self, rows: ModelRows, d: DeviceArray, intercept: bool, ridge: float,
        store: ColumnStore | None = None, cols: DeviceArray | None = None,
        position: DeviceArray | None = None,
    ) -> None:  # fmt: skip
        self.rows, self.d, self.intercept, self.ridge = rows, d, bool(intercept), float(ridge)
        every = np.arange(rows.m, dtype=np.int32, like=d)
        if store is None or cols is None:
            nnz = int(rows.nnz)
            store = columns_from_csr(rows.indptr, rows.col[:nnz].astype(np.int64), rows.val[:nnz], rows.m)
            cols = position = every
        if position is None:
            position = np.full_like(d, -1, dtype=np.int32, shape=store.p)
            position[cols] = every
        self.size = rows.m + self.intercept
        chosen = cols.astype(np.int32, copy=False), position
        self._by_columns = partial(product, store.cut, store.row, store.val, lines=store.lines, chosen=chosen)
        self.diagonal = np.empty(self.size, like=d)
        self._by_columns(d, self.diagonal, mode=SQUARE, sums=d if self.intercept else None)
        self._t = np.empty(rows.n, like=d)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        if not self.rows.n:
            out[:] = 0.0
            return
        sums = self.rows.forward(self.d, v, self.intercept, self._t)
        sums = sums if self.intercept else None
        self._by_columns(self._t, out, sums=sums, ridge=self.ridge, diagonal=self.diagonal, v=v)


class DenseOperator(QuadOperator):
    """H = A^T diag(d) A over dense columns in C order, float32 or float64: one pass if a block holds a row.

    Sums are float64.
    """

    reads = "dense"

    def __init__(
        self, A: DeviceArray, d: DeviceArray, diagonal: DeviceArray, intercept: bool, ridge: float
    ) -> None:
        self.A, self.d, self.diagonal = A, d, diagonal
        self.intercept, self.ridge, self.size = bool(intercept), float(ridge), len(diagonal)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        n, m = self.A.shape
        if n == 0:
            out[:] = 0.0
        elif hessian_fits(m):
            hessian(self.A, self.d, v, self.intercept, self.ridge, self.diagonal, out)
        else:
            t = np.empty(n, like=out)
            matvec(self.A, v, t)
            if self.intercept:
                t += v[m]
            t *= self.d
            rmatvec(self.A, t, out)
            if self.intercept:
                out[m] = t.sum()
            out += self.ridge * self.diagonal * v
