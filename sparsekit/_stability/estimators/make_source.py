"""The source of fits of halves: data, checked, and the model whose penalty falls."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from ..._arrays import namespace, to_host
from ..._estimator.checks import X_CHECKS, as_kernel_input, check_sample_weight
from ..._estimator.device_linear import refuse_device
from ..._estimator.labels import encode_labels, refuse_missing_labels
from ..._estimator.offset import check_offset
from ..._estimator.used_columns import UsedColumns, has_entries, without_empty_columns
from ..._estimator.validation import validate_data
from ..._l1.estimators.glm import GLMOBA
from ..._l1.estimators.lasso import LassoOBA
from ..._l1.estimators.logistic import L1LogisticOBA
from ..._l1.losses.null_intercept import unless_zero
from ..._l1.paths.coefficients import penalty_of
from ..solver.halves import refuse_few_rows
from .device import checked
from .sources import FittedSource, GLMSource, LassoSource, LogisticSource


def make_source(selection, X, y, params):
    """Where fits come from, the rows to draw from, codes of all rows or None, and the columns used."""
    model, given = selection._model(), X
    classifies = is_classifier(model)
    paths = type(model) in (L1LogisticOBA, LassoOBA, GLMOBA)
    if not paths or isinstance(model, GLMOBA):
        refuse_device(
            type(selection).__name__ + " of another estimator", "take L1LogisticOBA or LassoOBA", X=X, y=y
        )
    weight = params.get("sample_weight")
    if namespace(X=X) is not np:
        X, y, classes, weight = checked(selection, X, y, weight, classifies)
        codes = to_host(y) if classifies else None
    else:
        namespace(X=X, y=y)
        if classifies:
            refuse_missing_labels(y)
        X, y = validate_data(selection, X, y, **X_CHECKS, y_numeric=not classifies, ensure_min_samples=4)
        classes, codes = _labels(selection, y) if classifies else (None, None)
        weight = check_sample_weight(weight, X.shape[0])
    rows = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
    refuse_few_rows(rows, codes)
    names = getattr(selection, "feature_names_in_", None)
    columns = UsedColumns(X.shape[1])
    source: Any
    if paths:
        model._validate_params()
        unknown = sorted(params.keys() - {"sample_weight", "offset"})
        if unknown:
            raise TypeError(f"{type(model).__name__}.fit takes no {unknown[0]}.")
        whole = as_kernel_input(X)
        X, columns = without_empty_columns(whole)
        penalty = columns.restrict(penalty_of(whole, model.penalty_weights, 1.0, names))
        n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        shift = unless_zero(check_offset(params.get("offset"), X, n_outputs))
        if classifies:
            source = LogisticSource(model, X, classes, codes, weight, penalty, shift)
        else:
            make = GLMSource if isinstance(model, GLMOBA) else LassoSource
            source = make(model, X, y, weight, penalty, shift)
    else:
        parameter = next((name for name in ("C", "alpha") if name in model.get_params(deep=False)), None)
        if parameter is None:
            raise TypeError(
                f"estimator must have a penalty C or alpha; {type(model).__name__} has neither"
                + (" (the penalty is not to be chosen by it)." if hasattr(model, "cv") else ".")
            )
        named = given if hasattr(given, "iloc") else X  # its parameters may use names
        source = FittedSource(model, parameter, named, column_or_1d(y), params, weight)
    source.candidates &= has_entries(X)
    return source, rows, codes, columns


def _labels(selection, y):
    try:
        return encode_labels(y)
    except ValueError as error:
        if selection.estimator is not None or "Unknown label type" not in str(error):
            raise
        raise ValueError(
            f"{error} Without an estimator {type(selection).__name__} takes L1LogisticOBA() for classes; for "
            f"numbers give {type(selection).__name__}(LassoOBA())."
        ) from error
