"""Solvers of positive definite systems: SciPy in main memory, CuPy for every other array."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np
from scipy import linalg

from .._solver.tolerances import SINGLE_ROUNDING
from .._typing import Array, DeviceArray, EitherArray
from .special import largest


@singledispatch
def solve_positive(H: EitherArray, b: EitherArray) -> EitherArray:
    """x with H x = b for symmetric positive definite H, of which the lower triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite to rounding.
    """
    return _device_solver(H)(b)


@solve_positive.register
def _(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    factor = linalg.cho_factor(H, lower=True, check_finite=False)
    return linalg.cho_solve(factor, b, check_finite=False)


@singledispatch
def positive_solver(H: EitherArray) -> Callable[[EitherArray], EitherArray]:
    """A function that solves with symmetric positive definite H, which is written over.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite to rounding.
    """
    return _device_solver(H)


@positive_solver.register
def _(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    factors = linalg.cho_factor(H, overwrite_a=True, check_finite=False)
    return lambda b: linalg.cho_solve(factors, b, check_finite=False)


def single_solver(M: Array) -> Callable[[Array], Array] | None:
    """A function that solves with symmetric positive M of single precision, which is written over.

    The matrix is scaled to a diagonal of ones and a little more, `SINGLE_ROUNDING`: sums in single precision
    are positive definite then. None where they are not even so.
    """
    by = 1.0 / np.sqrt(np.maximum(M.diagonal(), np.finfo(np.float32).tiny))
    M *= by
    M *= by[:, None]
    M[np.diag_indices(len(M))] = 1.0 + SINGLE_ROUNDING
    factor, failed = linalg.lapack.spotrf(M.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return None

    def solve(r: Array) -> Array:
        # a residual may be smaller than single precision goes
        size = largest(np.abs(r)) or 1.0
        solution, _ = linalg.lapack.spotrs(factor, (by * (r / size)).astype(np.float32), lower=1)
        return size * (by * solution)

    return solve


def _device_solver(H: DeviceArray) -> Callable[[DeviceArray], DeviceArray]:
    import cupy
    import cupyx
    from cupyx.scipy.linalg import solve_triangular

    with cupyx.errstate(linalg="raise"):  # what CuPy does else is to return what it has
        L = cupy.linalg.cholesky(H)
    return lambda b: solve_triangular(L, solve_triangular(L, b, lower=True), trans=1, lower=True)
