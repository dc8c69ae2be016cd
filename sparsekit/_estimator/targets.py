"""Targets of Fenchel-Young classifiers: labels, indicator matrices, matrices of distributions."""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target

from .._arrays import is_sparse, namespace, to_host
from .._linalg.structure import check_sparse
from .._messages import shown
from .._solver.tolerances import SINGLE_ROUNDING
from .checks import apply_class_weight, in_units
from .device_checks import check_finite, device_weight, encode_device_labels, flatten_column
from .labels import encode_labels, refuse_one_class, warn_of_many_classes


@dataclass
class Targets:
    """What a classifier fits.

    values : codes (n,) or distributions (n, K).
    classes : labels, or column numbers of a matrix.
    weight : float64 (n,) or None.
    multilabel : whether y was a matrix.
    labelled : whether a row has a label, (n,), or None where all have.
    """

    values: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    multilabel: bool
    labelled: np.ndarray | None = None


def check_targets(y, sample_weight, class_weight, stacklevel=5):
    """Targets from the checked y: labels (n,), an indicator (n, K) or distributions (n, K).

    Raises
    ------
    ValueError
        If y is none of them or has one class only. If it has a negative entry or a row whose sum is not 1. If
        class_weight does not fit.

    Warns
    -----
    UserWarning
        If rows of an indicator have no label; they get weight 0.
    """
    flat: Any = flatten_column(y, stacklevel=stacklevel)
    if flat.ndim == 1:
        classes, codes = encode_labels(flat, stacklevel=stacklevel)
        weight = apply_class_weight(class_weight, classes, codes, sample_weight)
        return Targets(codes, classes, weight, False)
    kind = type_of_target(flat, input_name="y")
    q = (flat.toarray() if sp.issparse(flat) else np.asarray(flat)).astype(np.float64)
    if not np.all(np.isfinite(q)):
        raise ValueError("y contains NaN or infinity; targets must be finite.")
    # scikit-learn calls any matrix of two integers an indicator
    indicator = kind == "multilabel-indicator" and bool(((q == 0) | (q == 1)).all())
    return _of_matrix(q, indicator, sample_weight, class_weight, stacklevel + 1)


def _of_matrix(q, indicator, sample_weight, class_weight, stacklevel):
    """Targets from an indicator or from distributions, (n, K), finite."""
    q, empty = _shares(q, indicator)
    weight = _weights(q, empty, sample_weight, class_weight, stacklevel)
    classes = np.arange(q.shape[1], like=q)
    return Targets(q, classes, weight, True, ~empty if bool(empty.any()) else None)


def _shares(q, indicator):
    """Rows of an indicator or of distributions, both float64 and finite, divided by their sums."""
    if indicator:
        total = q.sum(axis=1)
        return q / np.where(total > 0, total, 1.0)[:, None], total == 0
    if (q < 0).any():
        i, k = map(int, np.argwhere(q < 0)[0])
        raise ValueError(
            f"y[{i}, {k}] is {float(q[i, k]):g}; the entries of target distributions must be >= 0."
        )
    total = q.sum(axis=1)
    wrong = np.abs(total - 1.0) > SINGLE_ROUNDING
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"Unknown label type: y has {q.shape[1]} columns and is no indicator of zeros and ones. "
            f"Then its rows must be distributions that sum to 1, but y[{i}] sums to {float(total[i]):g}. "
            "Divide each row by its sum."
        )
    return q / total[:, None], np.zeros(len(q), dtype=bool, like=q)


def _weights(q, empty, sample_weight, class_weight, stacklevel):
    weight = None if sample_weight is None else sample_weight.copy()
    if empty.any():
        warnings.warn(
            f"{int(empty.sum())} of {len(q)} rows of y have no label, which is no target distribution; "
            "they are left out of the fit.",
            UserWarning,
            stacklevel=stacklevel,
        )
        weight = (~empty).astype(np.float64) if weight is None else weight * ~empty
        if not weight.any():
            raise ValueError("y has no row with a label and a positive weight.")
    if class_weight is None:
        return weight
    K = q.shape[1]
    per_class = np.ones(K)
    if isinstance(class_weight, str):
        # of masses the ratios matter
        mass = to_host(q.sum(axis=0) if weight is None else in_units(weight)[0] @ q)
        per_class = np.divide(mass.sum(), K * mass, out=np.zeros(K), where=mass > 0)
    else:
        for k, value in class_weight.items():
            if not isinstance(k, Integral) or not 0 <= int(k) < K:
                raise ValueError(
                    f"class_weight has the key {shown(k)}; the labels are the columns 0 .. {K - 1} of y."
                )
            if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(
                    f"class_weight[{shown(k)}] must be a finite number >= 0, got {shown(value)}."
                )
            per_class[k] = value
    # a row that is shared between labels weighs their mean
    share = q @ np.asarray(per_class, like=q)
    with np.errstate(over="ignore"):
        weight = share if weight is None else weight * share
    if not bool(np.isfinite(weight).all()):
        raise ValueError("class_weight times sample_weight is too large: it overflows. Divide both.")
    if not weight.any():
        raise ValueError("class_weight times sample_weight leaves no row with a positive weight.")
    return weight


def check_device_targets(X, y, sample_weight, class_weight, stacklevel=5):
    """`check_targets` for a checked X on the GPU, where y and an array of weights must be too.

    What is computed for each class alone is computed in main memory, by the same functions.
    """
    n = X.shape[0]
    weight = device_weight(X, sample_weight)
    if getattr(y, "ndim", 1) != 2 or y.shape[1] == 1:
        return device_labels(X, y, weight, class_weight, stacklevel)
    namespace(X=X, y=y)
    if y.shape[0] != n:
        raise ValueError(f"y must have one row for each row of X; got {y.shape[0]} rows for {n}")
    q = (check_sparse(y, "y").toarray() if is_sparse(y) else y).astype(np.float64)
    check_finite(q, "y")
    return _of_matrix(q, bool(((q == 0) | (q == 1)).all()), weight, class_weight, stacklevel + 1)


def device_labels(X, y, weight, class_weight, stacklevel=4):
    """Targets from labels (n,) on the GPU like X, and checked weights or None."""
    classes, codes = encode_device_labels(y, X=X, stacklevel=stacklevel + 2)
    xp = namespace(classes=classes)
    refuse_one_class(classes)
    warn_of_many_classes(len(classes), X.shape[0], stacklevel)
    if weight is not None or class_weight is not None:
        folded = apply_class_weight(class_weight, *map(to_host, (classes, codes, weight)))
        weight = xp.asarray(folded)
    return Targets(codes, classes, weight, False)
