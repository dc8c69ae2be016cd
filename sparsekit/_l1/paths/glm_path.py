"""Regularisation paths of generalised linear models."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from ..._docstrings import shares_entries
from ..._estimator.decorators import validate_params
from ..._estimator.training_data import with_numbers
from ..._typing import Hessian, MatrixLike, Offset, PenaltyWeights, SolverCallback
from ..losses.families.make import make_family
from .family_settings import FAMILY_CONSTRAINTS, FamilyName, Link
from .inputs import problem_of_family
from .path import PATH_CONSTRAINTS, PENALTIES, falling, lasso_path, model_of, solve_path
from .path_solver import RegularizationPath
from .settings import MAX_ITER, MEMORY, TOL


@shares_entries(lasso_path)
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
    {alphas}
    {n_lambdas, eps, l1_ratio}
    positive : bool, default=False
        Whether coefficients must be >= 0, as in :class:`GLMOBA`.
    {fit_intercept, penalty_weights, sample_weight}
    offset : float or array-like of shape (n_samples,), default=None
        Known part of each row's linear predictor, as in :meth:`GLMOBA.fit`.
    {tol, max_iter, max_time, hessian, memory, n_jobs, coefs, callback}

    {Returns}

    Raises
    ------
    ValueError
        As :meth:`GLMOBA.fit`.
    TypeError
        If some arrays are on a GPU and others in main memory.

    {Warns}

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
    who = "glm_path"
    family_of_y = make_family(family, link, power=power, dispersion=dispersion, epsilon=epsilon)
    model = model_of(X, fit_intercept, penalty_weights, n_jobs)
    given = with_numbers(who, X, y, sample_weight, stay_in_blocks=True, offset=offset)
    whole = problem_of_family(model, given, family_of_y, positive)
    options = dict(tol=tol, max_iter=max_iter, hessian=hessian, memory=memory)
    return solve_path(
        who, model, whole, l1_ratio, falling(alphas, "alphas", n_lambdas), eps, options, coefs=coefs,
        callback=callback, max_time=max_time,
    )  # fmt: skip
