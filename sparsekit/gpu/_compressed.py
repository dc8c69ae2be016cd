"""Whether the arrays of a CSR or CSC matrix on the GPU describe one; the twin of ``_cython._compressed``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._compile import grid1d, kernel
from ._reduce import block_of

# above every place
_NOWHERE = np.iinfo(np.int64).max


def _first(name: str, values: Any, limit: int) -> int:
    threads = block_of(values.size)
    first: Any = np.empty(1, dtype=np.uint64, like=values)
    first[...] = _NOWHERE
    launch = kernel("compressed", name, index=values.dtype)
    launch(grid1d(values.size, threads), threads, (values, values.size, limit, first))
    found = int(first.get()[0])
    return -1 if found == _NOWHERE else found


def index_fault(indices: Any, n: int) -> int:
    """The first place of an index that is not one of 0 .. n - 1, or -1. Waits for the device."""
    return _first("sk_index_fault", indices, n) if indices.size else -1


def pointer_fault(indptr: Any, n_entries: int) -> int:
    """The first pointer that is not 0 (the first of all), falls, or is beyond ``n_entries``; or -1."""
    return _first("sk_pointer_fault", indptr, n_entries) if indptr.size else 0
