"""Loss of a family over blocks of rows: its description, sent with each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .block_loss import LossOfBlocks
from .families.family import Family
from .family_loss import FamilyLoss, null_shift


@dataclass(frozen=True, kw_only=True)
class FamilyOfBlocks(LossOfBlocks):
    """Description of a `FamilyLoss`; ``offset`` is the null model's intercept, added to all predictors."""

    family: Family

    @property
    def is_quadratic(self) -> bool:
        return False

    def _of_numbers(self, X, y, weight, shift):
        return self.on(X, y, weight, shift=null_shift(self.family, y, self.offset, shift))

    def on(
        self, X: Any, values: np.ndarray, weight: np.ndarray | None, n_threads: int = 1,
        shift: np.ndarray | None = None,
    ) -> Any:  # fmt: skip
        """The loss of rows with targets ``values`` and null predictors ``shift``."""
        return FamilyLoss(
            self.family, X, values, weight, fit_intercept=self.fit_intercept, n_threads=n_threads,
            offset=shift,
        )  # fmt: skip
