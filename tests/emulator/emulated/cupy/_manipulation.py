"""Joining, splitting and reshaping arrays."""

import numpy as np

from ._convert import deliver, host, is_array, is_scalar, new, sync, upload, view


def concatenate(tup, axis=0, out=None, *, dtype=None, casting="same_kind"):
    parts = []
    for part in tup:
        if not is_array(part):
            raise TypeError("Only cupy arrays can be concatenated")
        parts.append(part._array)
    made = np.concatenate(parts, axis=axis, dtype=None if out is not None else dtype, casting=casting)
    return deliver(made, out, casting)


concat = concatenate


def stack(tup, axis=0, out=None, *, dtype=None, casting="same_kind"):
    return concatenate([expand_dims(x, axis) for x in tup], axis, out, dtype=dtype, casting=casting)


def vstack(tup, *, dtype=None, casting="same_kind"):
    return concatenate([atleast_2d(x) for x in tup], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind"):
    parts = [atleast_1d(x) for x in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def column_stack(tup):
    if not all(is_array(x) for x in tup):
        raise TypeError("Only cupy arrays can be column stacked")
    return new(np.column_stack([x._array for x in tup]))


def atleast_1d(*arys):
    return _at_least(np.atleast_1d, arys)


def atleast_2d(*arys):
    return _at_least(np.atleast_2d, arys)


def _at_least(function, arys):
    for x in arys:
        if not is_array(x):
            raise TypeError("Only cupy arrays can be atleast_1d and atleast_2d")
    made = [view(x, function(x._array)) for x in arys]
    return made[0] if len(made) == 1 else made


def expand_dims(a, axis):
    return view(a, np.expand_dims(host(a), axis))


def moveaxis(a, source, destination):
    return view(a, np.moveaxis(host(a), source, destination))


def broadcast_to(array, shape):
    len(shape)  # a number is a TypeError there
    return view(array, np.broadcast_to(host(array, "array"), shape))


def append(arr, values, axis=None):
    return new(np.append(upload(arr)._array, upload(values)._array, axis))


def copyto(dst, src, casting="same_kind", where=None):
    target = host(dst, "dst")
    if isinstance(src, np.ndarray) and src.ndim > 0:
        raise ValueError("non-scalar numpy.ndarray cannot be used for copyto")
    if not is_array(src) and not is_scalar(src) and not isinstance(src, np.ndarray):
        raise TypeError(f"Unsupported type {type(src)}")
    given = src._array if is_array(src) else src
    np.copyto(target, given, casting=casting, where=True if where is None else host(where, "where"))


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True):
    made = np.unique(host(ar, "ar"), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)
    sync()
    return tuple(map(new, made)) if isinstance(made, tuple) else new(made)
