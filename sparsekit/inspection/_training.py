"""What a fitted model minimised, as a function of one vector: value, gradient, score.

L1 models, sparsemax and softmax classifiers, and PyTorch modules have the same interface here. The value is
on the scale of the mean loss of a row, penalty included. Numbers of different models and data can be
compared.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._arrays import host_only
from .._estimator.checks import X_CHECKS, apply_class_weight, as_kernel_input, check_sample_weight
from .._estimator.targets import check_targets
from .._estimator.validation import validate_data
from .._extreme.estimators.targets import encode
from .._fenchel_young.estimators.classifier import SoftmaxClassifier, SparsemaxClassifier
from .._fenchel_young.estimators.classifier_cv import SoftmaxClassifierCV, SparsemaxClassifierCV
from .._fenchel_young.losses.loss import FenchelYoungLoss
from .._l1.estimators.lasso import LassoOBA
from .._l1.estimators.lasso_cv import LassoOBACV
from .._l1.estimators.logistic import L1LogisticOBA
from .._l1.estimators.logistic_cv import L1LogisticOBACV
from .._l1.losses.losses import LeastSquaresLoss
from .._l1.losses.multinomial import logistic_loss
from .._l1.paths.coefficients import check_penalty_weights, l1_weights, pack
from .._linalg.threads import count_threads
from .._messages import shown
from .._typing import MatrixLike
from ._training_function import TrainingFunction

if TYPE_CHECKING:
    from torch.nn import Module


def training_function(
    model: BaseEstimator | Module, X: MatrixLike, y: MatrixLike, **options: Any
) -> TrainingFunction:
    """The `TrainingFunction` of a fitted estimator or of a PyTorch module.

    ``options`` are sample_weight (estimators), loss and batch_size (modules).
    """
    if hasattr(model, "named_parameters"):
        from ._torch import module_function

        if options.get("sample_weight") is not None:
            raise TypeError("sample_weight is for estimators; weight the rows of a module in its loss.")
        return module_function(model, X, y, options.get("loss"), options.get("batch_size"))
    for name in ("loss", "batch_size"):
        if options.get(name) is not None:
            raise TypeError(f"{name} is for PyTorch modules; {type(model).__name__} is an estimator.")
    return estimator_function(model, X, y, options.get("sample_weight"))


def unwrap(estimator: BaseEstimator, X: MatrixLike | None = None) -> tuple[BaseEstimator, MatrixLike | None]:
    """The model at the end of searches and pipelines, and the data as they reach it; X may be None."""
    if hasattr(estimator, "estimator") and hasattr(estimator, "refit"):  # a search
        if not hasattr(estimator, "best_estimator_"):
            raise NotFittedError(
                f"{type(estimator).__name__} has no best_estimator_: fit it, with refit=True."
            )
        return unwrap(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        if X is not None and len(estimator) > 1:
            X = estimator[:-1].transform(X)
        return unwrap(estimator[-1], X)
    return estimator, X


def estimator_function(
    estimator: BaseEstimator, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None
) -> TrainingFunction:
    """The function that ``estimator`` minimised, on (X, y)."""
    estimator, X = unwrap(estimator, X)
    make = next((make for kinds, make in _FAMILIES if isinstance(estimator, kinds)), None)
    if make is None:
        raise TypeError(
            f"{type(estimator).__name__} is no L1LogisticOBA, LassoOBA, SparsemaxClassifier, "
            "SoftmaxClassifier or one of their ...CV. For another one pass a function of its parameters, "
            "and the parameters."
        )
    check_is_fitted(estimator)
    if estimator._on_device():
        raise TypeError(f"this {type(estimator).__name__} was fitted on the GPU: pass its to_cpu()")
    if getattr(estimator, "needs_offset_", False):
        raise ValueError(
            f"this {type(estimator).__name__} was fitted with an offset, which is part of what it minimised: "
            "pass a function of its parameters, and the parameters."
        )
    host_only(X=X, y=y, sample_weight=sample_weight)
    several = bool(getattr(estimator, "multilabel_", False))
    raw = X, y
    numbers = {"y_numeric": True} if make is _lasso else {}
    X, y = validate_data(estimator, X, y, reset=False, multi_output=several, **numbers, **X_CHECKS)
    # in double precision: the rounding of a sum in float32 would show as a rise
    X = as_kernel_input(X.astype(np.float64, copy=False))
    x, fun, attributes = make(estimator, X, y, check_sample_weight(sample_weight, X.shape[0]))

    def measure(x: np.ndarray) -> tuple[float, float]:
        moved = copy.copy(estimator)
        for name, value in attributes(x).items():
            setattr(moved, name, value)
        return fun(x)[0], float(moved.score(*raw, sample_weight=sample_weight))

    return TrainingFunction(x, fun, measure, "R²" if numbers else "accuracy")


def _codes(estimator, y, weight):
    """Positions of the labels among the estimator's, and the weights of the rows with those of classes."""
    classes = estimator.classes_
    y_codes = encode(y, classes)
    if (y_codes < 0).any():
        raise ValueError(f"y holds {shown(y[y_codes < 0][0].item())}, which is no class of the estimator.")
    # the classes of a part of the data are weighted by that part's frequencies, as a fit to it would
    return y_codes, apply_class_weight(getattr(estimator, "class_weight", None), classes, y_codes, weight)


class _Table:
    """Parameters as a table [W; b], a column for each output, in C order; with b only if it is fitted."""

    def __init__(self, estimator):
        self.scalar = np.ndim(estimator.coef_) == 1
        self.fitted = bool(estimator.fit_intercept)
        self.x = pack(estimator.coef_, estimator.intercept_, self.fitted)
        self.p = estimator.coef_.shape[-1]
        self.shape = (self.p + self.fitted, len(self.x) // (self.p + self.fitted))

    def split(self, x):
        """W of shape (p, K) and b of shape (K,)."""
        table = x.reshape(self.shape)
        return table[: self.p], table[self.p] if self.fitted else np.zeros(self.shape[1])

    def attributes(self, x):
        W, b = self.split(x)
        if self.scalar:
            return {"coef_": W[:, 0].copy(), "intercept_": float(b[0])}
        return {"coef_": np.ascontiguousarray(W.T), "intercept_": b.copy()}


def _oba(estimator, loss, strength, total, table):
    """``(loss + penalty) / total``, the penalty being the elastic net."""
    names = getattr(estimator, "feature_names_in_", None)
    penalty = l1_weights(check_penalty_weights(estimator.penalty_weights, table.p, names), strength)
    ratio = getattr(estimator, "l1_ratio_", estimator.l1_ratio)
    l1 = ratio * loss.l1_vector(penalty)
    l2 = (1.0 - ratio) * loss.l1_vector(penalty)

    def fun(x):
        value = loss.value(x) + float(l1 @ np.abs(x)) + 0.5 * float(l2 @ x**2)
        return value / total, (loss.gradient(x) + l1 * np.sign(x) + l2 * x) / total

    return table.x, fun, table.attributes


def _logistic(estimator, X, y, weight):
    codes, weight = _codes(estimator, y, weight)
    threads = count_threads(estimator.n_jobs)
    loss = logistic_loss(X, codes, len(estimator.classes_), weight, estimator.fit_intercept, threads)
    total = float(len(codes) if weight is None else weight.sum())
    C = getattr(estimator, "C_", None) or estimator.C
    return _oba(estimator, loss, 1.0 / C, total, _Table(estimator))


def _lasso(estimator, X, y, weight):
    threads = count_threads(estimator.n_jobs)
    loss = LeastSquaresLoss._of_validated(
        X, y.astype(np.float64), weight, fit_intercept=estimator.fit_intercept, n_threads=threads
    )
    total = float(X.shape[0] if weight is None else weight.sum())
    alpha = estimator.alpha_ if isinstance(estimator, LassoOBACV) else estimator.alpha
    return _oba(estimator, loss, alpha * total, total, _Table(estimator))


def _fenchel_young(estimator, X, y, weight):
    table, K = _Table(estimator), len(estimator.classes_)
    if estimator.multilabel_:
        # the kernels do not check the number of labels
        if np.ndim(y) != 2 or np.shape(y)[1] != K:
            raise ValueError(f"y must have a column for each of the {K} labels; its shape is {np.shape(y)}.")
        targets = check_targets(y, weight, estimator.class_weight)
        values, weight = targets.values, targets.weight
    else:
        values, weight = _codes(estimator, y, weight)
    loss = FenchelYoungLoss(
        estimator._transform, X, values, K, weight,
        fit_intercept=estimator.fit_intercept, n_threads=count_threads(estimator.n_jobs),
    )  # fmt: skip
    alpha = estimator.alpha_ if hasattr(estimator, "alpha_") else estimator.alpha

    def fun(x):
        T = x.reshape(table.shape)
        value, R = loss.derivatives(loss.scores(T))
        penalized = T if estimator.penalize_intercept else T[: table.p]
        G = loss.adjoint(R)
        G[: len(penalized)] += alpha * penalized
        return value + 0.5 * alpha * float(np.vdot(penalized, penalized)), G.ravel()

    return table.x, fun, table.attributes


_FAMILIES = (
    ((L1LogisticOBA, L1LogisticOBACV), _logistic),
    ((LassoOBA, LassoOBACV), _lasso),
    (
        (SparsemaxClassifier, SoftmaxClassifier, SparsemaxClassifierCV, SoftmaxClassifierCV),
        _fenchel_young,
    ),
)
