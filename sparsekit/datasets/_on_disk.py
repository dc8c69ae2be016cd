"""Rows that come in blocks: what a folder of CSR files and a Parquet file have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import check_whole, shown
from .._row_blocks.ahead import read_ahead


class BlocksOnDisk(ABC):
    """Base of matrices on disk, of which one block of rows is read at a time.

    A subclass sets ``shape``, ``dtype`` and ``starts`` and has `block`.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    starts: NDArray[np.int64]
    ndim = 2

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    @abstractmethod
    def block(self, i: int) -> Any:
        """Read rows ``starts[i]`` to ``starts[i + 1]``."""

    def blocks(self, *, order: Iterable[int] | None = None, prefetch: int = 1) -> Iterator[Any]:
        """Read all blocks, one after the other; a thread reads ahead.

        Parameters
        ----------
        order : iterable of int, default=None
            Numbers of the blocks, for example a permutation; 0 to ``n_blocks`` - 1 if None.
        prefetch : int, default=1
            How many blocks are read while the caller works on one; 0 reads each when it is asked for.
            ``prefetch`` + 1 blocks are in memory at a time, if the caller keeps none.

        Returns
        -------
        iterator of csr_matrix or of ndarray
            What `block` returns, of each.
        """
        prefetch = check_whole(prefetch, "prefetch", 0)
        numbers = range(self.n_blocks) if order is None else [self._checked(i) for i in order]
        found = map(self.block, numbers)
        return read_ahead(found, prefetch) if prefetch else found

    def _checked(self, i: int) -> int:
        i = check_whole(i, "the number of a block", 0)
        if i >= self.n_blocks:
            raise IndexError(f"block {i} of {self.n_blocks}")
        return i

    def _rows_between(self, key: slice) -> list[Any]:
        """The blocks' parts that ``self[a:b]`` consists of."""
        if not isinstance(key, slice):
            raise TypeError(f"rows are taken by slices, X[a:b]; got {shown(key)}")
        first, last, step = key.indices(self.shape[0])
        if step != 1:
            raise ValueError(f"rows are taken one after the other; got the step {step}")
        last = max(first, last)
        parts = []
        for i in range(int(np.searchsorted(self.starts, first, side="right")) - 1, self.n_blocks):
            start, stop = int(self.starts[i]), int(self.starts[i + 1])
            if start >= last:
                break
            if stop > first:
                parts.append(self.block(i)[max(first - start, 0) : last - start])
        return parts

    def _described(self, what: str) -> str:
        rows, columns = self.shape
        plural = "" if self.n_blocks == 1 else "s"
        return f"{rows} rows and {columns} columns of {self.dtype} in {self.n_blocks} block{plural}, {what}"
