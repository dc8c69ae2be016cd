"""Products and decompositions.

Errors of a decomposition go unnoticed, as in CuPy, whose default is not to wait for them: the result of a
Cholesky decomposition or solution that failed is NaN (there: arbitrary).
"""

import numpy as np

from ._convert import deliver, host, new

LinAlgError = np.linalg.LinAlgError


def dot(a, b, out=None):
    return deliver(np.dot(host(a), host(b, "b")), out)


def matmul(
    *args,
    axes=None,
    axis=None,
    keepdims=False,
    casting="same_kind",
    dtype=None,
    signature=None,
    order="K",
    out=None,
):
    if axes is not None or axis is not None or keepdims or signature is not None:
        raise NotImplementedError("the emulation's matmul takes neither axes nor a signature")
    if len(args) == 3:
        *args, out = args
    a, b = args
    made = np.matmul(host(a), host(b, "b"))
    return deliver(made if dtype is None else made.astype(dtype), out, casting)


def vdot(a, b):
    if host(a).size != host(b, "b").size:
        raise ValueError("Axis dimension mismatch")
    return new(np.vdot(a._array, b._array))


def inner(a, b):
    return new(np.inner(host(a), host(b, "b")))


def outer(a, b, out=None):
    return deliver(np.outer(host(a), host(b, "b")), out)


def tensordot(a, b, axes=2):
    return new(np.tensordot(host(a), host(b, "b"), axes))


def kron(a, b):
    return new(np.kron(host(a), host(b, "b")))


def einsum(*operands, **kwargs):
    dtype = kwargs.pop("dtype", None)
    optimize = kwargs.pop("optimize", False)
    out = kwargs.pop("out", None)
    casting = kwargs.pop("casting", "safe")
    order = kwargs.pop("order", "K")
    if kwargs:
        raise TypeError(f"Did not understand the following kwargs: {sorted(kwargs)}")
    if order != "K" or not isinstance(operands[0], str):
        raise NotImplementedError("the emulation's einsum takes a string and arrays")
    arrays = [host(x, "operands") for x in operands[1:]]
    return deliver(np.einsum(operands[0], *arrays, dtype=dtype, casting=casting, optimize=optimize), out)


def _floating(*arrays):
    """The arrays in the type that cuSOLVER computes in (no half precision, no integers)."""
    kinds = [host(a).dtype for a in arrays]
    if any(kind == np.float16 for kind in kinds):
        raise TypeError("float16 is unsupported in linalg")
    common = np.result_type(*kinds)
    common = common if common.kind in "fc" else np.dtype(float)
    return [a._array.astype(common) for a in arrays]


def _square(a):
    if host(a).ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")


def _unless_singular(function, *arrays, like):
    try:
        return function(*arrays)
    except np.linalg.LinAlgError:
        return np.full_like(like, np.nan)


def cholesky(a):
    _square(a)
    (array,) = _floating(a)
    return new(_unless_singular(np.linalg.cholesky, array, like=array))


def solve(a, b):
    _square(a)
    left, right = _floating(a, b)
    if right.ndim > 1 and left.shape[:-1] != right.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
    return new(_unless_singular(np.linalg.solve, left, right, like=right))


def inv(a):
    _square(a)
    (array,) = _floating(a)
    return new(_unless_singular(np.linalg.inv, array, like=array))


def pinv(a, rcond=1e-15):
    return new(np.linalg.pinv(*_floating(a), rcond))


def lstsq(a, b, rcond=None):
    if b.ndim > 2:
        raise LinAlgError(f"{b.ndim}-dimensional array given. Array must be at most two-dimensional")
    x, residuals, rank, s = np.linalg.lstsq(*_floating(a, b), rcond)
    return new(x), new(residuals), new(np.int32(rank)), new(s)


def eigh(a, UPLO="L"):
    _square(a)
    return tuple(map(new, np.linalg.eigh(*_floating(a), UPLO)))


def eigvalsh(a, UPLO="L"):
    _square(a)
    return new(np.linalg.eigvalsh(*_floating(a), UPLO))


def svd(a, full_matrices=True, compute_uv=True):
    made = np.linalg.svd(*_floating(a), full_matrices, compute_uv)
    return tuple(map(new, made)) if compute_uv else new(made)


def qr(a, mode="reduced"):
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode {mode!r}")
    made = np.linalg.qr(*_floating(a), mode)
    return new(made) if mode == "r" else tuple(map(new, made))


def det(a):
    _square(a)
    return new(np.linalg.det(*_floating(a)))


def slogdet(a):
    _square(a)
    return tuple(map(new, np.linalg.slogdet(*_floating(a))))


def matrix_rank(M, tol=None):
    return new(np.linalg.matrix_rank(host(M, "M"), tol))


def matrix_power(M, n):
    _square(M)
    return new(np.linalg.matrix_power(host(M, "M"), n))


def norm(x, ord=None, axis=None, keepdims=False):
    host(x, "x")
    array = x._array if x.dtype.kind in "fc" else x._array.astype(float)
    return new(np.linalg.norm(array, ord, axis, keepdims))


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    host(a)
    return a.trace(offset, axis1, axis2, dtype, out)
