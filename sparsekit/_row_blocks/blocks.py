"""Data in blocks of rows: its protocol, and blocks that this process reads itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._arrays import aligned
from .._linalg.structure import canonical, check_sparse
from .._messages import shown
from .ahead import read_ahead
from .reduction import tree_sum


class RoundError(RuntimeError):
    """A pass over the blocks failed because of the cluster or the storage.

    Attributes
    ----------
    result : scipy.optimize.OptimizeResult or None
        The solver's last iterate, if there is one.
    """

    result: Any = None


@dataclass
class Block:
    """Some rows: X (rows, p); targets, weights and offsets as the user gave them, and folds, or None."""

    number: int
    X: Any
    y: Any = None
    weight: Any = None
    offset: Any = None
    fold: Any = None


class RowBlocks(ABC):
    """Rows of X in blocks, with a target and a weight for each row.

    Attributes
    ----------
    n_blocks : int
    n_columns : int
    feature_names : list of str or None
    n_rounds : int
        Passes over the blocks so far.
    n_bytes : float or None
        Memory of all blocks; None before the census.
    """

    n_blocks: int
    n_columns: int
    feature_names: list[str] | None = None
    n_rounds = 0
    n_bytes: float | None = None

    @abstractmethod
    def set_folds(self, folds: np.ndarray, sizes: np.ndarray) -> None:
        """Give each row an integer, (n,): its bit k is set where the training part of fold k lacks the row.

        ``sizes`` are the numbers of rows of the blocks.
        """

    @abstractmethod
    def map_reduce(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """The combination of ``kernel(block, *arguments)`` over the blocks, by `reduction.combine`.

        The kernel is a function of a module without state: it may run in any process, and twice. The order of
        the sums depends on the number of blocks alone.
        """


class LocalBlocks(RowBlocks):
    """Blocks that this process reads, one after another and one ahead.

    Parameters
    ----------
    source : object
        Has ``shape``, ``n_blocks``, ``starts`` (n_blocks + 1,) and ``block(i)``, a matrix of these rows.
    y, weight : array of shape (n,), one number for all rows, or None
    offset : the same, or of shape (n, K)
    """

    def __init__(self, source, y=None, weight=None, offset=None):
        self.source = source
        self.folds: Any = None
        self.offset: Any = None if offset is None else np.asarray(offset)
        self.y: Any = None if y is None else np.asarray(y)
        self.weight: Any = None if weight is None else np.asarray(weight)
        self.n_blocks, self.n_columns = int(source.n_blocks), int(source.shape[1])
        names = getattr(source, "feature_names", None)
        self.feature_names = None if names is None else list(names)
        self.starts = np.asarray(source.starts, dtype=np.int64)
        check_length(int(self.starts[-1]), y=self.y, sample_weight=self.weight, offset=self.offset)

    def set_folds(self, folds, sizes):
        self.folds = folds

    def map_reduce(self, kernel, *arguments):
        self.n_rounds += 1
        return sum_over(read_ahead(map(self._read, range(self.n_blocks))), kernel, arguments)

    def rows(self, i: int, values: Any) -> Any:
        """The part of values by row that belongs to block i; one number is that of all rows."""
        return values[int(self.starts[i]) : int(self.starts[i + 1])] if np.ndim(values) else values

    def _read(self, i):
        parts = (self.rows(i, part) for part in (self.y, self.weight, self.offset, self.folds))
        try:
            X = self.source.block(i)
        except OSError as error:
            raise RoundError(f"block {i} of X could not be read: {error}") from error
        return Block(i, X, *parts)


def sum_over(blocks: Generator[Block], kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The combination of ``kernel(block, *arguments)`` over blocks that are made one after another."""
    with closing(blocks):  # the thread that reads ahead ends also where a kernel fails
        return tree_sum(_leaves(blocks, kernel, arguments))


def _leaves(blocks, kernel, arguments):
    for block in blocks:
        leaf = kernel(block, *arguments)
        del block  # or two blocks and the next one would be in memory
        yield leaf


def check_length(n_rows: int, **values: Any) -> None:
    """ValueError where values by row, under their names, are not as many as the rows of X."""
    for name, rows in values.items():
        n = n_rows if not np.ndim(rows) and not sp.issparse(rows) else rows.shape[0]
        if n != n_rows:
            raise ValueError(f"{name} has {n} rows, and X has {n_rows}: give one for each row.")


def as_rows(values: Any) -> Any:
    """A block's values by row, also of a data frame: (n,) where there is one column. One number stays one."""
    if not np.ndim(values):
        return values
    values = np.asarray(values)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def is_source(X: object) -> bool:
    """Whether X has the attributes that `LocalBlocks` reads."""
    return all(hasattr(X, name) for name in ("n_blocks", "starts", "block", "shape"))


def as_matrix(X: Any) -> Any:
    """A block for the kernels: C-ordered or canonical CSR, float32 or float64; others are converted."""
    if hasattr(X, "to_numpy"):  # a data frame
        X = X.to_numpy()
    rows: Any = X if sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"a block of X must be a matrix; got an array of shape {shown(rows.shape)}")
    if sp.issparse(X):
        return canonical(_as_float(X.tocsr()))
    return aligned(np.ascontiguousarray(_as_float(rows)))


def checked_matrix(X: Any, number: int, n_columns: int) -> Any:
    """`as_matrix` of a block that is not validated yet.

    Raises
    ------
    ValueError
        If it is no matrix of numbers, has another number of columns than X, or holds NaN or infinity. The
        message names the block.
    """
    who = f"block {number} of X"
    X = check_sparse(X, who)
    try:
        X = as_matrix(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who} is no matrix of numbers: {error}") from error
    if X.shape[1] != n_columns:
        raise ValueError(f"{who} has {X.shape[1]} columns, and X has {n_columns}.")
    values = X.data if sp.issparse(X) else X
    with np.errstate(all="ignore"):  # if the sum is finite, all are
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise ValueError(f"{who} contains {'NaN' if np.isnan(values).any() else 'infinity'}.")
    return X


def _as_float(X):
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
