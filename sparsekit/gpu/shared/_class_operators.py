"""Hessian operators of the multinomial model on the GPU; public by way of ``gpu.shared._multinomial``.

Products go over float32 copies of the working features, by rows and back by the columns of a transposed copy.
Every sum has one order, none is by atomic additions.
"""

from __future__ import annotations

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from ._curvature import curve_scores
from ._operators import QuadOperator
from ._sparse import multiply, transpose


class _ClassOperator(QuadOperator):
    """Base: variables at ``index`` in a (features + 1, classes) table, float32 inside."""

    def __init__(self, P, top, weight, index, diagonal, intercept, ridge, features):
        self.P, self.top, self.weight, self.index = P, top, weight, index
        self.diagonal, self.size = diagonal, len(diagonal)
        self.intercept, self.ridge, self.features = bool(intercept), float(ridge), int(features)
        self.table = np.zeros((self.features + 1, P.shape[1]), dtype=np.float32, like=P)
        self.sums = np.zeros_like(self.table)
        self.scores = np.empty_like(P, dtype=np.float32)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        """out = (H + ridge diag H) v."""
        self.n_products += 1
        if not self.size:
            return
        # float32 has few digits for very small steps
        scale = np.abs(v).max()
        scale = np.where(scale > 0.0, scale, 1.0)
        self.table.reshape(-1)[self.index] = v / scale
        F = self.features
        if len(self.scores):
            self._scores(self.table[:F])
            first = self.table[F] if self.intercept else None
            curve_scores(self.scores, self.P, self.top, self.weight, first, None)
            self._sums(self.sums[:F])
            if self.intercept:
                self.sums[F] = self.scores.sum(axis=0, dtype=np.float64)
        out[:] = self.sums.reshape(-1)[self.index] * scale + self.ridge * self.diagonal * v

    def _scores(self, table: DeviceArray) -> None:
        """scores = A table."""
        raise NotImplementedError(f"{type(self).__name__} multiplies nothing: dense and sparse ones do")

    def _sums(self, out: DeviceArray) -> None:
        """out = A^T scores."""
        raise NotImplementedError(f"{type(self).__name__} multiplies nothing: dense and sparse ones do")


class ClassRowOperator(_ClassOperator):
    """H v over compressed float32 rows and their columns.

    ``P`` (n, K) may have K padded with zeros; ``index`` (m,) is feature * K + class, the intercepts being the
    feature after the last. ``columns`` are the same entries by columns; without them the rows are turned.
    """

    def __init__(
        self,
        indptr: DeviceArray,
        indices: DeviceArray,
        data: DeviceArray,
        F: int,
        P: DeviceArray,
        top: DeviceArray,
        weight: DeviceArray,
        index: DeviceArray,
        diagonal: DeviceArray,
        intercept: bool,
        ridge: float,
        columns: CompressedParts | None = None,
    ) -> None:
        super().__init__(P, top, weight, index, diagonal, intercept, ridge, F)
        self.rows = indptr, indices, data
        self.columns = columns or transpose(indptr, indices, data, F)

    def _scores(self, table: DeviceArray) -> None:
        multiply(*self.rows, table, self.scores)

    def _sums(self, out: DeviceArray) -> None:
        multiply(*self.columns, self.scores, out)


class ClassDenseOperator(_ClassOperator):
    """H v over a dense float32 copy of the features, by two matrix products."""

    def __init__(
        self,
        A: DeviceArray,
        P: DeviceArray,
        top: DeviceArray,
        weight: DeviceArray,
        index: DeviceArray,
        diagonal: DeviceArray,
        intercept: bool,
        ridge: float,
    ) -> None:
        super().__init__(P, top, weight, index, diagonal, intercept, ridge, A.shape[1])
        self.A = A

    def _scores(self, table: DeviceArray) -> None:
        self.scores[:] = self.A @ table

    def _sums(self, out: DeviceArray) -> None:
        out[:] = self.A.T @ self.scores
