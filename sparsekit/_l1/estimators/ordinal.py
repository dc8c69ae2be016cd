"""Ordered classes: proportional odds with an L1 or elastic-net penalty by OBA."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..._docstrings import shares_entries
from ..._estimator.block_prediction import by_blocks
from ..._estimator.checks import in_type
from ..._estimator.decorators import fit_context, with_parameters
from ..._estimator.device_linear import refuse_device
from ..._estimator.linear_model import PenaltyNameMixin, last_fit
from ..._estimator.offset import add_offset, offset_of_scores
from ..._estimator.offset_prediction import OffsetClassificationMixin
from ..._estimator.training_data import with_labels
from ..._estimator.validation import validate_data
from ..._linalg.structure import check_sparse
from ..._messages import shown
from ..._typing import Array, ClassWeight, FloatArray, MatrixLike, Offset
from ..losses.ordinal import OrdinalLoss, log_probabilities
from ..paths.coefficients import l1_weights
from ..paths.inputs import problem_of
from ..paths.problems import PathProblem
from ..solver.centred_loss import centre_of, subtract_centre
from .fit import CONSTRAINTS, OBAEstimatorMixin
from .lasso import LassoOBA
from .logistic import L1LogisticClassifierMixin, L1LogisticOBA


@shares_entries(OffsetClassificationMixin.decision_function, L1LogisticClassifierMixin.predict_proba)
class OrdinalPredictionMixin(PenaltyNameMixin, OffsetClassificationMixin):
    """Prediction of ordered classes; probabilities hold for scores of any size."""

    _has_vector = True
    classes_: Array
    ranks_: Array
    thresholds_: FloatArray

    @by_blocks
    def predict_linear(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Score ``X w + offset`` of each row, which thresholds cut into classes.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        refuse_device(type(self).__name__, "use L1LogisticOBA", X=X, offset=offset)
        offset = offset_of_scores(self, offset)
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        coef = check_sparse(self.coef_, "coef_").toarray().ravel() if sp.issparse(self.coef_) else self.coef_
        return add_offset(X @ coef, offset)

    @by_blocks
    def predict_log_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Logarithm of `predict_proba`, computed without forming it: finite wherever the scores are.

        {Parameters}

        {Returns}
        """
        z = self.predict_linear(X, offset)
        return log_probabilities(z, self.thresholds_).astype(z.dtype, copy=False)[:, self.ranks_]

    @by_blocks
    def predict_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Probability of each class.

        {Parameters}

        {Returns}
        """
        return np.exp(self.predict_log_proba(X, offset))

    @by_blocks
    def decision_function(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Of two classes the log-odds of the second; of more the logarithms of the probabilities.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        if len(self.thresholds_) == 1:
            odds = self.predict_linear(X, offset) - self.thresholds_[0]
            return odds if self.ranks_[1] else -odds
        return self.predict_log_proba(X, offset)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of classes without an order, as scikit-learn's checks have
        return tags


@shares_entries(OBAEstimatorMixin, LassoOBA, L1LogisticOBA)
@with_parameters
class OrdinalOBA(OBAEstimatorMixin, OrdinalPredictionMixin, BaseEstimator):
    r"""Proportional odds for ordered classes with an L1 penalty by the orthant-based adaptive method (OBA).

    The cumulative logit model has one score for all classes 0, ..., K - 1, which thresholds cut,

    .. math:: P(y \le k) = \frac{1}{1 + \exp(x^T w + o - \theta_{k+1})}, \qquad
        \theta_1 < \dots < \theta_{K-1},

    o being the ``offset`` of `fit` (zero without one). Minimised is, with s the sample weights and v the
    ``penalty_weights``,

    .. math:: -\frac{1}{\sum_i s_i} \sum_i s_i \log P(y_i) + \alpha \sum_j v_j
        \left(\rho |w_j| + \tfrac{1 - \rho}{2} w_j^2\right),

    :math:`\rho` being ``l1_ratio``. The thresholds are never penalised. For two classes it is
    :class:`L1LogisticOBA` with C = 1 / (alpha sum s).

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation strength, >= 0.
    categories : array-like of shape (n_categories,), default=None
        The labels in their order. None: that of an ordered categorical y of pandas, else sorted. Numbers
        sort as meant; most words do not ("high" < "low" < "medium").
    {class_weight, l1_ratio, penalty_weights, tol}
        For feature j :math:`\lambda_j = \rho \alpha v_j \sum_i s_i`. The unit is the largest entry of the
        gradient of the model of the thresholds alone, at the mean of the offset.
    {max_iter, hessian, memory, max_time}
    warm_start : bool, default=False
        Start from the last fit's coefficients and thresholds where their shapes fit.
    {n_jobs, history, verbose}
    callback : callable, default=None
        As in :class:`L1LogisticOBA`; the variables are coefficients, then thresholds less those of the model
        without features, at the mean of the offset.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the dtype of X (float32 or float64). Larger scores mean later classes.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Rising thresholds of the score, float64.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels, the columns of probabilities; those without a row of positive weight are left out.
    ranks_ : ndarray of shape (n_classes,)
        Position of each of ``classes_`` in the order: 0 for the lowest.
    {needs_offset_, n_iter_, optimality_, objective_, dual_gap_, history_, n_features_in_}
    {feature_names_in_}

    See Also
    --------
    L1LogisticOBA : Classes without an order.

    Notes
    -----
    A fit holds each row of X twice, once for each threshold next to its class. X in blocks of rows is
    gathered in main memory. X on a GPU is a TypeError.

    References
    ----------
    P. McCullagh, "Regression models for ordinal data", JRSS B 42 (1980).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit import OrdinalOBA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 20))
    >>> grade = np.digitize(2.0 * X[:, 0] + rng.logistic(size=500), [-1.0, 1.0])
    >>> model = OrdinalOBA(alpha=0.05).fit(X, np.array(["bad", "fair", "good"])[grade])
    >>> np.flatnonzero(model.coef_), model.classes_.tolist(), bool(np.diff(model.thresholds_) > 0)
    (array([0]), ['bad', 'fair', 'good'], True)
    """

    alpha: float = 0.01
    _: KW_ONLY
    categories: ArrayLike | None = None
    class_weight: ClassWeight = None

    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "categories": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CONSTRAINTS,
    }
    fit_intercept = False  # thresholds stand for it

    @fit_context(prefer_skip_nested_validation=True)
    @shares_entries(OBAEstimatorMixin.fit)
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. A Dask array or data frame, or a folder on disk, is gathered where it fits into
            memory.
        y : array-like of shape (n_samples,)
            Class labels: numbers, bools or strings.
        {sample_weight}
        offset : float or array-like of shape (n_samples,), default=None
            Known part o_i of each row's score. Predictions need theirs then.

        {Returns}

        Raises
        ------
        ValueError
            If an argument is out of its range, X or y hold NaN or infinity, or shapes disagree. If a label is
            not in ``categories``, or fewer than two classes have a positive weight. If thresholds are equal
            after rounding, by a large offset or a class of nearly no weight.
        TypeError
            If an array is on a GPU.

        {Warns}
        """
        refuse_device(
            type(self).__name__, "use L1LogisticOBA", X=X, y=y, sample_weight=sample_weight, offset=offset
        )
        order = declared_order(y) if self.categories is None else self.categories
        given = with_labels(self, X, y, sample_weight, offset=offset)
        whole, _ = problem_of(self, given, given.values, PathProblem)
        X, weight, columns = whole.X, whole.weight, whole.columns
        whole.scale = whole.rows_and_weight()[1]
        whole.penalty = l1_weights(whole.penalty, self.alpha * whole.scale)
        classes, ranks, codes = ordered_classes(given.classes, given.values, weight, order)
        whole.values = codes
        p, dtype = X.shape[1], X.dtype
        # thresholds take what is subtracted from columns far from zero, as an intercept does
        centre = centre_of(X)
        own = X if centre is None else subtract_centre(X, centre)
        centre = np.zeros(p) if centre is None else centre.astype(np.float64)
        loss = OrdinalLoss(own, codes, weight, whole.n_threads, whole.shift)

        def attributes(x):
            return {
                "coef_": columns.expand(in_type(x[:p], dtype)),
                "thresholds_": x[p:] + loss.null + centre @ x[:p],
                "classes_": classes,
                "ranks_": ranks,
            }

        x0 = None
        last = last_fit(self, X, columns, 1)
        if last is not None and len(self.thresholds_) == len(loss.null):
            coef = last[0][0]
            x0 = np.concatenate([coef, self.thresholds_ - loss.null - centre @ coef])
        self._minimize(given, whole, loss, x0, attributes)
        self.n_iter_ = int(self.n_iter_[0])
        return self


def declared_order(y: Any) -> Any:
    """Categories of an ordered categorical series, or frame of one column, of pandas; else None."""
    column = y.iloc[:, 0] if getattr(y, "ndim", 1) == 2 and hasattr(y, "iloc") else y
    dtype: Any = getattr(column, "dtype", None)
    return dtype.categories if getattr(dtype, "ordered", False) else None


def ordered_classes(classes: Any, codes: Any, weight: Any, order: Any) -> tuple[Any, Any, Any]:
    """Sorted classes with a positive weight, their ranks in the order, and each row's rank.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    codes : ndarray of int of shape (n,)
    weight : ndarray of shape (n,) or None
    order : array-like or None
        Labels in their order; may hold others.

    Raises
    ------
    ValueError
        If a label is missing in ``order``, or is there twice.
    """
    ranks = np.arange(len(classes))
    if order is not None:
        order = np.ravel(np.asarray(order, dtype=object)).tolist()
        rank_of = {label: k for k, label in enumerate(order)}
        missing = [label for label in classes.tolist() if label not in rank_of]
        if missing or len(rank_of) < len(order):
            raise ValueError(
                f"categories must hold each label of y once; got {shown(order)}"
                + (f", which lacks {shown(missing[0])}." if missing else ", which repeats one.")
            )
        ranks = np.array([rank_of[label] for label in classes.tolist()])
    ranks = np.where(np.bincount(codes, weights=weight, minlength=len(classes)) > 0.0, ranks, -1)
    by_rank = np.argsort(ranks, kind="stable")[np.count_nonzero(ranks < 0) :]
    position = np.zeros(len(classes), dtype=np.intp)
    position[by_rank] = np.arange(len(by_rank))
    present = ranks >= 0
    return classes[present], position[present], position[codes]
