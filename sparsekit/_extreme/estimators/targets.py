"""Targets and rows of classifiers with very many classes: from checked arrays to the kernel's examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from ..._arrays import is_sparse, to_host
from ..._estimator.labels import refuse_missing_labels, refuse_real_labels
from ..._messages import shown
from ..solver.sgd import DataRows

NO_INDEX = np.empty(0, dtype=np.int32)


@dataclass
class ExtremeTargets:
    """What a classifier fits: the codes of row i's labels are codes[first[i] : first[i + 1]].

    codes : int64, all labels of the rows in order.
    first : int64 (n + 1,), or None where each row has one label.
    classes : labels, or column numbers of an indicator.
    weight : float64 (n,) or None.
    """

    codes: np.ndarray
    first: np.ndarray | None
    classes: np.ndarray
    weight: np.ndarray | None

    @property
    def multilabel(self):
        return self.first is not None


def is_indicator(y):
    """Whether y is a matrix of labels rather than one label a row."""
    return is_sparse(y) or (np.ndim(y) == 2 and np.shape(y)[1] > 1)


def encode(y, classes):
    """Codes of the labels y (n,) among ``classes``, which need not be sorted; -1 for an unknown label."""
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes, y, sorter=order)
    codes = order[np.minimum(place, len(classes) - 1)]
    return np.where(classes[codes] == y, codes, -1)


def announced_classes(classes, known=None):
    """``classes`` of `partial_fit` in main memory: those ``known`` so far, then the new ones, sorted."""
    refuse_missing_labels(classes, "classes")
    classes = np.asarray(to_host(classes)).ravel()
    if not classes.size:
        raise ValueError("classes is empty; name at least one class, or give None.")
    try:
        refuse_real_labels(classes)
    except (TypeError, ValueError) as error:
        raise type(error)(f"classes: {error}") from error
    classes = np.unique(classes)
    if known is None:
        return classes
    _same_kind(classes, "classes", known)
    return np.concatenate([known, classes[encode(classes, known) < 0]])


def _same_kind(labels, name, known):
    # NumPy compares numbers with words as words
    if (labels.dtype.kind in "biuf") != (known.dtype.kind in "biuf"):
        raise ValueError(
            f"{name} has labels of type {labels.dtype}, such as {shown(labels.tolist()[0])}, but the classes "
            f"so far are of type {known.dtype}, such as {shown(known.tolist()[0])}."
        )


def check_extreme_targets(y, sample_weight, classes=None, grow=True):
    """Targets of the checked y: labels (n,) of any kind, or an indicator (n, K), sparse or dense.

    Parameters
    ----------
    y : ndarray or sparse matrix
    sample_weight : ndarray of shape (n,) or None
    classes : ndarray, default=None
        Classes that are known. None: those of y, sorted.
    grow : bool, default=True
        Whether labels of y that are not among ``classes`` are appended, in sorted order, or refused.

    Raises
    ------
    ValueError
        If y holds no labels, or is a matrix and no indicator, no row has a label, or a label is unknown.
    """
    if is_indicator(y):
        return _indicator(y, sample_weight, classes)
    y = column_or_1d(y, warn=True)
    # very many classes are no reason to warn of a regression here
    refuse_real_labels(y)
    if classes is None:
        classes, codes = np.unique(y, return_inverse=True)
    else:
        _same_kind(y, "y", classes)
        codes = encode(y, classes)
        if (codes < 0).any():
            new = np.unique(y[codes < 0])
            if not grow:
                raise ValueError(
                    f"y has the label {shown(new[0])}, which is not among the classes that were given"
                    + (f", and {len(new) - 1} more such labels" if len(new) > 1 else "")
                    + ". Name new labels in classes of the call that brings them, or give no classes in any "
                    "call: then all new labels are added."
                )
            classes = np.concatenate([classes, new])
            codes = encode(y, classes)
    codes = codes.astype(np.int64)
    return ExtremeTargets(codes, None, classes, sample_weight)


def _indicator(y, sample_weight, classes):
    if not sp.issparse(y):
        kind = type_of_target(y, input_name="y")
        if kind != "multilabel-indicator" or not np.isin(y, (0, 1)).all():
            raise ValueError(
                f"Unknown label type: y is a matrix of {np.shape(y)[1]} columns ({kind}) and no indicator "
                "of zeros and ones. For one label a row pass shape (n_samples,)."
            )
    Y = sp.csr_array(y)
    if not Y.has_sorted_indices:
        Y = Y.sorted_indices()
    if Y.nnz and not (Y.data == 1).all():
        if not np.isin(Y.data, (0, 1)).all():
            raise ValueError("Unknown label type: the sparse matrix y has entries other than 0 and 1.")
        Y = Y.copy()
        Y.eliminate_zeros()
    if classes is not None and len(classes) != Y.shape[1]:
        raise ValueError(
            f"y has {Y.shape[1]} columns, but the model knows {len(classes)} labels; an indicator "
            "cannot bring new ones."
        )
    if not Y.nnz:
        raise ValueError("y has no row with a label.")
    return ExtremeTargets(
        Y.indices.astype(np.int64), Y.indptr.astype(np.int64), np.arange(Y.shape[1]), sample_weight
    )


def used_rows(targets, kept=None):
    """Mask of the rows (n,) that have a label and a positive weight, of those ``kept`` (None: all)."""
    n = len(targets.codes) if targets.first is None else len(targets.first) - 1
    use = np.ones(n, dtype=bool) if targets.weight is None else targets.weight > 0
    if targets.multilabel:
        use &= np.diff(targets.first) > 0
    if kept is not None:
        among = np.zeros(n, dtype=bool)
        among[kept] = True
        use &= among
    return use


def make_rows(X, targets, label_choice, kept=None, relative=True):
    """The examples of X's rows ``kept`` (None: all) that have a label and a positive weight.

    X : C-ordered dense array, or canonical CSR; read in place. On a GPU what goes with it goes there, but for
        the numbers of each row's first label.
    label_choice : "first" or "sample", for rows of several labels.
    relative : whether only the ratios of the weights matter.
    """
    n = X.shape[0]
    use = used_rows(targets, kept)
    sizes: Any = np.diff(targets.first) if targets.multilabel else None
    if not use.any():
        raise ValueError("No row has both a label and a positive weight: there is nothing to fit.")
    rows = None if use.all() else np.flatnonzero(use).astype(np.int64)
    chosen = slice(None) if rows is None else rows
    weight = None if targets.weight is None else targets.weight[chosen]
    if weight is not None and relative:
        weight = weight / weight.mean()
    first = None
    if not targets.multilabel:
        y, of = targets.codes[chosen], rows
    elif label_choice == "first":
        y, of = targets.codes[targets.first[:-1][chosen]], rows
    else:
        of = np.repeat(np.arange(n) if rows is None else rows, sizes[chosen]).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        y = targets.codes if rows is None else targets.codes[np.repeat(use, sizes)]
        weight = None if weight is None else np.repeat(weight, sizes[chosen])
    # read-only buffers (memory maps) are fine for the kernel, other layouts are not
    y = np.ascontiguousarray(y)
    data = X.data if is_sparse(X) else X.reshape(-1)
    none = np.asarray(NO_INDEX, like=data)
    indices, indptr = (X.indices, X.indptr) if is_sparse(X) else (none, none)
    weight, of = (None if a is None else np.asarray(a, like=data) for a in (weight, of))
    y = np.asarray(y, like=data)
    return DataRows(data, indices, indptr, X.shape[1], y, weight, of, first)


def take_rows(X, chosen):
    """The rows of X with these numbers; X itself where they are all, in their order."""
    if np.array_equal(chosen, np.arange(X.shape[0])):
        return X
    return X[np.asarray(chosen, like=X.data if is_sparse(X) else X)]


def count_labels(targets, label_choice, use):
    """How often each class is a label of the rows in the mask ``use``; several labels of a row share it."""
    n_classes = len(targets.classes)
    if not targets.multilabel:
        return np.bincount(targets.codes[use], minlength=n_classes).astype(np.float64)
    if label_choice == "first":
        chosen = targets.codes[targets.first[:-1][use]]
        return np.bincount(chosen, minlength=n_classes).astype(np.float64)
    sizes = np.diff(targets.first)
    share = np.repeat(use / np.maximum(sizes, 1), sizes)
    return np.bincount(targets.codes, weights=share, minlength=n_classes)
