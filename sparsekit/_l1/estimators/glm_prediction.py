"""What generalised linear models predict: means of y, and the share of the deviance that they explain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from ..._arrays import namespace, to_host
from ..._docstrings import shares_entries
from ..._estimator.block_data import numbers_of_blocks
from ..._estimator.block_prediction import by_blocks
from ..._estimator.checks import check_sample_weight, in_units
from ..._estimator.linear_model import PenaltyNameMixin, chosen
from ..._estimator.offset import check_offset, offset_of_scores
from ..._estimator.offset_prediction import OffsetRegressionMixin
from ..._estimator.sklearn_counterparts import family_counterpart
from ..._row_blocks.make import comes_in_blocks
from ..._typing import FloatArray, MatrixLike, Offset
from ..losses.families.family import Family
from ..losses.families.make import make_family
from ..losses.family_loss import deviance, null_predictor

FAMILY_PARAMETERS: tuple[str, ...] = ("power", "dispersion", "epsilon")


@shares_entries(OffsetRegressionMixin.predict, OffsetRegressionMixin.score)
class GLMPredictionMixin(PenaltyNameMixin, OffsetRegressionMixin):
    """Prediction of means with a fitted generalised linear model."""

    _in_key: ClassVar[tuple[str, ...]] = ("positive", "family", "link", *FAMILY_PARAMETERS)

    def _make_family(self) -> Family:
        """The `Family` that the parameters name."""
        given = {name: getattr(self, name) for name in FAMILY_PARAMETERS}
        return make_family(self.family, self.link, **given)

    @by_blocks
    def predict_linear(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Linear predictor ``X w + b + offset``, on the scale of the link.

        {Parameters}

        {Returns}
        """
        return super().predict(X, offset)

    @by_blocks
    def predict(self, X: MatrixLike, offset: Offset = None) -> FloatArray:
        """Predicted means of y: the inverse link of ``X w + b + offset``.

        Parameters
        ----------
        {X}
        offset : float or array-like of shape (n_samples,), default=None
            What is added to the linear predictor, as log(exposure). None is zero, and a ValueError of a model
            that was fitted with an offset (see ``needs_offset_``).

        Returns
        -------
        ndarray of shape (n_samples,)
            Means, finite: where one overflows it is the largest number of its type.
        """
        z = self.predict_linear(X, offset)
        most = np.finfo(z.dtype).max
        with np.errstate(over="ignore", under="ignore"):
            return np.clip(self._make_family().mean(z), -most, most)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> float:
        """Share D^2 of the deviance that the model explains.

        It is 1 - D(model) / D(null): the null model is the best constant linear predictor, plus the offset
        where there is one. Without an offset this is :func:`sklearn.metrics.d2_tweedie_score` for its
        families.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Targets in the family's range.
        {sample_weight, offset}

        Returns
        -------
        float
            At most 1. Where the null model fits without a deviance, it is 1 if this one does too, else 0.
        """
        namespace(X=X, y=y, sample_weight=sample_weight, offset=offset)
        offset = offset_of_scores(self, offset)
        z = self.predict_linear(X, offset)
        if comes_in_blocks(X):
            z = np.asarray(z)  # computes what is lazy
            found, y, sample_weight = numbers_of_blocks(None, X, y, sample_weight, offset)
            offset = found.census.offset
        return self._deviance_score(*map(to_host, (z, y, sample_weight, offset)))

    def _deviance_score(self, z, y, sample_weight, offset):
        family = self._make_family()
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True)
        check_consistent_length(z, y)
        weight, _ = in_units(check_sample_weight(sample_weight, len(y)))
        family.check(y)
        offset = check_offset(offset, z)
        # where a predictor overflows its deviance is as large as can be
        most = np.finfo(np.float64).max
        total = min(deviance(family, z, y, weight), most)
        null = np.zeros(len(y)) if offset is None else offset
        try:
            null = null + null_predictor(family, y, weight, offset)
        except (
            ValueError
        ):  # the mean of y is at an end of its range, which a null model without a deviance has
            return 1.0 if total == 0.0 else 0.0
        reference = deviance(family, null, y, weight)
        if reference == 0.0:
            return 1.0 if total == 0.0 else 0.0
        with np.errstate(over="ignore"):
            return float(np.maximum(1.0 - total / reference, -most))

    def _counterpart(self):
        return family_counterpart(self, self._make_family(), chosen(self, "alpha"), chosen(self, "l1_ratio"))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.positive_only = bool(self._make_family().lowest == 0.0)
        except (KeyError, TypeError, ValueError):  # parameters that a fit will refuse
            tags.target_tags.positive_only = False
        return tags
