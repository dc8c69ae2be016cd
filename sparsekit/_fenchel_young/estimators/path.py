"""Paths over alpha of sparsemax and softmax regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions

from ..._estimator.base import SOLVER_CONSTRAINTS
from ..._estimator.checks import check_penalties
from ..._estimator.decorators import validate_params
from ..._estimator.device_linear import refuse_device
from ..._estimator.targets import check_targets
from ..._estimator.training_data import check_host_data
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..._typing import ClassWeight, MatrixLike, Transform
from ..losses.loss import FenchelYoungLoss
from ..solver.minimize_model import minimize_fenchel_young
from .classifier import MAX_ITER, TOL
from .messages import warn_of_path
from .prediction import coefficients_of

# advice for data on a GPU, where there is no path
ONE_BY_ONE = "fit SparsemaxClassifier or SoftmaxClassifier for each alpha"
# the range of the paper's Figure 1
ALPHAS = tuple(10.0**-k for k in range(-1, 9))

OPTIONS = {
    name: rule
    for name, rule in SOLVER_CONSTRAINTS.items()
    if name in ("tol", "max_iter", "max_time", "n_jobs")
}


def solve_path(loss, alphas, start, penalize_intercept, options):
    """Results for falling alphas, each started from the last."""
    for alpha in alphas:
        result = minimize_fenchel_young(loss, alpha, start, penalize_intercept=penalize_intercept, **options)
        start = result.x
        yield result


@validate_params(
    {
        "transform": [StrOptions({"sparsemax", "softmax"})],
        "alphas": ["array-like", None],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **OPTIONS,
    },
    prefer_skip_nested_validation=True,
)
def fenchel_young_path(
    X: MatrixLike,
    y: MatrixLike,
    *,
    transform: Transform = "sparsemax",
    alphas: ArrayLike | None = None,
    fit_intercept: bool = True,
    penalize_intercept: bool = True,
    class_weight: ClassWeight = None,
    sample_weight: ArrayLike | None = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    max_time: float | None = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Sparsemax or softmax regression for many alphas, each solution started from the last.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
        Labels, an indicator or distributions, as in :class:`SparsemaxClassifier`.
    transform : {"sparsemax", "softmax"}, default="sparsemax"
        The model.
    alphas : array-like, default=None
        Strengths of the penalty, > 0, in any order. None: ten powers of 10, from 10 to 1e-8.
    fit_intercept, penalize_intercept, class_weight : default=True, True, None
        As in :class:`SparsemaxClassifier`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0 of the rows, not all zero; only their ratios matter.
    tol, max_iter, max_time : default=1e-5, 200, None
        As in :class:`SparsemaxClassifier`; they hold for each solve.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all.

    Returns
    -------
    Bunch
        ``alphas`` (n_alphas,), falling; ``coefs`` (n_alphas, n_classes, n_features); ``intercepts``
        (n_alphas, n_classes); ``classes``; ``objectives``, ``dual_gaps``, ``optimality``, ``n_iters``,
        ``statuses``, (n_alphas,) each.

    Raises
    ------
    ValueError
        As :meth:`SparsemaxClassifier.fit`, or if an alpha is not > 0.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If solves ended early, as in the classifiers.

    See Also
    --------
    SparsemaxClassifierCV, SoftmaxClassifierCV : Choose alpha by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsekit import fenchel_young_path
    >>> path = fenchel_young_path(*load_iris(return_X_y=True), alphas=[1e-1, 1e-2, 1e-3])
    >>> path.coefs.shape
    (3, 3, 4)
    """
    refuse_device("fenchel_young_path", ONE_BY_ONE, X=X, y=y)
    X, y, weight = check_host_data("fenchel_young_path", X, y, sample_weight, multi_output=True)
    X, columns = without_empty_columns(X)
    targets = check_targets(y, weight, class_weight)
    alphas = np.sort(check_penalties(ALPHAS if alphas is None else alphas, "alphas"))[::-1]
    loss = FenchelYoungLoss(
        transform, X, targets.values, len(targets.classes), targets.weight, fit_intercept=fit_intercept,
        n_threads=count_threads(n_jobs),
    )  # fmt: skip
    options = dict(tol=tol, max_iter=max_iter, max_time=max_time)
    results = list(solve_path(loss, alphas, None, penalize_intercept, options))
    models = [coefficients_of(r.x, columns, fit_intercept, X.dtype) for r in results]
    path = Bunch(
        alphas=alphas,
        coefs=np.array([model["coef_"] for model in models]),
        intercepts=np.array([model["intercept_"] for model in models]),
        classes=targets.classes,
        objectives=np.array([r.fun for r in results]),
        dual_gaps=np.array([r.dual_gap for r in results]),
        optimality=np.array([r.optimality for r in results]),
        n_iters=np.array([r.nit for r in results], dtype=np.int32),
        statuses=np.array([r.status for r in results], dtype=np.int32),
    )
    warn_of_path([results], alphas, options, who="fenchel_young_path", stacklevel=4)
    return path
