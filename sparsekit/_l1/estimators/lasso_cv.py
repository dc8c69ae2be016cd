"""The Lasso and the elastic net; cross-validation over warm paths chooses alpha and l1_ratio."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from ..._arrays import to_host
from ..._docstrings import shares_entries
from ..._estimator.decorators import with_parameters
from ..._estimator.training_data import with_numbers
from .cv_search import CV_CONSTRAINTS, PathSearchMixin
from .lasso import LassoOBA, LassoPredictionMixin
from .logistic_cv import L1LogisticOBACV


@shares_entries(L1LogisticOBACV)
@with_parameters
class LassoOBACV(PathSearchMixin, LassoPredictionMixin, BaseEstimator):
    """The Lasso, or the elastic net, with alpha chosen by cross-validation or by a criterion.

    The objective is that of :class:`LassoOBA`, whose loss is a mean, in every fold as in the final fit. Each
    fold solves one warm-started path. Parameters and results are those that
    :class:`sklearn.linear_model.LassoCV` and :class:`sklearn.linear_model.ElasticNetCV` have.

    Parameters
    ----------
    alphas : int or array-like, default=100
        Values of alpha > 0 to try, in any order. An integer asks for that many values, evenly spaced in the
        logarithm. They begin at the smallest alpha at which all penalised coefficients are zero on the whole
        data and end at ``eps`` times it. Each ``l1_ratio`` has values of its own then. Below an ``l1_ratio``
        of 1e-3, where no coefficient is ever zero, they begin as for 1e-3 and end as for 1.
    positive : bool, default=False
        Whether coefficients must be >= 0, as in :class:`LassoOBA`.
    {eps, l1_ratio}
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn; None is 5 folds of successive rows, fewer where there are fewer rows.
    scoring : str or callable, default=None
        Any scikit-learn scorer for regression. None is the mean squared error, which ``mse_path_`` keeps.
    {selection, relaxed}
    refit : bool, default=True
        Fit all the data at ``alpha_``. If False the coefficients are the folds' average at ``alpha_``.
    {fit_intercept, penalty_weights}
    tol, max_iter : default=1e-5, 200
        As in :class:`LassoOBA`. With ``refit`` the folds, which are only scored, are solved until the duality
        gap is at most 30 tol of the objective.
    {max_time, n_jobs, hessian, memory, verbose}

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    alpha_best_, alpha_1se_ : float
        The choices of the two rules of ``selection``.
    alphas_ : ndarray of shape (n_penalties,) or (n_ratios, n_penalties)
        The values tried, falling; a row for each of ``l1_ratios_`` where several have grids of their own.
    mse_path_ : ndarray of shape (n_penalties, n_folds) or (n_ratios, n_penalties, n_folds)
        Mean squared error on each fold's left-out part, weighted by its rows' weights; only with
        ``scoring=None``.
    scores_ : ndarray of shape (n_folds, n_penalties)
        Score of each fold's left-out part with ``l1_ratio_``: with ``scoring=None`` minus the error.
    {mean_score_, se_, l1_ratio_, l1_ratios_, l1_ratio_scores_}
    coef_, intercept_, needs_offset_, n_features_in_, feature_names_in_
        As in the model for one alpha.
    {criterion_, n_iter_, optimality_, objective_, dual_gap_}

    See Also
    --------
    LassoOBA : The model for one alpha.
    lasso_path : The path itself.
    L1LogisticOBACV : The same for classes.
    shared_fits : Faster searches over other parameters by scikit-learn.

    Notes
    -----
    There are n rows, p features and k nonzero coefficients. The degrees of freedom are df = k + 1 (k without
    an intercept), see Zou, Hastie and Tibshirani (Annals of Statistics 35, 2007). The criteria are

    - AIC = n log(RSS / n) + 2 df,
    - BIC = n log(RSS / n) + log(n) df,
    - EBIC = BIC + 2 log binomial(p, k), with gamma = 1 (Chen and Chen, Biometrika 95, 2008).

    The variance of the noise is unknown, hence the logarithm. Models of more than n / 2 features are no
    candidates, and have the value infinity: they explain noise. Weights are divided by their mean, and n
    counts the rows whose weight is positive. With an ``l1_ratio`` below 1 the degrees of freedom are fewer
    than df.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import LassoOBACV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoOBACV(selection="1se").fit(X, y)
    >>> model.alpha_ == model.alpha_1se_ >= model.alpha_best_, model.mse_path_.shape
    (True, (100, 5))
    """

    alphas: int | ArrayLike = 100
    _: KW_ONLY
    positive: bool = False

    _penalty = "alpha"
    _own_score = LassoPredictionMixin.score

    _read = staticmethod(with_numbers)
    _parameter_constraints: ClassVar[dict] = {
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "positive": ["boolean"],
        **CV_CONSTRAINTS,
    }

    def _scored(self, given, whole):
        return to_host(given.y), LassoOBA(), None if self.scoring is None else self._get_scorer()

    _default_scoring = "neg_mean_squared_error"
    # 3 and 30 choose another alpha than exact fits in a near tie of scaled diabetes (0.8 to 1.0 of the time).
    _scored_decrease = 1.0

    @property
    def _tried(self):
        if self.alphas_.ndim == 1:
            return self.alphas_
        return self.alphas_[int(np.flatnonzero(self.l1_ratios_ == self.l1_ratio_)[0])]

    def _store_search(self, penalties, chosen, scores=None):
        own = isinstance(self.alphas, Integral) and len(penalties) > 1
        self.alphas_ = np.array(penalties) if own else penalties[0]
        if self.scoring is None and scores is not None:
            self.mse_path_ = -np.moveaxis(scores, 0, -1)
            if len(penalties) == 1:
                self.mse_path_ = self.mse_path_[0]
