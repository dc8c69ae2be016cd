"""L1-regularised logistic regression, binary and multinomial, by the orthant-based adaptive method."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..._docstrings import shares_entries
from ..._estimator.base import SolverEstimatorMixin
from ..._estimator.block_prediction import by_blocks
from ..._estimator.decorators import with_parameters
from ..._estimator.linear_model import PenaltyNameMixin
from ..._estimator.offset_prediction import OffsetClassificationMixin
from ..._estimator.training_data import with_labels
from ..._linalg.special import expit, log_expit, log_softmax, softmax
from ..._typing import ClassWeight, FloatArray, MatrixLike, Offset
from ..paths.inputs import problem_of_labels
from .fit import CONSTRAINTS, OBAEstimatorMixin


@shares_entries(OffsetClassificationMixin.decision_function)
class L1LogisticClassifierMixin(PenaltyNameMixin, OffsetClassificationMixin):
    """Prediction with a fitted linear logistic model; probabilities hold for scores of any size."""

    _whole = problem_of_labels

    @by_blocks
    def predict_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Probability of each class.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            # expit(-z) instead of 1 - expit(z): a small probability keeps all its digits
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores)

    @by_blocks
    def predict_log_proba(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Logarithm of `predict_proba`, computed without forming it: finite wherever the scores are.

        {Parameters}

        {Returns}
        """
        check_is_fitted(self)
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores)


@shares_entries(OBAEstimatorMixin, SolverEstimatorMixin)
@with_parameters
class L1LogisticOBA(OBAEstimatorMixin, L1LogisticClassifierMixin, BaseEstimator):
    r"""L1-regularised logistic regression by the orthant-based adaptive method (OBA).

    For two classes, with :math:`y_i \in \{-1, 1\}`, the model minimises

    .. math:: \sum_j v_j \left(\rho |w_j| + \tfrac{1 - \rho}{2} w_j^2\right)
              + C \sum_i s_i \log(1 + \exp(-y_i (x_i^T w + b + o_i)))

    and for K > 2 classes the true multinomial objective

    .. math:: \sum_{j,k} v_j \left(\rho |W_{kj}| + \tfrac{1 - \rho}{2} W_{kj}^2\right)
              + C \sum_i s_i
              \Big(\log \sum_k \exp(W_k^T x_i + b_k + o_{ik}) - W_{y_i}^T x_i - b_{y_i} - o_{i y_i}\Big),

    where o is the ``offset`` of `fit` (zero without one) and s are the sample weights times the class
    weights. v are the ``penalty_weights`` and :math:`\rho` is the ``l1_ratio``. C has the scale of
    :class:`sklearn.linear_model.LogisticRegression`. The intercept b is never penalised.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the regularisation strength, > 0; ``inf`` means no penalty.
    fit_intercept : bool, default=True
        Whether to fit the (unpenalised) intercept.
    class_weight : dict or "balanced", default=None
        Weights of the classes, ``{label: weight}``. "balanced" uses
        ``sum(s) / (n_classes * sum of s in the class)``.
    {l1_ratio, penalty_weights, tol}
        For feature j :math:`\lambda_j = \rho v_j / C`. The unit is the largest entry of the gradient at zero;
        with an ``offset`` and an intercept it is that of the model of the intercept alone.
    {max_iter, hessian, memory, max_time, warm_start, n_jobs, history, verbose, callback}
        In a fit on a GPU x is a CuPy array.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the dtype of X (float32 or float64). Of more than two classes those of a feature
        without a penalty sum to zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept; for more than two classes it sums to zero. Zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_iter_ : ndarray of shape (1,)
        Number of outer iterations.
    optimality_ : float
        The optimality measure that ``tol`` bounds, at the solution.
    objective_ : float
        The summed loss plus the penalty divided by C: the objective above, divided by C.
    dual_gap_ : float
        Duality gap on the scale of ``objective_``: the solution is at most this far from the optimum.
    history_ : dict of ndarray
        Only with ``history=True``: time (seconds), fun, optimality, nnz, n_free and n_corrections of
        every outer iteration.
    needs_offset_ : bool
        Whether the fit had an offset. Predictions then ask for one too; set it to False to let them take
        zero, for tools that cannot hand one on.
    n_rounds_ : int
        Only of a fit to X in blocks: passes over them.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    L1LogisticOBACV : Chooses C by cross-validation over a path.
    l1_logistic_path : The whole regularisation path.
    BoundedClassifier : With bounds on the coefficients, and other losses.
    minimize_oba : The solver.

    Notes
    -----
    X is used as it is, without a copy, if it is float32 or float64 in one of two layouts. They are arrays
    that are C- or Fortran-contiguous, and CSR or CSC matrices (int32 or int64 indices). There is one
    exception: an intercept, and a column whose mean is at least 30 times its standard deviation. Then the fit
    works on a copy in which such columns are centred. The model is the same; without this, rounding hides
    what such columns say. Blocks of rows are not centred. The method is Algorithm 2 of chapter 2 of [1]_.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sparsekit import L1LogisticOBA
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = L1LogisticOBA(C=0.1).fit(X, y)
    >>> int((model.coef_ != 0).sum()), round(model.score(X, y), 3)
    (8, 0.974)
    """

    C: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
    class_weight: ClassWeight = None

    _read = staticmethod(with_labels)
    _parameter_constraints: ClassVar[dict] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CONSTRAINTS,
    }

    @property
    def _strength(self):
        return 1.0 / self.C
