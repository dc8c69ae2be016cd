"""What a fit is given in blocks of rows, checked: the twin of `training_data` for data beyond memory.

Targets and weights come to this process, a few bytes a row; X stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from .._messages import numbers
from .._row_blocks.blocks import RowBlocks
from .._row_blocks.census import Census, take_census
from .._row_blocks.make import as_row_blocks
from .checks import apply_class_weight, check_sample_weight
from .labels import encode_labels, refuse_missing_labels


@dataclass
class BlockedMatrix:
    """X in blocks, counted and checked.

    class_weight : factor of each class' weights, or None.
    """

    blocks: RowBlocks
    census: Census
    class_weight: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.census.shape

    @property
    def dtype(self) -> np.dtype:
        return self.census.dtype

    def spread_of_norms(self, used: np.ndarray) -> float:
        """Largest over smallest norm of the columns ``used``, (p,) of bools."""
        squares = self.census.squares[used]
        squares = squares[squares > 0]
        return float(np.sqrt(squares.max() / squares.min())) if squares.size else 1.0


def _count(estimator: Any, X: Any, y: Any, sample_weight: Any) -> BlockedMatrix:
    blocks = as_row_blocks(X, y, sample_weight)
    census = take_census(blocks)
    if not census.shape[0]:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={census.shape}) while a minimum of 1 is required by "
            f"{'the path' if estimator is None else type(estimator).__name__}."
        )
    if estimator is not None:
        estimator.n_features_in_ = census.shape[1]
        if blocks.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(blocks.feature_names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    return BlockedMatrix(blocks, census)


def labels_of_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any
) -> tuple[BlockedMatrix, np.ndarray, np.ndarray | None, np.ndarray]:
    """X, codes (n,), weights (n,) or None with those of the classes, and the classes."""
    found = _count(estimator, X, y, sample_weight)
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


def numbers_of_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[BlockedMatrix, np.ndarray, np.ndarray | None]:
    """X, targets (n,), and weights (n,) or None."""
    found = _count(estimator, X, y, sample_weight)
    y = numbers(column_or_1d(found.census.y, warn=True), "y")
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return found, y, check_sample_weight(found.census.weight, found.shape[0])
