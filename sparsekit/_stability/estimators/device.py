"""Stability selection of data on a GPU: what is checked there, and its columns kept or put back."""

from __future__ import annotations

import warnings

from ..._arrays import as_like, namespace, to_host
from ..._estimator.device_checks import (
    check_device_target,
    check_device_X,
    device_weight,
    encode_device_labels,
)


def checked(estimator, X, y, sample_weight, classifies):
    """X and y on the GPU, y as codes where there are classes; classes and weights in main memory, or None."""
    X = check_device_X(estimator, X)
    if X.shape[0] < 4:
        raise ValueError(f"Found array with {X.shape[0]} sample(s) while a minimum of 4 is required.")
    classes = None
    if classifies:
        found, y = encode_device_labels(y, X=X)
        classes = to_host(found)
    else:
        y = check_device_target(y, X=X)
    return X, y, classes, to_host(device_weight(X, sample_weight))


def select_columns(estimator, X, columns):
    """The ``columns`` (n_kept,) of X (n, p)."""
    X = check_device_X(estimator, X, reset=False)
    if not len(columns):
        warnings.warn("No features were selected.", UserWarning, stacklevel=4)
    return X[:, as_like(columns, X)]


def put_back(name, X, columns, n_features):
    """X (n, n_kept) as ``columns`` of a matrix of its kind with ``n_features``, which is zero elsewhere."""
    X = check_device_X(name, X)
    if X.shape[1] != len(columns):
        raise ValueError(f"X has {X.shape[1]} columns, and {len(columns)} features were selected.")
    where, shape = as_like(columns, X), (X.shape[0], n_features)
    if hasattr(X, "nnz"):
        indices = where.astype(X.indices.dtype)[X.indices]
        return type(X)((X.data, indices, X.indptr), shape=shape)
    out = namespace(X=X).zeros(shape, dtype=X.dtype)
    out[:, where] = X
    return out
