"""The last step of a reduction: what the blocks of a kernel found becomes a few numbers in main memory."""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray
from ._compile import kernel

WARP = 32


def block_of(n: int, most: int = 256) -> int:
    """Threads of a block for a loop over n entries: whole warps, no more than there is work for."""
    return max(WARP, min(most, -(-int(n) // WARP) * WARP))


def finish_on_device(part: DeviceArray, maxima: int = 0) -> DeviceArray:
    """Sums of the columns of ``part`` (blocks, k); largest values for the bits set in ``maxima``."""
    if len(part) == 1:
        return part[0]
    out = np.empty_like(part[0])
    launch = kernel("reduce", "sk_reduce_parts")
    launch(1, block_of(len(part)), (part, len(part), part.shape[1], maxima, out))
    return out


def finish(part: DeviceArray, maxima: int = 0) -> np.ndarray:
    """The same in main memory, which waits for the device once."""
    return finish_on_device(part, maxima).get()
