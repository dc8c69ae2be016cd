"""What a fit is given, checked and as the losses take it: X, targets, weights.

The arrays of one fit are all in main memory or all on a GPU. Which it is shows here and in the kernels alone:
an estimator's fit reads the same lines for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._arrays import is_device, namespace
from .checks import X_CHECKS, apply_class_weight, as_kernel_input, check_sample_weight
from .device_checks import check_device_target, check_device_X, device_weight
from .labels import encode_labels, refuse_missing_labels
from .targets import check_device_targets, check_targets, device_labels
from .validation import validate_data


@dataclass
class TrainingData:
    """Checked arrays of one fit.

    X : (n, p), dense or sparse, as the kernels take it.
    y : as scikit-learn's callbacks get it.
    values : targets as the loss takes them: numbers or codes (n,), distributions or an indicator (n, K).
    weight : float64 (n,), with weights of classes folded in, or None for "all equal to one".
    classes : labels, or column numbers of a matrix; None for a regression.
    multilabel : whether y was a matrix.
    sample_weight : as it was given.
    """

    X: Any
    y: Any
    values: Any
    weight: Any
    classes: Any = None
    multilabel: bool = False
    sample_weight: Any = None

    @property
    def xp(self) -> Any:
        """NumPy or CuPy, whichever has the arrays."""
        return namespace(X=self.X)

    def for_callbacks(self) -> dict[str, Any]:
        """Arguments of scikit-learn's callbacks."""
        weight = self.sample_weight
        return {
            "X": self.X,
            "y": self.y,
            "metadata": None if weight is None else {"sample_weight": weight},
        }


def check_host_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any
) -> tuple[Any, Any, Any]:
    """X as the kernels take it, y by scikit-learn's checks, and the weights, all in main memory."""
    namespace(X=X, y=y, sample_weight=sample_weight)
    if not checks.get("y_numeric", False):
        refuse_missing_labels(y)
    X, y = validate_data(estimator, X, y, **{**X_CHECKS, **checks})
    X = as_kernel_input(X)
    return X, y, check_sample_weight(sample_weight, X.shape[0])


def with_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingData:
    """Data of a regression, y (n,)."""
    if is_device(X):
        X = check_device_X(estimator, X)
        y = check_device_target(y, X=X, stacklevel=6)
        weight = device_weight(X, sample_weight)
    else:
        X, y, weight = check_host_data(estimator, X, y, sample_weight, y_numeric=True)
    return TrainingData(X, y, y, weight, sample_weight=sample_weight)


def with_labels(estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> TrainingData:
    """Data of a classification, one label a row; its ``values`` are codes."""
    if is_device(X):
        X = check_device_X(estimator, X)
        found = device_labels(X, y, device_weight(X, sample_weight), class_weight, stacklevel=5)
        classes, codes, weight = found.classes, found.values, found.weight
    else:
        X, y, weight = check_host_data(estimator, X, y, sample_weight)
        classes, codes = encode_labels(y, stacklevel=5)
        weight = apply_class_weight(class_weight, classes, codes, weight)
    return TrainingData(X, y, codes, weight, classes, sample_weight=sample_weight)


def with_distributions(estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> TrainingData:
    """Data of a classification by labels, an indicator or distributions."""
    if is_device(X):
        X = check_device_X(estimator, X)
        found = check_device_targets(X, y, sample_weight, class_weight, stacklevel=6)
    else:
        X, y, weight = check_host_data(estimator, X, y, sample_weight, multi_output=True)
        found = check_targets(y, weight, class_weight, stacklevel=6)
    return TrainingData(X, y, found.values, found.weight, found.classes, found.multilabel, sample_weight)
