"""The estimators that files may name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError

from .._messages import shown


def class_named(name: str) -> type[BaseEstimator]:
    """The class of a name in `CONTRACTS`: a file names one of these and nothing else is ever imported."""
    return getattr(import_module("..", __package__), name)


def unfitted(name: str, parameters: Mapping[str, Any]) -> BaseEstimator:
    """An estimator with these parameters; ValueError where they are not those of its class."""
    model = class_named(name)()
    for key in parameters.keys() - model.get_params(deep=False).keys():
        raise ValueError(f"{name} has no parameter {shown(key)}")
    try:
        model.set_params(**parameters)
        model._validate_params()
    except InvalidParameterError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return model
