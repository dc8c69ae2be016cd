"""Rows of ExtremeSoftmaxSGD, in memory or in blocks: targets checked once for all, rows block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._arrays import host_only, is_sparse
from ..._estimator.checks import check_names, check_sample_weight, in_units
from ..._estimator.labels import refuse_missing_labels
from ..._row_blocks.make import comes_in_blocks
from ..._row_blocks.reader import BlockReader
from ..solver.sgd import DataRows
from . import settings
from .targets import ExtremeTargets, check_extreme_targets, count_labels, make_rows, take_rows, used_rows


class RowsOfFit:
    """Blocks of X with their targets, as the solver reads them. A matrix in memory is one block.

    Parameters
    ----------
    model : ExtremeSoftmaxSGD
    X : as `BlockReader` takes it, or a matrix in memory or on a GPU
    y, sample_weight : of all rows
    classes, reset, grow : see `settings.check_data`
    relative : bool
        Whether only the ratios of the weights matter.

    Attributes
    ----------
    X, rows : the matrix in memory and its `DataRows`, or None
    use : ndarray of bool
        The rows that have a label and a positive weight.
    on_device : bool
        Whether X is on a GPU.
    """

    def __init__(self, model, X, y, sample_weight, classes=None, *, reset=True, grow=True, relative=True):
        if not comes_in_blocks(X):
            data, targets = settings.check_data(model, X, y, sample_weight, classes, reset, grow)
            self.X, self.on_device = data.X, data.on_device
            self.n_blocks, self.n_features, self.dtype = 1, self.X.shape[1], self.X.dtype
        else:
            self.X, self.on_device = None, False
            host_only(y=y, sample_weight=sample_weight)
            self.reader = BlockReader(X, *(_as_rows(part) for part in (y, sample_weight)))
            if not self.reader.n_rows:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={(0, self.reader.n_columns)}) while a minimum of 1 "
                    f"is required by {type(model).__name__}."
                )
            _check_columns(model, self.reader, reset)
            targets = _targets(self.reader, classes, grow)
            settings.check_settings(model, targets, classes)
            self.n_blocks, self.starts = self.reader.n_blocks, self.reader.starts
            self.n_features, self.dtype = self.reader.n_columns, self.reader.dtype
        self.model, self.use = model, used_rows(targets)
        if not self.use.any():
            raise ValueError("No row has both a label and a positive weight: there is nothing to fit.")
        if relative and targets.weight is not None:
            weight = in_units(targets.weight)[0]
            targets = replace(targets, weight=weight / weight[self.use].mean())
        self.targets = targets
        self._make_rows()

    def _make_rows(self):
        self.rows = None
        if self.X is not None:
            self.rows = make_rows(self.X, self.targets, self.model.label_choice, relative=False)

    def cast(self, dtype):
        """Give the rows another type."""
        self.dtype = dtype
        if self.X is not None and self.X.dtype != dtype:
            self.X = self.X.astype(dtype)
            self._make_rows()

    @property
    def like(self):
        """A matrix of the rows' columns and type, where they are."""
        return np.empty((0, self.n_features), dtype=self.dtype) if self.X is None else self.X

    def counts(self) -> np.ndarray:
        """How often each class is a label (n_classes,)."""
        return count_labels(self.targets, self.model.label_choice, self.use)

    def read(self, numbers: np.ndarray) -> Iterator[tuple[int, DataRows | None]]:
        """(i, rows of block i or None) for each of the numbers, in the type of ``dtype``."""
        if self.rows is not None:
            yield from ((int(i), self.rows) for i in numbers)
            return
        for i, X in self.reader.read(numbers):
            yield i, self._rows(i, X)
            del X

    def _rows(self, i, X):
        if not self.use[self.starts[i] : self.starts[i + 1]].any():
            return None
        X = X if X.dtype == self.dtype else X.astype(self.dtype)
        return make_rows(X, self._part(i), self.model.label_choice, relative=False)

    def matrix_of(self, rows: np.ndarray) -> Any:
        """The matrix of rows with these rising numbers, for which blocks that have some are read."""
        if self.X is not None:
            return take_rows(self.X, rows)
        parts = []
        for i in np.unique(np.searchsorted(self.starts, rows, side="right") - 1):
            lo, hi = np.searchsorted(rows, self.starts[i : i + 2])
            X = self.reader.block(int(i))[1][rows[lo:hi] - self.starts[i]]
            parts.append(X if X.dtype == self.dtype else X.astype(self.dtype))
        return sp.vstack(parts, format="csr") if any(map(is_sparse, parts)) else np.concatenate(parts)

    def _part(self, i):
        """Targets of block i."""
        whole, rows = self.targets, slice(self.starts[i], self.starts[i + 1])
        weight = None if whole.weight is None else whole.weight[rows]
        if whole.first is None:
            return ExtremeTargets(whole.codes[rows], None, whole.classes, weight)
        first = whole.first[rows.start : rows.stop + 1]
        return ExtremeTargets(whole.codes[first[0] : first[-1]], first - first[0], whole.classes, weight)

    def sample(self, rng: np.random.Generator) -> tuple[Any, ExtremeTargets, DataRows]:
        """(X, targets, rows) of one block: a random one, or the first where rows are taken in order."""
        if self.X is not None:
            return self.X, self.targets, self.rows
        used = np.concatenate([[0], np.cumsum(self.use)])[self.starts]
        filled = np.flatnonzero(np.diff(used))
        i = int(filled[rng.integers(len(filled))] if self.model.shuffle else filled[0])
        _, X = self.reader.block(i)
        X = X if X.dtype == self.dtype else X.astype(self.dtype)
        part = self._part(i)
        return X, part, make_rows(X, part, self.model.label_choice, relative=False)


def _as_rows(values):
    """Targets or weights whose parts can be told: arrays, matrices and what is lazy as they are."""
    if values is None or np.isscalar(values) or is_sparse(values) or hasattr(values, "to_delayed"):
        return values
    return np.asarray(values)


def _targets(reader, classes, grow):
    y = reader.y
    refuse_missing_labels(y)
    weight = check_sample_weight(reader.weight, reader.n_rows)
    return check_extreme_targets(y, weight, classes, grow)


def _check_columns(model, reader, reset):
    """Number and names of the features, noted (``reset``) or compared with those of the fit."""
    names, n = reader.feature_names, reader.n_columns
    if reset:
        model.n_features_in_ = n
        if names is not None:
            model.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
        return
    if n != model.n_features_in_:
        raise ValueError(
            f"X has {n} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input."
        )
    known = getattr(model, "feature_names_in_", None)
    if names is not None and known is not None:
        check_names(names, known)
