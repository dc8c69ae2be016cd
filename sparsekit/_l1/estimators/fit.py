"""What the estimators of OBA share: the solver's parameters, its call, and the warning of a large gap."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from ..._estimator.base import FIT_CONSTRAINTS, SCALERS, SolverEstimatorMixin
from ..._estimator.decorators import declares_parameters, fit_context
from ..._estimator.linear_model import last_fit
from ..._row_blocks.blocks import RoundError
from ..._solver import outcome
from ..._solver.tolerances import ROUNDING
from ..._typing import Hessian, MatrixLike, Offset, PenaltyWeights
from ..losses.block_problem import BlockProblem
from ..paths.coefficients import l1_weights, mixed, pack
from ..paths.magnitudes import check_result, named_overflow
from ..paths.settings import MAX_ITER, MEMORY, OBA_CONSTRAINTS, TOL
from .shared_fits import SharedFitsMixin

CONSTRAINTS: dict = {
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "penalty_weights": ["array-like", dict, None],
    **FIT_CONSTRAINTS,
    **OBA_CONSTRAINTS,
}


def warn_if_gap_is_large(result, loss, options, *, who, stacklevel=3):
    """Issue a ConvergenceWarning if tol was reached and the duality gap stayed large.

    A fit goes on until both are small, so this is where rounding, or columns that are nearly copies of
    others, leave nothing to gain. ``loss`` was minimised.
    """
    gap = result.dual_gap
    # ten times what a fit aims at
    if result.status != outcome.CONVERGED or not np.isfinite(gap) or gap <= 100 * options["tol"] * result.fun:
        return
    at_zero = loss.value(np.zeros_like(result.x)) if hasattr(loss, "value") else loss.value_at_zero
    if gap <= ROUNDING * at_zero:
        return
    warnings.warn(
        f"{who} reached tol={options['tol']:.2e}, but the duality gap shows that the objective may still be "
        f"{100 * gap / result.fun:.2g} % too high, and it has stopped falling. Columns of X are nearly "
        f"combinations of others or nearly constant, or differ too much in scale. Bring them to similar "
        f"scales ({SCALERS}), use a stronger penalty or fewer columns, or tighten tol.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


@declares_parameters
class OBAEstimatorMixin(SharedFitsMixin, SolverEstimatorMixin):
    r"""Runs OBA on the problem of a subclass.

    Parameters
    ----------
    l1_ratio : float, default=1.0
        Part of the penalty that is L1, from 0 (ridge) to 1 (L1 alone); the rest is half the squares. The
        ``penalty_weights`` multiply both.
    penalty_weights : array-like of shape (n_features,) or dict, default=None
        L1 weight v_j >= 0 of each feature; 0 leaves the feature unpenalised. A dict has the weights of some
        features, ``{name or column number: weight}``, and others weigh 1. A pandas Series goes by its index
        where that has the names of all features. None: all one.
    tol : float, default=1e-5
        Certifies that the objective is at most ``10 * tol`` of itself above the lowest: ``dual_gap_`` is at
        most that, or a warning says why not. The optimality measure must be at most tol too. It is the
        largest entry of :math:`|\mathrm{mid}(g_j - \lambda_j, x_j, g_j + \lambda_j)|`, divided by a unit.
        Here g is the gradient of the summed loss with the L2 part of the penalty.
    max_iter : int, default=200
        Largest number of outer iterations.
    hessian : {"exact", "lbfgs"}, default="exact"
        The quadratic model's Hessian: exact products, or the compact L-BFGS approximation.
    memory : int, default=10
        Number of pairs that ``hessian="lbfgs"`` keeps.
    """

    l1_ratio: float = 1.0
    penalty_weights: PenaltyWeights = None
    tol: float = TOL
    max_iter: int = MAX_ITER
    hessian: Hessian = "exact"
    memory: int = MEMORY

    _read: ClassVar[Any]  # what checks data: `with_numbers` or `with_labels`
    _whole: ClassVar[Any]  # from `TrainingData` to the `PathProblem` of all rows

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. A CuPy array or sparse matrix is fitted on its GPU, where the fitted arrays stay; y
            and sample_weight must be CuPy's too. A Dask array or data frame, or a folder on disk, is fitted
            in blocks of rows. See the guide's page "Data that does not fit".
        y : array-like of shape (n_samples,)
            Targets: labels of any kind for a classifier (on a GPU numbers), else numbers for which the loss
            is defined.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights s_i >= 0 of the rows, not all zero.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Known part o_i of each row's X w + b, as a column of X whose coefficient is 1. It has one number
            a row; for a classifier of more than two classes one for each class, in their sorted order.
            Predictions need theirs then. With X in blocks a Dask array, series or data frame with the rows
            of X is as good.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, X or y hold NaN or infinity, or shapes disagree. For a
            classifier also if fewer than two classes have a positive weight. For numbers also if the loss is
            not defined for one of them, or if the best intercept is infinite.
        TypeError
            If some arrays are on a GPU and others in main memory.
        RuntimeError
            If X comes in blocks, and the cluster fails or a block cannot be read. From the first iterate on,
            the last one is kept in ``coef_`` and ``intercept_``.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached.
        """
        given = self._read(self, X, y, sample_weight, stay_in_blocks=True, offset=offset)
        whole = self._whole(given)
        with named_overflow(whole.X):
            loss = self._loss(whole)
        whole.penalty = l1_weights(whole.penalty, self._strength * whole.scale)
        start, unit = whole.null_start(loss)
        last = last_fit(self, whole.X, whole.columns, whole.n_outputs)
        if last is not None:
            start = pack(last[0], last[1] - whole.base, self.fit_intercept)
        classes = {"classes_": given.classes} if hasattr(given, "classes") else {}
        result = self._minimize(
            given, whole, loss, start, lambda x: {**whole.attributes(*whole.unpacked(x)), **classes}, unit
        )
        self._store_result(result)
        return self

    @property
    def _strength(self):
        """Factor of the penalty, on the users' scale."""
        return self.alpha

    def _loss(self, whole):
        """What is minimised, of the problem of all rows."""
        return whole.make_loss(whole.X)

    def _store_result(self, result):
        """Set the attributes that only this estimator has."""

    @property
    def _solver_options(self):
        return super()._solver_options | dict(hessian=self.hessian, memory=self.memory)

    def _minimize(self, given, whole, loss, x0, attributes, unit=None):
        """Minimise ``loss`` of the problem ``whole`` plus its penalty by ``l1_ratio`` from ``x0``.

        ``attributes`` are those of `_run`. ``unit`` is that of tol, or None for the solver's own.
        """
        X, n_outputs = whole.X, whole.n_outputs
        l1, extra = mixed(loss.l1_vector(whole.penalty), self.l1_ratio)
        if unit is not None:
            extra["unit"] = unit
        failed = []

        def minimize(start, callback):
            options = {**extra, **self._solver_options}
            if self.history:
                options["history"] = True
            try:
                with self._shared(whole, loss, start) as shared:
                    found = shared.solver(l1, shared.x0, callback=callback, **options)
                    shared.solution = found.x if found.success else None
            except RoundError as error:
                if error.result is None:
                    raise
                failed.append(error)
                return error.result
            return check_result(found)

        with named_overflow(X):
            result = self._run(
                minimize,
                x0,
                loss.n_variables,
                data=given.for_callbacks(),
                attributes=lambda x: {**attributes(x), "needs_offset_": given.offset is not None},
                scale=whole.scale,
                whole=lambda x: whole.columns.expand_variables(x, n_outputs),
            )
        if isinstance(loss, BlockProblem):
            self.n_rounds_ = loss.blocks.n_rounds  # with the one that counted
        elif hasattr(self, "n_rounds_"):
            del self.n_rounds_
        if failed:
            raise RoundError(
                f"{failed[0]} {type(self).__name__} holds the last iterate, that of iteration {result.nit} "
                "(coef_, intercept_); with warm_start=True the next fit goes on from there."
            ) from failed[0]
        warn_if_gap_is_large(result, loss, self._solver_options, who=type(self).__name__, stacklevel=4)
        return result
