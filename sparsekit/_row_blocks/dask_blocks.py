"""Blocks of a Dask array or data frame, reduced by its workers."""

from __future__ import annotations

import asyncio
from functools import partial

import numpy as np

from .._linalg.threads import blas_threads
from .._messages import shown
from .ahead import read_ahead
from .blocks import Block, RoundError, RowBlocks, check_length, sum_over
from .recipes import as_recipes, made
from .reduction import BLOCK_BYTES, combine, group_size

# Groups of blocks for each thread and round: with the sums of pairs at most four tasks.
GROUPS = 2


def is_dask(X: object) -> bool:
    """Whether X is a collection of Dask; does not import Dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


class DaskBlocks(RowBlocks):
    """Blocks of rows of a Dask array (NumPy or SciPy blocks) or data frame.

    A task gets some neighbouring blocks and a small message, and has no state: where a worker dies, Dask
    reads its blocks again. Where possible it gets them as recipes, see `recipes`, and makes them in turn. Of
    blocks that are in the cluster's memory, or have steps in common, it gets fewer. X is not rechunked,
    joined or pinned.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        One chunk of columns; chunks of rows of any, or of unknown, size.
    y, weight : Dask array or series with the rows of X, array of shape (n,), one number for all rows, or None
    offset : the same, or a Dask array or data frame of K columns, or of shape (n, K)
    """

    def __init__(self, X, y=None, weight=None, offset=None):
        if not hasattr(X, "shape"):
            raise TypeError(f"X must be a Dask array or data frame; got {type(X).__name__}")
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions; got {len(X.shape)}")
        blocks = X.to_delayed()
        self.is_frame = hasattr(X, "columns")
        if self.is_frame:
            self.feature_names = list(X.columns)
            if not all(isinstance(name, str) for name in self.feature_names):
                self.feature_names = None
            sizes = None
        else:
            if blocks.shape[1] != 1:
                raise ValueError(
                    f"X is cut into {blocks.shape[1]} chunks of columns; a row must lie in one chunk: "
                    "X.rechunk({1: -1})."
                )
            sizes = None if np.isnan(X.chunks[0]).any() else X.chunks[0]
        if X.shape[1] != X.shape[1]:
            raise ValueError("the number of columns of X is unknown: X.compute_chunk_sizes() counts them.")
        self.blocks = list(np.ravel(blocks))
        self.n_blocks, self.n_columns = len(self.blocks), int(X.shape[1])
        self.client = _client()
        self.y = self._rows(y, sizes, "y")
        self.weight = self._rows(weight, sizes, "sample_weight")
        self.offset = self._rows(offset, sizes, "offset")
        self.folds: list = [None] * self.n_blocks
        given = ((X, self.blocks), (y, self.y), (weight, self.weight), (offset, self.offset))
        self._given = [_for_tasks(collection, parts, self.client) for collection, parts in given]

    def set_folds(self, folds, sizes):
        self.folds = np.split(folds, np.cumsum(sizes)[:-1])

    def _rows(self, values, sizes, name):
        """One delayed part for each block, or None for each."""
        if not np.ndim(values):
            return [values] * self.n_blocks
        if is_dask(values):
            if sizes is not None and hasattr(values, "rechunk") and not np.isnan(values.chunks[0]).any():
                check_length(sum(sizes), **{name: values})
                # a target is much smaller than its row
                values = values.rechunk({0: sizes, **dict.fromkeys(range(1, values.ndim), -1)})
            parts = list(np.ravel(values.to_delayed()))
            if len(parts) != self.n_blocks:
                raise ValueError(
                    f"{name} has {len(parts)} chunks, and X has {self.n_blocks}: give them the same."
                )
            return parts
        values = np.asarray(values)
        if sizes is None:
            frame, parts = self.is_frame, "partitions" if self.is_frame else "chunks"
            raise ValueError(
                f"the sizes of X's {parts} are unknown, so {name} can't be cut alike: give {name} as a Dask "
                f"{'series' if frame else 'array'} with X's {parts}"
                f"{'' if frame else ', or X.compute_chunk_sizes() first'}."
            )
        check_length(sum(sizes), **{name: values})
        return np.split(values, np.cumsum(sizes)[:-1])

    def map_reduce(self, kernel, *arguments):
        from dask import delayed  # imported only where it is used

        self.n_rounds += 1
        client = self.client
        if client is not None and client.status != "running":
            raise RoundError(f"the client of the cluster is {client.status}.")
        message = delayed((kernel, arguments), traverse=False)
        size = self._group_size(client)
        task, pair = delayed(_of_group, pure=False), delayed(combine, pure=False)
        groups = [slice(at, at + size) for at in range(0, self.n_blocks, size)]
        rows = (*self._given, self.folds)
        nodes = [task(group.start, message, *(part[group] for part in rows)) for group in groups]
        while len(nodes) > 1:
            twos = [nodes[i : i + 2] for i in range(0, len(nodes), 2)]
            nodes = [pair(*two) if len(two) == 2 else two[0] for two in twos]
        return compute(nodes[0], client)

    def _group_size(self, client):
        size = group_size(self.n_blocks, GROUPS * _n_threads(client))
        if isinstance(self._given[0][0], partial):
            return size
        if self.n_bytes is None:  # the first round counts them
            return 1
        while size > 1 and size * self.n_bytes > BLOCK_BYTES * self.n_blocks:
            size //= 2
        return size


def _for_tasks(collection, parts, client):
    """Parts of a collection as recipes; as they are where it is, in part, in the cluster's memory."""
    if client is not None and is_dask(collection):
        from distributed import futures_of

        if futures_of(collection):
            return parts
    recipes = as_recipes(parts)
    return parts if recipes is None else recipes


def _of_group(first, message, *rows):
    """The node of the tree above some neighbouring blocks."""
    kernel, arguments = message
    blocks = (Block(first + i, *map(made, part)) for i, part in enumerate(zip(*rows, strict=True)))
    if isinstance(rows[0][0], partial):
        blocks = read_ahead(blocks)
    with blas_threads(1):  # Dask has a thread for each processor
        return sum_over(blocks, kernel, arguments)


def _client():
    """The user's client of `distributed`, or None."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _n_threads(client):
    """Threads of the cluster, or of this machine."""
    if client is None:
        from dask.system import CPU_COUNT

        return CPU_COUNT
    try:
        return max(sum(client.nthreads().values()), 1)
    except OSError as error:
        raise RoundError(f"the cluster's scheduler can't be reached: {error}") from error


def compute(node, client):
    """The value of a node; a RoundError where the cluster or the storage failed."""
    if client is None:
        try:
            return node.compute()
        except OSError as error:
            raise RoundError(f"a block could not be read: {error}") from error
    from dask import config
    from dask.utils import parse_timedelta
    from distributed.scheduler import KilledWorker

    timeout = parse_timedelta(config.get("sparsekit.timeout", "1h"))
    future = None
    try:
        future = client.compute(node)
        return future.result(timeout=timeout)
    except (Exception, asyncio.CancelledError) as error:
        # an error of the task itself, unless workers died of it or it could not read
        if future is not None and future.status == "error":
            if isinstance(error, KilledWorker):
                raise RoundError(f"workers died, one after another: {error}") from error
            if isinstance(error, OSError):
                raise RoundError(f"a block could not be read: {error}") from error
            raise
        if client.status != "running":
            raise RoundError(f"the client of the cluster is {client.status}.") from error
        if future is not None:
            future.cancel()
        if isinstance(error, TimeoutError):
            raise RoundError(
                f"the cluster gave no answer to one round within {shown(timeout)} s: a worker hangs, is "
                "paused for memory, or has more to read. dask.config.set({'sparsekit.timeout': '4h'}) "
                "waits longer."
            ) from error
        raise RoundError(f"the cluster dropped a round: {type(error).__name__}: {error}") from error
