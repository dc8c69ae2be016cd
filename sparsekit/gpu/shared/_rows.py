"""Hessian operators of chosen columns on the GPU; as in ``_cython``.

A Hessian product is a pass over rows, t = d * (A v), and one over columns, A^T t, so that no sum needs
atomics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from ..._typing import DeviceArray
from ._dense import matvec, rmatvec
from ._operators import QuadOperator
from ._sparse import Lines

# out = A x, in a buffer that the caller owns
Product: TypeAlias = Callable[[DeviceArray, DeviceArray], None]


class _TwoPasses(QuadOperator):
    """H = A^T diag(d) A, or that of [A, 1], by products with A and its transpose; ``m`` columns."""

    def __init__(
        self, forward: Product, back: Product, d: DeviceArray, intercept: bool, ridge: float, m: int
    ) -> None:
        self.d, self.intercept, self.ridge = d, bool(intercept), float(ridge)
        self.m, self.size = m, m + self.intercept
        self._forward, self._back, self._t = forward, back, np.empty_like(d)

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


class RowOperator(_TwoPasses):
    """H by the rows and the columns of A, with float32 values."""

    def __init__(self, rows: Lines, columns: Lines, d: DeviceArray, intercept: bool, ridge: float) -> None:
        by_rows, by_columns = (
            lines.with_values(lines.data.astype(np.float32, copy=False)) for lines in (rows, columns)
        )
        m = len(columns.indptr) - 1
        super().__init__(by_rows.product, by_columns.product, d, intercept, ridge, m)
        self.diagonal = np.empty(self.size, like=d)
        by_columns.with_values(np.square(by_columns.data.astype(np.float64))).product(d, self.diagonal)
        if self.intercept:
            self.diagonal[m] = d.sum()


class DenseOperator(_TwoPasses):
    """H over dense columns in C order, float32 or float64; sums are float64."""

    reads = "dense"

    def __init__(
        self, A: DeviceArray, d: DeviceArray, diagonal: DeviceArray, intercept: bool, ridge: float
    ) -> None:
        super().__init__(partial(matvec, A), partial(rmatvec, A), d, intercept, ridge, A.shape[1])
        self.diagonal = diagonal
