"""Between device arrays and the NumPy arrays that hold them: every conversion refuses what CuPy refuses."""

import numbers

import numpy as np

from . import emulation
from ._memory import allocate, device_copy

IMPLICIT = (
    "Implicit conversion to a NumPy array is not allowed. "
    "Please use `.get()` to construct a NumPy array explicitly."
)


# the class of device arrays: its module sets it, which imports this one
array_type = None


def is_array(x):
    return isinstance(x, array_type)


def is_scalar(x):
    return isinstance(x, numbers.Number | np.number | np.bool_)


def host(x, name="a"):
    """The NumPy array that holds a device array's elements; TypeError for anything else."""
    if not is_array(x):
        raise TypeError(f"Argument '{name}' has incorrect type (expected cupy.ndarray, got {type(x)})")
    return x._array


def operand(x):
    """A ufunc's operand: a device array or a scalar."""
    if is_array(x):
        return x._array
    if is_scalar(x):
        return x
    raise TypeError(f"Unsupported type {type(x)}")


def new(value, dtype=None, order="K"):
    """A new device array with these elements (of a NumPy array or scalar)."""
    return array_type._from(*device_copy(value, dtype, order))


def view(base, array):
    """A device array over part of ``base``'s memory."""
    made = array_type._from(array, base._memory)
    made.base = base if base.base is None else base.base
    return made


def unwritten(shape, dtype, order="C"):
    return array_type._from(*allocate(shape, dtype, order))


def deliver(value, out=None, casting="unsafe"):
    """The result as a new array, or written into ``out``."""
    if out is None:
        return new(value)
    target = host(out, "out")
    if target.shape != np.shape(value):
        raise ValueError(f"Output array has wrong shape {target.shape}, expected {np.shape(value)}")
    np.copyto(target, value, casting=casting)
    return out


def upload(obj, dtype=None, order="K"):
    """A device array from a device array, a NumPy array, a scalar or nested sequences of them."""
    if is_array(obj):
        return obj
    if isinstance(obj, list | tuple) and _holds_arrays(obj):
        from ._manipulation import stack

        return stack([upload(part, dtype) for part in obj])
    array = np.asarray(obj, dtype=dtype)
    emulation.counts["uploads"] += 1
    return new(array, order=order)


def _holds_arrays(sequence):
    return any(
        is_array(part) or (isinstance(part, list | tuple) and _holds_arrays(part)) for part in sequence
    )


def sync():
    emulation.counts["syncs"] += 1


def indices(key):
    """An index as NumPy takes it. Host index arrays and lists are uploaded, as CuPy does."""
    if isinstance(key, tuple):
        return tuple(_index(part) for part in key)
    return _index(key)


def _index(part):
    if is_array(part):
        if part.dtype.kind not in "iub":
            raise IndexError(
                f"arrays used as indices must be of integer or boolean type. (actual: {part.dtype.type})"
            )
        if part.dtype == np.bool_:
            sync()
        return part._array
    if isinstance(part, slice):
        for bound in (part.start, part.stop, part.step):
            if is_array(bound):
                raise TypeError("a device array bounds a slice: int() it first, that waits for the device")
        return part
    if isinstance(part, list | np.ndarray):
        part = np.asarray(part)
        if part.size == 0 and part.dtype.kind == "f":
            part = part.astype(np.int32)
        if part.dtype.kind not in "iub":
            raise IndexError(
                f"arrays used as indices must be of integer or boolean type. (actual: {part.dtype.type})"
            )
        emulation.counts["uploads"] += 1
    return part


def is_advanced(key):
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, np.ndarray | bool | np.bool_) for part in parts)
