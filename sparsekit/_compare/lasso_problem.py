"""The Lasso as a problem that all compared solvers are given, and data for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._messages import shown
from .._solver.tolerances import ROUNDING
from .problem import Problem
from .tables import DataError


@dataclass(eq=False)
class LassoProblem(Problem):
    r"""Least squares with an L1 penalty on one data set, y being real numbers.

    .. math:: F(w, b) = \frac{1}{2 n} \sum_i (y_i - x_i^T w - b)^2 + \alpha \lVert w \rVert_1

    which is the objective of :class:`sklearn.linear_model.Lasso`. ``C`` stands for
    :math:`1 / (n \alpha)` throughout, so that what measures need not know the model.
    """

    ours = "LassoOBA"
    baseline = "lasso", "scikit-learn's Lasso"
    formula = "1/(2n) sum_i (y_i - z_i)^2 + alpha ||w||_1"
    score_names = "R2", "mean sq. error"
    score_keys = "r2", "mean_squared_error"
    no_intercept = "No intercept, neither here nor in other solvers; --intercept adds one."

    def alpha(self, C):
        """The penalty in scikit-learn's scale."""
        return 1.0 / (C * self.X.shape[0])

    def strength(self, C):
        """The penalty as its users write it: name and value."""
        return "alpha", self.alpha(C)

    @cached_property
    def lambda_max(self):
        """Smallest n alpha with w = 0 as solution; 0 where no more than rounding is left of X^T y."""
        y = self._null_residual()
        correlations = np.abs(self.X.T @ y)
        top = float(abs(self.X).max()) or 1.0
        scaled = self.X / top  # whose squares do not overflow
        squares = scaled.multiply(scaled) if hasattr(scaled, "nnz") else scaled**2
        sizes = np.sqrt(np.asarray(squares.sum(axis=0)).ravel() * float(y @ y))
        return float(correlations.max()) if (correlations / top > ROUNDING * sizes).any() else 0.0

    def _null_residual(self):
        """Minus the derivatives by row of the model without features."""
        return self._centred(self.y)

    def _centred(self, values):
        return values - values.mean() if self.fit_intercept else values

    def _residual(self, coef, intercept):
        return self.y - self.X @ np.asarray(coef, dtype=np.float64) - float(np.ravel(intercept)[0])

    def objective(self, coef, intercept, C):
        """F(w, b) in float64, whatever precision the solver worked in."""
        residual = self._residual(coef, intercept)
        penalty = self.alpha(C) * np.abs(np.asarray(coef, dtype=np.float64)).sum()
        return float(residual @ residual / (2 * len(residual)) + penalty)

    def lower_bound(self, coef, intercept, C):
        r"""Value of the dual at the best multiple of the residual: F* is at least this.

        :math:`D(\theta) = (y^T \theta - \frac12 \lVert \theta \rVert^2) / n` for
        :math:`\lVert X^T \theta \rVert_\infty \le n \alpha`, and :math:`\sum_i \theta_i = 0` with an
        intercept.
        """
        residual = self._centred(self._residual(coef, intercept))
        square = float(residual @ residual)
        if square == 0.0:
            return 0.0
        norm = float(np.max(np.abs(self.X.T @ residual)))
        most = 1.0 / (C * norm) if norm > 0 else np.inf
        share = min(max(float(self.y @ residual) / square, -most), most)
        return (share * float(self.y @ residual) - 0.5 * share**2 * square) / len(residual)

    def held_out(self, coef, intercept):
        """(coefficient of determination, mean squared error) on the held-out rows, or nan without any."""
        if self.X_test is None:
            return float("nan"), float("nan")
        error = np.mean((self.y_test - self.X_test @ np.ravel(coef) - float(np.ravel(intercept)[0])) ** 2)
        spread = np.var(self.y_test)
        return float(1.0 - error / spread) if spread > 0 else float("nan"), float(error)

    def sample(self, per_class=20):
        """A few rows in the same container and dtype, to warm a solver up with."""
        rows = slice(0, 2 * per_class)
        return self._alone(self.X[rows], self.y[rows])


def targets(labels, path):
    """Labels of a file as float64 targets.

    Raises
    ------
    DataError
        Where they are no numbers, or all the same.
    """
    if labels.dtype.kind not in "iuf":
        raise DataError(
            f"{path}: the target holds {shown(str(labels[0]))}; --lasso and --family need numbers"
        )
    y = labels.astype(np.float64)
    if not np.isfinite(y).all():
        raise DataError(f"{path}: the target holds NaN or inf")
    if not np.ptp(y) > 0:
        raise DataError(f"{path}: all {len(y)} rows have the target {y[0]:g}; nothing can be explained")
    return y


def shipped_lasso_problems(split, *, test_size=0.25, fit_intercept=True, seed=0):
    """Diabetes as it is, and with products of up to three of its features, which are nearly collinear.

    ``split`` is the function of ``io`` that holds rows out.
    """
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    X, y = load_diabetes(return_X_y=True)
    problems = []
    for name, degree in (("diabetes", 1), ("diabetes, products", 3)):
        parts = split(
            PolynomialFeatures(degree, include_bias=False).fit_transform(X), y, test_size, seed, False
        )
        X_train, y_train, X_test, y_test, notes = parts
        scaler = StandardScaler().fit(X_train)
        X_test = None if X_test is None else scaler.transform(X_test)
        notes = ["features standardised", *notes]
        if degree > 1:
            notes.insert(0, "products of up to three of the ten features")
        problems.append(
            LassoProblem(name, scaler.transform(X_train), y_train, fit_intercept, X_test, y_test, notes)
        )
    return problems
