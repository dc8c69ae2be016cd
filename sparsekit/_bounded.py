"""Linear models with box bounds on the coefficients: regression and classification, smooth losses and not."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel, SparseCoefMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from ._bounded_fit import BoundedEstimatorMixin, check_coefficient_bounds, inside
from ._losses.row_losses import classification_loss, regression_loss, weighted_quantile
from ._problem import X_CHECKS, apply_class_weight, as_kernel_input, check_sample_weight, encode_labels
from ._solvers.bounded import BoundedOptions

REGRESSION_LOSSES = ("absolute", "quantile", "huber", "squared", "epsilon_insensitive")
CLASSIFICATION_LOSSES = ("log_loss", "hinge", "squared_hinge", "modified_huber")

_CONSTRAINTS: dict = {
    "bounds": [tuple, list, dict],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "fit_intercept": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "history": ["boolean"],
    "verbose": ["verbose"],
    "callback": [callable, None],
}


class BoundedRegressor(BoundedEstimatorMixin, RegressorMixin, SparseCoefMixin, LinearModel, BaseEstimator):
    r"""Linear regression with bounds on the coefficients, for losses with and without kinks.

    Minimises

    .. math:: \frac{\sum_i s_i\, \ell(y_i - x_i^T w - b)}{\sum_i s_i}
              + \alpha \Big(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|^2\Big)
              \quad \text{subject to} \quad l \le w \le u,

    s the sample weights, :math:`\rho` the ``l1_ratio``. The intercept b has neither bounds nor a penalty. The
    mean loss and ``alpha`` have the scale of :class:`sklearn.linear_model.ElasticNet`, ``QuantileRegressor``
    (with ``l1_ratio=1``) and ``SGDRegressor``.

    Parameters
    ----------
    loss : {"absolute", "quantile", "huber", "squared", "epsilon_insensitive"}, default="absolute"
        :math:`\ell(r)`: :math:`|r|`; :math:`\max(q r, (q - 1) r)` with q the ``quantile``; :math:`r^2/2` up
        to :math:`|r| = \epsilon` and :math:`\epsilon |r| - \epsilon^2/2` beyond; :math:`r^2/2`;
        :math:`\max(|r| - \epsilon, 0)`.
    bounds : pair or dict, default=(-inf, inf)
        ``(lower, upper)``, each a number, None (no bound) or an array of shape (n_features,); or
        ``{feature: (lower, upper)}`` with column numbers or names, the other features without bounds.
        ``(0, None)`` is non-negative; equal bounds fix a coefficient.
    alpha : float, default=0.0
        Strength of the penalty, >= 0.
    l1_ratio : float, default=0.0
        Share of the L1 penalty, from 0 (L2 only) to 1 (L1 only).
    quantile : float, default=0.5
        Quantile that ``loss="quantile"`` predicts, in (0, 1).
    epsilon : float, default=0.1
        In units of y: where the Huber loss becomes linear (> 0), half the width of the insensitive zone
        (>= 0).
    fit_intercept : bool, default=True
        Whether to fit the intercept.
    tol : float, default=1e-6
        The fit stops when the duality gap, a bound of what the objective has above the lowest possible, is at
        most ``tol`` times the objective.
    max_iter : int, default=10000
        Largest number of iterations.
    max_time : float, default=None
        Largest time of the fit in seconds; None: no limit.
    warm_start : bool, default=False
        Start from the last fit's coefficients where their shape fits; otherwise from zero, or the bound next
        to it.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all.
    history : bool, default=False
        Whether to record ``history_``.
    verbose : int, default=0
        1 prints a line per iteration.
    callback : callable, default=None
        Called as ``callback(intermediate_result)`` after each iteration with a
        :class:`scipy.optimize.OptimizeResult` of copies (x, fun, nit, optimality, nnz, time). It stops the
        fit, without a warning, by returning True or raising StopIteration.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the dtype of X. They lie within the bounds exactly.
    intercept_ : float
    objective_ : float
        The objective above.
    dual_gap_ : float
        ``objective_`` is at most this far above the minimum. (Without a penalty and with infinite bounds:
        above all coefficients up to ten times their natural size; k times farther out, at most k times as
        far.)
    optimality_ : float
        ``dual_gap_`` relative to ``objective_``, what ``tol`` bounds.
    n_iter_ : int
        Iterations.
    history_ : dict of ndarray
        Only with ``history=True``: time (seconds), fun, optimality, nnz, method ("start", "nqn", "newton")
        and output of every iteration.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    BoundedClassifier : The same for classes.
    minimize_nqn : The optimiser, for any function.

    Notes
    -----
    NQN [1]_ minimises the objective as it is, kinks included; Newton's method with multipliers, of the
    proximal kind [2]_, finds the last digits and the proof. X is used without a copy if it is float32 or
    float64 and C- or Fortran-contiguous, CSR or CSC. Sums over dense float32 data have seven digits on the
    way: a smaller relative gap than 1e-7 means as much.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for nonlinear and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 3.
    .. [2] R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in
    convex
       programming", Mathematics of Operations Research 1(2), 1976.

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

    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions(set(REGRESSION_LOSSES))],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        **_CONSTRAINTS,
    }

    def __init__(
        self,
        loss="absolute",
        *,
        bounds=(-np.inf, np.inf),
        alpha=0.0,
        l1_ratio=0.0,
        quantile=0.5,
        epsilon=0.1,
        fit_intercept=True,
        tol=BoundedOptions.tol,
        max_iter=BoundedOptions.max_iter,
        max_time=None,
        warm_start=False,
        n_jobs=None,
        history=False,
        verbose=0,
        callback=None,
    ):
        self.loss = loss
        self.bounds = bounds
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.quantile = quantile
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.history = history
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Target values.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights s_i >= 0 of the rows, not all zero.

        Returns
        -------
        self : BoundedRegressor

        Raises
        ------
        ValueError
            If an argument is out of its range, bounds cross, X or y hold NaN or infinity, or shapes disagree.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached.
        """
        if self.loss == "huber" and self.epsilon == 0:
            raise ValueError("epsilon must be > 0 for loss='huber'; got 0.")
        names = _get_feature_names(X)
        X, y = validate_data(self, X, y, y_numeric=True, **X_CHECKS)
        X = as_kernel_input(X)
        n_samples, n_features = X.shape
        lower, upper = check_coefficient_bounds(self.bounds, 1, n_features, names)
        given = check_sample_weight(sample_weight, n_samples)
        weight = np.full(n_samples, 1.0 / n_samples) if given is None else given / given.sum()
        y = y.astype(np.float64, copy=False)
        # the intercept takes it up, and sums lose no digits to a large common part
        offset = weighted_quantile(y, weight, 0.5) if self.fit_intercept else 0.0
        target = np.ascontiguousarray(y - offset)
        loss = regression_loss(self.loss, target, weight, quantile=self.quantile, epsilon=self.epsilon)
        start = np.zeros((1, n_features + 1))
        if self.warm_start and getattr(self, "coef_", None) is not None and self.coef_.size == n_features:
            start[0, :-1] = np.ravel(self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_)
            start[0, -1] = self.intercept_ - offset if self.fit_intercept else 0.0
        elif self.fit_intercept:
            start[0, -1] = (
                target @ weight
                if self.loss == "squared"
                else weighted_quantile(target, weight, self.quantile if self.loss == "quantile" else 0.5)
            )
        start[:, :-1] = np.clip(start[:, :-1], lower, upper)

        def attributes(x):
            return {
                "coef_": inside(x[0, :-1], lower[0], upper[0], X.dtype),
                "intercept_": float(x[0, -1] + offset),
            }

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._fit_outputs(
            X, [loss], start, lower, upper, data={"X": X, "y": y, "metadata": metadata}, attributes=attributes
        )
        self.objective_, self.dual_gap_ = float(self.objective_[0]), float(self.dual_gap_[0])
        self.n_iter_ = int(self.n_iter_[0])
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _has_probabilities(estimator):
    if estimator.loss not in ("log_loss", "modified_huber"):
        raise AttributeError(
            f"loss={estimator.loss!r} gives no probabilities; 'log_loss' and 'modified_huber' do."
        )
    return True


class BoundedClassifier(BoundedEstimatorMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator):
    r"""Linear classification with bounds on the coefficients: logistic regression and support vector
    machines.

    For two classes, with :math:`y_i \in \{-1, 1\}` and :math:`m_i = y_i (x_i^T w + b)`, minimises

    .. math:: \frac{\sum_i s_i\, \ell(m_i)}{\sum_i s_i}
              + \alpha \Big(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|^2\Big)
              \quad \text{subject to} \quad l \le w \le u,

    s the sample weights times the class weights, :math:`\rho` the ``l1_ratio``. More than two classes are
    fitted one against the rest, each with the same s. The intercept b has neither bounds nor a penalty.
    ``alpha`` has the scale of :class:`sklearn.linear_model.SGDClassifier`; it is 1 / (C n) of ``LinearSVC``
    and ``LogisticRegression``.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"}, default="log_loss"
        :math:`\ell(m)`: :math:`\log(1 + e^{-m})`; :math:`\max(0, 1 - m)`; its square; the same square down to
        :math:`m = -1` and :math:`-4 m` below.
    bounds : pair or dict, default=(-inf, inf)
        ``(lower, upper)``, each a number, None (no bound) or an array of shape (n_features,) or
        (n_outputs, n_features), n_outputs being 1 for two classes, else their number; or
        ``{feature: (lower, upper)}`` with column numbers or names, the other features without bounds. For two
        classes positive coefficients speak for ``classes_[1]``.
    alpha : float, default=1e-4
        Strength of the penalty, >= 0. At 0 separable data have no solution.
    l1_ratio : float, default=0.0
        Share of the L1 penalty, from 0 (L2 only) to 1 (L1 only).
    fit_intercept : bool, default=True
        Whether to fit the intercept.
    class_weight : dict or "balanced", default=None
        Weights of the classes, ``{label: weight}``. "balanced" uses
        ``sum(s) / (n_classes * sum of s in the class)``.
    tol, max_iter, max_time, warm_start, n_jobs, history, verbose, callback
        As in :class:`BoundedRegressor`; limits hold for each of the one-against-rest problems.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the dtype of X. They lie within the bounds exactly.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    objective_, dual_gap_ : ndarray of shape (1,) or (n_classes,)
        The objective, and what it is at most above the minimum, as in :class:`BoundedRegressor`.
    optimality_ : float
        The largest ``dual_gap_`` relative to ``objective_``.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Iterations.
    history_ : dict of ndarray
        As in :class:`BoundedRegressor`; ``output`` tells the problem.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    BoundedRegressor : The same for numbers, with notes on the method and references.
    L1LogisticOBA : Much faster for L1-penalised logistic regression without bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sparsekit import BoundedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = BoundedClassifier(bounds=(None, 0), alpha=1e-2).fit(X, y)  # larger is never better
    >>> round(model.score(X, y), 3), float(model.coef_.max())
    (0.981, 0.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions(set(CLASSIFICATION_LOSSES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **_CONSTRAINTS,
    }

    def __init__(
        self,
        loss="log_loss",
        *,
        bounds=(-np.inf, np.inf),
        alpha=1e-4,
        l1_ratio=0.0,
        fit_intercept=True,
        class_weight=None,
        tol=BoundedOptions.tol,
        max_iter=BoundedOptions.max_iter,
        max_time=None,
        warm_start=False,
        n_jobs=None,
        history=False,
        verbose=0,
        callback=None,
    ):
        self.loss = loss
        self.bounds = bounds
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.history = history
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any kind (numbers, bools, strings).
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights s_i >= 0 of the rows, not all zero.

        Returns
        -------
        self : BoundedClassifier

        Raises
        ------
        ValueError
            If an argument is out of its range, bounds cross, X or y hold NaN or infinity, shapes disagree, or
            fewer than two classes have a positive weight.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached.
        """
        names = _get_feature_names(X)
        X, y = validate_data(self, X, y, **X_CHECKS)
        X = as_kernel_input(X)
        n_samples, n_features = X.shape
        classes, codes = encode_labels(y)
        n_outputs = 1 if len(classes) == 2 else len(classes)
        lower, upper = check_coefficient_bounds(self.bounds, n_outputs, n_features, names)
        weight = check_sample_weight(sample_weight, n_samples)
        weight = apply_class_weight(self.class_weight, classes, codes, weight)
        weight = np.full(n_samples, 1.0 / n_samples) if weight is None else weight / weight.sum()
        positive = [1] if n_outputs == 1 else range(n_outputs)
        losses = [classification_loss(self.loss, np.where(codes == k, 1.0, -1.0), weight) for k in positive]
        start = np.zeros((n_outputs, n_features + 1))
        last = getattr(self, "coef_", None)
        if self.warm_start and last is not None and last.shape == (n_outputs, n_features):
            start[:, :-1] = last.toarray() if hasattr(last, "toarray") else last
            start[:, -1] = self.intercept_ if self.fit_intercept else 0.0
        start[:, :-1] = np.clip(start[:, :-1], lower, upper)

        def attributes(x):
            return {
                "coef_": inside(x[:, :-1], lower, upper, X.dtype),
                "intercept_": x[:, -1].astype(X.dtype),
                "classes_": classes,
            }

        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._fit_outputs(
            X, losses, start, lower, upper, data={"X": X, "y": y, "metadata": metadata}, attributes=attributes
        )
        return self

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Probability of each class.

        ``loss="log_loss"``: the logistic function of the scores. ``loss="modified_huber"``: (score + 1) / 2,
        clipped to [0, 1] (Zhang 2004). Of more than two classes the numbers are divided by their sum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        of = expit if self.loss == "log_loss" else lambda z: np.clip(0.5 * (z + 1.0), 0.0, 1.0)
        if scores.ndim == 1:
            return np.column_stack([of(-scores), of(scores)])
        p = of(scores)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            -inf where the probability is 0.
        """
        if self.loss == "log_loss" and check_is_fitted(self) is None and len(self.classes_) == 2:
            scores = self.decision_function(X)
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
