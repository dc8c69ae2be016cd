"""What a fit is given, checked and as the losses take it: X, targets, weights.

The arrays of one fit are all in main memory or all on a GPU. Which it is shows here and in the kernels alone:
an estimator's fit reads the same lines for both.
``estimator`` may be the name of a function, for messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_estimator_name

from .._arrays import is_device, namespace, to_host
from .._row_blocks.make import comes_in_blocks
from .._typing import (
    Array,
    ClassWeight,
    DeviceArray,
    DeviceMatrix,
    EitherArray,
    EitherMatrix,
    MatrixLike,
    SparseMatrix,
)
from .block_data import distributions_of_blocks, labels_of_blocks, numbers_of_blocks
from .checks import X_CHECKS, apply_class_weight, as_kernel_input, check_sample_weight
from .device_checks import check_device_target, check_device_X, device_weight, host_target
from .labels import encode_labels, refuse_missing_labels
from .targets import check_device_targets, check_targets, device_labels
from .validation import check_X_y, validate_data


@dataclass
class TrainingData:
    """Checked arrays of one fit.

    X : (n, p), dense or sparse, as the kernels take it.
    y : as scikit-learn's callbacks get it.
    values : targets as the loss takes them: numbers or codes (n,), distributions or an indicator (n, K).
    weight : float64 (n,), with weights of classes folded in, or None for "all equal to one".
    sample_weight : as it was given.
    offset : of the scores; estimators that take one check it.
    own_weight : ``weight`` without those of classes.
    """

    X: EitherMatrix
    y: EitherMatrix
    values: EitherArray
    weight: EitherArray | None
    sample_weight: ArrayLike | DeviceArray | None = None
    offset: EitherArray | None = None
    own_weight: EitherArray | None = None

    @property
    def xp(self) -> ModuleType:
        """NumPy or CuPy, whichever has the arrays."""
        return namespace(X=self.X)

    @property
    def on_device(self) -> bool:
        """Whether X is on a GPU."""
        return is_device(self.X)

    def for_callbacks(self) -> dict[str, Any]:
        """Arguments of scikit-learn's callbacks."""
        given = {"sample_weight": self.sample_weight, "offset": self.offset}
        metadata = {name: value for name, value in given.items() if value is not None} or None
        return {"X": self.X, "y": self.y, "metadata": metadata}


@dataclass(kw_only=True)
class LabelledData(TrainingData):
    """The same of a classification.

    classes : labels, or column numbers of a matrix.
    multilabel : whether y was a matrix.
    """

    classes: EitherArray
    multilabel: bool = False


def check_host_data(
    estimator: BaseEstimator | str,
    X: MatrixLike,
    y: MatrixLike,
    sample_weight: ArrayLike | None,
    **checks: object,
) -> tuple[Array | SparseMatrix, Any, Array | None]:
    """X as the kernels take it, y by scikit-learn's checks, and the weights, all in main memory."""
    namespace(X=X, y=y, sample_weight=sample_weight)
    if not checks.get("y_numeric", False):
        refuse_missing_labels(y)
    checks = {**X_CHECKS, **checks}
    if isinstance(estimator, str):
        X, y = check_X_y(X, y, estimator=estimator, **checks)
    else:
        X, y = validate_data(estimator, X, y, **checks)
    X = as_kernel_input(X)
    return X, y, check_sample_weight(sample_weight, X.shape[0])


def with_host_targets(
    estimator: BaseEstimator,
    X: MatrixLike | DeviceArray | DeviceMatrix,
    y: MatrixLike | DeviceArray | DeviceMatrix,
    sample_weight: ArrayLike | DeviceArray | None,
    reset: bool = True,
) -> TrainingData:
    """Data of labels or an indicator, in C order or CSR; y and weights in main memory, wherever X is."""
    if is_device(X):
        X = check_device_X(estimator, X, reset=reset)
        y, weight = host_target(y, X), to_host(device_weight(X, sample_weight))
    else:
        X, y, weight = check_host_data(
            estimator, X, y, sample_weight, multi_output=True, reset=reset, accept_sparse="csr", order="C"
        )
    return TrainingData(X, y, y, weight)


def with_numbers(
    estimator: BaseEstimator | str,
    X: MatrixLike | DeviceArray | DeviceMatrix,
    y: MatrixLike | DeviceArray | DeviceMatrix,
    sample_weight: ArrayLike | DeviceArray | None,
    stay_in_blocks: bool = False,
    offset: Any = None,
    **checks: Any,
) -> TrainingData:
    """Data of a regression, y (n,), with an offset of all rows that is not checked yet."""
    if comes_in_blocks(X):
        X, y, weight = numbers_of_blocks(estimator, X, y, sample_weight, offset)
        offset = X.census.offset
        X = X if stay_in_blocks else X.in_memory(_check_estimator_name(estimator))
    elif is_device(X):
        X = check_device_X(estimator, X)
        y = check_device_target(y, X=X, stacklevel=6)
        weight = device_weight(X, sample_weight)
    else:
        X, y, weight = check_host_data(estimator, X, y, sample_weight, y_numeric=True, **checks)
    return TrainingData(X, y, y, weight, sample_weight, offset, own_weight=weight)


def with_labels(
    estimator: BaseEstimator | str,
    X: MatrixLike | DeviceArray | DeviceMatrix,
    y: MatrixLike | DeviceArray | DeviceMatrix,
    sample_weight: ArrayLike | DeviceArray | None,
    stay_in_blocks: bool = False,
    offset: Any = None,
    class_weight: ClassWeight = None,
    **checks: Any,
) -> LabelledData:
    """Data of a classification, one label a row; its ``values`` are codes, its offset as it was given.

    ``class_weight`` is that of a function; estimators have their own.
    """
    class_weight = getattr(estimator, "class_weight", class_weight)
    if comes_in_blocks(X):
        X, codes, weight, classes = labels_of_blocks(estimator, X, y, sample_weight, class_weight, offset)
        y, own, offset = X.census.y, X.census.weight, X.census.offset
        X = X if stay_in_blocks else X.in_memory(_check_estimator_name(estimator))
    elif is_device(X):
        X = check_device_X(estimator, X)
        own = device_weight(X, sample_weight)
        found = device_labels(X, y, own, class_weight, stacklevel=5)
        classes, codes, weight = found.classes, found.values, found.weight
    else:
        X, y, own = check_host_data(estimator, X, y, sample_weight, **checks)
        classes, codes = encode_labels(y, stacklevel=5)
        weight = apply_class_weight(class_weight, classes, codes, own)
    return LabelledData(X, y, codes, weight, sample_weight, offset, own_weight=own, classes=classes)


def with_distributions(
    estimator: BaseEstimator,
    X: MatrixLike | DeviceArray | DeviceMatrix,
    y: MatrixLike | DeviceArray | DeviceMatrix,
    sample_weight: ArrayLike | DeviceArray | None,
) -> LabelledData:
    """Data of a classification by labels, an indicator or distributions.

    X in blocks is gathered where it fits into memory, and stays in blocks elsewhere.
    """
    if comes_in_blocks(X):
        X, found = distributions_of_blocks(estimator, X, y, sample_weight, estimator.class_weight)
    elif is_device(X):
        X = check_device_X(estimator, X)
        found = check_device_targets(X, y, sample_weight, estimator.class_weight, stacklevel=6)
    else:
        X, y, weight = check_host_data(estimator, X, y, sample_weight, multi_output=True)
        found = check_targets(y, weight, estimator.class_weight, stacklevel=6)
    return LabelledData(
        X, y, found.values, found.weight, sample_weight, classes=found.classes, multilabel=found.multilabel
    )
