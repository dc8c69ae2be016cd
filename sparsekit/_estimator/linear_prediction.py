"""What fitted linear models predict, where they were fitted."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel

from .._arrays import namespace
from .._linalg.structure import check_sparse
from .._typing import Array, FloatArray, MatrixLike
from .block_prediction import by_blocks, score_by_blocks
from .device_checks import device_accuracy, device_r2
from .device_linear import DeviceLinearMixin
from .labels import refuse_missing_labels
from .linear_model import vector_parts
from .validation import validate_data


class LinearRegressionMixin(DeviceLinearMixin, RegressorMixin, LinearModel):
    """Prediction of numbers."""

    @by_blocks
    def predict(self, X: MatrixLike) -> FloatArray:
        """Predictions ``X w + b``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            On a GPU if and only if the model was fitted there.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self._is_on_device(X):
            return self._device_scores(X)
        X = check_sparse(X)
        if not sp.issparse(self.coef_):
            return super().predict(X)
        # scikit-learn's answer would be a column for dense X, and none for sparse X
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        return X @ check_sparse(self.coef_, "coef_").toarray().ravel() + self.intercept_

    def _linear_parts(self):
        return vector_parts(*super()._linear_parts())

    def densify(self) -> Self:
        """Turn ``coef_`` back into a vector.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.coef_ = super().densify().coef_.reshape(-1)
        return self

    @score_by_blocks
    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `predict`.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        if namespace(X=X, y=y, sample_weight=sample_weight) is np:
            return super().score(X, y, sample_weight)
        return device_r2(self.predict(X), y, sample_weight)


class LinearClassificationMixin(DeviceLinearMixin, LinearClassifierMixin):
    """Prediction of classes by the signs of scores, or the largest of them."""

    @by_blocks
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Scores ``X w + b``: positive for the second of two classes, or one of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            On a GPU if and only if the model was fitted there.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        if self._is_on_device(X):
            return self._device_scores(X)
        check_sparse(self.coef_, "coef_")
        return super().decision_function(check_sparse(X))

    @by_blocks
    def predict(self, X: MatrixLike) -> Array:
        """Class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if not self._is_on_device(X):
            return super().predict(X)
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]

    @score_by_blocks
    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows whose class is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `decision_function`.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        if namespace(X=X, y=y, sample_weight=sample_weight) is np:
            refuse_missing_labels(y)
            return super().score(X, check_sparse(y, "y"), sample_weight)
        return device_accuracy(self.predict(X), y, sample_weight)
