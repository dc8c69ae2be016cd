"""The loss of a family for checked data, wherever X is, whose null model is at zero."""

import numpy as np

from ..._arrays import to_host
from ..._estimator.block_data import BlockedMatrix
from ..losses.block_loss import FamilyOfBlocks
from ..losses.block_problem import BlockProblem
from ..losses.family_loss import FamilyLoss, deviance, null_predictor, null_shift
from .data_losses import centred_loss_of


def null_offset(family, y, weight, offset, fit_intercept):
    """The null model's intercept, and the offset plus that intercept, or None if both are zero.

    With that offset the loss has its null model at zero. Fits start there; tol is relative to its gradient.

    Raises
    ------
    ValueError
        If the intercept is infinite, or the loss of the null model overflows.
    """
    null = null_predictor(family, *map(to_host, (y, weight, offset))) if fit_intercept else 0.0
    shift = null_shift(family, y, null, offset)
    if not np.isfinite(deviance(family, np.zeros_like(y) if shift is None else shift, y, weight)):
        raise ValueError(
            "the deviance of y overflows in the model without features: bring y and the offset to smaller "
            "sizes" + (", or use fit_intercept=True." if not fit_intercept else ".")
        )
    return null, shift


def family_loss_of(family, X, y, weight, fit_intercept, n_threads, offset, positive, null=0.0):
    """The loss of a `Family` for checked data, from `null_offset`'s intercept ``null`` and its offset."""
    if isinstance(X, BlockedMatrix):
        spec = FamilyOfBlocks(fit_intercept, offset=null, shifted=X.census.offset is not None, family=family)
        return BlockProblem(X.blocks, X.census, spec, y, weight, n_threads, shift=offset, positive=positive)

    def make(X):
        return FamilyLoss(
            family, X, y, weight, fit_intercept=fit_intercept, n_threads=n_threads, offset=offset,
            one_sided=positive,
        )  # fmt: skip

    return make(X) if positive else centred_loss_of(make, X, weight, fit_intercept)
