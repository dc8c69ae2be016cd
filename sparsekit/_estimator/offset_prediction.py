"""What fitted linear models predict from X w + b + offset, where they were fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .._arrays import namespace, to_host
from .._docstrings import shares_entries
from .._linalg.structure import check_sparse
from .._row_blocks.make import comes_in_blocks
from .._typing import Array, FloatArray, MatrixLike, Offset
from .block_prediction import by_blocks, score_of_blocks
from .checks import weight_of_metric
from .device_linear import DeviceLinearMixin
from .labels import refuse_missing_labels
from .offset import add_offset, offset_of_scores
from .validation import validate_data


@shares_entries()
class OffsetRegressionMixin(DeviceLinearMixin, RegressorMixin, LinearModel):
    """Prediction of numbers, X w + b + offset."""

    _has_vector = True

    @by_blocks
    def predict(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Predictions ``X w + b + offset``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            On a GPU if and only if the model was fitted there.
        offset : float or array-like of shape (n_samples,), default=None
            What is added. None is zero, and a ValueError of a model that was fitted with an offset (see
            ``needs_offset_``).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        offset = offset_of_scores(self, offset)
        if self._check_device(X):
            return add_offset(self._device_scores(X), offset)
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        coef = check_sparse(self.coef_, "coef_").toarray().ravel() if sp.issparse(self.coef_) else self.coef_
        return add_offset(X @ coef + self.intercept_, offset)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> float:
        """Coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        {offset}

        Returns
        -------
        float
        """
        if comes_in_blocks(X):
            return score_of_blocks(self, X, y, sample_weight, offset)
        namespace(X=X, y=y, sample_weight=sample_weight)
        weight = weight_of_metric(to_host(sample_weight))
        return r2_score(to_host(y), to_host(self.predict(X, offset=offset)), sample_weight=weight)


@shares_entries()
class OffsetClassificationMixin(DeviceLinearMixin, LinearClassifierMixin):
    """Scores X w + b + offset, and the classes that they say: by their signs, or the largest of them."""

    @by_blocks
    def decision_function(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Scores ``X w + b + offset``: positive for the second of two classes, or one of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            On a GPU if and only if the model was fitted there.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            What is added to the scores, of the shape that `fit` takes. None is zero, and a ValueError of a
            model that was fitted with an offset (see ``needs_offset_``).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        offset = offset_of_scores(self, offset)
        if self._check_device(X):
            return add_offset(self._device_scores(X), offset)
        check_sparse(self.coef_, "coef_")
        return add_offset(super().decision_function(check_sparse(X)), offset)

    @by_blocks
    def predict(self, X: MatrixLike, offset: Offset = None) -> Array:
        """Class of each row.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X, offset)
        return self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> float:
        """Share of the rows whose class is predicted.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        {offset}

        Returns
        -------
        float
        """
        return accuracy(self, X, y, sample_weight, offset=offset)


class LabelScoreMixin(ClassifierMixin):
    """The score of a classifier whose targets may also be a matrix of labels."""

    def score(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows whose class, or whose set of labels, is predicted exactly.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            On a GPU if and only if the model was fitted there.
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Their classes, or an indicator of their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        return accuracy(self, X, y, sample_weight)


def accuracy(model: Any, X: MatrixLike, y: Any, sample_weight: Any, **offset: Any) -> float:
    """Share of the rows that ``model.predict`` gets right, by weight; ``offset`` is handed on to it."""
    if comes_in_blocks(X):
        return score_of_blocks(model, X, y, sample_weight, **offset)
    namespace(X=X, y=y, sample_weight=sample_weight)
    refuse_missing_labels(y)
    found = to_host(model.predict(X, **offset))
    weight = weight_of_metric(to_host(sample_weight))
    return float(accuracy_score(check_sparse(to_host(y), "y"), found, sample_weight=weight))
