"""Functions that an array's method answers, and sums and moments that have no method."""

import functools
import inspect

import numpy as np

from ._convert import host, new, operand, upload
from ._methods import Methods


def _of_method(name):
    """The function ``name(a, ...)`` with the parameters of the method."""
    method = getattr(Methods, name)

    @functools.wraps(method)
    def function(a, *args, **kwargs):
        host(a)
        return method(a, *args, **kwargs)

    _, *parameters = inspect.signature(method).parameters.values()
    function.__signature__ = inspect.Signature(
        [inspect.Parameter("a", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters]
    )
    return function


sum, amax, amin, any, all, cumsum = map(_of_method, ("sum", "max", "min", "any", "all", "cumsum"))
argsort, argpartition, nonzero = map(_of_method, ("argsort", "argpartition", "nonzero"))
take, ravel = map(_of_method, ("take", "ravel"))


def prod(a, axis=None, dtype=None, out=None, keepdims=False):
    host(a)
    return a.prod(axis, dtype, out, keepdims)


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    weights = None if weights is None else host(weights, "weights")
    made = np.average(host(a), axis, weights, returned, keepdims=keepdims)
    return tuple(map(new, made)) if returned else new(made)


def diff(a, n=1, axis=-1, prepend=None, append=None):
    extra = {"prepend": prepend, "append": append}
    return new(
        np.diff(host(a), n, axis, **{k: operand(upload(v)) for k, v in extra.items() if v is not None})
    )
