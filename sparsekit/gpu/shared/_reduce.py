"""Passes over n entries: launches, and reductions whose blocks' parts become a few numbers in main memory."""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ._compile import THREADS, grid1d, kernel

WARP = 32


def block_of(n: int) -> int:
    """Threads of a block for a loop over n entries: whole warps, no more than there is work for."""
    return max(WARP, min(THREADS, -(-int(n) // WARP) * WARP))


def over(file: str, name: str, n: int, args: tuple[object, ...]) -> None:
    """Run the kernel ``name`` of ``file``.cu over n entries."""
    threads = block_of(n)
    kernel(file, name)(grid1d(n, threads), threads, args)


def reduced(
    file: str, name: str, n: int, args: tuple[object, ...], like: DeviceArray, k: int = 1
) -> DeviceArray:
    """Run it with an array as its last argument: k numbers of each block, (blocks, k), for `finish`."""
    part = np.empty((grid1d(n, block_of(n)), k), like=like)
    over(file, name, n, (*args, part))
    return part


def finish(part: DeviceArray, maxima: int = 0) -> np.ndarray:
    """Sums of the columns of ``part`` (blocks, k); largest values for the bits set in ``maxima``.

    Waits for the device once.
    """
    found = part.get()
    is_largest = (maxima >> np.arange(found.shape[1])) & 1 == 1
    with np.errstate(invalid="ignore", over="ignore"):  # a solver judges what is not finite
        return np.where(is_largest, np.fmax.reduce(found, axis=0), found.sum(axis=0))
