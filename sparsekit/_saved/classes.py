"""The estimators that files may name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError

from .._messages import shown

# where the classes are: a file names one of these and nothing else is ever imported
CLASSES = {
    "L1LogisticOBA": "_l1.estimators.logistic",
    "L1LogisticOBACV": "_l1.estimators.logistic_cv",
    "LassoOBA": "_l1.estimators.lasso",
    "LassoOBACV": "_l1.estimators.lasso_cv",
    "GLMOBA": "_l1.estimators.glm",
    "GLMOBACV": "_l1.estimators.glm_cv",
    "OrdinalOBA": "_l1.estimators.ordinal",
    "BoundedRegressor": "_bounded.estimators.regressor",
    "BoundedClassifier": "_bounded.estimators.classifier",
    "SparsemaxClassifier": "_fenchel_young.estimators.classifier",
    "SoftmaxClassifier": "_fenchel_young.estimators.classifier",
    "SparsemaxClassifierCV": "_fenchel_young.estimators.classifier_cv",
    "SoftmaxClassifierCV": "_fenchel_young.estimators.classifier_cv",
    "ExtremeSoftmaxSGD": "_extreme.estimators.classifier",
    "LPSparseMAPClassifier": "_factor_graph.estimators.classifier",
    "LPSparseMAPClassifierCV": "_factor_graph.estimators.classifier_cv",
    "SequenceTagger": "_tagger.estimators.tagger",
    "StabilitySelection": "_stability.selection",
}


def class_named(name: str) -> type[BaseEstimator]:
    """The class that `CLASSES` names."""
    return getattr(import_module(f"..{CLASSES[name]}", __package__), name)


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
