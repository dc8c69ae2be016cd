"""The first round: counts of the blocks, and checks that they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .blocks import Block, RowBlocks, as_rows, checked_matrix


@dataclass
class Census:
    """Counts over all blocks, and their targets, weights and offsets.

    shape : (n, p).
    dtype : float32 or float64.
    sizes : rows of each block.
    counts : non-zeros of each column, (p,); n for dense blocks.
    squares : sum of the squares of each column, (p,).
    is_sparse : whether blocks are compressed rows.
    y, weight : targets and weights of all rows as the user gave them, (n,), or None.
    offset : of all rows, (n,) or (n, K), or None.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    sizes: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    is_sparse: bool
    y: Any
    weight: Any
    offset: Any = None

    def bytes_of(self, columns: Any) -> float:
        """Memory that columns of all blocks take."""
        return float(self.counts[columns].sum()) * (self.dtype.itemsize + (4 if self.is_sparse else 0))


def make_census(blocks: RowBlocks) -> Census:
    """Count and check the blocks, in one round.

    Raises
    ------
    ValueError
        If a block has other columns or another type than the rest, or holds NaN or infinity, or its target
        has another length. The message names the block.
    """
    counts, squares, found = blocks.map_reduce(_of_block, blocks.n_columns)
    sizes = np.array([one["rows"] for one in found], dtype=np.int64)
    # a filter of a data frame leaves blocks without rows, of any type
    filled = np.flatnonzero(sizes)
    first = filled[0] if filled.size else 0
    kinds = [(one["is_sparse"], one["dtype"]) for one in found]
    for number in filled:
        if kinds[number] != kinds[first]:
            other, usual = (f"{'sparse' if s else 'dense'} {d}" for s, d in (kinds[number], kinds[first]))
            raise ValueError(
                f"block {number} of X is {other}, block {first} is {usual}: all must be of one type."
            )
    is_sparse, dtype = kinds[first]
    filled = [one for one in found if one["rows"]] or found
    census = Census(
        (int(sizes.sum()), blocks.n_columns), np.dtype(dtype), sizes, counts, squares, is_sparse,
        _joined(filled, "y"), _joined(filled, "weight"), _joined(filled, "offset"),
    )  # fmt: skip
    blocks.n_bytes = census.bytes_of(slice(None))
    return census


def _joined(found, name):
    parts = [one[name] for one in found if one[name] is not None]
    return np.concatenate(parts) if parts else None


def _of_block(block: Block, n_columns: int) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    who = f"block {block.number} of X"
    X = checked_matrix(block.X, block.number, n_columns)
    n, p = X.shape
    rows = {}
    for name, part in (("y", block.y), ("weight", block.weight), ("offset", block.offset)):
        part = None if part is None else as_rows(part)
        if part is not None and not np.ndim(part):
            part = np.full(n, part)
        if part is not None and len(part) != n:
            raise ValueError(f"{who} has {n} rows, and {len(part)} of {name}.")
        rows[name] = part
    if sp.issparse(X):
        counts = np.bincount(X.indices, minlength=p)
        squares = np.bincount(X.indices, weights=np.square(X.data, dtype=np.float64), minlength=p)
    else:
        counts, squares = np.full(p, n), np.einsum("ij,ij->j", X, X, dtype=np.float64)
    info = dict(rows=n, dtype=X.dtype.name, is_sparse=sp.issparse(X), **rows)
    return counts.astype(np.float64), squares, [info]
