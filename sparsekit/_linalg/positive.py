"""Positive definite systems, where the matrix is."""

from __future__ import annotations

from typing import Any

from scipy import linalg

from .._device import is_device


def solve_positive(H: Any, b: Any) -> Any:
    """x with H x = b for symmetric positive definite H, of which the lower triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not positive definite to rounding.
    """
    if not is_device(H):
        factor = linalg.cho_factor(H, lower=True, check_finite=False)
        return linalg.cho_solve(factor, b, check_finite=False)
    import cupy
    import cupyx
    from cupyx.scipy.linalg import solve_triangular

    with cupyx.errstate(linalg="raise"):  # what CuPy does else is to return what it has
        L = cupy.linalg.cholesky(H)
    return solve_triangular(L, solve_triangular(L, b, lower=True), trans=1, lower=True)
