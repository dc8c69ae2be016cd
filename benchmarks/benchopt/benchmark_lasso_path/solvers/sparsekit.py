"""lasso_path for benchopt's benchmark_lasso_path: ||y - X w - b||^2 / 2 + lmbd ||w||_1 at every lmbd."""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning

from sparsekit import lasso_path

# Largest number of iterations of a fit: benchopt ends a run, not this.
MAX_ITER = 100_000


class Solver(BaseSolver):
    """lasso_path with a falling tol; each path starts from zero."""

    name = "sparsekit"
    requirements = ["pip::git+https://github.com/sparsekit/sparsekit"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    # Two values of tol can end at the same point: stop after six runs without progress, not three.
    stopping_criterion = SufficientProgressCriterion(patience=6, strategy="tolerance")

    def set_objective(self, X, y, lambdas, fit_intercept):
        """The objective is n times that of lasso_path."""
        self.X, self.y = X, y
        self.alphas = lambdas / X.shape[0]
        self.fit_intercept = fit_intercept

    def warm_up(self):
        """Import what a first fit imports."""
        self.run(1.0)

    def get_next(self, tolerance):
        """A tenth of the tolerance, from 0.1 to 1e-15."""
        return max(min(tolerance, 1.0) / 10, 1e-15)

    def run(self, tolerance):
        """One path; every point is certified to ``tolerance``."""
        with warnings.catch_warnings():
            # Rounding errors limit what a fit can reach.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.path = lasso_path(
                self.X,
                self.y,
                alphas=self.alphas,
                fit_intercept=self.fit_intercept,
                tol=tolerance,
                max_iter=MAX_ITER,
                coefs="dense",
            )

    def get_result(self):
        """One column for each lmbd, in falling order; the last row has the intercepts, where fitted."""
        coefs = self.path.coefs
        return dict(coefs=np.vstack([coefs, self.path.intercepts]) if self.fit_intercept else coefs)
