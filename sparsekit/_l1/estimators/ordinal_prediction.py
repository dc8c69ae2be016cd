"""What models of ordered classes predict from a score x.w + offset and thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..._docstrings import shares_entries
from ..._estimator.block_prediction import by_blocks
from ..._estimator.device_linear import VectorModelMixin, refuse_device
from ..._estimator.linear_model import PenaltyNameMixin, no_counterpart
from ..._estimator.offset import add_offset, offset_of_scores
from ..._estimator.offset_prediction import accuracy
from ..._estimator.validation import validate_data
from ..._linalg.structure import check_sparse
from ..._typing import Array, FloatArray, MatrixLike, Offset
from ..losses.ordinal import log_probabilities


@shares_entries()
class OrdinalPredictionMixin(PenaltyNameMixin, VectorModelMixin, ClassifierMixin):
    """Prediction of ordered classes; probabilities hold for scores of any size."""

    classes_: Array
    ranks_: Array
    thresholds_: FloatArray

    @by_blocks
    def predict_linear(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Score ``X w + offset`` of each row, which thresholds cut into classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.
        offset : float or array-like of shape (n_samples,), default=None
            What is added. None is zero, and a ValueError of a model that was fitted with an offset (see
            ``needs_offset_``).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        refuse_device(type(self).__name__, "use L1LogisticOBA", X=X, offset=offset)
        offset = offset_of_scores(self, offset)
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        coef = check_sparse(self.coef_, "coef_").toarray().ravel() if sp.issparse(self.coef_) else self.coef_
        return add_offset(X @ coef, offset)

    @by_blocks
    def predict_log_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Logarithm of `predict_proba`, computed without forming it: finite wherever the scores are.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        z = self.predict_linear(X, offset)
        return log_probabilities(z, self.thresholds_).astype(z.dtype, copy=False)[:, self.ranks_]

    @by_blocks
    def predict_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Probability of each class.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``, which is that of sorted labels.
        """
        return np.exp(self.predict_log_proba(X, offset))

    @by_blocks
    def decision_function(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Of two classes the log-odds of the second; of more the logarithms of the probabilities.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        if len(self.thresholds_) == 1:
            odds = self.predict_linear(X, offset) - self.thresholds_[0]
            return odds if self.ranks_[1] else -odds
        return self.predict_log_proba(X, offset)

    @by_blocks
    def predict(self, X: MatrixLike, offset: Offset = None) -> Array:
        """Most probable class of each row.

        {Parameters}

        {Returns}
        """
        places = self.predict_log_proba(X, offset).argmax(axis=1)
        return self.classes_[places]

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

    def _counterpart(self) -> Any:
        raise no_counterpart(self, "it has no model of ordered classes.")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of classes without an order, as scikit-learn's checks have
        return tags
