"""How kernels that keep a row in registers are launched: threads a row, entries a thread, wide reads."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import DTypeLike

from ..._typing import DeviceArray
from ..shared._compile import Launcher, kernel

# bytes of the longest row that one block holds: a block of 512, 32 entries a thread in float32, 16 in float64
LONGEST_BYTES = 64 * 1024
_WARP_LONGEST = 1024  # entries of the longest row that a warp holds
_BLOCK = 128  # threads of a block whose warps hold rows of their own
# a part of a longer row: two blocks of 512 threads with 16 entries each fit a multiprocessor
_PART_BYTES = 32 * 1024


class Shape(NamedTuple):
    """Lanes that hold a row together (0: a block), entries a thread, threads of a block."""

    lanes: int
    each: int
    threads: int


def shape(K: int, itemsize: int) -> Shape | None:
    """How a row of K entries is stored; None where it is too long for a block."""
    if K <= _WARP_LONGEST and K * itemsize <= LONGEST_BYTES:
        # few entries a lane: fewer registers; many: fewer steps of a sum over lanes
        narrow = {4: 32, 8: 256}[itemsize]
        each = 8 if narrow >= K else 16 if K <= 512 else 32
        lanes = 1
        while lanes * each < K:
            lanes *= 2
        return Shape(lanes, each, _BLOCK)
    if K * itemsize > LONGEST_BYTES:
        return None
    each = 16 if itemsize == 8 or K <= 8192 else 32
    return Shape(0, each, 32 * -(-K // (32 * each)))


def parts(K: int, itemsize: int) -> tuple[int, int, Shape]:
    """Number of parts of a row that is too long, entries of one, and how a block holds it."""
    longest = min(_PART_BYTES, LONGEST_BYTES) // itemsize
    n = -(-K // longest)
    chunk = 4 * -(-K // (4 * n))  # parts begin where a wide read may
    return -(-K // chunk), chunk, Shape(0, 16, 32 * -(-chunk // (32 * 16)))


def step(rows: DeviceArray) -> int:
    """Entries from one row to the next; those of a row must be neighbours."""
    if rows.shape[1] > 1 and rows.strides[1] != rows.itemsize:
        raise ValueError(f"entries of a row must be neighbours in memory; got strides {rows.strides}")
    return int(rows.strides[0] // rows.itemsize)


def neighbours(rows: DeviceArray) -> DeviceArray:
    """``rows`` with entries of a row as neighbours and rows whole entries apart: itself or a copy."""
    if (rows.shape[1] == 1 or rows.strides[1] == rows.itemsize) and rows.strides[0] % rows.itemsize == 0:
        return rows
    return rows.copy(order="C")


def wide(K: int, *arrays: DeviceArray) -> int:
    """Entries that may be read or written at once in all arrays: those of 16 bytes, or 1."""
    size = 16 // arrays[0].itemsize
    aligned = all(x.data.ptr % 16 == 0 and (len(x) == 1 or x.strides[0] % 16 == 0) for x in arrays)
    return size if K % size == 0 and aligned else 1


def row_kernel(file: str, name: str, real: DTypeLike, held: Shape, wide: int, **defines: int) -> Launcher:
    """Kernel ``name`` of ``file``.cu for rows stored so."""
    macros = {"LANES": held.lanes or 32, "EACH": held.each, "WIDE": wide, **defines}
    return kernel(file, name, real=real, defines=macros)
