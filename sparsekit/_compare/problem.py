"""The optimisation problems that all compared solvers are given, and how their answers are judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import expit, logsumexp, xlogy


@dataclass(eq=False)
class Problem:
    r"""Binary L1 logistic regression on one data set.

    .. math:: F(w, b) = \lVert w \rVert_1 + C \sum_i \log(1 + \exp(-y_i (x_i^T w + b)))

    the loss being a *sum* over rows and b, where there is one, free of penalty. ``C = 1 / lambda``.

    Parameters
    ----------
    name : str
    X : ndarray or CSR matrix of shape (n, p), float64
    y : ndarray of shape (n,), float64
        -1 or +1.
    fit_intercept : bool, default=False
    X_test, y_test : like X and y, or None
        Held-out rows; used only to report accuracy and log-loss.
    notes : list of str
        What a reader of the results must know about how the data was made.
    """

    # words of the reports: this package's estimator, the peer that all know, scores of held-out rows
    ours = "L1LogisticOBA"
    baseline = "liblinear", "LIBLINEAR"
    formula = "||w||_1 + C sum_i log(1 + exp(-y_i z_i))"
    score_names = "accuracy", "log-loss"
    score_keys = "accuracy", "log_loss"
    no_intercept = (
        "No intercept: this is the problem that every solver can state (LIBLINEAR and celer have no "
        "unpenalised intercept); --intercept adds one."
    )

    name: str
    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    fit_intercept: bool = False
    X_test: np.ndarray | sparse.csr_matrix | None = None
    y_test: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self):
        self._formats = {}

    def strength(self, C):
        """The penalty as its users write it: name and value."""
        return "C", C

    @property
    def is_sparse(self):
        """Whether X is a SciPy sparse matrix."""
        return sparse.issparse(self.X)

    @property
    def labels(self):
        """Labels of the classes as the solvers get them."""
        return np.array([-1.0, 1.0])

    def design(self, layout):
        """X in the memory layout that a solver likes best, made once and kept.

        Parameters
        ----------
        layout : {"row", "column"}
            CSR or C order, CSC or Fortran order.
        """
        if layout not in self._formats:
            if self.is_sparse:
                # csr_matrix and not csr_array: liblinear-official accepts the former only
                cls = sparse.csr_matrix if layout == "row" else sparse.csc_matrix
                X = cls(self.X)
                X.sort_indices()
            else:
                X = np.require(self.X, requirements=["C" if layout == "row" else "F"])
            self._formats[layout] = X
        return self._formats[layout]

    @cached_property
    def lambda_max(self):
        """Smallest lambda with w = 0 as solution: ||X^T y||_inf / 2 without an intercept."""
        if self.fit_intercept:
            residual = (self.y > 0) - np.mean(self.y > 0)
        else:
            residual = self.y / 2
        return float(np.max(np.abs(self.X.T @ residual)))

    def margins(self, coef, intercept):
        """y_i (x_i.w + b)."""
        return self.y * (self.X @ coef.ravel() + float(np.ravel(intercept)[0]))

    def objective(self, coef, intercept, C):
        """F(w, b) in float64, whatever precision the solver worked in."""
        coef = np.asarray(coef, dtype=np.float64)
        loss = np.logaddexp(0.0, -self.margins(coef, intercept)).sum()
        return float(np.abs(coef).sum() + C * loss)

    def lower_bound(self, coef, intercept, C):
        r"""Value of the dual at the point that a primal point suggests: F* is at least this.

        :math:`D(\theta) = C \sum_i -\theta_i \log\theta_i - (1-\theta_i)\log(1-\theta_i)` for
        :math:`C \lVert X^T (y \theta) \rVert_\infty \le 1`, with
        :math:`\theta = \sigma(-y z)` scaled into that box. nan with an intercept (the scaled
        point then breaks :math:`y^T \theta = 0`).
        """
        if self.fit_intercept:
            return float("nan")
        theta = expit(-self.margins(np.asarray(coef, dtype=np.float64), intercept))
        norm = C * np.max(np.abs(self.X.T @ (self.y * theta)))
        theta = theta / max(1.0, norm)
        return float(C * -(xlogy(theta, theta) + xlogy(1 - theta, 1 - theta)).sum())

    def held_out(self, coef, intercept):
        """(accuracy, mean log-loss) on the held-out rows, or (nan, nan) without any."""
        if self.X_test is None:
            return float("nan"), float("nan")
        z = self.X_test @ np.ravel(coef) + float(np.ravel(intercept)[0])
        accuracy = float(np.mean(np.where(z > 0, 1.0, -1.0) == self.y_test))
        return accuracy, float(np.logaddexp(0.0, -self.y_test * z).mean())

    def training_part(self):
        """The problem without held-out rows and cached layouts, to be sent to a solver's process."""
        return self._alone(self.X, self.y)

    def sample(self, per_class=20):
        """A few rows of every class in the same container and dtype, to warm a solver up with."""
        rows = np.sort(np.concatenate([np.flatnonzero(self.y == c)[:per_class] for c in self.labels]))
        return self._alone(self.X[rows], self.y[rows])

    def _alone(self, X, y):
        """The problem of X and y, without held-out rows and cached layouts."""
        return replace(self, X=X, y=y, X_test=None, y_test=None, notes=[])


@dataclass(eq=False)
class MultinomialProblem(Problem):
    r"""Multinomial L1 logistic regression.

    .. math:: F(W, b) = \sum_{jk} |W_{jk}| + C \sum_i (\log \sum_k e^{z_{ik}} - z_{i y_i})

    with one row of W for each class, as in scikit-learn's ``coef_``; y holds codes 0 .. K-1.
    """

    @property
    def labels(self):
        """Codes of the classes."""
        return np.unique(self.y)

    @cached_property
    def lambda_max(self):
        """Smallest lambda with W = 0 as solution."""
        onehot = self.y[:, None] == self.labels
        share = onehot.mean(axis=0) if self.fit_intercept else 1.0 / onehot.shape[1]
        return float(np.max(np.abs(self.X.T @ (onehot - share))))

    def _losses(self, X, y, coef, intercept):
        z = X @ np.asarray(coef, dtype=np.float64).T + np.ravel(intercept)
        return logsumexp(z, axis=1) - z[np.arange(len(y)), y.astype(np.intp)], z

    def objective(self, coef, intercept, C):
        """F(W, b) in float64."""
        return float(np.abs(coef).sum() + C * self._losses(self.X, self.y, coef, intercept)[0].sum())

    def lower_bound(self, coef, intercept, C):
        """nan: no dual point is formed for this problem."""
        return float("nan")

    def held_out(self, coef, intercept):
        """(accuracy, mean log-loss) on the held-out rows, or (nan, nan) without any."""
        if self.X_test is None:
            return float("nan"), float("nan")
        losses, z = self._losses(self.X_test, self.y_test, coef, intercept)
        return float(np.mean(z.argmax(axis=1) == self.y_test)), float(losses.mean())
