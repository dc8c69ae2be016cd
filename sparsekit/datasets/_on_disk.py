"""Rows that come in blocks: what a folder of CSR files and a Parquet file have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._messages import check_whole, shown
from .._row_blocks.ahead import read_ahead


class BlocksOnDisk(ABC):
    """Base of matrices on disk, of which one block of rows is read at a time.

    A subclass sets ``shape``, ``dtype`` and ``starts`` and has `_read_block` and `_read_y`.
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
    def _read_block(self, i: int) -> Any:
        """Rows ``starts[i]`` to ``starts[i + 1]``."""

    @abstractmethod
    def _read_y(self, i: int) -> Any:
        """Their targets, or None."""

    def block(self, i: int) -> Any:
        """Read a block of rows into memory of its own.

        Parameters
        ----------
        i : int
            Its number, below ``n_blocks``.

        Returns
        -------
        csr_matrix or ndarray of shape (starts[i + 1] - starts[i], n_features)
            Its rows; the memory is free again when it is dropped.

        Raises
        ------
        ValueError
            If the file is not as it was, or a column of a table has nulls; the message names the file.
        """
        return self._read_block(self._checked(i))

    def block_y(self, i: int) -> Any:
        """Read the targets of a block.

        Parameters
        ----------
        i : int
            Its number, below ``n_blocks``.

        Returns
        -------
        ndarray of shape (n_rows,), csr_matrix of shape (n_rows, n_labels), or None
            As ``y``, of the rows of block i.

        Raises
        ------
        ValueError
            As `block`.
        """
        return self._read_y(self._checked(i))

    def blocks(self, *, order: Iterable[int] | None = None) -> Iterator[Any]:
        """Read all blocks, one after the other; a thread reads the next one while the caller works on one.

        Parameters
        ----------
        order : iterable of int, default=None
            Numbers of the blocks, for example a permutation; 0 to ``n_blocks`` - 1 if None.

        Returns
        -------
        iterator of csr_matrix or of ndarray
            What `block` returns, of each. Two are in memory at a time, if the caller keeps none.
        """
        numbers = range(self.n_blocks) if order is None else [self._checked(i) for i in order]
        return read_ahead(map(self.block, numbers))

    def _checked(self, i: int) -> int:
        i = check_whole(i, "the number of a block", 0)
        if i >= self.n_blocks:
            raise IndexError(f"block {i} of {self.n_blocks}")
        return i

    def __getitem__(self, key: slice) -> Any:
        """Rows a to b of ``X[a:b]``, in memory."""
        if not isinstance(key, slice):
            raise TypeError(f"rows are taken by slices, X[a:b]; got {shown(key)}")
        first, last, step = key.indices(self.shape[0])
        if step != 1:
            raise ValueError(f"rows are taken one after the other; got the step {step}")
        numbers = np.flatnonzero((self.starts[:-1] < last) & (self.starts[1:] > first))
        if not numbers.size:
            return self.block(0)[:0] if self.n_blocks else np.empty((0, self.shape[1]), dtype=self.dtype)
        starts = self.starts.tolist()
        return _stacked(
            [self.block(i)[max(first - starts[i], 0) : last - starts[i]] for i in numbers.tolist()]
        )

    @property
    def y(self) -> Any:
        """Targets: ndarray of shape (n_rows,), int8 indicators of shape (n_rows, n_labels) in CSR, or None.

        They are read anew each time.
        """
        parts = [self.block_y(i) for i in range(self.n_blocks)]
        return None if not parts or parts[0] is None else _stacked(parts)

    def _described(self, what: str) -> str:
        rows, columns = self.shape
        plural = "" if self.n_blocks == 1 else "s"
        return f"{rows} rows and {columns} columns of {self.dtype} in {self.n_blocks} block{plural}, {what}"


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
