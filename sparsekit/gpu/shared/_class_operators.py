"""Hessian operators of the multinomial model on the GPU; public by way of ``gpu.shared._multinomial``.

Products go over float32 copies of the working features, by rows and back by the columns of a transposed
copy: every sum has one order, none is by atomic additions.
"""

from __future__ import annotations

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from . import _curvature
from ._compile import C_REAL, THREADS, grid1d, kernel
from ._operators import QuadOperator

# classes whose scores stay in the registers of a part of a warp
_NARROW = 32
# entries from which a row would keep the others waiting for its few lanes: at least, and in mean rows
_LONG, _UNEVEN = 512, 16
# kernels at both ends of a product
_ENDS = ("largest", "load", "store")


def class_factors(
    indptr: DeviceArray,
    indices: DeviceArray,
    data: DeviceArray,
    probabilities: tuple[DeviceArray, DeviceArray, DeviceArray],
    s: DeviceArray,
    variables: tuple[DeviceArray, DeviceArray],
    at: DeviceArray,
    intercept: bool,
    start: int,
    U: DeviceArray,
    V: DeviceArray,
) -> None:
    """Rows start .. of U = s^(1/2) x p and V = (s p (1 - p))^(1/2) x, (rows, m) each.

    ``probabilities`` are P, rest and top; ``variables`` are first and the classes (m,). Those of feature f
    are first[f] .. first[f + 1], variable v in column at[v]. A row's entries are of different features.
    """
    (P, rest, top), (first, classes) = probabilities, variables
    n, m = U.shape
    if n == 0 or m == 0:
        return
    macros = {"OUT": C_REAL[U.dtype]}
    kernel("shared/class_operators", "sk_class_factors", real=data.dtype, defines=macros)(
        n, min(128, max(32, -(-m // 32) * 32)),
        (
            indptr, indices, data, P, rest, top, s, first, classes, at, len(first) - 2, bool(intercept),
            P.shape[1], start, m, U, V,
        ),
    )  # fmt: skip


class _ClassOperator(QuadOperator):
    """Base: variables at ``place`` in a (features + 1, classes) table, float32 inside."""

    def __init__(self, P, top, weight, place, diagonal, intercept, ridge, features):
        self.P, self.top, self.weight, self.place = P, top, weight, place
        self.diagonal, self.size = diagonal, len(diagonal)
        self.intercept, self.ridge, self.features = bool(intercept), float(ridge), int(features)
        n, K = P.shape
        self.table = np.zeros((self.features + 1, K), dtype=np.float32, like=P)
        self.sums = np.zeros_like(self.table)
        self.scores = np.empty((n, K), dtype=np.float32, like=P)
        self.blocks = grid1d(self.size)
        self.largest, self.scale = np.empty(self.blocks, like=diagonal), np.empty(1, like=diagonal)
        # looked up once: a product is made hundreds of times
        self._launch = {name: kernel("shared/class_operators", f"sk_class_{name}") for name in _ENDS}

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        """out = (H + ridge diag H) v."""
        self.n_products += 1
        if not self.size:
            return
        m = self.size
        self._launch["largest"](self.blocks, THREADS, (v, m, self.largest))
        self._launch["load"](
            self.blocks, THREADS, (v, m, self.place, self.largest, self.blocks, self.table, self.scale)
        )
        if len(self.scores):
            self._multiply()
        self._launch["store"](
            self.blocks, THREADS, (self.sums, self.place, m, self.scale, v, self.diagonal, self.ridge, out)
        )

    def _multiply(self) -> None:
        """sums = A^T S(A table), S the rows' curvature."""
        raise NotImplementedError(f"{type(self).__name__} multiplies nothing: dense and sparse ones do")

    def _curve(self) -> None:
        """Scores become their curvature."""
        first = self.table[self.features] if self.intercept else None
        _curvature.curve_scores(self.scores, self.P, self.top, self.weight, first, None)


class ClassRowOperator(_ClassOperator):
    """H v over compressed float32 rows and their columns.

    ``P`` (n, K) may have K padded with zeros; ``place`` (m,) is feature * K + class, the intercepts being the
    feature after the last. ``columns`` are the same entries by columns.
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
        place: DeviceArray,
        diagonal: DeviceArray,
        intercept: bool,
        ridge: float,
        columns: tuple[DeviceArray, ...] = (),
    ) -> None:
        super().__init__(P, top, weight, place, diagonal, intercept, ridge, F)
        self.rows = indptr, indices, data
        self._columns: tuple[DeviceArray, ...] = self._with_ones(*columns) if intercept else columns
        n, K = P.shape
        self._group = 0
        longest = int((indptr[1:] - indptr[:-1]).max()) if n else 0
        if K <= _NARROW and longest <= max(_LONG, _UNEVEN * data.size // max(n, 1)):
            self._group = 1 << (K - 1).bit_length()
            macros = {"GROUP": self._group}
            self._launch["rows"] = kernel("shared/class_operators", "sk_class_rows", defines=macros)

    def _with_ones(self, indptr: DeviceArray, rows: DeviceArray, data: DeviceArray) -> CompressedParts:
        """The columns with one more, of ones."""
        n = len(self.P)
        return (
            np.concatenate([indptr, indptr[-1:] + n]),
            np.concatenate([rows, np.arange(n, dtype=np.int32, like=rows)]),
            np.concatenate([data, np.ones_like(data, shape=n)]),
        )

    def _multiply(self) -> None:
        n, K = self.P.shape
        if self._group:
            threads = min(THREADS, -(-n * self._group // 32) * 32)
            self._launch["rows"](
                -(-n * self._group // threads), threads,
                (
                    *self.rows, self.P, self.top, self.weight, self.table, n, self.features, K,
                    self.intercept, self.scores,
                ),
            )  # fmt: skip
        else:
            _curvature.product32(*self.rows, self.table, self.scores)
            self._curve()
        indptr, rows, data = self._columns
        _curvature.product32(indptr, rows, data, self.scores, self.sums)


class ClassDenseOperator(_ClassOperator):
    """H v over a dense float32 copy of the features, by two matrix products."""

    def __init__(
        self,
        A: DeviceArray,
        P: DeviceArray,
        top: DeviceArray,
        weight: DeviceArray,
        place: DeviceArray,
        diagonal: DeviceArray,
        intercept: bool,
        ridge: float,
    ) -> None:
        super().__init__(P, top, weight, place, diagonal, intercept, ridge, A.shape[1])
        self.A = A

    def _multiply(self) -> None:
        import cupy

        F = self.features
        if F:
            cupy.matmul(self.A, self.table[:F], out=self.scores)
        else:
            self.scores[:] = 0.0
        self._curve()
        if F:
            cupy.matmul(self.A.T, self.scores, out=self.sums[:F])
        if self.intercept:
            self.sums[F] = self.scores.sum(axis=0, dtype=np.float64)
