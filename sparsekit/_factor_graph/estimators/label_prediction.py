"""Marginals and sets of labels from a fitted model's coefficients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ..._arrays import to_host
from ..._fenchel_young.estimators.prediction import FenchelYoungClassifierMixin
from ..._linalg.special import expit, log_expit, softmax
from ..._linalg.threads import count_threads
from ..._typing import Array, FloatArray, MatrixLike
from ..factors.linear_factors import Xor
from ..graphs.graph import FactorGraph
from ..labels.label_loss import Labels
from ..solver.layout import GraphOptions
from .label_decisions import decide
from .label_sets import logic


class LabelSetsMixin(FenchelYoungClassifierMixin):
    """Predictions of `LPSparseMAPClassifier` and `LPSparseMAPClassifierCV`."""

    pairs_: Any
    pair_coef_: Any
    never_empty_: bool
    threshold_share_: float
    factors: Any
    loss: str
    n_jobs: int | None

    @property
    def _decides_by(self):
        return self.threshold

    def _inference(self, scores, quadratic):
        factors = logic(self.factors, len(self.classes_))
        if not self.multilabel_:
            factors = [Xor(FactorGraph().variable((len(self.classes_),)))]
        labels = Labels(len(self.classes_), to_host(self.pairs_), factors)
        s = self.pair_coef_
        options = GraphOptions(tol_primal=1e-9, tol_dual=1e-9, quadratic=quadratic)
        mu, statuses = labels.marginals(
            scores, np.maximum(s, 0.0), np.maximum(-s, 0.0), options, count_threads(self.n_jobs)
        )
        warn_of_unsolved(int(np.count_nonzero(statuses)), type(self).__name__)
        return mu

    def _probabilities(self, scores):
        if self.loss == "logistic":
            if self.multilabel_:
                return expit(scores)
            return softmax(log_expit(scores))
        return self._inference(scores, True)

    def predict_marginals(self, X: MatrixLike) -> FloatArray:
        """Marginals of the labels: LP-SparseMAP, eq. (10); with loss="logistic" probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Numbers between 0 and 1, many of them exactly so, in the type of the scores.
        """
        scores = self._scores(X)
        return self._probabilities(scores).astype(scores.dtype, copy=False)

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """The same as `predict_marginals`; rows sum to 1 where y was of one dimension only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Numbers between 0 and 1.
        """
        return self.predict_marginals(X)

    def predict(self, X: MatrixLike) -> Array:
        """Labels whose marginal exceeds the threshold; with loss="hinge" that of LP-MAP.

        With ``factors`` it is the nearest set of labels that obeys them: LP-MAP whose scores are marginals
        minus the threshold. If the set must not be empty, an `Or` of all labels is added.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_labels), or of shape (n_samples,) where y was of one dimension
            Zeros and ones, or labels from ``classes_``.

        Raises
        ------
        ValueError
            If no set of labels obeys all ``factors`` (with ``never_empty``, none that has a label).
        sklearn.exceptions.NotFittedError
            If ``threshold`` is "auto" but was a number or "expected_f1" in fit, so that none was chosen.
        """
        scores = self._scores(X)
        if not self.multilabel_:
            return self.classes_[scores.argmax(axis=1)]
        share = self._share() if self._decides_by == "auto" else 0.0
        mu = self._inference(scores, False) if self.loss == "hinge" else self._probabilities(scores)
        return decide(
            mu, scores, self._decides_by, self.never_empty_, self.factors, count_threads(self.n_jobs),
            share=share,
        )  # fmt: skip

    def _share(self):
        # models of earlier versions do not have it
        share = getattr(self, "threshold_share_", np.nan)
        if np.isnan(share):
            raise NotFittedError(
                f'{type(self).__name__} was fitted with another threshold: threshold="auto" follows from the '
                'training rows; call fit again, or set threshold to a number or "expected_f1".'
            )
        return share

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # It is one; but scikit-learn's checks of multi-label classifiers demand probabilities that are
        # strictly between 0 and 1, and nothing else reads the tag.
        tags.classifier_tags.multi_label = False
        return tags


def warn_of_unsolved(n_rows, who):
    if n_rows:
        warnings.warn(
            f"{who}: inference stopped before its tolerance in {n_rows} rows.",
            ConvergenceWarning,
            stacklevel=4,
        )
