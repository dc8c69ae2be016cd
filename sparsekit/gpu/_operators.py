"""Operators that hold the Hessian of a quadratic model on the GPU; the twin of ``_cython._operators``.

What ``solve_model`` asks of one: ``size``, ``ridge``, ``diagonal`` (without the ridge), ``product(v, out)``
(with it), ``direct`` and, where that is true, ``solve_face(kind, rhs)``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import DeviceArray
from ._compile import grid1d, kernel
from ._reduce import WARP, block_of

# largest side of a matrix that is factorised: beyond it steps of conjugate gradients cost less
_FACTOR_SIDE = 768


class QuadOperator:
    """H restricted to m variables, plus ``ridge`` times its diagonal."""

    direct = False  # whether solve_face is there and cheap
    always_direct = False  # whether it is cheap for any face
    reads: str | None = None  # "matrix" for H itself, "dense" or "columns" of the data
    error = None
    size: int
    ridge: float
    diagonal: DeviceArray
    n_products = 0
    crossed: int  # counted by `solve_model`

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        """out = (H + ridge diag H) v, all on the device."""
        raise NotImplementedError(f"{type(self).__name__} says no product: each operator has its own")

    def solve_face(self, kind: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        """H_ff^-1 rhs on the face of kind 1 and 2, rhs 0 elsewhere; None where H_ff is not definite."""
        raise NotImplementedError(f"{type(self).__name__} has no direct solve: only those with ``direct`` do")

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
    """H as a dense symmetric (m, m) matrix, float64."""

    reads = "matrix"

    def __init__(self, G: DeviceArray, ridge: float) -> None:
        self.G, self.ridge, self.size = G, float(ridge), len(G)
        self.diagonal = G.diagonal().copy()
        self.direct = self.size <= _FACTOR_SIDE

    def add_diagonal(self, added: DeviceArray) -> None:
        """Add a diagonal (m,) to H, in the matrix itself."""
        self.diagonal = self.diagonal + added
        every = np.arange(self.size, like=added)
        self.G[every, every] = self.diagonal

    def product(self, v: DeviceArray, out: DeviceArray) -> None:
        self.n_products += 1
        m = self.size
        threads = block_of(m * WARP, 128)
        launch = kernel("operators", "sk_gram_product")
        launch(grid1d(m * WARP, threads, 16), threads, (self.G, v, self.diagonal, self.ridge, m, out))

    def solve_face(self, kind: DeviceArray, rhs: DeviceArray) -> DeviceArray | None:
        import cupy
        from cupyx.scipy.linalg import solve_triangular

        face, m = np.empty_like(self.G), self.size
        threads = block_of(m * m)
        launch = kernel("operators", "sk_face_matrix")
        launch(grid1d(m * m, threads), threads, (self.G, self.diagonal, kind, self.ridge, m, face))
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
        out[:] = res
        threads = block_of(self.size)
        launch = kernel("operators", "sk_add_ridge")
        launch(grid1d(self.size, threads), threads, (v, self.diagonal, self.ridge, self.size, out))
