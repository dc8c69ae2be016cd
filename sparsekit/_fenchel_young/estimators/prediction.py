"""What fitted Fenchel-Young classifiers share: scores, probabilities and labels, where the data is."""

from __future__ import annotations

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..._arrays import namespace
from ..._docstrings import shares_entries
from ..._estimator.block_prediction import by_blocks
from ..._estimator.checks import in_type
from ..._estimator.device_checks import DeviceEstimatorMixin, check_device_X
from ..._estimator.device_linear import class_scores
from ..._estimator.linear_model import LinearModelMixin
from ..._estimator.offset_prediction import LabelScoreMixin
from ..._estimator.validation import validate_data
from ..._linalg.special import log_softmax, softmax
from ..._typing import Array, FloatArray, MatrixLike, Transform
from ..losses.sparsemax import sparsemax


def coefficients_of(table, columns, fit_intercept, dtype):
    """``coef_`` and ``intercept_`` of the solver's table, where it is."""
    p = len(table) - fit_intercept
    coef = namespace(table=table).ascontiguousarray(table[:p].T)
    intercept = table[p] if fit_intercept else np.zeros_like(table, shape=table.shape[1])
    return {"coef_": columns.expand(in_type(coef, dtype)), "intercept_": in_type(intercept, dtype)}


@shares_entries()
class FenchelYoungClassifierMixin(LinearModelMixin, DeviceEstimatorMixin, LabelScoreMixin):
    """Prediction with a fitted linear model and the map ``_transform`` from scores to probabilities."""

    multilabel_: bool
    classes_: Array
    fit_intercept: bool

    def _scores(self, X):
        check_is_fitted(self)
        if self._check_device(X):
            X = check_device_X(self, X, reset=False)
            if not hasattr(X, "nnz"):
                return X @ self.coef_.T + self.intercept_
            scores = class_scores(X, self.coef_, self.intercept_)
            return scores.astype(np.result_type(X.dtype, self.coef_.dtype))
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_

    @by_blocks
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Scores ``X W + b``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For two classes, as everywhere in scikit-learn, the difference of theirs, (n_samples,): positive
            where the second one is predicted.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2 and not self.multilabel_:
            return scores[:, 1] - scores[:, 0]
        return scores

    @by_blocks
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of the classes, or of the labels as shares of one distribution.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum to 1.
        """
        return self._probabilities(self._scores(X))

    @by_blocks
    def predict(self, X: MatrixLike) -> Array:
        """Most probable class, or the indicator of the labels whose probability exceeds the threshold.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples,), or of shape (n_samples, n_labels) for matrices as targets
            Labels from ``classes_``, or zeros and ones.
        """
        scores = self._scores(X)
        if not self.multilabel_:
            return self.classes_[scores.argmax(axis=1)]
        threshold = self._least_share(scores.shape[1]) if self.threshold is None else self.threshold
        return (self._probabilities(scores) > threshold).astype(np.int64)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = True
        return tags


class SparsemaxMap:
    """Probabilities by sparsemax."""

    _transform: Transform = "sparsemax"
    n_jobs: int | None

    def _probabilities(self, scores):
        return sparsemax(scores, n_jobs=self.n_jobs)

    def _least_share(self, n_labels):
        return 0.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of the class that this is mixed into
        # It is one; but scikit-learn's checks of multi-label classifiers demand probabilities that are
        # strictly between 0 and 1, and nothing else reads the tag.
        tags.classifier_tags.multi_label = False
        return tags


@shares_entries(FenchelYoungClassifierMixin.predict_proba)
class SoftmaxMap:
    """Probabilities by softmax."""

    _transform: Transform = "softmax"

    def _probabilities(self, scores):
        return softmax(scores)

    def _least_share(self, n_labels):
        return 1.0 / n_labels

    @by_blocks
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Logarithm of `predict_proba`, computed without forming it: finite wherever the scores are.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return log_softmax(self._scores(X))  # type: ignore[attr-defined]
