"""The problem of a family whose paths are solved: of all rows, and of a fold's training part."""

from __future__ import annotations

import numpy as np

from ..._arrays import to_host
from ..losses.family_loss import FamilyLoss, deviance, null_predictor, null_shift
from .problems import PathProblem, least_loss_of_an_error


class FamilyProblem(PathProblem):
    """Generalised linear models, whose loss is a mean: a part of the rows has a scale and a null model.

    The null model's intercept is in the offset of the loss, which has that model at zero. Fits start there,
    tol is relative to the gradient there, and solutions are relative to it.
    """

    def __init__(
        self, X, y, weight, penalty, fit_intercept, n_threads, family, positive=False, shift=None
    ):  # fmt: skip
        super().__init__(X, y, weight, penalty, fit_intercept, n_threads, shift=shift)
        self.family, self.positive = family, positive
        self.dispersion_is_known = family.dispersion_is_known
        self._set_null_model()

    def _set_null_model(self):
        """Set the scale, the null model's intercept, and the offset plus that, or None if both are zero.

        Raises
        ------
        ValueError
            If the intercept is infinite, or the loss of the null model overflows.
        """
        family, y, weight, shift = self.family, self.values, self.weight, self.shift
        self.scale = float(len(y)) if weight is None else float(weight.sum())
        self.base = null_predictor(family, *map(to_host, (y, weight, shift))) if self.fit_intercept else 0.0
        self.offset = null_shift(family, y, self.base, shift)
        predictor = np.zeros_like(y) if self.offset is None else self.offset
        if not np.isfinite(deviance(family, predictor, y, weight)):
            raise ValueError(
                "the deviance of y overflows in the model without features: bring y and the offset to "
                "smaller sizes" + (", or use fit_intercept=True." if not self.fit_intercept else ".")
            )

    def _adapt(self, values, index):
        self._set_null_model()

    def is_separated(self, loss):
        y, top = self.values, self.family.highest
        are_labels = top < np.inf and bool(((y == 0.0) | (y == top)).all())
        return are_labels and loss < least_loss_of_an_error(self.weight)

    def _loss_of(self, X):
        return FamilyLoss(
            self.family, X, self.values, self.weight, fit_intercept=self.fit_intercept,
            n_threads=self.n_threads, offset=self.offset, one_sided=self.positive,
        )  # fmt: skip
