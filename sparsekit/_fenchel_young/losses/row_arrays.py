"""Arrays of any layout as the rows that kernels take, in main memory or on a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from types import ModuleType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import namespace
from ..._messages import shown
from ..._typing import DeviceArray, EitherArray


def namespace_of(**arrays: object) -> ModuleType:
    """NumPy or CuPy, whichever the arrays are of; None belongs to both, a mixture is a TypeError."""
    for x in arrays.values():
        if x is not None and not isinstance(x, np.ndarray):
            return namespace(**arrays)
    return np


def floating(z: ArrayLike | DeviceArray, name: str) -> EitherArray:
    """``z`` as an array of float32 or float64."""
    if isinstance(z, (list, tuple)) and any(namespace(part=part) is not np for part in z):
        raise TypeError(f"{name} is a list of arrays of a GPU: pass cupy.stack({name})")
    if hasattr(z, "nnz"):
        raise TypeError(f"{name} must be dense: pass {name}.toarray()")
    z = namespace(z=z).asarray(z)
    if z.dtype == np.float16:
        z = z.astype(np.float32)
    elif z.dtype not in (np.float32, np.float64):
        if z.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold real numbers; got dtype {z.dtype}")
        z = z.astype(np.float64)
    if z.ndim == 0:
        raise ValueError(f"{name} must have at least one dimension; got a scalar")
    return z


def check_axis(axis: int, ndim: int) -> int:
    """``axis`` counted from the front."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis must lie in {-ndim} .. {ndim - 1}; got {axis}")
    return axis % ndim


@overload
def as_rows(z: EitherArray, axis: int, copy: Literal[True] = True) -> EitherArray: ...


@overload
def as_rows(z: EitherArray, axis: int, copy: bool) -> EitherArray | None: ...


def as_rows(z, axis, copy=True):
    """``z`` as (n, K) rows along ``axis`` with unit stride: a view if there is one, else a copy or None."""
    turned = z if axis == z.ndim - 1 else np.moveaxis(z, axis, -1)
    size = turned.shape[-1]
    # CuPy's arrays are always aligned
    aligned = getattr(turned.flags, "aligned", True)
    if turned.ndim == 2 and (turned.strides[1] == turned.itemsize or size == 1) and aligned:
        rows = turned
    elif turned.flags.c_contiguous and aligned:
        rows = turned.reshape(_count(turned.shape[:-1]), size)
    elif not copy:
        return None
    else:
        rows = turned.copy(order="C").reshape(_count(turned.shape[:-1]), size)
    # NumPy may give a length-one axis any stride; kernels take rows by theirs
    if not len(rows) or rows.strides[0] % rows.itemsize == 0:
        return rows
    return rows.copy() if copy else None


def _count(shape):
    return int(np.prod(shape, dtype=np.intp))


class Result:
    """Where a kernel writes an array of the shape of ``like``: ``out`` itself where it can."""

    def __init__(
        self,
        like: EitherArray,
        axis: int,
        out: EitherArray | None,
        inputs: Iterable[EitherArray] = (),
        xp: ModuleType = np,
    ) -> None:
        self.out, self.copied = out, False
        if out is None:
            # rows come out in order, whatever the axis; the caller gets them turned back
            turned = like.shape[:axis] + like.shape[axis + 1 :]
            self.rows = xp.empty((_count(turned), like.shape[axis]), dtype=like.dtype)
            self.value = np.moveaxis(self.rows.reshape(*turned, like.shape[axis]), -1, axis)
            return
        if not isinstance(out, xp.ndarray) or out.shape != like.shape or out.dtype != like.dtype:
            got = f"{out.dtype} {out.shape}" if isinstance(out, xp.ndarray) else type(out).__name__
            raise ValueError(f"out must be an array of {like.dtype} {like.shape}; got {got}")
        if xp is np and not out.flags.writeable:
            raise ValueError("out must be writeable")
        self.value = out
        self.rows = as_rows(out, axis, copy=False)
        unsafe = self.rows is not None and any(
            np.may_share_memory(self.rows, a) and not _same_memory(self.rows, a) for a in inputs
        )
        if self.rows is None or unsafe:
            self.copied = True
            turned = np.moveaxis(out, axis, -1)
            self.rows = xp.empty((_count(turned.shape[:-1]), turned.shape[-1]), dtype=out.dtype)
            self._turned = turned

    def done(self) -> EitherArray:
        """The result, when the kernel has written ``rows``."""
        if self.copied:
            self._turned[...] = self.rows.reshape(self._turned.shape)
        return self.value


def _same_memory(a, b):
    return _address(a) == _address(b) and a.strides == b.strides and a.shape == b.shape


def _address(a):
    return a.ctypes.data if isinstance(a, np.ndarray) else a.data.ptr


def outer(z: EitherArray, axis: int) -> tuple[int, ...]:
    """Shape of ``z`` without ``axis``."""
    return z.shape[:axis] + z.shape[axis + 1 :]


def targets(
    q: Any, z: EitherArray, axis: int, xp: ModuleType = np
) -> tuple[EitherArray | None, EitherArray | None]:
    """Targets as rows of distributions, or as codes: (rows or None, codes or None)."""
    if xp is np or isinstance(q, Integral):
        q = xp.asarray(q)
    if not hasattr(q, "shape"):
        raise TypeError(f"q must be a CuPy array of targets as z is on the GPU; got {shown(q)}")
    K = z.shape[axis]
    if q.shape == z.shape:
        if q.dtype.kind not in "biuf":
            raise TypeError(f"q must hold real numbers; got dtype {q.dtype}")
        return as_rows(q.astype(z.dtype, copy=False), axis), None
    if q.shape == outer(z, axis) and q.dtype.kind in "iu":
        codes = xp.ascontiguousarray(q, dtype=np.int64).ravel()
        # one test, since each synchronises the GPU
        if codes.size and (codes.min() < 0) | (codes.max() >= K):
            wrong = int(codes[(codes < 0) | (codes >= K)][0])
            raise ValueError(f"q, the targets, holds the class {wrong}; classes lie in 0 .. {K - 1}")
        return None, codes
    raise ValueError(
        f"q must have the shape of z, {z.shape}, or be integer classes of shape {outer(z, axis)}; "
        f"got {q.dtype} {q.shape}"
    )
