"""BoundedRegressor for benchopt's benchmark_quantile_regression.

The objective is the mean pinball loss of y - X w - b, and lmbd ||w||_1.
"""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning

from sparsekit import BoundedRegressor


class Solver(BaseSolver):
    """BoundedRegressor without bounds, with a falling tol; each run starts from zero."""

    name = "sparsekit"
    requirements = ["pip::git+https://github.com/sparsekit/sparsekit"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    # Two values of tol can end at the same point: stop after six runs without progress, not three.
    stopping_criterion = SufficientProgressCriterion(patience=6, strategy="tolerance")

    def set_objective(self, X, y, lmbd, quantile, fit_intercept):
        """The objective is that of BoundedRegressor."""
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        self.model = BoundedRegressor(
            loss="quantile", quantile=quantile, alpha=lmbd, l1_ratio=1.0, fit_intercept=fit_intercept
        )

    def warm_up(self):
        """Import what a first fit imports."""
        self.run(1.0)

    def get_next(self, tolerance):
        """A tenth of the tolerance, from 0.1 to 1e-15."""
        return max(min(tolerance, 1.0) / 10, 1e-15)

    def run(self, tolerance):
        """One fit, certified to ``tolerance``."""
        with warnings.catch_warnings():
            # Rounding errors limit what a fit can reach.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.set_params(tol=tolerance).fit(self.X, self.y)

    def get_result(self):
        """Coefficients, then the intercept if it is fitted."""
        beta = self.model.coef_
        return dict(params=np.append(beta, self.model.intercept_) if self.fit_intercept else beta)
