"""scikit-learn's estimators for models that were fitted here: the same coefficients, the same predictions.

Functions of the estimators or of their parameters; what is fitted is set by `LinearModelMixin.to_sklearn`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from .._typing import ClassWeight
from .linear_model import no_counterpart, penalty_name

# before 1.8 LogisticRegression asked for the name of the penalty, which l1_ratio says since
_PENALTY_BY_RATIO = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)


def logistic_counterpart(
    l1_ratio: float = 0.0, *, fit_intercept: bool, class_weight: ClassWeight, **options: Any
) -> BaseEstimator:
    """Logistic regression: the sign of one score, or the softmax of several."""
    if l1_ratio:
        options |= {"l1_ratio": l1_ratio} if _PENALTY_BY_RATIO or l1_ratio < 1 else {}
        options |= {"solver": "saga"} | ({} if _PENALTY_BY_RATIO else {"penalty": penalty_name(l1_ratio)})
    return LogisticRegression(fit_intercept=fit_intercept, class_weight=class_weight, **options)


def largest_score_counterpart(*, fit_intercept: bool, class_weight: ClassWeight) -> BaseEstimator:
    """The class of the largest score, without probabilities."""
    return LinearSVC(multi_class="crammer_singer", fit_intercept=fit_intercept, class_weight=class_weight)


def one_against_rest_counterpart(model: Any) -> BaseEstimator:
    """A score for each class against the others; probabilities as scikit-learn's SGD has them."""
    return SGDClassifier(
        loss=model.loss, penalty=penalty_name(model.l1_ratio), alpha=float(model.alpha),
        l1_ratio=float(model.l1_ratio), fit_intercept=model.fit_intercept, class_weight=model.class_weight,
    )  # fmt: skip


def lasso_counterpart(
    alpha: float, l1_ratio: float, *, fit_intercept: bool, positive: bool = False
) -> BaseEstimator:
    """Least squares with the elastic net, by the name that its special cases have."""
    options = dict(fit_intercept=fit_intercept, positive=positive)
    if alpha == 0:
        return LinearRegression(**options)
    if l1_ratio == 1:
        return Lasso(alpha=float(alpha), **options)
    return ElasticNet(alpha=float(alpha), l1_ratio=float(l1_ratio), **options)


def regression_counterpart(model: Any) -> BaseEstimator:
    """A number a row, by the name that scikit-learn has for the loss."""
    bounds, l1_ratio, fit_intercept = model.bounds, model.l1_ratio, model.fit_intercept
    if model.loss == "squared":
        positive = isinstance(bounds, tuple | list) and isinstance(bounds[0], Real) and bounds[0] == 0
        positive = positive and (bounds[1] is None or (isinstance(bounds[1], Real) and bounds[1] == np.inf))
        return lasso_counterpart(model.alpha, l1_ratio, fit_intercept=fit_intercept, positive=bool(positive))
    if model.loss == "huber":  # whose epsilon is in units of a scale that it estimates
        return HuberRegressor(fit_intercept=fit_intercept)
    if model.loss == "epsilon_insensitive":
        return LinearSVR(epsilon=float(model.epsilon), fit_intercept=fit_intercept)
    options = {"alpha": float(model.alpha)} if l1_ratio == 1 or model.alpha == 0 else {}
    quantile = float(model.quantile) if model.loss == "quantile" else 0.5
    return QuantileRegressor(quantile=quantile, fit_intercept=fit_intercept, **options)


def family_counterpart(model: Any, family: Any, alpha: float, l1_ratio: float) -> BaseEstimator:
    """The generalised linear model of scikit-learn with the mean of ``family``, or ValueError."""
    options: dict[str, Any] = dict(alpha=float(alpha), fit_intercept=model.fit_intercept)
    positive = model.positive
    makers = {
        "Poisson": lambda: PoissonRegressor(**options),
        "Gamma": lambda: GammaRegressor(**options),
        "Tweedie": lambda: TweedieRegressor(power=float(model.power), link="log", **options),
        "Gaussian": lambda: lasso_counterpart(
            alpha, l1_ratio, fit_intercept=model.fit_intercept, positive=positive
        ),
        "Huber": lambda: HuberRegressor(fit_intercept=model.fit_intercept),
    }
    make = makers.get(type(family).__name__)
    if make is None:
        raise no_counterpart(model, "scikit-learn has no regression with these means.")
    counterpart = make()
    if hasattr(counterpart, "_get_loss"):
        counterpart._base_loss = counterpart._get_loss()  # which its predict reads, and only its fit sets
    return counterpart
