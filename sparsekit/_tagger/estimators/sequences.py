"""Sequences as users have them, as one matrix of all positions; their labels, as codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Number, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._arrays import host_only
from ..._estimator.checks import apply_class_weight, as_kernel_input, check_sample_weight
from ..._estimator.labels import refuse_missing_labels
from ..._linalg.structure import check_sparse
from ..._messages import shown

ONE_OF = "a list of dicts of features (one a position), a sparse matrix or an array (n_positions, n_features)"

_VALUES = "the feature {key} must be a string, a number, a bool or a list of strings"


@dataclass
class Positions:
    """X (N, p) of all positions, starts (S + 1,) of the sequences, and the names of features that were
    given."""

    X: Any
    starts: np.ndarray
    names: np.ndarray | None = None


def read(X: Any, names: np.ndarray | None = None, n_features: int | None = None) -> Positions:
    """All positions of a list of sequences.

    ``names`` and ``n_features`` are those of a fitted model: features that are not among them are left out.
    Without them every feature of X gets a column, in the order of the names.
    """
    if isinstance(X, (str, bytes, Mapping)) or sp.issparse(X) or not hasattr(X, "__len__"):
        raise TypeError(f"X must be a list of sequences, each {ONE_OF}; got {type(X).__name__}.")
    if hasattr(X, "columns"):
        raise TypeError("X must be a list of sequences; a data frame is one: pass a list with one for each.")
    X = [_plain(sequence) for sequence in X]
    lengths, kinds = [], set()
    for i, sequence in enumerate(X):
        host_only(X=sequence)
        if sp.issparse(sequence) or (hasattr(sequence, "shape") and hasattr(sequence, "dtype")):
            if len(sequence.shape) != 2:
                raise ValueError(f"X[{i}] must be {ONE_OF}; got an array of shape {sequence.shape}.")
            kinds.add("matrix")
            lengths.append(sequence.shape[0])
            continue
        if isinstance(sequence, (str, bytes, Mapping)) or not hasattr(sequence, "__len__"):
            hint = " If X is one sequence, pass [X]." if isinstance(sequence, Mapping) else ""
            raise TypeError(f"X[{i}] must be {ONE_OF}; got {type(sequence).__name__}.{hint}")
        lengths.append(len(sequence))
        if len(sequence):
            kinds.add("dicts" if not _is_row(sequence[0]) else "matrix")
    if len(kinds) > 1:
        raise ValueError("X must have dicts of features in all sequences or in none; some have arrays.")
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if n_features is not None:
        kinds = kinds or {"matrix" if names is None else "dicts"}
        if ("dicts" in kinds) != (names is not None):
            here, there = "dicts of features", "matrices or arrays of numbers"
            wanted, got = (there, here) if names is None else (here, there)
            raise ValueError(
                f"X must hold {wanted}, as in fit; got {got}. Make its features as those of fit were made, "
                f"or fit again on {got}."
            )
    if "dicts" in kinds:
        matrix, names = _from_dicts(X, names)
    else:
        matrix = _stacked(X, n_features)
    return Positions(matrix, starts, names)


def _plain(sequence):
    """Data frames as dicts, one a row; columns of objects (pandas, NumPy) as lists."""
    if hasattr(sequence, "to_dicts"):
        return sequence.to_dicts()
    if hasattr(sequence, "columns") and hasattr(sequence, "to_dict"):
        return sequence.to_dict("records")
    if getattr(getattr(sequence, "dtype", None), "kind", None) == "O" and len(sequence.shape) == 1:
        return sequence.tolist()
    return sequence


def _is_row(position):
    """Whether a position is a row of numbers."""
    if isinstance(position, (Mapping, str, bytes)):
        return False
    return isinstance(position, np.ndarray) or (
        isinstance(position, (list, tuple)) and all(isinstance(value, Number) for value in position)
    )


def _from_dicts(X, names):
    """CSR matrix of dicts, and the names of its columns."""
    columns = _Columns(names)
    values: dict[int, float] = {}  # entries that are not 1, by index
    found: list[int] = []
    ends = []
    strings, add = columns.strings, found.append
    for i, sequence in enumerate(X):
        for position in sequence:
            if isinstance(position, Mapping):
                items = position.items()
            elif isinstance(position, Iterable) and not isinstance(position, (str, bytes)):
                items = [(name, True) for name in position]
            else:
                raise TypeError(
                    f"X[{i}] must be {ONE_OF}; a position is {shown(position)}. Give each position its "
                    f"features, such as {{'word': {shown(position)}}}."
                )
            for key, value in items:
                if type(value) is str:  # the most frequent kind
                    known = strings.get(key)
                    at = known.get(value) if known is not None else None
                    add(columns.of_string(key, value, i) if at is None else at)
                elif isinstance(value, (list, tuple, set, frozenset)):
                    for one in value:
                        if not isinstance(one, str):
                            raise TypeError(f"X[{i}]: {_VALUES.format(key=shown(key))}; got {shown(value)}.")
                        add(columns.of_string(key, one, i))
                elif isinstance(value, (bool, np.bool_, Real)):
                    if value != 1:
                        values[len(found)] = float(value)
                    at = columns.numbers.get(key)
                    add(columns.of_number(key, i) if at is None else at)
                elif isinstance(value, str):
                    add(columns.of_string(key, str(value), i))
                else:
                    raise TypeError(f"X[{i}]: {_VALUES.format(key=shown(key))}; got {shown(value)}.")
            ends.append(len(found))
    indices, data = np.array(found, dtype=np.int64), np.ones(len(found))
    data[list(values.keys())] = list(values.values())
    if not np.isfinite(data).all():
        at = int(np.flatnonzero(~np.isfinite(data))[0])
        row = np.searchsorted(ends, at, side="right")
        i = np.searchsorted(np.cumsum([len(sequence) for sequence in X]), row, side="right")
        raise ValueError(f"X contains NaN or infinity: in X[{i}].")
    rank, names = columns.sorted(names)
    indptr = np.array([0, *ends], dtype=np.int64)
    known = indices >= 0
    if not known.all():
        indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
        indices, data = indices[known], data[known]
    indices = rank[indices] if len(rank) else indices
    kind = np.int32 if max(len(names), len(indices)) < 2**31 else np.int64
    shape = len(ends), len(names)
    return as_kernel_input(
        sp.csr_matrix((data, indices.astype(kind), indptr.astype(kind)), shape=shape)
    ), names


class _Columns:
    """Columns of features by key and value: found one after another, or looked up by their names (-1:
    none)."""

    def __init__(self, names):
        self.fixed = names is not None
        self.by_name = {name: j for j, name in enumerate(names)} if self.fixed else {}
        self.strings: dict[str, dict[str, int]] = {}
        self.numbers: dict[str, int] = {}

    def _of(self, key, name, i):
        if type(key) is not str:
            raise TypeError(f"X[{i}]: names of features must be strings; got {shown(key)}.")
        if self.fixed:
            return self.by_name.get(name, -1)
        # {"a=b": 1} and {"a": "b"} are one feature
        return self.by_name.setdefault(name, len(self.by_name))

    def of_string(self, key, value, i):
        at = self._of(key, f"{key}={value}", i)
        self.strings.setdefault(key, {})[value] = at
        return at

    def of_number(self, key, i):
        at = self._of(key, key, i)
        self.numbers[key] = at
        return at

    def sorted(self, names):
        """Indices of the columns by their names, and the names in order."""
        if self.fixed:
            return np.zeros(0, dtype=np.int64), names
        found = np.array(list(self.by_name), dtype=object)
        order = np.argsort(found)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank, found[order]


def _stacked(X, n_features):
    parts = []
    for i, sequence in enumerate(X):
        if sp.issparse(sequence):
            part = check_sparse(sequence, f"X[{i}]").tocsr()
        else:
            part = sequence if hasattr(sequence, "dtype") else np.array(sequence, dtype=np.float64)
            if not len(part) and part.ndim == 1:
                continue
        if part.dtype not in (np.float32, np.float64):
            if part.dtype.kind not in "biuf":
                raise ValueError(f"X[{i}] must hold real numbers; got the dtype {part.dtype}.")
            part = part.astype(np.float64)
        p = part.shape[1] if n_features is None else n_features
        if part.shape[1] != p:
            raise ValueError(f"X[{i}] has {part.shape[1]} features; expected {p}, as the others have.")
        n_features = p
        parts.append(part)
    if not parts:
        return np.zeros((0, n_features or 0))
    if any(sp.issparse(part) for part in parts):
        matrix = sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
        finite = np.isfinite(matrix.data).all()
    else:
        matrix = np.ascontiguousarray(np.concatenate(parts))
        finite = np.isfinite(matrix).all()
    if not finite:
        raise ValueError("X contains NaN or infinity.")
    return as_kernel_input(matrix)


def refuse_no_features(p: int) -> None:
    """ValueError where sequences have no features."""
    if p == 0:
        raise ValueError("X has no features: 0 feature(s) in all sequences, and a minimum of 1 is required.")


def read_labels(y: Any, starts: np.ndarray, name: str = "y") -> np.ndarray:
    """The labels of all positions as one array; lengths must be those of the sequences."""
    if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
        raise TypeError(f"{name} must be a list of sequences of labels; got {type(y).__name__}.")
    for i, sequence in enumerate(y):
        if isinstance(sequence, (str, bytes)) or not hasattr(sequence, "__len__"):
            raise TypeError(f"{name}[{i}] must be a sequence of labels; got {shown(sequence)}.")
    if len(y) != len(starts) - 1:
        raise ValueError(f"{name} has {len(y)} sequences, X {len(starts) - 1}.")
    flat: list[Any] = []
    for i, sequence in enumerate(y):
        if len(sequence) != starts[i + 1] - starts[i]:
            raise ValueError(
                f"{name}[{i}] has {len(sequence)} labels, X[{i}] {starts[i + 1] - starts[i]} positions."
            )
        flat.extend(sequence.tolist() if isinstance(sequence, np.ndarray) else sequence)
    if not flat:
        raise ValueError(f"{name} has no labels: all sequences are empty.")
    strings = [isinstance(label, str) for label in flat]
    if any(strings) and not all(strings):
        odd = shown(flat[strings.index(False)])
        raise ValueError(f"{name} must have labels of one kind; some are strings and {odd} is not.")
    labels = np.array(flat)
    if labels.ndim != 1 or labels.dtype.kind not in "biuU":
        raise ValueError(f"labels of {name} must be strings or whole numbers; got {shown(flat[0])}.")
    refuse_missing_labels(labels, name)
    return labels


def sequence_weights(class_weight, sample_weight, classes, codes, starts, least=1):
    """Weights (S,) of the sequences: class weights are means over their labels.

    ``least`` is how many classes must be left with a positive weight.
    """
    lengths = np.diff(starts)
    weight = check_sample_weight(sample_weight, len(lengths))
    weight = np.ones(len(lengths)) if weight is None else weight
    if class_weight is not None:
        each = apply_class_weight(class_weight, classes, codes, np.repeat(weight, lengths), least)
        sums = np.bincount(np.repeat(np.arange(len(lengths)), lengths), each, len(lengths))
        weight = np.divide(sums, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    return weight
