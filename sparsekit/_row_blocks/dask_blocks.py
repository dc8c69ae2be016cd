"""Blocks of a Dask array or data frame, reduced by its workers."""

from __future__ import annotations

import numpy as np

from .._messages import shown
from .blocks import Block, RowBlocks
from .reduction import combine, group_size, tree_sum

# groups of blocks a worker and round: with the sums of pairs at most four tasks
_GROUPS = 2


def is_dask(X: object) -> bool:
    """Whether X is a collection of Dask; asks without importing it."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


class DaskBlocks(RowBlocks):
    """Blocks of rows of a Dask array (NumPy or SciPy blocks) or data frame.

    A task gets some neighbouring blocks and a small message, and keeps nothing: where a worker dies, Dask
    reads its blocks again. Nothing is rechunked, joined or pinned.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        One chunk of columns; chunks of rows of any, or of unknown, size.
    y, weight : Dask array or series with the rows of X, array of shape (n,), one number for all rows, or None
    """

    def __init__(self, X, y=None, weight=None):
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions; got {len(X.shape)}")
        blocks = X.to_delayed()
        if hasattr(X, "columns"):
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
        self.blocks = list(np.ravel(blocks))
        self.n_blocks, self.n_columns = len(self.blocks), int(X.shape[1])
        self.client = _client()
        self.y = self._rows(y, sizes, "y")
        self.weight = self._rows(weight, sizes, "sample_weight")
        self.folds: list = [None] * self.n_blocks

    def set_folds(self, folds, sizes):
        self.folds = np.split(folds, np.cumsum(sizes)[:-1])

    def _rows(self, values, sizes, name):
        """One delayed part for each block, or None for each."""
        if not np.ndim(values):
            return [values] * self.n_blocks
        if is_dask(values):
            if sizes is not None and hasattr(values, "rechunk") and not np.isnan(values.chunks[0]).any():
                if sum(values.chunks[0]) != sum(sizes):
                    raise ValueError(f"{name} has {sum(values.chunks[0])} rows, and X has {sum(sizes)}.")
                # a target is small beside its row
                values = values.rechunk({0: sizes})
            parts = list(np.ravel(values.to_delayed()))
            if len(parts) != self.n_blocks:
                raise ValueError(
                    f"{name} has {len(parts)} chunks, and X has {self.n_blocks}: give them the same."
                )
            return parts
        values = np.asarray(values)
        if sizes is None:
            raise ValueError(
                f"the sizes of X's chunks are unknown, so {name} can't be cut alike: give {name} as a Dask "
                "array with X's chunks, or X.compute_chunk_sizes() first."
            )
        if len(values) != sum(sizes):
            raise ValueError(f"{name} has {len(values)} rows, and X has {sum(sizes)}: give one for each row.")
        return np.split(values, np.cumsum(sizes)[:-1])

    def map_reduce(self, kernel, *arguments):
        from dask import delayed  # its users alone pay for the import

        self.n_rounds += 1
        client = self.client
        if client is not None and client.status != "running":
            raise ConnectionError(f"the client of the cluster is {client.status}; its work can't go on")
        message = delayed((kernel, arguments), traverse=False)
        size = group_size(self.n_blocks, _GROUPS * _n_workers(client))
        task, pair = delayed(_of_group, pure=False), delayed(combine, pure=False)
        groups = [slice(at, at + size) for at in range(0, self.n_blocks, size)]
        rows = (self.blocks, self.y, self.weight, self.folds)
        nodes = [task(group.start, message, *(part[group] for part in rows)) for group in groups]
        while len(nodes) > 1:
            twos = [nodes[i : i + 2] for i in range(0, len(nodes), 2)]
            nodes = [pair(*two) if len(two) == 2 else two[0] for two in twos]
        return compute(nodes[0], client)


def _of_group(first, message, *rows):
    """The node of the tree above some neighbouring blocks."""
    kernel, arguments = message
    return tree_sum(
        kernel(Block(first + i, *parts), *arguments) for i, parts in enumerate(zip(*rows, strict=True))
    )


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


def _n_workers(client):
    """Threads of the cluster, or of this machine."""
    if client is None:
        from dask.system import CPU_COUNT

        return CPU_COUNT
    return max(sum(client.nthreads().values()), 1)


def compute(node, client):
    """The value of a delayed node, by the cluster or by this process."""
    from dask import config
    from dask.utils import parse_timedelta

    if client is None:
        return node.compute()
    timeout = parse_timedelta(config.get("sparsekit.timeout", "1h"))
    future = client.compute(node)
    try:
        return future.result(timeout=timeout)
    except TimeoutError as error:
        future.cancel()
        raise TimeoutError(
            f"the cluster gave no answer to one round within {shown(timeout)} s: a worker hangs, is paused "
            "for memory, or has more to read than that; dask.config.set({'sparsekit.timeout': '4h'}) waits "
            "longer."
        ) from error
