"""What logistic models predict: scores X w + b + offset, and what follows from them."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._docstrings import shares_entries
from ..._estimator.block_prediction import by_blocks
from ..._estimator.linear_model import PenaltyNameMixin, chosen
from ..._estimator.offset_prediction import OffsetClassificationMixin
from ..._estimator.sklearn_counterparts import logistic_counterpart
from ..._linalg.special import expit, log_expit, log_softmax, softmax
from ..._typing import FloatArray, MatrixLike, Offset


@shares_entries(OffsetClassificationMixin.decision_function)
class L1LogisticClassifierMixin(PenaltyNameMixin, OffsetClassificationMixin):
    """Prediction with a fitted linear logistic model; probabilities hold for scores of any size."""

    @by_blocks
    def predict_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Probability of each class.

        {Parameters}

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

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores)

    def _counterpart(self):
        ratio, C = chosen(self, "l1_ratio"), float(chosen(self, "C"))
        return logistic_counterpart(
            ratio, C=C, fit_intercept=self.fit_intercept, class_weight=self.class_weight
        )
