"""Regularisation paths of L1 logistic regression and of the Lasso."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from ..._arrays import is_device, namespace, to_host
from ..._estimator.block_data import BlockedMatrix, labels_of_blocks, numbers_of_blocks
from ..._estimator.checks import (
    X_CHECKS,
    apply_class_weight,
    as_kernel_input,
    check_penalties,
    check_sample_weight,
    in_units,
)
from ..._estimator.decorators import validate_params
from ..._estimator.device_checks import check_device_target, check_device_X, device_weight
from ..._estimator.labels import encode_labels, refuse_missing_labels
from ..._estimator.offset import check_offset
from ..._estimator.targets import device_labels
from ..._estimator.used_columns import without_empty_columns
from ..._estimator.validation import check_X_y
from ..._linalg.threads import count_threads
from ..._row_blocks.make import comes_in_blocks
from ..._typing import ClassWeight, Hessian, MatrixLike, Offset, PenaltyWeights, SolverCallback
from ..losses.null_intercept import unless_zero
from .block_problems import LeastSquaresBlockProblem, LogisticBlockProblem
from .coefficients import penalty_of
from .data_losses import check_positive, weights_in_units
from .least_squares_problem import LeastSquaresProblem
from .magnitudes import sum_in_units
from .path_solver import RegularizationPath, warn_if_path_unconverged
from .problems import LogisticProblem
from .settings import MAX_ITER, MEMORY, OBA_CONSTRAINTS, TOL

PENALTIES = [Interval(Integral, 1, None, closed="left"), "array-like", None]

PATH_CONSTRAINTS = {
    "n_lambdas": [Interval(Integral, 1, None, closed="left")],
    "eps": [Interval(Real, 0, 1, closed="neither")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "fit_intercept": ["boolean"],
    "penalty_weights": ["array-like", dict, None],
    "coefs": [StrOptions({"auto", "dense", "sparse"})],
    **{name: rule for name, rule in OBA_CONSTRAINTS.items() if name != "verbose"},
}


@validate_params(
    {
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "Cs": PENALTIES,
        "lambdas": PENALTIES,
        **PATH_CONSTRAINTS,
    },
    prefer_skip_nested_validation=True,
)
def l1_logistic_path(
    X: MatrixLike,
    y: ArrayLike,
    *,
    Cs: int | ArrayLike | None = None,
    lambdas: int | ArrayLike | None = None,
    n_lambdas: int = 50,
    eps: float = 1e-3,
    l1_ratio: float = 1.0,
    fit_intercept: bool = True,
    penalty_weights: PenaltyWeights = None,
    class_weight: ClassWeight = None,
    sample_weight: ArrayLike | None = None,
    offset: Offset = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    max_time: float | None = None,
    hessian: Hessian = "exact",
    memory: int = MEMORY,
    n_jobs: int | None = None,
    coefs: Literal["auto", "dense", "sparse"] = "auto",
    callback: SolverCallback | None = None,
) -> RegularizationPath:
    r"""Regularisation path of L1 logistic regression, binary or multinomial.

    Solves, for falling :math:`\lambda` and each time from the solution before,

    .. math:: \min_{w, b} \sum_i s_i \log(1 + \exp(-y_i (x_i^T w + b))) + \lambda \sum_j v_j |w_j|

    (for more than two classes the multinomial loss; with an ``offset`` that is added to each row's
    :math:`x_i^T w + b`). :math:`\lambda = 1/C` with the C of :class:`L1LogisticOBA`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data, used without a copy where the dtype and layout allow it. CuPy's are worked on where they are,
        and y, sample_weight and offset must be there too; the path is in main memory.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : int or array-like, default=None
        Inverse penalties C > 0, in any order; the path goes through them from the smallest up. An integer is
        the length of the grid, as ``n_lambdas``.
    lambdas : int or array-like, default=None
        Penalties 1/C > 0, in any order, or the length of the grid. Give Cs, lambdas or neither.
    n_lambdas : int, default=50
        Length of the grid where neither is given. The grid is even in the logarithm, from the smallest
        penalty at which every penalised coefficient is zero down to ``eps`` times it.
    eps : float, default=1e-3
        Ratio of the grid's ends, in (0, 1).
    l1_ratio : float, default=1.0
        Part of the penalty that is L1, as in :class:`L1LogisticOBA`. Below 1e-3, where no
        coefficient is ever zero, the grid begins as for 1e-3 and ends as for 1.
    fit_intercept, penalty_weights, class_weight : default=True, None, None
        As in :class:`L1LogisticOBA`.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights s_i >= 0 of the rows.
    offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Known part of each row's score, as in :meth:`L1LogisticOBA.fit`.
    tol, max_iter : default=1e-5, 200
        As in :class:`L1LogisticOBA`; ``max_iter`` counts per point.
    max_time : float, default=None
        Largest time in seconds of the whole path. Points for which no time is left keep the last solution
        and have status 2.
    hessian, memory, n_jobs : default="exact", 10, None
        As in :class:`L1LogisticOBA`.
    coefs : {"auto", "dense", "sparse"}, default="auto"
        Form of the result's coefficients; "auto" is sparse where dense ones would take more than 64 MiB.
    callback : callable, default=None
        The solver's callback, called at every outer iteration; it stops the whole path by returning True.

    Returns
    -------
    RegularizationPath
        Ordered by falling penalty (rising C). Shorter than asked for if the callback stopped it.

    Raises
    ------
    ValueError
        As :meth:`L1LogisticOBA.fit`, or if both Cs and lambdas are given.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If a point did not reach ``tol``.

    See Also
    --------
    L1LogisticOBACV : Chooses C by cross-validation.
    sparsekit.inspection.RegularizationPathDisplay : Draws the path.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sparsekit import l1_logistic_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = l1_logistic_path(scale(X), y, n_lambdas=5)
    >>> path.coefs.shape
    (30, 5)
    >>> int(path.n_nonzero[0])
    0
    """
    if Cs is not None and lambdas is not None:
        raise ValueError("Give Cs or lambdas (= 1 / Cs), not both.")
    count = Cs if lambdas is None else lambdas
    if isinstance(count, Integral):
        Cs, lambdas, n_lambdas = None, None, int(count)
    feature_names = feature_names_of(X)
    if comes_in_blocks(X):
        X, codes, weight, classes = labels_of_blocks(None, X, y, sample_weight, class_weight, offset)
        offset = X.census.offset
    elif is_device(X):
        X = check_device_X("l1_logistic_path", X)
        found = device_labels(X, y, device_weight(X, sample_weight), class_weight)
        classes, codes, weight = to_host(found.classes), found.values, found.weight
    else:
        namespace(X=X, y=y)
        refuse_missing_labels(y)
        X, y = check_X_y(X, y, estimator="l1_logistic_path", **X_CHECKS)
        X = as_kernel_input(X)
        classes, codes = encode_labels(y)
        own = check_sample_weight(sample_weight, X.shape[0])
        weight = apply_class_weight(class_weight, classes, codes, own)
    weight, unit = weights_in_units(X, weight, sum_in_units)
    if Cs is not None:
        lambdas = 1.0 / np.sort(check_penalties(Cs, "Cs"))
    elif lambdas is not None:
        lambdas = np.sort(check_penalties(lambdas, "lambdas"))[::-1]
    options = dict(tol=tol, max_iter=max_iter, hessian=hessian, memory=memory)
    penalty = penalty_of(X, penalty_weights, 1.0, feature_names)
    X, columns = without_empty_columns(X)
    make = LogisticBlockProblem if isinstance(X, BlockedMatrix) else LogisticProblem
    offset = check_offset(offset, X, 1 if len(classes) == 2 else len(classes))
    problem = make(
        X, codes, weight, columns.restrict(penalty), fit_intercept, count_threads(n_jobs), classes, unit,
        unless_zero(offset),
    )  # fmt: skip
    problem.columns, problem.l1_ratio = columns, l1_ratio
    path = problem.regularization_path(
        lambdas, n_lambdas, eps, options, coefs=coefs, callback=callback, max_time=max_time
    )
    path.classes, path.feature_names = classes, feature_names
    warn_if_path_unconverged(path, options, "l1_logistic_path")
    return path


@validate_params(
    {"positive": ["boolean"], "alphas": PENALTIES, **PATH_CONSTRAINTS}, prefer_skip_nested_validation=True
)
def lasso_path(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alphas: int | ArrayLike | None = None,
    n_lambdas: int = 50,
    eps: float = 1e-3,
    l1_ratio: float = 1.0,
    positive: bool = False,
    fit_intercept: bool = True,
    penalty_weights: PenaltyWeights = None,
    sample_weight: ArrayLike | None = None,
    offset: Offset = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    max_time: float | None = None,
    hessian: Hessian = "exact",
    memory: int = MEMORY,
    n_jobs: int | None = None,
    coefs: Literal["auto", "dense", "sparse"] = "auto",
    callback: SolverCallback | None = None,
) -> RegularizationPath:
    r"""Regularisation path of the Lasso, on the scale of :class:`LassoOBA`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data, used without a copy where the dtype and layout allow it. CuPy's are worked on where they are,
        and y, sample_weight and offset must be there too; the path is in main memory.
    y : array-like of shape (n_samples,)
        Target values.
    alphas : int or array-like, default=None
        Penalties > 0, in any order; the path goes through them from the largest down. An integer asks for a
        grid of that length, as in :class:`LassoOBACV`; None for one of ``n_lambdas``.
    n_lambdas, eps, l1_ratio : default=50, 1e-3, 1.0
        As in :func:`l1_logistic_path`.
    positive : bool, default=False
        Whether coefficients must be >= 0, as in :class:`LassoOBA`; the grid begins where all are zero then.
    fit_intercept, penalty_weights, sample_weight : default=True, None, None
        As in :func:`l1_logistic_path`.
    offset : float or array-like of shape (n_samples,), default=None
        Known part of each row's prediction, as in :meth:`LassoOBA.fit`.
    tol, max_iter, max_time : default=1e-5, 200, None
        As in :func:`l1_logistic_path`.
    hessian, memory, n_jobs, coefs, callback : default="exact", 10, None, "auto", None
        As in :func:`l1_logistic_path`.

    Returns
    -------
    RegularizationPath
        Ordered by falling penalty.

    Raises
    ------
    ValueError
        As :meth:`LassoOBA.fit`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If a point did not reach ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import lasso_path
    >>> path = lasso_path(*load_diabetes(return_X_y=True), alphas=[2, 1, 0.5])
    >>> path.coefs.shape, path.n_nonzero, round(float(path.lambda_max), 3)
    ((10, 3), array([2, 3, 4]), 2.148)
    """
    if isinstance(alphas, Integral):
        alphas, n_lambdas = None, int(alphas)
    feature_names = feature_names_of(X)
    if comes_in_blocks(X):
        X, y, weight = numbers_of_blocks(None, X, y, sample_weight, offset)
        offset = X.census.offset
    elif is_device(X):
        X = check_device_X("lasso_path", X)
        y, weight = check_device_target(y, X=X), device_weight(X, sample_weight)
    else:
        namespace(X=X, y=y)
        X, y = check_X_y(X, y, estimator="lasso_path", y_numeric=True, **X_CHECKS)
        X = as_kernel_input(X)
        weight = check_sample_weight(sample_weight, X.shape[0])
    weight, _ = weights_in_units(X, weight, in_units)
    if alphas is not None:
        alphas = np.sort(check_penalties(alphas, "alphas"))[::-1]
    options = dict(tol=tol, max_iter=max_iter, hessian=hessian, memory=memory)
    penalty = penalty_of(X, penalty_weights, 1.0, feature_names)
    X, columns = without_empty_columns(X)
    if positive:
        check_positive(hessian)
    make = LeastSquaresBlockProblem if isinstance(X, BlockedMatrix) else LeastSquaresProblem
    problem = make(
        X, y, weight, columns.restrict(penalty), fit_intercept, count_threads(n_jobs), positive, hessian,
        unless_zero(check_offset(offset, X)),
    )  # fmt: skip
    problem.columns, problem.l1_ratio = columns, l1_ratio
    path = problem.regularization_path(
        alphas, n_lambdas, eps, options, coefs=coefs, callback=callback, max_time=max_time
    )
    path.feature_names = feature_names
    warn_if_path_unconverged(path, options, "lasso_path")
    return path


def feature_names_of(X):
    """Names of the columns of a data frame, or None."""
    names = getattr(X, "columns", None)
    return None if names is None else np.asarray(names, dtype=object)
