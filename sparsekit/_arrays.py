"""Where arrays live: in main memory (NumPy, SciPy) or on a GPU (CuPy).

Every floor may import this. CuPy itself is not imported: whoever hands in its arrays has it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ._typing import DeviceArray, DeviceMatrix, EitherArray, SparseMatrix

# Entries of a block of rows that is converted, copied or multiplied at once: small ones leave a GPU idle.
DEVICE_BLOCK = 2**26


@functools.cache
def _is_device_type(kind: type) -> bool:
    return any(base.__module__.partition(".")[0] in ("cupy", "cupyx") for base in kind.__mro__)


def is_device(x: object) -> TypeGuard[DeviceArray | DeviceMatrix]:
    """Whether ``x`` is a CuPy array or a sparse matrix of ``cupyx.scipy.sparse``."""
    kind: Any = type(x)  # (the checker takes a class for something that has no hash)
    return _is_device_type(kind)  # asked some dozen times a fit: small fits would notice the search


def is_sparse(x: object) -> TypeGuard[SparseMatrix | DeviceMatrix]:
    """Whether checked data is a sparse matrix, of SciPy or on a GPU."""
    return hasattr(x, "nnz")


def namespace(**arrays: object) -> ModuleType:
    """The module, NumPy or CuPy, of the arrays, which are given by the names that the user knows.

    None and Python scalars belong anywhere. Arrays of both kinds are a TypeError that says what to do.
    """
    placed = {name: is_device(x) for name, x in arrays.items() if x is not None and not np.isscalar(x)}
    if not any(placed.values()):
        return np
    if not all(placed.values()):
        there = ", ".join(name for name, device in placed.items() if device)
        here = [name for name, device in placed.items() if not device]
        raise TypeError(
            f"{there} {'are' if ',' in there else 'is'} on the GPU and {', '.join(here)} in main memory. "
            f"Move all to one device: cupy.asarray({here[0]}) copies to the GPU, "
            "cupy.asnumpy and .get() copy back."
        )
    return sys.modules["cupy"]


def host_only(**arrays: object) -> None:
    """TypeError where one of the arrays, given by the names that the user knows, is on a GPU."""
    for name, x in arrays.items():
        parts = x if isinstance(x, (list, tuple)) else [x]
        if any(is_device(part) for part in parts):
            raise TypeError(
                f"{name} is on the GPU and is needed in main memory here: pass cupy.asnumpy({name}) "
                f"({name}.get() for a sparse matrix)"
            )


def host_values(like: object, name: str, x: Any) -> Any:
    """``x`` in main memory; TypeError that has its ``name`` where it is on a GPU and ``like`` is not."""
    if not is_device(like):
        host_only(**{name: x})
    return to_host(x)


def kernel_module(name: str, x: object) -> ModuleType:
    """The kernels ``name`` (folder and module, ``l1._model``) for arrays like ``x``: of ``sparsekit.gpu`` or
    of ``sparsekit._cython``.
    """
    return _module(name, is_device(x))


def scipy_module(name: str, x: object) -> ModuleType:
    """``scipy.name`` for arrays in main memory, ``cupyx.scipy.name`` for those on a GPU."""
    return importlib.import_module(f"{'cupyx.' if is_device(x) else ''}scipy.{name}")


def thread_arguments(like: object, n_threads: int) -> tuple[int, ...]:
    """The last arguments of kernels for arrays like ``like``: the number of threads, and on a GPU none."""
    return () if is_device(like) else (n_threads,)


@functools.cache
def _module(name: str, device: bool) -> ModuleType:
    return importlib.import_module(f"sparsekit.{'gpu' if device else '_cython'}.{name}")


class OnEachDevice:
    """What a class of kernels makes of the same arguments in main memory and, once asked for, on each GPU."""

    def __init__(self, module: str, name: str, arguments: tuple[Any, ...]) -> None:
        self._module, self._name, self._arguments = module, name, arguments
        self.made: dict[int | None, Any] = {}

    def like(self, x: object) -> Any:
        """The one for the kernels that take arrays like ``x``, on the current device."""
        device = namespace(x=x).cuda.Device().id if is_device(x) else None
        if device not in self.made:
            self.made[device] = getattr(kernel_module(self._module, x), self._name)(*self._arguments)
        return self.made[device]


def is_in_main_memory(X: object) -> bool:
    """Whether checked data is an array of NumPy or a matrix of SciPy: not on a GPU, not in blocks of rows."""
    from scipy.sparse import issparse  # not for those who import types alone

    return isinstance(X, np.ndarray) or issparse(X)


def full(
    shape: int | tuple[int, ...], value: float, dtype: DTypeLike = np.float64, like: EitherArray | None = None
) -> EitherArray:
    """`numpy.full` for the library of ``like``; NumPy would pass CuPy a keyword that it does not know."""
    out = np.empty(shape, dtype=dtype, like=like)
    out[...] = value
    return out


def aligned(x: EitherArray) -> EitherArray:
    """``x``, or a copy where it lies at an address that is no multiple of what its numbers need.

    Arrays over the bytes of a file or a message may; compiled loops may take them for what they are not. CuPy
    has none.
    """
    return x if getattr(x.flags, "aligned", True) else x.copy()


def enlarged(x: EitherArray, shape: tuple[int, ...]) -> EitherArray:
    """Zeros of a larger ``shape`` for the library of ``x``, with ``x`` in the first corner."""
    out = np.zeros(shape, dtype=x.dtype, like=x)
    out[tuple(map(slice, x.shape))] = x
    return out


def lengthened(table: Any, n_rows: int) -> Any:
    """``table`` with rows of zeros behind: in main memory a view of an array with capacity for more."""
    old, width = table.shape
    if is_device(table):
        return enlarged(table, (n_rows, width))
    buffer = table.base
    fits = (
        isinstance(buffer, np.ndarray)
        and buffer.ndim == 2
        and buffer.shape[1] == width
        and buffer.dtype == table.dtype
        and len(buffer) >= n_rows
        and buffer.ctypes.data == table.ctypes.data
    )
    if not fits:
        # pages of zeros that were never written take no memory
        buffer = enlarged(table, (max(n_rows, 2 * old), width))
    return buffer[:n_rows]


def csr_of_ones(rows: EitherArray, columns: EitherArray, shape: tuple[int, int]) -> Any:
    """CSR matrix of ones at these indices, some of them named twice; CuPy has no integers there."""
    places = np.unique(rows * shape[1] + columns)
    at, sparse = (places // shape[1], places % shape[1]), scipy_module("sparse", rows)
    if is_device(rows):
        return sparse.csr_matrix((np.ones_like(places, dtype=np.float32), at), shape=shape)
    return sparse.csr_array((np.ones_like(places), at), shape=shape)


def as_like(x: ArrayLike | DeviceArray, like: EitherArray) -> EitherArray:
    """``x`` for the library of ``like``, copied to or from a GPU if needed: for few numbers, not for data."""
    return np.asarray(to_host(x)) if not is_device(like) else sys.modules["cupy"].asarray(x)


def to_host(x: Any) -> Any:
    """``x`` in main memory; what is there already is returned as it is."""
    return x.get() if is_device(x) else x
