"""The path behind `l1_logistic_path`, `lasso_path` and `glm_path`: one loss, a falling penalty, warm starts.

All losses have the same code; only the loss, the model without features and the scale of the penalty differ.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..._linalg.special import largest
from ..._messages import listed
from ..._solver import outcome
from ..._typing import FloatArray
from ..losses.block_problem import BlockProblem
from ..losses.losses import LogisticLoss
from ..losses.multinomial import MultinomialLoss
from ..solver.centred_loss import CentredLoss
from ..solver.choose_solver import choose_solver
from ..solver.few_rows import few_rows
from ..solver.oba import unit_of_tol
from .coefficients import l1_weights, mixed
from .magnitudes import check_result
from .settings import MAX_BYTES

# least l1_ratio by which a grid begins: a ridge leaves no coefficient at zero, however large it is (glmnet's
# least alpha there is the same)
LEAST_RATIO = 1e-3


@dataclass(repr=False)
class RegularizationPath:
    """Solutions of an L1-regularised problem along a falling penalty.

    Attributes
    ----------
    lambdas : ndarray of shape (n_lambdas,)
        Penalties, falling: the solver's objective is ``loss + lambda * sum_j v_j |w_j|`` (of ``|w_j|`` only
        the part ``l1_ratio`` where that is below 1, and half its square for the rest). For the logistic path
        the loss is a sum over the rows and ``C = 1 / lambda``. For the Lasso path the loss is the weighted
        mean of half the squares, and lambda is scikit-learn's alpha.
    coefs : ndarray or csc_array
        Shape (n_features, n_lambdas), or (n_classes, n_features, n_lambdas) for more than two classes.
        As CSC the classes are stacked: (n_classes * n_features, n_lambdas).
    intercepts : ndarray of shape (n_lambdas,) or (n_classes, n_lambdas)
        Intercepts; zero where there is none.
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
        The smallest penalty at which every penalised coefficient is zero; for an ``l1_ratio`` below 1e-3,
        that of 1e-3.
    classes : ndarray of shape (n_classes,) or None
        The class labels of a logistic path.
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns, where X had names.
    """

    lambdas: np.ndarray
    coefs: Any  # an array or a CSC array, which have the same meaning
    intercepts: np.ndarray
    objectives: np.ndarray
    dual_gaps: np.ndarray
    optimality: np.ndarray
    n_iters: np.ndarray
    n_nonzero: np.ndarray
    statuses: np.ndarray
    lambda_max: float
    classes: np.ndarray | None = None
    feature_names: np.ndarray | None = None

    def __repr__(self) -> str:
        # six arrays of the length of the path, and the coefficients, would fill a screen
        ends = f"{self.lambdas[0]:.4g} to {self.lambdas[-1]:.4g}"
        return (
            f"RegularizationPath({len(self.lambdas)} penalties, lambda from {ends}, "
            f"n_nonzero from {int(self.n_nonzero[0])} to {int(self.n_nonzero[-1])}, "
            f"{int((self.statuses == outcome.CONVERGED).sum())} converged)"
        )

    @property
    def Cs(self) -> FloatArray:
        """``1 / lambdas``: scikit-learn's C of a logistic path."""
        return 1.0 / self.lambdas

    @property
    def alphas(self) -> FloatArray:
        """``lambdas`` by the name they have in scikit-learn's Lasso."""
        return self.lambdas

    def coef(self, index: int) -> FloatArray:
        """Dense coefficients at one penalty.

        Parameters
        ----------
        index : int
            Which of the penalties, counted from 0.

        Returns
        -------
        ndarray of shape (n_features,), or (n_classes, n_features)
            Coefficients.
        """
        n_outputs = self.intercepts.shape[0] if self.intercepts.ndim == 2 else 1
        if sp.issparse(self.coefs):
            column = self.coefs[:, [index]].toarray().ravel()
        else:
            column = self.coefs[..., index].ravel()
        return column if n_outputs == 1 else column.reshape(n_outputs, -1)


def largest_penalty(loss, x_null, l1):
    """The smallest factor of ``l1`` at which the null model ``x_null`` is optimal."""
    penalised = l1 > 0
    gradient = loss.gradient(x_null)[penalised]
    sizes = np.maximum(-gradient, 0.0) if getattr(loss, "one_sided", False) else np.abs(gradient)
    return largest(sizes / l1[penalised])


def penalty_grid(largest, n_lambdas, eps, l1_ratio=1.0):
    """``n_lambdas`` values from ``largest`` down to ``eps * largest``, evenly spaced in the logarithm.

    A grid that only begins so high for want of a kink, see `LEAST_RATIO`, ends where that of the Lasso does.
    """
    if l1_ratio < LEAST_RATIO:
        eps = eps * LEAST_RATIO
    # no feature carries any signal: any penalty gives the null model, so the grid may begin anywhere
    top = largest if largest > 0 else 1.0
    if not np.finfo(np.float64).tiny <= eps * top <= top < np.inf:
        raise ValueError(
            f"the penalty at which no feature is left is {top:g}; floating point has no path from there down "
            f"to {eps:g} of it. Bring the columns of X to sizes near 1."
        )
    return np.geomspace(top, eps * top, n_lambdas) if n_lambdas > 1 else np.array([top])


def iterate_path(loss, l1, lambdas, x0, solver_options, *, l1_ratio=1.0, max_time=None, callback=None):
    """Solve ``loss + lambda * l1 . |x|`` for falling lambdas, each from the last solution.

    An ``l1_ratio`` below 1 makes the penalty an elastic net, see `mixed`.

    Parameters
    ----------
    loss : loss object
    l1 : ndarray of shape (n_variables,)
        Weights of the variables' penalties.
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
    x, end = x0, None if max_time is None else time.perf_counter() + max_time
    hessian = solver_options.get("hessian", "exact")
    # a path of one penalty has the solver of a fit
    kind = "path" if len(lambdas) > 1 else "fit"
    solver, session = choose_solver(loss, l1_ratio, kind, hessian=hessian)
    extra = {}
    if session is None and not isinstance(loss, BlockProblem):  # which know their unit
        extra["unit"] = unit_of_tol(loss, x0)
    basis, own = None, loss.loss if isinstance(loss, CentredLoss) else loss
    is_ridge = l1_ratio == 0.0 and hessian == "exact" and session is None
    is_ridge = is_ridge and isinstance(own, LogisticLoss | MultinomialLoss)
    for lam in lambdas:
        # a positive rest, so that the solver's own rule for max_time stays the only one
        left = None if end is None else max(end - time.perf_counter(), 1e-9)
        weights, ridge = mixed(l1_weights(l1, lam), l1_ratio)
        if is_ridge and (found := few_rows(own, weights, ridge["l2"], basis)) is not None:
            basis = extra["row_basis"] = found[0]
        result = solver(weights, x, max_time=left, callback=callback, **ridge, **extra, **solver_options)
        yield check_result(result)
        if result.status == outcome.STOPPED:
            return
        x = result.x if session is None else None


def collect_path(problem, results, lambdas, lambda_max, coefs):
    """Gather the ``results`` of a path of a `PathProblem` into a `RegularizationPath` of all columns."""
    n_outputs, n_features, scale = problem.n_outputs, problem.columns.n_features, problem.scale
    n_rows = n_outputs * n_features
    if coefs == "auto":
        coefs = "sparse" if 8 * n_rows * len(lambdas) > MAX_BYTES else "dense"
    dense = None
    if coefs == "dense":
        dense = np.zeros((n_outputs, n_features, len(lambdas)), dtype=problem.X.dtype)
    vectors, intercepts, kept = [], [], []
    for i, result in enumerate(results):
        coef, intercept = problem.unpacked(result.x)
        coef = problem.columns.expand(coef)
        if dense is None:
            vectors.append(sp.csc_array(coef.reshape(-1, 1)))
            nnz = vectors[-1].nnz
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
        stacked = sp.hstack(vectors, format="csc")
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


def warn_if_path_unconverged(path, options, who, stacklevel=3, names=None):
    """One ConvergenceWarning for all the points of a path that did not converge, with the first ``names``."""
    failed = ~np.isin(path.statuses, (outcome.CONVERGED, outcome.STOPPED))
    if failed.any():
        named = "" if names is None else f": {listed(names[i] for i in np.flatnonzero(failed))}"
        warnings.warn(
            f"{who}: {failed.sum()} of {failed.size} points of the path did not converge to "
            f"tol={options['tol']:.2e} (worst optimality {path.optimality[failed].max():.2e}){named}; see "
            "statuses and optimality of the result. Increase max_iter or max_time, loosen tol, raise the "
            "smallest penalty (eps), or bring the columns of X to similar scales.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
