"""Linear classification with box bounds on the coefficients."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..._arrays import namespace
from ..._docstrings import shares_entries
from ..._estimator.block_prediction import by_blocks
from ..._estimator.checks import in_type
from ..._estimator.decorators import available_if, with_parameters
from ..._estimator.offset_prediction import OffsetClassificationMixin
from ..._estimator.training_data import with_labels
from ..._linalg.special import expit, log_expit
from ..._messages import shown
from ..._typing import ClassWeight, FloatArray, MatrixLike, Offset
from ..losses.losses import classification_loss
from .fit import CONSTRAINTS, BoundedEstimatorMixin
from .regressor import BoundedRegressor

ClassificationLoss = Literal["log_loss", "hinge", "squared_hinge", "modified_huber"]


def _has_probabilities(estimator):
    if estimator.loss not in ("log_loss", "modified_huber"):
        raise AttributeError(
            f"loss={shown(estimator.loss)} gives no probabilities; 'log_loss' and 'modified_huber' do."
        )
    return True


@shares_entries(OffsetClassificationMixin.decision_function, BoundedRegressor)
@with_parameters
class BoundedClassifier(BoundedEstimatorMixin, OffsetClassificationMixin, BaseEstimator):
    r"""Linear classification with bounds on the coefficients, for losses with and without kinks.

    Logistic regression and support vector machines. For two classes, with :math:`y_i \in \{-1, 1\}` and
    :math:`m_i = y_i (x_i^T w + b + o_i)`, minimises

    .. math:: \frac{\sum_i s_i\, \ell(m_i)}{\sum_i s_i}
              + \alpha \Big(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|^2\Big)
              \quad \text{subject to} \quad l \le w \le u,

    s the sample weights times the class weights, o the ``offset`` of `fit` (zero without one),
    :math:`\rho` the ``l1_ratio``. More than two classes are fitted one against the rest, each with the same
    s. The intercept b has neither bounds nor a penalty.
    ``alpha`` has the scale of :class:`sklearn.linear_model.SGDClassifier`; it is 1 / (C n) of ``LinearSVC``
    and ``LogisticRegression``.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"}, default="log_loss"
        :math:`\ell(m)`: :math:`\log(1 + e^{-m})`; :math:`\max(0, 1 - m)`; its square; the same square down to
        :math:`m = -1` and :math:`-4 m` below.
    alpha : float, default=1e-4
        Strength of the penalty, >= 0. At 0 separable data have no solution.
    class_weight : dict or "balanced", default=None
        Weights of the classes, ``{label: weight}``. "balanced" uses
        ``sum(s) / (n_classes * sum of s in the class)``.
    bounds : pair or dict, default=(-inf, inf)
        ``(lower, upper)``, each a number, None (no bound) or an array of shape (n_features,) or (n_outputs,
        n_features). n_outputs is 1 for two classes, else their number. A dict ``{feature: (lower, upper)}``
        names features by column number or name; the others have no bounds. For two classes positive
        coefficients speak for ``classes_[1]``. Of two features two lists or tuples of two are refused: they
        might be a pair for each feature.
    {l1_ratio, fit_intercept}
    tol, max_iter, max_time : default=1e-6, 10000, None
        As in :class:`BoundedRegressor`; they hold for each of the one-against-rest problems.
    {warm_start, n_jobs, history, verbose, callback}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, within the bounds exactly; in the dtype of X (float64 if bounds leave no such number).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    objective_, dual_gap_ : ndarray of shape (1,) or (n_classes,)
        The objective, and what it is at most above the minimum, as in :class:`BoundedRegressor`.
    optimality_ : float
        The largest ``dual_gap_`` relative to ``objective_``.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Iterations.
    history_ : dict of ndarray
        As in :class:`BoundedRegressor`; ``output`` is the problem's number.
    needs_offset_ : bool
        Whether the fit had an offset, as in :class:`BoundedRegressor`.
    {n_features_in_, feature_names_in_}

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

    loss: ClassificationLoss = "log_loss"
    _: KW_ONLY
    alpha: float = 1e-4
    class_weight: ClassWeight = None

    _read = staticmethod(with_labels)
    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions(set(get_args(ClassificationLoss)))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CONSTRAINTS,
    }

    def _problem(self, given, X, weight):
        classes, codes, offset = given.classes, given.values, given.offset
        n_outputs = 1 if len(classes) == 2 else len(classes)
        shifts, middle = [None] * n_outputs, 0.0
        if offset is not None:
            # add the constant of all rows to the intercepts
            table = offset.reshape(len(codes), n_outputs)
            middle = weight @ table if self.fit_intercept else 0.0
            shifts = list(namespace(X=X).ascontiguousarray((table - middle).T))
        positive = [1] if n_outputs == 1 else range(n_outputs)
        losses = [
            classification_loss(self.loss, np.where(codes == k, 1.0, -1.0), weight, shift)
            for k, shift in zip(positive, shifts)
        ]
        return losses, -middle, 0.0

    def _attributes(self, coef, intercept, X):
        return {"coef_": coef, "intercept_": in_type(intercept, X.dtype)}

    @available_if(_has_probabilities)
    @by_blocks
    def predict_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Probability of each class.

        ``loss="log_loss"``: the logistic function of the scores. ``loss="modified_huber"``: (score + 1) / 2,
        clipped to [0, 1] (Zhang 2004). Of more than two classes the numbers are divided by their sum.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = self.decision_function(X, offset)
        of = expit if self.loss == "log_loss" else lambda z: np.clip(0.5 * (z + 1.0), 0.0, 1.0)
        if scores.ndim == 1:
            return np.column_stack([of(-scores), of(scores)])
        p = of(scores)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])

    @available_if(_has_probabilities)
    @by_blocks
    def predict_log_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Logarithm of `predict_proba`.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            -inf where the probability is 0.
        """
        if self.loss == "log_loss" and check_is_fitted(self) is None and len(self.classes_) == 2:
            scores = self.decision_function(X, offset)
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))
