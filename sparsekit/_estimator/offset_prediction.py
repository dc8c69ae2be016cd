"""Linear models with an offset: what they predict from X w + b + offset."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .._arrays import namespace
from .._linalg.structure import check_sparse
from .._row_blocks.make import comes_in_blocks
from .._typing import Array, FloatArray, MatrixLike, Offset
from .block_prediction import by_blocks, score_of_blocks
from .device_checks import device_accuracy, device_r2
from .labels import refuse_missing_labels
from .linear_prediction import LinearClassificationMixin, LinearRegressionMixin
from .offset import add_offset, offset_of_scores


class OffsetRegressionMixin(LinearRegressionMixin):
    """Prediction of numbers, X w + b + offset."""

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
        return add_offset(super().predict(X), offset)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> float:
        """Coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `predict`.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        offset : float or array-like of shape (n_samples,), default=None
            As for `predict`.

        Returns
        -------
        float
        """
        if offset is None:
            return super().score(X, y, sample_weight)
        if comes_in_blocks(X):
            return score_of_blocks(self, X, y, sample_weight, offset)
        found = self.predict(X, offset=offset)
        if namespace(X=X, y=y, sample_weight=sample_weight) is np:
            return r2_score(y, found, sample_weight=sample_weight)
        return device_r2(found, y, sample_weight)


class OffsetClassificationMixin(LinearClassificationMixin):
    """Scores X w + b + offset, and the classes that they say."""

    @by_blocks
    def decision_function(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Scores ``X w + b + offset``: positive for the second of two classes, or one of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            On a GPU if and only if the model was fitted there.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            What is added to the scores, with a column for each class where there are more than two. None is
            zero, and a ValueError of a model that was fitted with an offset (see ``needs_offset_``).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        offset = offset_of_scores(self, offset)
        return add_offset(super().decision_function(X), offset)

    @by_blocks
    def predict(self, X: MatrixLike, offset: Offset = None) -> Array:
        """Class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `decision_function`.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if offset is None:
            return super().predict(X)
        scores = self.decision_function(X, offset)
        return self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> float:
        """Share of the rows whose class is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `decision_function`.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            As for `decision_function`.

        Returns
        -------
        float
        """
        if offset is None:
            return super().score(X, y, sample_weight)
        if comes_in_blocks(X):
            return score_of_blocks(self, X, y, sample_weight, offset)
        found = self.predict(X, offset=offset)
        if namespace(X=X, y=y, sample_weight=sample_weight) is np:
            refuse_missing_labels(y)
            return float(accuracy_score(check_sparse(y, "y"), found, sample_weight=sample_weight))
        return device_accuracy(found, y, sample_weight)
