"""Generalised linear models with an L1 or elastic-net penalty by the orthant-based adaptive method."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval

from ..._arrays import namespace, to_host
from ..._docstrings import shares_entries
from ..._estimator.block_data import numbers_of_blocks
from ..._estimator.block_prediction import by_blocks
from ..._estimator.checks import check_sample_weight, in_units
from ..._estimator.decorators import with_parameters
from ..._estimator.linear_model import PenaltyNameMixin
from ..._estimator.offset import check_offset, offset_of_scores
from ..._estimator.offset_prediction import OffsetRegressionMixin
from ..._estimator.training_data import with_numbers
from ..._row_blocks.make import comes_in_blocks
from ..._typing import FloatArray, MatrixLike, Offset
from ..losses.families.family import Family
from ..losses.families.make import make_family
from ..losses.family_loss import deviance, null_predictor
from ..paths.family_settings import FAMILY_CONSTRAINTS, FamilyName, Link
from ..paths.glm_path import glm_path
from ..paths.inputs import problem_of_family
from .fit import CONSTRAINTS, OBAEstimatorMixin
from .lasso import LassoOBA

FAMILY_PARAMETERS: tuple[str, ...] = ("power", "dispersion", "epsilon")


@shares_entries(OffsetRegressionMixin.predict, OffsetRegressionMixin.score)
class GLMPredictionMixin(PenaltyNameMixin, OffsetRegressionMixin):
    """Prediction of means with a fitted generalised linear model."""

    _in_key: ClassVar[tuple[str, ...]] = ("positive", "family", "link", *FAMILY_PARAMETERS)

    def _make_family(self) -> Family:
        """The `Family` that the parameters name."""
        given = {name: getattr(self, name) for name in FAMILY_PARAMETERS}
        return make_family(self.family, self.link, **given)

    def _whole(self, given: Any) -> Any:
        """The problem of all rows of `TrainingData`."""
        return problem_of_family(self, given, self._make_family(), self.positive)

    @by_blocks
    def predict_linear(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Linear predictor ``X w + b + offset``, on the scale of the link.

        {Parameters}

        {Returns}
        """
        return super().predict(X, offset)

    @by_blocks
    def predict(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Predicted means of y: the inverse link of ``X w + b + offset``.

        Parameters
        ----------
        {X}
        offset : float or array-like of shape (n_samples,), default=None
            What is added to the linear predictor, as log(exposure). None is zero, and a ValueError of a model
            that was fitted with an offset (see ``needs_offset_``).

        Returns
        -------
        ndarray of shape (n_samples,)
            Means, finite: where one overflows it is the largest number of its type.
        """
        z = self.predict_linear(X, offset)
        most = np.finfo(z.dtype).max
        with np.errstate(over="ignore", under="ignore"):
            return np.clip(self._make_family().mean(z), -most, most)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> float:
        """Share D^2 of the deviance that the model explains.

        It is 1 - D(model) / D(null): the null model is the best constant linear predictor, plus the offset
        where there is one. Without an offset this is :func:`sklearn.metrics.d2_tweedie_score` for its
        families.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Targets in the family's range.
        {sample_weight, offset}

        Returns
        -------
        float
            At most 1. Where the null model fits without a deviance, it is 1 if this one does too, else 0.
        """
        namespace(X=X, y=y, sample_weight=sample_weight, offset=offset)
        offset = offset_of_scores(self, offset)
        z = self.predict_linear(X, offset)
        if comes_in_blocks(X):
            z = np.asarray(z)  # computes what is lazy
            found, y, sample_weight = numbers_of_blocks(type(self).__name__, X, y, sample_weight, offset)
            offset = found.census.offset
        return self._deviance_score(*map(to_host, (z, y, sample_weight, offset)))

    def _deviance_score(self, z, y, sample_weight, offset):
        family = self._make_family()
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True)
        check_consistent_length(z, y)
        weight, _ = in_units(check_sample_weight(sample_weight, len(y)))
        family.check(y)
        offset = check_offset(offset, z)
        # where a predictor overflows its deviance is as large as can be
        most = np.finfo(np.float64).max
        total = min(deviance(family, z, y, weight), most)
        null = np.zeros(len(y)) if offset is None else offset
        try:
            null = null + null_predictor(family, y, weight, offset)
        except (
            ValueError
        ):  # the mean of y is at an end of its range, which a null model without a deviance has
            return 1.0 if total == 0.0 else 0.0
        reference = deviance(family, null, y, weight)
        if reference == 0.0:
            return 1.0 if total == 0.0 else 0.0
        with np.errstate(over="ignore"):
            return float(np.maximum(1.0 - total / reference, -most))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.positive_only = bool(self._make_family().lowest == 0.0)
        except (KeyError, TypeError, ValueError):  # parameters that a fit will refuse
            tags.target_tags.positive_only = False
        return tags


@shares_entries(OBAEstimatorMixin, LassoOBA)
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
    {fit_intercept, l1_ratio, penalty_weights, tol}
        For feature j :math:`\lambda_j = \rho \alpha v_j \sum_i s_i`. The unit is the largest entry of the
        gradient of the model of the intercept alone. Where ``dual_gap_`` is NaN this measure alone counts.
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

    def _store_result(self, result):
        self.n_iter_ = int(self.n_iter_[0])
