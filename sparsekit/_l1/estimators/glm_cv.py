"""Generalised linear models with alpha, and l1_ratio, chosen by cross-validation over warm paths."""

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
from ..._estimator.checks import check_sample_weight, in_units
from ..._estimator.decorators import with_parameters
from ..._estimator.training_data import with_numbers
from ..losses.family_loss import deviance
from ..paths.family_settings import FAMILY_CONSTRAINTS, FamilyName, Link
from .cv_search import CV_CONSTRAINTS, PathSearchMixin
from .glm import FAMILY_PARAMETERS, GLMOBA, GLMPredictionMixin
from .lasso_cv import LassoOBACV


@shares_entries(LassoOBACV)
@with_parameters
class GLMOBACV(PathSearchMixin, GLMPredictionMixin, BaseEstimator):
    """Generalised linear model with alpha chosen by cross-validation or by a criterion.

    The objective is that of :class:`GLMOBA`, whose loss is a mean, in every fold as in the final fit. Each
    fold solves one warm-started path.

    Parameters
    ----------
    family, link, power, dispersion, epsilon : default="poisson", "auto", 1.5, 1.0, 1.35
        As in :class:`GLMOBA`.
    alphas : int or array-like, default=50
        Values of alpha > 0 to try, in any order. An integer asks for a grid, as in :class:`LassoOBACV`.
    positive : bool, default=False
        Whether coefficients must be >= 0, as in :class:`GLMOBA`.
    {eps, l1_ratio, cv}
    scoring : str or callable, default=None
        Any scikit-learn scorer for regression. None is minus the mean unit deviance of the left-out rows.
    {selection, relaxed, refit, fit_intercept, penalty_weights}
    tol, max_iter : default=1e-5, 200
        As in :class:`GLMOBA`. With ``refit`` the folds, which are only scored, are solved less exactly, as in
        :class:`LassoOBACV`.
    {max_time, n_jobs, hessian, memory, verbose}

    Attributes
    ----------
    {alpha_, alpha_best_, alpha_1se_}
    alphas_ : ndarray of shape (n_penalties,)
        The values tried with ``l1_ratio_``, falling.
    scores_ : ndarray of shape (n_folds, n_penalties)
        Score of each fold's left-out part with ``l1_ratio_``.
    {mean_score_, se_, l1_ratio_, l1_ratios_, l1_ratio_scores_}
    {coef_, intercept_, needs_offset_, n_features_in_, feature_names_in_}
    {criterion_, n_iter_, optimality_, objective_, dual_gap_}

    See Also
    --------
    GLMOBA : The model for one alpha.
    glm_path : The path itself.

    Notes
    -----
    The criteria are those of :class:`LassoOBACV`. Poisson, binomial and negative binomial targets have the
    deviance D for n log(RSS / n). Their weights (trials of a share, or exposures of a rate) count like
    repeated rows: n is their sum. Those whose dispersion is unknown, gamma, Tweedie, Gaussian and Huber, have
    n log(D / n): the extended quasi-likelihood of Nelder and Pregibon (Biometrika 74, 1987).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit import GLMOBACV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 20))
    >>> model = GLMOBACV(alphas=20, selection="1se").fit(X, rng.poisson(np.exp(0.5 * X[:, 0])))
    >>> np.flatnonzero(model.coef_), model.alpha_ == model.alpha_1se_ >= model.alpha_best_
    (array([0]), True)
    """

    family: FamilyName = "poisson"
    _: KW_ONLY
    link: Link = "auto"
    power: float = 1.5
    dispersion: float = 1.0
    epsilon: float = 1.35
    alphas: int | ArrayLike = 50
    positive: bool = False

    _penalty = "alpha"
    _own_score = GLMPredictionMixin.score
    _scored_decrease = 1.0  # as of the Lasso: near ties of alphas

    _read = staticmethod(with_numbers)
    _parameter_constraints: ClassVar[dict] = {
        **FAMILY_CONSTRAINTS,
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        **CV_CONSTRAINTS,
    }

    def _scored(self, given, whole):
        parameters = {name: getattr(self, name) for name in FAMILY_PARAMETERS}
        model = GLMOBA(self.family, link=self.link, **parameters)
        scorer = minus_mean_deviance if self.scoring is None else self._get_scorer()
        return to_host(whole.values), model, scorer

    _default_scoring = "neg_mean_squared_error"


def minus_mean_deviance(model, X, y, sample_weight=None):
    """The default score: minus the weighted mean of the unit deviances, finite."""
    z = model.predict_linear(X)
    weight, _ = in_units(check_sample_weight(sample_weight, len(y)))
    return -min(2.0 * deviance(model._make_family(), z, y, weight), np.finfo(np.float64).max)
