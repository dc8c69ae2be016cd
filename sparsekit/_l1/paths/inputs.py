"""What fits of L1 models begin with: columns in use, weights in units, penalties of features, an offset."""

from __future__ import annotations

from typing import Any

from ..._estimator.block_data import BlockedMatrix
from ..._estimator.offset import check_offset
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..losses.null_intercept import unless_zero
from .coefficients import penalty_of


class FitInputs:
    """Checked data of a fit, as losses take them.

    Parameters
    ----------
    estimator : estimator
        Or what else has ``fit_intercept``, ``penalty_weights`` and ``n_jobs``.
    given : TrainingData
        Gets the checked offset.
    scale : callable
        `in_units`, or what else brings weights to a unit.
    n_outputs : int
        Values of each feature in the solver's variables.

    Attributes
    ----------
    X : matrix of shape (n, p)
        The columns that have entries.
    columns : UsedColumns
        Which these are.
    weight, unit : ndarray of shape (n,) or None, float
        Weights, and what they were divided by.
    offset, shift : ndarray or None
        The offset as it was given, and None for zeros too.
    n_threads : int
    """

    def __init__(self, estimator: Any, given: Any, scale: Any, n_outputs: int = 1) -> None:
        self.estimator, self.given, self.n_outputs = estimator, given, n_outputs
        self.X, self.columns = without_empty_columns(given.X)
        self.weight, self.unit = given.weight, 1.0
        if not isinstance(self.X, BlockedMatrix):  # whose blocks have their own weights
            self.weight, self.unit = scale(given.weight)
        given.offset = self.offset = check_offset(given.offset, self.X, n_outputs)
        self.shift = unless_zero(self.offset)
        self.n_threads = count_threads(estimator.n_jobs)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.X.shape[0]) if self.weight is None else float(self.weight.sum())

    def penalty(self, strength: float) -> Any:
        """L1 penalty of each feature, (p,), or one number for all."""
        names = getattr(self.estimator, "feature_names_in_", None)
        weights = self.estimator.penalty_weights
        return self.columns.restrict(penalty_of(self.given.X, weights, strength, names))

    def problem(self, in_memory: Any, in_blocks: Any, values: Any, *own: Any) -> Any:
        """The problem of all rows, of one of two classes; ``own`` are their own arguments."""
        make = in_blocks if isinstance(self.X, BlockedMatrix) else in_memory
        fit_intercept, penalty = self.estimator.fit_intercept, self.penalty(1.0)
        whole = make(
            self.X, values, self.weight, penalty, fit_intercept, self.n_threads, *own, shift=self.shift
        )
        whole.columns = self.columns
        return whole
