"""L1LogisticOBA for benchopt's benchmark_logreg_l1: sum_i log(1 + exp(-y_i x_i'w)) + lmbd ||w||_1."""

import warnings

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning

from sparsekit import L1LogisticOBA

# Largest number of iterations of a fit: benchopt ends a run, not this.
MAX_ITER = 100_000


class Solver(BaseSolver):
    """L1LogisticOBA with a falling tol; each run starts from zero."""

    name = "sparsekit"
    requirements = ["pip::git+https://github.com/sparsekit/sparsekit"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    # Two values of tol can end at the same point: stop after six runs without progress, not three.
    stopping_criterion = SufficientProgressCriterion(patience=6, strategy="tolerance")

    def set_objective(self, X, y, lmbd):
        """The objective is that of L1LogisticOBA, divided by C."""
        self.X, self.y = X, y
        self.model = L1LogisticOBA(C=1 / lmbd, fit_intercept=False, max_iter=MAX_ITER)

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
        """Coefficients."""
        return dict(beta=self.model.coef_.ravel())
