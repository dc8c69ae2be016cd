"""Model copies of chosen columns on the GPU, and the Hessian operators that live on them; as in ``_cython``.

A Hessian product is a pass over model rows, t = d * (A v), and one over columns, A^T t, so that no sum needs
atomics.
"""

from __future__ import annotations

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from ._dense import gram_of_blocks, matvec, rmatvec
from ._operators import QuadOperator
from ._sparse import Lines, line_numbers, select, transpose


class ModelRows:
    """A = X[:, cols] as rows with float32 values."""

    indptr: DeviceArray
    col: DeviceArray
    val: DeviceArray

    def __init__(self, n: int) -> None:
        self.n, self.m = int(n), 0

    def fill(
        self, indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, position: DeviceArray, m: int
    ) -> None:
        """Copy the columns with ``position`` >= 0; m of them."""
        self.indptr, self.col, val = select(indptr, indices, data, position)
        self.val, self.m = val.astype(np.float32, copy=False), int(m)

    @property
    def nnz(self) -> int:
        """Entries."""
        return int(self.val.size)

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


class _TwoPasses(QuadOperator):
    """H = A^T diag(d) A, or that of [A, 1], by products with A and its transpose."""

    def __init__(self, d: DeviceArray, intercept: bool, ridge: float, m: int) -> None:
        self.d, self.intercept, self.ridge = d, bool(intercept), float(ridge)
        self.m, self.size = m, m + self.intercept
        self._t = np.empty_like(d)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        t = self._t
        self._forward(v, t)
        if self.intercept:
            t += v[self.m]
        t *= self.d
        self._back(t, out)
        if self.intercept:
            out[self.m] = t.sum()
        out += self.ridge * self.diagonal * v

    def _forward(self, v: DeviceArray, t: DeviceArray) -> None:
        """t = A v."""
        raise NotImplementedError(f"{type(self).__name__} multiplies nothing: dense and sparse ones do")

    def _back(self, t: DeviceArray, out: DeviceArray) -> None:
        """out[:m] = A^T t."""
        raise NotImplementedError(f"{type(self).__name__} multiplies nothing: dense and sparse ones do")


class RowOperator(_TwoPasses):
    """H by model rows and their columns, which ``columns`` are; without them the rows are turned."""

    def __init__(
        self,
        rows: ModelRows,
        d: DeviceArray,
        intercept: bool,
        ridge: float,
        columns: CompressedParts | None = None,
    ) -> None:
        super().__init__(d, intercept, ridge, rows.m)
        cut, row, val = columns or transpose(rows.indptr, rows.col, rows.val, rows.m)
        self._rows = Lines(rows.indptr, rows.col, rows.val)
        self._columns = Lines(cut, row, val.astype(np.float32, copy=False))
        self.diagonal = np.empty(self.size, like=d)
        self._columns.with_values(np.square(val)).product(d, self.diagonal)
        if self.intercept:
            self.diagonal[self.m] = d.sum()

    def _forward(self, v: DeviceArray, t: DeviceArray) -> None:
        self._rows.product(v, t)

    def _back(self, t: DeviceArray, out: DeviceArray) -> None:
        self._columns.product(t, out)


class DenseOperator(_TwoPasses):
    """H over dense columns in C order, float32 or float64; sums are float64."""

    reads = "dense"

    def __init__(
        self, A: DeviceArray, d: DeviceArray, diagonal: DeviceArray, intercept: bool, ridge: float
    ) -> None:
        super().__init__(d, intercept, ridge, A.shape[1])
        self.A, self.diagonal = A, diagonal

    def _forward(self, v: DeviceArray, t: DeviceArray) -> None:
        matvec(self.A, v, t)

    def _back(self, t: DeviceArray, out: DeviceArray) -> None:
        rmatvec(self.A, t, out)
