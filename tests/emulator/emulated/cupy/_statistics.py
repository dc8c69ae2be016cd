"""Sums, extrema, moments and running sums: no ``initial``, no ``where``."""

import numpy as np

from ._convert import deliver, host, new, operand, upload


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


def ptp(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.ptp(axis=axis, out=out, keepdims=keepdims)


def mean(a, axis=None, dtype=None, out=None, keepdims=False):
    host(a)
    return a.mean(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    host(a)
    return a.var(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    host(a)
    return a.std(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)


def any(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.any(axis=axis, out=out, keepdims=keepdims)


def all(a, axis=None, out=None, keepdims=False):
    host(a)
    return a.all(axis=axis, out=out, keepdims=keepdims)


def cumsum(a, axis=None, dtype=None, out=None):
    host(a)
    return a.cumsum(axis, dtype, out)


def cumprod(a, axis=None, dtype=None, out=None):
    host(a)
    return a.cumprod(axis, dtype, out)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    return deliver(np.median(host(a), axis, keepdims=keepdims), out)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    weights = None if weights is None else host(weights, "weights")
    made = np.average(host(a), axis, weights, returned, keepdims=keepdims)
    return tuple(map(new, made)) if returned else new(made)


def quantile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, interpolation=None
):
    if interpolation is not None:
        raise TypeError("interpolation is deprecated: method")
    return deliver(np.quantile(host(a), operand(upload(q)), axis, method=method, keepdims=keepdims), out)


def percentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, interpolation=None
):
    return quantile(a, upload(q) / 100.0, axis, out, overwrite_input, method, keepdims)


def nansum(a, axis=None, dtype=None, out=None, keepdims=False):
    return deliver(np.nansum(host(a), axis, dtype, keepdims=keepdims), out)


def nanmax(a, axis=None, out=None, keepdims=False):
    return deliver(np.nanmax(host(a), axis, keepdims=keepdims), out)


def nanmin(a, axis=None, out=None, keepdims=False):
    return deliver(np.nanmin(host(a), axis, keepdims=keepdims), out)


def diff(a, n=1, axis=-1, prepend=None, append=None):
    extra = {"prepend": prepend, "append": append}
    return new(
        np.diff(host(a), n, axis, **{k: operand(upload(v)) for k, v in extra.items() if v is not None})
    )


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    host(a)
    return a.trace(offset, axis1, axis2, dtype, out)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    return new(np.trapezoid(host(y, "y"), None if x is None else host(x, "x"), dx, axis))


def cov(a, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    if y is not None or fweights is not None or aweights is not None:
        raise NotImplementedError("the emulation's cov takes one array, without weights")
    return new(np.cov(host(a), None, rowvar, bias, ddof, dtype=dtype))


def interp(x, xp, fp, left=None, right=None, period=None):
    return new(np.interp(host(x, "x"), host(xp, "xp"), host(fp, "fp"), left, right, period))
