"""LassoOBA for benchopt's benchmark_elastic_net.

The objective is ||y - X w - b||^2 / (2 n) + lmbda (l1_ratio ||w||_1 + (1 - l1_ratio) ||w||^2 / 2).
"""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning

from sparsekit import LassoOBA

# Largest number of iterations of a fit: benchopt ends a run, not this.
MAX_ITER = 100_000


class Solver(BaseSolver):
    """LassoOBA with a falling tol; each run starts from zero."""

    name = "sparsekit"
    requirements = ["pip::git+https://github.com/sparsekit/sparsekit"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    # Two values of tol can end at the same point: stop after six runs without progress, not three.
    stopping_criterion = SufficientProgressCriterion(patience=6, strategy="tolerance")

    def set_objective(self, X, y, l1_ratio, lmbda, fit_intercept):
        """The objective is that of LassoOBA."""
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        self.model = LassoOBA(alpha=lmbda, l1_ratio=l1_ratio, fit_intercept=fit_intercept, max_iter=MAX_ITER)

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
        return dict(beta=np.append(beta, self.model.intercept_) if self.fit_intercept else beta)
