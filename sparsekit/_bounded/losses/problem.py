"""The objective of a linear model with bounded coefficients: data, loss, penalty and box."""

import numpy as np

from ..._linalg.as_design import as_design
from ..._solver.tolerances import ROUNDING
from .losses import LossRows


class BoundedProblem:
    """Data, loss, penalty and box.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n, p)
        Or a C-contiguous array or a CSR matrix on a GPU, where all else of many entries must be, too.
    loss : PiecewiseLoss or LogLoss
    lower, upper : ndarray of shape (p,)
    l1, l2 : float
    fit_intercept : bool
    n_threads : int
    """

    def __init__(self, X, loss, lower, upper, l1, l2, *, fit_intercept, n_threads=1):
        self.loss, self.lower, self.upper = loss, lower, upper
        self.l1, self.l2, self.fit_intercept = l1, l2, fit_intercept
        self.matrix = as_design(X, n_threads).private()
        self.n, self.p = X.shape
        self.n_passes = 0
        self._moments = None

    @property
    def is_ridge(self):
        """Whether there are neither bounds nor an L1 part."""
        return not (self.l1 or np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def predictor(self, w, b):
        self.n_passes += 1
        z = self.matrix.matvec(w)
        if b:
            z += b
        return z

    def transposed(self, u):
        """X^T u, (p,)."""
        self.n_passes += 1
        return self.matrix.rmatvec(u)

    def evaluate(self, w, b, rows, smoothing=None, previous=None):
        """Fill ``rows`` at (w, b); the predictor and X^T u."""
        z = self.predictor(w, b)
        self.loss.evaluate(z, rows, smoothing, previous)
        return z, self.transposed(rows.u)

    def penalty(self, w):
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def moments(self):
        """Weighted mean and variance of the columns, the mean 0 without an intercept; they centre and scale.

        ValueError where squares overflow or vanish.
        """
        if self._moments is None:
            s = self.loss.s
            mean = self.matrix.rmatvec(s) if self.fit_intercept else np.zeros(self.p, like=s)
            second = self.matrix.squares(s)
            self.n_passes += 1 + self.fit_intercept
            with np.errstate(over="ignore", invalid="ignore"):  # the check below names the column
                variance = second - mean**2
            # the variance of a constant column is rounding
            constant = variance <= ROUNDING * second
            self._check_squares(second)
            self._moments = mean, np.where(constant, np.where(second > 0, second, 1.0), variance)
        return self._moments

    def _check_squares(self, second):
        wrong = ~np.isfinite(second)
        empty = np.flatnonzero(second == 0)
        if len(empty):
            wrong[empty] = self.matrix.absolute_sums(self.loss.s)[empty] > 0
        if wrong.any():
            raise ValueError(
                f"X: the squares of column {int(np.flatnonzero(wrong)[0])} are too large or too small. Bring "
                "the columns to similar scales (sklearn.preprocessing.MaxAbsScaler keeps X sparse)."
            )

    def rounded(self, w, b, inside):
        """(w, b, P) for coefficients rounded by ``inside``; b keeps the mean prediction."""
        new = inside(w)
        if self.fit_intercept:
            b = b + float(self.moments()[0] @ (w - new))
        rows = self.loss.evaluate(self.predictor(new.astype(np.float64), b), LossRows.empty(self.n, w))
        return new, b, rows.f + self.penalty(new.astype(np.float64))
