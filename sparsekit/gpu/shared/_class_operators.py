"""Hessian operators of the multinomial model on the GPU; as those in ``_cython``.

Products go over float32 copies of the working features. Sparse ones are read by rows, and back by the columns
of a transposed copy: every sum has one order. Dense ones are products of cuBLAS.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from ._curvature import curve_scores
from ._operators import QuadOperator
from ._sparse import multiply


class _ClassOperator(QuadOperator):
    """Base: variables at ``index`` in a (features + 1, classes) table, float32 inside.

    Without an index it multiplies tables of all variables only.
    """

    def __init__(self, forward, back, features, P, top, weight, index, diagonal, intercept, ridge):
        self._forward, self._back = forward, back  # A x and A^T x into their second arguments
        self.P, self.top, self.weight, self.index = P, top, weight, index
        self.diagonal, self.size = diagonal, len(index)
        self.intercept, self.ridge, self.features = bool(intercept), float(ridge), int(features)
        self.shape = self.features + self.intercept, P.shape[1]
        self.table = np.zeros(self.shape, dtype=np.float32, like=P)
        self.scores = np.empty_like(P, dtype=np.float32)

    def multiply(self, V: DeviceArray, out: DeviceArray) -> DeviceArray:
        """out = H V for tables of all variables, without the ridge."""
        F = self.features
        self._forward(V[:F], self.scores)
        curve_scores(self.scores, self.P, self.top, self.weight, V[F] if self.intercept else None)
        self._back(self.scores, out[:F])
        if self.intercept:
            out[F] = self.scores.sum(axis=0, dtype=np.float64)
        return out

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        """out = (H + ridge diag H) v."""
        self.n_products += 1
        if not self.size:
            return
        # float32 has few digits for very small steps
        scale = np.abs(v).max()
        scale = np.where(scale > 0.0, scale, 1.0)
        self.table.reshape(-1)[self.index] = v / scale
        sums = self.multiply(self.table, np.empty_like(self.table))
        out[:] = sums.reshape(-1)[self.index] * scale + self.ridge * self.diagonal * v


class ClassRowOperator(_ClassOperator):
    """H v over compressed float32 rows, and the same entries by columns.

    ``index`` (m,) is feature * K + class, the intercepts being the feature after the last.
    """

    def __init__(self, rows: CompressedParts, columns: CompressedParts, F: int, *model: Any) -> None:
        super().__init__(partial(multiply, *rows), partial(multiply, *columns), F, *model)


class ClassDenseOperator(_ClassOperator):
    """H v over a dense float32 copy of the features, by two matrix products."""

    def __init__(self, A: DeviceArray, *model: Any) -> None:
        super().__init__(partial(_multiply_dense, A), partial(_multiply_dense, A.T), A.shape[1], *model)


def _multiply_dense(A: DeviceArray, x: DeviceArray, out: DeviceArray) -> None:
    out[:] = A @ x
