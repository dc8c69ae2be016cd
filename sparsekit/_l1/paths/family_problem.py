"""The problem of a family whose paths are solved: of all rows, and of a fold's training part."""

from __future__ import annotations

import numpy as np

from ..._estimator.checks import in_type
from .family_losses import family_loss_of, null_offset
from .problems import PathProblem, least_loss_of_an_error


class FamilyProblem(PathProblem):
    """Generalised linear models, whose loss is a mean: a part of the rows has a scale and a null model.

    The null model's intercept is in the offset of the loss, see `null_offset`; solutions are relative to it.
    """

    def __init__(
        self, X, y, weight, penalty, fit_intercept, n_threads, family, positive=False, shift=None
    ):  # fmt: skip
        super().__init__(X, y, weight, penalty, fit_intercept, n_threads, shift=shift)
        self.family, self.positive = family, positive
        self.dispersion_is_known = family.dispersion_is_known
        self._set_null_model()

    def _set_null_model(self):
        self.scale = float(len(self.values)) if self.weight is None else float(self.weight.sum())
        self.null, self.offset = null_offset(
            self.family, self.values, self.weight, self.shift, self.fit_intercept
        )

    def training(self, fold, index):
        part = super().training(fold, index)
        part._set_null_model()
        return part

    def is_separated(self, loss):
        y, top = self.values, self.family.highest
        are_labels = top < np.inf and bool(((y == 0.0) | (y == top)).all())
        return are_labels and loss < least_loss_of_an_error(self.weight)

    def whole_model(self, coef, intercept):
        return coef, in_type(intercept + self.null, intercept.dtype)

    def as_attributes(self, coef, intercept):
        return coef[0], intercept[0]

    def null_intercept(self):
        return np.zeros(1) if self.fit_intercept else None

    def make_loss(self, X):
        return family_loss_of(
            self.family, X, self.values, self.weight, self.fit_intercept, self.n_threads, self.offset,
            self.positive, self.null,
        )  # fmt: skip

    def regularization_path(self, penalties, n_penalties, eps, options, **others):
        path = super().regularization_path(penalties, n_penalties, eps, options, **others)
        path.intercepts = path.intercepts + path.intercepts.dtype.type(self.null)
        return path
