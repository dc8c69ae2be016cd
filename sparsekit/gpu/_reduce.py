"""The last step of a reduction: what the blocks of a kernel found becomes a few numbers in main memory."""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray

WARP = 32


def block_of(n: int, most: int = 256) -> int:
    """Threads of a block for a loop over n entries: whole warps, no more than there is work for."""
    return max(WARP, min(most, -(-int(n) // WARP) * WARP))


def finish(part: DeviceArray, maxima: int = 0) -> np.ndarray:
    """Sums of the columns of ``part`` (blocks, k); largest values for the bits set in ``maxima``.

    Waits for the device once.
    """
    found = part.get()
    is_largest = (maxima >> np.arange(found.shape[1])) & 1 == 1
    with np.errstate(invalid="ignore", over="ignore"):  # a solver judges what is not finite
        return np.where(is_largest, np.fmax.reduce(found, axis=0), found.sum(axis=0))
