"""What logistic models predict: scores X w + b + offset, and what follows from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from .._arrays import namespace
from .._estimator.block_prediction import by_blocks, score_of_blocks
from .._estimator.device_checks import device_accuracy
from .._estimator.labels import refuse_missing_labels
from .._estimator.linear_prediction import LinearClassificationMixin
from .._estimator.offset import add_offset, offset_of_scores
from .._estimator.penalty_name import PenaltyNameMixin
from .._linalg.special import expit, log_expit, log_softmax, softmax
from .._linalg.structure import sound
from .._row_blocks.make import comes_in_blocks
from .._typing import Array, FloatArray, MatrixLike, Offset


class L1LogisticClassifierMixin(PenaltyNameMixin, LinearClassificationMixin):
    """Prediction with a fitted linear logistic model; probabilities hold for scores of any size."""

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

    @by_blocks
    def predict_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `decision_function`.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            # expit(-z) instead of 1 - expit(z): a small probability keeps all its digits
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores)

    @by_blocks
    def predict_log_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Logarithm of `predict_proba`, computed without forming it: finite wherever the scores are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As for `decision_function`.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores)

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
            return float(accuracy_score(sound(y, "y"), found, sample_weight=sample_weight))
        return device_accuracy(found, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
