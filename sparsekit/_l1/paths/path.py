"""Regularisation paths of L1 logistic regression and of the Lasso."""

from __future__ import annotations

from numbers import Integral, Real
from types import SimpleNamespace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from ..._docstrings import shares_entries
from ..._estimator.checks import check_penalties
from ..._estimator.decorators import validate_params
from ..._estimator.training_data import with_labels, with_numbers
from ..._typing import ClassWeight, Hessian, MatrixLike, Offset, PenaltyWeights, SolverCallback
from .inputs import problem_of_labels, problem_of_numbers
from .path_solver import RegularizationPath, warn_if_path_unconverged
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
    who, model = "l1_logistic_path", model_of(X, fit_intercept, penalty_weights, n_jobs)
    given = with_labels(
        who, X, y, sample_weight, stay_in_blocks=True, offset=offset, class_weight=class_weight
    )
    whole = problem_of_labels(model, given)
    name, given_penalties = ("Cs", Cs) if lambdas is None else ("lambdas", lambdas)
    penalties, n_lambdas = falling(given_penalties, name, n_lambdas)
    if Cs is not None and penalties is not None:
        penalties = 1.0 / penalties[::-1]
    options = dict(tol=tol, max_iter=max_iter, hessian=hessian, memory=memory)
    path = solve_path(
        who, model, whole, l1_ratio, (penalties, n_lambdas), eps, options, coefs=coefs, callback=callback,
        max_time=max_time,
    )  # fmt: skip
    path.classes = whole.classes
    return path


@shares_entries(l1_logistic_path)
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
    {X}
    y : array-like of shape (n_samples,)
        Target values.
    alphas : int or array-like, default=None
        Penalties > 0, in any order; the path goes through them from the largest down. An integer asks for a
        grid of that length, as in :class:`LassoOBACV`; None for one of ``n_lambdas``.
    {n_lambdas, eps, l1_ratio}
    positive : bool, default=False
        Whether coefficients must be >= 0, as in :class:`LassoOBA`; the grid begins where all are zero then.
    fit_intercept, penalty_weights : default=True, None
        As in :class:`LassoOBA`.
    {sample_weight}
    offset : float or array-like of shape (n_samples,), default=None
        Known part of each row's prediction, as in :meth:`LassoOBA.fit`.
    {tol, max_iter, max_time, hessian, memory, n_jobs, coefs, callback}

    Returns
    -------
    RegularizationPath
        Ordered by falling penalty.

    Raises
    ------
    ValueError
        As :meth:`LassoOBA.fit`.

    {Warns}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import lasso_path
    >>> path = lasso_path(*load_diabetes(return_X_y=True), alphas=[2, 1, 0.5])
    >>> path.coefs.shape, path.n_nonzero, round(float(path.lambda_max), 3)
    ((10, 3), array([2, 3, 4]), 2.148)
    """
    who, model = "lasso_path", model_of(X, fit_intercept, penalty_weights, n_jobs)
    given = with_numbers(who, X, y, sample_weight, stay_in_blocks=True, offset=offset)
    whole = problem_of_numbers(model, given, positive, hessian)
    options = dict(tol=tol, max_iter=max_iter, hessian=hessian, memory=memory)
    return solve_path(
        who, model, whole, l1_ratio, falling(alphas, "alphas", n_lambdas), eps, options, coefs=coefs,
        callback=callback, max_time=max_time,
    )  # fmt: skip


def model_of(X, fit_intercept, penalty_weights, n_jobs):
    """What `problem_of` asks of an estimator; the names of a data frame's columns need not be strings."""
    names = getattr(X, "columns", None)
    return SimpleNamespace(
        fit_intercept=fit_intercept, penalty_weights=penalty_weights, n_jobs=n_jobs,
        feature_names_in_=None if names is None else np.asarray(names, dtype=object),
    )  # fmt: skip


def falling(penalties, name, n_lambdas):
    """Penalties, falling, or None for a grid; and the length of the grid."""
    if isinstance(penalties, Integral):
        return None, int(penalties)
    return None if penalties is None else np.sort(check_penalties(penalties, name))[::-1], n_lambdas


def solve_path(who, model, whole, l1_ratio, grid, eps, options, **others):
    """The path of the problem ``whole`` over the grid of `falling`, with a warning if it did not converge."""
    whole.l1_ratio = l1_ratio
    path = whole.regularization_path(*grid, eps, options, **others)
    path.feature_names = model.feature_names_in_
    warn_if_path_unconverged(path, options, who, stacklevel=5)
    return path
