"""The parts of CuPy's ``cupyx`` that the package uses."""

import contextlib

from cupy.linalg import _errors

from . import scipy


@contextlib.contextmanager
def errstate(*, divide=None, over=None, under=None, invalid=None, linalg=None):
    if any(x is not None for x in (divide, over, under, invalid)):
        raise NotImplementedError("only the errors of decompositions can be asked for")
    before = _errors["linalg"]
    if linalg is not None:
        _errors["linalg"] = linalg
    try:
        yield
    finally:
        _errors["linalg"] = before


__all__ = ["errstate", "scipy"]
