"""LPSparseMAPClassifierCV: the strength of the penalty and the decision's rule by cross-validation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, f1_score, get_scorer_names
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.validation import _check_method_params

from ..._estimator.base import SOLVER_CONSTRAINTS, CallbackSupportMixin
from ..._estimator.checks import check_penalties, check_sample_weight, in_units
from ..._estimator.cross_validation import CrossValidationMixin, for_scorers
from ..._estimator.decorators import fit_context
from ..._estimator.device_linear import refuse_device
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.class_design import design_of
from ..._linalg.threads import count_threads
from ..._messages import shown
from ..._typing import CrossValidation, MatrixLike, Scoring
from ..labels.independent import ROWS
from ..labels.label_strengths import count_and_spectrum, strengths
from .classifier import LPSparseMAPClassifier
from .label_prediction import LabelSetsMixin
from .label_sets import with_indicator

# factors of the strength chosen by generalised cross-validation
_MULTIPLES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)


def _example_f1(estimator, X, y, sample_weight=None):
    """Mean F1 of the rows' sets of labels; for classes the share of right ones."""
    found = estimator.predict(X)
    if not estimator.multilabel_:
        return accuracy_score(y, found, sample_weight=sample_weight)
    # two empty sets agree
    return f1_score(y, found, average="samples", sample_weight=sample_weight, zero_division=1.0)


class LPSparseMAPClassifierCV(CrossValidationMixin, CallbackSupportMixin, LabelSetsMixin, BaseEstimator):
    """LPSparseMAPClassifier with alpha and the threshold chosen by cross-validation.

    Each fold fits alphas from the strongest penalty to the weakest, each from the last solution. It scores
    each threshold on the rows that it left out.

    Parameters
    ----------
    alphas : array-like, default=None
        Values > 0 to try, in any order. None: 30, 10, 3, 1, 0.3, 0.1 and 0.03 times what alpha="auto" is.
    thresholds : sequence of float, "auto" or "expected_f1", default=("auto", "expected_f1", 0.5)
        Rules of decision to try, as ``threshold`` of :class:`LPSparseMAPClassifier`. For y of one dimension,
        which has no threshold, only the first one counts.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn; None is 5 folds with even shares of the labels (of matrices: of each row's
        rarest one).
    scoring : str or callable, default=None
        Any scikit-learn scorer. None is the mean F1 of the rows' sets of labels (two empty sets have 1). For
        y of one dimension it is the accuracy.
    loss, pairs, pair_alpha, factors : default="sparsemap", None, None, None
        As in :class:`LPSparseMAPClassifier`; ``pair_alpha=None`` is alpha.
    fit_intercept, never_empty, tol, max_iter : default=True, None, 1e-4, 1000
        As in :class:`LPSparseMAPClassifier`.
    max_time : float, default=None
        Largest time of each fit in seconds.
    n_jobs : int, default=None
        Number of folds that run at once, in threads; the final fit uses as many threads.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha: of the best mean score, and the largest of equal ones.
    threshold_ : float, "auto" or "expected_f1"
        The chosen threshold, the first of equal ones.
    alphas_ : ndarray of shape (n_alphas,)
        The values tried, falling.
    threshold_scores_ : ndarray of shape (n_thresholds, n_folds, n_alphas)
        Score of each fold's left-out part by each threshold.
    scores_ : ndarray of shape (n_folds, n_alphas)
        Those of the chosen threshold.
    mean_score_, se_ : ndarray of shape (n_alphas,)
        Mean of ``scores_`` over the folds, and its standard error.
    n_iter_ : ndarray of shape (n_folds,)
        Steps of each fold's fits.
    coef_, intercept_, pairs_, pair_coef_, never_empty_, threshold_share_, pair_alpha_, classes_, multilabel_
        As in :class:`LPSparseMAPClassifier`, of the final fit.
    optimality_, objective_, dual_gap_
        As in :class:`LPSparseMAPClassifier`, of the final fit.
    n_features_in_, feature_names_in_
        As in :class:`LPSparseMAPClassifier`.

    See Also
    --------
    LPSparseMAPClassifier : The model for one alpha, by default one that follows from the data without folds.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sparsekit import LPSparseMAPClassifierCV
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> model = LPSparseMAPClassifierCV(alphas=[1.0, 0.1, 0.01], cv=3).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 5)
    """

    _default_scoring = staticmethod(_example_f1)

    _parameter_constraints: ClassVar[dict] = {
        "alphas": ["array-like", None],
        "thresholds": [list, tuple],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "loss": [StrOptions(set(ROWS))],
        "pairs": [StrOptions({"all"}), Interval(Integral, 0, None, closed="left"), "array-like", None],
        "pair_alpha": [Interval(Real, 0, None, closed="left"), None],
        "factors": [list, tuple, callable, None],
        "fit_intercept": ["boolean"],
        "never_empty": ["boolean", None],
        **{name: SOLVER_CONSTRAINTS[name] for name in ("tol", "max_iter", "max_time", "n_jobs")},
    }

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        thresholds: Sequence[float | str] = ("auto", "expected_f1", 0.5),
        cv: CrossValidation = None,
        scoring: Scoring = None,
        loss: Literal["sparsemap", "hinge", "logistic"] = "sparsemap",
        pairs: Literal["all"] | int | ArrayLike | None = None,
        pair_alpha: float | None = None,
        factors: Sequence[tuple[Any, ...]] | Callable[..., Any] | None = None,
        fit_intercept: bool = True,
        never_empty: bool | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.thresholds = thresholds
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.pairs = pairs
        self.pair_alpha = pair_alpha
        self.factors = factors
        self.fit_intercept = fit_intercept
        self.never_empty = never_empty
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs

    @property
    def _decides_by(self):
        return self.threshold_

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Choose alpha and the threshold by cross-validation and fit all the data with them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : {array-like, sparse matrix} of shape (n_samples, n_labels), or array-like of shape (n_samples,)
            Indicator of zeros and ones; or classes of any kind.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows in the fits. Scores use them too, unless metadata routing says
            otherwise.
        **params : dict
            Metadata for the splitter (such as ``groups``) and the scorer; needs metadata routing.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As :meth:`LPSparseMAPClassifier.fit`, or if a threshold is out of its range or a score is NaN. If
            a fold has no row of positive weight to fit or to score.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If fits of folds or the final one ended early.
        """
        _raise_for_params(params, self, "fit")
        refuse_device(type(self).__name__, "fit LPSparseMAPClassifier for each alpha", X=X, y=y)
        thresholds = _check_thresholds(self.thresholds)
        given = with_indicator(self, X, y, sample_weight)
        X, weight = given.X, given.weight
        small, columns = without_empty_columns(X)
        self.classes_, self.multilabel_ = given.classes, given.multilabel
        target = given.values.astype(np.int64)
        if not given.multilabel:
            target, thresholds = given.classes[given.values.argmax(axis=1)], thresholds[:1]
        self.alphas_ = self._alphas(given, small)
        base_weight, _ = in_units(check_sample_weight(sample_weight, X.shape[0]))
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        with _said_once():
            done, monitor = self._score_folds(
                self._score_fold, (small, target, weight, columns, thresholds), X, target,
                None if given.multilabel else given.classes, base_weight, params,
                {"X": X, "y": y, "metadata": metadata},
            )  # fmt: skip
        self._choose(np.array([scores for scores, _ in done]).transpose(1, 0, 2), thresholds)
        self.n_iter_ = np.array([steps for _, steps in done], dtype=np.int32)
        final = self._part(self.alpha_, self.n_jobs).set_params(threshold=self.threshold_)
        with _said_once():
            final.fit(X, target, sample_weight=weight)
        for name, value in vars(final).items():
            if name.endswith("_") and name != "n_iter_":
                setattr(self, name, value)
        monitor.end()
        return self

    def _part(self, alpha, n_jobs):
        own, shared = self.get_params(deep=False), LPSparseMAPClassifier().get_params()
        part = LPSparseMAPClassifier(**{name: own[name] for name in own.keys() & shared.keys()})
        return part.set_params(alpha=alpha, n_jobs=n_jobs)

    def _alphas(self, given, X):
        if self.alphas is not None:
            return np.sort(check_penalties(self.alphas, "alphas"))[::-1]
        counts = np.ones(len(given.values)) if given.weight is None else given.weight
        design = design_of(X, count_threads(self.n_jobs))
        alpha, _, _ = strengths("auto", None, self.loss, design, given.values, counts, self.fit_intercept)
        return np.array(_MULTIPLES) * max(alpha, 1e-150)

    def _score_fold(self, X, y, weight, columns, thresholds, fold, index, scorer, score_params):
        """Scores (n_thresholds, n_alphas) of the left-out rows, and the number of steps."""
        train, test = fold
        own = None if weight is None else weight[train]
        if not len(test) or not len(train):
            raise ValueError(
                f"fold {index} has no row to fit, or none to score; use fewer or shuffled folds."
            )
        score_params = _check_method_params(X=X, params=score_params, indices=test)
        X_test, y_test = columns.widen(X[test]), for_scorers(y[test])
        part, steps = self._part(float(self.alphas_[0]), None).set_params(warm_start=True), 0
        scores = np.empty((len(thresholds), len(self.alphas_)))
        at_fit = "auto" if "auto" in thresholds else thresholds[0]
        if at_fit == "auto" and self.multilabel_ and self.loss != "hinge" and self.factors is None:
            counts = np.ones(len(train)) if own is None else own
            design, Y = design_of(X[train], 1), y[train].astype(np.float64)
            part._known_spectrum = count_and_spectrum(design, Y, counts, self.fit_intercept)[1]
        for i, alpha in enumerate(self.alphas_.tolist()):
            part.set_params(alpha=alpha, threshold=at_fit).fit(X[train], y[train], sample_weight=own)
            steps += int(part.n_iter_[0])
            model = copy.copy(part)
            model.coef_, model.n_features_in_ = columns.expand(part.coef_), columns.n_features
            for t, threshold in enumerate(thresholds):
                model.set_params(threshold=threshold)
                scores[t, i] = scorer(model, X_test, y_test, **score_params)
        return scores, steps

    def _choose(self, scores, thresholds):
        """Set what follows from the scores (n_thresholds, n_folds, n_alphas)."""
        if np.isnan(scores).any():
            _, k, i = np.argwhere(np.isnan(scores))[0]
            raise ValueError(f"scoring gave NaN for alpha={self.alphas_[i]:g} in fold {k}.")
        means = scores.mean(axis=1)
        t, i = np.unravel_index(int(np.argmax(means)), means.shape)
        self.threshold_scores_ = scores
        self.threshold_, self.alpha_ = thresholds[t], float(self.alphas_[i])
        self._set_scores(scores[t])


@contextmanager
def _said_once():
    """What was said of all labels is not said again of each fold's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes")
        yield


def _check_thresholds(thresholds):
    found = []
    for one in thresholds:
        if isinstance(one, str):
            good = one in ("auto", "expected_f1")
        else:
            good = isinstance(one, Real) and not isinstance(one, bool) and 0 <= one < 1
        if not good:
            raise ValueError(
                f'thresholds must be "auto", "expected_f1" or numbers from 0 to below 1; got {shown(one)}.'
            )
        found.append(one if isinstance(one, str) else float(one))
    if not found:
        raise ValueError("thresholds must name at least one.")
    return found
