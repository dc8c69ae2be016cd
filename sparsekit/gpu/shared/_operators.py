"""Operators that hold the Hessian of a quadratic model on the GPU; the version of that in ``_cython``.

What ``solve_model`` asks of one: ``size``, ``ridge``, ``diagonal`` (without the ridge), ``product(v, out)``
(with it), ``direct`` and, where that is true, ``solve_face(kind, rhs)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from ..._typing import DeviceArray

# Largest side of a matrix that is factorised: beyond it steps of conjugate gradients cost less
MAX_FACTOR_SIDE = 768


class QuadOperator(ABC):
    """H restricted to m variables, plus ``ridge`` times its diagonal."""

    direct = False  # whether solve_face is there and cheap
    always_direct = False  # whether it is cheap for any face
    reads: str | None = None  # "matrix" for H itself, "dense" for the data
    error = None
    size: int
    ridge: float
    diagonal: DeviceArray
    n_products = 0
    crossed: int  # counted by `solve_model`

    # Where ``direct``: H_ff^-1 rhs of (kind, rhs) on the face of kind 1 and 2, rhs 0 elsewhere.
    # None where H_ff is not definite.
    solve_face: Callable[[DeviceArray, DeviceArray], DeviceArray | None]

    @abstractmethod
    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        """out = (H + ridge diag H) v, all on the device."""

    def matvec(self, v: DeviceArray) -> DeviceArray:
        """H v, (m,), with the ridge."""
        out = np.empty(self.size, like=self.diagonal)
        if self.size:
            self.product(v, out)
        return out

    def add_diagonal(self, added: DeviceArray) -> None:
        """Add a diagonal (m,) to H, a ridge's second derivatives; once, before H is asked anything."""
        product = self.product

        def with_added(v: DeviceArray, out: DeviceArray) -> None:
            product(v, out)
            out += added * v

        self.diagonal = self.diagonal + added
        self.product = with_added  # type: ignore[method-assign]

    @property
    def diag(self) -> DeviceArray:
        return self.diagonal


class GramOperator(QuadOperator):
    """H as a dense symmetric (m, m) matrix G, float64, to whose diagonal the ridge is added in place."""

    reads = "matrix"

    def __init__(self, G: DeviceArray, ridge: float) -> None:
        self.G, self.ridge, self.size = G, float(ridge), len(G)
        self.direct = self.size <= MAX_FACTOR_SIDE
        self._set_diagonal(G.diagonal().copy())

    def _set_diagonal(self, diagonal: DeviceArray) -> None:
        self.diagonal = diagonal
        every = np.arange(self.size, like=diagonal)
        self.G[every, every] = (1.0 + self.ridge) * diagonal

    def add_diagonal(self, added: DeviceArray) -> None:
        """Add a diagonal (m,) to H, in the matrix itself."""
        self._set_diagonal(self.diagonal + added)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        np.dot(self.G, v, out=out)

    def solve_face(self, kind: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        import cupy
        from cupyx.scipy.linalg import solve_triangular

        # the identity outside the face
        free = (kind == 1) | (kind == 2)
        face = np.where(free[:, None] & free, self.G, cupy.eye(self.size))
        L = cupy.linalg.cholesky(face)
        found = solve_triangular(L, solve_triangular(L, rhs, lower=True), trans=1, lower=True)
        # a matrix that is not positive definite leaves NaN or no sense behind
        return found if float(np.dot(rhs, found)) > 0.0 else None


class CallbackOperator(QuadOperator):
    """H as a Python callable v -> H v on device arrays, for a user's loss."""

    def __init__(
        self, func: Callable[[DeviceArray], DeviceArray], diagonal: DeviceArray, ridge: float
    ) -> None:
        self.func, self.diagonal, self.ridge = func, diagonal, float(ridge)
        self.size = len(diagonal)

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        res = self.func(v.copy())
        if res.shape != (self.size,):
            raise ValueError(f"Hessian-vector product has shape {res.shape}, expected {(self.size,)}")
        out[:] = res + self.ridge * self.diagonal * v
