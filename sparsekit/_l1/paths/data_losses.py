"""The loss of checked data, wherever X is: in main memory, on a GPU or in blocks of rows."""

import numpy as np

from ..._arrays import as_like, is_in_main_memory, to_host
from ..._estimator.block_data import BlockedMatrix
from ..._linalg.special import largest
from ..._messages import shown
from ..losses.block_loss import LossOfBlocks
from ..losses.block_problem import BlockProblem
from ..losses.losses import LeastSquaresLoss
from ..losses.multinomial import logistic_loss
from ..losses.null_intercept import null_intercept
from ..solver.centred_loss import CentredLoss, can_be_centred, centre_of, subtract_centre
from ..solver.least_squares_session import LeastSquaresSession
from ..solver.nonnegative import NonnegativeSquares
from .coefficients import pack


def logistic_of(X, codes, classes, weight, fit_intercept, n_threads, offset=None):
    """The logistic loss of checked data, wherever X is."""
    if isinstance(X, BlockedMatrix):
        spec = LossOfBlocks(fit_intercept, classes, X.class_weight, shifted=offset is not None)
        return BlockProblem(X.blocks, X.census, spec, codes, weight, n_threads, shift=offset)
    return centred_loss_of(
        lambda X: logistic_loss(X, codes, len(classes), weight, fit_intercept, n_threads, offset), X, weight,
        fit_intercept,
    )  # fmt: skip


def centred_loss_of(make, X, weight, fit_intercept):
    """The loss that ``make`` makes of X, or of its centred columns where some hardly vary."""
    centre = centre_of(X, weight) if can_be_centred(X, fit_intercept) else None
    if centre is None:
        return make(X)
    X = subtract_centre(X, centre)
    return CentredLoss(make(X), X, centre)


def start_at_null(loss, x0, n_features, codes, weight, n_classes, offset):
    """``x0``, or the model of the intercept alone; and the unit of the solver's tolerance.

    The unit is the largest entry of the gradient at the model of the intercept. With that at zero an offset,
    and the same plus a constant, would have different tolerances. The arrays are where the loss is.
    """
    weight = None if weight is None else to_host(weight)
    intercept = null_intercept(to_host(codes), weight, n_classes, to_host(offset))
    null = as_like(pack(np.zeros((len(intercept), n_features)), intercept, True), loss.s)
    unit = largest(np.abs(loss.gradient(null))) or None
    return (null if x0 is None else x0), unit


def squares_of(X, target, offset, weight, fit_intercept, n_threads, positive=False):
    """The least squares of a target from which ``offset`` is subtracted already, wherever X is."""
    if isinstance(X, BlockedMatrix):
        spec = LossOfBlocks(fit_intercept, offset=offset, shifted=X.census.offset is not None)
        return BlockProblem(X.blocks, X.census, spec, target, weight, n_threads, positive=positive)
    make = NonnegativeSquares if positive else LeastSquaresLoss
    return make._of_validated(X, target, weight, fit_intercept=fit_intercept, n_threads=n_threads)


def check_positive(hessian):
    """ValueError where fits with ``positive=True`` are asked for a Hessian that they have no use for."""
    if hessian != "exact":
        raise ValueError(
            f"positive must be False where hessian is {shown(hessian)}; use 'exact': fits of coefficients "
            ">= 0 make no model by L-BFGS."
        )


def least_squares_of(
    X, target, offset, weight, fit_intercept, n_threads, positive, hessian, solver="auto"
):  # fmt: skip
    """What solves least squares: a session in main memory with second derivatives, a loss elsewhere."""
    is_session = is_in_main_memory(X) and hessian == "exact"
    if solver in ("gram", "interior") and not is_session:
        raise ValueError(
            f"solver={shown(solver)} needs X in main memory and hessian='exact': use solver='auto' for "
            "blocks of rows, a GPU or hessian='lbfgs'."
        )
    if not is_session or solver == "oba":
        return squares_of(X, target, offset, weight, fit_intercept, n_threads, positive)
    return LeastSquaresSession(X, target, weight, fit_intercept, n_threads, positive, solver)
