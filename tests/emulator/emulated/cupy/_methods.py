"""Methods of the emulated array: reductions, orders, shapes."""

import numpy as np

from ._convert import deliver, is_scalar, new, operand, sync, upload, view
from ._memory import check_dtype


def _reduced(name, *, dtype=True):
    """A reduction with CuPy's arguments: no ``initial`` and no ``where``."""
    function = getattr(np, name)

    if dtype:

        def method(self, axis=None, dtype=None, out=None, keepdims=False):
            with np.errstate(all="ignore"):
                value = function(self._array, axis=axis, dtype=dtype, keepdims=bool(keepdims))
            return deliver(value, out)

    else:

        def method(self, axis=None, out=None, keepdims=False):
            with np.errstate(all="ignore"):
                value = function(self._array, axis=axis, keepdims=bool(keepdims))
            return deliver(value, out)

    method.__name__ = name
    return method


def _argument(name):
    function = getattr(np, name)

    def method(self, axis=None, out=None, dtype=None, keepdims=False):
        value = np.asarray(function(self._array, axis=axis, keepdims=bool(keepdims)))
        return deliver(value if dtype is None else value.astype(dtype), out)

    method.__name__ = name
    return method


def _running(name):
    function = getattr(np, name)

    def method(self, axis=None, dtype=None, out=None):
        with np.errstate(all="ignore"):
            return deliver(function(self._array, axis=axis, dtype=dtype), out)

    method.__name__ = name
    return method


def check_kind(kind):
    if kind is not None and kind != "stable":
        raise ValueError("kind can only be None or 'stable'")


class Methods:
    __slots__ = ()

    sum = _reduced("sum")
    _prod = _reduced("prod")
    mean = _reduced("mean")
    max = _reduced("max", dtype=False)
    min = _reduced("min", dtype=False)
    ptp = _reduced("ptp", dtype=False)
    any = _reduced("any", dtype=False)
    all = _reduced("all", dtype=False)
    argmax = _argument("argmax")
    argmin = _argument("argmin")
    cumsum = _running("cumsum")
    cumprod = _running("cumprod")

    def prod(self, axis=None, dtype=None, out=None, keepdims=None):
        return self._prod(axis, dtype, out, keepdims)

    def clip(self, min=None, max=None, out=None):
        if min is None and max is None:
            raise ValueError("array_clip: must set either max or min")
        bounds = [None if x is None else operand(x) for x in (min, max)]
        return deliver(np.clip(self._array, *bounds), out)

    # copies and types

    def copy(self, order="C"):
        return new(self._array, order=order)

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if casting is not None:
            raise TypeError("casting is not supported yet")
        if subok is not None:
            raise TypeError("subok is not supported yet")
        if order not in ("C", "F", "A", "K"):
            raise ValueError(f"order must be one of C, F, A, K, got {order!r}")
        dtype = check_dtype(dtype)
        if not copy and dtype == self.dtype and self._ordered(order):
            return self
        with np.errstate(all="ignore"):
            return new(self._array, dtype, order)

    def _ordered(self, order):
        flags = self._array.flags
        return (
            order == "K"
            or (order == "A" and (flags.c_contiguous or flags.f_contiguous))
            or (order == "C" and flags.c_contiguous)
            or (order == "F" and flags.f_contiguous)
        )

    # shapes

    def reshape(self, *shape, order="C", copy=None):
        if len(shape) == 1:
            shape = shape[0]
        if order not in ("C", "F", "A"):
            raise ValueError(f"order must be one of C, F, A, got {order!r}")
        made = self._array.reshape(shape, order=order)
        if np.shares_memory(made, self._array) or (self.size == 0 and copy is not True):
            return view(self, made) if not copy else new(made)
        if copy is False:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return new(made)

    def ravel(self, order="C"):
        if order == "K":
            order = "F" if self._array.flags.f_contiguous and not self._array.flags.c_contiguous else "C"
        return self.reshape(-1, order=order)

    def flatten(self, order="C"):
        return new(self._array.flatten(order))

    def transpose(self, *axes):
        return view(self, self._array.transpose(*axes))

    def diagonal(self, offset=0, axis1=0, axis2=1):
        part = np.diagonal(self._array, offset, axis1, axis2)
        part.flags.writeable = self._array.flags.writeable
        return view(self, part)

    # orders; all of them are stable, and a partition may be a whole sort

    def sort(self, axis=-1, kind=None):
        check_kind(kind)
        if self.ndim == 0:
            raise np.exceptions.AxisError("Sorting arrays with the rank of zero is not supported")
        self._array.sort(axis=axis, kind="stable")

    def argsort(self, axis=-1, kind=None):
        check_kind(kind)
        return new(np.argsort(self._array, axis=axis, kind="stable"))

    def argpartition(self, kth, axis=-1):
        self._check_kth(kth, axis)
        return new(np.argsort(self._array, axis=axis, kind="stable"))

    def _check_kth(self, kth, axis):
        length = self.size if axis is None else self.shape[axis]
        for k in kth if isinstance(kth, list | tuple) else (kth,):
            if not -length <= k < length:
                raise ValueError(f"kth(={k}) out of bounds {length}")

    def nonzero(self):
        sync()
        return tuple(new(found) for found in np.nonzero(np.atleast_1d(self._array)))

    # elements

    def take(self, indices, axis=None, out=None):
        chosen = indices if is_scalar(indices) else upload(indices)._array
        return deliver(np.take(self._array, chosen, axis=axis), out)
