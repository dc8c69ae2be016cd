"""CUDA C sources of the folders, compiled when first used, once per device and choice of types."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from cupy import ElementwiseKernel, RawKernel, RawModule, ReductionKernel

# of a grid or a block, in each of its dimensions
Sizes: TypeAlias = int | tuple[int, ...]

_FOLDER = Path(__file__).parents[1]
# names of types in CUDA C
C_REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
_INDEX = {np.dtype(np.int32): "int", np.dtype(np.int64): "long long"}
_SCALAR = _FOLDER.parent / "_scalar"  # what C and CUDA share
_INCLUDE = re.compile(r'^#include "(\w+/\w+\.cuh|\w+\.h)"$', re.MULTILINE)

# Held while a launch asks for its shared memory.
_ASKING = threading.Lock()

THREADS = 256  # of a block, where a kernel has no reason for another number


@functools.cache
def source(file: str) -> str:
    """Text of ``file``.cu with the headers of the folders, and those that C shares, included.

    The compiler gets one text and no path, so that CuPy's cache of compiled kernels sees every change.
    """
    seen: set[str] = set()

    def paste(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        folder = _SCALAR if name.endswith(".h") else _FOLDER
        return _INCLUDE.sub(paste, (folder / name).read_text(encoding="utf-8"))

    return _INCLUDE.sub(paste, (_FOLDER / f"{file}.cu").read_text(encoding="utf-8"))


@functools.cache
def header(file: str) -> str:
    """Text of a header that C and CUDA share, the preamble of CuPy's elementwise kernels."""
    text = (_SCALAR / file).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: header(match.group(1)), text)


@functools.cache
def elementwise(
    inputs: str, outputs: str, body: str, name: str, file: str | None = None
) -> ElementwiseKernel:
    """CuPy's ElementwiseKernel ``name``, with the functions of the shared header ``file``."""
    import cupy

    return cupy.ElementwiseKernel(inputs, outputs, body, name, preamble=header(file) if file else "")


@functools.cache
def sums(square: bool = False) -> ReductionKernel:
    """CuPy's ReductionKernel that sums X y, or X^2 y, in double precision; the result has the type of y."""
    import cupy

    product, name = ("(double)X * X * y", "sk_square_sums") if square else ("(double)X * y", "sk_sums")
    return cupy.ReductionKernel("T X, S y", "S sum", product, "a + b", "sum = a", "0", name, "double")


@functools.cache
def _module(device: int, file: str, defines: tuple[str, ...]) -> RawModule:
    import cupy

    return cupy.RawModule(code=source(file), options=("--std=c++17", *defines))


@functools.cache
def _function(device: int, file: str, name: str, defines: tuple[str, ...]) -> RawKernel:
    return _module(device, file, defines).get_function(name)


def clear() -> None:
    """Clear the cache of what was compiled in this process."""
    for cached in (source, header, elementwise, sums, _module, _function, _processors, _largest_shared):
        cached.cache_clear()


class Launcher:
    """One kernel on the current device; call it with (blocks, threads, arguments)."""

    def __init__(self, function: RawKernel) -> None:
        self.function = function

    def __call__(self, blocks: Sizes, threads: Sizes, args: Iterable[object], shared: int = 0) -> None:
        """Launch the kernel.

        Python and NumPy integers become ``long long``, floats ``double``, arrays pointers to their first
        entry: they must be C-contiguous or the kernel must know their strides. ``shared`` is in bytes.
        """
        grid, block, args = _triple(blocks), _triple(threads), tuple(map(_plain, args))
        if not shared:
            self.function(grid, block, args)
            return
        with _ASKING:  # another thread may ask for less before this one launches
            self.function.max_dynamic_shared_size_bytes = shared
            self.function(grid, block, args, shared_mem=shared)


def _triple(sizes: Sizes) -> tuple[int, ...]:
    if isinstance(sizes, (int, np.integer)):  # the usual case, hundreds of times a fit
        return (int(sizes),)
    return tuple(int(size) for size in np.atleast_1d(sizes))


def _plain(x: object) -> object:
    if isinstance(x, (bool, np.bool_, int, np.integer)):
        return np.int64(x)
    if isinstance(x, (float, np.floating)):
        return np.float64(x)
    return x


def kernel(
    file: str,
    name: str,
    *,
    real: DTypeLike | None = None,
    index: DTypeLike | None = None,
    defines: Mapping[str, object] | None = None,
) -> Launcher:
    """The kernel ``name`` of ``file``.cu for the current device.

    Parameters
    ----------
    file, name : str
        Source file, ``folder/name`` without its ending, and the name of the function in it.
    real, index : dtype, default=None
        What ``real`` (float32, float64) and ``index_t`` (int32, int64) stand for in the source.
    defines : mapping, default=None
        Further macros and their values.
    """
    import cupy

    macros = dict(defines or {})
    if real is not None:
        macros["REAL"] = C_REAL[np.dtype(real)]
    if index is not None:
        macros["INDEX"] = _INDEX[np.dtype(index)]
    options = tuple(f"-D{key}={value}" for key, value in sorted(macros.items()))
    return Launcher(_function(cupy.cuda.Device().id, file, name, options))


@functools.cache
def _processors(device: int) -> int:
    import cupy

    return int(cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"])


def sm_count() -> int:
    """Multiprocessors of the current device."""
    import cupy

    return _processors(cupy.cuda.Device().id)


@functools.cache
def _largest_shared(device: int) -> int:
    import cupy

    # CuPy asks the driver for every attribute of the device, each time
    return int(cupy.cuda.Device(device).attributes.get("MaxSharedMemoryPerBlockOptin", 48 * 1024))


def largest_shared() -> int:
    """Bytes of shared memory, static arrays included, that a block of the current device may ask for."""
    import cupy

    return _largest_shared(cupy.cuda.Device().id)


def grid1d(n: int, threads: int = THREADS, per_sm: int = 8) -> int:
    """Blocks for a loop over ``n`` entries with a stride of the whole grid: at least 1, at most what fits."""
    return max(1, min(-(-int(n) // threads), per_sm * sm_count()))
