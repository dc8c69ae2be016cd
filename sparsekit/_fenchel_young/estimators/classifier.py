"""Sparsemax and softmax regression: linear classifiers with Fenchel-Young losses."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..._docstrings import shares_entries
from ..._estimator.base import FIT_CONSTRAINTS, SolverEstimatorMixin
from ..._estimator.block_data import BlockedMatrix
from ..._estimator.decorators import fit_context, with_parameters
from ..._estimator.linear_model import last_fit
from ..._estimator.training_data import with_distributions
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..._typing import ClassWeight, MatrixLike
from ..losses.loss import FenchelYoungLoss
from ..solver.block_loss import TableLoss, TargetsOfBlocks, minimize_table_on_blocks
from ..solver.minimize_model import minimize_fenchel_young
from .messages import warn_if_ended_early
from .prediction import FenchelYoungClassifierMixin, SoftmaxMap, SparsemaxMap, coefficients_of

# the solver states its defaults
_SOLVER_PARAMETERS = inspect.signature(minimize_fenchel_young).parameters
TOL = _SOLVER_PARAMETERS["tol"].default
MAX_ITER = _SOLVER_PARAMETERS["max_iter"].default


@shares_entries(SolverEstimatorMixin)
@with_parameters
class _FenchelYoungClassifier(SolverEstimatorMixin, FenchelYoungClassifierMixin, BaseEstimator):
    """What sparsemax and softmax regression share: everything but the map.

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength of the L2 penalty, >= 0. The loss is a mean over the rows, so alpha keeps its meaning when
        rows are added. scikit-learn's ``LogisticRegression(C)`` of three classes and more has ``alpha = 1 /
        (C * n_samples)``. That of two classes, which has one row of coefficients, has twice as much. With
        weights their sum replaces n_samples.
    fit_intercept : bool, default=True
        Whether to fit the intercepts b.
    penalize_intercept : bool, default=True
        Whether the penalty holds for b as well, as in the paper. False leaves it free.
    class_weight : dict or "balanced", default=None
        Weights of the classes; "balanced" gives class k the weight ``mass / (K * mass of k)``. A row with
        several labels weighs the mean of theirs.
    tol : float, default=1e-5
        If alpha is not 0 the fit certifies that the objective is at most ``10 * tol`` of itself above the
        lowest. Rounding of the loss at zero coefficients is allowed in addition. The largest entry of the
        gradient must also be at most tol times that at zero.
    max_iter : int, default=200
        Largest number of steps.
    {max_time, warm_start, n_jobs, history, verbose, callback}
        In a fit on a GPU x is a CuPy array.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients, in the dtype of X; two classes have two rows.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; for matrices as targets the column numbers.
    multilabel_ : bool
        Whether y was a matrix.
    n_iter_ : ndarray of shape (1,)
        Number of steps.
    optimality_ : float
        The measure that ``tol`` bounds, at the solution.
    objective_ : float
        Value of the objective.
    dual_gap_ : float
        ``objective_`` is at most this far from the optimum: the distance to the best of the dual points that
        the fit has met. NaN where alpha is 0, or where free intercepts could not be balanced to rounding.
    {n_features_in_, feature_names_in_}
    """

    alpha: float = 1e-4
    _: KW_ONLY
    fit_intercept: bool = True
    penalize_intercept: bool = True
    threshold: float | None = None
    class_weight: ClassWeight = None
    tol: float = TOL
    max_iter: int = MAX_ITER

    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "threshold": [Interval(Real, 0, 1, closed="left"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **FIT_CONSTRAINTS,
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. A CuPy array or CSR matrix is fitted on its GPU, where the fitted arrays stay. y
            and sample_weight must then be CuPy's too, and labels numbers.
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Class labels of any kind. For several labels a row: an indicator of zeros and ones, or
            distributions, rows of numbers >= 0 that sum to 1. Rows of an indicator become uniform
            distributions over their labels; rows without a label are left out.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, not all zero; only their ratios matter.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, X or y hold NaN or infinity, shapes disagree, or y is neither
            of the three.
        TypeError
            If some arrays are on a GPU and others in main memory.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached, and its duality gap exceeds 1e-4 and 10 tol times
            the objective or is not known. It says how far the objective may be off.
        UserWarning
            If rows of an indicator have no label.
        """
        given = with_distributions(self, X, y, sample_weight)
        (X, columns), xp = without_empty_columns(given.X), given.xp
        classes, multilabel, dtype = given.classes, given.multilabel, X.dtype
        loss: Any
        solver: Any = minimize_fenchel_young
        if isinstance(X, BlockedMatrix):
            labels = None if multilabel else classes
            spec = TargetsOfBlocks(self._transform, len(classes), self.fit_intercept, labels, X.class_weight)
            loss = TableLoss(X.blocks, spec)
            solver = minimize_table_on_blocks
        else:
            loss = FenchelYoungLoss(
                self._transform, X, given.values, len(classes), given.weight,
                fit_intercept=self.fit_intercept, n_threads=count_threads(self.n_jobs),
            )  # fmt: skip

        def attributes(table):
            found = coefficients_of(table, columns, self.fit_intercept, dtype)
            return {**found, "classes_": classes, "multilabel_": multilabel}

        def minimize(x0, callback):
            return solver(
                loss, self.alpha, x0, penalize_intercept=self.penalize_intercept, callback=callback,
                history=self.history, **self._solver_options,
            )  # fmt: skip

        self._run(
            minimize,
            last_table(self, loss.shape, columns, xp),
            loss.shape,
            data=given.for_callbacks(),
            attributes=attributes,
            warn=warn_if_ended_early,
            whole=lambda x: columns.expand_variables(x, len(classes)),
            stacklevel=4,
        )
        return self


def last_table(model, shape, columns, xp):
    """The coefficients and intercepts of `last_fit` as the solver's table, an array of ``xp``, or None."""
    found = last_fit(model, xp.empty(0), columns, shape[1])
    if found is None:
        return None
    coef, intercept = found
    return np.vstack([coef.T, intercept] if model.fit_intercept else [coef.T])


@shares_entries(_FenchelYoungClassifier)
class SparsemaxClassifier(SparsemaxMap, _FenchelYoungClassifier):
    r"""Sparsemax regression: a linear classifier whose probabilities are sparse.

    Minimises eq. (11) of [1]_,

    .. math:: \frac{\alpha}{2} (\|W\|_F^2 + \|b\|^2) + \sum_i w_i\, L(W x_i + b;\; q_i),

    L the sparsemax loss (:func:`sparsemax_loss`), q_i the target distribution of row i and w_i its weight,
    which sum to 1. A step is one of the semismooth Newton method, with continuation in alpha. For large
    linear systems it is five sweeps of block coordinate ascent on the dual.

    Parameters
    ----------
    {alpha, fit_intercept, penalize_intercept}
    threshold : float, default=None
        For matrices as targets: `predict` gives a row each label whose probability is larger. None: its
        support, all labels with a probability that is not 0.
    {class_weight, tol, max_iter, max_time, warm_start, n_jobs, history, verbose, callback}

    Attributes
    ----------
    {coef_, intercept_, classes_, multilabel_, n_iter_, optimality_, objective_, dual_gap_}
    history_ : dict of ndarray
        Only with ``history=True``: time (seconds), fun and optimality of every step. fun is
        the objective itself, which may rise during continuation and sweeps.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    SoftmaxClassifier : The same with dense probabilities.
    SparsemaxClassifierCV : Chooses alpha by cross-validation.
    LPSparseMAPClassifier : Labels with scores of pairs and logic over them.
    sparsemax : The map from scores to probabilities.

    References
    ----------
    .. [1] A. Madsen, F. W. Rørbech, M. D. F. Kristensen, "Tensorflow implementation of sparsemax".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsekit import SparsemaxClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparsemaxClassifier(alpha=1e-3).fit(X, y)
    >>> model.predict_proba(X[:1])
    array([[1., 0., 0.]])
    """


@shares_entries(_FenchelYoungClassifier)
class SoftmaxClassifier(SoftmaxMap, _FenchelYoungClassifier):
    r"""Softmax regression, for classes and for distributions as targets.

    Minimises

    .. math:: \frac{\alpha}{2} (\|W\|_F^2 + \|b\|^2) + \sum_i w_i\, \mathrm{KL}(q_i \,\|\,
              \mathrm{softmax}(W x_i + b)),

    q_i the target distribution of row i and w_i its weight, which sum to 1. For class labels this is
    multinomial logistic regression. A step is one of Newton's method.

    Parameters
    ----------
    {alpha, fit_intercept, penalize_intercept}
    threshold : float, default=None
        For matrices as targets: `predict` gives a row each label whose probability is larger. None: all
        labels with more than the uniform share 1 / n_labels.
    {class_weight, tol, max_iter, max_time, warm_start, n_jobs, history, verbose, callback}

    Attributes
    ----------
    {coef_, intercept_, classes_, multilabel_, n_iter_, optimality_, objective_, dual_gap_}
    history_ : dict of ndarray
        Only with ``history=True``: time (seconds), fun and optimality of every step.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    SparsemaxClassifier : The same with sparse probabilities.
    SoftmaxClassifierCV : Chooses alpha by cross-validation.
    L1LogisticOBA : With an L1 penalty.
    ExtremeSoftmaxSGD : For very many classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsekit import SoftmaxClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftmaxClassifier(alpha=1e-3).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.98
    """
