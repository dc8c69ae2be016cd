"""Blocks of rows read one by one in any order, for stochastic steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._messages import shown
from .ahead import read_ahead
from .blocks import check_length, checked_matrix
from .dask_blocks import compute, is_dask
from .make import as_row_blocks


class BlockReader:
    """Blocks of a source or of a Dask collection, with the targets and weights of all rows in memory.

    Parameters
    ----------
    X : Dask array or data frame, or an object with ``shape``, ``n_blocks``, ``starts`` and ``block(i)``
    y : Dask array or series with the rows of X, array-like or sparse matrix of n rows, or None
    weight : Dask array or series, array-like of shape (n,), one number, or None

    Attributes
    ----------
    y, weight : in memory
    starts : ndarray of shape (n_blocks + 1,)
        First row of each block, and the number of rows.
    dtype : dtype
        float32 or float64: of the blocks, which must agree.
    """

    def __init__(self, X: Any, y: Any = None, weight: Any = None):
        lazy = [part if is_dask(X) and is_dask(part) else None for part in (y, weight)]
        found: Any = as_row_blocks(X, *lazy)
        self.feature_names = found.feature_names
        if is_dask(X):
            self._fetch = lambda i: compute(found.blocks[i], found.client)
            given = zip(lazy, (found.y, found.weight))
            parts = [_gathered(their, found.client) if mine is not None else None for mine, their in given]
            self.starts = _starts(X, parts)
            y, weight = (_joined(part) if part else rows for part, rows in zip(parts, (y, weight)))
        else:
            self._fetch, self.starts = X.block, found.starts
        self.n_blocks, self.n_columns = len(self.starts) - 1, int(X.shape[1])
        self.n_rows = int(self.starts[-1])
        self.y, self.weight = y, weight
        check_length(self.n_rows, y=y, sample_weight=weight)
        dtype = getattr(X, "dtype", None)
        if dtype is None:
            dtype = checked_matrix(self._fetch(0), 0, self.n_columns).dtype
        self.dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)

    def read(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """(i, block i) for each of the ``numbers`` in turn, the next one read ahead.

        Raises
        ------
        ValueError
            If a block differs from the others, or holds NaN or infinity; the message names it.
        """
        return read_ahead(self.block(int(i)) for i in numbers)

    def block(self, i: int) -> tuple[int, Any]:
        """(i, block i), C-ordered or canonical CSR, checked."""
        X, who = checked_matrix(self._fetch(i), i, self.n_columns), f"block {i} of X"
        n = int(self.starts[i + 1] - self.starts[i])
        if X.shape[0] != n:
            raise ValueError(f"{who} has {X.shape[0]} rows, where {n} were expected.")
        if X.dtype != self.dtype:
            raise ValueError(f"{who} is {X.dtype}, X is {self.dtype}: all blocks must be of one type.")
        return i, X


def _gathered(parts, client):
    from dask import delayed

    return compute(delayed(list)(parts), client)


def _starts(X, parts):
    """First rows of the chunks of X, from X or from targets in the same chunks."""
    chunks = getattr(X, "chunks", None)
    if chunks is not None and not np.isnan(chunks[0]).any():
        sizes = list(chunks[0])
    else:
        sizes = next(([part.shape[0] for part in given] for given in parts if given), None)
        if sizes is None:
            raise ValueError(
                "the sizes of X's chunks are unknown, so y can't be cut alike: give y as a Dask array with "
                "X's chunks, or X.compute_chunk_sizes() first."
            )
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def _joined(parts):
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    shapes = {np.shape(part)[1:] for part in parts}
    if len(shapes) > 1:
        raise ValueError(f"chunks of y have rows of different shapes: {shown(sorted(shapes))}")
    return np.concatenate([np.asarray(part) for part in parts])
