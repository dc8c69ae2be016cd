"""Columns and rows of blocks gathered in this process, and the memory that they may take."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from .blocks import Block, RowBlocks, as_matrix
from .census import Census


def columns_of_block(block: Block, columns: np.ndarray) -> list[Any]:
    """The rows of some columns, sorted."""
    X = as_matrix(block.X)
    if not sp.issparse(X):
        return [np.ascontiguousarray(X[:, columns])]
    position = np.full(X.shape[1], -1, dtype=np.int32)
    position[columns] = np.arange(len(columns), dtype=np.int32)
    found = position[X.indices]
    kept = found >= 0
    starts = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
    return [sp.csr_array((X.data[kept], found[kept], starts), shape=(X.shape[0], len(columns)))]


def rows_of_block(block: Block) -> list[Any]:
    """All columns."""
    return [as_matrix(block.X)]


def memory_limit() -> float:
    """Bytes that gathered columns may take: ``SPARSEKIT_MEMORY`` in GiB, or half of the machine's memory."""
    given = os.environ.get("SPARSEKIT_MEMORY")
    if given is not None:
        return float(given) * 2**30
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not on every system
        return 4.0 * 2**30


def _allow(n_bytes: float, what: str, advice: str) -> None:
    """MemoryError where that is more than `memory_limit`."""
    limit = memory_limit()
    if n_bytes > limit:
        raise MemoryError(
            f"{what} {n_bytes / 2**30:.3g} GiB in this process, and {limit / 2**30:.3g} GiB are allowed: set "
            f"SPARSEKIT_MEMORY (in GiB) {advice}."
        )


def gather_rows(blocks: RowBlocks, census: Census, needed_by: str | None = None) -> Any:
    """All of X in this process by a round, CSR or in C order; None where it is larger than `memory_limit`.

    With ``needed_by``, the name of an estimator that needs all of X, that is a MemoryError.
    """
    n_bytes = census.bytes_of(slice(None))
    if needed_by is not None:
        _allow(n_bytes, f"{needed_by} needs X in memory; it takes", "higher, or fit to some of the rows")
    elif n_bytes > memory_limit():
        return None
    parts = blocks.map_reduce(rows_of_block)
    return sp.vstack(parts, format="csr") if census.is_sparse else np.concatenate(parts)


class GatheredColumns:
    """Columns of X in this process: all that a fit has used, as far as they fit into memory.

    Parameters
    ----------
    blocks : RowBlocks
    census : Census

    Attributes
    ----------
    stored : ndarray of int
        The columns, in the order in which they came.
    """

    def __init__(self, blocks: RowBlocks, census: Census) -> None:
        self.blocks, self.census = blocks, census
        self.stored = np.empty(0, dtype=np.int64)
        self._X: Any = np.empty((census.shape[0], 0), dtype=census.dtype)  # CSC or in Fortran's order
        self._lock = threading.RLock()  # folds may gather at once

    def fits(self, columns: np.ndarray) -> bool:
        """Whether columns fit into this process."""
        return self.census.bytes_of(columns) <= memory_limit()

    def matrix(self, columns: np.ndarray) -> Any:
        """X[:, columns] for sorted columns, CSC or in Fortran's order; by a round if some are missing."""
        with self._lock:
            new = np.setdiff1d(columns, self.stored)
            if len(new):
                _allow(
                    self.census.bytes_of(columns),
                    f"the {len(columns)} columns that the model may need take",
                    "or the penalty higher, or pass float32 data",
                )
                self._gather(columns, new)
            return self._select(columns)

    def _gather(self, columns, new):
        """Add the ``new`` ones of the columns; where both do not fit, remove the others."""
        if self.census.bytes_of(self.stored) + self.census.bytes_of(new) > memory_limit():
            kept = np.intersect1d(columns, self.stored)
            self._X, self.stored = self._select(kept), kept
        parts = self.blocks.map_reduce(columns_of_block, new)
        if self.census.is_sparse:
            part = sp.vstack(parts, format="csc")
            self._X = sp.hstack([self._X, part], format="csc") if len(self.stored) else part
        else:
            part = np.asfortranarray(np.concatenate(parts))
            self._X = (
                np.hstack([self._X, part]) if len(self.stored) else part
            )  # which stays in Fortran's order
        self.stored = np.concatenate([self.stored, new])

    def _select(self, columns):
        order = np.argsort(self.stored)
        at = order[np.searchsorted(self.stored, columns, sorter=order)]
        if np.array_equal(at, np.arange(self._X.shape[1])):
            return self._X
        part = self._X[:, at]
        return part if sp.issparse(part) else np.asfortranarray(part)
