"""The emulated ``cupy.ndarray``: protocols, properties, indexing."""

import functools

import numpy as np

import cupy

from . import _convert, emulation
from ._convert import IMPLICIT, indices, is_advanced, is_array, is_scalar, new, sync, upload, view
from ._memory import check_dtype
from ._methods import Methods
from ._operators import Operators


class MemoryPointer:
    """``array.data``: where an array begins."""

    def __init__(self, array):
        self.mem = array._memory
        self.ptr = array._array.ctypes.data if array.size else 0
        self.device = cupy.cuda.Device(0)
        self.device_id = 0


class Flags:
    def __init__(self, array):
        flags = array._array.flags
        self.c_contiguous = flags.c_contiguous
        self.f_contiguous = flags.f_contiguous
        self.owndata = array.base is None
        self.fnc = flags.fnc
        self.forc = flags.forc


class ndarray(Operators, Methods):
    """Array on the emulated device; ``_array`` is the NumPy array in its guarded memory."""

    __slots__ = ("__weakref__", "_array", "_memory", "base")
    __hash__ = None
    __array_priority__ = 100

    @classmethod
    def _from(cls, array, memory):
        made = object.__new__(cls)
        made._array, made._memory, made.base = array, memory, None
        return made

    # what it is

    @property
    def dtype(self):
        return self._array.dtype

    shape = property(lambda self: self._array.shape)
    ndim = property(lambda self: self._array.ndim)
    size = property(lambda self: self._array.size)
    nbytes = property(lambda self: self._array.nbytes)
    itemsize = property(lambda self: self._array.itemsize)
    strides = property(lambda self: self._array.strides)
    flags = property(Flags)
    data = property(MemoryPointer)
    device = property(lambda self: cupy.cuda.Device(0))

    @property
    def T(self):
        return view(self, self._array.T)

    # to the host, which waits for the device

    def get(self, stream=None, order="C", out=None, blocking=True):
        sync()
        if out is None:
            order = "C" if order == "A" and not self._array.flags.f_contiguous else order
            return np.array(self._array, order=order, copy=True)
        raise NotImplementedError("the emulation makes new arrays only")

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype!r} array cannot be set to {self.dtype!r} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        emulation.counts["uploads"] += 1
        self._array[...] = arr

    def item(self):
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        sync()
        return self._array.item()

    def tolist(self):
        return self.get().tolist()

    def __bool__(self):
        if self.size == 0:
            raise ValueError("The truth value of an empty array is ambiguous.")
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __repr__(self):
        return repr(self.get())

    def __str__(self):
        return str(self.get())

    def __format__(self, format_spec):
        return format(self.get(), format_spec)

    def __reduce__(self):
        return cupy.array, (self.get(),)

    def __deepcopy__(self, memo):
        return self.copy()

    # protocols

    def __array__(self, dtype=None):
        raise TypeError(IMPLICIT)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if "out" in kwargs:
            if len(kwargs["out"]) != 1:
                raise ValueError("The 'out' parameter must have exactly one array value")
            kwargs["out"] = kwargs["out"][0]
        known = getattr(cupy, ufunc.__name__, None)
        if known is None or ufunc.signature is not None:  # np.matmul and the like: cupy.matmul and @ work
            return NotImplemented
        known = known if method == "__call__" else getattr(known, method, None)
        return NotImplemented if known is None else known(*inputs, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        try:
            module = functools.reduce(getattr, func.__module__.split(".")[1:], cupy)
            known = getattr(module, func.__name__)
        except AttributeError:
            return NotImplemented
        if known is func or any(t not in (ndarray, np.ndarray) for t in types):
            return NotImplemented
        return known(*args, **kwargs)

    # elements

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return len(self._array)

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, slices):
        key = indices(slices)
        if is_advanced(key):
            # out-of-range index arrays raise IndexError here; on a device they wrap around, silently
            return new(self._array[key])
        parts = key if isinstance(key, tuple) else (key,)
        # with an ellipsis NumPy gives a view of one element, too
        return view(self, self._array[parts if Ellipsis in parts else (*parts, ...)])

    def __setitem__(self, slices, value):
        key = indices(slices)
        if is_array(value):
            given = value._array
        elif is_scalar(value) or (isinstance(value, np.ndarray) and value.ndim == 0):
            given = value
        else:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        with np.errstate(all="ignore"):
            self._array[key] = given
            if is_array(value) and given.size > 1 and is_advanced(key):
                self._check_assigned(key, given)

    def _check_assigned(self, key, given):
        """Elements that the index names twice, with different values: any of them may win on a device."""
        got = self._array[key]
        meant = np.broadcast_to(given.astype(self.dtype), got.shape)
        if not np.array_equal(got, meant, equal_nan=self.dtype.kind in "fc"):
            raise AssertionError(
                "an assignment names elements more than once, with different values: which of them a "
                "device keeps is undefined"
            )

    def _scatter(self, ufunc, slices, value):
        key = indices(slices)
        given = value._array if is_array(value) else upload(value, self.dtype)._array
        with np.errstate(all="ignore"):
            ufunc.at(self._array, key, given.astype(self.dtype))

    def view(self, dtype=None, type=None):
        if dtype is None:
            return view(self, self._array)
        return view(self, self._array.view(check_dtype(dtype)))


_convert.array_type = ndarray
