"""Sums, extrema, moments and running sums: no ``initial``, no ``where``."""

import numpy as np

from ._convert import host, new, operand, upload


def sum(a, axis=None, dtype=None, out=None, keepdims=False):
    host(a)
    return a.sum(axis, dtype, out, keepdims)


def prod(a, axis=None, dtype=None, out=None, keepdims=False):
    host(a)
    return a.prod(axis, dtype, out, keepdims)


def amax(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.max(axis=axis, out=out, keepdims=keepdims)


def amin(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.min(axis=axis, out=out, keepdims=keepdims)


def any(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.any(axis=axis, out=out, keepdims=keepdims)


def all(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.all(axis=axis, out=out, keepdims=keepdims)


def cumsum(a, axis=None, dtype=None, out=None):
    host(a)
    return a.cumsum(axis, dtype, out)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    weights = None if weights is None else host(weights, "weights")
    made = np.average(host(a), axis, weights, returned, keepdims=keepdims)
    return tuple(map(new, made)) if returned else new(made)


def diff(a, n=1, axis=-1, prepend=None, append=None):
    extra = {"prepend": prepend, "append": append}
    return new(
        np.diff(host(a), n, axis, **{k: operand(upload(v)) for k, v in extra.items() if v is not None})
    )
