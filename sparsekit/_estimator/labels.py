"""Class labels of one target a row: which are refused, and their codes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets

from .._arrays import is_device, to_host
from .._messages import shown

# scikit-learn's rule: so few rows say nothing about the kind of a target
FEW_ROWS = 20


def refuse_missing_labels(y: Any, name: str = "y") -> None:
    """ValueError where labels as the user gave them hold None, NaN or pandas' NA, or several in a row.

    scikit-learn's check names y where it holds numbers. Among strings it does not, or makes a class "nan".
    """
    if y is None or is_device(y) or sp.issparse(y):
        return
    _refuse_sets(y, name)
    if isinstance(y, (list, tuple)):
        is_column = bool(len(y)) and np.shape(y[0]) in ((), (1,))
        if not is_column or (not np.ndim(y[0]) and np.asarray(y).dtype.kind in "biufc"):
            return
    else:
        dtype = getattr(y, "dtype", None)  # a data frame has none
        if dtype is None and not hasattr(y, "dtypes"):
            return
        if isinstance(dtype, np.dtype) and dtype.kind not in "OT":
            return
        if np.shape(y)[1:] not in ((), (1,)):
            return
    labels = np.asarray(y, dtype=object)
    if labels.shape[1:] not in ((), (1,)):
        return
    labels = labels.ravel()
    missing = [i for i, label in enumerate(labels) if _is_missing(label)]
    if missing:
        first = labels[missing[0]]
        count = "" if len(missing) == 1 else f", the first of {len(missing)}"
        raise ValueError(
            f"Input {name} contains {'None' if first is None else 'NaN'} "
            f"({'row' if name == 'y' else 'entry'} {missing[0]}{count}); no label may be missing."
        )


def _refuse_sets(y: Any, name: str) -> None:
    """ValueError where rows of y are lists or sets of labels, and no rows of a matrix of numbers."""
    if not isinstance(y, (list, tuple)):
        if getattr(getattr(y, "dtype", None), "kind", "") != "O" or np.ndim(y) != 1:
            return
        y = list(y)
    kinds = (list, tuple, set, frozenset)
    if not (y and all(isinstance(row, kinds) for row in y)):
        return
    sizes = {len(row) for row in y}
    are_rows = len(sizes) == 1 and not any(isinstance(row, (set, frozenset)) for row in y)
    if are_rows and (sizes == {1} or not any(isinstance(label, str) for row in y for label in row)):
        return
    several = next((i for i, row in enumerate(y) if len(row) != 1), 0)
    raise ValueError(
        f"{name} must hold one label a row, or be an indicator; row {several} holds {shown(y[several])}. "
        "sklearn.preprocessing.MultiLabelBinarizer().fit_transform makes the indicator of such rows, which "
        "SparsemaxClassifier and LPSparseMAPClassifier take, as does sklearn.multiclass.OneVsRestClassifier "
        "around others."
    )


def _is_missing(label: object) -> bool:
    if isinstance(label, (float, np.floating)):
        return bool(label != label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def refuse_real_labels(y: np.ndarray) -> None:
    """ValueError where y, (n,), holds no class labels but measurements, as scikit-learn judges; else None."""
    # every vector of integers (floats too), bools or strings is one of labels; others need the long check
    if y.dtype.kind in "biuU" or (y.dtype.kind == "f" and bool((y == np.rint(y)).all())):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `warn_of_many_classes` says that, where it matters
            check_classification_targets(y)
    except TypeError as error:
        kinds: dict[str, object] = {}
        for label in y.tolist():
            kinds.setdefault(type(label).__name__, label)
        if len(kinds) < 2:
            raise
        found = " and ".join(f"{shown(label)} ({kind})" for kind, label in kinds.items())
        raise TypeError(f"y must hold labels of one kind, numbers or strings; it holds {found}.") from error


def refuse_one_class(classes: Any) -> None:
    """ValueError unless there are two classes."""
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but y contains only one class: "
            f"{shown(to_host(classes[:1])[0])}"
        )


def warn_of_many_classes(n_classes: int, n: int, stacklevel: int) -> None:
    """scikit-learn's UserWarning if there are more than half as many classes as rows."""
    if n > FEW_ROWS and n_classes > round(0.5 * n):
        warnings.warn(
            f"The number of unique classes is greater than 50% of the number of samples ({n_classes} "
            f"classes, {n} samples). `y` could represent a regression problem, not a classification problem.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def encode_labels(y: np.ndarray, stacklevel: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes and each row's index among them.

    Parameters
    ----------
    y : ndarray of shape (n,)
    stacklevel : int, default=4
        Where the user's call stands, for a warning.

    Raises
    ------
    ValueError
        If y holds no class labels (real numbers) or only one class.
    TypeError
        If labels cannot be sorted, being of different types.

    Warns
    -----
    UserWarning
        If the classes are more than half as many as the rows.
    """
    refuse_real_labels(y)
    if y.dtype.kind != "O":
        # two classes, the usual case, need no sort: two comparisons with the data are enough
        is_first = y == y[0]
        other = int(is_first.argmin())
        if not is_first[other] and bool((is_first | (y == y[other])).all()):
            classes = np.sort(y[[0, other]])
            codes = is_first if y[0] == classes[1] else ~is_first
            return classes, codes.astype(np.intp)
    classes, codes = np.unique(y, return_inverse=True)
    refuse_one_class(classes)
    warn_of_many_classes(len(classes), len(y), stacklevel)
    return classes, codes.astype(np.intp, copy=False)
