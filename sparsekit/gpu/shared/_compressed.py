"""Whether the arrays of a CSR or CSC matrix on the GPU describe one; the version of that in ``_cython``."""

from __future__ import annotations

from typing import Any


def _first(is_fault: Any) -> int:
    fault = int(is_fault.argmax())
    return fault if bool(is_fault[fault]) else -1


def index_fault(indices: Any, n: int) -> int:
    """The first position of an index that is not one of 0 .. n - 1, or -1. Waits for the device."""
    # as unsigned numbers negative ones are large
    return _first(indices.view(f"u{indices.itemsize}") >= n) if indices.size else -1


def pointer_fault(indptr: Any, n_entries: int) -> int:
    """The first pointer that is not 0 (the first of all), falls, or is beyond ``n_entries``; or -1."""
    if not indptr.size or indptr[0] != 0:
        return 0
    before, after = indptr[:-1], indptr[1:]
    fault = _first((after < before) | (after > n_entries)) if after.size else -1
    return fault + 1 if fault >= 0 else -1
