"""Regularisation paths: one loss object, solved for a falling penalty, each from the one before.

The logistic and the least-squares path are the same code; only the loss, the model without
features and the scale of the penalty differ.
"""

import time
import warnings
from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_X_y
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from ._base import (
    CONVERGED,
    MAX_ITER,
    MEMORY,
    SOLVER_CONSTRAINTS,
    STOPPED,
    TOL,
    effective_n_threads,
)
from ._losses import LeastSquaresLoss
from ._problem import (
    X_CHECKS,
    apply_class_weight,
    as_kernel_input,
    center_target,
    check_penalty_weights,
    check_sample_weight,
    encode_labels,
    l1_weights,
    logistic_loss,
    null_intercept,
    pack,
    unpack,
)
from ._solvers.oba import minimize_oba

# dense coefficients above this many bytes are kept as CSC instead, with coefs="auto"
_DENSE_BYTES = 2**26


@dataclass
class RegularizationPath:
    """Solutions of an L1-regularised problem along a falling penalty.

    Attributes
    ----------
    lambdas : ndarray of shape (n_lambdas,)
        Penalties, falling: the solver's objective is ``loss + lambda * sum_j v_j |w_j|``. For the
        logistic path the loss is a sum over the rows and ``C = 1 / lambda``; for the Lasso path the
        loss is the weighted mean of half the squares and lambda is scikit-learn's alpha.
    coefs : ndarray or csc_array
        Shape (n_features, n_lambdas), or (n_classes, n_features, n_lambdas) for more than two classes.
        As CSC the classes are stacked: (n_classes * n_features, n_lambdas).
    intercepts : ndarray of shape (n_lambdas,) or (n_classes, n_lambdas)
    objectives : ndarray of shape (n_lambdas,)
        Value of the objective above.
    dual_gaps : ndarray of shape (n_lambdas,)
        Duality gaps on the same scale; NaN where the loss has none.
    optimality : ndarray of shape (n_lambdas,)
        The relative optimality measure that ``tol`` bounds.
    n_iters : ndarray of shape (n_lambdas,)
        Outer iterations of each solve.
    n_nonzero : ndarray of shape (n_lambdas,)
        Coefficients that are not zero.
    statuses : ndarray of shape (n_lambdas,)
        Status of each solve, 0 for converged (see :func:`minimize_oba`).
    lambda_max : float
        The smallest penalty at which every penalised coefficient is zero.
    classes : ndarray of shape (n_classes,) or None
        The class labels of a logistic path.
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns, where X had names.
    """

    lambdas: np.ndarray
    coefs: object
    intercepts: np.ndarray
    objectives: np.ndarray
    dual_gaps: np.ndarray
    optimality: np.ndarray
    n_iters: np.ndarray
    n_nonzero: np.ndarray
    statuses: np.ndarray
    lambda_max: float
    classes: np.ndarray | None = None
    feature_names: np.ndarray | None = field(default=None, repr=False)

    @property
    def Cs(self):
        """``1 / lambdas``: scikit-learn's C of a logistic path."""
        return 1.0 / self.lambdas

    @property
    def alphas(self):
        """``lambdas`` by the name they have in scikit-learn's Lasso."""
        return self.lambdas

    def coef(self, index):
        """Dense coefficients at one penalty: (n_features,), or (n_classes, n_features)."""
        n_outputs = self.intercepts.shape[0] if self.intercepts.ndim == 2 else 1
        if sp.issparse(self.coefs):
            column = self.coefs[:, [index]].toarray().ravel()
        else:
            column = self.coefs[..., index].ravel()
        return column if n_outputs == 1 else column.reshape(n_outputs, -1)


def null_model(make_loss, X, penalty_weights, n_outputs, intercept, solver_options):
    """Variables of the best model in which every penalised coefficient is zero.

    Parameters
    ----------
    make_loss : callable
        Makes the loss for a matrix with the rows of X.
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    penalty_weights : float or ndarray of shape (n_features,)
    n_outputs : int
    intercept : ndarray of shape (n_outputs,) or None
        The intercept of the model without features; None if none is fitted.
    solver_options : dict

    Returns
    -------
    ndarray of shape (n_variables,)
    """
    n_features = X.shape[1]
    weights = np.broadcast_to(penalty_weights, (n_features,))
    coef = np.zeros((n_outputs, n_features))
    free = np.flatnonzero(weights == 0)
    if free.size:
        loss = make_loss(as_kernel_input(X[:, free]))
        start = None if intercept is None else pack(np.zeros((n_outputs, free.size)), intercept, True)
        # lambda_max is read off this solution, so it is solved more tightly than the path
        options = {**solver_options, "tol": min(solver_options["tol"], 1e-8)}
        result = minimize_oba(loss, np.zeros(loss.n_variables), start, **options)
        coef[:, free], free_intercept = unpack(result.x, n_outputs, free.size, intercept is not None)
        intercept = None if intercept is None else free_intercept
    return pack(coef, intercept, intercept is not None)


def largest_penalty(loss, x_null, l1):
    """The smallest factor of ``l1`` at which the null model ``x_null`` is optimal."""
    penalised = l1 > 0
    gradient = np.abs(loss.gradient(x_null)[penalised])
    return float(np.max(gradient / l1[penalised], initial=0.0))


def penalty_grid(largest, n_lambdas, eps):
    """``n_lambdas`` values from ``largest`` down to ``eps * largest``, evenly spaced in the logarithm."""
    # no feature carries any signal: any penalty gives the null model, so the grid's place is free
    top = largest if largest > 0 else 1.0
    return np.geomspace(top, eps * top, n_lambdas) if n_lambdas > 1 else np.array([top])


def iterate_path(loss, l1, lambdas, x0, solver_options, *, max_time=None, callback=None):
    """Solve ``loss + lambda * l1 . |x|`` for falling lambdas, each from the last solution.

    Parameters
    ----------
    loss : loss object
    l1 : ndarray of shape (n_variables,)
    lambdas : ndarray
        Falling penalties.
    x0 : ndarray of shape (n_variables,)
        Start of the first solve, usually the null model.
    solver_options : dict
        Keyword arguments of :func:`minimize_oba`.
    max_time : float or None
        Seconds for the whole path; a solve gets what is left.
    callback : callable or None
        The solver's callback.

    Yields
    ------
    OptimizeResult
        One per penalty. The path ends early when the callback or the time stops it.
    """
    x = x0
    end = None if max_time is None else time.perf_counter() + max_time
    for lam in lambdas:
        left = None
        if end is not None:
            # a positive rest, so that the solver's own rule for max_time stays the only one
            left = max(end - time.perf_counter(), 1e-9)
        result = minimize_oba(
            loss, l1_weights(l1, lam), x, max_time=left, callback=callback, **solver_options
        )
        yield result
        if result.status == STOPPED:
            return
        x = result.x


def collect_path(
    results,
    lambdas,
    lambda_max,
    n_outputs,
    n_features,
    fit_intercept,
    *,
    scale=1.0,
    coefs="auto",
    dtype=np.float64,
):
    """Gather the results of `iterate_path` into a `RegularizationPath`."""
    n_rows = n_outputs * n_features
    if coefs == "auto":
        coefs = "sparse" if 8 * n_rows * len(lambdas) > _DENSE_BYTES else "dense"
    dense = np.zeros((n_outputs, n_features, len(lambdas)), dtype=dtype) if coefs == "dense" else None
    columns, intercepts, kept = [], [], []
    for i, result in enumerate(results):
        coef, intercept = unpack(result.x, n_outputs, n_features, fit_intercept, dtype)
        if dense is None:
            columns.append(sp.csc_array(coef.reshape(-1, 1)))
            nnz = columns[-1].nnz
        else:
            dense[..., i] = coef
            nnz = np.count_nonzero(coef)
        intercepts.append(intercept)
        kept.append(
            (result.fun / scale, result.dual_gap / scale, result.optimality, result.nit, nnz, result.status)
        )
    n = len(kept)
    fun, gap, optimality, n_iters, n_nonzero, statuses = (np.array(column) for column in zip(*kept))
    if dense is None:
        stacked = sp.hstack(columns, format="csc")
    else:
        stacked = dense[..., :n] if n_outputs > 1 else dense[0, :, :n]
    intercepts = np.array(intercepts).T
    return RegularizationPath(
        lambdas=lambdas[:n],
        coefs=stacked,
        intercepts=intercepts if n_outputs > 1 else intercepts[0],
        objectives=fun,
        dual_gaps=gap,
        optimality=optimality,
        n_iters=n_iters,
        n_nonzero=n_nonzero,
        statuses=statuses,
        lambda_max=lambda_max,
    )


def warn_if_path_unconverged(path, options, who):
    """One ConvergenceWarning for all the points of a path that did not converge."""
    failed = ~np.isin(path.statuses, (CONVERGED, STOPPED))
    if failed.any():
        warnings.warn(
            f"{who}: {failed.sum()} of {failed.size} points of the path did not converge to "
            f"tol={options['tol']:.2e} (worst optimality {path.optimality[failed].max():.2e}); see statuses and "
            "optimality of the result. Increase max_iter or max_time, loosen tol, raise the smallest "
            "penalty (eps), or bring the columns of X to similar scales.",
            ConvergenceWarning,
            stacklevel=3,
        )


def solve_path(
    make_loss,
    X,
    penalty_weights,
    n_outputs,
    intercept,
    options,
    *,
    lambdas=None,
    n_lambdas,
    eps,
    max_time=None,
    callback=None,
    coefs="auto",
    scale=1.0,
):
    """A whole path: null model, grid, solves. See `null_model`, `iterate_path` and `collect_path`.

    ``lambdas`` and the returned path are on the estimator's scale, ``scale`` times smaller than the
    solver's.
    """
    loss = make_loss(X)
    l1 = loss.l1_vector(penalty_weights)
    x_null = null_model(make_loss, X, penalty_weights, n_outputs, intercept, options)
    lambda_max = largest_penalty(loss, x_null, l1) / scale
    if lambdas is None:
        lambdas = penalty_grid(lambda_max, n_lambdas, eps)
    results = iterate_path(loss, l1, lambdas * scale, x_null, options, max_time=max_time, callback=callback)
    return collect_path(
        results,
        lambdas,
        lambda_max,
        n_outputs,
        X.shape[1],
        intercept is not None,
        scale=scale,
        coefs=coefs,
        dtype=X.dtype,
    )


def check_penalties(values, name):
    """Positive finite penalties (or Cs) as a float64 vector.

    Raises
    ------
    ValueError
        If there is none, or one is not a finite number > 0.
    """
    values = check_array(values, ensure_2d=False, allow_nd=True, dtype=np.float64, input_name=name)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got an array of shape {values.shape}.")
    if not (values > 0).all():
        raise ValueError(f"{name} must be > 0, got {values[~(values > 0)][0]:g}.")
    return values


_PATH_CONSTRAINTS = {
    "n_lambdas": [Interval(Integral, 1, None, closed="left")],
    "eps": [Interval(Real, 0, 1, closed="neither")],
    "fit_intercept": ["boolean"],
    "coefs": [StrOptions({"auto", "dense", "sparse"})],
    **{name: rule for name, rule in SOLVER_CONSTRAINTS.items() if name != "verbose"},
}


@validate_params(
    {"class_weight": [dict, StrOptions({"balanced"}), None], **_PATH_CONSTRAINTS},
    prefer_skip_nested_validation=True,
)
def l1_logistic_path(
    X,
    y,
    *,
    Cs=None,
    lambdas=None,
    n_lambdas=50,
    eps=1e-3,
    fit_intercept=True,
    penalty_weights=None,
    class_weight=None,
    sample_weight=None,
    tol=TOL,
    max_iter=MAX_ITER,
    max_time=None,
    hessian="exact",
    memory=MEMORY,
    n_jobs=None,
    coefs="auto",
    callback=None,
):
    r"""Regularisation path of L1 logistic regression, binary or multinomial.

    Solves, for falling :math:`\lambda` and each time from the solution before,

    .. math:: \min_{w, b} \sum_i s_i \log(1 + \exp(-y_i (x_i^T w + b))) + \lambda \sum_j v_j |w_j|

    (for more than two classes the multinomial loss). :math:`\lambda = 1/C` with the C of
    :class:`L1LogisticOBA`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data, used without a copy where the dtype and layout allow it.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : array-like, default=None
        Inverse penalties C > 0, in any order; the path goes through them from the smallest up.
    lambdas : array-like, default=None
        Penalties 1/C > 0, in any order. Give Cs, lambdas or neither.
    n_lambdas : int, default=50
        Length of the grid where neither is given: from the smallest penalty at which every penalised
        coefficient is zero down to ``eps`` times it, evenly in the logarithm.
    eps : float, default=1e-3
        Ratio of the grid's ends, in (0, 1).
    fit_intercept, penalty_weights, class_weight, tol, max_iter, hessian, memory, n_jobs
        As in :class:`L1LogisticOBA`; ``max_iter`` counts per point.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights s_i >= 0 of the rows.
    max_time : float, default=None
        Largest time in seconds of the whole path. Points for which no time is left keep the last solution
        and have status 2.
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
        As `L1LogisticOBA.fit`, or if both Cs and lambdas are given.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If a point did not reach ``tol``.

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
    feature_names = _feature_names(X)
    X, y = check_X_y(X, y, estimator="l1_logistic_path", **X_CHECKS)
    X = as_kernel_input(X)
    classes, codes = encode_labels(y)
    weight = apply_class_weight(class_weight, classes, codes, check_sample_weight(sample_weight, X.shape[0]))
    if Cs is not None:
        lambdas = 1.0 / np.sort(check_penalties(Cs, "Cs"))
    elif lambdas is not None:
        lambdas = np.sort(check_penalties(lambdas, "lambdas"))[::-1]
    options = _solver_options(tol, max_iter, hessian, memory, n_jobs)
    path = logistic_path(
        X, codes, len(classes), weight, check_penalty_weights(penalty_weights, X.shape[1]), fit_intercept, options,
        lambdas=lambdas, n_lambdas=n_lambdas, eps=eps, max_time=max_time, callback=callback, coefs=coefs,
    )  # fmt: skip
    path.classes, path.feature_names = classes, feature_names
    warn_if_path_unconverged(path, options, "l1_logistic_path")
    return path


def logistic_path(X, codes, n_classes, weight, penalty_weights, fit_intercept, options, **path_options):
    """`l1_logistic_path` for checked input: class codes, folded weights, falling lambdas or None."""

    def make_loss(X):
        return logistic_loss(X, codes, n_classes, weight, fit_intercept, options["n_threads"])

    return solve_path(
        make_loss,
        X,
        penalty_weights,
        1 if n_classes == 2 else n_classes,
        null_intercept(codes, weight, n_classes) if fit_intercept else None,
        options,
        **path_options,
    )


@validate_params(_PATH_CONSTRAINTS, prefer_skip_nested_validation=True)
def lasso_path(
    X,
    y,
    *,
    alphas=None,
    n_lambdas=50,
    eps=1e-3,
    fit_intercept=True,
    penalty_weights=None,
    sample_weight=None,
    tol=TOL,
    max_iter=MAX_ITER,
    max_time=None,
    hessian="exact",
    memory=MEMORY,
    n_jobs=None,
    coefs="auto",
    callback=None,
):
    r"""Regularisation path of the Lasso, on the scale of :class:`LassoOBA`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    alphas : array-like, default=None
        Penalties > 0, in any order; the path goes through them from the largest down.
    n_lambdas, eps, fit_intercept, penalty_weights, sample_weight, tol, max_iter, max_time, hessian, memory, \
    n_jobs, coefs, callback
        As in :func:`l1_logistic_path`.

    Returns
    -------
    RegularizationPath
        Ordered by falling penalty.

    Raises
    ------
    ValueError
        As `LassoOBA.fit`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If a point did not reach ``tol``.
    """
    feature_names = _feature_names(X)
    X, y = check_X_y(X, y, estimator="lasso_path", y_numeric=True, **X_CHECKS)
    X = as_kernel_input(X)
    weight = check_sample_weight(sample_weight, X.shape[0])
    y, offset = center_target(y, weight, fit_intercept)
    if alphas is not None:
        alphas = np.sort(check_penalties(alphas, "alphas"))[::-1]
    options = _solver_options(tol, max_iter, hessian, memory, n_jobs)

    def make_loss(X):
        return LeastSquaresLoss(X, y, weight, fit_intercept=fit_intercept, n_threads=options["n_threads"])

    path = solve_path(
        make_loss,
        X,
        check_penalty_weights(penalty_weights, X.shape[1]),
        1,
        np.zeros(1) if fit_intercept else None,
        options,
        lambdas=alphas,
        n_lambdas=n_lambdas,
        eps=eps,
        max_time=max_time,
        callback=callback,
        coefs=coefs,
        scale=float(X.shape[0]) if weight is None else float(weight.sum()),
    )
    path.intercepts = path.intercepts + path.intercepts.dtype.type(offset)
    path.feature_names = feature_names
    warn_if_path_unconverged(path, options, "lasso_path")
    return path


def _solver_options(tol, max_iter, hessian, memory, n_jobs):
    return dict(
        tol=tol, max_iter=max_iter, hessian=hessian, memory=memory, n_threads=effective_n_threads(n_jobs)
    )


def _feature_names(X):
    names = getattr(X, "columns", None)
    return None if names is None else np.asarray(names, dtype=object)
