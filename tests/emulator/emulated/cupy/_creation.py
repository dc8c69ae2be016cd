"""Making arrays: signatures as in CuPy, elements that nobody wrote poisoned."""

import numpy as np

from ._convert import host, is_array, new, unwritten, upload
from ._manipulation import copyto


def empty(shape, dtype=float, order="C"):
    return unwritten(shape, dtype, order)


def _filled(made, value):
    with np.errstate(all="ignore"):
        made._array[...] = value
    return made


def zeros(shape, dtype=float, order="C"):
    return _filled(empty(shape, dtype, order), 0)


def ones(shape, dtype=float, order="C"):
    return _filled(empty(shape, dtype, order), 1)


def full(shape, fill_value, dtype=None, order="C"):
    if dtype is None:
        dtype = fill_value.dtype if is_array(fill_value) else np.array(fill_value).dtype
    made = empty(shape, dtype, order)
    copyto(made, fill_value, casting="unsafe")
    return made


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    if subok is not None:
        raise TypeError("subok is not supported yet")
    flags = host(prototype, "prototype").flags if is_array(prototype) else np.asarray(prototype).flags
    fortran = flags.f_contiguous and not flags.c_contiguous
    if order in ("K", "A", None):
        order = "F" if fortran else "C"
    return unwritten(prototype.shape if shape is None else shape, dtype or prototype.dtype, order)


def zeros_like(a, dtype=None, order="K", subok=None, shape=None):
    return _filled(empty_like(a, dtype, order, subok, shape), 0)


def ones_like(a, dtype=None, order="K", subok=None, shape=None):
    return _filled(empty_like(a, dtype, order, subok, shape), 1)


def full_like(a, fill_value, dtype=None, order="K", subok=None, shape=None):
    made = empty_like(a, dtype, order, subok, shape)
    copyto(made, fill_value, casting="unsafe")
    return made


def eye(N, M=None, k=0, dtype=float, order="C"):
    return new(np.eye(N, M, k, dtype, order))


def arange(start, stop=None, step=1, dtype=None):
    bounds = (start, stop, step)
    if any(is_array(x) for x in bounds):
        raise TypeError("the emulation takes no device array as a bound of arange: int() it, that waits")
    if stop is None:
        start, stop = 0, start
    return new(np.arange(start, stop, 1 if step is None else step, dtype))


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    made = upload(obj, dtype, order)
    if made is obj:
        if copy or (dtype is not None and np.dtype(dtype) != made.dtype):
            made = made.astype(made.dtype if dtype is None else dtype, order or "K")
        elif order not in ("K", None):
            made = made.astype(made.dtype, order, copy=False)
    elif dtype is not None and made.dtype != np.dtype(dtype):
        made = made.astype(dtype)
    if made.ndim < ndmin:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    return array(a, dtype, bool(copy), order or "K", blocking=blocking)


def ascontiguousarray(a, dtype=None):
    host(a)
    made = array(a, dtype, copy=False, order="C")
    return made if made.ndim else made.reshape(1)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    if is_array(a):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    if hasattr(a, "get") and hasattr(a, "toarray"):
        raise TypeError("asnumpy takes no sparse matrix: use its get()")
    if out is not None:
        raise NotImplementedError("the emulation makes new arrays only")
    return np.asarray(a, order=order)


def from_dlpack(array, *, device=None, copy=None):
    raise NotImplementedError("the emulated device shares no memory: tests lend it what another library has")


def diag(v, k=0):
    if is_array(v) and v.ndim == 2:
        return v.diagonal(k)
    return new(np.diag(upload(v)._array, k))
