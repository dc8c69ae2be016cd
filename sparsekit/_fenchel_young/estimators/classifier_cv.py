"""Sparsemax and softmax regression with alpha chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer_names
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.validation import _check_method_params

from ..._estimator.base import CallbackSupportMixin
from ..._estimator.block_data import gathered_data
from ..._estimator.checks import check_penalties, in_units
from ..._estimator.cross_validation import CrossValidationMixin, for_scorers
from ..._estimator.decorators import fit_context, with_parameters
from ..._estimator.device_linear import refuse_device
from ..._estimator.targets import check_targets
from ..._estimator.training_data import check_host_data
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..._row_blocks.make import comes_in_blocks
from ..._typing import ClassWeight, CrossValidation, MatrixLike, Scoring
from ...metrics import jensen_shannon_divergence
from ..losses.loss import FenchelYoungLoss
from ..solver.minimize_model import minimize_fenchel_young
from .classifier import MAX_ITER, TOL
from .messages import warn_if_ended_early, warn_of_path
from .path import ALPHAS, ONE_BY_ONE, OPTIONS, solve_path
from .prediction import FenchelYoungClassifierMixin, SoftmaxMap, SparsemaxMap, coefficients_of


def _divergence_score(estimator, X, y, sample_weight=None):
    """Negative Jensen-Shannon divergence between targets and probabilities."""
    P = estimator.predict_proba(X)
    if estimator.multilabel_:
        q = y.toarray() if sp.issparse(y) else np.asarray(y, dtype=np.float64)
        q = q / q.sum(axis=1, keepdims=True)
    else:
        q = np.asarray(y)[:, None] == estimator.classes_
    return -jensen_shannon_divergence(q, P, sample_weight=sample_weight)


@with_parameters
class _FenchelYoungClassifierCV(
    CrossValidationMixin, CallbackSupportMixin, FenchelYoungClassifierMixin, BaseEstimator
):
    """What the two classifiers with cross-validation share."""

    alphas: ArrayLike | None = None
    _: KW_ONLY
    cv: CrossValidation = None
    scoring: Scoring = None
    fit_intercept: bool = True
    penalize_intercept: bool = True
    threshold: float | None = None
    class_weight: ClassWeight = None
    tol: float = TOL
    max_iter: int = MAX_ITER
    max_time: float | None = None
    n_jobs: int | None = None

    _default_scoring = staticmethod(_divergence_score)

    _parameter_constraints: ClassVar[dict] = {
        "alphas": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "threshold": [Interval(Real, 0, 1, closed="left"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **OPTIONS,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Choose alpha by cross-validation and fit all the data with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Labels, an indicator or distributions, as in :class:`SparsemaxClassifier`.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, in the fits and (as metadata routing says, or always where it is off) in
            the scores.
        **params : dict
            Metadata for the splitter (such as ``groups``) and the scorer; needs metadata routing.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As the classifier without CV, or if a fold has no row with a label to fit or to score, or a score
            is NaN.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If fits of folds or the final one ended early, as in the classifier without CV; folds are named.
        """
        _raise_for_params(params, self, "fit")
        refuse_device(type(self).__name__, ONE_BY_ONE, X=X, y=y, sample_weight=sample_weight)
        names = None
        if comes_in_blocks(X):
            X, y, sample_weight, names = gathered_data(self, X, y, sample_weight)
        X, y, weight = check_host_data(self, X, y, sample_weight, multi_output=True, accept_sparse="csr")
        if names is not None:
            self.feature_names_in_ = names
        base_weight, _ = in_units(weight)  # objectives and scores are means
        targets = check_targets(y, base_weight, self.class_weight)
        self.classes_, self.multilabel_ = targets.classes, targets.multilabel
        given, (X, columns) = X, without_empty_columns(X)
        if not targets.multilabel:
            y = (y.toarray() if sp.issparse(y) else y).ravel()
        alphas = check_penalties(ALPHAS if self.alphas is None else self.alphas, "alphas")
        self.alphas_ = np.sort(alphas)[::-1]
        options = dict(tol=self.tol, max_iter=self.max_iter, max_time=self.max_time)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        done, monitor = self._score_folds(
            self._score_fold, (X, y, targets, columns, options), given, y,
            None if targets.multilabel else targets.classes, base_weight, params,
            {"X": given, "y": y, "metadata": metadata},
        )  # fmt: skip
        scores, results = zip(*done)
        self._choose(np.array(scores))
        loss = self._loss(X, targets, slice(None), count_threads(self.n_jobs))
        final = minimize_fenchel_young(
            loss, self.alpha_, penalize_intercept=self.penalize_intercept, **options
        )
        self.__dict__.update(coefficients_of(final.x, columns, self.fit_intercept, X.dtype))
        self.n_iter_ = np.array([sum(r.nit for r in run) for run in results], dtype=np.int32)
        self.optimality_, self.objective_ = float(final.optimality), float(final.fun)
        self.dual_gap_ = float(final.dual_gap)
        monitor.end()
        warn_of_path(
            results, self.alphas_, options, who=type(self).__name__, stacklevel=4,
            names=[f"fold {k}" for k in range(len(results))],
        )  # fmt: skip
        warn_if_ended_early(final, options, who=type(self).__name__, stacklevel=3)
        return self

    def _choose(self, scores):
        """Set the scores and the choice of alpha from the folds' scores (n_folds, n_alphas)."""
        if np.isnan(scores).any():
            k, i = np.argwhere(np.isnan(scores))[0]
            raise ValueError(f"scoring gave NaN for alpha={self.alphas_[i]:g} in fold {k}.")
        self._set_scores(scores)
        self.alpha_ = float(self.alphas_[int(np.argmax(self.mean_score_))])  # the largest of equal ones

    def _loss(self, X, targets, rows, threads):
        weight = None if targets.weight is None else targets.weight[rows]
        return FenchelYoungLoss(
            self._transform, X[rows], targets.values[rows], len(targets.classes), weight,
            fit_intercept=self.fit_intercept, n_threads=threads,
        )  # fmt: skip

    def _score_fold(self, X, y, targets, columns, options, fold, index, scorer, score_params):
        """Scores of the left-out rows, and the results, for every alpha."""
        train, test = fold
        if targets.labelled is not None:
            test = test[targets.labelled[test]]
        weight = None if targets.weight is None else targets.weight[train]
        if not len(test) or (weight is not None and not weight.any()):
            raise ValueError(
                f"fold {index} has no row with a label and a positive weight to fit, or none to score; use "
                "fewer or shuffled folds."
            )
        loss = self._loss(X, targets, train, 1)
        loss.blas_threads = None
        part = type(self)(threshold=self.threshold, fit_intercept=self.fit_intercept)
        for name in ("classes_", "multilabel_", "n_features_in_"):
            setattr(part, name, getattr(self, name))
        score_params = _check_method_params(X=X, params=score_params, indices=test)
        X_test, y_test = columns.widen(X[test]), for_scorers(y[test])
        scores, results = [], []
        for result in solve_path(loss, self.alphas_, None, self.penalize_intercept, options):
            part.__dict__.update(coefficients_of(result.x, columns, self.fit_intercept, X.dtype))
            scores.append(scorer(part, X_test, y_test, **score_params))
            # tables of all folds and alphas would be many times the data
            del result["x"], result["grad"]
            results.append(result)
        return scores, results


_CV_DOC = """{what} with alpha chosen by cross-validation.

    Each fold solves one path over alpha, from the strongest penalty to the weakest, every solution started
    from the last.

    Parameters
    ----------
    alphas : array-like, default=None
        Values > 0 to try, in any order. None: ten powers of 10, from 10 to 1e-8.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn. None is 5 folds, stratified by the label, or by each row's rarest label if y is a
        matrix.
    scoring : str or callable, default=None
        Any scikit-learn scorer for classifiers. None is the negative Jensen-Shannon divergence between
        targets and probabilities, which is defined for labels, indicators and distributions alike.
    fit_intercept, penalize_intercept, threshold, class_weight : default=True, True, None, None
        As in :class:`{model}`.
    tol, max_iter, max_time : default=1e-5, 200, None
        As in :class:`{model}`; they hold for each solve.
    n_jobs : int, default=None
        Number of folds that run at once, in threads; the final fit uses as many threads.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha: of the best mean score, and the largest of equal ones.
    alphas_ : ndarray of shape (n_alphas,)
        The values tried, falling.
    scores_ : ndarray of shape (n_folds, n_alphas)
        Score of each fold's left-out part.
    mean_score_, se_ : ndarray of shape (n_alphas,)
        Mean of the scores over the folds, and its standard error.
    n_iter_ : ndarray of shape (n_folds,)
        Steps of each fold's path.
    coef_, intercept_, classes_, multilabel_, optimality_, objective_, dual_gap_
        As in :class:`{model}`, of the final fit.
    n_features_in_, feature_names_in_
        As in :class:`{model}`.

    See Also
    --------
    {model} : The model for one alpha.
    fenchel_young_path : The path itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsekit import {model}CV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = {model}CV(alphas=[1e-1, 1e-2, 1e-3]).fit(X, y)
    >>> model.alpha_, model.mean_score_.round(3)
    (0.001, array({scores}))
    """


class SparsemaxClassifierCV(SparsemaxMap, _FenchelYoungClassifierCV):
    __doc__ = _CV_DOC.format(
        what="Sparsemax regression", model="SparsemaxClassifier", scores="[-0.106, -0.044, -0.021]"
    )


class SoftmaxClassifierCV(SoftmaxMap, _FenchelYoungClassifierCV):
    __doc__ = _CV_DOC.format(
        what="Softmax regression", model="SoftmaxClassifier", scores="[-0.139, -0.061, -0.027]"
    )
