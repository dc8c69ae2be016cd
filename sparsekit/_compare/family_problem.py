"""A generalised linear model as a problem that all compared solvers are given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._l1.losses.families.make import make_family
from .._l1.losses.family_loss import deviance, null_predictor
from .lasso_problem import LassoProblem
from .options import DISPERSION, POWERS
from .tables import DataError


@dataclass(eq=False)
class FamilyProblem(LassoProblem):
    r"""A generalised linear model with an elastic-net penalty on one data set.

    .. math:: F(w, b) = \frac{1}{2 n} \sum_i D(y_i, e^{x_i^T w + b}) + \alpha \left(\rho \lVert w \rVert_1
        + \tfrac{1 - \rho}{2} \lVert w \rVert^2\right)

    with the unit deviance D of the ``family`` and :math:`\rho` its ``l1_ratio``. ``C`` stands for
    :math:`1 / (n \alpha)`, as in `LassoProblem`.

    Raises
    ------
    DataError
        If y is out of the family's range, or the model without features is infinite.
    """

    family: str = "poisson"
    l1_ratio: float = 1.0

    ours = "GLMOBA"
    baseline = "glum", "glum"
    score_names = "D2", "mean deviance"
    score_keys = "d2", "mean_deviance"

    def __post_init__(self):
        super().__post_init__()
        self.loss = make_family(self.family, power=POWERS.get(self.family, 0.0), dispersion=DISPERSION)
        try:
            for y in (self.y, self.y_test):
                if y is not None:
                    self.loss.check(y)
        except ValueError as error:
            raise DataError(f"{self.name}: {error}") from None

    @cached_property
    def lambda_max(self):
        """Smallest n alpha with w = 0 as solution; of a ridge, which has none, that of the L1 penalty."""
        return super().lambda_max / (self.l1_ratio or 1.0)

    @property
    def formula(self):
        """The objective, for a report."""
        penalty = {0.0: "alpha/2 ||w||^2", 1.0: "alpha ||w||_1"}.get(
            self.l1_ratio, f"alpha ({self.l1_ratio:g} ||w||_1 + {1 - self.l1_ratio:g}/2 ||w||^2)"
        )
        return f"1/(2n) sum_i D(y_i, exp(z_i)) + {penalty}, D the {self.family} deviance"

    def _null_residual(self):
        z = np.zeros(len(self.y))
        if self.fit_intercept:
            try:
                z += null_predictor(self.loss, self.y)
            except ValueError as error:
                raise DataError(f"{self.name}: {error}") from None
        return -self.loss.evaluate(z, self.y, self.loss.saturated(self.y))[1]

    def objective(self, coef, intercept, C):
        """F(w, b) in float64, whatever precision the solver worked in."""
        coef = np.asarray(coef, dtype=np.float64)
        mean = deviance(self.loss, self._predictor(self.X, coef, intercept), self.y, None)
        penalty = self.l1_ratio * np.abs(coef).sum() + (1.0 - self.l1_ratio) * 0.5 * float(coef @ coef)
        return float(mean + self.alpha(C) * penalty)

    def lower_bound(self, coef, intercept, C):
        """nan: no dual point is formed for this problem."""
        return float("nan")

    def held_out(self, coef, intercept):
        """(explained share of the deviance, mean deviance) on the held-out rows, or nan without any."""
        if self.X_test is None:
            return float("nan"), float("nan")
        found = deviance(self.loss, self._predictor(self.X_test, coef, intercept), self.y_test, None)
        try:
            null = np.full(len(self.y_test), null_predictor(self.loss, self.y_test))
        except ValueError:  # counts that are all zero have no model to compare with
            return float("nan"), 2.0 * found
        reference = deviance(self.loss, null, self.y_test, None)
        return (1.0 - found / reference if reference > 0.0 else float("nan")), 2.0 * found

    @staticmethod
    def _predictor(X, coef, intercept):
        return X @ np.ravel(coef) + float(np.ravel(intercept)[0])


def shipped_family_problems(split, family, l1_ratio, *, test_size=0.25, fit_intercept=True, seed=0):
    """The numbers of diabetes, standardised.

    ``split`` is the function of ``io`` that holds rows out.
    """
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import StandardScaler

    X, y = load_diabetes(return_X_y=True)
    X, y, X_test, y_test, notes = split(StandardScaler().fit_transform(X), y, test_size, seed, False)
    notes = ["features standardised", *notes]
    return [FamilyProblem("diabetes", X, y, fit_intercept, X_test, y_test, notes, family, l1_ratio)]
