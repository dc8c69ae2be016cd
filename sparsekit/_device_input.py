"""Estimators given CuPy arrays: what they accept, where they were fitted, and the way back to main memory."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features

from ._device import is_device, namespace, to_host


def check_device_X(estimator: Any, X: Any, *, reset: bool = True, dense: bool = False) -> Any:
    """`sklearn.utils.validation.validate_data` for a matrix on the GPU.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_``, or has it compared.
    X : cupy.ndarray or cupyx.scipy.sparse matrix of shape (n_samples, n_features)
        Numbers of any type: what is not float32 becomes float64.
    reset : bool, default=True
        Whether this is a fit.
    dense : bool, default=False
        Whether a sparse matrix is refused.

    Returns
    -------
    cupy.ndarray, C-contiguous, or cupyx.scipy.sparse.csr_matrix
        float32 or float64, finite, without duplicate entries.
    """
    name = type(estimator).__name__
    _check_feature_names(estimator, X, reset=reset)
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead: X of {name} must have shape "
            "(n_samples, n_features). Use reshape(-1, 1) for one feature or reshape(1, -1) for one sample."
        )
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={X.shape}) "
            f"while a minimum of 1 is required by {name}."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X of {name} must hold real numbers; its dtype is {X.dtype}")
    sparse = hasattr(X, "nnz")
    if sparse and dense:
        raise TypeError(f"{name} takes no sparse matrix here; pass X.toarray()")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if sparse:
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = namespace(X=X).ascontiguousarray(X)
    check_finite(X.data if sparse else X, f"X of {name}")
    _check_n_features(estimator, X, reset=reset)
    return X


def check_finite(values: Any, what: str) -> None:
    """ValueError where CuPy values hold NaN or infinity."""
    if not bool(np.isfinite(values).all()):
        raise ValueError(f"{what} contains NaN or infinity.")


def check_device_vector(
    values: Any, n: int, name: str, *, X: Any, dtype: Any = np.float64, minimum: float | None = None
) -> Any:
    """One finite number a row of ``X``, on the GPU like ``X``: targets or weights called ``name``."""
    xp = namespace(X=X, **{name: values})
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one entry for each row of X; got {values.shape}")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; its dtype is {values.dtype}")
    values = xp.ascontiguousarray(values.astype(dtype, copy=False))
    check_finite(values, name)
    if minimum is not None and bool((values < minimum).any()):
        raise ValueError(f"{name} must be at least {minimum:g} in every entry")
    return values


def encode_device_labels(y: Any, n: int, *, X: Any) -> tuple[Any, Any]:
    """Sorted classes and the code of each row, both on the GPU, from numeric labels (n,)."""
    if not is_device(y) and np.asarray(y).dtype.kind in "OUS":
        raise TypeError(
            "y holds labels that are no numbers, which a GPU cannot hold: encode them with "
            "sklearn.preprocessing.LabelEncoder and pass cupy.asarray(codes)"
        )
    xp = namespace(X=X, y=y)
    if y.shape != (n,):
        raise ValueError(f"y must have shape ({n},), one label for each row of X; got {y.shape}")
    check_finite(y, "y")
    classes, codes = xp.unique(y, return_inverse=True)
    return classes, codes.reshape(-1)


class DeviceEstimatorMixin:
    """An estimator that keeps its fitted attributes where its training data was."""

    def _on_device(self) -> bool:
        """Whether the last fit was on the GPU."""
        return any(is_device(value) for name, value in vars(self).items() if name.endswith("_"))

    def _check_place(self, X: Any) -> bool:
        """Whether X, and the fitted estimator, are on the GPU; TypeError where only one of them is."""
        device, name = self._on_device(), type(self).__name__
        if device and not is_device(X):
            raise TypeError(
                f"this {name} was fitted on the GPU and X is in main memory: pass cupy.asarray(X), or take "
                "the estimator to main memory with to_cpu()"
            )
        if not device and is_device(X):
            raise TypeError(
                f"this {name} was fitted in main memory and X is on the GPU: pass cupy.asnumpy(X) "
                "(X.get() for a sparse matrix), or fit it on the GPU"
            )
        return device

    def to_cpu(self) -> Self:
        """Copy of the estimator with its fitted attributes in main memory.

        Returns
        -------
        estimator
            The same class and parameters; arrays of CuPy have become arrays of NumPy. An estimator that
            was fitted in main memory is copied as it is.
        """
        out = copy.copy(self)
        for name, value in vars(self).items():
            setattr(out, name, _host_value(value))
        return out


def _host_value(value: Any) -> Any:
    if is_device(value):
        return to_host(value)
    if isinstance(value, DeviceEstimatorMixin):
        return value.to_cpu()
    if isinstance(value, dict):
        return {key: _host_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_host_value(item) for item in value)
    return value
