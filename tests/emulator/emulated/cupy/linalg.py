"""Decompositions, solutions and norms.

Errors of a decomposition go unnoticed, as in CuPy, whose default is not to wait for them: the result of a
Cholesky decomposition or solution that failed is NaN (there: arbitrary). ``cupyx.errstate(linalg="raise")``
waits and raises.
"""

import numpy as _np
from numpy.linalg import LinAlgError

from ._convert import host as _host
from ._convert import new as _new
from ._convert import sync as _sync


def _floating(*arrays):
    """The arrays in the type that cuSOLVER computes in (no half precision, no integers)."""
    kinds = [_host(a).dtype for a in arrays]
    if any(kind == _np.float16 for kind in kinds):
        raise TypeError("float16 is unsupported in linalg")
    common = _np.result_type(*kinds)
    common = common if common.kind in "fc" else _np.dtype(float)
    return [a._array.astype(common) for a in arrays]


def _square(a):
    if _host(a).ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")


_errors = {"linalg": "ignore"}


def _unless_singular(function, *arrays, like):
    raises = _errors["linalg"] == "raise"
    if raises:
        _sync()
    try:
        return function(*arrays)
    except _np.linalg.LinAlgError:
        if raises:
            raise
        return _np.full_like(like, _np.nan)


def cholesky(a):
    _square(a)
    (array,) = _floating(a)
    return _new(_unless_singular(_np.linalg.cholesky, array, like=array))


def solve(a, b):
    _square(a)
    left, right = _floating(a, b)
    if right.ndim > 1 and left.shape[:-1] != right.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
    return _new(_unless_singular(_np.linalg.solve, left, right, like=right))


def inv(a):
    _square(a)
    (array,) = _floating(a)
    return _new(_unless_singular(_np.linalg.inv, array, like=array))


def pinv(a, rcond=1e-15):
    return _new(_np.linalg.pinv(*_floating(a), rcond))


def lstsq(a, b, rcond=None):
    if b.ndim > 2:
        raise LinAlgError(f"{b.ndim}-dimensional array given. Array must be at most two-dimensional")
    x, residuals, rank, s = _np.linalg.lstsq(*_floating(a, b), rcond)
    return _new(x), _new(residuals), _new(_np.int32(rank)), _new(s)


def eigh(a, UPLO="L"):
    _square(a)
    return tuple(map(_new, _np.linalg.eigh(*_floating(a), UPLO)))


def eigvalsh(a, UPLO="L"):
    _square(a)
    return _new(_np.linalg.eigvalsh(*_floating(a), UPLO))


def svd(a, full_matrices=True, compute_uv=True):
    made = _np.linalg.svd(*_floating(a), full_matrices, compute_uv)
    return tuple(map(_new, made)) if compute_uv else _new(made)


def qr(a, mode="reduced"):
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode {mode!r}")
    made = _np.linalg.qr(*_floating(a), mode)
    return _new(made) if mode == "r" else tuple(map(_new, made))


def det(a):
    _square(a)
    return _new(_np.linalg.det(*_floating(a)))


def slogdet(a):
    _square(a)
    return tuple(map(_new, _np.linalg.slogdet(*_floating(a))))


def matrix_rank(M, tol=None):
    return _new(_np.linalg.matrix_rank(_host(M, "M"), tol))


def matrix_power(M, n):
    _square(M)
    return _new(_np.linalg.matrix_power(_host(M, "M"), n))


def norm(x, ord=None, axis=None, keepdims=False):
    _host(x, "x")
    array = x._array if x.dtype.kind in "fc" else x._array.astype(float)
    return _new(_np.linalg.norm(array, ord, axis, keepdims))
