"""The loss of checked data, wherever X is: in main memory, on a GPU or in blocks of rows."""

from ..._arrays import is_in_main_memory
from ..._estimator.block_data import BlockedMatrix
from ..._messages import shown
from ..losses.block_loss import LossOfBlocks
from ..losses.block_problem import BlockProblem
from ..losses.losses import LeastSquaresLoss
from ..solver.centred_loss import CentredLoss, can_be_centred, centre_of, subtract_centre
from ..solver.least_squares_session import LeastSquaresSession
from ..solver.nonnegative import NonnegativeSquares


def centred_loss_of(make, X, weight, fit_intercept):
    """The loss that ``make`` makes of X, or of its centred columns where some hardly vary."""
    centre = centre_of(X, weight) if can_be_centred(X, fit_intercept) else None
    if centre is None:
        return make(X)
    X = subtract_centre(X, centre)
    return CentredLoss(make(X), X, centre)


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
