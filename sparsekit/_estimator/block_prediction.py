"""What fitted models predict for rows in blocks: of Dask lazily, of a folder one block after another."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .._row_blocks.blocks import LocalBlocks, as_rows
from .._row_blocks.dask_blocks import DaskBlocks, is_dask
from .._row_blocks.make import as_row_blocks, comes_in_blocks
from .checks import check_names, weight_of_metric
from .offset import with_rows_offset

Method = TypeVar("Method", bound=Callable[..., Any])


def by_blocks(method: Method) -> Method:
    """Let a method that predicts, ``method(self, X, ...)``, take X in blocks too.

    For a Dask collection it is a Dask array with a chunk for each block. For a folder it is an array or a
    matrix in memory.
    """

    takes_offset = "offset" in inspect.signature(method).parameters

    @functools.wraps(method)
    def call(self, X, *args, **options):
        if not comes_in_blocks(X):
            return method(self, X, *args, **options)
        check_is_fitted(self)
        model: Any = _for_blocks(self, X)
        offset: Any = None
        if takes_offset:
            offset = args[0] if args else options.get("offset")
            if offset is None and getattr(self, "_rows_offset", None) is not None:
                model, offset = with_rows_offset(model, None), self._rows_offset
            args, options = (), {"offset": 0.0 if np.ndim(offset) else offset}
        offset = offset if np.ndim(offset) else None
        one = functools.partial(_of_block, model, method.__name__, args, options)
        if is_dask(X):
            like = method(model, _row_like(X), *args, **options)
            return _lazily(one, DaskBlocks(X, offset=offset), _chunk_sizes(X), like)
        blocks = LocalBlocks(X, offset=offset)
        parts = [
            one(X.block(i), blocks.rows(i, blocks.offset))
            for i in range(X.n_blocks)
            if X.starts[i + 1] > X.starts[i]
        ]
        return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)

    return call  # type: ignore[return-value]


def score_of_blocks(model: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
    """Accuracy, or R^2 of a regressor, of X in blocks; predictions and targets come to this process."""
    check_is_fitted(model)
    as_row_blocks(X, y, sample_weight)  # which checks that they have the rows of X
    found = model.predict(X, **({} if offset is None else {"offset": offset}))
    if is_dask(X):
        from dask import compute

        # one by one: Dask warns of arrays next to data frames
        found, y, sample_weight = (compute(part)[0] for part in (found, y, sample_weight))
    weight = weight_of_metric(sample_weight)
    weight = None if weight is None else as_rows(weight)
    score = r2_score if is_regressor(model) else accuracy_score
    return float(score(y if sp.issparse(y) else as_rows(y), found, sample_weight=weight))


def _for_blocks(model, X):
    """The model that is given the blocks of X: where X has names and its blocks have none, without them."""
    names, known = getattr(X, "feature_names", None), getattr(model, "feature_names_in_", None)
    if names is None or known is None:
        return model
    check_names(names, known)
    nameless = copy.copy(model)
    del nameless.feature_names_in_
    return nameless


def _of_block(model, name, args, options, X, offset=None):
    if not X.shape[0]:
        # scikit-learn refuses to predict nothing
        return getattr(model, name)(_row_like(X), *args, **options)[:0]
    if offset is not None:
        options = {**options, "offset": as_rows(offset)}
    return getattr(model, name)(X, *args, **options)


def _row_like(X):
    """One row of zeros of the kind that X holds, to see what is made of it."""
    meta = getattr(X, "_meta", X)
    if hasattr(meta, "columns"):  # a data frame
        return type(meta)(np.zeros((1, len(meta.columns))), columns=meta.columns)
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    zeros = np.zeros((1, X.shape[1]), dtype=dtype)
    return sp.csr_array(zeros) if sp.issparse(meta) else zeros


def _chunk_sizes(X):
    return X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * X.npartitions


def _lazily(one, blocks, sizes, like):
    from dask import array, delayed

    task = delayed(one, traverse=False)
    chunks = [
        array.from_delayed(task(part, offset), shape=(size, *like.shape[1:]), dtype=like.dtype, meta=like[:0])
        for part, offset, size in zip(blocks.blocks, blocks.offset, sizes)
    ]
    return array.concatenate(chunks, axis=0)
