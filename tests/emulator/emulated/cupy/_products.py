"""Products of arrays."""

import numpy as np

from ._convert import deliver, host, new


def dot(a, b, out=None):
    return deliver(np.dot(host(a), host(b, "b")), out)


def matmul(
    *args,
    axes=None,
    axis=None,
    keepdims=False,
    casting="same_kind",
    dtype=None,
    signature=None,
    order="K",
    out=None,
):
    if axes is not None or axis is not None or keepdims or signature is not None:
        raise NotImplementedError("the emulation's matmul takes neither axes nor a signature")
    if len(args) == 3:
        *args, out = args
    a, b = args
    made = np.matmul(host(a), host(b, "b"))
    return deliver(made if dtype is None else made.astype(dtype), out, casting)


def vdot(a, b):
    if host(a).size != host(b, "b").size:
        raise ValueError("Axis dimension mismatch")
    return new(np.vdot(a._array, b._array))


def einsum(*operands, **kwargs):
    dtype = kwargs.pop("dtype", None)
    optimize = kwargs.pop("optimize", False)
    out = kwargs.pop("out", None)
    casting = kwargs.pop("casting", "safe")
    order = kwargs.pop("order", "K")
    if kwargs:
        raise TypeError(f"Did not understand the following kwargs: {sorted(kwargs)}")
    if order != "K" or not isinstance(operands[0], str):
        raise NotImplementedError("the emulation's einsum takes a string and arrays")
    arrays = [host(x, "operands") for x in operands[1:]]
    return deliver(np.einsum(operands[0], *arrays, dtype=dtype, casting=casting, optimize=optimize), out)
