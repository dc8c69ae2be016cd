"""The compact L-BFGS matrix as an operator of the quadratic model on the GPU; the twin of ``_cython._lbfgs``.

W lives on the device. The small system of a solve, of twice the pairs, is solved in main memory.
"""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray
from ._operators import QuadOperator


class LBFGSOperator(QuadOperator):
    """theta ((1 + ridge) I - W M W^T) of m variables, c = 2 pairs: W (m, c), M^-1 (c, c) in main memory."""

    direct = always_direct = True

    def __init__(self, W: DeviceArray, middle: np.ndarray, theta: float, ridge: float) -> None:
        self.size, self.c = W.shape
        if middle.shape != (self.c, self.c):
            raise ValueError(f"middle must have shape ({self.c}, {self.c})")
        self.W, self.middle = W, middle
        self.theta, self.ridge, self.shift = float(theta), float(ridge), 1.0 + float(ridge)
        self.diagonal = np.full_like(W, self.theta * self.shift, shape=self.size)
        # made once for all products; LinAlgError where the pairs are useless
        self._inverse = np.linalg.inv(middle) if self.c else middle

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        np.multiply(v, self.theta * self.shift, out=out)
        if self.c and self.size:
            short = self._inverse @ (v @ self.W).get()
            out -= self.theta * (self.W @ self._upload(short))

    def _upload(self, short: np.ndarray) -> DeviceArray:
        import cupy

        return cupy.asarray(short)

    def _solve(self, W: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        # Sherman-Morrison-Woodbury with the rows of W that are free, the others zero
        t = self.shift
        if not self.c:
            return rhs / (self.theta * t)
        reduced = self.middle - (W.T @ W).get() / t
        try:
            short = np.linalg.solve(reduced, (rhs @ W).get())
        except np.linalg.LinAlgError:
            return None
        found = (rhs / t + (W @ self._upload(short)) / t**2) / self.theta
        # the right side once more: whether rounding left the matrix positive definite
        along = float(rhs @ found)
        return found if along > 0.0 or not bool(rhs.any()) else None

    def solve_face(self, kind: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        free = (kind == 1) | (kind == 2)
        return self._solve(self.W * free[:, None], rhs)

    def solve(self, rhs: DeviceArray, free: DeviceArray | None = None) -> DeviceArray:
        """Solve B[free, free] x = rhs, (f,); all variables where ``free`` is None.

        Raises LinAlgError where rounding has spoilt the positive definite matrix.
        """
        W = self.W if free is None else self.W[free]
        if rhs.shape != (len(W),):
            raise ValueError(f"rhs must have length {len(W)}, one entry a free variable; got {len(rhs)}")
        found = self._solve(W, rhs)
        if found is None:
            raise np.linalg.LinAlgError("the reduced L-BFGS matrix is not positive definite")
        return found
