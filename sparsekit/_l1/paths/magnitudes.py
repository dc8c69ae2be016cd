"""Numbers whose sums of squares leave floating point: weights get a unit, others are refused by name."""

from contextlib import contextmanager

import numpy as np

from ..._estimator.checks import in_units
from ..._linalg.special import largest
from ..._messages import shown
from ..._solver import outcome


def sum_in_units(weight):
    """`in_units` of weights whose sum over the rows is the objective itself, which must be a number."""
    if weight is None:
        return None, 1.0
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not total < np.inf:
        raise ValueError(
            "sample_weight is too large: the sum of the weights overflows. Divide them by the largest one, "
            "and multiply C by it."
        )
    return in_units(weight)


def check_squares_of_target(y, dtype):
    """ValueError where squares of the entries of y, (n,), have no sum, or they none in X's ``dtype``."""
    top, most = largest(np.abs(y)), _largest_summand(len(y), np.float64)
    if not top <= most:
        raise ValueError(
            f"y is too large: its entries reach {top:g}, and sums of their squares overflow beyond "
            f"{most:.0e}. Divide y, and the penalty alpha, by the same number; that divides the coefficients."
        )
    # products with X are sums in its type
    most = float(np.finfo(dtype).max) / (4.0 * max(len(y), 1))
    if not top <= most:
        raise ValueError(
            f"y is too large: its entries reach {top:g}, and sums overflow beyond {most:.0e} in {dtype}, "
            "the type of X. Divide y, and the penalty alpha, by the same number, or pass float64 data."
        )


def _largest_summand(n, dtype):
    """Whose square may be added up n times, and four times that."""
    return float(np.sqrt(float(np.finfo(dtype).max) / (4.0 * max(n, 1))))


@contextmanager
def named_overflow(X):
    """An error, or a result that is not finite, is a ValueError about X where squares of X overflow."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (ArithmeticError, ValueError) as error:
        # nothing else has checked the size of X: only a fit that fails needs to
        values = X.data if hasattr(X, "nnz") else X
        top, most = largest(np.abs(values)), _largest_summand(X.shape[0], X.dtype)
        if top <= most:
            raise
        remedy = "Divide X, or each column, by its largest entry (sklearn.preprocessing.MaxAbsScaler does)"
        if X.dtype == np.float32:
            remedy += ", or pass float64 data"
        raise ValueError(
            f"X is too large: its entries reach {top:g}, and sums of their squares overflow beyond "
            f"{most:.0e} in {X.dtype}. {remedy}."
        ) from error


def check_result(result):
    """The result of a run; ValueError where it has not found finite numbers."""
    found = float(result.fun), float(result.optimality)
    if result.status == outcome.NOT_FINITE or not np.all(np.isfinite(found)):
        raise ValueError(
            f"the fit left floating point: its objective is {shown(found[0])} and its optimality "
            f"{shown(found[1])}. Bring the columns of X, y, the offset, the weights and the penalties "
            "to sizes near 1."
        )
    return result
