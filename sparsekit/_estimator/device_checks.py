"""Estimators given CuPy arrays: what they accept, where they were fitted, and the way back to main memory."""

from __future__ import annotations

import copy
import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import _check_estimator_name, _check_feature_names, _check_n_features

from .._arrays import is_device, is_sparse, namespace, to_host
from .._linalg.structure import check_sparse
from .._messages import shown
from .._typing import DeviceArray, DeviceMatrix, EitherMatrix
from .checks import array_of, check_sample_weight
from .labels import refuse_real_labels


def check_device_X(
    estimator: BaseEstimator | str, X: DeviceArray | DeviceMatrix, *, reset: bool = True
) -> DeviceArray | DeviceMatrix:
    """`sklearn.utils.validation.validate_data` for a matrix on the GPU.

    Parameters
    ----------
    estimator : estimator or str
        Gets ``n_features_in_``, or has it compared; or the name of a function, for messages.
    X : cupy.ndarray or cupyx.scipy.sparse matrix of shape (n_samples, n_features)
        Numbers of any type: what is not float32 becomes float64.
    reset : bool, default=True
        Whether this is a fit.

    Returns
    -------
    cupy.ndarray, C-contiguous, or cupyx.scipy.sparse.csr_matrix
        float32 or float64, finite, without duplicate entries.
    """
    name = _check_estimator_name(estimator)
    if not isinstance(estimator, str):
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
    there, here = (X.data if sparse else X).device.id, namespace(X=X).cuda.Device().id
    if there != here:  # kernels are launched on the current device
        raise ValueError(
            f"X of {name} is on GPU {there} and the current one is {here}: call {name} within "
            f"`with cupy.cuda.Device({there}):`"
        )
    X = check_sparse(X)  # before the first of CuPy's functions that follows its indices
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
    if not isinstance(estimator, str):
        _check_n_features(estimator, X, reset=reset)
    return X


def check_finite(values: DeviceArray, what: str) -> None:
    """ValueError where CuPy values hold NaN or infinity."""
    if not bool(np.isfinite(values).all()):
        raise ValueError(f"{what} contains NaN or infinity.")


def device_weight(
    X: DeviceArray | DeviceMatrix, sample_weight: DeviceArray | float | None
) -> DeviceArray | None:
    """Weights on the GPU from one number or an array there; None stays."""
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, Real):
        sample_weight = _on_host(sample_weight, "sample_weight", X)
    return namespace(X=X).asarray(check_sample_weight(sample_weight, X.shape[0]))


def _on_host(values: Any, name: str, X: DeviceArray | DeviceMatrix) -> Any:
    """Values of each row, which must be on the GPU as X is, in main memory, where they are checked."""
    namespace(X=X, **{name: values})
    if not is_device(values):
        raise TypeError(f"{name} must be a CuPy array as X is on the GPU; got {shown(values)}")
    return to_host(values)


def flatten_column(y: EitherMatrix, stacklevel: int) -> EitherMatrix:
    """y of either side, or what a matrix of one column holds, with scikit-learn's warning."""
    if y.ndim != 2 or y.shape[1] != 1:
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
        "(n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=stacklevel,
    )
    return check_sparse(y, "y").toarray().ravel() if is_sparse(y) else y.ravel()


def check_device_target(y: object, *, X: DeviceArray | DeviceMatrix, stacklevel: int = 5) -> DeviceArray:
    """One finite number a row of ``X``, on the GPU like ``X``; a column is taken with a warning."""
    y = _one_a_row(y, X, stacklevel)
    return namespace(X=X).asarray(array_of(y, "y"))


def _one_a_row(y, X, stacklevel):
    y = _on_host(y, "y", X)
    y = flatten_column(y, stacklevel=stacklevel + 1) if y.ndim == 2 else y
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have shape {X.shape[:1]}, one entry for each row of X; got {y.shape}")
    return y


def host_target(y: object, X: DeviceArray | DeviceMatrix) -> Any:
    """Numeric labels (n,), or a matrix (n, K), that are on the GPU as X is, in main memory."""
    _refuse_words(y)
    y = _on_host(check_sparse(y, "y"), "y", X)
    if y.shape[:1] != X.shape[:1]:
        raise ValueError(f"X has {X.shape[0]} rows, y has shape {y.shape}.")
    check_finite(y.data if is_sparse(y) else y, "y")
    return y


def _refuse_words(y):
    if y is not None and not is_device(y) and np.asarray(y).dtype.kind in "OUS":
        raise TypeError(
            "y holds labels that are no numbers, which a GPU cannot hold: encode them with "
            "sklearn.preprocessing.LabelEncoder and pass cupy.asarray(codes)"
        )


def encode_device_labels(
    y: object, *, X: DeviceArray | DeviceMatrix, stacklevel: int = 6
) -> tuple[DeviceArray, DeviceArray]:
    """Sorted classes and the code of each row, both on the GPU, from numeric labels (n,)."""
    _refuse_words(y)
    y, xp = _one_a_row(y, X, stacklevel), namespace(X=X)
    check_finite(y, "y")
    refuse_real_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    return xp.asarray(classes), xp.asarray(codes.reshape(-1))


class DeviceEstimatorMixin:
    """An estimator that keeps its fitted attributes where its training data was."""

    def _on_device(self) -> bool:
        """Whether the last fit was on the GPU."""
        return any(is_device(value) for name, value in vars(self).items() if name.endswith("_"))

    def _refuse_device(self, method: str) -> None:
        """Raise TypeError for a model on the GPU, whose ``method`` works in main memory alone."""
        if self._on_device():
            raise TypeError(f"this {type(self).__name__} was fitted on the GPU: call to_cpu().{method}()")

    def _check_device(self, X: object) -> bool:
        """Whether X, and the fitted estimator, are on the GPU; TypeError where only one of them is."""
        device, name = self._on_device(), type(self).__name__
        if device and not is_device(X):
            raise TypeError(
                f"this {name} was fitted on the GPU and X is in main memory: pass cupy.asarray(X), or take "
                "the estimator to main memory with to_cpu()"
            )
        if not device and is_device(X):
            raise TypeError(
                f"this {name} was fitted in main memory and X is on the GPU. Pass cupy.asnumpy(X) "
                "(X.get() for a sparse matrix), or fit it on the GPU."
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
