"""The loss of a family for checked data in main memory, whose null model is at zero."""

import numpy as np

from ..losses.family_loss import ROUNDING, FamilyLoss, deviance, null_predictor
from .data_losses import centred_loss_of


def null_offset(family, y, weight, offset, fit_intercept):
    """The null model's intercept, and the offset with it added: None where both are zero.

    A loss with it has its null model at zero, where fits begin, and whose gradient is the unit of tol.

    Raises
    ------
    ValueError
        If the intercept is infinite, or the loss of the null model overflows.
    """
    null = null_predictor(family, y, weight, offset) if fit_intercept else 0.0
    shift = offset if not null else np.full(len(y), null) if offset is None else offset + null
    zy = family.saturated(y)
    if shift is not None and np.all(np.abs(shift - zy) <= ROUNDING * np.maximum(1.0, np.abs(zy))):
        shift = zy
    if not np.isfinite(deviance(family, np.zeros(len(y)) if shift is None else shift, y, weight)):
        raise ValueError(
            "the deviance of y overflows in the model without features: bring y and the offset to smaller "
            "sizes" + (", or use fit_intercept=True." if not fit_intercept else ".")
        )
    return null, shift


def family_loss_of(family, X, y, weight, fit_intercept, n_threads, offset, positive):
    """The loss of a `Family` for checked data in main memory."""

    def make(X):
        return FamilyLoss(
            family, X, y, weight, fit_intercept=fit_intercept, n_threads=n_threads, offset=offset,
            one_sided=positive,
        )  # fmt: skip

    return make(X) if positive else centred_loss_of(make, X, weight, fit_intercept)
