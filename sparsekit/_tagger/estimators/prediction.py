"""What a fitted `SequenceTagger` says: labels, marginals, a score; its coefficients as a sparse matrix."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..._estimator.checks import check_sample_weight
from ..._linalg.class_design import design_of
from ..._linalg.class_products import matmat
from ..._linalg.structure import check_sparse
from ..._linalg.threads import blas_threads, count_threads
from ..._messages import shown
from ..._typing import FloatArray
from ..losses.chains import add_ends, best, forward_backward, scored
from ..losses.constraints import allowed_by, broken
from ..solver.sparse_loss import SparseChains
from .sequences import read, read_labels


def _has_marginals(model):
    if model.loss not in ("crf", "sparsemap"):
        raise AttributeError(
            f"A SequenceTagger with loss={shown(model.loss)} has no probabilities. Fit one with "
            "loss='crf' or 'sparsemap', or use predict."
        )
    return True


class TaggerPredictionMixin(SparseCoefMixin):
    """Predictions from ``coef_``, ``transitions_``, ``start_`` and ``stop_``."""

    coef_: Any  # an array, or after `sparsify` a matrix of SciPy
    transitions_: FloatArray
    start_: FloatArray
    stop_: FloatArray
    classes_: Any
    n_features_in_: int
    loss: str
    constraints: Any
    n_jobs: int | None

    def _scores(self, X):
        """Scores (N, K) with those of the ends, starts (S + 1,), transitions (K, K) and their `Allowed`."""
        check_is_fitted(self, "coef_")
        given = read(X, getattr(self, "feature_names_in_", None), self.n_features_in_)
        n_threads = count_threads(self.n_jobs)
        allowed = allowed_by(self.constraints, self.classes_)
        with blas_threads(1):
            if sp.issparse(self.coef_):
                unary = given.X @ check_sparse(self.coef_, "coef_").T.astype(np.float64)
                unary = unary.toarray() if sp.issparse(unary) else np.ascontiguousarray(unary)
            else:
                unary = matmat(design_of(given.X, n_threads), self.coef_.T.astype(np.float64, order="C"))
        trans, begin, end = scored(self.transitions_, self.start_, self.stop_, allowed)
        return add_ends(unary, given.starts, begin, end), given.starts, trans, allowed

    def _allowed(self, classes, codes, starts):
        """The `Allowed` of ``constraints``; ValueError where labels of sequences break them."""
        allowed = allowed_by(self.constraints, classes)
        wrong = broken(codes, starts, allowed, classes)
        if wrong is not None:
            raise ValueError(f"constraints={self.constraints}: {wrong}.")
        return allowed

    def predict(self, X: Sequence[Any]) -> list[list[Any]]:
        """The best labelling of each sequence.

        Parameters
        ----------
        X : list of sequences
            As in fit. Features of dicts that fit has not seen are left out.

        Returns
        -------
        list of lists of labels

        Raises
        ------
        ValueError
            If X is not as in fit, or ``constraints`` allow no labelling of a sequence's length.
        """
        unary, starts, trans, _ = self._scores(X)
        tags, value = best(unary, starts, trans, count_threads(self.n_jobs))
        _refuse_impossible(value)
        labels = self.classes_[tags].tolist()
        return [labels[i:j] for i, j in pairwise(starts)]

    @available_if(_has_marginals)
    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """Probabilities of the labels at each position; with loss="sparsemap" most are exactly 0.

        The hinge loss has none.

        Parameters
        ----------
        X : list of sequences
            As in fit.

        Returns
        -------
        list of ndarray of shape (n_positions, n_labels)
            Columns in the order of ``classes_``.

        Raises
        ------
        ValueError
            As of `predict`.
        """
        unary, starts, trans, allowed = self._scores(X)
        ones = np.ones(len(starts) - 1)
        n_threads = count_threads(self.n_jobs)
        if self.loss == "sparsemap":
            _refuse_impossible(best(unary, starts, trans, n_threads)[1])
            warn_of_unsolved(SparseChains(starts, len(trans)).solve(unary, trans, ones, n_threads)[2])
        else:
            value, _ = forward_backward(unary, starts, trans, ones, n_threads, reach=allowed.reach())
            _refuse_impossible(value)
        return [unary[i:j] for i, j in pairwise(starts)]

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None) -> float:
        """Share of the positions whose label is right; spans: `sparsekit.metrics.span_f1_score`.

        Parameters
        ----------
        X : list of sequences
            As in fit.
        y : list of sequences of labels
            The true ones.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weights of the sequences, for each of their positions.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        lengths = [len(sequence) for sequence in predicted]
        true = read_labels(y, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
        flat = np.array([label for sequence in predicted for label in sequence])
        weight = check_sample_weight(sample_weight, len(lengths))
        each = None if weight is None else np.repeat(weight, lengths)
        return float(np.average(true == flat, weights=each))

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Coefficients of transitions that are not 0, by (previous, next) label."""
        check_is_fitted(self, "coef_")
        labels = self.classes_.tolist()
        return {
            (labels[a], labels[b]): float(self.transitions_[a, b]) for a, b in np.argwhere(self.transitions_)
        }

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Coefficients that are not 0, by (feature, label): a feature's name, or its column in matrices."""
        check_is_fitted(self, "coef_")
        labels, names = self.classes_.tolist(), getattr(self, "feature_names_in_", None)
        names = list(range(self.n_features_in_)) if names is None else names.tolist()
        coef = sp.coo_array(self.coef_)
        return {
            (names[j], labels[k]): v
            for k, j, v in zip(coef.row.tolist(), coef.col.tolist(), coef.data.tolist())
            if v != 0.0
        }


def warn_of_unsolved(n):
    if n:
        warnings.warn(
            f"SequenceTagger: SparseMAP of {n} sequences stopped before its tolerance; their marginals are "
            "approximate.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _refuse_impossible(value):
    if (value == -np.inf).any():
        i = int((value == -np.inf).argmax())
        raise ValueError(f"constraints allow no labelling of the length of X[{i}].")
