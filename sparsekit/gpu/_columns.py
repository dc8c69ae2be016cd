"""A column-wise copy of sparse X on the GPU, and the Hessian operator of any choice of its columns.

The twin of ``sparsekit._cython._columns``. The store serves X^T u of a design and every model of it: a model
gathers its rows anew, its columns it reads from here.
"""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray
from ._column_store import ColumnStore, columns_from_csr
from ._operators import QuadOperator
from ._rows import ModelRows, RowOperator
from ._sparse import gather_columns

__all__ = ["ColumnOperator", "columns_from_csr"]


class ColumnOperator(RowOperator):
    """H = A^T diag(d) A, A = X[:, cols] or [X[:, cols], 1], of columns of a store.

    Without ``rows``, an operator of the same columns, these are turned into rows first.
    """

    reads = "columns"
    n_sweeps = 0

    def __init__(
        self, store: ColumnStore, cols: DeviceArray, d: DeviceArray, intercept: bool, ridge: float,
        rows: QuadOperator | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(rows, RowOperator):
            _, row, new, val = gather_columns(store.cut, store.row, store.val, cols)
            order = np.argsort(row)
            indptr = np.zeros(store.n + 1, dtype=np.int64, like=d)
            if len(order):
                indptr[1:] = np.cumsum(np.bincount(row, minlength=store.n))
            made = ModelRows(store.n, val.size)
            made.take(indptr, new[order], val[order].astype(np.float32, copy=False), len(cols))
        else:
            made = rows.rows
        super().__init__(made, d, intercept, ridge, store, cols)
