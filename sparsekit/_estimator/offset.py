"""Offsets: what is added to each row's score X w + b, given to fits and to predictions alike."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any

import numpy as np

from .._arrays import aligned, is_device, namespace
from .._linalg.special import largest
from .._messages import shown
from .._typing import EitherArray, EitherMatrix, Offset
from .checks import array_of, in_type
from .device_checks import check_finite

# a larger one could not be added to another without an overflow, or be squared
_LARGEST = 1e150


def check_offset(offset: Offset, X: EitherMatrix, n_outputs: int = 1) -> EitherArray | None:
    """The offset of a fit or of scores as float64 where X is, (n,) or of several outputs (n, n_outputs).

    None stays; a number is the same for all.

    Raises
    ------
    ValueError
        If the shape does not fit, or an entry is NaN, infinite or beyond 1e150.
    TypeError
        If it is not where X is.
    """
    if offset is None:
        return None
    n = X.shape[0]
    shape = (n,) if n_outputs == 1 else (n, n_outputs)
    xp = namespace(X=X, offset=offset)
    if isinstance(offset, Real):
        offset = xp.full(shape, _finite_number(offset))
    elif is_device(offset):
        if offset.dtype.kind not in "fiub":
            raise ValueError(f"offset must hold real numbers; its dtype is {offset.dtype}")
        offset = xp.ascontiguousarray(offset.astype(np.float64, copy=False))
    else:
        offset = array_of(offset, "offset", ensure_min_samples=0)
    if offset.shape != shape:
        each = "one number a row of X" if n_outputs == 1 else "a row for each of X and a column a class"
        raise ValueError(f"offset.shape == {offset.shape}, expected {shape}: {each}.")
    if is_device(offset):
        check_finite(offset, "offset")
    _finite_number(largest(np.abs(offset)))
    return aligned(offset)


def _finite_number(offset):
    if not abs(float(offset)) <= _LARGEST:
        raise ValueError(f"offset must be finite and at most {_LARGEST:g} in size; got {shown(offset)}.")
    return float(offset)


def offset_of_scores(model: Any, offset: Offset) -> Offset:
    """What a prediction adds to X w + b, or None, which a model that was fitted with an offset refuses."""
    if offset is None:
        offset = getattr(model, "_rows_offset", None)
    if offset is None and getattr(model, "needs_offset_", False):
        raise ValueError(
            f"this {type(model).__name__} was fitted with an offset and predicts with one. Pass the offset "
            "of these rows, or offset=0. needs_offset_ = False makes zero the default."
        )
    return offset


def add_offset(scores: EitherArray, offset: Offset) -> EitherArray:
    """``scores`` (n,) or (n, K) plus the offset, in the type of the scores."""
    if offset is None:
        return scores
    if isinstance(offset, Real):  # of Dask the scores may be
        return scores + scores.dtype.type(_finite_number(offset))
    values: Any = check_offset(offset, scores, 1 if scores.ndim == 1 else scores.shape[1])
    return in_type(scores.astype(np.float64, copy=False) + values, scores.dtype)


def with_rows_offset(model: Any, offset: Offset) -> Any:
    """A shallow copy of ``model`` for scorers, which cannot hand on the ``offset`` of the rows they score."""
    bound = copy.copy(model)
    bound._rows_offset = offset
    return bound
