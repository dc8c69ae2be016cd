"""The parts of CuPy's ``cupyx`` that the package uses."""

import contextlib

import numpy as np
from cupy import _ufunc
from cupy.linalg import _errors

from . import scipy

rsqrt = _ufunc.from_function(lambda x: (1 / np.sqrt(x)).astype(x.dtype), "rsqrt", "e->e f->f d->d F->F D->D")


def scatter_add(a, slices, value):
    a.scatter_add(slices, value)


def scatter_max(a, slices, value):
    a.scatter_max(slices, value)


def scatter_min(a, slices, value):
    a.scatter_min(slices, value)


@contextlib.contextmanager
def errstate(*, divide=None, over=None, under=None, invalid=None, linalg=None):
    if any(x is not None for x in (divide, over, under, invalid)):
        raise NotImplementedError("only the errors of decompositions can be asked for")
    before = _errors["linalg"]
    if linalg is not None:
        if linalg not in ("ignore", "raise"):
            raise NotImplementedError(f"linalg={linalg!r}")
        _errors["linalg"] = linalg
    try:
        yield
    finally:
        _errors["linalg"] = before


__all__ = ["errstate", "rsqrt", "scatter_add", "scatter_max", "scatter_min", "scipy"]
