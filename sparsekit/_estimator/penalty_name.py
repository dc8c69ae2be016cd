"""The name of an estimator's penalty, by which scikit-learn's SelectFromModel chooses its threshold."""

from typing import Any

import numpy as np


class PenaltyNameMixin:
    """`penalty` of estimators with an ``l1_ratio``, and after cross-validation an ``l1_ratio_``."""

    l1_ratio: Any

    @property
    def penalty(self) -> str:
        """Name of the penalty as in scikit-learn: "l1", "l2" or "elasticnet", as ``l1_ratio`` says.

        By it :class:`sklearn.feature_selection.SelectFromModel` sees an L1 model, and keeps features whose
        coefficients are above 1e-5 and not above their mean.
        """
        ratios = np.unique(getattr(self, "l1_ratio_", self.l1_ratio))
        return (
            {0.0: "l2", 1.0: "l1"}.get(float(ratios[0]), "elasticnet") if len(ratios) == 1 else "elasticnet"
        )
