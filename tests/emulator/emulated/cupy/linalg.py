"""Decompositions, solutions and norms.

Errors of a decomposition go unnoticed, as in CuPy, whose default is not to wait for them. The result of a
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


def norm(x, ord=None, axis=None, keepdims=False):
    _host(x, "x")
    array = x._array if x.dtype.kind in "fc" else x._array.astype(float)
    return _new(_np.linalg.norm(array, ord, axis, keepdims))
