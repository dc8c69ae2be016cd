"""What a fit is given in blocks of rows, checked: `training_data` for data beyond memory.

Targets and weights come to this process, a few bytes a row; X stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_estimator_name, column_or_1d

from .._messages import numbers
from .._row_blocks.blocks import RowBlocks
from .._row_blocks.census import Census, make_census
from .._row_blocks.gather import gather_rows
from .._row_blocks.make import as_row_blocks
from .checks import apply_class_weight, check_sample_weight
from .labels import encode_labels, refuse_missing_labels
from .targets import Targets, check_targets


@dataclass
class BlockedMatrix:
    """X in blocks, counted and checked.

    class_weight : factor of each class' weights, or None.
    """

    blocks: RowBlocks
    census: Census
    class_weight: np.ndarray | None = None

    def in_memory(self, needed_by: str | None = None) -> Any:
        """All of it, see `gather_rows`."""
        return gather_rows(self.blocks, self.census, needed_by)

    @property
    def shape(self) -> tuple[int, int]:
        return self.census.shape

    @property
    def dtype(self) -> np.dtype:
        return self.census.dtype


def _count(estimator: Any, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> BlockedMatrix:
    """X, whose names an estimator gets; ``estimator`` may be the name of a function."""
    name = _check_estimator_name(estimator)
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    blocks = as_row_blocks(X, y, sample_weight, offset)
    census = make_census(blocks)
    if not np.ndim(offset):
        census.offset = offset  # whatever the shape of others
    if not census.shape[0]:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={census.shape}) while a minimum of 1 is required by {name}."
        )
    if not isinstance(estimator, str):
        estimator.n_features_in_ = census.shape[1]
        if blocks.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(blocks.feature_names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    return BlockedMatrix(blocks, census)


def gathered_data(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """X, y, the weights, and names (p,) or None, all in memory; MemoryError where X is too large."""
    name = type(estimator).__name__
    found = _count(name, X, y, sample_weight)
    names = found.blocks.feature_names
    X = found.in_memory(name)
    return X, found.census.y, found.census.weight, None if names is None else np.asarray(names, dtype=object)


def labels_of_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any, offset: Any = None
) -> tuple[BlockedMatrix, np.ndarray, np.ndarray | None, np.ndarray]:
    """X, codes (n,), weights (n,) or None with those of the classes, and the classes.

    The offset of all rows is then in the census.
    """
    found = _count(estimator, X, y, sample_weight, offset)
    refuse_missing_labels(found.census.y)
    y = column_or_1d(found.census.y, warn=True)
    own = check_sample_weight(found.census.weight, found.shape[0])
    classes, codes = encode_labels(y, stacklevel=6)
    weight = apply_class_weight(class_weight, classes, codes, own)
    if class_weight is not None and weight is not None:
        found.class_weight = _factors(codes, len(classes), own, weight)
    return found, codes, weight, classes


def _factors(codes, n_classes, own, weight):
    """What turned each class' own weights into its weights; one for a class that has none."""
    factors = np.ones(n_classes)
    seen = np.arange(len(codes)) if own is None else np.flatnonzero(own > 0)
    present, first = np.unique(codes[seen], return_index=True)
    at = seen[first]
    factors[present] = weight[at] / (1.0 if own is None else own[at])
    return factors


def distributions_of_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any
) -> tuple[Any, Targets]:
    """X, gathered where it fits into memory, and the targets of all rows."""
    found = _count(estimator, X, y, sample_weight)
    y, own = found.census.y, check_sample_weight(found.census.weight, found.shape[0])
    if y.ndim == 1:
        refuse_missing_labels(y)
    targets = check_targets(y, own, class_weight, stacklevel=7)
    X = found.in_memory(None)
    if X is not None:
        return X, targets
    if class_weight is not None:
        if targets.multilabel:
            raise ValueError("class_weight with a matrix y needs X in memory: fold it into sample_weight.")
        found.class_weight = _factors(targets.values, len(targets.classes), own, targets.weight)
    return found, targets


def numbers_of_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, offset: Any = None
) -> tuple[BlockedMatrix, np.ndarray, np.ndarray | None]:
    """X, targets (n,), and weights (n,) or None; the offset of all rows is in the census."""
    found = _count(estimator, X, y, sample_weight, offset)
    y = numbers(column_or_1d(found.census.y, warn=True), "y")
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return found, y, check_sample_weight(found.census.weight, found.shape[0])
