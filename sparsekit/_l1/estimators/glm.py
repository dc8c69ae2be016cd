"""Generalised linear models with an L1 or elastic-net penalty by the orthant-based adaptive method."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from ..._docstrings import shares_entries
from ..._estimator.checks import in_units
from ..._estimator.decorators import with_parameters
from ..._estimator.training_data import with_numbers
from ..paths.family_losses import family_loss_of, null_offset
from ..paths.family_settings import FAMILY_CONSTRAINTS, FamilyName, Link
from ..paths.glm_path import glm_path
from .fit import CONSTRAINTS, OBAEstimatorMixin
from .glm_prediction import GLMPredictionMixin
from .inputs import FitInputs
from .lasso import LassoOBA


@shares_entries(LassoOBA)
@with_parameters
class GLMOBA(OBAEstimatorMixin, GLMPredictionMixin, BaseEstimator):
    r"""Generalised linear model with an L1 penalty by the orthant-based adaptive method (OBA).

    Minimises, with s the sample weights, v the ``penalty_weights`` and D the unit deviance of the ``family``
    of a target and a mean,

    .. math:: \frac{1}{2 \sum_i s_i} \sum_i s_i D(y_i, h(x_i^T w + b + o_i)) + \alpha \sum_j v_j
        \left(\rho |w_j| + \tfrac{1 - \rho}{2} w_j^2\right),

    :math:`\rho` being ``l1_ratio`` and h the inverse of the ``link``. With ``l1_ratio=0`` alpha has the scale
    of :class:`sklearn.linear_model.PoissonRegressor`. The intercept b is never penalised; o is the ``offset``
    of `fit` (zero without one).

    Parameters
    ----------
    family : str, default="poisson"
        "poisson" (counts), "gamma" (amounts above 0), "tweedie" (amounts with zeros), "negative-binomial"
        (counts of more variance). Or "binomial" (0 and 1, or shares of successes), "gaussian" or "huber"
        (numbers with outliers).
    link : {"auto", "log", "logit", "probit", "cloglog", "identity"}, default="auto"
        "auto" is the log link of counts and amounts, "logit" of "binomial", "identity" of others. Only
        "binomial" has a choice: logit, probit and cloglog.
    power : float, default=1.5
        Power of "tweedie": the variance is mean ** power. From 1 (Poisson) to 2 (gamma), or 0 (Gaussian).
    dispersion : float, default=1.0
        Of "negative-binomial", whose variance is mean + dispersion * mean ** 2; above 0.
    epsilon : float, default=1.35
        Residual from which the loss of "huber" is straight, in the unit of y.
    {alpha}
    positive : bool, default=False
        Whether coefficients must be >= 0 (the intercept is free).
    {fit_intercept, l1_ratio, penalty_weights}
    tol : float, default=1e-5
        Certifies that the objective is at most ``10 * tol`` of itself above the lowest: ``dual_gap_`` is at
        most that, or a warning says why not. The optimality measure of :class:`LassoOBA` must be at most tol
        too. It is relative to the largest entry of the gradient of the model of the intercept alone. Families
        without a certificate stop by this measure.
    {max_iter, hessian, memory, max_time, warm_start, n_jobs, history, verbose, callback}

    Attributes
    ----------
    {coef_, intercept_, n_iter_, optimality_, objective_}
    dual_gap_ : float
        Duality gap on the scale of ``objective_``: the solution is at most this far from the optimum. NaN
        for the links probit and cloglog, whose dual has no formula.
    {history_, n_rounds_, needs_offset_, n_features_in_, feature_names_in_}

    See Also
    --------
    glm_path : The whole regularisation path.
    LassoOBA : Least squares, faster than ``family="gaussian"``.
    L1LogisticOBA : Labels of two or more classes.

    Notes
    -----
    X in blocks of rows stays there. Columns in use are gathered as in :class:`L1LogisticOBA`. CuPy arrays and
    sparse matrices are worked on where they are; predictions and attributes are there then.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit import GLMOBA
    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.standard_normal((500, 20)), rng.uniform(0.1, 1.0, 500)
    >>> claims = rng.poisson(years * np.exp(0.5 * X[:, 0] - 1.0))
    >>> model = GLMOBA("poisson", alpha=0.05).fit(X, claims, offset=np.log(years))
    >>> np.flatnonzero(model.coef_), bool(model.dual_gap_ <= 1e-4 * model.objective_)
    (array([0]), True)
    """

    family: FamilyName = "poisson"
    _: KW_ONLY
    link: Link = "auto"
    power: float = 1.5
    dispersion: float = 1.0
    epsilon: float = 1.35
    alpha: float = 1.0
    positive: bool = False
    fit_intercept: bool = True

    _read = staticmethod(with_numbers)
    _parameter_constraints: ClassVar[dict] = {
        **FAMILY_CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        **CONSTRAINTS,
    }

    path = staticmethod(glm_path)

    def _problem(self, given):
        family = self._make_family()
        inputs = FitInputs(self, given, in_units)
        X, weight = inputs.X, inputs.weight
        target = given.values.astype(np.float64, copy=False)
        family.check(target)
        null, shift = null_offset(family, target, weight, inputs.shift, self.fit_intercept)
        loss = family_loss_of(
            family, X, target, weight, self.fit_intercept, inputs.n_threads, shift, self.positive, null
        )
        return self._problem_of_numbers(inputs, loss, null, (target, weight, shift))

    def _store_result(self, result):
        self.n_iter_ = int(self.n_iter_[0])
