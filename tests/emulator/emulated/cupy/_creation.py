"""Making arrays: signatures as in CuPy, elements that nobody wrote poisoned."""

import numpy as np

from ._convert import foreign, host, is_array, new, unwritten, upload
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


def identity(n, dtype=float):
    return eye(n, dtype=dtype)


def arange(start, stop=None, step=1, dtype=None):
    bounds = (start, stop, step)
    if any(is_array(x) for x in bounds):
        raise TypeError("the emulation takes no device array as a bound of arange: int() it, that waits")
    if stop is None:
        start, stop = 0, start
    return new(np.arange(start, stop, 1 if step is None else step, dtype))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    start, stop = (x._array if is_array(x) else x for x in (start, stop))
    made = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)
    return (new(made[0]), made[1]) if retstep else new(made)


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


def asanyarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    return asarray(a, dtype, order, copy=copy, blocking=blocking)


def ascontiguousarray(a, dtype=None):
    host(a)
    made = array(a, dtype, copy=False, order="C")
    return made if made.ndim else made.reshape(1)


def asfortranarray(a, dtype=None):
    host(a)
    made = array(a, dtype, copy=False, order="F")
    return made if made.ndim else made.reshape(1)


def copy(a, order="K"):
    return a.copy(order=order)


def astype(x, dtype, /, *, copy=True):
    host(x, "x")
    return x.astype(dtype, copy=copy)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    if is_array(a):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    if hasattr(a, "get") and hasattr(a, "toarray"):
        raise TypeError("asnumpy takes no sparse matrix: use its get()")
    made = np.asarray(a, order=order)
    if out is not None:
        out[...] = made
        return out
    return made


class _OnHost:
    """A tensor that says it lies on a device; what it exports lies in the host's memory all the same."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **kwargs):
        return self.tensor.__dlpack__()


def from_dlpack(array, *, device=None, copy=None):
    if is_array(array):
        return array.copy() if copy else array.view()
    if array.__dlpack_device__()[0] == 2:
        made = foreign(np.from_dlpack(_OnHost(array)).__array_interface__, array)
        return made.copy() if copy else made
    raise TypeError(
        "CPU arrays cannot be directly imported to CuPy. Use `cupy.array(numpy.from_dlpack(input))` instead."
    )


def diag(v, k=0):
    if is_array(v) and v.ndim == 2:
        return v.diagonal(k)
    return new(np.diag(upload(v)._array, k))


def tri(N, M=None, k=0, dtype=float):
    return new(np.tri(N, M, k, dtype))


def tril(m, k=0):
    return new(np.tril(host(m, "m"), k))


def triu(m, k=0):
    return new(np.triu(host(m, "m"), k))


def meshgrid(*xi, **kwargs):
    return [new(part) for part in np.meshgrid(*(host(x, "xi") for x in xi), **kwargs)]


def indices(dimensions, dtype=int):
    return new(np.indices(dimensions, dtype))
