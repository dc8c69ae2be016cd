"""Regularisation paths of generalised linear models."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import is_device, namespace
from ..._estimator.block_data import BlockedMatrix, numbers_of_blocks
from ..._estimator.checks import X_CHECKS, as_kernel_input, check_penalties, check_sample_weight, in_units
from ..._estimator.decorators import validate_params
from ..._estimator.device_checks import check_device_target, check_device_X, device_weight
from ..._estimator.offset import check_offset
from ..._estimator.used_columns import without_empty_columns
from ..._estimator.validation import check_X_y
from ..._linalg.threads import count_threads
from ..._row_blocks.make import comes_in_blocks
from ..._typing import Hessian, MatrixLike, Offset, PenaltyWeights, SolverCallback
from ..losses.families.make import make_family
from ..losses.null_intercept import unless_zero
from .block_problems import FamilyBlockProblem
from .coefficients import penalty_of
from .data_losses import weights_in_units
from .family_problem import FamilyProblem
from .family_settings import FAMILY_CONSTRAINTS, FamilyName, Link
from .path import PATH_CONSTRAINTS, PENALTIES, feature_names_of
from .path_solver import RegularizationPath, warn_if_path_unconverged
from .settings import MAX_ITER, MEMORY, TOL


@validate_params(
    {**FAMILY_CONSTRAINTS, "alphas": PENALTIES, **PATH_CONSTRAINTS}, prefer_skip_nested_validation=True
)
def glm_path(
    X: MatrixLike,
    y: ArrayLike,
    family: FamilyName = "poisson",
    *,
    link: Link = "auto",
    power: float = 1.5,
    dispersion: float = 1.0,
    epsilon: float = 1.35,
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
    r"""Regularisation path of a generalised linear model, on the scale of :class:`GLMOBA`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data, used without a copy where the dtype and layout allow it. Blocks of rows stay in blocks, as in
        :class:`GLMOBA`. CuPy's are worked on where they are, and y, sample_weight and offset must be there
        too; the path is in main memory.
    y : array-like of shape (n_samples,)
        Targets in the family's range.
    family, link, power, dispersion, epsilon : default="poisson", "auto", 1.5, 1.0, 1.35
        As in :class:`GLMOBA`.
    alphas : int or array-like, default=None
        Penalties > 0, in any order; the path goes through them from the largest down. An integer asks for a
        grid of that length; None for one of ``n_lambdas``.
    n_lambdas, eps, l1_ratio : default=50, 1e-3, 1.0
        As in :func:`l1_logistic_path`.
    positive : bool, default=False
        Whether coefficients must be >= 0, as in :class:`GLMOBA`.
    fit_intercept, penalty_weights, sample_weight : default=True, None, None
        As in :func:`l1_logistic_path`.
    offset : float or array-like of shape (n_samples,), default=None
        Known part of each row's linear predictor, as in :meth:`GLMOBA.fit`.
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
        As :meth:`GLMOBA.fit`.
    TypeError
        If some arrays are on a GPU and others in main memory.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If a point did not reach ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit import glm_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 20))
    >>> path = glm_path(X, rng.poisson(np.exp(0.5 * X[:, 0])), alphas=[0.5, 0.1])
    >>> path.coefs.shape, path.n_nonzero
    ((20, 2), array([1, 1]))
    """
    if isinstance(alphas, Integral):
        alphas, n_lambdas = None, int(alphas)
    model = make_family(family, link, power=power, dispersion=dispersion, epsilon=epsilon)
    feature_names = feature_names_of(X)
    if comes_in_blocks(X):
        X, y, weight = numbers_of_blocks(None, X, y, sample_weight, offset)
        offset = X.census.offset
    elif is_device(X):
        X = check_device_X("glm_path", X)
        y, weight = check_device_target(y, X=X), device_weight(X, sample_weight)
    else:
        namespace(X=X, y=y)
        X, y = check_X_y(X, y, estimator="glm_path", y_numeric=True, **X_CHECKS)
        X = as_kernel_input(X)
        weight = check_sample_weight(sample_weight, X.shape[0])
    weight, _ = weights_in_units(X, weight, in_units)
    y = y.astype(np.float64, copy=False)
    model.check(y)
    if alphas is not None:
        alphas = np.sort(check_penalties(alphas, "alphas"))[::-1]
    options = dict(tol=tol, max_iter=max_iter, hessian=hessian, memory=memory)
    penalty = penalty_of(X, penalty_weights, 1.0, feature_names)
    X, columns = without_empty_columns(X)
    make = FamilyBlockProblem if isinstance(X, BlockedMatrix) else FamilyProblem
    problem = make(
        X, y, weight, columns.restrict(penalty), fit_intercept, count_threads(n_jobs), model, positive,
        unless_zero(check_offset(offset, X)),
    )  # fmt: skip
    problem.columns, problem.l1_ratio = columns, l1_ratio
    path = problem.regularization_path(
        alphas, n_lambdas, eps, options, coefs=coefs, callback=callback, max_time=max_time
    )
    path.feature_names = feature_names
    warn_if_path_unconverged(path, options, "glm_path")
    return path
