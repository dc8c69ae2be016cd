"""Row blocks of the collections that users have."""

from typing import Any

from .blocks import LocalBlocks, RowBlocks, is_source
from .dask_blocks import DaskBlocks, is_dask


def comes_in_blocks(X: object) -> bool:
    """Whether X is a collection of Dask, or a source of blocks as a folder on disk is."""
    return isinstance(X, RowBlocks) or is_dask(X) or is_source(X)


def as_row_blocks(X: Any, y: Any = None, weight: Any = None, offset: Any = None) -> RowBlocks:
    """The blocks of X with their targets, weights and offsets."""
    return (DaskBlocks if is_dask(X) else LocalBlocks)(X, y, weight, offset)
