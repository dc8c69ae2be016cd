"""Positive definite systems, where the matrix is."""

from __future__ import annotations

from collections.abc import Callable

from scipy import linalg

from .._arrays import is_device
from .._typing import DeviceArray, EitherArray


def solve_positive(H: EitherArray, b: EitherArray) -> EitherArray:
    """x with H x = b for symmetric positive definite H, of which the lower triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite to rounding.
    """
    if not is_device(H):
        factor = linalg.cho_factor(H, lower=True, check_finite=False)
        return linalg.cho_solve(factor, b, check_finite=False)
    return _device_solver(H)(b)


def positive_solver(H: EitherArray) -> Callable[[EitherArray], EitherArray]:
    """A function that solves with symmetric positive definite H, which is written over.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite to rounding.
    """
    if is_device(H):
        return _device_solver(H)
    factors = linalg.cho_factor(H, overwrite_a=True, check_finite=False)
    return lambda b: linalg.cho_solve(factors, b, check_finite=False)


def _device_solver(H: DeviceArray) -> Callable[[DeviceArray], DeviceArray]:
    import cupy
    import cupyx
    from cupyx.scipy.linalg import solve_triangular

    with cupyx.errstate(linalg="raise"):  # what CuPy does else is to return what it has
        L = cupy.linalg.cholesky(H)
    return lambda b: solve_triangular(L, solve_triangular(L, b, lower=True), trans=1, lower=True)
