"""Searching, sorting, counting and choosing elements."""

import numpy as np

from ._convert import deliver, host, is_array, new, operand, sync, upload
from ._methods import check_kind
from ._statistics import nonzero


def sort(a, axis=-1, kind=None):
    check_kind(kind)
    return new(np.sort(host(a), axis=axis, kind="stable"))


def searchsorted(a, v, side="left", sorter=None):
    if not is_array(a):
        raise NotImplementedError("Only int or ndarray are supported for a")
    if not is_array(v):
        if not isinstance(v, int | float | complex):
            raise NotImplementedError("Only python scalars or ndarrays are supported for v")
        v = upload(v)
    order = None if sorter is None else host(sorter, "sorter")
    return new(np.searchsorted(a._array, v._array, side, order))


def flatnonzero(a):
    host(a)
    return a.ravel().nonzero()[0]


def argwhere(a):
    sync()
    return new(np.argwhere(host(a)))


def count_nonzero(a, axis=None):
    return new(np.count_nonzero(host(a), axis=axis))


def where(condition, x=None, y=None):
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        return nonzero(condition)
    return new(np.where(host(condition, "condition"), operand(x), operand(y)))


def take_along_axis(a, indices, axis):
    return new(np.take_along_axis(host(a), host(indices, "indices"), axis))


def array_equal(a1, a2, equal_nan=False):
    return new(np.array_equal(host(a1, "a1"), host(a2, "a2"), equal_nan))


def may_share_memory(a, b, max_work=None):
    return np.may_share_memory(host(a), host(b, "b"), max_work=max_work)


def size(a, axis=None):
    return np.size(a._array if is_array(a) else a, axis)


def isneginf(x, out=None):
    return deliver(np.isneginf(host(x, "x")), out)


def clip(a, a_min, a_max, out=None):
    host(a)
    return a.clip(a_min, a_max, out=out)


def ix_(*args):
    return tuple(new(part) for part in np.ix_(*(host(x) for x in args)))
