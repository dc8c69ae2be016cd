"""Columns of X that are needed in this process, brought here once."""

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
    cut = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
    return [sp.csr_array((X.data[kept], found[kept], cut), shape=(X.shape[0], len(columns)))]


def memory_limit() -> float:
    """Bytes that gathered columns may take: ``SPARSEKIT_MEMORY`` in GiB, or half of the machine's memory."""
    given = os.environ.get("SPARSEKIT_MEMORY")
    if given is not None:
        return float(given) * 2**30
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not on every system
        return 4.0 * 2**30


def rows_of_block(block: Block) -> list[Any]:
    """The rows themselves."""
    return [as_matrix(block.X)]


def gather_rows(blocks: RowBlocks, census: Census, needed_by: str | None = None) -> Any:
    """All of X in this process by a round, CSR or in C order; None where it is larger than `memory_limit`.

    With ``needed_by``, the name of what can't do without, that is a MemoryError.
    """
    size = float(census.counts.sum()) * (census.dtype.itemsize + (4 if census.is_sparse else 0))
    if size > memory_limit():
        if needed_by is None:
            return None
        raise MemoryError(
            f"{needed_by} needs X in memory; it takes {size / 2**30:.3g} GiB, and "
            f"{memory_limit() / 2**30:.3g} GiB are allowed: set SPARSEKIT_MEMORY (in GiB) higher, or fit to "
            "some of the rows."
        )
    parts = blocks.map_reduce(rows_of_block)
    return sp.vstack(parts, format="csr") if census.is_sparse else np.concatenate(parts)


class GatheredColumns:
    """Columns of X in this process, those that were ever asked for.

    Parameters
    ----------
    blocks : RowBlocks
    census : Census
    """

    def __init__(self, blocks: RowBlocks, census: Census) -> None:
        self.blocks, self.census = blocks, census
        self.held = np.empty(0, dtype=np.int64)
        self._parts: list[Any] = []
        self._joined: Any = None
        self._lock = threading.RLock()  # folds may ask at once

    def bytes_of(self, columns: np.ndarray) -> float:
        """Memory that columns take here."""
        index = 4 if self.census.is_sparse else 0
        return float(self.census.counts[columns].sum()) * (self.census.dtype.itemsize + index)

    def has_room(self, columns: np.ndarray) -> bool:
        """Whether columns fit into this process."""
        return self.bytes_of(columns) <= memory_limit()

    def _fetch(self, columns: np.ndarray) -> None:
        # those of the columns that are not here yet, in one round or none
        new = np.setdiff1d(columns, self.held)
        if not len(new):
            return
        room = memory_limit()
        if self.bytes_of(self.held) + self.bytes_of(new) > room:
            self._keep(columns)
            new = np.setdiff1d(columns, self.held)
        if self.bytes_of(columns) > room:
            needed, allowed = self.bytes_of(columns) / 2**30, room / 2**30
            raise MemoryError(
                f"the {len(columns)} columns that the model may need take {needed:.3g} GiB in this process, "
                f"and {allowed:.3g} GiB are allowed: set SPARSEKIT_MEMORY (in GiB) or the penalty higher, or "
                "pass float32 data."
            )
        parts = self.blocks.map_reduce(columns_of_block, new)
        if sp.issparse(parts[0]):
            part = sp.vstack(parts, format="csc")
        else:
            part = np.asfortranarray(np.concatenate(parts))
        self._parts.append(part)
        self._joined = None
        self.held = np.concatenate([self.held, new])

    def _keep(self, columns: np.ndarray) -> None:
        # forget the others
        stay = np.intersect1d(columns, self.held)
        self._parts = [self._of_held(stay)] if len(stay) else []
        self._joined, self.held = None, stay

    def matrix(self, columns: np.ndarray) -> Any:
        """X[:, columns] for sorted columns, CSC or in Fortran's order; by a round if some are not here."""
        with self._lock:
            self._fetch(columns)
            return self._of_held(columns)

    def _of_held(self, columns: np.ndarray) -> Any:
        if not self._parts:
            return np.empty((self.census.shape[0], 0), dtype=self.census.dtype)
        if self._joined is None:
            if len(self._parts) > 1 and sp.issparse(self._parts[0]):
                self._parts = [sp.hstack(self._parts, format="csc")]
            elif len(self._parts) > 1:
                self._parts = [np.hstack(self._parts)]  # which stays in Fortran's order
            self._joined = self._parts[0]
        order = np.argsort(self.held)
        at = order[np.searchsorted(self.held, columns, sorter=order)]
        if len(at) == self._joined.shape[1] and (at == np.arange(len(at))).all():
            return self._joined
        part = self._joined[:, at]
        return part if sp.issparse(part) else np.asfortranarray(part)
