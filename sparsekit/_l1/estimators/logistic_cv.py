"""L1 logistic regression with C, and l1_ratio, chosen by cross-validation over warm-started paths."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from numbers import Integral
from typing import ClassVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..._arrays import to_host
from ..._docstrings import shares_entries
from ..._estimator.cross_validation import with_labels
from ..._estimator.decorators import with_parameters
from ..._estimator.training_data import with_labels as with_class_labels
from ..._typing import ClassWeight
from ..paths.settings import MAX_BYTES
from .cv_search import CV_CONSTRAINTS, PathSearchMixin
from .logistic import L1LogisticClassifierMixin, L1LogisticOBA


@shares_entries(L1LogisticOBA)
@with_parameters
class L1LogisticOBACV(PathSearchMixin, L1LogisticClassifierMixin, BaseEstimator):
    """L1-regularised logistic regression with C chosen by cross-validation or by a criterion.

    The objective is that of :class:`L1LogisticOBA`; as in scikit-learn, C multiplies the *sum* of the
    losses in every fold and in the final fit alike. Each fold solves one warm-started path.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C > 0 to try, in any order. An integer asks for that many values, evenly spaced in the
        logarithm. They begin at the largest C at which all penalised coefficients are zero on the whole data
        and end at ``1 / eps`` times it. Each ``l1_ratio`` has values of its own then. Where the largest is
        the best, the grid of the chosen ``l1_ratio`` goes on at the same distances. It grows by a third at a
        time until that brings no better score, up to 1e6 times as far. Below an ``l1_ratio`` of 1e-3, where
        no coefficient is ever zero, they begin as for 1e-3 and end as for 1.
    class_weight : dict or "balanced", default=None
        As in :class:`L1LogisticOBA`; "balanced" counts the whole data.
    eps : float, default=1e-3
        Ratio of the ends of the grid that an integer asks for, in (0, 1).
    l1_ratio : float or array-like, default=1.0
        Part of the penalty that is L1, from 0 (ridge) to 1 (L1 alone), or several to choose among.
        ``l1_ratio_`` is the one with the best mean score of any penalty; ties go to the larger one. Then
        ``selection`` chooses the penalty for it. Each value costs a path in every fold.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn; None is 5 stratified folds, fewer where every class has fewer rows.
    scoring : str or callable, default=None
        Any scikit-learn scorer for classifiers. None is accuracy, as in the released
        :class:`sklearn.linear_model.LogisticRegressionCV`; "neg_log_loss" judges the probabilities and
        is the smoother guide to C.
    selection : {"best", "1se", "aic", "bic", "ebic"}, default="best"
        How the penalty is chosen. "best" is the best mean score; ties go to the stronger penalty. "1se" is
        the strongest penalty, hence the sparsest model, whose mean score is at least the best one minus its
        standard error. The criteria "aic", "bic" and "ebic" run no folds but one path on all rows, see Notes.
        They ignore ``cv`` and ``refit``, and only `score` uses ``scoring``.
    relaxed : bool, default=False
        Whether the model is fitted again, without a penalty, to the coefficients that are not zero at the
        chosen penalty, as in the relaxed Lasso. The choice is that of the penalised models.
    refit : bool, default=True
        Fit all the data at ``C_``. If False the coefficients are the folds' average at ``C_``. A class that
        the training part of a fold lacks has the intercept -inf there and in the average. It is never
        predicted.
    {fit_intercept, penalty_weights}
    tol, max_iter : default=1e-5, 200
        As in :class:`L1LogisticOBA`. With ``refit`` the folds are only scored. They are solved to ten times
        tol, or until the predicted reduction is less than 30 tol of the objective.
    max_time : float, default=None
        Largest time in seconds of each path, and of the fit to all rows.
    n_jobs : int, default=None
        Number of folds that run at once, in threads; the final fit uses as many threads. Folds of small X,
        under 300 000 numbers, follow one another: threads would wait for the interpreter.
    {hessian, memory}
    verbose : int, default=0
        1 prints a line to the standard output as each fold ends.

    Attributes
    ----------
    C_ : float
        The chosen C.
    C_best_, C_1se_ : float
        The choices of the two rules of ``selection``.
    Cs_ : ndarray of shape (n_penalties,)
        The values tried with ``l1_ratio_``, rising; of it are the scores, too.
    scores_ : ndarray of shape (n_folds, n_penalties)
        Score of each fold's left-out part.
    coefs_paths_ : ndarray of shape (n_folds, n_penalties, n_features + 1) or \
(n_folds, n_penalties, n_classes, n_features + 1)
        Coefficients of each fold at each C, the intercept last (without ``fit_intercept`` there is none), in
        main memory. A class that a fold lacks has the intercept -inf. Only where it takes at most 64 MiB.
    mean_score_, se_ : ndarray of shape (n_penalties,)
        Mean of the scores over the folds, and its standard error.
    l1_ratio_ : float
        The chosen l1_ratio.
    l1_ratios_ : ndarray of shape (n_ratios,)
        Those tried, rising.
    l1_ratio_scores_ : ndarray of shape (n_ratios,)
        The best mean score of each.
    coef_, intercept_, classes_, needs_offset_, n_features_in_, feature_names_in_
        As in :class:`L1LogisticOBA`.
    criterion_ : ndarray of shape (n_penalties,) or (n_ratios, n_penalties)
        The criterion of each penalty, a row for each of several ``l1_ratios_``. Only where ``selection`` is a
        criterion; the attributes above that have scores, and choices by rules of folds, are missing then.
    n_iter_ : ndarray of shape (n_folds,) or (1,)
        Outer iterations of each fold's whole paths, or of those on all rows.
    optimality_, objective_, dual_gap_ : float
        Of the final fit; not with ``refit=False``.

    See Also
    --------
    L1LogisticOBA : The model for one C.
    l1_logistic_path : The path itself.
    shared_fits : Faster searches over other parameters by scikit-learn.

    Notes
    -----
    The criteria are those of :class:`LassoOBACV` with the deviance, twice the unpenalised loss, for
    n log(RSS / n). Of K > 2 classes a feature has at most K - 1 degrees of freedom. The intercepts have
    K - 1, and p is the number of features times K - 1. Weights, with those of classes, count like repeated
    rows: n is their sum. Where the grid of an integer ``Cs`` is coarse, so is the choice.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sparsekit import L1LogisticOBACV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L1LogisticOBACV(scoring="neg_log_loss", selection="1se").fit(scale(X), y)
    >>> model.C_ == model.C_1se_ <= model.C_best_
    True
    """

    Cs: int | ArrayLike = 10
    _: KW_ONLY
    class_weight: ClassWeight = None

    _penalty = "C"
    _own_score = L1LogisticClassifierMixin.score
    _widens = True

    _read = staticmethod(with_class_labels)
    _parameter_constraints: ClassVar[dict] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CV_CONSTRAINTS,
    }

    def _scored(self, given, whole):
        model, classes = L1LogisticOBA(), whole.classes
        self.classes_, model.classes_ = given.classes, classes
        return classes[to_host(given.values)], model, with_labels(self._get_scorer(), classes)

    @staticmethod
    def _as_penalty(lambdas):
        return 1.0 / lambdas

    def _store_path(self, path, largest, columns):
        self.coefs_paths_ = path.coefficients(self.fit_intercept, MAX_BYTES, columns)
        if self.coefs_paths_ is None:
            del self.coefs_paths_
        if len(path.lambdas) == 1:
            return
        if path.ends_best():
            end, beyond = "largest", "larger"
        elif largest is not None and path.lambdas[0] < largest and path.begins_best():
            end, beyond = "smallest", "smaller"
        else:
            return
        if largest is None:
            what = "the grid was widened to. Bring the columns of X to similar scales, or give Cs"
        else:
            what = f"of Cs. Add {beyond} values to Cs"
        warnings.warn(
            f"L1LogisticOBACV: the best C, {self.C_best_:.3g}, is the {end} {what}: the score may still rise "
            "beyond it.",
            UserWarning,
            stacklevel=5,
        )
