"""The Lasso by the orthant-based adaptive method."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar, Literal

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..._docstrings import shares_entries
from ..._estimator.decorators import with_parameters
from ..._estimator.offset_prediction import OffsetRegressionMixin
from ..._estimator.training_data import with_numbers
from ..paths.inputs import problem_of_numbers
from ..paths.path import lasso_path
from .fit import CONSTRAINTS, OBAEstimatorMixin
from .logistic import L1LogisticOBA


class LassoPredictionMixin(OffsetRegressionMixin):
    """Prediction with a fitted Lasso."""

    def _whole(self, given: Any) -> Any:
        """The problem of all rows of `TrainingData`."""
        return problem_of_numbers(self, given, self.positive, self.hessian)


@shares_entries(OBAEstimatorMixin, L1LogisticOBA)
@with_parameters
class LassoOBA(OBAEstimatorMixin, LassoPredictionMixin, BaseEstimator):
    r"""Linear regression with an L1 penalty (Lasso) by the orthant-based adaptive method (OBA).

    Minimises, with s the sample weights and v the ``penalty_weights``,

    .. math:: \frac{1}{2 \sum_i s_i} \sum_i s_i (y_i - x_i^T w - b - o_i)^2 + \alpha \sum_j v_j
        \left(\rho |w_j| + \tfrac{1 - \rho}{2} w_j^2\right),

    :math:`\rho` being ``l1_ratio``: the objective of :class:`sklearn.linear_model.Lasso`, and below 1 that of
    :class:`sklearn.linear_model.ElasticNet`. The intercept b is never penalised; o is the ``offset`` of `fit`
    (zero without one).

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation strength, >= 0.
    positive : bool, default=False
        Whether coefficients must be >= 0 (the intercept is free); with ``alpha=0`` these are nonnegative
        least squares. They have no model by L-BFGS: ``hessian="lbfgs"`` is an error.
    {fit_intercept}
    solver : {"auto", "gram", "interior", "oba"}, default="auto"
        "gram" is OBA on a Gram matrix of the columns in use, or without an L1 part one linear system.
        "interior" is an interior-point method for up to some thousand rows, ended by "gram". "oba" is OBA on
        the rows or columns of X. "auto" begins with "gram" where X is in main memory. It goes on with
        "interior" where many columns are in use for so many rows, with "oba" where the Gram matrix costs
        more, and from "oba" with "interior" where more columns are in use than rows. All find the same
        solution where it is unique; without a penalty and with n < p "oba" need not find that of least norm.
    {l1_ratio, penalty_weights, tol}
        For feature j :math:`\lambda_j = \rho \alpha v_j \sum_i s_i`. The unit is the largest entry of the
        gradient at zero. With an intercept y is centred first.
    {max_iter, hessian, memory, max_time, warm_start, n_jobs, history, verbose, callback}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the dtype of X (float32 or float64).
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    n_iter_ : int
        Number of outer iterations.
    {optimality_}
    objective_ : float
        Value of the objective above.
    {dual_gap_, history_}
    solver_ : str
        What ran: "newton" (a linear system), "gram", "interior", "oba", or several, as in "gram, oba".
    {needs_offset_, n_rounds_, n_features_in_, feature_names_in_}

    See Also
    --------
    LassoOBA.path : The whole regularisation path.
    L1LogisticOBA : The same for classes.
    BoundedRegressor : With bounds on the coefficients, and other losses.

    Notes
    -----
    X is used as it is, without a copy, as in :class:`L1LogisticOBA`. The method is Algorithm 2 of chapter 2
    of [1]_. In main memory its quadratic model is the loss itself, a Gram matrix of the columns in use. The
    gradient of all columns in double precision adds columns, corrects rounding and certifies the solution.
    Without an L1 part a fit is one linear system. Where the Gram matrix would be larger than pays, and on a
    GPU, the model has the rows or columns of X.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 2.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import LassoOBA
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoOBA(alpha=0.5).fit(X, y)
    >>> int((model.coef_ != 0).sum()), round(model.score(X, y), 3)
    (4, 0.455)
    """

    alpha: float = 1.0
    _: KW_ONLY
    positive: bool = False
    fit_intercept: bool = True
    solver: Literal["auto", "gram", "interior", "oba"] = "auto"

    _read = staticmethod(with_numbers)
    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "positive": ["boolean"],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "gram", "interior", "oba"})],
        **CONSTRAINTS,
    }

    path = staticmethod(lasso_path)

    def _loss(self, whole):
        return whole.loss_of_fit(self.solver)

    def _store_result(self, result):
        self.n_iter_ = int(self.n_iter_[0])
        self.solver_ = ", ".join(result.get("solver", ("oba",)))
        if self.verbose:
            print(f"LassoOBA: solved by {self.solver_}")
