"""The optimisation problems that all compared solvers are given, and how their answers are judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from .._l1.losses.families.make import make_family
from .._l1.losses.family_loss import deviance, null_predictor
from .._linalg.as_design import as_design
from .._solver.tolerances import ROUNDING
from .options import POWERS
from .tables import DataError

# this package's estimators, the peers that all know, and the scores of held-out rows
OURS = {"binomial": "L1LogisticOBA", "gaussian": "LassoOBA"}
_BASELINES = {"binomial": ("liblinear", "LIBLINEAR"), "gaussian": ("lasso", "scikit-learn's Lasso")}
_SCORES = {
    "binomial": {"accuracy": "accuracy", "log_loss": "log-loss"},
    "gaussian": {"r2": "R2", "mean_squared_error": "mean sq. error"},
}


@dataclass(eq=False)
class Problem:
    r"""A generalised linear model with an L1 or elastic-net penalty on one data set.

    .. math:: F(w, b) = s \left(\sum_i \ell(x_i^T w + b, y_i)
        + \frac{1}{C} \left(\rho \lVert w \rVert_1 + \tfrac{1 - \rho}{2} \lVert w \rVert^2\right)\right)

    with half the unit deviance :math:`\ell` of the ``family`` and :math:`\rho` its ``l1_ratio``. For two
    classes s is C and F the objective of LIBLINEAR, elsewhere s is 1 / n and F that of scikit-learn's Lasso
    and Tweedie models with ``alpha = 1 / (n C)``.

    Parameters
    ----------
    name : str
    X : ndarray or CSR matrix of shape (n, p), float64
    y : ndarray of shape (n,), float64
        -1 or +1 where the family is "binomial".
    fit_intercept : bool, default=False
    X_test, y_test : like X and y, or None
        Held-out rows; used only for scores.
    notes : list of str
        What a reader of the results must know about how the data was made.
    family : {"binomial", "gaussian", "poisson", "gamma", "tweedie", "negative-binomial"}
    l1_ratio : float

    Raises
    ------
    DataError
        If y is out of the family's range.
    """

    name: str
    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    fit_intercept: bool = False
    X_test: np.ndarray | sparse.csr_matrix | None = None
    y_test: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    family: str = "binomial"
    l1_ratio: float = 1.0

    def __post_init__(self):
        self.loss = make_family(self.family, power=POWERS.get(self.family, 0.0), dispersion=1.0)
        try:
            for y in (self.y, self.y_test):
                if y is not None:
                    self.loss.check(self._targets(y))
        except ValueError as error:
            raise DataError(f"{self.name}: {error}") from None

    @property
    def has_classes(self):
        """Whether y holds classes and not numbers."""
        return self.family == "binomial"

    @property
    def ours(self):
        """Name of this package's estimator."""
        return OURS.get(self.family, "GLMOBA")

    @property
    def baseline(self):
        """Key and name of the peer that all know."""
        return _BASELINES.get(self.family, ("glum", "glum"))

    @property
    def scores(self):
        """Scores of held-out rows: names in tables by keys of JSON."""
        return _SCORES.get(self.family, {"d2": "D2", "mean_deviance": "mean deviance"})

    @property
    def formula(self):
        """The objective, for a report."""
        if self.has_classes:
            return "||w||_1 + C sum_i log(1 + exp(-y_i z_i))"
        penalty = {0.0: "alpha/2 ||w||^2", 1.0: "alpha ||w||_1"}.get(
            self.l1_ratio, f"alpha ({self.l1_ratio:g} ||w||_1 + {1 - self.l1_ratio:g}/2 ||w||^2)"
        )
        if self.family == "gaussian":
            return f"1/(2n) sum_i (y_i - z_i)^2 + {penalty}"
        return f"1/(2n) sum_i D(y_i, exp(z_i)) + {penalty}, D the {self.family} deviance"

    def alpha(self, C):
        """The penalty in the scale of scikit-learn's Lasso."""
        return 1.0 / (C * self.X.shape[0])

    def strength(self, C):
        """The penalty as its users write it: name and value."""
        return ("C", C) if self.has_classes else ("alpha", self.alpha(C))

    @property
    def is_sparse(self):
        """Whether X is a SciPy sparse matrix."""
        return sparse.issparse(self.X)

    def _targets(self, y):
        """Targets as the family takes them: classes are 0 and 1."""
        return (y > 0).astype(np.float64) if self.has_classes else y

    def _evaluate(self, z):
        """Value and derivative of the loss of each row."""
        y = self._targets(self.y)
        return self.loss.evaluate(z, y, self.loss.saturated(y))[:2]

    @cached_property
    def lambda_max(self):
        """Smallest 1 / C with w = 0 as solution; of a ridge, which has none, that of the L1 penalty.

        It is 0 where no more than rounding is left of X^T y.
        """
        z = np.zeros(len(self.y))
        if self.fit_intercept:
            try:
                z += null_predictor(self.loss, self._targets(self.y))
            except ValueError as error:
                raise DataError(f"{self.name}: {error}") from None
        residual = self._evaluate(z)[1]
        correlations = np.abs(self.X.T @ residual)
        if not (correlations > ROUNDING * as_design(self.X).absolute_sums(np.abs(residual))).any():
            return 0.0
        return float(correlations.max()) / (self.l1_ratio or 1.0)

    def _scaled(self, value, C):
        return float(C * value if self.has_classes else value / len(self.y))

    def objective(self, coef, intercept, C):
        """F(w, b) in float64, whatever precision the solver worked in."""
        coef = np.asarray(coef, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            loss = self._evaluate(predictor(self.X, coef, intercept))[0].sum()
        penalty = self.l1_ratio * np.abs(coef).sum() + (1.0 - self.l1_ratio) * 0.5 * float(coef @ coef)
        value = self._scaled(loss + penalty / C, C)
        return value if value < np.inf else np.inf

    def lower_bound(self, coef, intercept, C):
        r"""Value of the dual at the point that a primal point suggests: F* is at least this.

        :math:`D(\theta) = -s \sum_i \ell^*(\theta_i)` for :math:`\lVert X^T \theta \rVert_\infty \le 1 / C`,
        with the derivatives of the loss scaled into that box. nan with a ridge, and with an intercept: the
        scaled point then breaks :math:`\sum_i \theta_i = 0`, but for least squares, whose residuals can be
        centred.
        """
        is_centred = self.fit_intercept and self.family == "gaussian"
        if self.l1_ratio < 1.0 or (self.fit_intercept and not is_centred):
            return float("nan")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            theta = self._evaluate(predictor(self.X, coef, intercept))[1]
        if is_centred:
            theta = theta - theta.mean()
        theta = theta / max(1.0, C * float(np.max(np.abs(self.X.T @ theta))))
        y = self._targets(self.y)
        value = -self._scaled(self.loss.conjugate(theta, y, self.loss.saturated(y)).sum(), C)
        return max(value, 0.0)  # no loss is below zero

    def held_out(self, coef, intercept):
        """Values of ``scores`` on the held-out rows, or nan without any."""
        if self.X_test is None:
            return float("nan"), float("nan")
        y, z = self._targets(self.y_test), predictor(self.X_test, coef, intercept)
        found = deviance(self.loss, z, y, None)
        if self.has_classes:
            return float(np.mean((z > 0) == (y > 0))), found
        try:
            null = np.full(len(y), null_predictor(self.loss, y))
        except ValueError:  # counts that are all zero have no model to compare with
            return float("nan"), 2.0 * found
        reference = deviance(self.loss, null, y, None)
        return (1.0 - found / reference if reference > 0.0 else float("nan")), 2.0 * found

    def training_part(self, rows=slice(None)):
        """The problem of some rows without held-out ones, to be sent to a solver's process."""
        return replace(self, X=self.X[rows], y=self.y[rows], X_test=None, y_test=None, notes=[])

    def sample(self, per_class=20):
        """A few rows, of every class some, to warm a solver up with."""
        if not self.has_classes:
            return self.training_part(slice(0, 2 * per_class))
        rows = [np.flatnonzero(self.y == label)[:per_class] for label in np.unique(self.y)]
        return self.training_part(np.sort(np.concatenate(rows)))


def predictor(X, coef, intercept):
    """X w + b."""
    return X @ np.asarray(coef, dtype=np.float64) + float(np.ravel(intercept)[0])
