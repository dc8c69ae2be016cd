"""Linear regression with box bounds on the coefficients, for losses with and without kinks."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import ClassVar, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..._arrays import namespace
from ..._docstrings import shares_entries
from ..._estimator.base import SolverEstimatorMixin
from ..._estimator.decorators import with_parameters
from ..._estimator.offset_prediction import OffsetRegressionMixin
from ..._estimator.training_data import with_numbers
from ..losses.losses import regression_loss, weighted_quantile
from .fit import CONSTRAINTS, BoundedEstimatorMixin

RegressionLoss = Literal["absolute", "quantile", "huber", "squared", "epsilon_insensitive"]


@shares_entries(SolverEstimatorMixin)
@with_parameters
class BoundedRegressor(BoundedEstimatorMixin, OffsetRegressionMixin, BaseEstimator):
    r"""Linear regression with bounds on the coefficients, for losses with and without kinks.

    Minimises

    .. math:: \frac{\sum_i s_i\, \ell(y_i - x_i^T w - b - o_i)}{\sum_i s_i}
              + \alpha \Big(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|^2\Big)
              \quad \text{subject to} \quad l \le w \le u,

    s the sample weights, o the ``offset`` of `fit` (zero without one), :math:`\rho` the ``l1_ratio``. The
    intercept b has neither bounds nor a penalty. The mean loss and ``alpha`` have the scale of
    :class:`sklearn.linear_model.ElasticNet`, ``QuantileRegressor`` (with ``l1_ratio=1``) and
    ``SGDRegressor``.

    Parameters
    ----------
    loss : {"absolute", "quantile", "huber", "squared", "epsilon_insensitive"}, default="absolute"
        :math:`\ell(r)`: :math:`|r|`; :math:`\max(q r, (q - 1) r)` with q the ``quantile``; :math:`r^2/2` up
        to :math:`|r| = \epsilon` and :math:`\epsilon |r| - \epsilon^2/2` beyond; :math:`r^2/2`;
        :math:`\max(|r| - \epsilon, 0)`.
    alpha : float, default=0.0
        Strength of the penalty, >= 0.
    quantile : float, default=0.5
        Quantile that ``loss="quantile"`` predicts, in (0, 1).
    epsilon : float, default=0.1
        In units of y: where the Huber loss becomes linear (> 0), half the width of the insensitive zone
        (>= 0).
    bounds : pair or dict, default=(-inf, inf)
        ``(lower, upper)``, each a number, None (no bound) or an array of shape (n_features,); or
        ``{feature: (lower, upper)}`` with column numbers or names, the other features without bounds.
        ``(0, None)`` is non-negative; equal bounds fix a coefficient.
        Of two features two lists or tuples of two are refused: they might be a pair for each feature.
    l1_ratio : float, default=0.0
        Share of the L1 penalty, from 0 (L2 only) to 1 (L1 only).
    fit_intercept : bool, default=True
        Whether to fit the intercept.
    tol : float, default=1e-6
        Certifies that the objective is at most tol of itself above the lowest: the fit stops when the duality
        gap is at most that.
    max_iter : int, default=10000
        Largest number of iterations.
    {max_time}
    warm_start : bool, default=False
        Start from the last fit's coefficients where their shape fits; otherwise from zero, or the bound next
        to it.
    {n_jobs, history, verbose, callback}
        In a fit on a GPU x is a CuPy array.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, within the bounds exactly; in the dtype of X (float64 if bounds leave no such number).
    intercept_ : float
        Intercept, in the unit of y; 0.0 if ``fit_intercept=False``.
    objective_ : float
        The objective above.
    dual_gap_ : float
        ``objective_`` is at most this far above the minimum. Without a penalty and with infinite bounds this
        holds for coefficients up to ten times their natural size. For coefficients k times larger the
        distance is at most k times as large.
    optimality_ : float
        ``dual_gap_`` relative to ``objective_``, what ``tol`` bounds.
    n_iter_ : int
        Iterations.
    history_ : dict of ndarray
        Only with ``history=True``: time (seconds), fun, optimality, nnz, method ("start", "nqn",
        "newton", "dual") and output of every iteration.
    needs_offset_ : bool
        Whether the fit had an offset. Predictions then ask for one too; set it to False to let them take
        zero, for tools that cannot hand one on.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    BoundedClassifier : The same for classes.
    minimize_nqn : The optimiser, for any function.

    Notes
    -----
    NQN [1]_ minimises the nonsmooth objective directly. A proximal Newton method with multipliers [2]_ then
    finds the last digits and the certificate. Without bounds, with a ridge and no L1 part, coordinate ascent
    on the dual [3]_ does both where there are no more rows than columns, and for losses with kinks, unless it
    seems to take longer. X is used without a copy if it is float32 or float64 and C- or
    Fortran-contiguous, CSR or CSC; coordinate ascent copies X that is not stored by rows. Sums over dense
    float32 data have seven digits on the way: a smaller relative gap than 1e-7 means as much.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 3.
    .. [2] R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in
       convex programming", Mathematics of Operations Research 1(2), 1976.
    .. [3] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual coordinate descent
       method for large-scale linear SVM", ICML 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import BoundedRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BoundedRegressor(loss="quantile", quantile=0.9, bounds={"bmi": (0, 400), "sex": (0, None)})
    >>> model = model.fit(X, y)
    >>> model.coef_[[1, 2]].round(6)
    array([  0., 400.])
    """

    loss: RegressionLoss = "absolute"
    _: KW_ONLY
    alpha: float = 0.0
    quantile: float = 0.5
    epsilon: float = 0.1

    _read = staticmethod(with_numbers)
    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions(set(get_args(RegressionLoss)))],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        **CONSTRAINTS,
    }

    def _problem(self, given, X, weight):
        if self.loss == "huber" and self.epsilon == 0:
            raise ValueError("epsilon must be > 0 for loss='huber'; got 0.")
        y = given.values.astype(np.float64, copy=False)
        y = y if given.offset is None else y - given.offset
        # subtract a common part of y, which the intercept adds again: sums keep their digits
        middle = weighted_quantile(y, weight, 0.5) if self.fit_intercept else 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # the loss refuses what overflows
            target = namespace(y=y).ascontiguousarray(y - middle)
            loss = regression_loss(self.loss, target, weight, quantile=self.quantile, epsilon=self.epsilon)
        if not self.fit_intercept:
            return [loss], middle, 0.0
        q = self.quantile if self.loss == "quantile" else 0.5
        is_mean = self.loss == "squared"
        return [loss], middle, target @ weight if is_mean else weighted_quantile(target, weight, q)

    def _attributes(self, coef, intercept, X):
        return {"coef_": coef[0], "intercept_": float(intercept[0])}

    def _store_result(self):
        self.objective_, self.dual_gap_ = float(self.objective_[0]), float(self.dual_gap_[0])
        self.n_iter_ = int(self.n_iter_[0])
