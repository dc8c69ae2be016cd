"""Data of ExtremeSoftmaxSGD in main memory or on a GPU: rows stay there, labels are brought over once."""

from __future__ import annotations

import numpy as np
from sklearn.utils import column_or_1d

from ..._arrays import is_device, is_sparse, namespace, to_host
from ..._estimator.checks import check_sample_weight
from ..._estimator.device_checks import check_device_X, device_weight, encode_device_labels
from ..._estimator.training_data import check_host_data
from ..._linalg.structure import check_sparse
from .targets import ExtremeTargets, check_extreme_targets, is_indicator


def check_extreme_data(estimator, X, y, sample_weight, classes, reset, grow):
    """Checked X (C-ordered or CSR) and targets; see `check_device_data` for the parameters."""
    if any(is_device(a) for a in (X, y, sample_weight)):
        namespace(X=X, y=y if is_device(y) else None)
        return check_device_data(estimator, X, y, sample_weight, classes, reset, grow)
    X, y, weight = check_host_data(
        estimator, X, y, sample_weight, multi_output=True, reset=reset, accept_sparse="csr", order="C"
    )
    if not is_indicator(y):
        y = column_or_1d(y.toarray() if is_sparse(y) else y, warn=True)
    return X, check_extreme_targets(y, weight, classes, grow)


def check_device_data(estimator, X, y, sample_weight, classes, reset, grow=True):
    """Checked X on the GPU, and targets: classes there, all else in main memory, where epochs are planned.

    Parameters
    ----------
    estimator : ExtremeSoftmaxSGD
    X : cupy.ndarray or cupyx.scipy.sparse matrix
    y : cupy.ndarray (n,) or cupyx.scipy.sparse matrix (n, K) of zeros and ones
    sample_weight : cupy.ndarray (n,), float or None
    classes : ndarray in main memory or None
        See `check_extreme_targets`.
    reset : bool
        Whether this is a first fit.
    grow : bool, default=True
        See `check_extreme_targets`.
    """
    if not is_device(X):
        namespace(X=X, y=y, sample_weight=sample_weight)
    X = check_device_X(estimator, X, reset=reset)
    n = X.shape[0]
    weight = _host_weight(sample_weight, X)
    if is_device(y) and (is_sparse(y) or (len(y.shape) == 2 and y.shape[1] > 1)):
        if y.shape[0] != n:
            raise ValueError(f"X has {n} rows, y {y.shape[0]}.")
        targets = check_extreme_targets(check_sparse(y, "y").get(), weight, classes)
    else:
        y = y.reshape(-1) if is_device(y) else y
        seen, codes = encode_device_labels(y, X=X)
        seen, codes = to_host(seen), to_host(codes).astype(np.int64)
        if classes is not None:
            # the classes are few relative to the rows
            known = check_extreme_targets(seen, None, classes, grow)
            classes, codes = known.classes, known.codes[codes]
        else:
            classes = seen
        targets = ExtremeTargets(codes, None, classes, weight)
    targets.classes = namespace(X=X).asarray(targets.classes)
    return X, targets


def _host_weight(sample_weight, X):
    if sample_weight is None or np.isscalar(sample_weight):
        return check_sample_weight(sample_weight, X.shape[0])
    return to_host(device_weight(X, sample_weight))


def refuse_on_device(estimator, name):
    """TypeError where the method ``name`` is asked of weights on the GPU."""
    if estimator._on_device():
        raise TypeError(f"{name} works in main memory: call to_cpu().{name}()")


def indicator(rows, columns, shape):
    """cupyx CSR matrix of ones at these indices, some of them named twice; CuPy has no integers there."""
    from cupyx.scipy.sparse import csr_matrix

    xp = namespace(rows=rows)
    places = xp.unique(rows * shape[1] + columns)
    ones = xp.ones(len(places), dtype=np.float32)
    return csr_matrix((ones, (places // shape[1], places % shape[1])), shape=shape)
