"""What the estimators of OBA share: the solver's parameters, its call, and the warning of a large gap."""

import inspect
import warnings
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from ..._arrays import beside, is_device, to_host
from ..._estimator.base import SCALERS, SOLVER_CONSTRAINTS, SolverEstimatorMixin
from ..._estimator.block_data import BlockedMatrix
from ..._linalg.special import largest
from ..._messages import shown
from ..._row_blocks.blocks import RoundError
from ..._solver import outcome
from ..losses.block_loss import LossOfBlocks
from ..losses.losses import LeastSquaresLoss
from ..losses.multinomial import logistic_loss
from ..losses.null_intercept import null_intercept
from ..paths.coefficients import pack
from ..paths.magnitudes import check_result, named_overflow
from ..solver.blockwise import BlockProblem, mixed, solver_of
from ..solver.centred_loss import CentredLoss, can_be_centred, centre_of, subtract_centre
from ..solver.least_squares_session import LeastSquaresSession
from ..solver.nonnegative import NonnegativeSquares
from ..solver.oba import minimize_oba

# the solver states its defaults; the estimators repeat none of them
_PARAMETERS = inspect.signature(minimize_oba).parameters
TOL, MAX_ITER, MEMORY = (_PARAMETERS[name].default for name in ("tol", "max_iter", "memory"))

OBA_CONSTRAINTS: dict = {
    **SOLVER_CONSTRAINTS,
    "hessian": [StrOptions({"exact", "lbfgs"})],
    "memory": [Interval(Integral, 1, None, closed="left")],
}

# part of the loss at zero that is rounding of a duality gap
_ROUNDING = 1e-12
# ratio of the largest and the smallest norm of the columns in use from which scales are to blame
_SCALES = 1e4


def warn_if_gap_is_large(result, loss, X, options, *, who, stacklevel=3):
    """Issue a ConvergenceWarning if tol was reached and the duality gap stayed large.

    A fit goes on until both are small, so this is where rounding, or columns that are nearly copies of
    others, leave nothing to gain. ``loss`` was minimised; ``X`` is the data, whose columns' norms tell which
    it is.
    """
    gap = result.dual_gap
    # ten times what a fit aims at
    if result.status != outcome.CONVERGED or not np.isfinite(gap) or gap <= 100 * options["tol"] * result.fun:
        return
    if gap <= _ROUNDING * _value_at_zero(loss, result.x):
        return
    if _spread_of_norms(X, result.x) > _SCALES:
        why = (
            f"the columns of X differ too much in scale. Bring them to similar scales ({SCALERS}) or tighten "
            "tol"
        )
    else:
        why = (
            "columns of X that are nearly combinations of others, or nearly constant, leave it nearly flat. "
            "A stronger penalty, fewer columns or centred ones (sklearn.preprocessing.StandardScaler) make "
            "the bound tight; the objective itself has stopped falling"
        )
    warnings.warn(
        f"{who} reached tol={options['tol']:.2e}, but the duality gap shows that the objective may still be "
        f"{100 * gap / result.fun:.2g} % too high: {why}.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


def _value_at_zero(loss, like):
    """The loss at zero, or 0 where blocks of rows with an offset have not been asked for it."""
    if hasattr(loss, "value"):
        return loss.value(np.zeros_like(like))
    return loss.value_at_zero or 0.0


def _spread_of_norms(X, x):
    """Largest over smallest norm of the columns of X (n, p) that a solution with p values a class uses."""
    n_features = X.shape[1]
    n_classes = max(len(x) // n_features, 1) if n_features else 1
    used = np.any(x[: n_features * n_classes].reshape(n_features, n_classes) != 0, axis=1)
    if isinstance(X, BlockedMatrix):
        return X.spread_of_norms(used)
    squares = (
        X.multiply(X).sum(axis=0) if hasattr(X, "nnz") else np.einsum("ij,ij->j", X, X, dtype=np.float64)
    )
    squares = np.asarray(squares, like=x).ravel()[used]
    squares = squares[squares > 0]
    return float(np.sqrt(squares.max() / squares.min())) if squares.size else 1.0


def weights_in_units(X, weight, scale):
    """``scale(weight)``, the weights and their unit; blocks have their own weights, whose unit is one."""
    return (weight, 1.0) if isinstance(X, BlockedMatrix) else scale(weight)


def logistic_of(X, codes, classes, weight, fit_intercept, n_threads, offset=None):
    """The logistic loss of checked data, wherever X is."""
    if isinstance(X, BlockedMatrix):
        spec = LossOfBlocks(fit_intercept, classes, X.class_weight, shifted=offset is not None)
        return BlockProblem(X.blocks, X.census, spec, codes, weight, n_threads, shift=offset)
    centre = centre_of(X, weight) if can_be_centred(X, fit_intercept) else None
    if centre is None:
        return logistic_loss(X, codes, len(classes), weight, fit_intercept, n_threads, offset)
    X = subtract_centre(X, centre)
    loss = logistic_loss(X, codes, len(classes), weight, fit_intercept, n_threads, offset)
    return CentredLoss(loss, X, centre)


def start_at_null(loss, x0, n_features, codes, weight, n_classes, offset):
    """``x0``, or the model of the intercept alone, at which the unit of the solver's tolerance is set too.

    With the gradient there as the unit, and not that at zero, an offset and the same plus a constant are
    fitted to the same tolerance. The arrays are where the loss is.
    """
    weight = None if weight is None else to_host(weight)
    intercept = null_intercept(to_host(codes), weight, n_classes, to_host(offset))
    null = beside(pack(np.zeros((len(intercept), n_features)), intercept, True), loss.s)
    loss.origin_scale = largest(np.abs(loss.gradient(null))) or None
    return null if x0 is None else x0


def squares_of(X, target, offset, weight, fit_intercept, n_threads, positive=False):
    """The least squares of a target from which ``offset`` is subtracted already, wherever X is.

    ``positive`` is for X in blocks.
    """
    if isinstance(X, BlockedMatrix):
        spec = LossOfBlocks(fit_intercept, offset=offset, shifted=X.census.offset is not None)
        return BlockProblem(X.blocks, X.census, spec, target, weight, n_threads, positive=positive)
    return LeastSquaresLoss._of_sound(X, target, weight, fit_intercept=fit_intercept, n_threads=n_threads)


def check_positive(hessian):
    """ValueError where fits with ``positive=True`` are asked for a Hessian that they have no use for."""
    if hessian != "exact":
        raise ValueError(
            f"positive must be False where hessian is {shown(hessian)}; use 'exact': fits of coefficients "
            ">= 0 make no model by L-BFGS."
        )


def nonnegative_of(X, target, offset, weight, fit_intercept, n_threads):
    """`squares_of` coefficients >= 0."""
    if isinstance(X, BlockedMatrix):
        return squares_of(X, target, offset, weight, fit_intercept, n_threads, positive=True)
    return NonnegativeSquares._of_sound(X, target, weight, fit_intercept=fit_intercept, n_threads=n_threads)


def least_squares_of(X, target, offset, weight, fit_intercept, n_threads, positive, hessian):
    """What solves least squares: a session in main memory with second derivatives, a loss elsewhere."""
    if isinstance(X, BlockedMatrix) or is_device(X) or hessian != "exact":
        make = nonnegative_of if positive else squares_of
        return make(X, target, offset, weight, fit_intercept, n_threads)
    return LeastSquaresSession(X, target, weight, fit_intercept, n_threads, positive)


class OBAEstimatorMixin(SolverEstimatorMixin):
    """Runs OBA."""

    @property
    def _solver_options(self):
        return dict(
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            hessian=self.hessian,
            memory=self.memory,
        )

    def _minimize(self, X, loss, penalty, x0, *, data, attributes, scale=1.0, whole=None):
        """Minimise ``loss``, of ``X``, plus the penalties of the features by ``l1_ratio`` from ``x0``.

        The other arguments are those of `_run`.
        """
        l1, ridge = mixed(loss.l1_vector(penalty), self.l1_ratio)
        failed = []
        solver = solver_of(loss)

        def minimize(start, callback):
            try:
                found = solver(
                    loss, l1, start, callback=callback, history=self.history, **ridge, **self._solver_options
                )
            except RoundError as error:
                if error.result is None:
                    raise
                failed.append(error)
                return error.result
            return check_result(found)

        with named_overflow(X):
            result = self._run(
                minimize, x0, loss.n_variables, data=data, attributes=attributes, scale=scale, whole=whole
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
        X = loss.X if isinstance(loss, CentredLoss) else X
        warn_if_gap_is_large(result, loss, X, self._solver_options, who=type(self).__name__, stacklevel=4)
        return result
